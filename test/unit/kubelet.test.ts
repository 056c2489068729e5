import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import { wantedFor } from '../../src/diagnose/wanted.ts';
import { podFacts, workloadFacts } from '../../src/model/facts/workloads.ts';
import type { Finding } from '../../src/model/finding.ts';
import { readOk } from '../../src/model/read.ts';
import type { PodFacts, Snapshot } from '../../src/model/snapshot.ts';
import { expectPairs } from '../stub/pairs.ts';
import { type Change, listed } from './changes.ts';
import { readRecordedLook } from './recorded-looks.ts';

// What an overdue pod on a ready node waits for, by the Events of kubelets, or else by how far its kubelet came.

const daemonSet = (place: string, image: string, [wanted, ready] = [3, 2]) => {
  const [namespace, name] = place.split('/');
  return workloadFacts(
    'apps/v1',
    'DaemonSet',
  )({
    metadata: { namespace, name, uid: place },
    spec: { template: { spec: { containers: [{ name: 'agent', image }] } } },
    status: { desiredNumberScheduled: wanted, numberReady: ready },
  });
};

const CALICO = 'kube-system/calico-node';
const AGENTS = Object.entries({
  [CALICO]: 'calico/node:v3',
  'kube-system/calico-node-windows': 'calico/node:v3',
  'kube-system/cilium': 'quay.io/cilium/cilium:v1',
  'kube-system/cilium-envoy': 'quay.io/cilium/envoy:v1',
  'kube-system/aws-node': 'amazon-k8s-cni:v1',
  'kube-system/kube-multus-ds': 'multus-cni:v4',
  'kube-system/ebs-csi-node': 'aws-ebs-csi-driver:v1',
  'rook-ceph/csi-rbdplugin': 'cephcsi/cephcsi:v3',
  'longhorn-system/longhorn-manager': 'longhorn-manager:v1',
  'longhorn-system/longhorn-csi-plugin': 'longhorn-manager:v1',
  'gpus/nvidia-dra-driver-gpu-kubelet-plugin': 'k8s-dra-driver-gpu:v25',
  'gpus/nvidia-device-plugin': 'k8s-device-plugin-gpu:v1',
});

/** Events, each with its reason in front where it is another one: `Unhealthy| …`. */
function withWarnings(warnings: string, change: Change = () => {}): Snapshot {
  const { now } = readRecordedLook('unmount-fails');
  now.cluster.daemonSets = readOk(AGENTS.map(([place, image]) => daemonSet(place, image)));
  const own = now.places[now.namespace.name];
  const event =
    own?.events?.ok && own.events.value.find(({ reason }) => reason === 'FailedUnmount');
  if (!own || !event) throw new Error('no Event');
  own.events = readOk(
    warnings.split(' || ').map((warning) => {
      const [, reason = 'FailedKillPod', message = ''] = /^(?:(\w+)\| )?(.*)$/.exec(warning) ?? [];
      return { ...event, reason, message };
    }),
  );
  change(now);
  return now;
}

function overdue(now: Snapshot): Finding {
  const { findings, rootCauses } = diagnose(now);
  const found = findings.find(({ id }) => id === rootCauses[0]) as Finding;
  expect(found).toMatchObject({ code: 'pod-not-confirmed', scope: 'cluster' });
  // A restart of the kubelet is the last advice.
  expect(found.remedies.at(-1)?.text).toMatch(/^If nothing else helps, restart .*kubelet/);
  return found;
}

test('what a kubelet waits for, and what is to be repaired', () =>
  expectPairs('kubelet.txt', (line) => {
    const { message, quote = '', evidence, remedies } = overdue(withWarnings(line));
    if (line.includes('Unhealthy')) expect(evidence.join()).toContain('Readiness probe failed');
    expect(message.endsWith(quote)).toBe(true);
    return { message, fix: remedies[0]?.text };
  }));

const SANDBOX =
  'error killing pod: failed to "KillPodSandbox" for "7f1" with KillPodSandboxError: "rpc error: code = Unknown desc = failed to destroy network for sandbox \\"9ab\\": plugin type=\\"calico\\" failed (delete): Unauthorized"';
const owner = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'calico-node', uid: 'c' };
const podOn = (nodeName: string, status: string) =>
  podFacts({
    metadata: {
      ...{ namespace: 'kube-system', name: 'calico-node-x1', uid: 'x1' },
      ownerReferences: [{ ...owner, controller: true }],
    },
    spec: { nodeName, containers: [] },
    status: { conditions: [{ type: 'Ready', status }] },
  });

type Pods = ReturnType<typeof podFacts>[];
const THERE = 'has Pod calico-node-x1 there, which is not ready';

test.each<[string, Pods | undefined, [number, number], string]>([
  ['its pods were not read', undefined, [3, 2], 'node-ready: it does not'],
  ['its pod there fails', [podOn('node-ready', 'False')], [3, 2], THERE],
  ['it has others', [podOn('other', 'True')], [3, 3], '(3 of 3 ready; it has no pod there)'],
  ['no node takes its pods', [], [0, 0], '(0 of 0 ready; it has no pod there)'],
])('the DaemonSet of a plugin, where %s', (_, pods, counts, says) => {
  const now = withWarnings(SANDBOX, ({ cluster, places }) => {
    cluster.daemonSets = readOk([{ ...daemonSet(CALICO, 'calico/node:v3', counts), uid: 'c' }]);
    if (pods !== undefined) places['kube-system'] = { pods: readOk(pods) };
  });
  expect(overdue(now).remedies[0]?.text).toContain(says);
});

const EFS = 'kube-system/efs-csi-node';

test.each([
  ['the driver that an Event names, which is not there,', 'kube-system/ebs-csi-node', true],
  ['no driver that it does not name', EFS, false],
])('%s is named', (_, place, isNamed) => {
  const volume =
    'UnmountVolume.TearDown failed for volume "data" (UniqueName: "kubernetes.io/csi/ebs.csi.aws.com^vol-1") pod "7f1" : driver name ebs.csi.aws.com not found in the list of registered CSI drivers';
  const now = withWarnings(volume, ({ cluster, places }) => {
    const all = new Set([`${place}-windows`, place, EFS]);
    const agents = [...all].map((one) => daemonSet(one, 'aws-driver'));
    cluster.daemonSets = readOk(agents.map((one) => ({ ...one, uid: one.name })));
    const by = { ...owner, name: 'efs-csi-node', uid: 'efs-csi-node', controller: true };
    const failing = { ...podOn('node-ready', 'False'), ownerReferences: [by] };
    places['kube-system'] = { pods: readOk([failing as PodFacts]) };
  });
  const says = `which DaemonSet ${place} runs (2 of 3 ready; it has no pod there)`;
  const [{ text } = { text: '' }] = overdue(now).remedies;
  expect(text.includes(says)).toBe(isNamed);
  expect(text).not.toContain(EFS);
});

const READ = 'Read on node node-ready what its kubelet says of Pod web-0';
const HALFWAY = { phase: 'Running', hasStopped: true, claims: [] };

test.each<[string, Partial<PodFacts>, string, string]>([
  [
    'it has ended but for its volume',
    { phase: 'Succeeded', hasStopped: true },
    "the CSI driver most likely does not unmount the pod's volume (claim data-web-0); DaemonSet kube-system/ebs-csi-node has no pod there",
    'Repair the CSI driver on node node-ready, which DaemonSet kube-system/ebs-csi-node runs',
  ],
  [
    'its containers have ended',
    HALFWAY,
    `the network plugin most likely does not release the pod's network; DaemonSet ${CALICO} ${THERE}`,
    'Repair the network plugin on node node-ready, which DaemonSet kube-system/calico-node runs',
  ],
  [
    'its containers have ended, and it has devices',
    { ...HALFWAY, devices: ['gpu'] },
    "the DRA driver most likely does not release the pod's devices",
    READ,
  ],
  [
    'it runs',
    { phase: 'Running', hasStopped: false },
    "the container runtime most likely does not end the pod's container",
    READ,
  ],
  ['nothing is left to do', { phase: 'Failed', claims: [] }, 'has not confirmed that it', READ],
])('without an Event, the pod shows what its kubelet waits for: %s', (_, facts, says, fix) => {
  const now = withWarnings('Unhealthy| Readiness probe failed', ({ cluster, places, pods }) => {
    const agents = [CALICO, 'kube-system/calico-node-windows', 'kube-system/ebs-csi-node'];
    cluster.daemonSets = readOk(agents.map((one) => daemonSet(one, 'x')));
    if (cluster.daemonSets.ok) Object.assign(cluster.daemonSets.value[0] ?? {}, { uid: 'c' });
    places['kube-system'] = { pods: readOk([podOn('node-ready', 'False')]) };
    for (const pod of pods.ok ? pods.value : []) {
      Object.assign(pod, { claims: ['data-web-0'], ...facts });
    }
  });
  const { message, remedies } = overdue(now);
  expect(message).toContain(says);
  expect(remedies[0]?.text).toContain(fix);
});

const DISKS = 'disk.csi.example.com';

test.each<[string, Change, string[]]>([
  ['it is read', () => {}, ['storage/disk-csi-node', DISKS]],
  [
    'the pod itself names its driver',
    ({ pods }) => {
      for (const pod of pods.ok ? pods.value : [])
        Object.assign(pod, { claims: [], drivers: [DISKS] });
    },
    ['storage/disk-csi-node', DISKS],
  ],
  ['it was not read', (now) => Object.assign(now, { partners: {} }), []],
  ['its driver works', disksWork, [DISKS]],
])('of two drivers, that of the volume is named; where %s', (_, change, named) => {
  const { now } = readRecordedLook('csi-gone');
  change(now);
  const found = /driver (\S+\.com)|DaemonSet (\S+)/g;
  const names = [...overdue(now).message.matchAll(found)].flatMap(([, a, b]) => a ?? b);
  expect(names.toSorted()).toEqual(named.toSorted());
});

function disksWork({ places: { storage }, cluster }: Snapshot): void {
  const [{ uid = '' } = {}] = cluster.daemonSets?.ok ? cluster.daemonSets.value : [];
  const ownerReferences = [{ ...owner, name: 'disk-csi-node', uid, controller: true }];
  for (const pod of storage?.pods?.ok ? storage.pods.value.slice() : [])
    if (storage?.pods?.ok)
      storage.pods.value.push({ ...pod, name: 'd', uid: 'd', ownerReferences });
}

test('which claims and drivers a pod names', () => {
  const resourceClaims = [{ name: 'a', resourceClaimName: 'gpu' }, { name: 'b' }];
  const volumes = [{ name: 'c', csi: { driver: 'secrets-store.csi.k8s.io' } }, { name: 'd' }];
  const status = { resourceClaimStatuses: [{ name: 'b', resourceClaimName: 'web-0-b-x1' }] };
  const facts = podFacts({ spec: { resourceClaims, volumes }, status });
  expect(facts.devices).toEqual(['gpu', 'web-0-b-x1']);
  expect(facts.drivers).toEqual(['secrets-store.csi.k8s.io']);
});

const RUNNING = { state: { running: {} } };
const ENDED = { state: { terminated: { exitCode: 0 } } };
const CREATING = { state: { waiting: { reason: 'ContainerCreating' } } };

test.each<[string, JsonObject, boolean | undefined]>([
  ['its kubelet has told nothing', {}, undefined],
  ['one of two runs', { containerStatuses: [ENDED, RUNNING] }, false],
  ['all have ended', { containerStatuses: [ENDED] }, true],
  // Without a network none of them was ever started.
  ['it never started', { containerStatuses: [CREATING], initContainerStatuses: [CREATING] }, true],
  ['a sidecar runs', { containerStatuses: [ENDED], initContainerStatuses: [RUNNING] }, false],
])('whether the containers of a pod have stopped: %s', (_, status, expected) => {
  expect(podFacts({ status }).hasStopped).toBe(expected);
});

test('of DaemonSets of one name in two namespaces none is named; their pods are read', () => {
  const twice = withWarnings(SANDBOX, (now) => {
    listed(now, 'daemonSets').push(daemonSet('other/calico-node', 'x'));
    for (const place of ['kube-system', 'other']) now.places[place] = { pods: readOk([]) };
  });
  expect(overdue(twice).remedies[0]?.text).toMatch(/^Repair the network plugin on node \S+: it/);
  const { cluster, places } = wantedFor(withWarnings(SANDBOX));
  expect(cluster).toContain('daemonSets');
  expect(places).toContainEqual({ namespace: 'kube-system', sources: ['pods'] });
});

test('a fault that the kubelet of a node reports itself is quoted, and the node is not given up', () => {
  const { now, before } = readRecordedLook('S28');
  const [node] = Object.values(now.nodes).flatMap((read) => (read.ok && read.value) || []);
  const readyReason = 'KubeletNotReady: container runtime is down';
  Object.assign(node ?? {}, { ready: 'False', readyReason });
  const [found] = diagnose(now, before).findings;
  expect(found).toMatchObject({ code: 'pod-node-unavailable', subject: { kind: 'Node' } });
  expect(found?.message).toMatch(/^is not ready \(KubeletNotReady: container runtime is down/);
  const told = found?.remedies.map(({ text, command = '' }) => `${text} ${command}`).join('\n');
  expect(told).toMatch(/Fix what the kubelet of node \S+ reports/);
  expect(told).not.toMatch(/delete node|start its machine/);
});
