import {
  type Certainty,
  type Diagnosis,
  type Edge,
  FINDING_CODES,
  type Finding,
  NAMESPACE_NODE,
  type Remedy,
} from '../model/finding.ts';
import { type RuleResult, resultId, type Ties } from './context.ts';

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
  const byId = new Map<string, RuleResult>();
  for (const result of results) {
    const id = resultId(result);
    const known = byId.get(id);
    byId.set(id, known === undefined ? result : mergeResults(known, result));
  }
  const rank = rankBy(byId);
  const ids = [...byId.keys()].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
  const edges = edgesOf(ids, byId);
  const next = adjacency(edges);
  const reachable = reachableFrom(NAMESPACE_NODE, next);
  const rootCauses = rootCausesOf(ids, next).filter(
    (id) => reachable.has(id) && byId.get(id)?.isCut !== true,
  );
  const deadlocks = deadlocksOf(ids, next).filter((circle) =>
    circle.some((id) => reachable.has(id)),
  );
  const findings = ids.map((id) => {
    const result = byId.get(id) as RuleResult;
    const isCircle = rootCauses.includes(id) && deadlocks.some((circle) => circle.includes(id));
    const remedies = [...result.remedies, ...(isCircle ? (result.wayOut ?? []) : [])];
    return toFinding(id, { ...result, remedies }, targets(next, id));
  });
  return { findings, edges, blockers: targets(next, NAMESPACE_NODE), rootCauses, deadlocks };
}

function edgesOf(ids: readonly string[], byId: ReadonlyMap<string, RuleResult>): Edge[] {
  const edges = new Map<string, Edge>();
  const add = (from: string, to: string, because: string): void => {
    const key = `${from}\n${to}`;
    // A finding never waits for itself, and two rules may have found the same link.
    if (from !== to && !edges.has(key)) edges.set(key, { from, to, because });
  };
  for (const id of ids) {
    const result = byId.get(id) as RuleResult;
    if (result.blocksNamespace !== undefined) add(NAMESPACE_NODE, id, result.blocksNamespace);
    for (const { id: to, because } of result.waitsFor ?? []) {
      if (byId.has(to)) add(id, to, because);
    }
    if (result.waitsForNamespace !== undefined) add(id, NAMESPACE_NODE, result.waitsForNamespace);
  }
  return [...edges.values()];
}

function adjacency(edges: readonly Pick<Edge, 'from' | 'to'>[]): Map<string, string[]> {
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
 * Finds the ends of chains. A chain ends at a finding that waits for nothing else. Findings that wait only for each
 * other are one end, represented by the first by rank. Links back to the namespace are not followed: an owner that
 * was deleted with it is where a deadlock can be broken. `ids` are sorted by rank.
 */
function rootCausesOf(ids: readonly string[], next: ReadonlyMap<string, string[]>): string[] {
  const inner = new Map(ids.map((id) => [id, targets(next, id)]));
  const place = new Map(ids.map((id, index) => [id, index]));
  const ends = componentsOf(ids, inner).filter((members) => {
    const within = new Set(members);
    return members.every((id) => inner.get(id)?.every((to) => within.has(to)));
  });
  const first = (members: readonly string[]): number =>
    members.reduce((least, id) => Math.min(least, place.get(id) as number), ids.length);
  return ends
    .map(first)
    .sort((a, b) => a - b)
    .map((index) => ids[index] as string);
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
    targets(next, from).flatMap((to) =>
      within.has(to)
        ? [
            { from, to },
            { from: to, to: from },
          ]
        : [],
    ),
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
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const onStack = new Set<string>();
  const components: string[][] = [];
  for (const root of nodes) {
    if (index.has(root)) continue;
    const work: { id: string; at: number }[] = [{ id: root, at: 0 }];
    while (work.length > 0) {
      const frame = work[work.length - 1] as { id: string; at: number };
      if (frame.at === 0) {
        low.set(frame.id, index.size);
        index.set(frame.id, index.size);
        stack.push(frame.id);
        onStack.add(frame.id);
      }
      const to = next.get(frame.id)?.[frame.at++];
      if (to !== undefined) {
        if (!index.has(to)) work.push({ id: to, at: 0 });
        else if (onStack.has(to)) lowerTo(low, frame.id, index.get(to) as number);
        continue;
      }
      work.pop();
      const parent = work[work.length - 1];
      if (parent !== undefined) lowerTo(low, parent.id, low.get(frame.id) as number);
      if (low.get(frame.id) === index.get(frame.id)) {
        const component = stack.splice(stack.lastIndexOf(frame.id));
        for (const id of component) onStack.delete(id);
        components.push(component);
      }
    }
  }
  return components;
}

function lowerTo(low: Map<string, number>, id: string, value: number): void {
  if (value < (low.get(id) ?? Number.POSITIVE_INFINITY)) low.set(id, value);
}

const TIES: readonly string[] = [
  'blocksNamespace',
  'waitsFor',
  'waitsForNamespace',
  'servedBy',
  'isCut',
  'wayOut',
] satisfies (keyof Ties)[];

/** Omits undefined properties. */
function toFinding(id: string, result: RuleResult, waitsFor: string[]): Finding {
  const told = Object.entries(result).filter(
    ([key, value]) => value !== undefined && !TIES.includes(key),
  );
  return { id, ...(Object.fromEntries(told) as Omit<Finding, 'id' | 'waitsFor'>), waitsFor };
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
  const duties = b.remedies.filter(isDuty).filter((duty) => {
    return !a.remedies.some((known) => remedyKey(known) === remedyKey(duty));
  });
  const last = a.remedies.findLastIndex(isDuty) + 1;
  return {
    ...a,
    evidence: [...new Set([...a.evidence, ...b.evidence])],
    wasDeletedWithNamespace: a.wasDeletedWithNamespace && b.wasDeletedWithNamespace,
    remedies: a.remedies.toSpliced(last, 0, ...duties),
    waitsFor: [...(a.waitsFor ?? []), ...(b.waitsFor ?? [])],
    blocksNamespace: a.blocksNamespace ?? b.blocksNamespace,
    waitsForNamespace: a.waitsForNamespace ?? b.waitsForNamespace,
  };
}

function remedyKey({ text, command }: Remedy): string {
  return `${text}\n${command}`;
}

function isDuty({ role = 'now' }: Remedy): boolean {
  return role === 'now';
}

/** Sorts by the order of the codes, and within a code by count, the largest first. */
function rankBy(byId: ReadonlyMap<string, RuleResult>): (id: string) => number {
  const ranks = new Map<string, number>();
  for (const [id, { code, count = 1 }] of byId) {
    ranks.set(id, FINDING_CODES.indexOf(code) - (1 - 1 / count));
  }
  return (id) => ranks.get(id) ?? FINDING_CODES.length;
}
