/**
 * `npm run record:snapshots [-- SCENARIO…]`: brings scenarios into their hang on a real control plane,
 * looks at each with the gate's own eyes, and writes what it saw to test/fixtures/snapshots/<id>.json
 * for the unit tests of the diagnosis; without arguments, all of them. What a snapshot consists of is the
 * gate's business: here it is JSON. Names and addresses of this machine do not get into the files.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { hostname, networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { isObject, type Json, numberAt } from '../../src/base/json.ts';
import { createRedactor } from '../../src/base/redact.ts';
import { systemClock } from '../../src/base/time.ts';
import { EXAMINE_LIMIT_MS, examine } from '../../src/gate/examine.ts';
import { readNamespace } from '../../src/gate/wait.ts';
import { connect } from '../../src/kubernetes/connect.ts';
import type { Baseline, NamespaceFacts, Snapshot } from '../../src/model/snapshot.ts';
import { type ObserveDeps, readBaselines } from '../../src/observe/observe.ts';
import { SNAPSHOTS_FOLDER } from '../unit/recorded-looks.ts';
import { isKubernetesVersion, type KubernetesVersion, NEWEST_VERSION } from './build.ts';
import { type Cluster, clusterFor } from './clusters.ts';
import { gateInputs, prepare } from './run-scenario.ts';
import type { Scenario } from './scenario.ts';
import { SCENARIOS } from './scenarios/index.ts';
import type { World } from './world.ts';

/** Access that vanishes in the middle of the wait cannot be looked at twice. */
const NOT_RECORDED = new Set(['S51']);
/** What older servers show differently. */
const ALSO_ON_1_32 = new Set([
  'S1',
  'S4-queued',
  'S5',
  'S6',
  'S7',
  'S13',
  'S15',
  'S25a',
  'S25b',
  'S28',
  'S30',
  'S77',
]);

/** Between the two looks, as in the shortest wait that tells slow from stuck: passes and graces end. */
const PAUSE_MS = 8_000;
const MAX_BYTES = 300_000;
/** Each has servers of its own, and mostly waits for them. */
const AT_ONCE = 4;

/** In the place of this machine's name and addresses. */
const HOST = 'control-plane';
const SERVER = 'kubernetes.example:6443';
const BACKEND = 'backend.example';

/** The two looks of one wait, with the eyes of the gate. */
async function lookTwice(
  scenario: Scenario,
  world: World,
): Promise<{ before: Snapshot; now: Snapshot }> {
  const over = new AbortController();
  const api = await connect({
    kubeconfig:
      world.gateKubeconfig ?? (await world.kubeconfig(scenario.identity ?? 'teardown-reader')),
    env: {},
    redactor: createRedactor(),
    userAgent: 'namespace-teardown-gate/recorder',
    homeDir: world.plane?.dataDir ?? '.',
  });
  const deps: ObserveDeps = { api, clock: systemClock, signal: over.signal };
  try {
    const baseline = await deleteAsGate(scenario, world, deps);
    // The gate would be running by now; whoever waits for its words need not.
    void scenario.meanwhile?.(world, { says: async () => {} })?.catch(() => undefined);
    const look = async (before: Snapshot | undefined): Promise<Snapshot> => {
      const [seen] = await examine(
        [{ namespace: await readIt(world, deps), before, baseline }],
        EXAMINE_LIMIT_MS,
        deps,
      );
      if (seen === undefined) throw new Error('nothing was examined');
      return seen.snapshot;
    };
    const before = await look(undefined);
    await sleep(PAUSE_MS);
    return { before, now: await look(before) };
  } finally {
    over.abort();
    await api.close();
  }
}

/** Where the gate itself asks for the deletion, it first asks who is there. */
async function deleteAsGate(
  { delete: asked, inputs }: Scenario,
  world: World,
  deps: ObserveDeps,
): Promise<Baseline | undefined> {
  if (asked !== false || typeof inputs === 'function' || inputs?.['delete'] !== 'true') {
    return undefined;
  }
  const baselines = await readBaselines([world.namespace], deps);
  await world.deleteNamespace();
  await world.settled();
  await sleep(PAUSE_MS);
  return baselines.get(world.namespace);
}

async function readIt(world: World, { api, signal }: ObserveDeps): Promise<NamespaceFacts> {
  const got = await readNamespace(api, world.namespace, signal);
  if (!got.ok) throw new Error(`${world.namespace}: ${got.failure.message}`);
  if (got.value === undefined) throw new Error(`${world.namespace} is gone: it does not hang`);
  return got.value;
}

/** Of the first look only what two looks are compared by: content that is there. */
const COMPARED = ['takenAt', 'namespace', 'discovery', 'content', 'pods'];

function reduced(before: Json): Json {
  if (!isObject(before)) return before;
  const isEmpty = (entry: Json): boolean => numberAt(entry, 'read', 'value', 'total') === 0;
  return Object.fromEntries(
    Object.entries(before)
      .filter(([key]) => COMPARED.includes(key))
      .map(([key, value = null]) => [
        key,
        Array.isArray(value) ? value.filter((entry) => !isEmpty(entry)) : value,
      ]),
  );
}

/** Roles of Kubernetes' own are on every cluster, and no diagnosis looks at them. */
const BOOTSTRAP = /^(?:Cluster)?Role system:/;

function withoutBootstrap(value: Json, leftOut: { grants: number }): Json {
  if (Array.isArray(value)) {
    const kept = value.filter(
      (item) =>
        !isObject(item) || !BOOTSTRAP.test(typeof item['role'] === 'string' ? item['role'] : ''),
    );
    leftOut.grants += value.length - kept.length;
    return kept.map((item) => withoutBootstrap(item, leftOut));
  }
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, withoutBootstrap(item ?? null, leftOut)]),
  );
}

/** Broad enough to be small, deep enough for a re-recording to be reviewed. */
function format(value: unknown, indent = '', depth = 0): string {
  const flat = JSON.stringify(value);
  if (typeof value !== 'object' || value === null || flat.length + indent.length < 100) return flat;
  if (depth > MAX_DEPTH && flat.length < MAX_LINE) return flat;
  const deeper = `${indent}  `;
  const parts = Array.isArray(value)
    ? value.map((item) => `${deeper}${format(item, deeper, depth + 1)}`)
    : Object.entries(value)
        .filter(([, item]) => item !== undefined)
        .map(
          ([key, item]) => `${deeper}${JSON.stringify(key)}: ${format(item, deeper, depth + 1)}`,
        );
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  return `${open}\n${parts.join(',\n')}\n${indent}${close}`;
}

const MAX_DEPTH = 2;
const MAX_LINE = 1_000;

function anonymous(text: string, server: string): string {
  const name = hostname();
  const addresses = Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .map(({ address }) => address)
    .filter((address) => /^\d+\.\d+\.\d+\.\d+$/.test(address));
  const local = [...new Set(['127.0.0.1', ...addresses])]
    .map((address) => address.replaceAll('.', '\\.'))
    .join('|');
  // Holders of Leases are `<host>_<uid>`; a short host name inside other words is not meant.
  return text
    .replaceAll(new URL(server).host, SERVER)
    .replaceAll(new RegExp(`\\b(?:${local})(?::\\d+)?\\b`, 'g'), BACKEND)
    .replaceAll(`"${name}"`, `"${HOST}"`)
    .replaceAll(`"${name}_`, `"${HOST}_`)
    .replaceAll(`by ${name}_`, `by ${HOST}_`);
}

async function recordTo(scenario: Scenario, version: KubernetesVersion): Promise<string> {
  const cluster = await clusterFor(scenario, version, console.log);
  try {
    const text = await record(scenario, cluster, version);
    if (typeof text !== 'string') return `left out: the outcome is ${text.outcome}`;
    if (text.length > MAX_BYTES) throw new Error(`${text.length} bytes are too many`);
    const suffix = version === NEWEST_VERSION ? '' : `@${version}`;
    await writeFile(join(SNAPSHOTS_FOLDER, `${scenario.id}${suffix}.json`), text);
    return `${Math.round(text.length / 1024)} KiB, ${scenario.title}`;
  } finally {
    await cluster.stop();
  }
}

async function record(
  scenario: Scenario,
  cluster: Cluster,
  version: KubernetesVersion,
): Promise<string | { outcome: string }> {
  const world = await prepare(scenario, cluster);
  try {
    const { outcome } = await scenario.expect(world);
    const mode = (await gateInputs(scenario, world))['force-finalize'] ?? 'off';
    const isForced = mode === 'objects' || mode === 'namespace';
    if (isForced || !['stuck', 'progressing', 'inconclusive'].includes(outcome)) {
      return { outcome: isForced ? 'forced' : outcome };
    }
    const looks = await lookTwice(scenario, world);
    const { before, now } = JSON.parse(JSON.stringify(looks)) as Record<'before' | 'now', Json>;
    const { id, title } = scenario;
    const leftOut = { grants: 0 };
    const kept = withoutBootstrap(now, leftOut);
    const recorded = { scenario: id, title, version, before: reduced(before), now: kept, leftOut };
    return anonymous(`${format(recorded)}\n`, cluster.client.connection.server);
  } finally {
    await world.end();
  }
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { version: { type: 'string' } },
  });
  const { version } = values;
  if (version !== undefined && !isKubernetesVersion(version)) {
    throw new Error(`no such version: ${version}`);
  }
  const ids = SCENARIOS.map(({ id }) => id);
  const unknown = positionals.filter((id) => !ids.includes(id));
  if (unknown.length > 0) throw new Error(`there is no scenario "${unknown.join('", "')}"`);
  const wanted = SCENARIOS.filter(
    ({ id, needs }) =>
      needs !== 'kubelet' &&
      (positionals.length > 0 ? positionals.includes(id) : !NOT_RECORDED.has(id)),
  );
  const versions: KubernetesVersion[] =
    version === undefined ? [NEWEST_VERSION, '1.32.2'] : [version];
  const left = versions.flatMap((each) =>
    wanted
      .filter((scenario) => !scenario.versions || scenario.versions.includes(each))
      .filter(({ id }) => version !== undefined || each === NEWEST_VERSION || ALSO_ON_1_32.has(id))
      .map((scenario) => ({ scenario, version: each })),
  );
  await mkdir(SNAPSHOTS_FOLDER, { recursive: true });
  const next = async (): Promise<void> => {
    for (let one = left.shift(); one; one = left.shift()) {
      const what = `${one.scenario.id} (${one.version})`;
      try {
        console.log(`${what}: ${await recordTo(one.scenario, one.version)}`);
      } catch (error) {
        process.exitCode = 1;
        console.error(`${what}: not recorded: ${error instanceof Error ? error.message : error}`);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, next));
}

await main();
