import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { NamespaceResult } from '../../src/model/result.ts';
import { diagramSource, renderSummary } from '../../src/report/markdown.ts';
import { rowsOf, viewOf } from '../../src/report/view.ts';
import { parseDiagram } from '../stub/mermaid.ts';
import { NASTY_TEXTS } from '../stub/nasty.ts';
import { poison } from '../stub/poison.ts';
import {
  deadlock,
  diagnosis,
  FINISHED_AT,
  finding,
  namespaceResult,
  recorded,
  runOf,
  severalCauses,
} from '../stub/results.ts';

function sourceOf({ diagnosis: found, name }: NamespaceResult): string {
  if (found === undefined) throw new Error('there is no diagnosis');
  return diagramSource(rowsOf(found, { home: name, now: FINISHED_AT }));
}

const poisoned = (result: NamespaceResult, text: string): string =>
  sourceOf(poison(runOf([result]), () => text).namespaces[0] as NamespaceResult);

describe('the diagram of the wait-for graph', () => {
  test.each(['S4-watched', 'SEED-1d', 'S25a', 'S1', 'SEED-2c', 'S32'])(
    'of %s is valid for Mermaid',
    async (scenario) => {
      expect(await parseDiagram(sourceOf(recorded(scenario)))).toBe('flowchart-v2');
    },
  );

  test.each(NASTY_TEXTS.map((text) => ({ text, shown: JSON.stringify(text).slice(0, 60) })))(
    'stays one with $shown',
    async ({ text }) => {
      const source = poisoned(severalCauses(), text);
      expect(await parseDiagram(source)).toBe('flowchart-v2');
      // As many as with names that mean nothing to Mermaid.
      const edges = sourceOf(severalCauses()).match(/-->/g)?.length ?? 0;
      expect(source.match(/-->/g)).toHaveLength(edges);
      const ours =
        /^graph TD$|^ {2}n\d+\["[^"`%;{}#<>]*"\]$|^ {2}n\d+ --> n\d+$|^ {2}class n\d+(,n\d+)* rootCause$/;
      const lines = source.split('\n').filter((line) => !ours.test(line));
      expect(lines).toEqual(['  classDef rootCause stroke:#d1242f,stroke-width:3px']);
    },
  );

  test('is valid with any names', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary', maxLength: 40 }), async (text) => {
        expect(await parseDiagram(poisoned(deadlock(), text))).toBe('flowchart-v2');
      }),
      { numRuns: 40 },
    );
  });

  test('has 40 nodes at most and says how many more there are', async () => {
    const many = Array.from({ length: 200 }, (_, at) =>
      finding({
        code: 'object-finalizer',
        subject: { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'n', name: `c-${at}` },
        message: 'is held',
      }),
    );
    const source = sourceOf(namespaceResult({ name: 'n', diagnosis: diagnosis(many) }));
    expect(source.match(/^ {2}\w+\["/gm)).toHaveLength(40);
    expect(source).toContain('and more');
    expect(await parseDiagram(source)).toBe('flowchart-v2');
    expect(source.length).toBeLessThan(5_000);
  });

  test('marks the root causes, in text and with a border, and shows how a circle closes', () => {
    const source = sourceOf(deadlock());
    expect(source).toContain('n2["root cause: Deployment widget-operator"]');
    expect(source).toContain('  n2 --> n0');
    expect(source).toContain('  class n2 rootCause');
  });

  test('marks an owner that is only likely', () => {
    const owner = finding({
      code: 'owner-failing',
      certainty: 'likely',
      subject: { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'ops', name: 'op' },
      message: 'most likely should act',
    });
    const source = sourceOf(namespaceResult({ name: 'n', diagnosis: diagnosis([owner]) }));
    expect(source).toContain('Deployment ops/op (most likely)');
  });

  test('is left out if there is nothing to draw', () => {
    const nothing = namespaceResult({ diagnosis: diagnosis([]) });
    expect(renderSummary(viewOf(runOf([nothing])), {}, 9_999)).not.toContain('mermaid');
  });

  test('would be invalid with an unescaped label of the cluster', async () => {
    await expect(parseDiagram('graph TD\n  n0["a"]; click n0 "b]\n')).rejects.toThrow();
  });
});
