/**
 * node scripts/verify/tests.ts NAME [--ran=CODE] VITEST-ARGUMENT…
 *
 * Runs tests, and each that failed once more: alone, in a process of its own and so on servers of its own. The report
 * is coverage/NAME.json; with `--ran` it is there already, from a run that ended with this exit code. The result is
 * coverage/NAME.txt: in its first line how many passed, failed, were skipped and passed alone, then which.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  afterAlone,
  countsOf,
  type Failure,
  MOST_PASSED_ALONE,
  type Tally,
  tallyOf,
  told,
  type VitestReport,
} from './tally.ts';

const VITEST = join('node_modules', 'vitest', 'vitest.mjs');
/** What means something in a regular expression. */
const SPECIAL = /[\\^$.*+?()[\]{}|/]/g;

const [name = '', ...given] = process.argv.slice(2);
const args = given.filter((arg) => !arg.startsWith('--ran='));
const optionOf = (option: string): string | undefined =>
  given.find((arg) => arg.startsWith(`${option}=`))?.split('=')[1];
const tag = optionOf('--tagsFilter');
const ran = optionOf('--ran');
const report = join('coverage', `${name}.json`);
mkdirSync('coverage', { recursive: true });

const first = ran === undefined ? await run(report, args) : read(report, Number(ran));
const tally = await runAgain(first);
const lines = told(tally);
writeFileSync(
  join('coverage', `${name}.txt`),
  `${[countsOf(tally).join(' '), ...lines].join('\n')}\n`,
);
for (const line of lines) console.log(`  ${line}`);
process.exitCode = tally.failed.length > 0 ? 1 : 0;

/** Ends with this process: who is stopped has no result. */
async function run(to: string, vitestArgs: readonly string[]): Promise<Tally> {
  rmSync(to, { force: true });
  const output = ['--reporter=default', '--reporter=json', `--outputFile.json=${to}`];
  const child = spawn(process.execPath, [VITEST, 'run', ...vitestArgs, ...output], {
    stdio: 'inherit',
  });
  let isStopped = false;
  const stop = (): void => {
    isStopped = true;
    child.kill();
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, stop);
  const [exitCode] = (await once(child, 'exit')) as [number | null];
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, stop);
  if (isStopped) process.exit(143);
  return read(to, exitCode);
}

function read(from: string, exitCode: number | null): Tally {
  const failure = (how: string): Failure => ({ file: `${name} (exit code ${exitCode})`, how });
  let found: VitestReport;
  try {
    found = JSON.parse(readFileSync(from, 'utf8')) as VitestReport;
  } catch {
    return { ...tallyOf({ testResults: [] }), failed: [failure('no report was written')] };
  }
  const sum = tallyOf(found, tag);
  if (exitCode === 0 || sum.failed.length > 0) return sum;
  return { ...sum, failed: [failure('no test failed, but something outside of them')] };
}

/** Many that fail at once are no accident: they fail without another try. */
async function runAgain(tried: Tally): Promise<Tally> {
  if (tried.failed.length > MOST_PASSED_ALONE) {
    console.log(`  ${tried.failed.length} failed: too many to try each once more, alone`);
    return tried;
  }
  const options = args.filter((arg) => arg.startsWith('-'));
  return afterAlone(tried, async ({ file, test }) => {
    if (test === undefined && !file.includes('.test.')) return undefined;
    console.log(`\n  once more, alone: ${test ?? file}`);
    const only = test === undefined ? [] : ['-t', `^${test.replaceAll(SPECIAL, '\\$&')}$`];
    const apart = join('coverage', `${name}-alone.json`);
    return run(apart, [...options, file, ...only, '--maxWorkers=1', '--maxConcurrency=1']);
  });
}
