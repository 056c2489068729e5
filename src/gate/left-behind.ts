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
 * Finds objects outside of those of these namespaces that are meant that still point, or would point, into them. They
 * are read once for all. `claims`: the known PersistentVolumeClaims, by the name of the namespace. Returns all results.
 */
export async function addLeftBehind(
  all: readonly NamespaceResult[],
  isMeant: (result: NamespaceResult) => boolean,
  claims: ReadonlyMap<string, readonly Identity[]>,
  { api, clock, inputs, signal }: Run,
): Promise<NamespaceResult[]> {
  const results = all.filter(isMeant);
  if (results.length === 0 || signal.aborted) return [...all];
  const limited = AbortSignal.any([signal, AbortSignal.timeout(LIMIT_MS)]);
  const deps = { api, signal: limited };
  const search = async () => {
    const { pointers, unread } = await readPointers(results, deps);
    const now = inputs.forecast ? undefined : await readNamespaces(results, deps);
    const left = results.map((result) => {
      const there = now?.get(result.name);
      const isReplaced = result.outcome === 'recreated' || (there?.ok && there.value !== undefined);
      const staysBehind = (pointer: LeftBehind): boolean => {
        if (!pointsInto(result, pointer, claims.get(result.name) ?? [])) return false;
        if (inputs.forecast) return !pointer.isGoing;
        // Another namespace has the name: objects that point to the name belong to the new one.
        return !isReplaced || pointer.released !== undefined;
      };
      return worstFirst(pointers.filter(staysBehind));
    });
    return { left, unread };
  };
  let { left, unread } = await search();
  if (left.flat().some(({ isGoing }) => isGoing)) {
    await clock.sleep(SECOND_SEARCH_MS, limited);
    const second = await search();
    if (!limited.aborted) ({ left, unread } = second);
  }
  return all.map((result) => {
    if (!isMeant(result)) return result;
    const leftBehind = left[results.indexOf(result)] ?? [];
    const hasFailed = inputs.failOnLeftBehind && leftBehind.some(({ isGoing }) => !isGoing);
    const verdict = hasFailed ? 'fail' : result.verdict;
    return { ...result, leftBehind, leftBehindUnread: unread, verdict };
  });
}

/** Reports whether the object points to this namespace, and not to an earlier one of its name. */
function pointsInto(
  { name: own, createdAt = '' }: NamespaceResult,
  { claim, namespace, released }: LeftBehind,
  claims: readonly Identity[],
): boolean {
  // The volume was released by a claim of an earlier namespace of this name, or before the namespace was
  // created again.
  const isOlder = Date.parse(released?.at ?? '') < Date.parse(createdAt);
  const isAnothers =
    Boolean(claim?.uid) &&
    claims.some(({ name, uid }) => name === claim?.name && uid !== claim.uid);
  return namespace === own && !isOlder && !isAnothers;
}

/** Returns the leftovers, the worst first, each object once. */
function worstFirst(left: readonly LeftBehind[]): LeftBehind[] {
  const sorted = left.toSorted((a, b) => Number(b.breaksOthers) - Number(a.breaksOthers));
  const byObject = Map.groupBy(sorted, ({ kind, name, why }) => `${kind} ${name} ${why}`);
  return Array.from(byObject.values(), ([first]) => first as LeftBehind);
}
