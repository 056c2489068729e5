import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadAll } from 'js-yaml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  arrayAt,
  type JsonObject,
  numberAt,
  stringAt,
  stringsAt,
  valueAt,
} from '../../src/base/json.ts';
import type { Report } from '../../src/report/report-json.ts';
import { REPOSITORY } from '../stub/action-yml.ts';
import { Client, type KubeObject, type Ref, refOf } from './client.ts';
import { foreignKubeconfig } from './clusters.ts';
import { GATE_IMAGE, loadGateImage, whyNoGateImage } from './kind/gate-image.ts';
import { findKindNode, inNode, type KindNode } from './kind/node.ts';
import { configMap } from './objects.ts';
import { takeAway } from './take-away.ts';
import { waitUntil } from './wait-until.ts';
import { conditionsOf } from './world.ts';

/** The container image, in pods of a namespace with the Pod Security Standard "restricted", as the CronJob of deploy/audit. */

const NAMESPACE = 'namespace-teardown-gate';
const TAG = '1.0.0';
/** The folder of the node that is the volume of the CronJob. */
const FOLDER = '/var/teardown-gate-tests/reports';
const STORAGE_CLASS = 'teardown-gate-tests';
const HANGS = 'image-hangs';
const HELD = configMap(HANGS, 'held', { finalizers: ['example.com/cleanup'] }) as KubeObject;

const kubeconfig = foreignKubeconfig();
const client = kubeconfig === undefined ? undefined : Client.fromKubeconfig(kubeconfig);
const reason = client ? await whyNoGateImage(client) : 'CLUSTER_KUBECONFIG names no cluster';
const title = `the container image${reason === undefined ? '' : ` (skipped: ${reason})`}`;

describe.skipIf(reason !== undefined)(title, { tags: 'kubelet' }, () => {
  const cluster = client as Client;
  const made: Ref[] = [];
  let node: KindNode;
  let cronJob: KubeObject;

  beforeAll(async () => {
    node = (await findKindNode(cluster)) as KindNode;
    await loadGateImage(node, TAG);
    await inNode(node, 'mkdir', '-p', FOLDER);
    await make(volumeOn(node));
    const manifests = auditManifests();
    for (const object of manifests.filter(({ kind }) => kind !== 'CronJob')) await make(object);
    cronJob = manifests.find(({ kind }) => kind === 'CronJob') as KubeObject;
    const spec = cronJob['spec'] as JsonObject;
    spec['schedule'] = '* * * * *';
    const pod = valueAt(spec, 'jobTemplate', 'spec', 'template', 'spec');
    for (const container of arrayAt(pod, 'containers') as JsonObject[]) {
      container['env'] = await addressOfTheServer();
      container['args'] = stringsAt(container, 'args').map((arg) => arg.replace('=1h', '=1s'));
    }
  }, 300_000);

  afterAll(async () => {
    for (const ref of [refOf(HELD), ...made.reverse()]) await takeAway(cluster, ref);
    await cluster.close();
  });

  test('runs where pods without restrictions are refused', async () => {
    const pod = {
      ...{ apiVersion: 'v1', kind: 'Pod' },
      metadata: { namespace: NAMESPACE, name: 'free' },
      spec: { containers: [{ name: 'free', image: GATE_IMAGE }] },
    };
    await expect(cluster.create(pod, { dryRun: true })).rejects.toThrow('restricted');
  });

  test('explains a namespace that hangs, as the CronJob of deploy/audit', async () => {
    await make({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: HANGS } });
    await make(HELD);
    const namespace = { apiVersion: 'v1', kind: 'Namespace', name: HANGS };
    await cluster.delete(namespace);
    // The first minute of the CronJob may begin at once, and the audit leaves out what has just been deleted.
    await waitUntil('a namespace that says what remains', async () =>
      conditionsOf(await cluster.find(namespace)).some(
        ({ type, status }) => type === 'NamespaceFinalizersRemaining' && status === 'True',
      ),
    );
    const since = (await jobs()).map(({ metadata }) => metadata.name);
    const running = await make(cronJob);

    const { exitCode, log } = await endOf(
      (name) => name.startsWith('audit-') && !since.includes(name),
    );
    await cluster.patch(refOf(running), { spec: { suspend: true } });

    const report = JSON.parse(await inNode(node, 'cat', `${FOLDER}/report.json`)) as Report;
    const hang = report.namespaces.find(({ name }) => name === HANGS);
    expect(`exit code ${exitCode}, ${hang?.outcome}`, log).toBe('exit code 1, stuck');
    expect(log).toContain('example.com/cleanup');
    const files = (await inNode(node, 'ls', FOLDER)).trim().split('\n');
    expect(files).toEqual(['metrics.prom', 'report.json', 'report.md', 'report.xml']);
    const metrics = await inNode(node, 'cat', `${FOLDER}/metrics.prom`);
    expect(metrics).toContain(`\nnamespace_terminating_seconds{namespace="${HANGS}",cause="`);
  });

  async function make(object: JsonObject): Promise<KubeObject> {
    const created = await cluster.apply(object);
    made.push(refOf(created));
    return created;
  }

  async function jobs(): Promise<KubeObject[]> {
    return cluster.list('batch/v1', 'Job', NAMESPACE);
  }

  /** Waits for the end of a job; returns how its container ended, and what it said. */
  async function endOf(isWanted: (name: string) => boolean) {
    const job = await waitUntil(
      'a job that has ended',
      async () =>
        (await jobs()).find(
          (one) =>
            isWanted(one.metadata.name) &&
            conditionsOf(one).some(
              ({ type, status }) => status === 'True' && ['Complete', 'Failed'].includes(type),
            ),
        ),
      { timeoutMs: 180_000, everyMs: 500 },
    );
    const pods = await cluster.list('v1', 'Pod', NAMESPACE);
    const pod = pods.find(
      (one) => stringAt(one, 'metadata', 'labels', 'job-name') === job.metadata.name,
    );
    const state = ['status', 'containerStatuses', 0, 'state', 'terminated', 'exitCode'];
    const path = pod && (await cluster.pathOf(refOf(pod)));
    const { text } = await cluster.call('GET', `${path}/log`);
    return { exitCode: numberAt(pod, ...state), log: text };
  }

  /** Nothing carries traffic to Services where kube-proxy does not run; the pods then take the address of the endpoint. */
  async function addressOfTheServer(): Promise<JsonObject[]> {
    const proxy = {
      ...{ apiVersion: 'apps/v1', kind: 'DaemonSet' },
      namespace: 'kube-system',
      name: 'kube-proxy',
    };
    if (await cluster.find(proxy)) return [];
    const slices = await cluster.list('discovery.k8s.io/v1', 'EndpointSlice', 'default');
    const slice = slices.find(({ metadata }) => metadata.name === 'kubernetes');
    return [
      {
        name: 'KUBERNETES_SERVICE_HOST',
        value: stringAt(slice, 'endpoints', 0, 'addresses', 0) ?? '',
      },
      { name: 'KUBERNETES_SERVICE_PORT', value: String(numberAt(slice, 'ports', 0, 'port')) },
    ];
  }
});

/** What docs/containers.md tells to apply, with the image and a storage class of these tests. */
function auditManifests(): KubeObject[] {
  const folder = mkdtempSync(join(tmpdir(), 'teardown-gate-audit-'));
  try {
    cpSync(join(REPOSITORY, 'deploy', 'audit'), folder, { recursive: true });
    cpSync(join(REPOSITORY, 'rbac', 'reader.yaml'), join(folder, 'reader.yaml'));
    const built = execFileSync('kubectl', ['kustomize', folder], { encoding: 'utf8' })
      .replaceAll('REGISTRY/namespace-teardown-gate', GATE_IMAGE)
      .replace(
        '\n  resources:\n    requests:\n      storage:',
        `\n  storageClassName: ${STORAGE_CLASS}$&`,
      );
    return loadAll(built) as KubeObject[];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Kubernetes gives a volume of the kind "local" to the group of the pod (`fsGroup`); those of the kind "hostPath" it does not. */
function volumeOn(node: KindNode): JsonObject {
  const onNode = { key: 'kubernetes.io/hostname', operator: 'In', values: [node.name] };
  return {
    ...{ apiVersion: 'v1', kind: 'PersistentVolume' },
    metadata: { name: 'teardown-gate-tests' },
    spec: {
      storageClassName: STORAGE_CLASS,
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '1Gi' },
      local: { path: FOLDER },
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [onNode] }] } },
    },
  };
}
