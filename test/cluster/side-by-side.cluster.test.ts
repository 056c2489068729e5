import { readFile, writeFile } from 'node:fs/promises';
import { afterAll, describe, expect, test } from 'vitest';
import { type Cluster, SharedClusters, skipReason } from './clusters.ts';
import { gate } from './foresight.ts';
import { onePerCode } from './one-per-code.ts';
import type { Scenario } from './scenario.ts';
import { SCENARIOS } from './scenarios/index.ts';
import { World } from './world.ts';

/**
 * `delete: true` beside `delete: ordered`: each scenario is built twice and deleted in both ways. Writes the table in
 * docs/ordered-deletion.md. `SIDE_BY_SIDE=codes`: one scenario for every finding code.
 */
const WAYS = ['true', 'ordered'] as const;
const TIMEOUT = '30s';

const comparable = SCENARIOS.filter(
  (scenario) => scenario.delete === undefined && scenario.needs === undefined && !scenario.own,
);
const chosen = process.env['SIDE_BY_SIDE'] === 'codes' ? onePerCode(comparable) : comparable;

interface Row {
  scenario: Scenario;
  outcomes: string[];
  seconds: number[];
}
const rows: Row[] = [];

describe.concurrent('ordered deletion is never worse', () => {
  const clusters = new SharedClusters();
  afterAll(async () => {
    await clusters.stop();
    if (rows.length > 0) await writeTable();
  });
  for (const scenario of chosen.filter((one) => skipReason(one) === undefined)) {
    test(`${scenario.id}: ${scenario.title}`, async () => {
      const row: Row = { scenario, outcomes: [], seconds: [] };
      for (const way of WAYS) {
        const { outcome, elapsedMs } = await clusters.use((cluster) => run(scenario, way, cluster));
        row.outcomes.push(outcome);
        row.seconds.push(Math.round(elapsedMs / 1_000));
      }
      rows.push(row);
      const [plain, ordered] = row.outcomes.map((outcome) => outcome === 'deleted');
      expect(plain && !ordered, row.outcomes.join(' and then ')).toBe(false);
    });
  }
});

async function run(scenario: Scenario, way: (typeof WAYS)[number], cluster: Cluster) {
  const world = new World({ ...cluster, namespace: `side-${scenario.id.toLowerCase()}` });
  try {
    await scenario.setUp(world);
    const { result } = await gate(world, { delete: way, timeout: TIMEOUT });
    return result;
  } finally {
    await world.end();
  }
}

const DOCUMENT = new URL('../../docs/ordered-deletion.md', import.meta.url);
const [BEGIN, END] = ['<!-- side by side -->', '<!-- end of side by side -->'];

async function writeTable(): Promise<void> {
  const text = await readFile(DOCUMENT, 'utf8');
  const sorted = rows.toSorted((a, b) => (a.scenario.id < b.scenario.id ? -1 : 1));
  const lines = sorted.map(({ scenario, outcomes: [plain, ordered], seconds: [a, b] }) => {
    const title = scenario.title.replaceAll('|', '\\|');
    return `| ${scenario.id}: ${title} | ${plain}, ${a} s | ${ordered}, ${b} s |`;
  });
  const saved = rows.filter(({ outcomes: [a, b] }) => a !== 'deleted' && b === 'deleted').length;
  const table = [
    BEGIN,
    `${rows.length} scenarios, each with a timeout of ${TIMEOUT}: ordered deletion avoided ${saved} hangs.`,
    '',
    '| scenario | `delete: true` | `delete: ordered` |',
    '| --- | --- | --- |',
    ...lines,
    END,
  ].join('\n');
  const [before = '', rest = ''] = text.split(BEGIN);
  await writeFile(DOCUMENT, `${before}${table}${rest.split(END)[1] ?? ''}`);
}
