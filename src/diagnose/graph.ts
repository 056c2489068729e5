import {
  type Certainty,
  type Diagnosis,
  type Edge,
  FINDING_CODES,
  type Finding,
  NAMESPACE_NODE,
  type Remedy,
} from '../model/finding.ts';
import { type RuleResult, resultId } from './context.ts';

export type WaitForGraph = Pick<
  Diagnosis,
  'findings' | 'edges' | 'blockers' | 'rootCauses' | 'deadlocks'
>;

/**
 * Links results into the wait-for graph that starts at the namespace. Findings that nothing waits for
 * stay in the list (they may contribute) but are neither blockers nor root causes. The order in which
 * the rules found them makes no difference.
 */
export function buildGraph(results: readonly RuleResult[]): WaitForGraph {
  const byId = new Map(
    [...Map.groupBy(results, resultId)]
      .map(([id, same]) => [id, same.reduce(mergeResults)] as const)
      .sort(([a, one], [b, other]) => rankOf(one) - rankOf(other) || (a < b ? -1 : 1)),
  );
  const ids = [...byId.keys()];
  const edges = edgesOf(byId);
  const next = adjacency(edges);
  const reachable = reachableFrom(NAMESPACE_NODE, next);
  const rootCauses = rootCausesOf(ids, next).filter(
    (id) => reachable.has(id) && !byId.get(id)?.isCut,
  );
  const deadlocks = deadlocksOf(ids, next).filter((circle) =>
    circle.some((id) => reachable.has(id)),
  );
  const findings = [...byId].map(([id, result]) => {
    const isCircle = rootCauses.includes(id) && deadlocks.some((circle) => circle.includes(id));
    const remedies = [...result.remedies, ...(isCircle ? (result.wayOut ?? []) : [])];
    return toFinding(id, targets(next, id), { ...result, remedies });
  });
  return { findings, edges, blockers: targets(next, NAMESPACE_NODE), rootCauses, deadlocks };
}

function edgesOf(byId: ReadonlyMap<string, RuleResult>): Edge[] {
  const edges = new Map<string, Edge>();
  // A finding never waits for itself, and two rules may have found the same link.
  const add = (from: string, to: string): void => {
    if (from !== to) edges.set(`${from}\n${to}`, { from, to });
  };
  for (const [id, result] of byId) {
    if (result.blocksNamespace) add(NAMESPACE_NODE, id);
    for (const to of result.waitsFor ?? []) {
      if (byId.has(to)) add(id, to);
    }
    if (result.waitsForNamespace) add(id, NAMESPACE_NODE);
  }
  return [...edges.values()];
}

function adjacency(edges: readonly Edge[]): Map<string, string[]> {
  const byStart = Map.groupBy(edges, ({ from }) => from);
  return new Map([...byStart].map(([from, list]) => [from, list.map(({ to }) => to)]));
}

function targets(next: ReadonlyMap<string, string[]>, from: string): string[] {
  return (next.get(from) ?? []).filter((id) => id !== NAMESPACE_NODE);
}

function reachableFrom(start: string, next: ReadonlyMap<string, string[]>): Set<string> {
  const seen = new Set([start]);
  const open = [start];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    for (const to of next.get(id) ?? []) {
      if (!seen.has(to)) {
        seen.add(to);
        open.push(to);
      }
    }
  }
  return seen;
}

/**
 * Finds the ends of chains, sorted by rank as `ids` are. A chain ends at a finding that waits for nothing else. Findings
 * that wait only for each other are one end, represented by the first. Links back to the namespace are not followed: an
 * owner that was deleted with it is where a deadlock can be broken.
 */
function rootCausesOf(ids: readonly string[], next: ReadonlyMap<string, string[]>): string[] {
  const inner = new Map(ids.map((id) => [id, targets(next, id)]));
  const ends = componentsOf(ids, inner)
    .map((members) => new Set(members))
    .filter((end) => [...end].every((id) => inner.get(id)?.every((to) => end.has(to))));
  const endOf = new Map(ends.flatMap((end) => [...end].map((id) => [id, end] as const)));
  const represented = new Set<ReturnType<typeof endOf.get>>([undefined]);
  return ids.filter((id) => {
    const isFirst = !represented.has(endOf.get(id));
    represented.add(endOf.get(id));
    return isFirst;
  });
}

/**
 * Finds circles, each in the order of the walk from the namespace. Those that close through the namespace
 * have nothing else in common: each is a deadlock of its own.
 */
function deadlocksOf(ids: readonly string[], next: ReadonlyMap<string, string[]>): string[][] {
  return componentsOf([NAMESPACE_NODE, ...ids], next)
    .filter((members) => members.length > 1)
    .flatMap((members) =>
      members.includes(NAMESPACE_NODE) ? withoutNamespace(members, next) : [members],
    );
}

/** Splits a circle into the parts that remain without the namespace. */
function withoutNamespace(
  members: readonly string[],
  next: ReadonlyMap<string, string[]>,
): string[][] {
  const within = new Set(members.filter((id) => id !== NAMESPACE_NODE));
  const links = [...within].flatMap((from) =>
    targets(next, from)
      .filter((to) => within.has(to))
      .flatMap((to) => [
        { from, to },
        { from: to, to: from },
      ]),
  );
  return componentsOf([...within], adjacency(links)).map((part) => {
    const members = new Set(part);
    return [...within].filter((id) => members.has(id));
  });
}

/**
 * Finds strongly connected components (Tarjan, iterative: a hostile cluster must not overflow the stack),
 * each in the order of the walk.
 */
function componentsOf(nodes: readonly string[], next: ReadonlyMap<string, string[]>): string[][] {
  const visits = new Map<string, Visit>();
  const open: Visit[] = [];
  const components: string[][] = [];
  const enter = (id: string): Visit => {
    const visit = { id, at: 0, index: visits.size, low: visits.size, isOpen: true };
    visits.set(id, visit);
    open.push(visit);
    return visit;
  };
  for (const root of nodes) {
    const work = visits.has(root) ? [] : [enter(root)];
    for (let visit = work.at(-1); visit !== undefined; visit = work.at(-1)) {
      const to = next.get(visit.id)?.[visit.at++];
      if (to !== undefined) {
        const known = visits.get(to);
        if (known === undefined) work.push(enter(to));
        else if (known.isOpen) visit.low = Math.min(visit.low, known.index);
        continue;
      }
      work.pop();
      const parent = work.at(-1);
      if (parent !== undefined) parent.low = Math.min(parent.low, visit.low);
      if (visit.low < visit.index) continue;
      const component = open.splice(open.lastIndexOf(visit));
      for (const member of component) member.isOpen = false;
      components.push(component.map(({ id }) => id));
    }
  }
  return components;
}

/** The state of a finding in the walk. `at`: its next link; `low`: the first open finding that a link leads back to. */
interface Visit {
  id: string;
  at: number;
  index: number;
  low: number;
  isOpen: boolean;
}

/** Omits undefined properties and the links, which are in the graph. */
function toFinding(id: string, waitsFor: string[], result: RuleResult): Finding {
  const {
    blocksNamespace,
    waitsForNamespace,
    waitsFor: _,
    servedBy,
    isCut,
    wayOut,
    ...own
  } = result;
  const told = Object.entries(own).filter(([, value]) => value !== undefined);
  const properties = Object.fromEntries(told) as Omit<Finding, 'id' | 'scope' | 'waitsFor'>;
  return { id, scope: 'cluster', ...properties, waitsFor };
}

const CERTAINTIES: readonly (Certainty | undefined)[] = ['unknown', 'likely', 'proven', undefined];

/**
 * Merges two results with one id: two rules may find the same cause, and one owner may fail at several types.
 * Evidence and duties are joined, and the less certain result gives the sentence.
 */
function mergeResults(one: RuleResult, other: RuleResult): RuleResult {
  const [a, b] = [one, other].toSorted(
    (x, y) => CERTAINTIES.indexOf(x.certainty) - CERTAINTIES.indexOf(y.certainty),
  ) as [RuleResult, RuleResult];
  const known = new Set(a.remedies.map(remedyKey));
  const duties = b.remedies.filter((one) => isDuty(one) && !known.has(remedyKey(one)));
  const last = a.remedies.findLastIndex(isDuty) + 1;
  return {
    ...a,
    evidence: [...new Set([...a.evidence, ...b.evidence])],
    remedies: a.remedies.toSpliced(last, 0, ...duties),
    waitsFor: [...(a.waitsFor ?? []), ...(b.waitsFor ?? [])],
    blocksNamespace: a.blocksNamespace || b.blocksNamespace,
    waitsForNamespace: a.waitsForNamespace || b.waitsForNamespace,
  };
}

function remedyKey({ text, command }: Remedy): string {
  return `${text}\n${command}`;
}

function isDuty({ role = 'now' }: Remedy): boolean {
  return role === 'now';
}

/** Returns the rank by the order of the codes, and within a code by count, the largest first. */
function rankOf({ code, count = 1 }: RuleResult): number {
  return FINDING_CODES.indexOf(code) - (1 - 1 / count);
}
