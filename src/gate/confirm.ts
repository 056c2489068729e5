import { stringAt, valueAt } from '../base/json.ts';
import type { Clock } from '../base/time.ts';
import { namespacePath } from '../kubernetes/paths.ts';
import { type Read, type ReadFailure, readFailed } from '../model/read.ts';
import type { NamespaceFacts } from '../model/snapshot.ts';
import { inParallel, type Reading } from '../observe/collections.ts';
import { readNamespace } from '../observe/namespaces.ts';

/** Namespaces that every cluster has and that cannot be deleted. The UID of one identifies the cluster. */
export const ANCHOR_NAMESPACES = ['kube-system', 'default'];

/** An object whose UID identifies the cluster that was asked at the start. */
export interface Anchor {
  name: string;
  uid: string;
  createdAt: string | undefined;
}

/** Reads the anchor; undefined if this identity may read none of these namespaces. */
export async function readAnchor({ api, signal }: Reading): Promise<Anchor | undefined> {
  for (const name of ANCHOR_NAMESPACES) {
    const got = await api.get(namespacePath(name), { signal, timeoutMs: 5_000, retries: 2 });
    const metadata = got.ok ? valueAt(got.value, 'metadata') : undefined;
    const uid = stringAt(metadata, 'uid');
    const createdAt = stringAt(metadata, 'creationTimestamp');
    if (uid !== undefined) return { name, uid, createdAt };
    if (!got.ok && !/^(?:forbidden|not-found)$/.test(got.failure.kind)) return undefined;
  }
  return undefined;
}

export interface ConfirmDeps extends Reading {
  clock: Clock;
  anchor: Anchor | undefined;
  /** Marks of the API servers that answered when the namespaces were first read; see `CallOptions.onAnswer`. */
  marks: Set<string>;
}

/**
 * Pause before the second GET. A first 404 may be stale: it may come from an API server that lags behind, or
 * from a cache.
 */
export const REPEAT_MS = 1_000;
/**
 * Number of further reads. If two clusters answer in turn, so many answers do not all come from the wrong one.
 */
const MORE_READS = 8;

const otherClusterFailure = (what: string): { ok: false; failure: ReadFailure } =>
  readFailed({
    kind: 'unreadable',
    message: `the address leads to another cluster than at the start: ${what}`,
  });

/**
 * Verifies that namespaces were deleted or replaced. Reads each of them again by name, and checks that the answers come
 * from the cluster that was asked at the start. `isDeletionWatched`: a watch reported the deletion of this UID.
 */
export async function confirmEnds(
  ended: readonly { name: string; isDeletionWatched?: boolean }[],
  deps: ConfirmDeps,
): Promise<Map<string, Read<NamespaceFacts | undefined>>> {
  const { anchor, api, clock, marks, signal } = deps;
  if (ended.length === 0) return new Map();
  if (ended.some(({ isDeletionWatched }) => isDeletionWatched !== true))
    await clock.sleep(REPEAT_MS, signal);
  let anchorMark: string | undefined;
  const onAnchor = (mark: string | undefined): void => {
    anchorMark = mark;
  };
  if (anchor !== undefined) {
    const got = await api.get(namespacePath(anchor.name), { signal, onAnswer: onAnchor });
    const uid = got.ok ? (stringAt(got.value, 'metadata', 'uid') ?? '') : undefined;
    const was = `namespace ${anchor.name} had UID ${anchor.uid} and has UID ${uid}`;
    const answer = got.ok ? otherClusterFailure(was) : got;
    if (uid !== anchor.uid) return new Map(ended.map(({ name }) => [name, answer]));
  }
  const confirm = async (name: string): Promise<Read<NamespaceFacts | undefined>> => {
    let mark: string | undefined;
    const onAnswer = (given: string | undefined): void => {
      mark = given;
    };
    const now = await readNamespace(name, { api, signal, onAnswer });
    const isKnown =
      anchor === undefined ? marks.size === 0 || marks.has(mark ?? '') : mark === anchorMark;
    if (!now.ok || isKnown) return now;
    if (anchor === undefined) return otherClusterFailure('its API server has other FlowSchemas');
    // A FlowSchema may apply to one namespace only. If two clusters answer in turn, further reads show it.
    for (let more = 0; more < MORE_READS; more++) {
      const again = await readNamespace(name, { api, signal });
      if (!again.ok) return again;
      if (again.value?.uid !== now.value?.uid)
        return otherClusterFailure('two clusters answer in turn');
    }
    return now;
  };
  return new Map(await inParallel(ended, async ({ name }) => [name, await confirm(name)] as const));
}
