import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Diagnosis } from '../../src/model/finding.ts';
import { diagram, diagramSource } from '../../src/report/diagram.ts';
import { parseDiagram } from '../stub/mermaid.ts';
import { NASTY_TEXTS } from '../stub/nasty.ts';
import { poison } from '../stub/poison.ts';
import {
  deadApiService,
  deadlock,
  diagnosis,
  finding,
  lostNode,
  ownerUnknown,
  runOf,
  severalCauses,
} from '../stub/results.ts';

describe('the diagram of the wait-for graph', () => {
  test.each([deadlock(), deadApiService(), lostNode(), ownerUnknown(), severalCauses()])(
    'of $name is one for Mermaid',
    async ({ diagnosis: found, name }) => {
      expect(await parseDiagram(diagramSource(found as Diagnosis, name))).toBe('flowchart-v2');
    },
  );

  test.each(NASTY_TEXTS.map((text) => ({ text, shown: JSON.stringify(text).slice(0, 60) })))(
    'stays one with $shown',
    async ({ text }) => {
      const [namespace] = poison(runOf([severalCauses()]), () => text).namespaces;
      const source = diagramSource(namespace?.diagnosis as Diagnosis, text);
      expect(await parseDiagram(source)).toBe('flowchart-v2');
      expect(source.match(/-->/g)).toHaveLength(7);
      const ours =
        /^graph TD$|^ {2}n\d+\["[^"`%;{}#<>]*"\]$|^ {2}n\d+ --> n\d+$|^ {2}class n\d+(,n\d+)* rootCause$/;
      const lines = source.split('\n').filter((line) => !ours.test(line));
      expect(lines).toEqual(['  classDef rootCause stroke:#d1242f,stroke-width:3px']);
    },
  );

  test('stays one whatever the names are made of', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary', maxLength: 40 }), async (text) => {
        const [namespace] = poison(runOf([deadlock()]), () => text).namespaces;
        const source = diagramSource(namespace?.diagnosis as Diagnosis, text);
        expect(await parseDiagram(source)).toBe('flowchart-v2');
      }),
      { numRuns: 100 },
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
    const source = diagramSource(diagnosis(many), 'n');
    expect(source.match(/^ {2}\w+\["/gm)).toHaveLength(40);
    expect(source).toContain('and 162 more');
    expect(await parseDiagram(source)).toBe('flowchart-v2');
    expect(source.length).toBeLessThan(5_000);
  });

  test('marks the root causes, in words and with a border, and cuts no finalizer of Rancher', () => {
    const source = diagramSource(severalCauses().diagnosis as Diagnosis, 'preview-pr-72');
    const marked = [...source.matchAll(/^ {2}(n\d+)\["root cause: /gm)].map(([, id]) => id);

    expect(marked).toHaveLength(3);
    expect(source).toContain(`  class ${marked.join(',')} rootCause`);
    expect(source).toContain(
      'root cause: the owner of finalizer controller.cattle.io/namespace-auth"',
    );
  });

  test('is left out where there is nothing to draw', () => {
    expect(diagram(diagnosis([]), 'n')).toBe('');
  });

  test('would be refused with a label of the cluster as it is', async () => {
    await expect(parseDiagram('graph TD\n  n0["a"]; click n0 "b]\n')).rejects.toThrow();
  });
});
