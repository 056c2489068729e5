import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ReportNamespace } from '../../src/report/report-json.ts';
import { startAll } from '../stub/parallel.ts';
import { Bench, misdeeds, mutations, shownLines } from './bench.ts';
import { API_SERVERS } from './situations/api-servers.ts';
import { NAMESPACES } from './situations/namespaces.ts';
import { OWNERS } from './situations/owners.ts';
import { runSituation, type Seen, type Situation } from './situations/situation.ts';

/**
 * Situations that a real control plane cannot be brought to show (API servers of several versions or
 * of long ago, what admission makes of a garbage collector's update), or on which nobody should try.
 */
const SITUATIONS: readonly Situation[] = [...API_SERVERS, ...NAMESPACES, ...OWNERS];
const AT_ONCE = 6;

const bench = new Bench();
let seen: Promise<Seen>[];
beforeAll(() => {
  seen = startAll(SITUATIONS, AT_ONCE, (situation) => runSituation(situation, bench));
});
afterAll(async () => {
  await Promise.allSettled(seen);
  bench.remove();
});

describe('a situation', () => {
  test.each(SITUATIONS.map((situation, index) => ({ ...situation, index })))(
    '$id: $what',
    async ({ index, ...expected }) => {
      const { run, server } = await (seen[index] as Promise<Seen>);
      const [namespace] = run.report?.namespaces ?? [];
      const log = shownLines(run).join('\n');
      const told = [log, run.summary, JSON.stringify([run.report, run.outputs])].join('\n');
      const never =
        expected.outcome === 'deleted'
          ? []
          : [`${namespace?.name} was deleted`, 'namespace is empty'];

      expect(run.outputs['outcome'], log).toBe(expected.outcome);
      expect(run.exitCode).toBe(expected.outcome === 'deleted' ? 0 : 1);
      expect(namespace === undefined ? [] : chainsOf(namespace)).toEqual(expected.chains);
      for (const text of expected.says) expect(log).toContain(text);
      for (const text of [...(expected.saysNot ?? []), ...never]) expect(told).not.toContain(text);
      expect(misdeeds(run)).toEqual([]);
      expect(mutations(server)).toEqual(expected.mutations ?? []);
      expect(server.requests.flatMap(({ notSupported }) => notSupported ?? [])).toEqual([]);
      expect(expected.check?.(run) ?? []).toEqual([]);
    },
  );
});

/** Along the first link of each finding; no situation here has a fork. */
function chainsOf({ findings, blockers }: ReportNamespace): string[][] {
  return blockers.map((blocker) => {
    const chain: string[] = [];
    let at = findings.find(({ id }) => id === blocker);
    while (at !== undefined && chain.length < findings.length) {
      chain.push(at.code);
      const next = at.waitsFor[0];
      at = findings.find(({ id }) => id === next);
    }
    return chain;
  });
}
