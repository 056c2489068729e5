import type { LeftBehind, NamespaceResult } from '../model/result.ts';
import type { Identity } from '../model/snapshot.ts';
import { readNamespaces } from '../observe/namespaces.ts';
import { readPointers } from '../observe/pointers.ts';
import type { Run } from './run.ts';

/** Limit for the search for leftovers, without which a run works as well. */
const LIMIT_MS = 10_000;
/** Pause before the second read, because volumes and owned objects are deleted after the namespace. */
const SECOND_SEARCH_MS = 4_000;

/**
 * What a namespace became. `replaced`: another namespace has its name, and objects that point to the name belong
 * to the new one.
 */
type Fate = 'expected' | 'gone' | 'replaced';

/**
 * Finds objects outside of these namespaces that still point, or would point, into them. They are read once for
 * all namespaces. `claims`: the known PersistentVolumeClaims, by the name of the namespace.
 */
export async function addLeftBehind(
  results: readonly NamespaceResult[],
  claims: ReadonlyMap<string, readonly Identity[]>,
  { api, clock, inputs, signal }: Run,
): Promise<void> {
  if (results.length === 0 || signal.aborted) return;
  const limited = AbortSignal.any([signal, AbortSignal.timeout(LIMIT_MS)]);
  const deps = { api, signal: limited };
  const search = async () => {
    const { pointers, unread } = await readPointers(results, deps);
    const now = inputs.forecast ? undefined : await readNamespaces(results, deps);
    const fateOf = ({ name, outcome }: NamespaceResult): Fate => {
      if (now === undefined) return 'expected';
      const there = now.get(name);
      const isReplaced = outcome === 'recreated' || (there?.ok && there.value !== undefined);
      return isReplaced ? 'replaced' : 'gone';
    };
    const left = results.map((result) =>
      leftBehind(result, fateOf(result), claims.get(result.name) ?? [], pointers),
    );
    return { left, unread };
  };
  let { left, unread } = await search();
  if (left.flat().some(({ isGoing }) => isGoing)) {
    await clock.sleep(SECOND_SEARCH_MS, limited);
    const second = await search();
    if (!limited.aborted) ({ left, unread } = second);
  }
  results.forEach((result, index) => {
    const mine = left[index] ?? [];
    result.leftBehind = mine;
    result.leftBehindUnread = unread;
    if (inputs.failOnLeftBehind && mine.some(({ isGoing }) => !isGoing)) result.verdict = 'fail';
  });
}

/** Returns the leftovers, the worst first, each object once. */
function leftBehind(
  { name: own, createdAt = '' }: NamespaceResult,
  fate: Fate,
  claims: readonly Identity[],
  pointers: readonly LeftBehind[],
): LeftBehind[] {
  const staysBehind = ({ claim, isGoing, namespace, released }: LeftBehind): boolean => {
    // The volume was released by a claim of an earlier namespace of this name, or before the namespace was
    // created again.
    const isOlder = Date.parse(released?.at ?? '') < Date.parse(createdAt);
    const isAnothers =
      Boolean(claim?.uid) &&
      claims.some(({ name, uid }) => name === claim?.name && uid !== claim.uid);
    if (namespace !== own || isOlder || isAnothers) return false;
    return fate === 'gone' || (fate === 'replaced' ? released !== undefined : !isGoing);
  };
  return pointers
    .filter(staysBehind)
    .toSorted((a, b) => Number(b.breaksOthers) - Number(a.breaksOthers))
    .filter(
      ({ kind, name }, index, all) =>
        all.findIndex((other) => other.kind === kind && other.name === name) === index,
    );
}
