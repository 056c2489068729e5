import type { Clock } from '../base/time.ts';
import { type Read, readFailed } from '../model/read.ts';
import type { NamespaceFacts } from '../model/snapshot.ts';
import { inParallel, type Reading } from '../observe/collections.ts';
import { readNamespace } from '../observe/namespaces.ts';

/** Namespaces that every cluster has and that cannot be deleted. The UID of one identifies the cluster. */
export const ANCHOR_NAMESPACES = ['kube-system', 'default'];

export interface ConfirmDeps extends Reading {
  clock: Clock;
  /** The namespace that identifies the cluster asked at the start; undefined if this identity may read none. */
  anchor: NamespaceFacts | undefined;
}

export async function readAnchor(deps: Reading): Promise<NamespaceFacts | undefined> {
  for (const name of ANCHOR_NAMESPACES) {
    const got = await readNamespace(name, deps);
    if (got.ok && got.value !== undefined) return got.value;
    if (!got.ok && got.failure.kind !== 'forbidden') return undefined;
  }
  return undefined;
}

/** A first 404 may be stale, from an API server that lags behind or from a cache. */
export const REPEAT_MS = 1_000;
/** The pause if nothing else identifies the cluster: an address may lead to another one for a moment. */
const APART_MS = 3_000;

/** Reads each of them again by name, from the cluster asked at the start. `isReported`: a watch has reported all these deletions. */
export async function confirmEnds(
  ended: readonly { name: string }[],
  deps: ConfirmDeps,
  isReported = false,
): Promise<Map<string, Read<NamespaceFacts | undefined>>> {
  const { anchor, clock, signal } = deps;
  if (ended.length === 0) return new Map();
  if (anchor === undefined) await clock.sleep(APART_MS, signal);
  else if (!isReported) await clock.sleep(REPEAT_MS, signal);
  // At the same time, so that the end is known at once.
  const doubt = anchor && doubtAboutCluster(anchor, deps);
  const sure = await inParallel(ended, async ({ name }) => {
    const now = await readNamespace(name, deps);
    return [name, (await doubt) ?? now] as const;
  });
  return new Map(sure);
}

async function doubtAboutCluster({ name, uid }: NamespaceFacts, deps: Reading) {
  const got = await readNamespace(name, deps);
  if (!got.ok) return got;
  if (got.value?.uid === uid) return undefined;
  const was = `namespace ${name} had UID ${uid} and has UID ${got.value?.uid}`;
  const message = `the address leads to another cluster than at the start: ${was}`;
  return readFailed({ kind: 'unreadable', message });
}
