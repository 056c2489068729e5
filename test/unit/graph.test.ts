import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { buildGraph } from '../../src/diagnose/graph.ts';
import { type RuleResult, resultId } from '../../src/diagnose/results.ts';
import {
  type Certainty,
  FINDING_CODES,
  type FindingCode,
  NAMESPACE_NODE,
} from '../../src/model/finding.ts';
import { expectPairs } from '../stub/pairs.ts';

type Graph = ReturnType<typeof buildGraph>;

interface Sketch {
  name: string;
  code?: FindingCode;
  count?: number;
  evidence?: string[];
  /** Blocks the namespace. */
  blocks?: boolean;
  /** Can only proceed when the namespace is gone. */
  back?: boolean;
  /** Names of what it waits for. */
  for?: string[];
}

/** Results with names for ids; what is waited for need not be there. */
function draw(...sketches: Sketch[]) {
  const ids = new Map(sketches.map((one) => [one.name, resultId(resultOf(one, new Map()))]));
  const names = new Map([...ids].map(([name, id]) => [id, name]));
  const graph = buildGraph(sketches.map((one) => resultOf(one, ids)));
  return { graph, names: (all: string[]) => all.map((id) => names.get(id) ?? id) };
}

/** As the golden file draws them. */
function sketchesOf(drawing: string): Sketch[] {
  return drawing.split(';').map((part) => {
    const [, name = '', blocks, back, code, next] =
      /^\s*([\w-]+)(!?)(\^?)(?::([\w-]+))?(?: > (.*))?$/.exec(part) ?? [];
    return {
      name,
      blocks: blocks === '!',
      back: back === '^',
      ...(code === undefined ? {} : { code: code as FindingCode }),
      ...(next === undefined ? {} : { for: next.split(' ') }),
    };
  });
}

function resultOf(sketch: Sketch, idByName: ReadonlyMap<string, string>): RuleResult {
  return {
    code: sketch.code ?? 'object-finalizer',
    subject: { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'demo', name: sketch.name },
    message: `is ${sketch.name}`,
    evidence: sketch.evidence ?? [],
    scope: 'namespace',
    remedies: [],
    ...(sketch.count === undefined ? {} : { count: sketch.count }),
    ...(sketch.blocks ? { blocksNamespace: true } : {}),
    ...(sketch.back ? { waitsForNamespace: true } : {}),
    ...(sketch.for === undefined
      ? {}
      : {
          waitsFor: sketch.for.map((name) => idByName.get(name) ?? `unknown:${name}`),
        }),
  };
}

describe('buildGraph', () => {
  test('ends chains at root causes, and finds circles', () =>
    expectPairs('graphs.txt', (drawing) => {
      const { graph, names } = draw(...sketchesOf(drawing));
      const { findings, blockers, rootCauses, deadlocks } = graph;
      expect(findings).toHaveLength(drawing.split(';').length);
      return {
        blockers: names(blockers),
        rootCauses: names(rootCauses),
        deadlocks: deadlocks.map((circle) => names(circle).sort()),
      };
    }));

  test('a link back to the namespace is an edge, a link to an unknown finding is none', () => {
    const { graph } = draw(...sketchesOf('held! > owner nobody; owner^:owner-missing'));
    const [owner] = graph.rootCauses;
    expect(graph.edges).toContainEqual({ from: owner, to: NAMESPACE_NODE });
    expect(graph.edges).toHaveLength(3);
    expect(graph.findings.find(({ id }) => id === graph.blockers[0])?.waitsFor).toEqual([owner]);
  });

  test('one cause found by two rules is one finding with the evidence of both, each once', () => {
    const { graph, names } = draw(
      { name: 'held', evidence: ['listed', 'said', 'listed'], for: ['owner'] },
      { name: 'held', evidence: ['said', 'tried'], blocks: true, for: ['owner'] },
      { name: 'owner', code: 'owner-missing' },
    );
    expect(graph.findings).toHaveLength(2);
    expect(graph.findings.find(({ code }) => code === 'object-finalizer')).toMatchObject({
      evidence: ['listed', 'said', 'tried'],
      waitsFor: graph.rootCauses,
    });
    expect(names(graph.blockers)).toEqual(['held']);
    expect(graph.edges).toHaveLength(2);
  });

  test('an owner that fails for two types has the fixes of both, each once, before all alternatives', () => {
    const charge = (type: string, certainty: Certainty): RuleResult => ({
      ...resultOf({ name: 'operator', code: 'owner-failing', evidence: [type] }, new Map()),
      certainty,
      message: `${certainty} fails at ${type}`,
      remedies: [
        { text: 'Restart it' },
        { text: `Grant ${type}`, role: 'now' },
        { text: `Remove it from ${type}`, role: 'or' },
      ],
    });
    const results = [charge('widgets', 'proven'), charge('gadgets', 'likely')];
    for (const order of [results, results.toReversed()]) {
      const [finding, ...others] = buildGraph(order).findings;
      expect(others).toEqual([]);
      expect(finding).toMatchObject({ certainty: 'likely', message: 'likely fails at gadgets' });
      expect(finding?.remedies.map(({ text }) => text)).toEqual([
        ...['Restart it', 'Grant gadgets', 'Grant widgets', 'Remove it from gadgets'],
      ]);
    }
  });

  test('ranks causes of the whole cluster before single objects, and larger counts before smaller ones', () => {
    const owner = (name: string, count?: number): Sketch => ({
      ...{ name, code: 'owner-missing', blocks: true, ...(count && { count }) },
    });
    const { graph, names } = draw(
      ...[owner('few', 2), owner('many', 500), owner('one')],
      { name: 'cluster', code: 'apiservice-unavailable', blocks: true },
      { name: 'slow', code: 'owner-running', blocks: true, count: 9_999 },
    );
    expect(names(graph.rootCauses)).toEqual(['cluster', 'many', 'few', 'one', 'slow']);
    expect(names(graph.findings.map(({ id }) => id))).toEqual(names(graph.rootCauses));
    // Every code has a rank of its own; an unranked one would come before all others.
    const all = draw(...FINDING_CODES.map((code) => ({ name: code, code, blocks: true }))).graph;
    expect(new Set(all.findings.map(({ code }) => code)).size).toBe(FINDING_CODES.length);
    expect(all.findings[0]?.code).toBe('namespace-controller-inactive');
    expect(all.findings.at(-1)?.code).toBe('unexplained');
  });

  test('10,000 findings with one cause are linked, and as many in a chain do not overflow the stack', () => {
    const many = Array.from({ length: 10_000 }, (_, at) => at);
    const owner = { name: 'owner', code: 'owner-missing' as const, back: true };
    const star = many.map((at) => ({ name: `object-${at}`, blocks: true, for: ['owner'] }));
    const { rootCauses, blockers, deadlocks } = draw(...star, owner).graph;
    expect([rootCauses, blockers, deadlocks].map(({ length }) => length)).toEqual([1, 10_000, 1]);
    const chain = many.map((at) => ({
      ...{ name: `link-${at}`, blocks: at === 0, for: [`link-${at + 1}`] },
    }));
    const { names, graph } = draw(...chain);
    expect(names(graph.rootCauses)).toEqual(['link-9999']);
  });
});

describe('any graph', () => {
  const sketch = fc.record({
    name: fc.constantFrom(...'abcdefgh'),
    code: fc.constantFrom<FindingCode>('object-finalizer', 'owner-missing', 'owner-failing'),
    blocks: fc.boolean(),
    back: fc.boolean(),
    for: fc.array(fc.constantFrom(...'abcdefghz'), { maxLength: 4 }),
  });
  const sketches = fc.array(sketch, { maxLength: 12 });

  test('leads from every blocker to a root cause by edges that exist, each once, and equal to waitsFor', () => {
    fc.assert(
      fc.property(sketches, (drawn) => {
        const { graph } = draw(...drawn);
        const reachable = reach(graph);
        expect(graph.rootCauses.length > 0).toBe(graph.blockers.length > 0);
        expect(graph.rootCauses.filter((id) => !reachable.has(id))).toEqual([]);
        for (const blocker of graph.blockers) {
          const onward = reach(graph, blocker);
          expect(graph.rootCauses.some((id) => onward.has(id))).toBe(true);
        }
        const ids = new Set([NAMESPACE_NODE, ...graph.findings.map(({ id }) => id)]);
        const edges = graph.edges.map(({ from, to }) => `${from} ${to}`);
        expect(new Set(edges).size).toBe(edges.length);
        for (const { from, to } of graph.edges) expect(ids.has(from) && ids.has(to)).toBe(true);
        for (const { id, waitsFor } of graph.findings) {
          const onward = graph.edges.filter(({ from, to }) => from === id && to !== NAMESPACE_NODE);
          expect([...waitsFor].sort()).toEqual(onward.map(({ to }) => to).sort());
        }
      }),
      { numRuns: 200 },
    );
  });

  test('does not depend on the order of the rules', () => {
    const each = fc.uniqueArray(sketch, { selector: ({ name }) => name, maxLength: 8 });
    fc.assert(
      fc.property(each, (drawn) => {
        const seen = ({ findings, blockers, rootCauses, deadlocks }: Graph) => ({
          findings: findings.map(({ id }) => id),
          blockers,
          rootCauses,
          deadlocks: deadlocks.map((circle) => [...circle].sort().join(' ')).sort(),
        });
        const other = draw(...[...drawn].reverse()).graph;
        expect(seen(other)).toEqual(seen(draw(...drawn).graph));
      }),
      { numRuns: 150 },
    );
  });
});

function reach(graph: Graph, start = NAMESPACE_NODE): Set<string> {
  const seen = new Set([start]);
  for (const id of seen) {
    for (const { from, to } of graph.edges) {
      // A chain ends at the namespace; going on from there would reach everything.
      if (from === id && to !== NAMESPACE_NODE) seen.add(to);
    }
  }
  return seen;
}
