import type { NamespaceResult } from '../model/result.ts';
import { readNamespaces } from '../observe/namespaces.ts';
import { readPointers } from '../observe/pointers.ts';
import type { Run } from './run.ts';

/** A run works without the search as well. */
const LIMIT_MS = 10_000;
/** Volumes and owned objects are deleted after the namespace. */
const SECOND_SEARCH_MS = 4_000;

/** Adds the objects outside that still point, or would point, into those of these namespaces that are meant. */
export async function addLeftBehind(
  all: readonly NamespaceResult[],
  isMeant: (result: NamespaceResult) => boolean,
  { api, clock, inputs, signal }: Run,
): Promise<NamespaceResult[]> {
  const results = all.filter(isMeant);
  if (results.length === 0 || signal.aborted) return [...all];
  const limited = AbortSignal.any([signal, AbortSignal.timeout(LIMIT_MS)]);
  const deps = { api, signal: limited };
  const search = async () => {
    const [{ pointers, unread }, now] = await Promise.all([
      readPointers(results, deps),
      inputs.forecast ? undefined : readNamespaces(results, deps),
    ]);
    const left = results.map((result) => {
      const there = now?.get(result.name);
      const isReplaced = result.outcome === 'recreated' || (there?.ok && there.value !== undefined);
      const mine = pointers.filter(({ isGoing, namespace, released }) => {
        // A volume that was released before the namespace was created belongs to an earlier one of its name.
        const isEarlier = Date.parse(released?.at ?? '') < Date.parse(result.createdAt ?? '');
        if (namespace !== result.name || isEarlier) return false;
        // If another namespace has the name, objects that point to the name belong to the new one.
        return inputs.forecast ? !isGoing : !isReplaced || released !== undefined;
      });
      return mine.sort((a, b) => Number(b.breaksOthers) - Number(a.breaksOthers));
    });
    return { left, unread };
  };
  let found = await search();
  if (found.left.flat().some((one) => one.isGoing)) {
    await clock.sleep(SECOND_SEARCH_MS, limited);
    const again = await search();
    if (!limited.aborted) found = again;
  }
  return all.map((result) => {
    const leftBehind = found.left[results.indexOf(result)];
    if (leftBehind === undefined) return result;
    const hasFailed = inputs.failOnLeftBehind && leftBehind.some((one) => !one.isGoing);
    const verdict = hasFailed ? 'fail' : result.verdict;
    return { ...result, leftBehind, leftBehindUnread: found.unread, verdict };
  });
}
