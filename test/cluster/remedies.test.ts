import { mkdir, writeFile } from 'node:fs/promises';
import { afterAll } from 'vitest';
import { ofThisPart } from './core.ts';
import { eachScenario } from './each-scenario.ts';
import { type Done, followRemedies } from './remedies.ts';
import { SCENARIOS } from './scenarios/index.ts';

/** Every command that a report prints, run on a real control plane. */

const done: Done[] = [];
let nothingToDo = 0;
const beyond: string[] = [];

eachScenario(ofThisPart(SCENARIOS.filter(({ needs }) => !needs)), async (scenario, inCluster) => {
  const verdict = await followRemedies(scenario, inCluster);
  done.push(...verdict.done);
  if (verdict.nothingToDo !== undefined) nothingToDo++;
  if (scenario.beyondCommands) beyond.push(`${scenario.id}: ${scenario.beyondCommands}`);
  return verdict.problems;
});

afterAll(async () => {
  const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
  const rows = done.map(({ scenario, role, command, happened, problem = '' }) =>
    ['', scenario, role, `\`${cell(command)}\``, cell(happened), cell(problem), ''].join(' | '),
  );
  const notRun = Map.groupBy(
    done.flatMap(({ happened }) => (happened.startsWith('not run') ? happened : [])),
    (happened) => happened,
  );
  const lines = [
    '| scenario | role | command | what happened | problem |',
    '|---|---|---|---|---|',
    ...rows.map((row) => row.trim()),
    '',
    `${done.length} commands; ${nothingToDo} scenarios without anything to do`,
    ...[...notRun].map(([why, all]) => `${all.length} × ${why}`),
    ...beyond.map((line) => `beyond commands: ${line}`),
  ];
  await mkdir('coverage', { recursive: true });
  await writeFile('coverage/remedies.md', `${lines.join('\n')}\n`);
  console.log(lines.join('\n'));
});
