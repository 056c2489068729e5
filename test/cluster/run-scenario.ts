import { endOf, mutationsBy } from './audit.ts';
import type { Cluster } from './clusters.ts';
import { differences, findingText } from './compare.ts';
import { type GateRun, runGate } from './run-gate.ts';
import type { Expectation, Scenario } from './scenario.ts';
import { World } from './world.ts';

/** Long enough for two looks, short enough for a catalogue. */
export const TIMEOUT = '5s';
/** The same where the gate itself deletes: the namespace controller begins 5 s later, and later still under load. */
export const DELETING_TIMEOUT = '25s';
/** The gate promises to end within its time-out and 60 s; this only ends a gate that breaks it. */
export const LIMIT_MS = 200_000;
const PASSES = new Set(['deleted', 'recreated', 'not-found', 'forced']);

export function worldOf({ id, namespace }: Scenario, cluster: Cluster): World {
  return new World({ ...cluster, namespace: namespace ?? `preview-${id.toLowerCase()}` });
}

/** Somebody deletes it, and it hangs. */
export async function askAndSettle(scenario: Scenario, world: World): Promise<void> {
  if (scenario.delete === false) return;
  await (scenario.delete?.(world) ?? world.deleteNamespace());
  await (scenario.settle?.(world) ?? world.settled());
}

/** The situation up to where the gate starts: set up, deleted and hanging. */
export async function prepare(scenario: Scenario, cluster: Cluster): Promise<World> {
  const world = worldOf(scenario, cluster);
  try {
    await scenario.setUp(world);
    await askAndSettle(scenario, world);
    return world;
  } catch (error) {
    await world.end();
    throw error;
  }
}

/** Runs the shipped gate against the situation. Returns what differs from the expectation. */
export async function runScenario(scenario: Scenario, cluster: Cluster): Promise<string[]> {
  const from = cluster.plane ? await endOf(cluster.plane.auditLog) : 0;
  const world = await prepare(scenario, cluster);
  try {
    const { meanwhile, identity = 'teardown-reader' } = scenario;
    const run = await runGate(await gateInputs(scenario, world), {
      ...(meanwhile ? { meanwhile: (gate) => meanwhile(world, gate) } : {}),
      limitMs: LIMIT_MS,
    });
    const expected = await scenario.expect(world);
    const problems = [
      ...(await judge(expected, run, world)),
      ...(await mutationProblems(expected, identity, world, from)),
    ];
    return problems.length === 0 ? [] : [...problems, ...epilogue(run, world)];
  } finally {
    await world.end();
  }
}

export async function gateInputs(
  { identity = 'teardown-reader', inputs }: Scenario,
  world: World,
): Promise<Record<string, string>> {
  return {
    namespace: world.namespace,
    kubeconfig: await world.kubeconfig(identity),
    timeout: inputs?.['delete'] === undefined ? TIMEOUT : DELETING_TIMEOUT,
    comment: 'off',
    ...inputs,
  };
}

async function judge(expected: Expectation, run: GateRun, world: World): Promise<string[]> {
  const { report } = run;
  if (!report) return [`there is no report; exit code ${run.exitCode}`, run.stderr];
  const namespace = report.namespaces.find(({ name }) => name === world.namespace);
  if (!namespace) return [`the report says nothing about ${world.namespace}`];
  const exitCode = expected.exitCode ?? (PASSES.has(expected.outcome) ? 0 : 1);
  const problems = [
    ...differences(expected, namespace),
    ...(run.exitCode === exitCode ? [] : [`exit code is ${run.exitCode}, expected ${exitCode}`]),
    ...(run.outputs['outcome'] === expected.outcome
      ? []
      : [`output outcome is ${run.outputs['outcome']}`]),
  ];
  try {
    await expected.also?.({ ...run, world, report, namespace });
  } catch (error) {
    problems.push(error instanceof Error ? error.message : String(error));
  }
  return problems;
}

/** The audit log of the API server is the witness that the gate changed nothing it was not told to. */
async function mutationProblems(
  expected: Expectation,
  user: string,
  { plane }: World,
  from: number,
): Promise<string[]> {
  if (!plane) return []; // no audit log there; its RBAC has refused whatever was tried
  const wanted = [...(expected.mutations ?? [])].sort();
  const made = await mutationsBy(plane.auditLog, user, { from });
  const same = made.length === wanted.length && made.sort().every((one, i) => one === wanted[i]);
  return same ? [] : [`the gate's mutations: ${made.join(', ')}; expected: ${wanted.join(', ')}`];
}

/** What a person wants to see beside a failure. */
function epilogue(run: GateRun, world: World): string[] {
  const namespace = run.report?.namespaces.find(({ name }) => name === world.namespace);
  return [
    '--- findings',
    ...(namespace?.findings ?? []).map(
      (finding) =>
        `${findingText(finding)}: ${finding.message} | ${finding.evidence.join(' | ')} | waits for ${finding.waitsFor.join(', ') || 'nothing'}`,
    ),
    '--- conditions',
    ...(namespace?.conditions ?? []).map(
      ({ type, status, message }) => `${type}=${status} ${message}`,
    ),
    '--- log',
    // As people see it: without what only the runner's debug mode shows.
    run.stdout.replaceAll(/^::(?:debug|add-mask)::.*\n/gm, ''),
    run.stderr,
  ];
}
