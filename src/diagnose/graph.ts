import { type Certainty, FINDING_CODES, type Finding, NAMESPACE_NODE } from '../model/finding.ts';
import { type RuleResult, resultId } from './results.ts';

type Next = ReadonlyMap<string, readonly string[]>;
type Told = Omit<Finding, 'id' | 'scope' | 'waitsFor'>;

/**
 * Links results into the wait-for graph that starts at the namespace. A chain ends at findings that wait for nothing
 * else: root causes. Findings that wait only for each other are one end, represented by the first. Findings that
 * nothing waits for stay in the list. The order in which the rules found them makes no difference.
 */
export function buildGraph(results: readonly RuleResult[]) {
  const byId = new Map(
    [...Map.groupBy(results, resultId)]
      .map(([id, same]) => [id, same.reduce(mergeResults)] as const)
      .sort(([a, one], [b, other]) => rankOf(one) - rankOf(other) || (a < b ? -1 : 1)),
  );
  const ids = [...byId.keys()];
  const next = new Map(
    [...byId].map(([id, { waitsFor = [] }]) => [
      id,
      // A finding never waits for itself, and two rules may have found the same link.
      [...new Set(waitsFor)].filter((to) => to !== id && byId.has(to)),
    ]),
  );
  const blockers = ids.filter((id) => byId.get(id)?.blocksNamespace);
  const closing = ids.filter((id) => byId.get(id)?.waitsForNamespace);
  const walk = walkOrder(blockers, ids, next);
  const back = reversed(next);
  const circles = split(walk, back);
  const circleOf = new Map(circles.flatMap((circle) => circle.map((id) => [id, circle] as const)));
  const first = new Map(ids.toReversed().map((id) => [circleOf.get(id), id]));
  const reachable = reach(blockers, next);
  // Links back to the namespace are not followed: an owner that was deleted with it is where a deadlock can be broken.
  const rootCauses = ids.filter((id) => {
    const circle = circleOf.get(id);
    const isEnd = circle?.every((one) => next.get(one)?.every((to) => circleOf.get(to) === circle));
    return isEnd && first.get(circle) === id && reachable.has(id) && !byId.get(id)?.isCut;
  });
  const through = reach(closing, back);
  const both = new Map(ids.map((id) => [id, [...(next.get(id) ?? []), ...(back.get(id) ?? [])]]));
  // Circles that close through the namespace have nothing else in common: each is a deadlock of its own.
  const deadlocks = [
    ...split(
      walk.filter((id) => through.has(id) && reachable.has(id)),
      both,
    ),
    ...circles.filter(
      ([id = '', ...others]) => others.length > 0 && reachable.has(id) && !through.has(id),
    ),
  ];
  const findings = [...byId].map(([id, result]): Finding => {
    const { blocksNamespace, waitsForNamespace, servedBy, isCut, wayOut = [], ...own } = result;
    const isCircle = rootCauses.includes(id) && deadlocks.some((circle) => circle.includes(id));
    const remedies = isCircle ? [...own.remedies, ...wayOut] : own.remedies;
    const all = Object.entries({ ...own, evidence: [...new Set(own.evidence)], remedies });
    const told = Object.fromEntries(all.filter(([, value]) => value !== undefined)) as Told;
    return { id, scope: 'cluster', ...told, waitsFor: [...(next.get(id) ?? [])] };
  });
  const edges = ids.flatMap((from) => [
    ...(byId.get(from)?.blocksNamespace ? [{ from: NAMESPACE_NODE, to: from }] : []),
    ...(next.get(from) ?? []).map((to) => ({ from, to })),
    ...(byId.get(from)?.waitsForNamespace ? [{ from, to: NAMESPACE_NODE }] : []),
  ]);
  return { findings, edges, blockers, rootCauses, deadlocks };
}

function reach(starts: readonly string[], next: Next): Set<string> {
  const seen = new Set(starts);
  // A Set also visits what is added meanwhile.
  for (const id of seen) for (const to of next.get(id) ?? []) seen.add(to);
  return seen;
}

function reversed(next: Next): Next {
  const links = [...next].flatMap(([from, all]) => all.map((to) => ({ from, to })));
  const byEnd = Map.groupBy(links, ({ to }) => to);
  return new Map([...byEnd].map(([to, all]) => [to, all.map(({ from }) => from)]));
}

/** Returns the findings in the order of a walk from the namespace, each before what only it waits for. Without recursion: a hostile cluster must not overflow the stack. */
function walkOrder(blockers: readonly string[], ids: readonly string[], next: Next): string[] {
  const seen = new Set<string>();
  const left: string[] = [];
  const open = [...blockers, ...ids].toReversed().map((id) => ({ id, isLeft: false }));
  for (let step = open.pop(); step !== undefined; step = open.pop()) {
    const { id, isLeft } = step;
    if (isLeft) left.push(id);
    if (isLeft || seen.has(id)) continue;
    seen.add(id);
    open.push({ id, isLeft: true });
    for (const to of (next.get(id) ?? []).toReversed()) open.push({ id: to, isLeft: false });
  }
  return left.toReversed();
}

/** Splits findings into parts that links connect. Along the links backwards, in the order of the walk, these are the circles (Kosaraju). */
function split(order: readonly string[], links: Next): string[][] {
  const left = new Set(order);
  return order.flatMap((start) => {
    if (!left.has(start)) return [];
    const part = new Set([start]);
    for (const id of part) {
      left.delete(id);
      for (const to of links.get(id) ?? []) if (left.has(to)) part.add(to);
    }
    return [part.size === 1 ? [start] : order.filter((id) => part.has(id))];
  });
}

const CERTAINTIES: readonly (Certainty | undefined)[] = ['unknown', 'likely', 'proven', undefined];

/** Merges two results with one id: evidence and duties are joined, and the less certain one gives the sentence. */
function mergeResults(one: RuleResult, other: RuleResult): RuleResult {
  const [a, b] = [one, other].toSorted(
    (x, y) => CERTAINTIES.indexOf(x.certainty) - CERTAINTIES.indexOf(y.certainty),
  ) as [RuleResult, RuleResult];
  const isDuty = ({ role = 'now' }: Finding['remedies'][number]): boolean => role === 'now';
  const duties = b.remedies.filter(
    (duty) =>
      isDuty(duty) &&
      !a.remedies.some(({ text, command }) => text === duty.text && command === duty.command),
  );
  return {
    ...a,
    evidence: [...a.evidence, ...b.evidence],
    remedies: a.remedies.toSpliced(a.remedies.findLastIndex(isDuty) + 1, 0, ...duties),
    waitsFor: [...(a.waitsFor ?? []), ...(b.waitsFor ?? [])],
    blocksNamespace: a.blocksNamespace || b.blocksNamespace,
    waitsForNamespace: a.waitsForNamespace || b.waitsForNamespace,
  };
}

/** Returns the rank by the order of the codes, and within a code by count, the largest first. */
function rankOf({ code, count = 1 }: RuleResult): number {
  return FINDING_CODES.indexOf(code) - (1 - 1 / count);
}
