import { mkdir, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Clusters, skipReason } from './clusters.ts';
import { ofThisPart } from './core.ts';
import { type Done, followRemedies } from './remedies.ts';
import { dropBundle, theBundle } from './run-gate.ts';
import { SCENARIOS } from './scenarios/index.ts';

/** Every command that a report prints, run on a real control plane. */

const TABLE = 'coverage/remedies.md';

const chosen = ofThisPart(SCENARIOS.filter(({ needs }) => !needs));
const done: Done[] = [];
const counts = { nothingToDo: 0, beyond: [] as string[] };

beforeAll(theBundle);
afterAll(dropBundle);
afterAll(printTable);

describe.concurrent('each on a cluster of its own', () => {
  const clusters = new Clusters();
  afterAll(() => clusters.stop());
  for (const scenario of chosen) {
    const title = `${scenario.id}: ${scenario.title}`;
    const reason = skipReason(scenario);
    if (reason !== undefined) {
      test.skip(`${title} (skipped: ${reason})`);
      continue;
    }
    test(title, async () => {
      const verdict = await followRemedies(scenario, (work) => clusters.use(work, scenario.own));
      done.push(...verdict.done);
      if (verdict.nothingToDo !== undefined) counts.nothingToDo++;
      if (scenario.beyondCommands) counts.beyond.push(`${scenario.id}: ${scenario.beyondCommands}`);
      if (verdict.problems.length > 0) expect.fail(verdict.problems.join('\n'));
    });
  }
});

async function printTable(): Promise<void> {
  const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
  const rows = done.map(
    ({ scenario, role, command, happened, problem }) =>
      `| ${scenario} | ${role} | \`${cell(command)}\` | ${cell(happened)} | ${cell(problem ?? '')} |`,
  );
  const notRun = new Map<string, number>();
  for (const { happened } of done) {
    if (happened.startsWith('not run')) notRun.set(happened, (notRun.get(happened) ?? 0) + 1);
  }
  const lines = [
    '| scenario | role | command | what happened | problem |',
    '|---|---|---|---|---|',
    ...rows,
    '',
    `${done.length} commands; ${counts.nothingToDo} scenarios without anything to do`,
    ...[...notRun].map(([why, count]) => `${count} × ${why}`),
    ...counts.beyond.map((line) => `beyond commands: ${line}`),
  ];
  await mkdir('coverage', { recursive: true });
  await writeFile(TABLE, `${lines.join('\n')}\n`);
  console.log(lines.join('\n'));
}
