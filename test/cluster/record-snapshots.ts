/**
 * `npm run record:snapshots [-- SCENARIO…]`: brings scenarios into their hang on a real control plane,
 * looks at each with the gate's own eyes, and writes what it saw to test/fixtures/snapshots/<id>.json
 * for the unit tests of the diagnosis. Names and addresses of this machine do not get into the files.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { hostname, networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createRedactor } from '../../src/base/redact.ts';
import { systemClock } from '../../src/base/time.ts';
import { look } from '../../src/gate/examine.ts';
import { readNamespace } from '../../src/gate/wait.ts';
import { connect } from '../../src/kubernetes/connect.ts';
import { type Read, read } from '../../src/model/read.ts';
import type {
  Details,
  Grant,
  NamespaceFacts,
  RollCall,
  Snapshot,
} from '../../src/model/snapshot.ts';
import type { ObserveDeps } from '../../src/observe/observe.ts';
import { callRoll } from '../../src/observe/roll-call.ts';
import { type RecordedLooks, SNAPSHOTS_FOLDER } from '../unit/recorded-looks.ts';
import { isKubernetesVersion, type KubernetesVersion, NEWEST_VERSION } from './build.ts';
import { type Cluster, clusterFor } from './clusters.ts';
import { prepare } from './run-scenario.ts';
import type { Scenario } from './scenario.ts';
import { SCENARIOS } from './scenarios/index.ts';
import type { World } from './world.ts';

/** Scenarios whose expectation is about something else than a hang. */
const NOT_RECORDED: Readonly<Record<string, string>> = {
  deleted: 'ends well',
  'deleted-by-gate': 'ends well',
  S48: 'ends well',
  S50a: 'there is no namespace',
  'S50a-error': 'there is no namespace',
  'not-terminating': 'nobody has asked for its deletion',
  S50b: 'nobody has asked for its deletion',
  'S42-patient': 'ends well',
  S17: 'ends well',
  S27: 'ends well',
  'SEED-3e': 'ends well',
  S51: 'access vanishes in the middle of the wait',
  S47: 'about what forcing leaves behind',
  'S52-refuse': 'about what forcing leaves behind',
  'S52-accept': 'about what forcing leaves behind',
  'SEED-1e-refuse': 'about what forcing leaves behind',
  'SEED-1e-accept': 'about what forcing leaves behind',
  'SEED-2d': 'about what forcing leaves behind',
  'SEED-4e': 'about what forcing leaves behind',
};

/** Between the two looks, as in the shortest wait that tells slow from stuck: passes and graces end. */
const PAUSE_MS = 8_000;
const MAX_BYTES = 300_000;

/** In the place of this machine's name and addresses. */
const HOST = 'control-plane';
const SERVER = 'kubernetes.example:6443';
const BACKEND = 'backend.example';

async function record(
  scenario: Scenario,
  cluster: Cluster,
  version: KubernetesVersion,
): Promise<RecordedLooks> {
  const world = await prepare(scenario, cluster);
  const api = await connect({
    kubeconfig: await world.kubeconfig(scenario.identity ?? 'teardown-reader'),
    env: {},
    redactor: createRedactor(),
    userAgent: 'namespace-teardown-gate/recorder',
    homeDir: world.plane?.dataDir ?? '.',
  });
  const over = new AbortController();
  const deps: ObserveDeps = { api, clock: systemClock, signal: over.signal };
  try {
    const rollCall = await deleteAsGate(scenario, world, deps);
    // The gate would be running by now; whoever waits for its words need not.
    void scenario.meanwhile?.(world, { says: async () => {} })?.catch(() => undefined);
    const before = await look(await readIt(world, deps), undefined, rollCall, deps);
    await sleep(PAUSE_MS);
    const now = await look(await readIt(world, deps), before, rollCall, deps);
    const { id, title } = scenario;
    const { snapshot, leftOut } = withoutBootstrap(now);
    return { scenario: id, title, version, before: reduced(before), now: snapshot, leftOut };
  } finally {
    over.abort();
    await api.close();
    await world.end();
  }
}

/** Where the gate itself asks for the deletion, it first asks who is there. */
async function deleteAsGate(
  { delete: asked, inputs }: Scenario,
  world: World,
  deps: ObserveDeps,
): Promise<RollCall | undefined> {
  if (asked !== false || typeof inputs === 'function' || inputs?.['delete'] !== 'true') {
    return undefined;
  }
  const rollCall = await callRoll(world.namespace, deps);
  await world.deleteNamespace();
  await world.settled();
  await sleep(PAUSE_MS);
  return rollCall;
}

async function readIt(world: World, { api, signal }: ObserveDeps): Promise<NamespaceFacts> {
  const got = await readNamespace(api, world.namespace, signal);
  if (!got.ok) throw new Error(`${world.namespace}: ${got.failure.message}`);
  if (got.value === undefined) throw new Error(`${world.namespace} is gone: it does not hang`);
  return got.value;
}

/** What two looks are compared by: content that is or was there. */
function reduced({ details: _details, nodes: _nodes, content, ...rest }: Snapshot): Snapshot {
  return { ...rest, content: content.filter(({ read: got }) => !got.ok || got.value.total > 0) };
}

/** Roles of Kubernetes' own are on every cluster, and no diagnosis looks at them. */
function withoutBootstrap(now: Snapshot): { snapshot: Snapshot; leftOut: { grants: number } } {
  const grants = now.details?.grants;
  if (now.details === undefined || grants?.ok !== true) {
    return { snapshot: now, leftOut: { grants: 0 } };
  }
  const isOwn = ({ role }: Grant): boolean => /^(?:Cluster)?Role system:/.test(role);
  const kept: Read<Grant[]> = read(grants.value.filter((grant) => !isOwn(grant)));
  const details: Details = { ...now.details, grants: kept };
  return {
    snapshot: { ...now, details },
    leftOut: { grants: grants.value.filter(isOwn).length },
  };
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
    const looks = await record(scenario, cluster, version);
    const text = anonymous(`${format(looks)}\n`, cluster.client.connection.server);
    if (text.length > MAX_BYTES) throw new Error(`${text.length} bytes are too many`);
    const suffix = version === NEWEST_VERSION ? '' : `@${version}`;
    await writeFile(join(SNAPSHOTS_FOLDER, `${scenario.id}${suffix}.json`), text);
    return `${Math.round(text.length / 1024)} KiB, ${looks.title}`;
  } finally {
    await cluster.stop();
  }
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { version: { type: 'string', default: NEWEST_VERSION } },
  });
  const { version } = values;
  if (!isKubernetesVersion(version)) throw new Error(`no such version: ${version}`);
  const ids = SCENARIOS.map(({ id }) => id);
  const unknown = positionals.filter((id) => !ids.includes(id));
  if (unknown.length > 0) throw new Error(`there is no scenario "${unknown.join('", "')}"`);
  const wanted = positionals.length > 0 ? positionals : ids.filter((id) => !NOT_RECORDED[id]);
  await mkdir(SNAPSHOTS_FOLDER, { recursive: true });
  for (const scenario of SCENARIOS.filter(({ id }) => wanted.includes(id))) {
    if (scenario.versions && !scenario.versions.includes(version)) continue;
    if (scenario.needs === 'kubelet') continue;
    try {
      console.log(`${scenario.id}: ${await recordTo(scenario, version)}`);
    } catch (error) {
      process.exitCode = 1;
      console.error(
        `${scenario.id}: not recorded: ${error instanceof Error ? error.message : error}`,
      );
    }
  }
}

await main();
