import type { Diagnosis, Finding } from '../diagnose/diagnosis.ts';

/** One way from the namespace to a root cause: the first link holds the namespace itself. */
export interface Chain {
  links: Finding[];
  /** Whether the last link can proceed only after the namespace, or waits back. */
  isDeadlock: boolean;
  /** Other things that hold the namespace and end at the same root cause. */
  others: Finding[];
}

/** The shortest chain to each root cause, in the diagnosis's order of importance. */
export function chainsOf(diagnosis: Diagnosis): Chain[] {
  const byId = new Map(diagnosis.findings.map((finding) => [finding.id, finding]));
  const reached = reachedFrom(diagnosis.blockers, byId);
  return diagnosis.rootCauses.flatMap((id) => {
    const links = shortestChain(diagnosis.blockers, id, byId);
    if (links.length === 0) return [];
    const others = diagnosis.blockers
      .filter((blocker) => blocker !== links[0]?.id && reached(blocker).has(id))
      .flatMap((blocker) => byId.get(blocker) ?? []);
    return [{ links, isDeadlock: isInDeadlock(id, diagnosis), others }];
  });
}

function isInDeadlock(id: string, diagnosis: Diagnosis): boolean {
  return diagnosis.deadlocks.some((circle) => circle.includes(id));
}

function shortestChain(
  blockers: readonly string[],
  target: string,
  byId: ReadonlyMap<string, Finding>,
): Finding[] {
  const cameFrom = new Map<string, string | undefined>(blockers.map((id) => [id, undefined]));
  const open = [...cameFrom.keys()];
  for (let at = 0; at < open.length; at++) {
    const id = open[at] as string;
    if (id === target) return pathTo(id, cameFrom, byId);
    for (const next of byId.get(id)?.waitsFor ?? []) {
      if (cameFrom.has(next)) continue;
      cameFrom.set(next, id);
      open.push(next);
    }
  }
  // A root cause that no blocker leads to still has to be named.
  const alone = byId.get(target);
  return alone === undefined ? [] : [alone];
}

function pathTo(
  end: string,
  cameFrom: ReadonlyMap<string, string | undefined>,
  byId: ReadonlyMap<string, Finding>,
): Finding[] {
  const path: Finding[] = [];
  for (let id: string | undefined = end; id !== undefined; id = cameFrom.get(id)) {
    const finding = byId.get(id);
    if (finding !== undefined) path.unshift(finding);
  }
  return path;
}

/** Everything that a finding leads to, itself included; computed once per finding. */
function reachedFrom(
  blockers: readonly string[],
  byId: ReadonlyMap<string, Finding>,
): (id: string) => ReadonlySet<string> {
  const known = new Map<string, ReadonlySet<string>>();
  for (const start of blockers) {
    const seen = new Set([start]);
    const open = [start];
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      for (const next of byId.get(id)?.waitsFor ?? []) {
        if (!seen.has(next)) {
          seen.add(next);
          open.push(next);
        }
      }
    }
    known.set(start, seen);
  }
  return (id) => known.get(id) ?? new Set();
}
