import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { afterAll, describe, expect, test } from 'vitest';
import { RESULTS, type SideBySide } from '../../scripts/docs/side-by-side.ts';
import { type Cluster, Clusters, skipReason } from './clusters.ts';
import { isCore } from './core.ts';
import { gate } from './foresight.ts';
import type { Scenario } from './scenario.ts';
import { SCENARIOS } from './scenarios/index.ts';
import { World } from './world.ts';

/**
 * `delete: true` beside `delete: ordered`: each scenario is built twice and deleted in both ways. Writes the results from
 * which `npm run docs` makes the table of docs/ordered-deletion.md. `SIDE_BY_SIDE`: for how many minutes scenarios are
 * begun.
 */
const WAYS = ['true', 'ordered'] as const;
const TIMEOUT = '30s';

const chosen = SCENARIOS.filter(
  (scenario) =>
    scenario.delete === undefined &&
    scenario.needs === undefined &&
    !scenario.own &&
    skipReason(scenario) === undefined,
).sort((a, b) => Number(isCore(b)) - Number(isCore(a)) || (rankOf(a) < rankOf(b) ? -1 : 1));
const minutes = Number(process.env['SIDE_BY_SIDE'] ?? 15);

/** A part of the scenarios, whichever, has some of every file. */
function rankOf({ id }: Scenario): string {
  return createHash('sha256').update(id).digest('hex');
}

const rows: SideBySide['rows'] = [];

describe.concurrent('ordered deletion is never worse', () => {
  const clusters = new Clusters();
  afterAll(async () => {
    await clusters.stop();
    if (rows.length > 0) await writeResults();
  });
  const begun = Date.now();
  for (const scenario of chosen) {
    const { id, title } = scenario;
    test(`${id}: ${title}`, async ({ skip }) => {
      skip(Date.now() - begun > minutes * 60_000, `not begun within ${minutes} minutes`);
      const ends: string[] = [];
      const seconds: number[] = [];
      for (const way of WAYS) {
        const { outcome, elapsedMs } = await clusters.use((cluster) => run(scenario, way, cluster));
        ends.push(outcome);
        seconds.push(Math.round(elapsedMs / 1_000));
      }
      rows.push({ id, title, outcomes: ends, seconds });
      const [plain, ordered] = ends.map((outcome) => outcome === 'deleted');
      expect(plain && !ordered, ends.join(' and then ')).toBe(false);
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

async function writeResults(): Promise<void> {
  const sorted = rows.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const lines = sorted.map((row) => `    ${JSON.stringify(row)}`).join(',\n');
  const text = `{\n  "timeout": "${TIMEOUT}",\n  "rows": [\n${lines}\n  ]\n}\n`;
  await writeFile(new URL(`../../${RESULTS}`, import.meta.url), text);
}
