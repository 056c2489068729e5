import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Finding, Remedy, RemedyRole } from '../../src/model/finding.ts';
import type { ReportNamespace } from '../../src/report/report-json.ts';
import { endOf, textOf, type Write, writesSince } from './audit.ts';
import type { Ref } from './client.ts';
import type { Cluster } from './clusters.ts';
import { isExpected } from './compare.ts';
import { PERSON } from './identities.ts';
import { runGate, theBundle } from './run-gate.ts';
import { gateInputs, LIMIT_MS, prepare } from './run-scenario.ts';
import type { Expectation, Scenario } from './scenario.ts';
import { type Ended, runProgram } from './shell.ts';
import type { World } from './world.ts';

/** What a report tells people to do, done: each command literally, in the order in which it is printed. */

/** Why a command is printed and not run here. */
const NOT_RUN: readonly { command: RegExp; reason: string }[] = [
  { command: /^kubectl logs /, reason: 'containers have logs where there is a kubelet' },
  { command: / --dry-run=server$/, reason: 'it changes nothing' },
];

/** A command that waits longer than this waits for what will not come. */
const COMMAND_MS = 150_000;
/** After the last command: the back-off of a controller, and the namespace controller. */
const FREED_MS = 90_000;
/** Between two: the second may not be needed. */
const BETWEEN_MS = 6_000;

interface Printed {
  finding: Finding;
  remedy: Remedy & { command: string };
  role: RemedyRole;
}

export interface Done {
  scenario: string;
  role: RemedyRole;
  command: string;
  happened: string;
  /** Undefined: as it should be. */
  problem?: string;
}

export interface Verdict {
  done: Done[];
  problems: string[];
  /** Nothing hangs, or nothing is to be done about it: there is nothing to prove. */
  nothingToDo?: string;
}

/** Follows the report of this scenario, first its duties and then, each in a fresh copy, its alternatives. */
export async function followRemedies(
  scenario: Scenario,
  inCluster: <T>(work: (cluster: Cluster) => Promise<T>) => Promise<T>,
): Promise<Verdict> {
  const done: Done[] = [];
  const problems: string[] = [];
  let isFreed = false;
  for (let copy = 0, copies = 1; copy < copies; copy++) {
    const attempt = await inCluster((cluster) => follow(scenario, cluster, copy));
    if (typeof attempt === 'string') return { done, problems, nothingToDo: attempt };
    done.push(...attempt.done);
    for (const { role, command, happened, problem } of attempt.done) {
      if (problem !== undefined) problems.push(`${role}: ${command}\n  ${problem} (${happened})`);
    }
    if (attempt.isUpToOwner) return { done, problems, nothingToDo: 'it is up to its owner' };
    const wasDone = attempt.done.some(
      ({ role, happened }) => role !== 'look' && !happened.startsWith('not'),
    );
    if (wasDone && !attempt.freed && scenario.beyondCommands === undefined) {
      problems.push('the namespace was not freed by what was done');
    }
    copies = attempt.copies;
    isFreed ||= attempt.freed;
  }
  if (!isFreed && scenario.beyondCommands === undefined) {
    problems.push('no printed command frees the namespace');
  }
  return { done, problems };
}

interface Attempt {
  done: Done[];
  freed: boolean;
  isUpToOwner: boolean;
  /** How many copies of the situation all alternatives need. */
  copies: number;
}

/** Returns why there is nothing to do, if there is not. */
async function follow(
  scenario: Scenario,
  cluster: Cluster,
  copy: number,
): Promise<Attempt | string> {
  const world = await prepare(scenario, cluster);
  const { meanwhile } = scenario;
  const shell = await openShell(world);
  try {
    const run = await runGate(await gateInputs(scenario, world), {
      ...(meanwhile ? { meanwhile: (gate) => meanwhile(world, gate) } : {}),
      limitMs: LIMIT_MS,
    });
    const namespace = run.report?.namespaces.find(({ name }) => name === world.namespace);
    if (namespace === undefined) throw new Error(`there is no report\n${run.stdout}${run.stderr}`);
    const expected = await scenario.expect(world);
    const printed = commandsOf(namespace, run.reportMarkdown ?? '');
    const { outcome } = expected;
    const isToEnd = outcome === 'progressing' && printed.some(({ role }) => role === 'now');
    if (outcome !== 'stuck' && !isToEnd) return `the outcome is ${outcome}`;
    const plan = planOf(printed, namespace, copy);
    const may = targets(scenario, world, expected, namespace);
    const work = await workOff(plan.commands, world, shell, may, scenario.id);
    return { ...work, isUpToOwner: isUpToOwner(namespace, printed), copies: plan.copies };
  } finally {
    await shell.close();
    await world.end();
  }
}

/** Who should act lives and knows more than the cluster shows: no command is printed that changes anything. */
function isUpToOwner(namespace: ReportNamespace, printed: readonly Printed[]): boolean {
  const roots = namespace.findings.filter(({ id }) => namespace.rootCauses.includes(id));
  return (
    printed.every(
      ({ role, remedy }) => role === 'look' || role === 'next' || isLogCommand(remedy.command),
    ) && roots.every(({ code }) => code === 'owner-running' || code === 'owner-failing')
  );
}

/** It may well be the first thing to do, and changes nothing. */
const isLogCommand = (command: string): boolean =>
  NOT_RUN.some((rule) => rule.command.test(command));

/** As they are printed; one that several findings share is printed once. */
function commandsOf(namespace: ReportNamespace, markdown: string): Printed[] {
  const blamed = reachable(namespace, namespace.blockers);
  const all = namespace.findings
    .filter(({ id }) => blamed.has(id) || namespace.rootCauses.includes(id))
    .flatMap((finding) =>
      finding.remedies.flatMap((remedy): Printed[] => {
        const { command, role = 'now' } = remedy;
        return command === undefined ? [] : [{ finding, remedy: { ...remedy, command }, role }];
      }),
    );
  const once = [...new Map(all.map((one) => [one.remedy.command, one])).values()];
  const place = ({ remedy: { command } }: Printed): number => {
    const at = markdown.indexOf(command);
    return at < 0 ? Number.POSITIVE_INFINITY : at;
  };
  return once.sort((one, other) => (place(one) < place(other) ? -1 : 1));
}

function reachable(namespace: ReportNamespace, from: readonly string[]): Set<string> {
  const found = new Set<string>();
  const left = [...from];
  for (let id = left.pop(); id !== undefined; id = left.pop()) {
    if (found.has(id)) continue;
    found.add(id);
    left.push(...(namespace.findings.find((finding) => finding.id === id)?.waitsFor ?? []));
  }
  return found;
}

/** Frees one object. */
const ONE_OF_MANY = /, the first of \d+/;
const isRefusedForNow = ({ remedy: { text } }: Printed): boolean =>
  /; .* still refuses that too$/.test(text);

/**
 * Duties first. An alternative stands for the duties of all that waits for the same cause; those of
 * other causes remain.
 */
function planOf(
  printed: readonly Printed[],
  namespace: ReportNamespace,
  copy: number,
): { commands: Printed[]; copies: number } {
  const causeOf = ({ finding }: Printed): string =>
    namespace.rootCauses.find((root) => reachable(namespace, [finding.id]).has(root)) ?? finding.id;
  const causes = [...new Set(printed.map(causeOf))];
  const chosen = causes.map((cause) => {
    const ofCause = printed.filter((one) => causeOf(one) === cause);
    const duties = ofCause.filter(({ role }) => role === 'now');
    const alternatives = ofCause.filter(
      ({ role, remedy }) => role === 'or' && !ONE_OF_MANY.test(remedy.text),
    );
    // What is refused for now is possible after what lifts that, which alone frees nothing.
    const lifting = alternatives.filter((one) => !isRefusedForNow(one));
    const [refused] = alternatives.filter(isRefusedForNow);
    const ways = lifting.map((one) => (refused === undefined ? [one] : [one, refused]));
    if (refused !== undefined && lifting.length === 0 && causes.length > 1) ways.push([refused]);
    // Where nothing is a duty, the first alternative is what there is to do.
    if (duties.length > 0) ways.unshift(duties);
    return ways.length > 0 ? ways : [[]];
  });
  const wanted = new Set(chosen.flatMap((ways) => ways[Math.min(copy, ways.length - 1)] ?? []));
  if (copy === 0) {
    for (const one of printed) if (one.role === 'look' || one.role === 'next') wanted.add(one);
  }
  return {
    commands: printed
      .filter((one) => wanted.has(one))
      .toSorted((one, other) => Number(isRefusedForNow(one)) - Number(isRefusedForNow(other))),
    copies: Math.max(1, ...chosen.map((ways) => ways.length)),
  };
}

type Targets = (write: Write) => boolean;

/** The namespace, what is blamed as the scenario expects it, and what its cure is made of. */
function targets(
  scenario: Scenario,
  world: World,
  expected: Expectation,
  { findings }: ReportNamespace,
): Targets {
  const blamed = findings.filter((finding) => isExpected(finding, expected));
  const refs: readonly Partial<Ref>[] = [
    ...blamed.map(({ subject }) => subject),
    ...(scenario.mayChange?.(world) ?? []),
  ];
  return ({ resource, namespace, name }) =>
    namespace === world.namespace ||
    (resource === 'namespaces' && name === world.namespace) ||
    // A right that the report advises to give is named after the namespace.
    (resource.startsWith('clusterrole') && name?.startsWith(`${world.namespace}-`) === true) ||
    refs.some(
      (ref) =>
        (ref.kind === undefined || isResource(ref.kind, resource)) &&
        (ref.namespace === undefined || ref.namespace === namespace) &&
        (ref.name === undefined || ref.name === name),
    );
}

/** Plurals differ in their ends only. */
function isResource(kind: string, resource: string): boolean {
  return resource.startsWith(kind.toLowerCase().slice(0, -1));
}

async function workOff(
  commands: readonly Printed[],
  world: World,
  shell: Shell,
  may: Targets,
  scenario: string,
): Promise<Pick<Attempt, 'done' | 'freed'>> {
  const done: Done[] = [];
  let freed = false;
  let made = false;
  const exceptionOf = ({ remedy }: Printed) =>
    NOT_RUN.find((rule) => rule.command.test(remedy.command));
  const changes = commands.filter(
    (one) => (one.role === 'now' || one.role === 'or') && !exceptionOf(one),
  );
  // What only looks is about the state that the report describes.
  const order = [...commands.filter((one) => !changes.includes(one)), ...changes];
  for (const one of order) {
    const { command } = one.remedy;
    const note = (happened: string, problem?: string): void => {
      const about = { scenario, role: one.role, command, happened };
      done.push(problem === undefined ? about : { ...about, problem });
    };
    const exception = exceptionOf(one);
    if (one.role === 'next') {
      note('not run: for the next run');
    } else if (exception) {
      note(`not run: ${exception.reason}`);
    } else if (freed) {
      note('not run: the namespace had gone', 'is printed as a duty, and is not needed');
    } else {
      const result = await shell.run(command);
      const isLook = one.role === 'look';
      const problem = isLook ? lookProblem(result) : changeProblem(result, may);
      made ||= !isLook && result.writes.some(({ code }) => code < 400);
      const isLast = one === changes.at(-1);
      if (!isLook) freed = await goesWithin(world, isLast && made ? FREED_MS : BETWEEN_MS);
      note(describe(result, freed), problem);
    }
  }
  return { done, freed };
}

interface Result extends Ended {
  writes: Write[];
}

function lookProblem({ exitCode, writes }: Result): string | undefined {
  if (exitCode !== 0) return `ended with exit code ${exitCode}`;
  return writes.length > 0 ? `has changed something: ${writes.map(textOf).join(', ')}` : undefined;
}

function changeProblem({ exitCode, output, writes }: Result, may: Targets): string | undefined {
  if (exitCode === null) return `had not ended after ${COMMAND_MS / 1_000} s`;
  const made = writes.filter(({ code }) => code < 400);
  // This gate fails as long as another cause holds the namespace.
  const isHeldByOthers = exitCode === 1 && made.length > 0 && /is stuck/.test(output);
  if (exitCode !== 0 && !isHeldByOthers) return `ended with exit code ${exitCode}`;
  if (made.length === 0 || /\(no change\)/.test(output)) return 'has changed nothing';
  const elsewhere = made.filter((write) => !may(write));
  if (elsewhere.length === 0) return undefined;
  return `has hit what is not the cause: ${elsewhere.map(textOf).join(', ')}`;
}

function describe({ exitCode, output, writes }: Result, freed: boolean): string {
  const words =
    output
      .trim()
      .split('\n')
      .at(exitCode === 0 ? 0 : -1) ?? '';
  const made = writes.filter(({ code }) => code < 400).map(textOf);
  return [
    exitCode === 0 ? (made.length > 0 ? made.join(', ') : 'answered') : `failed: ${words}`,
    ...(freed ? ['the namespace went'] : []),
  ].join('; ');
}

interface Shell {
  run(command: string): Promise<Result>;
  close(): Promise<void>;
}

/** A terminal of somebody who may do everything, with kubectl and an npx that starts this gate on the PATH. */
async function openShell({ plane }: World): Promise<Shell> {
  if (plane === undefined) throw new Error('the audit log of a control plane of our own is needed');
  const home = await mkdtemp(join(tmpdir(), 'teardown-gate-person-'));
  const bin = join(home, 'bin');
  const npx = join(bin, 'npx');
  const start = `[ "$1" = namespace-teardown-gate ] || exit 127\nshift\nexec '${process.execPath}' '${await theBundle()}' "$@"`;
  await mkdir(bin);
  await writeFile(npx, `#!/bin/sh\n${start}\n`);
  await chmod(npx, 0o755);
  const env = {
    PATH: `${bin}:${process.env['PATH']}`,
    HOME: home,
    KUBECONFIG: plane.kubeconfig(PERSON),
  };
  return {
    run: async (command) => {
      const from = await endOf(plane.auditLog);
      const ended = await runProgram('bash', ['-c', command], {
        ...{ env, cwd: home, limitMs: COMMAND_MS },
      });
      return { ...ended, writes: await writesSince(plane.auditLog, PERSON, from) };
    },
    close: () => rm(home, { recursive: true, force: true }),
  };
}

/** Writes to the namespace now and then, so that its controller looks again without its back-off. */
async function goesWithin({ client, namespaceRef }: World, timeoutMs: number): Promise<boolean> {
  const deadline = Date.now() + timeoutMs;
  for (let look = 0; ; look++) {
    if ((await client.find(namespaceRef)) === undefined) return true;
    if (Date.now() >= deadline) return false;
    if (look % 10 === 0) {
      const annotations = { 'tests.example.com/look': String(look) };
      await client.patch(namespaceRef, { metadata: { annotations } }).catch(() => undefined); // gone
    }
    await sleep(500);
  }
}
