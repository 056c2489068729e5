import { stringAt } from '../base/json.ts';
import type { Clock } from '../base/time.ts';
import { namespacePath } from '../kubernetes/paths.ts';
import { type Read, readFailed } from '../model/read.ts';
import type { NamespaceFacts } from '../model/snapshot.ts';
import { inParallel, type Reading } from '../observe/collections.ts';
import { readNamespace } from '../observe/namespaces.ts';

/** Namespaces that every cluster has and that cannot be deleted. The UID of one identifies the cluster. */
export const ANCHOR_NAMESPACES = ['kube-system', 'default'];

/** The namespace whose UID identifies the cluster that was asked at the start. */
export interface Anchor {
  name: string;
  uid: string;
}

export interface ConfirmDeps extends Reading {
  clock: Clock;
  /** Undefined if this identity may read none. */
  anchor: Anchor | undefined;
}

/** Reads the anchor; undefined if this identity may read none of these namespaces. */
export async function readAnchor({ api, signal }: Reading): Promise<Anchor | undefined> {
  for (const name of ANCHOR_NAMESPACES) {
    const got = await api.get(namespacePath(name), { signal, timeoutMs: 5_000 });
    const uid = got.ok ? stringAt(got.value, 'metadata', 'uid') : undefined;
    if (uid !== undefined) return { name, uid };
    if (!got.ok && !/^(?:forbidden|not-found)$/.test(got.failure.kind)) return undefined;
  }
  return undefined;
}

/** Pause before the second GET. A first 404 may be stale, from an API server that lags behind or from a cache. */
export const REPEAT_MS = 1_000;
/** The pause if nothing else identifies the cluster: an address may lead to another one for a moment. */
const APART_MS = 3_000;

/**
 * Verifies that namespaces were deleted or replaced: reads each of them again by name, from the cluster that was asked
 * at the start. `isDeletionWatched`: a watch reported the deletion of this UID.
 */
export async function confirmEnds(
  ended: readonly { name: string; isDeletionWatched?: boolean }[],
  { anchor, api, clock, signal }: ConfirmDeps,
): Promise<Map<string, Read<NamespaceFacts | undefined>>> {
  if (ended.length === 0) return new Map();
  const isWatched = ended.every(({ isDeletionWatched }) => isDeletionWatched === true);
  if (anchor === undefined) await clock.sleep(APART_MS, signal);
  else if (!isWatched) await clock.sleep(REPEAT_MS, signal);
  // At the same time, so that the end is known at once.
  const doubt = doubtAboutCluster(anchor, { api, signal });
  const confirm = async ({ name }: { name: string }) => {
    const now = await readNamespace(name, { api, signal });
    return [name, (await doubt) ?? now] as const;
  };
  return new Map(await inParallel(ended, confirm));
}

/** Returns why the answers may be those of another cluster than at the start. */
async function doubtAboutCluster(anchor: Anchor | undefined, deps: Reading) {
  if (anchor === undefined) return undefined;
  const got = await readNamespace(anchor.name, deps);
  if (!got.ok) return got;
  const uid = got.value?.uid;
  if (uid === anchor.uid) return undefined;
  const was = `namespace ${anchor.name} had UID ${anchor.uid} and has UID ${uid}`;
  const message = `the address leads to another cluster than at the start: ${was}`;
  return readFailed({ kind: 'unreadable', message });
}
