import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { idOf, type RuleResult } from '../../src/diagnose/context.ts';
import { buildGraph, type WaitForGraph } from '../../src/diagnose/graph.ts';
import { FINDING_CODES, type FindingCode, NAMESPACE } from '../../src/model/finding.ts';

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
function draw(...sketches: Sketch[]): {
  graph: WaitForGraph;
  names: (ids: string[]) => string[];
} {
  const idByName = new Map<string, string>();
  const nameById = new Map<string, string>();
  for (const sketch of sketches) {
    const id = idOf(resultOf(sketch, new Map()));
    idByName.set(sketch.name, id);
    nameById.set(id, sketch.name);
  }
  const results = sketches.map((sketch) => resultOf(sketch, idByName));
  return {
    graph: buildGraph(results),
    names: (ids) => ids.map((id) => nameById.get(id) ?? id),
  };
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
    ...(sketch.blocks ? { blocksNamespace: 'it is there' } : {}),
    ...(sketch.back ? { waitsForNamespace: 'it was deleted with it' } : {}),
    ...(sketch.for === undefined
      ? {}
      : {
          waitsFor: sketch.for.map((name) => ({
            id: idByName.get(name) ?? `unknown:${name}`,
            because: 'so it is',
          })),
        }),
  };
}

describe('buildGraph', () => {
  test('of nothing is empty', () => {
    expect(buildGraph([])).toEqual({
      findings: [],
      edges: [],
      blockers: [],
      rootCauses: [],
      deadlocks: [],
    });
  });

  test('the end of a chain is the root cause, its head the blocker', () => {
    const { graph, names } = draw(
      { name: 'held', blocks: true, for: ['owner'] },
      { name: 'owner', for: ['webhook'], code: 'owner-failing' },
      { name: 'webhook', code: 'admission-denied' },
    );
    expect(names(graph.blockers)).toEqual(['held']);
    expect(names(graph.rootCauses)).toEqual(['webhook']);
    expect(graph.deadlocks).toEqual([]);
  });

  test('a cause that two chains share is one root cause', () => {
    const { graph, names } = draw(
      { name: 'a', blocks: true, for: ['owner'] },
      { name: 'b', blocks: true, for: ['owner'] },
      { name: 'owner', code: 'owner-missing' },
    );
    expect(names(graph.blockers)).toEqual(['a', 'b']);
    expect(names(graph.rootCauses)).toEqual(['owner']);
  });

  test('a finding on which nothing hangs is kept, and neither blocks nor causes', () => {
    const { graph, names } = draw(
      { name: 'held', blocks: true },
      { name: 'bystander', code: 'crd-terminating' },
      { name: 'far', code: 'owner-missing', for: ['bystander'] },
    );
    expect(graph.findings).toHaveLength(3);
    expect(names(graph.blockers)).toEqual(['held']);
    expect(names(graph.rootCauses)).toEqual(['held']);
  });

  test('drops what is waited for and was not found by any rule', () => {
    const { graph, names } = draw({ name: 'held', blocks: true, for: ['nobody', 'nothing'] });
    expect(graph.findings[0]?.waitsFor).toEqual([]);
    expect(graph.edges.map(({ from }) => from)).toEqual([NAMESPACE]);
    expect(names(graph.rootCauses)).toEqual(['held']);
  });

  test('a chain that ends in what was deleted with the namespace is a deadlock', () => {
    const { graph, names } = draw(
      { name: 'held', blocks: true, for: ['owner'] },
      { name: 'owner', code: 'owner-missing', back: true },
    );
    expect(names(graph.rootCauses)).toEqual(['owner']);
    expect(graph.deadlocks.map(names)).toEqual([['held', 'owner']]);
    expect(graph.edges).toContainEqual({
      from: graph.rootCauses[0],
      to: NAMESPACE,
      because: 'it was deleted with it',
    });
  });

  test('a blocker that waits for the namespace itself is a deadlock of one', () => {
    const { graph, names } = draw({
      name: 'api',
      code: 'apiservice-unavailable',
      blocks: true,
      back: true,
    });
    expect(names(graph.rootCauses)).toEqual(['api']);
    expect(graph.deadlocks.map(names)).toEqual([['api']]);
  });

  test('what merely stands beside a deadlock is not part of it', () => {
    const { graph, names } = draw(
      { name: 'held', blocks: true, for: ['owner'] },
      { name: 'owner', code: 'owner-missing', back: true },
      { name: 'other', blocks: true, for: ['unknown-owner'] },
      { name: 'unknown-owner', code: 'owner-unknown' },
    );
    expect(graph.deadlocks.map(names)).toEqual([['held', 'owner']]);
    expect(names(graph.rootCauses).sort()).toEqual(['owner', 'unknown-owner']);
  });

  test('two operators that went with the namespace are two deadlocks, not one', () => {
    const { graph, names } = draw(
      { name: 'widget', blocks: true, for: ['operator'] },
      { name: 'operator', code: 'owner-missing', back: true },
      { name: 'bucket', blocks: true, for: ['other'] },
      { name: 'other', code: 'owner-missing', back: true },
    );
    expect(graph.deadlocks.map((circle) => names(circle).sort()).sort()).toEqual([
      ['bucket', 'other'],
      ['operator', 'widget'],
    ]);
  });

  test('findings that wait for each other are a deadlock; its first by rank is the root cause', () => {
    const { graph, names } = draw(
      { name: 'a', blocks: true, for: ['b'] },
      { name: 'b', for: ['c'] },
      { name: 'c', for: ['b'], code: 'owner-missing' },
    );
    expect(graph.deadlocks.map((circle) => names(circle).sort())).toEqual([['b', 'c']]);
    expect(names(graph.rootCauses)).toEqual(['c']);
  });

  test('a circle that has a way out ends at the way out', () => {
    const { graph, names } = draw(
      { name: 'a', blocks: true, for: ['b'] },
      { name: 'b', for: ['a', 'cause'] },
      { name: 'cause', code: 'owner-missing' },
    );
    expect(names(graph.rootCauses)).toEqual(['cause']);
  });

  test('a circle inside of a circle through the namespace still has a root cause', () => {
    const { graph, names } = draw(
      { name: 'a', blocks: true, for: ['b'] },
      { name: 'b', for: ['a'], back: true },
    );
    expect(names(graph.rootCauses)).toHaveLength(1);
    expect(graph.deadlocks.map((circle) => names(circle).sort())).toEqual([['a', 'b']]);
  });

  test('a finding that waits for itself is the end of its chain', () => {
    const { graph, names } = draw({ name: 'a', blocks: true, for: ['a'] });
    expect(names(graph.rootCauses)).toEqual(['a']);
    expect(graph.findings[0]?.waitsFor).toEqual([]);
  });

  test('a circle that nothing leads to is no deadlock of this namespace', () => {
    const { graph } = draw(
      { name: 'held', blocks: true },
      { name: 'x', for: ['y'] },
      { name: 'y', for: ['x'] },
    );
    expect(graph.deadlocks).toEqual([]);
  });

  test('the same thing found from two sides is one finding with both sides of the evidence', () => {
    const { graph, names } = draw(
      { name: 'held', evidence: ['listed', 'said'], for: ['owner'] },
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

  test('ranks what stops the whole cluster before single objects, and the larger before the smaller', () => {
    const { graph, names } = draw(
      { name: 'few', code: 'owner-missing', blocks: true, count: 2 },
      { name: 'many', code: 'owner-missing', blocks: true, count: 500 },
      { name: 'one', code: 'owner-missing', blocks: true },
      { name: 'cluster', code: 'apiservice-unavailable', blocks: true },
      { name: 'slow', code: 'owner-running', blocks: true, count: 9_999 },
    );
    expect(names(graph.rootCauses)).toEqual(['cluster', 'many', 'few', 'one', 'slow']);
    expect(names(graph.findings.map(({ id }) => id))).toEqual(names(graph.rootCauses));
  });

  test('every code has a rank of its own', () => {
    const { graph } = draw(...FINDING_CODES.map((code) => ({ name: code, code, blocks: true })), {
      name: 'second',
      code: 'unexplained' as const,
      blocks: true,
    });
    expect(new Set(graph.findings.map(({ code }) => code)).size).toBe(FINDING_CODES.length);
    // An unranked code would come before all others.
    expect(graph.findings[0]?.code).toBe('namespace-controller-inactive');
    expect(graph.findings.at(-1)?.code).toBe('unexplained');
  });

  test('10,000 findings with one cause are tied together', () => {
    const sketches: Sketch[] = Array.from({ length: 10_000 }, (_, index) => ({
      name: `object-${String(index).padStart(5, '0')}`,
      blocks: true,
      for: ['owner'],
    }));
    const { graph } = draw(...sketches, { name: 'owner', code: 'owner-missing', back: true });
    expect(graph.rootCauses).toHaveLength(1);
    expect(graph.blockers).toHaveLength(10_000);
    expect(graph.deadlocks).toHaveLength(1);
  });

  test('a chain of 10,000 links does not overflow the stack', () => {
    const sketches: Sketch[] = Array.from({ length: 10_000 }, (_, index) => ({
      name: `link-${index}`,
      ...(index === 0 ? { blocks: true } : {}),
      for: [`link-${index + 1}`],
    }));
    const { names, graph } = draw(...sketches);
    expect(names(graph.rootCauses)).toEqual(['link-9999']);
  });
});

describe('any graph', () => {
  const sketches = fc.array(
    fc.record({
      name: fc.constantFrom(...'abcdefgh'),
      code: fc.constantFrom<FindingCode>('object-finalizer', 'owner-missing', 'owner-failing'),
      blocks: fc.boolean(),
      back: fc.boolean(),
      for: fc.array(fc.constantFrom(...'abcdefghz'), { maxLength: 4 }),
    }),
    { maxLength: 12 },
  );

  test('that holds the namespace has a root cause, and every root cause can be reached', () => {
    fc.assert(
      fc.property(sketches, (drawn) => {
        const { graph } = draw(...drawn);
        const reachable = reach(graph);
        expect(graph.rootCauses.length > 0).toBe(graph.blockers.length > 0);
        for (const id of graph.rootCauses) expect(reachable.has(id)).toBe(true);
      }),
      { numRuns: 150 },
    );
  });

  test('leads from every blocker to some root cause', () => {
    fc.assert(
      fc.property(sketches, (drawn) => {
        const { graph } = draw(...drawn);
        for (const blocker of graph.blockers) {
          const onward = reach(graph, blocker);
          expect(graph.rootCauses.some((id) => onward.has(id))).toBe(true);
        }
      }),
      { numRuns: 150 },
    );
  });

  test('has only edges between things that are there, each once, and says the same as waitsFor', () => {
    fc.assert(
      fc.property(sketches, (drawn) => {
        const { graph } = draw(...drawn);
        const ids = new Set([NAMESPACE, ...graph.findings.map(({ id }) => id)]);
        const edges = graph.edges.map(({ from, to }) => `${from} ${to}`);
        expect(new Set(edges).size).toBe(edges.length);
        for (const { from, to } of graph.edges) expect(ids.has(from) && ids.has(to)).toBe(true);
        for (const finding of graph.findings) {
          const onward = graph.edges.filter(
            ({ from, to }) => from === finding.id && to !== NAMESPACE,
          );
          expect([...finding.waitsFor].sort()).toEqual(onward.map(({ to }) => to).sort());
        }
      }),
      { numRuns: 150 },
    );
  });

  test('comes out the same in whatever order the rules found its parts', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(
          fc.record({
            name: fc.constantFrom(...'abcdefgh'),
            code: fc.constantFrom<FindingCode>('object-finalizer', 'owner-missing'),
            blocks: fc.boolean(),
            back: fc.boolean(),
            for: fc.array(fc.constantFrom(...'abcdefgh'), { maxLength: 3 }),
          }),
          { selector: ({ name }) => name, maxLength: 8 },
        ),
        (drawn) => {
          const one = draw(...drawn).graph;
          const other = draw(...[...drawn].reverse()).graph;
          expect(other.findings.map(({ id }) => id)).toEqual(one.findings.map(({ id }) => id));
          expect(other.blockers).toEqual(one.blockers);
          expect(other.rootCauses).toEqual(one.rootCauses);
          const members = ({ deadlocks }: WaitForGraph) =>
            deadlocks.map((circle) => [...circle].sort().join(' ')).sort();
          expect(members(other)).toEqual(members(one));
        },
      ),
      { numRuns: 150 },
    );
  });
});

function reach(graph: WaitForGraph, start = NAMESPACE): Set<string> {
  const seen = new Set([start]);
  for (const id of seen) {
    for (const { from, to } of graph.edges) {
      // A chain ends at the namespace; going on from there would reach everything.
      if (from === id && to !== NAMESPACE) seen.add(to);
    }
  }
  return seen;
}
