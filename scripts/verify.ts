import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  createWriteStream,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { SUITES, type Suite } from './verify/suites.ts';
import { MOST_PASSED_ALONE } from './verify/tally.ts';

const USAGE = `npm run verify                    every suite that .ci/run leaves out; goes on where it was stopped
   --only A,B         these suites, or parts of them (scenarios, scenarios-2)
   --changed BASE     those that the changes since BASE can touch
   --again            also what has a result for this commit
   --list             only says which these are; --names: as JSON, for a workflow`;

/** Results by commit, by part. */
const RESULTS = join('coverage', 'verify.json');

interface Part {
  name: string;
  suite: Suite;
  env: Record<string, string>;
}

interface Result {
  passed: number;
  failed: number;
  skipped: number;
  passedAlone: number;
  minutes: number;
  /** What failed, passed alone or was skipped. */
  told: string[];
}

/** Where programs are installed that judge what the gate writes. */
const TOOLS = join(
  process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'),
  'namespace-teardown-gate/bin',
);

type Results = Record<string, Record<string, Result>>;

/** Kubeconfig of the kind cluster that this process has started. */
let started: string | undefined;
process.once('exit', () => started && spawnSync(KIND, ['down', KIND_CLUSTER]));
const KIND = 'scripts/verify/kind';
const KIND_CLUSTER = 'teardown-gate-verify';

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    changed: { type: 'string' },
    again: { type: 'boolean' },
    list: { type: 'boolean' },
    names: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  },
});

const ALL: Part[] = SUITES.flatMap((suite) =>
  (suite.parts ?? [{}]).map((env, index) => ({
    name: suite.parts === undefined ? suite.name : `${suite.name}-${index + 1}`,
    suite,
    env,
  })),
);

try {
  if (values.help) console.log(USAGE);
  else if (values.names) console.log(JSON.stringify(chosen().map(({ name }) => name)));
  else if (values.list) list(chosen());
  else await verify(chosen());
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 3;
}

function list(parts: readonly Part[]): void {
  for (const [{ name, about }, all] of Map.groupBy(parts, ({ suite }) => suite)) {
    console.log(`${name}${all.length > 1 ? ` (${all.length} parts)` : ''}: ${about}`);
  }
}

function chosen(): Part[] {
  const names = values.only?.split(',');
  const known = new Set(ALL.flatMap(({ name, suite }) => [name, suite.name]));
  const unknown = names?.filter((name) => !known.has(name)) ?? [];
  if (unknown.length > 0) throw new Error(`there is no suite "${unknown.join('", "')}"`);
  const changes = values.changed === undefined ? undefined : changesSince(values.changed);
  return ALL.filter(
    ({ name, suite }) =>
      (names === undefined || names.includes(name) || names.includes(suite.name)) &&
      (changes === undefined ||
        changes.some((path) => suite.touchedBy.some((begin) => path.startsWith(begin)))),
  );
}

function changesSince(base: string): string[] {
  return git('diff', '--name-only', git('merge-base', base, 'HEAD')).split('\n');
}

async function verify(parts: readonly Part[]): Promise<void> {
  mkdirSync('coverage', { recursive: true });
  const key = `${git('rev-parse', 'HEAD')}${git('status', '--porcelain') === '' ? '' : ', changed'}`;
  const results: Results = existsSync(RESULTS)
    ? (JSON.parse(readFileSync(RESULTS, 'utf8')) as Results)
    : {};
  const mine = results[key] ?? {};
  results[key] = mine;
  for (const part of parts) {
    if (mine[part.name] !== undefined && !values.again) continue;
    console.log(`\n== ${part.name}: ${part.suite.about}`);
    mine[part.name] = await resultOf(part);
    // Whole or not at all: a stop in the middle loses nothing.
    writeFileSync(`${RESULTS}.part`, `${JSON.stringify(results, undefined, 1)}\n`);
    renameSync(`${RESULTS}.part`, RESULTS);
  }
  report(parts, mine);
}

async function resultOf(part: Part): Promise<Result> {
  const { name, suite } = part;
  const begun = Date.now();
  rmSync(join('coverage', `${name}.log`), { force: true });
  const done = (result: Omit<Result, 'minutes'>): Result => ({
    ...result,
    minutes: Math.round((Date.now() - begun) / 6_000) / 10,
  });
  const nothing = { passed: 0, failed: 0, skipped: 0, passedAlone: 0 };
  const kubeconfig = suite.kind ? await kindCluster(part) : undefined;
  if (suite.kind && kubeconfig === undefined) {
    return done({ ...nothing, skipped: 1, told: ['skipped: nothing here starts a kind cluster'] });
  }
  if (suite.first !== undefined) await run(part, [suite.first]);
  const file = join('coverage', `${name}.txt`);
  rmSync(file, { force: true });
  const exitCode = await run(
    part,
    suite.command ?? [process.execPath, 'scripts/verify/tests.ts', name, ...(suite.tests ?? [])],
    kubeconfig === undefined ? {} : { CLUSTER_KUBECONFIG: kubeconfig },
  );
  if (suite.tests !== undefined && existsSync(file)) {
    const [counts = '', ...told] = readFileSync(file, 'utf8').trimEnd().split('\n');
    const [passed = 0, failed = 0, skipped = 0, passedAlone = 0] = counts.split(' ').map(Number);
    return done({ passed, failed, skipped, passedAlone, told });
  }
  if (exitCode === 0) return done({ ...nothing, passed: 1, told: [] });
  const how = exitCode === null ? 'it took too long and was ended' : `exit code ${exitCode}`;
  return done({ ...nothing, failed: 1, told: [`failed: ${name} (${how})`] });
}

/** Exit code; null if it took too long. What it prints is in coverage/NAME.log as well. */
async function run(
  { name, suite, env }: Part,
  [command = '', ...args]: readonly string[],
  more: Record<string, string> = {},
): Promise<number | null> {
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, PATH: `${TOOLS}:${process.env['PATH']}`, CI: 'true', ...env, ...more },
    detached: true, // a group of its own, to end all of it
  });
  const end = (): void => {
    try {
      process.kill(-(child.pid ?? 0), 'SIGTERM');
    } catch {} // it has ended
  };
  let isLate = false;
  const late = setTimeout(() => {
    isLate = true;
    end();
  }, suite.limitMinutes * 60_000);
  const stop = async (): Promise<void> => {
    end();
    await once(child, 'exit');
    console.log('\nstopped: npm run verify goes on where it was');
    process.exit(130);
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, stop);
  const log = createWriteStream(join('coverage', `${name}.log`), { flags: 'a' });
  for (const stream of [child.stdout, child.stderr]) {
    stream.pipe(log, { end: false });
    stream.pipe(process.stdout, { end: false });
  }
  const [exitCode] = (await once(child, 'close')) as [number | null];
  clearTimeout(late);
  await new Promise<void>((resolve) => log.end(resolve));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, stop);
  return isLate ? null : exitCode;
}

/** Path of a kubeconfig: of the cluster that is there, or of one that is started now and goes with this process. */
async function kindCluster(part: Part): Promise<string | undefined> {
  const given = process.env['CLUSTER_KUBECONFIG'];
  if (given !== undefined && given !== '') return given;
  if (started === undefined && (await run(part, [KIND, 'up', KIND_CLUSTER])) === 0) {
    started = readFileSync(join('coverage', `${part.name}.log`), 'utf8')
      .trim()
      .split('\n')
      .at(-1);
  }
  return started;
}

function report(parts: readonly Part[], results: Record<string, Result>): void {
  const rows = [...Map.groupBy(parts, ({ suite }) => suite.name)].map(([name, ofSuite]) => {
    const done = ofSuite.flatMap((part) => results[part.name] ?? []);
    const sum = (of: (result: Result) => number): number =>
      done.reduce((total, result) => total + of(result), 0);
    return [
      name,
      sum(({ passed }) => passed),
      sum(({ failed }) => failed),
      sum(({ passedAlone }) => passedAlone),
      sum(({ skipped }) => skipped),
      Math.round(sum(({ minutes }) => minutes)),
    ];
  });
  const told = parts.flatMap(({ name }) =>
    (results[name]?.told ?? []).map((line) => `${name}: ${line}`),
  );
  console.log(`\n${told.join('\n')}\n`);
  const head = ['suite', 'passed', 'failed', 'passed alone', 'skipped', 'minutes'];
  const lines = [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`);
  console.log(lines.join('\n'));
  const summary = process.env['GITHUB_STEP_SUMMARY'];
  if (summary !== undefined) appendFileSync(summary, `${[...lines, '', ...told].join('\n')}\n`);
  const total = (column: number): number =>
    rows.reduce((count, row) => count + Number(row[column]), 0);
  if (total(3) > MOST_PASSED_ALONE) console.log(`\n${total(3)} tests passed only alone: too many`);
  process.exitCode = total(2) > 0 || total(3) > MOST_PASSED_ALONE ? 1 : 0;
}

function git(...args: string[]): string {
  const { stdout, stderr, status } = spawnSync('git', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`);
  return stdout.trim();
}
