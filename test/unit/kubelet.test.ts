import { expect, test } from 'vitest';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import { wantedFor } from '../../src/diagnose/wanted.ts';
import { podFacts, workloadFacts } from '../../src/model/facts/workloads.ts';
import type { Finding } from '../../src/model/finding.ts';
import { readOk } from '../../src/model/read.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { readRecordedLook } from './recorded-looks.ts';

// What an overdue pod on a ready node waits for, by the Events that kubelets, container runtimes and plugins write.

const NODE = 'node-ready';

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

const AGENTS = [
  daemonSet('kube-system/calico-node', 'calico/node:v3'),
  daemonSet('kube-system/calico-node-windows', 'calico/node:v3'),
  daemonSet('kube-system/cilium', 'quay.io/cilium/cilium:v1'),
  daemonSet('kube-system/cilium-envoy', 'quay.io/cilium/envoy:v1'),
  daemonSet('kube-system/aws-node', 'amazon-k8s-cni:v1'),
  daemonSet('kube-system/kube-multus-ds', 'multus-cni:v4'),
  daemonSet('kube-system/ebs-csi-node', 'aws-ebs-csi-driver:v1'),
  daemonSet('rook-ceph/csi-rbdplugin', 'cephcsi/cephcsi:v3'),
  daemonSet('longhorn-system/longhorn-manager', 'longhorn-manager:v1'),
  daemonSet('longhorn-system/longhorn-csi-plugin', 'longhorn-manager:v1'),
  daemonSet('gpus/nvidia-dra-driver-gpu-kubelet-plugin', 'k8s-dra-driver-gpu:v25'),
  daemonSet('gpus/nvidia-device-plugin', 'k8s-device-plugin-gpu:v1'),
];

interface Warning {
  reason?: string;
  message: string;
}

function withWarnings(warnings: Warning[], change: (now: Snapshot) => void = () => {}): Snapshot {
  const { now } = readRecordedLook('unmount-fails');
  now.cluster.daemonSets = readOk(AGENTS);
  const own = now.places[now.namespace.name];
  const event =
    own?.events?.ok && own.events.value.find(({ reason }) => reason === 'FailedUnmount');
  if (!own || !event) throw new Error('no Event');
  own.events = readOk(
    warnings.map(({ reason = 'FailedKillPod', message }) => {
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

const fixOf = (...warnings: (string | Warning)[]): string | undefined =>
  overdue(withWarnings(warnings.map((one) => (typeof one === 'string' ? { message: one } : one))))
    .remedies[0]?.text;

const killed = (why: string): string =>
  `error killing pod: failed to "KillPodSandbox" for "7f1" with KillPodSandboxError: "rpc error: code = Unknown desc = failed to destroy network for sandbox \\"9ab\\": ${why}"`;

test.each<[string, string, string, string]>([
  [
    'calico in containerd',
    killed(
      'plugin type=\\"calico\\" failed (delete): error getting ClusterInformation: connection is unauthorized: Unauthorized',
    ),
    "network plugin calico on node node-ready, which DaemonSet kube-system/calico-node runs (2 of 3 ready): it does not release the pod's network",
    'connection is unauthorized: Unauthorized"',
  ],
  [
    'cilium in containerd, with a container that cannot be stopped',
    `[failed to "KillContainer" for "app" with KillContainerError: "rpc error: code = DeadlineExceeded", ${killed('plugin type=\\"cilium-cni\\" failed (delete): unable to connect to Cilium agent: dial unix /var/run/cilium/cilium.sock: connect: no such file or directory')}]`,
    'network plugin cilium-cni on node node-ready, which DaemonSet kube-system/cilium runs',
    'no such file or directory"]',
  ],
  [
    'the AWS plugin',
    killed('plugin type=\\"aws-cni\\" failed (delete): del cmd: error received from DelNetwork'),
    'network plugin aws-cni on node node-ready, which DaemonSet kube-system/aws-node runs',
    'DelNetwork"',
  ],
  [
    'multus in CRI-O',
    'error killing pod: failed to "KillPodSandbox" for "7f1" with KillPodSandboxError: "rpc error: code = Unknown desc = failed to destroy network for pod sandbox k8s_web-0(9ab): error removing pod team_web-0 from CNI network \\"multus-cni-network\\": plugin type=\\"multus-shim\\" failed (delete): CmdDel (shim): CNI request failed with status 400"',
    'network plugin multus-shim on node node-ready, which DaemonSet kube-system/kube-multus-ds runs',
    'status 400"',
  ],
  [
    'a plugin whose program was removed',
    killed('failed to find plugin \\"weave-net\\" in path [/opt/cni/bin]'),
    "network plugin weave-net on node node-ready: it does not release the pod's network",
    '[/opt/cni/bin]"',
  ],
  [
    'a network without a configuration',
    killed('cni plugin not initialized'),
    "the network plugin on node node-ready: it does not release the pod's network",
    'cni plugin not initialized"',
  ],
  [
    'a volume with the name of its driver',
    'UnmountVolume.TearDown failed for volume "data" (UniqueName: "kubernetes.io/csi/ebs.csi.aws.com^vol-1") pod "7f1" (UID: "7f1") : kubernetes.io/csi: Unmounter.TearDownAt failed: rpc error: code = Internal desc = device is busy',
    "CSI driver ebs.csi.aws.com on node node-ready, which DaemonSet kube-system/ebs-csi-node runs (2 of 3 ready): it does not unmount the pod's volume",
    'device is busy',
  ],
  [
    'a volume whose driver is not registered',
    'UnmountVolume.TearDown failed for volume "pvc-1" : kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: driver name rook-ceph.rbd.csi.ceph.com not found in the list of registered CSI drivers',
    'CSI driver rook-ceph.rbd.csi.ceph.com on node node-ready, which DaemonSet rook-ceph/csi-rbdplugin runs',
    'registered CSI drivers',
  ],
  [
    'a driver beside other parts of its product',
    'UnmountDevice failed for volume "pvc-1" (UniqueName: "kubernetes.io/csi/driver.longhorn.io^pvc-1") : target is busy',
    'CSI driver driver.longhorn.io on node node-ready, which DaemonSet longhorn-system/longhorn-csi-plugin runs',
    'target is busy',
  ],
  [
    'devices whose driver is not registered',
    'unprepare dynamic resources: DRA driver gpu.nvidia.com is not registered',
    "DRA driver gpu.nvidia.com on node node-ready, which DaemonSet gpus/nvidia-dra-driver-gpu-kubelet-plugin runs (2 of 3 ready): it does not release the pod's devices",
    'is not registered',
  ],
  [
    'devices of Kubernetes 1.32',
    'failed to get gRPC client for driver gpu.nvidia.com: plugin name gpu.nvidia.com not found in the list of registered DRA plugins: unprepare dynamic resources',
    'DRA driver gpu.nvidia.com on node',
    'dynamic resources',
  ],
  [
    'a claim',
    'unprepare dynamic resources: NodeUnprepareResources failed for ResourceClaim gpu-0: device is busy',
    "the DRA driver on node node-ready: it does not release the pod's devices",
    'device is busy',
  ],
  [
    'a container that cannot be killed',
    'error killing pod: failed to "KillContainer" for "app" with KillContainerError: "rpc error: code = DeadlineExceeded desc = context deadline exceeded"',
    "the container runtime on node node-ready: it does not end the pod's container app",
    'deadline exceeded"',
  ],
])('a kubelet waits for %s', (_, text, fix, end) => {
  const { message, quote, remedies } = overdue(withWarnings([{ message: text }]));
  expect(remedies[0]?.text).toContain(`Repair ${fix}`);
  expect(message).toMatch(
    /^is overdue, and on node node-ready .+ does not (?:release|unmount|end) .+: \w+: /,
  );
  expect(quote?.endsWith(end)).toBe(true);
});

test('a warning that ordinary shutdowns cause does not say what a kubelet waits for', () => {
  const ordinary = [
    { reason: 'Unhealthy', message: 'Readiness probe failed: connection refused' },
    {
      reason: 'FailedMount',
      message:
        'MountVolume.SetUp failed for volume "kube-api-access" : object "a"/"b" not registered',
    },
  ];
  const { quote, evidence, remedies } = overdue(withWarnings(ordinary));
  expect(quote).toBeUndefined();
  expect(remedies[0]?.text).toMatch(/^See what the kubelet/);
  expect(evidence.join()).toContain('Readiness probe failed');
  const kept = { reason: 'FailedUnmount', message: 'cgroup is busy' };
  expect(fixOf(...ordinary, kept, ...ordinary)).toBe(
    `Resolve what the kubelet of node ${NODE} reports`,
  );
});

const SANDBOX = killed('plugin type=\\"calico\\" failed (delete): Unauthorized');
const podOn = (nodeName: string, isReady: boolean) =>
  podFacts({
    metadata: {
      namespace: 'kube-system',
      name: 'calico-node-x1',
      uid: 'x1',
      ownerReferences: [
        {
          apiVersion: 'apps/v1',
          kind: 'DaemonSet',
          name: 'calico-node',
          uid: 'c',
          controller: true,
        },
      ],
    },
    spec: { nodeName, containers: [] },
    status: { conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }] },
  });

test.each<[string, ReturnType<typeof podFacts>[] | undefined, [number, number], string]>([
  ['its pods were not read', undefined, [3, 2], '(2 of 3 ready)'],
  [
    'its pod there fails',
    [podOn(NODE, false)],
    [3, 2],
    'ready; it has Pod calico-node-x1 there, which is not ready)',
  ],
  ['it has pods elsewhere', [podOn('other', true)], [3, 3], '(3 of 3 ready; it has no pod there)'],
  ['no node takes its pods', [], [0, 0], '(0 of 0 ready; it has no pod there)'],
])('the DaemonSet of a plugin, where %s', (_, pods, counts, says) => {
  const now = withWarnings([{ message: SANDBOX }], ({ cluster, places }) => {
    const own = { ...daemonSet('kube-system/calico-node', 'calico/node:v3', counts), uid: 'c' };
    cluster.daemonSets = readOk([own]);
    if (pods !== undefined) places['kube-system'] = { pods: readOk(pods) };
  });
  expect(overdue(now).remedies[0]?.text).toContain(says);
});

test.each<[string, string, string]>([
  [
    'a volume and its claim',
    'UnmountVolume.TearDown failed for volume "data" (UniqueName: "kubernetes.io/csi/ebs.csi.aws.com^vol-1") : device is busy',
    "CSI driver ebs.csi.aws.com does not unmount the pod's volume data (claim data-web-0); DaemonSet kube-system/ebs-csi-node (0 of 0 ready) has no pod there: ",
  ],
  [
    'a ResourceClaim',
    'unprepare dynamic resources: NodeUnprepareResources failed for ResourceClaim gpu-0: DRA driver gpu.nvidia.com is not registered',
    "DRA driver gpu.nvidia.com does not release the pod's devices of ResourceClaim gpu-0; DaemonSet gpus/nvidia-dra-driver-gpu-kubelet-plugin (0 of 0 ready) has no pod there: ",
  ],
])('the sentence names %s, and the part that has no pod on the node', (_, message, says) => {
  const now = withWarnings([{ message }], ({ cluster, places, pods }) => {
    const none = { wanted: 0, ready: 0 };
    const agents = cluster.daemonSets?.ok ? cluster.daemonSets.value : [];
    cluster.daemonSets = readOk(agents.map((one) => ({ ...one, ...none })));
    for (const place of ['kube-system', 'gpus']) places[place] = { pods: readOk([]) };
    for (const pod of pods.ok ? pods.value : []) pod.claims = ['cache', 'data-web-0'];
  });
  expect(overdue(now).message).toContain(says);
});

test('of DaemonSets of one name in two namespaces none is named', () => {
  const now = withWarnings([{ message: SANDBOX }], ({ cluster }) => {
    cluster.daemonSets = readOk([...AGENTS, daemonSet('other/calico-node', 'x')]);
  });
  expect(overdue(now).remedies[0]?.text).toMatch(/^Repair network plugin calico on node \S+: it/);
});

test('the DaemonSets are read, and the pods of the one that is meant', () => {
  const { cluster, places } = wantedFor(withWarnings([{ message: SANDBOX }]));
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
