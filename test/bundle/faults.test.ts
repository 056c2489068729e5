import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Github, startGithub } from '../stub/github.ts';
import { startAll } from '../stub/parallel.ts';
import { leaksIn } from '../stub/planted.ts';
import { annotations, Bench, everythingWritten, misdeeds, mutations, shownLines } from './bench.ts';
import { DIAGNOSING } from './faults/diagnosing.ts';
import { READING } from './faults/reading.ts';
import { type Done, type FaultRow, runRow } from './faults/row.ts';
import { WAITING } from './faults/waiting.ts';

/** What an API server in trouble can do to the shipped bundle. */

/** Those that last longest start first. */
const ROWS: readonly FaultRow[] = [...DIAGNOSING, ...READING, ...WAITING];
const AT_ONCE = 10;
const LIMIT_MS = 300_000;

const bench = new Bench();
let github: Github;
let results: Promise<Done>[];
beforeAll(async () => {
  github = await startGithub();
  results = startAll(ROWS, AT_ONCE, (row) => runRow(row, bench, github));
});
afterAll(async () => {
  await Promise.allSettled(results);
  await github.close();
  bench.remove();
});

describe('a fault', { timeout: LIMIT_MS }, () => {
  test.each(ROWS.map((row, index) => ({ ...row, index })))(
    'while $phase: $fault',
    async ({ index, ...row }) => {
      const done = await (results[index] as Promise<Done>);
      const { run, server, pull } = done;
      const [namespace] = run.report?.namespaces ?? [];
      const isError = row.outcome === 'error';

      expect(run.outputs['outcome'], run.stdout).toBe(row.outcome);
      expect(run.exitCode).toBe(PASSES.includes(row.outcome) ? 0 : 1);
      expect(isError ? annotations(run, 'error') : shownLines(run)).toContainEqual(
        expect.stringMatching(row.says),
      );
      expect(misdeeds(run, [github.token])).toEqual([]);
      expect(leaksIn(everythingWritten(run, github, pull), [github.token])).toEqual([]);
      expect(mutations(server)).toEqual(row.mutations ?? []);
      expect(row.check?.(done) ?? []).toEqual([]);
      if (isError) {
        expect(annotations(run)).toHaveLength(1);
        const comments = github.commentsOn(pull).map(({ body }) => body);
        expect(comments).toEqual([
          expect.stringContaining('### 🔴 The teardown gate could not work'),
        ]);
        expect(run.summary).toMatch(/^### 🔴 The teardown gate could not work/);
        return;
      }
      expect(run.summary).toContain(namespace?.name);
      if (row.rootCauses !== undefined) {
        const roots = namespace?.findings.filter(({ id }) => namespace.rootCauses.includes(id));
        expect(roots?.map(({ code }) => code)).toEqual(row.rootCauses);
      }
      if (row.notInspected !== undefined) {
        expect(
          namespace?.notInspected.map(({ what, reason }) => `${what}: ${reason}`),
        ).toContainEqual(expect.stringMatching(row.notInspected));
      }
    },
  );
});

const PASSES: readonly string[] = ['deleted', 'recreated', 'not-found'];
