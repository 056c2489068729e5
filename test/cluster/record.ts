/**
 * `npm run record [-- SCENARIO…]`: runs scenarios on a real control plane and writes what its API
 * server shows to test/fixtures/clusters/<id>.json, for the embedded API server of the fast tests
 * and of the demo. The format is `Recording` of test/stub/recording.ts.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { arrayAt, isObject, type JsonObject, stringAt } from '../../src/base/json.ts';
import type { ResourceType } from '../../src/model/snapshot.ts';
import type {
  RecordedAnswer,
  RecordedCollection,
  RecordedDiscovery,
  Recording,
} from '../stub/recording.ts';
import { isKubernetesVersion, NEWEST_VERSION } from './build.ts';
import type { Answer, Client } from './client.ts';
import { clusterFor } from './clusters.ts';
import { apiVersionOf, servedTypes } from './inventory.ts';
import { anonymous, format } from './recording-files.ts';
import { prepare } from './run-scenario.ts';
import type { Scenario } from './scenario.ts';
import { SCENARIOS } from './scenarios/index.ts';

const FOLDER = join(import.meta.dirname, '..', 'fixtures', 'clusters');
const BY_DEFAULT = ['S1', 'S4', 'S4-queued', 'S5', 'S7', 'S26', 'S46'];
const MAX_BYTES = 400_000;
/** One line per object: small, and a re-recording can be reviewed. */
const LINE_DEPTH = 3;

const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

async function record(client: Client, scenario: Scenario, namespace: string): Promise<Recording> {
  const discovery = await recordDiscovery(client);
  const types = (await servedTypes(client)).filter(({ verbs }) => verbs.includes('list'));
  const collections = await Promise.all(types.map((type) => recordCollection(client, type)));
  const version = await client.call('GET', '/version');
  return {
    format: 1,
    scenario: scenario.id,
    title: scenario.title,
    namespace,
    recordedAt: new Date(String(version.headers['date'])).toISOString(),
    version: isObject(version.body) ? version.body : {},
    discovery,
    collections,
  };
}

async function recordDiscovery(client: Client): Promise<RecordedDiscovery> {
  const aggregated: Record<string, RecordedAnswer> = {};
  for (const path of ['/api', '/apis']) {
    aggregated[path] = verbatim(await client.call('GET', path, undefined, { accept: AGGREGATED }));
  }
  const legacy: Record<string, RecordedAnswer> = {};
  const groups = await client.call('GET', '/apis');
  const versions = arrayAt(groups.body, 'groups').flatMap((group) =>
    arrayAt(group, 'versions').map((version) => `/apis/${stringAt(version, 'groupVersion')}`),
  );
  for (const path of ['/api', '/api/v1', '/apis', ...versions]) {
    legacy[path] = verbatim(await client.call('GET', path));
  }
  return { aggregated, legacy };
}

async function recordCollection(client: Client, type: ResourceType): Promise<RecordedCollection> {
  const base = type.group === '' ? `/api/${type.version}` : `/apis/${apiVersionOf(type)}`;
  const answer = await client.call('GET', `${base}/${type.resource}`);
  const listed = arrayAt(answer.body, 'items').filter(isObject);
  const objects = listed.filter((object) => !isEverywhere(object));
  return {
    ...type,
    resourceVersion: stringAt(answer.body, 'metadata', 'resourceVersion') ?? '',
    objects,
    leftOut: listed.length - objects.length,
    ...(answer.status === 200 ? {} : { error: verbatim(answer) }),
  };
}

/** What every cluster has and no diagnosis looks at. */
function isEverywhere(object: JsonObject): boolean {
  const labels = object['metadata'];
  const bootstrapped =
    stringAt(labels, 'labels', 'kubernetes.io/bootstrapping') === 'rbac-defaults' ||
    stringAt(labels, 'annotations', 'apf.kubernetes.io/autoupdate-spec') !== undefined;
  // ServiceAccounts of the controllers: they are there under --use-service-account-credentials.
  const ofControllers =
    stringAt(labels, 'namespace') === 'kube-system' &&
    !['secrets', 'data', 'spec', 'rules', 'subjects'].some((key) => key in object);
  return bootstrapped || ofControllers;
}

function verbatim(answer: Answer): RecordedAnswer {
  return {
    status: answer.status,
    contentType: String(answer.headers['content-type'] ?? ''),
    body: answer.body,
  };
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { version: { type: 'string', default: NEWEST_VERSION } },
  });
  if (!isKubernetesVersion(values.version)) throw new Error(`no such version: ${values.version}`);
  await mkdir(FOLDER, { recursive: true });
  for (const id of positionals.length > 0 ? positionals : BY_DEFAULT) {
    const scenario = SCENARIOS.find((candidate) => candidate.id === id);
    if (!scenario) throw new Error(`there is no scenario "${id}"`);
    const cluster = await clusterFor(scenario, values.version, console.log);
    try {
      const world = await prepare(scenario, cluster);
      const recording = await record(cluster.client, scenario, world.namespace);
      await world.end();
      const text = anonymous(format(recording, LINE_DEPTH), cluster);
      if (text.length > MAX_BYTES) throw new Error(`${id}: ${text.length} bytes are too many`);
      await writeFile(join(FOLDER, `${id}.json`), text);
      console.log(`${id}.json ${Math.round(text.length / 1024)} KiB`);
    } finally {
      await cluster.stop();
    }
  }
}

await main();
