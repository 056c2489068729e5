/**
 * `npm run record:snapshots [-- SCENARIO…]`: brings scenarios into their hang on a real control plane,
 * looks at each with the gate's own eyes, and writes what it saw to test/fixtures/snapshots/<id>.json
 * for the unit tests of the diagnosis; without arguments, all of them. `foreseen` stands for the situations of
 * the tests of forecasts, which are recorded before their deletion. What a snapshot consists of is the
 * gate's business: here it is JSON. Names and addresses of this machine do not get into the files.
 * With CLUSTER_KUBECONFIG it records, on kind, the scenarios that need programs of its node, and no others.
 *
 * A recording with `expected` has no scenario any more: it cannot be made anew here, so a change of what is read has to be
 * made in it by hand.
 */
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type Look, looksAt } from '../../scripts/compare/look.ts';
import { movesBetween } from '../../scripts/compare/moves.ts';
import { isObject, type Json } from '../../src/base/json.ts';
import { systemClock } from '../../src/base/time.ts';
import { EXAMINE_LIMIT_MS, examine } from '../../src/gate/examine.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { readNamespace } from '../../src/observe/namespaces.ts';
import type { ObserveDeps } from '../../src/observe/observe.ts';
import {
  COMMON_FILE,
  type Common,
  FORECAST,
  folded,
  keyOf,
  recordingNames,
  SNAPSHOTS_FOLDER,
  unfolded,
} from '../unit/recorded-looks.ts';
import { isKubernetesVersion, type KubernetesVersion, NEWEST_VERSION } from './build.ts';
import { type Cluster, clusterFor, foreignKubeconfig } from './clusters.ts';
import { build, FORESEEN, idOf } from './foreseen.ts';
import { connectGate } from './kubeconfig.ts';
import { changesBetween } from './recording-changes.ts';
import { anonymous, format } from './recording-files.ts';
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
  'S28',
  'S30',
]);

/** Between the two looks, as in the shortest wait that tells slow from stuck: passes and graces end. */
const PAUSE_MS = 8_000;
/** Looked at before their deletion as well, as a forecast does. */
const FORETOLD = new Set([
  ...['S3', 'S4', 'S40', 'S46', 'SEED-5c', 'deletion-forbidden', 'owner-not-ready', 'paused'],
]);
/** Recorded only as a forecast sees them. Their tests know the outcome: nobody asks for an expectation. */
const AHEAD: readonly Scenario[] = FORESEEN.map((it) => ({
  ...{
    id: idOf(it),
    title: it.title,
    own: true,
    delete: false,
    namespace: 'preview-1',
    versions: [NEWEST_VERSION],
  },
  setUp: async (world) => {
    await world.createNamespace();
    await build(world, it);
  },
  expect: () => ({ outcome: 'clear' }),
}));
const MAX_BYTES = 300_000;
/** Each has servers of its own, and mostly waits for them. */
const AT_ONCE = 3;

/** How deep a recording is broken into lines, and how long they may be. */
const LINES = [2, 1_000] as const;

type Deps = ObserveDeps & { inputs: { ownerLogs: boolean } };

/** Builds the situation, and looks with the eyes of the gate. */
async function asGate<T>(
  scenario: Scenario,
  cluster: Cluster,
  work: (world: World, deps: Deps) => Promise<T>,
): Promise<T> {
  const world = await prepare(scenario, cluster);
  const inputs = await gateInputs(scenario, world);
  const over = new AbortController();
  const agent = 'namespace-teardown-gate/recorder';
  const api = await connectGate(inputs['kubeconfig'] ?? '', agent);
  try {
    const ownerLogs = inputs['owner-logs'] === 'true';
    const deps = { api, clock: systemClock, signal: over.signal, inputs: { ownerLogs } };
    return await work(world, deps);
  } finally {
    over.abort();
    await api.close();
    await world.end();
  }
}

/** The two looks of one wait; undefined: it does not hang. */
function lookTwice(scenario: Scenario, cluster: Cluster): Promise<object | undefined> {
  return asGate(scenario, cluster, async (world, deps) => {
    const { outcome } = await scenario.expect(world);
    if (!['stuck', 'progressing', 'inconclusive'].includes(outcome)) return undefined;
    // The gate would be running by now; whoever waits for its words need not.
    void scenario.meanwhile?.(world, { says: async () => {} })?.catch(() => undefined);
    const before = await lookAt(world, deps);
    await sleep(PAUSE_MS);
    const now = await lookAt(world, deps, { before });
    // Of the first look only what two looks are compared by: content that is there.
    const content = before.content.filter(({ read }) => !read.ok || read.value.total > 0);
    return { before: { takenAt: before.takenAt, content }, now };
  });
}

/** Nobody has deleted it. */
function lookAhead(
  scenario: Scenario,
  cluster: Cluster,
  version: KubernetesVersion,
): Promise<object> {
  const isPodsFirst = version === NEWEST_VERSION;
  const undeleted: Scenario = { ...scenario, delete: false, identity: 'teardown-forecaster' };
  return asGate(undeleted, cluster, async (world, deps) => {
    return { isPodsFirst, now: await lookAt(world, deps, {}, { isPodsFirst }) };
  });
}

async function lookAt(
  world: World,
  deps: Deps,
  earlier: { before?: Snapshot } = {},
  ahead?: { isPodsFirst: boolean },
): Promise<Snapshot> {
  const got = await readNamespace(world.namespace, deps);
  if (!got.ok) throw new Error(`${world.namespace}: ${got.failure.message}`);
  if (got.value === undefined) throw new Error(`${world.namespace} is gone: it does not hang`);
  const one = { namespace: got.value, before: undefined, baseline: undefined, ...earlier };
  const [seen] = await examine([one], EXAMINE_LIMIT_MS, deps, ahead);
  if (seen === undefined) throw new Error('nothing was examined');
  return seen.snapshot;
}

/** In so many recordings an element of a list comes with the control plane, not with the scenario. */
const COMMON_IN = 5;

/** Keeps once what many recordings share. */
async function share(): Promise<void> {
  const recordings = new Map(
    recordingNames().map((name) => {
      const file = join(SNAPSHOTS_FOLDER, `${name}.json`);
      const pool = existsSync(COMMON_FILE) ? (readJson(COMMON_FILE) as Common) : {};
      return [file, unfolded(readJson(file), pool)] as const;
    }),
  );
  const counts = new Map<string, { element: Json; files: number }>();
  for (const recording of recordings.values()) {
    const own = new Map<string, Json>();
    elementsOf(recording, (element) => own.set(keyOf(element), element));
    for (const [key, element] of own) {
      const files = (counts.get(key)?.files ?? 0) + 1;
      counts.set(key, { element, files });
    }
  }
  const pool: Common = Object.fromEntries(
    [...counts]
      .filter(([, { files, element }]) => files >= COMMON_IN && JSON.stringify(element).length > 60)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, { element }]) => [key, element]),
  );
  const lines = Object.entries(pool).map(([key, item]) => `"${key}": ${JSON.stringify(item)}`);
  await writeFile(COMMON_FILE, `{\n${lines.join(',\n')}\n}\n`);
  for (const [file, recording] of recordings) {
    await writeFile(file, format(folded(recording, pool), ...LINES));
  }
}

function readJson(file: string): Json {
  return JSON.parse(readFileSync(file, 'utf8')) as Json;
}

function elementsOf(value: Json, visit: (element: Json) => void): void {
  if (!isObject(value) && !Array.isArray(value)) return;
  for (const item of Object.values(value)) {
    if (Array.isArray(value) && isObject(item)) visit(item);
    elementsOf(item ?? null, visit);
  }
}

async function recordTo(scenario: Scenario, version: KubernetesVersion): Promise<string> {
  const suffix = version === NEWEST_VERSION ? '' : `@${version}`;
  const isAhead = AHEAD.includes(scenario);
  const sizes: string[] = [];
  const record = async (name: string, look: Recorder): Promise<void> => {
    const cluster = await clusterFor(scenario, version, console.log);
    try {
      const { id, title } = scenario;
      const looked = await look(cluster);
      if (looked === undefined) {
        sizes.push('left out');
        return;
      }
      const recorded = { scenario: id, title, version, ...looked };
      const plain = JSON.parse(JSON.stringify(recorded)) as Json;
      const text = anonymous(format(plain, ...LINES), cluster);
      await write(name, text);
      sizes.push(`${Math.round(text.length / 1024)} KiB`);
    } finally {
      await cluster.stop();
    }
  };
  if (isAhead || (suffix === '' && FORETOLD.has(scenario.id))) {
    await record(`${scenario.id}${FORECAST}`, (cluster) => lookAhead(scenario, cluster, version));
  }
  if (!isAhead) {
    await record(`${scenario.id}${suffix}`, (cluster) => lookTwice(scenario, cluster));
  }
  return `${sizes.join(', ')}, ${scenario.title}`;
}

type Recorder = (cluster: Cluster) => Promise<object | undefined>;

/** Says, where there was a recording before, what moved in its verdict and what is different in what was read. */
async function write(name: string, text: string): Promise<void> {
  if (text.length > MAX_BYTES) throw new Error(`${text.length} bytes are too many`);
  const file = join(SNAPSHOTS_FOLDER, `${name}.json`);
  const before = existsSync(file)
    ? { looks: looksAt(name), read: unfolded(readJson(file), readJson(COMMON_FILE) as Common) }
    : undefined;
  await writeFile(file, text);
  if (before === undefined) return;
  const byId = (looks: Look[]): Map<string, Look> => new Map(looks.map((look) => [look.id, look]));
  const lines = [
    ...movesBetween(byId(before.looks), byId(looksAt(name))).map(
      ({ id, kind, lines: moved }) => `${id}: ${kind}: ${moved.join('; ')}`,
    ),
    ...changesBetween(before.read, readJson(file)),
  ];
  console.log(`${name}: ${lines.length === 0 ? 'as before' : lines.join('\n  ')}`);
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
  const asked = positionals.flatMap((id) => (id === 'foreseen' ? AHEAD.map((one) => one.id) : id));
  const ids = [...SCENARIOS, ...AHEAD].map(({ id }) => id);
  const unknown = asked.filter((id) => !ids.includes(id));
  const kept = unknown.filter((id) => recordingNames().includes(id));
  if (kept.length > 0) throw new Error(`no scenario makes ${kept.join(', ')} any more`);
  if (unknown.length > 0) throw new Error(`there is no scenario "${unknown.join('", "')}"`);
  const wanted = [...SCENARIOS, ...AHEAD].filter(
    ({ id, needs }) =>
      needs === (foreignKubeconfig() && 'agents') &&
      (asked.length > 0 ? asked.includes(id) : !NOT_RECORDED.has(id)),
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
  const atOnce = foreignKubeconfig() === undefined ? AT_ONCE : 1;
  await Promise.all(Array.from({ length: atOnce }, next));
  await share();
}

await main();
