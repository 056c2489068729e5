import type { Diagnosis, Finding } from '../model/finding.ts';

/** One way from the namespace to a root cause: the first link holds the namespace itself. */
export interface Chain {
  links: Finding[];
  /** Whether the last link can proceed only after the namespace, or waits back. */
  isDeadlock: boolean;
  /** Other things that hold the namespace and end at the same root cause. */
  others: Finding[];
}

type ById = ReadonlyMap<string, Finding>;

/**
 * The shortest chain to each root cause, in the diagnosis's order of importance. Walks the graph once
 * for all of them: there can be ten thousand.
 */
export function chainsOf(diagnosis: Diagnosis): Chain[] {
  const byId = new Map(diagnosis.findings.map((finding) => [finding.id, finding]));
  const cameFrom = walk(diagnosis.blockers, byId);
  const blockersOf = blockersByRootCause(diagnosis, byId);
  const deadlocked = new Set(diagnosis.deadlocks.flat());
  return diagnosis.rootCauses.flatMap((id) => {
    const links = pathTo(id, cameFrom, byId);
    if (links.length === 0) return [];
    const others = (blockersOf.get(id) ?? []).filter((blocker) => blocker !== links[0]);
    return [{ links, isDeadlock: deadlocked.has(id), others }];
  });
}

/** For every finding that can be reached, the one before it on the shortest way. */
function walk(blockers: readonly string[], byId: ById): ReadonlyMap<string, string | undefined> {
  const cameFrom = new Map<string, string | undefined>(blockers.map((id) => [id, undefined]));
  // A Map is walked in the order of insertion, and what is added on the way is walked as well.
  for (const id of cameFrom.keys()) {
    for (const next of byId.get(id)?.waitsFor ?? []) {
      if (!cameFrom.has(next)) cameFrom.set(next, id);
    }
  }
  return cameFrom;
}

/** A root cause that no blocker leads to is a chain of its own: it still has to be named. */
function pathTo(
  end: string,
  cameFrom: ReadonlyMap<string, string | undefined>,
  byId: ById,
): Finding[] {
  const path: Finding[] = [];
  for (let id: string | undefined = end; id !== undefined; id = cameFrom.get(id)) {
    const finding = byId.get(id);
    if (finding !== undefined) path.push(finding);
  }
  return path.reverse();
}

function blockersByRootCause(diagnosis: Diagnosis, byId: ById): ReadonlyMap<string, Finding[]> {
  const roots = new Set(diagnosis.rootCauses);
  const found = new Map<string, Finding[]>();
  for (const blocker of diagnosis.blockers) {
    const finding = byId.get(blocker);
    if (finding === undefined) continue;
    const reached = new Set([blocker]);
    for (const id of reached) {
      if (roots.has(id)) pushTo(found, id, finding);
      for (const next of byId.get(id)?.waitsFor ?? []) reached.add(next);
    }
  }
  return found;
}

function pushTo(lists: Map<string, Finding[]>, key: string, item: Finding): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [item]);
  else list.push(item);
}
