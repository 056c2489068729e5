import { arrayAt, at, isObject, type JsonObject, stringAt } from '../../src/base/json.ts';
import { deployment, secret, service, serviceAccount } from '../cluster/objects.ts';
import type { Installation } from './bed.ts';
import { movedTo } from './manifests.ts';
import type { Product, Truth } from './product.ts';

const SNAPSHOTTER = 'github.com/kubernetes-csi/external-snapshotter/v8';
const SNAPSHOT_API = 'snapshot.storage.k8s.io/v1';
const DRIVER = 'csi.example.com';

/** Programs that are built from the same libraries. */
const SHARED = 'shared';

const snapshotController: Product = {
  name: 'snapshot-controller',
  module: SHARED,
  programs: { 'snapshot-controller': `${SNAPSHOTTER}/cmd/snapshot-controller` },
  images: {
    'snapshot-controller': [
      'snapshot-controller',
      '--kubeconfig=$(KUBECONFIG)',
      '--leader-election-namespace=$(POD_NAMESPACE)',
    ],
  },
  namespace: 'kube-system',
  manifests: async (sources, namespace) => [
    ...(await sources.files(
      'github.com/kubernetes-csi/external-snapshotter/client/v8',
      'config/crd',
    )),
    ...movedTo(
      await sources.files(SNAPSHOTTER, 'deploy/kubernetes/snapshot-controller'),
      'kube-system',
      namespace,
    ),
  ],
  // Provisioned beforehand and retained: the driver, which is not here, has nothing to do when it goes. What
  // is retained gets no volumesnapshot-bound-protection (checkandAddSnapshotFinalizers).
  prerequisites: (namespace) => [
    {
      apiVersion: SNAPSHOT_API,
      kind: 'VolumeSnapshotContent',
      metadata: { name: `content-${namespace}` },
      spec: {
        deletionPolicy: 'Retain',
        driver: DRIVER,
        source: { snapshotHandle: `snap-${namespace}` },
        volumeSnapshotRef: { namespace, name: 'nightly' },
      },
    },
  ],
  environment: (namespace) => [
    {
      apiVersion: SNAPSHOT_API,
      kind: 'VolumeSnapshot',
      metadata: { namespace, name: 'nightly' },
      spec: { source: { volumeSnapshotContentName: `content-${namespace}` } },
    },
  ],
  held: {
    apiVersion: SNAPSHOT_API,
    kind: 'VolumeSnapshot',
    name: 'nightly',
    finalizer: 'snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection',
  },
  owner: { kind: 'Deployment', name: 'snapshot-controller' },
  right: { apiGroup: 'snapshot.storage.k8s.io', resource: 'volumesnapshots' },
  lease: { namespace: 'kube-system', name: 'snapshot-controller-leader' },
};

/** The half of snapshots that a driver brings: it holds the cluster-scoped half of each. */
const csiSnapshotter: Product = {
  name: 'csi-snapshotter',
  module: SHARED,
  processesOnly: 'its driver is made up',
  needs: snapshotController,
  programs: {
    'csi-plugin': './csi-plugin',
    'csi-snapshotter': `${SNAPSHOTTER}/cmd/csi-snapshotter`,
  },
  images: { 'csi-snapshotter': ['csi-plugin', '--kubeconfig=$(KUBECONFIG)'] },
  namespace: 'storage',
  manifests: async (sources, namespace) =>
    (
      await sources.kustomized(SNAPSHOTTER, ['deploy/kubernetes/csi-snapshotter'], { namespace })
    ).map(onlySnapshotter),
  flags: {
    'csi-snapshotter': ['--leader-election=true', '--leader-election-namespace=$(POD_NAMESPACE)'],
  },
  prerequisites: (namespace) => [
    {
      apiVersion: SNAPSHOT_API,
      kind: 'VolumeSnapshotClass',
      metadata: { name: `class-${namespace}` },
      driver: DRIVER,
      deletionPolicy: 'Delete',
    },
    {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: `volume-${namespace}` },
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '1Gi' },
        claimRef: { namespace, name: 'data' },
        csi: { driver: DRIVER, volumeHandle: `volume-${namespace}` },
        persistentVolumeReclaimPolicy: 'Retain',
      },
    },
  ],
  environment: (namespace) => [
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { namespace, name: 'data' },
      spec: {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '1Gi' } },
        storageClassName: '',
        volumeName: `volume-${namespace}`,
      },
    },
    {
      apiVersion: SNAPSHOT_API,
      kind: 'VolumeSnapshot',
      metadata: { namespace, name: 'nightly' },
      spec: {
        source: { persistentVolumeClaimName: 'data' },
        volumeSnapshotClassName: `class-${namespace}`,
      },
    },
  ],
  inUse: async (client, namespace) => {
    const ref = { apiVersion: SNAPSHOT_API, kind: 'VolumeSnapshot', namespace, name: 'nightly' };
    await client.waitFor(ref, 'is taken', (found) => at(found, 'status', 'readyToUse') === true);
  },
  held: {
    apiVersion: SNAPSHOT_API,
    kind: 'VolumeSnapshot',
    name: 'nightly',
    finalizer: 'snapshot.storage.kubernetes.io/volumesnapshot-bound-protection',
  },
  owner: { kind: 'StatefulSet', name: 'csi-snapshotter' },
  // One after the other: the other half must be at work for this one.
  alone: true,
  right: { apiGroup: 'snapshot.storage.k8s.io', resource: 'volumesnapshotcontents' },
  lease: { namespace: 'storage', name: 'external-snapshotter-leader-csi-example-com' },
  truths: {
    // Called after the driver: nothing ties it to who leads by it.
    'without its Lease': ({ owner }) => ({
      outcome: 'stuck',
      roots: [{ code: ['owner-running'], subject: owner }],
    }),
    uninstalled: orphaned,
    'its namespace deleted': orphaned,
  },
};

/** The other half, snapshot-controller, is alive and may write the same: nobody can say that nobody is left. */
function orphaned(): Truth {
  return { outcome: 'stuck', roots: [{ code: ['owner-missing', 'owner-unknown'] }] };
}

/** Of the example's pod: the provisioner has nothing to do here, and the driver is in the other's program. */
function onlySnapshotter(object: JsonObject): JsonObject {
  const containers = arrayAt(object, 'spec', 'template', 'spec', 'containers');
  const kept = containers.filter((one) => stringAt(one, 'name') === 'csi-snapshotter');
  const spec = at(object, 'spec', 'template', 'spec');
  if (isObject(spec)) spec['containers'] = kept;
  return object;
}

const ccm = 'acme-cloud-controller-manager';

const cloudControllerManager: Product = {
  name: 'cloud-controller-manager',
  module: SHARED,
  processesOnly: 'its cloud is made up',
  programs: { [ccm]: './cloud' },
  images: { [ccm]: [ccm, '--kubeconfig=$(KUBECONFIG)'] },
  namespace: 'kube-system',
  // Written as providers write theirs, with no more rights than Kubernetes' own service controller has.
  manifests: async (_, namespace) => [
    serviceAccount(namespace, 'cloud-controller-manager'),
    ...granted(`system:${ccm}`, namespace, 'cloud-controller-manager', [
      rule('', ['events'], ['create', 'patch', 'update']),
      rule('', ['nodes'], ['get', 'list', 'watch']),
      rule('', ['services/status'], ['patch', 'update']),
      rule('', ['services'], ['get', 'list', 'watch']),
      rule('coordination.k8s.io', ['leases'], ['get', 'list', 'watch', 'create', 'update']),
      rule('', ['configmaps'], ['get', 'list', 'watch']),
    ]),
    deployment(namespace, ccm, {
      podSpec: {
        serviceAccountName: 'cloud-controller-manager',
        containers: [
          {
            name: ccm,
            image: `acme/${ccm}:v1`,
            args: ['--cloud-provider=acme', '--leader-elect=true', '--secure-port=10258'],
          },
        ],
      },
    }),
  ],
  processFlags: {
    [ccm]: [
      '--authentication-kubeconfig=$(KUBECONFIG)',
      '--authorization-kubeconfig=$(KUBECONFIG)',
    ],
  },
  environment: (namespace) => [balanced(namespace)],
  held: {
    apiVersion: 'v1',
    kind: 'Service',
    name: 'app',
    finalizer: 'service.kubernetes.io/load-balancer-cleanup',
  },
  owner: { kind: 'Deployment', name: ccm },
  right: { apiGroup: '', resource: 'services/status' },
  lease: { namespace: 'kube-system', name: 'cloud-controller-manager' },
  special: {
    'refused by its cloud': {
      environment: (namespace) => [balanced(namespace, { 'cloud.example.com/locked': 'yes' })],
      // What it says about it are Events, and nobody can write any here.
      truth: ({ owner }) => ({
        outcome: 'stuck',
        isFinal: true,
        roots: [{ code: ['owner-running'], subject: owner }],
      }),
    },
  },
};

function balanced(namespace: string, annotations: JsonObject = {}): JsonObject {
  const metadata = { namespace, name: 'app', annotations };
  return {
    ...service(namespace, 'app', { ports: [{ port: 80 }], type: 'LoadBalancer' }),
    metadata,
  };
}

const RABBITMQ = 'github.com/rabbitmq/cluster-operator/v2';

/** Called `manager`, as everything that is made with Kubebuilder; it may update, and not patch. */
const rabbitmq: Product = {
  name: 'rabbitmq',
  module: SHARED,
  programs: { manager: RABBITMQ },
  images: { 'cluster-operator': ['manager'] },
  namespace: 'rabbitmq-system',
  manifests: async (sources, namespace) =>
    movedTo(
      await sources.kustomized(RABBITMQ, ['config/installation']),
      'rabbitmq-system',
      namespace,
    ),
  released: [
    'https://github.com/rabbitmq/cluster-operator/releases/download/v2.16.0/cluster-operator.yml',
  ],
  processFlags: { 'cluster-operator': ['--metrics-bind-address=:9782'] },
  environment: (namespace) => [
    {
      apiVersion: 'rabbitmq.com/v1beta1',
      kind: 'RabbitmqCluster',
      metadata: { namespace, name: 'queue' },
      spec: { persistence: { storage: '0' } },
    },
  ],
  held: {
    apiVersion: 'rabbitmq.com/v1beta1',
    kind: 'RabbitmqCluster',
    name: 'queue',
    finalizer: 'deletion.finalizers.rabbitmqclusters.rabbitmq.com',
  },
  owner: { kind: 'Deployment', name: 'rabbitmq-cluster-operator' },
  right: { apiGroup: 'rabbitmq.com', resource: 'rabbitmqclusters' },
  lease: { namespace: 'rabbitmq-system', name: 'rabbitmq-cluster-operator-leader-election' },
};

const METRICS_SERVER = 'sigs.k8s.io/metrics-server';

/** Its API is discovered for every namespace, and the API is what fails: nothing inside is held. */
function unserved({ owner }: Installation): Truth {
  return {
    outcome: 'stuck',
    roots: [
      {
        code: ['apiservice-unavailable'],
        subject: { kind: 'APIService', name: 'v1beta1.metrics.k8s.io' },
        says: [new RegExp(`Deployment ${owner.namespace}/${owner.name} is scaled to zero`)],
      },
    ],
    unreadable: /metrics\.k8s\.io/,
  };
}

const metricsServer: Product = {
  name: 'metrics-server',
  module: SHARED,
  programs: { 'metrics-server': `${METRICS_SERVER}/cmd/metrics-server` },
  images: { 'metrics-server': ['metrics-server', '--kubeconfig=$(KUBECONFIG)'] },
  namespace: 'kube-system',
  manifests: (sources, namespace) =>
    sources.chart(METRICS_SERVER, 'charts/metrics-server', 'metrics-server', namespace),
  flags: { 'metrics-server': ['--kubelet-insecure-tls'] },
  processFlags: {
    'metrics-server': [
      '--authentication-kubeconfig=$(KUBECONFIG)',
      '--authorization-kubeconfig=$(KUBECONFIG)',
    ],
  },
  alone: true,
  environment: (namespace) => [deployment(namespace, 'app')],
  owner: { kind: 'Deployment', name: 'metrics-server' },
  truths: {
    'scaled to zero': unserved,
    'somewhere else, under another name, scaled to zero': unserved,
    // Its APIService goes with it.
    uninstalled: () => ({ outcome: 'deleted' }),
    'somewhere else, under another name, uninstalled': () => ({ outcome: 'deleted' }),
  },
};

const KUSTOMIZE_CONTROLLER = 'github.com/fluxcd/kustomize-controller';

const kustomizeController: Product = {
  name: 'kustomize-controller',
  module: 'kustomize-controller',
  onRequest: true,
  programs: { 'kustomize-controller': KUSTOMIZE_CONTROLLER },
  images: { 'kustomize-controller': ['kustomize-controller'] },
  namespace: 'flux-system',
  manifests: async (sources, namespace) => [
    ...(await sources.files('github.com/fluxcd/source-controller@v1.9.6', 'config/crd/bases')),
    ...(await sources.kustomized(
      KUSTOMIZE_CONTROLLER,
      ['config/crd', 'config/rbac', 'config/manager'],
      { namespace },
    )),
  ],
  processFlags: { 'kustomize-controller': ['--metrics-addr=:8080', '--health-addr=:9440'] },
  environment: (namespace) => [
    {
      apiVersion: 'kustomize.toolkit.fluxcd.io/v1',
      kind: 'Kustomization',
      metadata: { namespace, name: 'app' },
      spec: {
        interval: '10m',
        path: './deploy',
        prune: true,
        sourceRef: { kind: 'GitRepository', name: 'app' },
      },
    },
  ],
  held: {
    apiVersion: 'kustomize.toolkit.fluxcd.io/v1',
    kind: 'Kustomization',
    name: 'app',
    finalizer: 'finalizers.fluxcd.io',
  },
  owner: { kind: 'Deployment', name: 'kustomize-controller' },
  right: { apiGroup: 'kustomize.toolkit.fluxcd.io', resource: 'kustomizations' },
};

const KEDA = 'github.com/kedacore/keda/v2';

const keda: Product = {
  name: 'keda',
  module: 'keda',
  onRequest: true,
  programs: {
    keda: `${KEDA}/cmd/operator`,
    'keda-adapter': `${KEDA}/cmd/adapter`,
    'keda-admission-webhooks': `${KEDA}/cmd/webhooks`,
  },
  images: {
    keda: ['keda'],
    'keda-metrics-apiserver': ['keda-adapter'],
    'keda-admission-webhooks': ['keda-admission-webhooks'],
  },
  namespace: 'keda',
  manifests: async (sources, namespace) =>
    movedTo(await sources.kustomized(KEDA, ['config/default']), 'keda', namespace),
  released: ['https://github.com/kedacore/keda/releases/download/v2.21.0/keda-2.21.0.yaml'],
  processFlags: {
    keda: [
      '--metrics-bind-address=:8080',
      '--health-probe-bind-address=:8081',
      '--metrics-service-bind-address=:9666',
      '--cert-dir=/certs',
    ],
    'keda-metrics-apiserver': ['--port=8080'],
    'keda-admission-webhooks': [
      '--metrics-bind-address=:8080',
      '--health-probe-bind-address=:8081',
      '--port=9443',
      '--cert-dir=/certs',
    ],
  },
  environment: (namespace) => [
    deployment(namespace, 'worker'),
    {
      apiVersion: 'keda.sh/v1alpha1',
      kind: 'ScaledObject',
      metadata: { namespace, name: 'worker' },
      spec: {
        scaleTargetRef: { name: 'worker' },
        triggers: [
          {
            type: 'cron',
            metadata: {
              timezone: 'UTC',
              start: '0 6 * * *',
              end: '0 20 * * *',
              desiredReplicas: '2',
            },
          },
        ],
      },
    },
  ],
  held: {
    apiVersion: 'keda.sh/v1alpha1',
    kind: 'ScaledObject',
    name: 'worker',
    finalizer: 'finalizer.keda.sh',
  },
  owner: { kind: 'Deployment', name: 'keda-operator' },
  alone: true,
  right: { apiGroup: 'keda.sh', resource: 'scaledobjects' },
};

const CERT_MANAGER = 'github.com/cert-manager/cert-manager';

const certManager: Product = {
  name: 'cert-manager',
  module: 'cert-manager',
  onRequest: true,
  programs: { 'cert-manager': '.' },
  images: {
    'cert-manager-controller': ['cert-manager', 'controller'],
    'cert-manager-webhook': ['cert-manager', 'webhook'],
    'cert-manager-cainjector': ['cert-manager', 'cainjector'],
  },
  namespace: 'cert-manager',
  manifests: async (sources, namespace) => [
    ...(await sources.chart(CERT_MANAGER, 'deploy/charts/cert-manager', 'cert-manager', namespace, {
      crds: { enabled: true },
      prometheus: { enabled: false },
      startupapicheck: { enabled: false },
    })),
  ],
  processFlags: { 'cert-manager-webhook': ['--healthz-port=6080'] },
  released: [
    'https://github.com/cert-manager/cert-manager/releases/download/v1.21.2/cert-manager.yaml',
  ],
  environment: (namespace) => [
    {
      apiVersion: 'cert-manager.io/v1',
      kind: 'Issuer',
      metadata: { namespace, name: 'acme' },
      spec: {
        acme: {
          server: 'https://127.0.0.1:1/directory',
          privateKeySecretRef: { name: 'acme-account' },
          solvers: [{ http01: { ingress: { ingressClassName: 'nginx' } } }],
        },
      },
    },
    challenge(namespace, 'HTTP-01', { http01: { ingress: { ingressClassName: 'nginx' } } }),
  ],
  held: {
    apiVersion: 'acme.cert-manager.io/v1',
    kind: 'Challenge',
    name: 'app-1',
    finalizer: 'acme.cert-manager.io/finalizer',
  },
  owner: { kind: 'Deployment', name: 'cert-manager' },
  right: { apiGroup: 'acme.cert-manager.io', resource: 'challenges' },
  lease: { namespace: 'kube-system', name: 'cert-manager-controller' },
  truths: {
    // Its webhooks are nobody's content: they stay, and nothing is behind them.
    'its namespace deleted': () => ({
      outcome: 'stuck',
      roots: [
        { code: ['owner-missing'] },
        {
          code: ['admission-webhook-failing'],
          subject: { kind: 'ValidatingWebhookConfiguration', name: 'cert-manager-webhook' },
        },
      ],
    }),
  },
  special: {
    'its webhook is dead': {
      breakIt: (installed) => installed.scale(0, 'cert-manager-webhook'),
      restore: (installed) => installed.scale(1, 'cert-manager-webhook'),
      truth: () => ({
        outcome: 'stuck',
        roots: [
          {
            code: ['admission-webhook-failing'],
            subject: { kind: 'ValidatingWebhookConfiguration', name: 'cert-manager-webhook' },
            says: [/Deployment cert-manager\/cert-manager-webhook is scaled to zero/],
          },
        ],
      }),
    },
    'its solver’s Secret went first': {
      environment: (namespace) => [
        secret(namespace, 'dns'),
        challenge(namespace, 'DNS-01', {
          dns01: { cloudflare: { apiTokenSecretRef: { name: 'dns', key: 'token' } } },
        }),
      ],
      truth: ({ owner }) => ({
        outcome: 'stuck',
        deadlock: true,
        isFinal: true,
        roots: [{ code: ['owner-failing'], subject: owner, says: [/"dns" not found/] }],
      }),
    },
  },
};

function challenge(namespace: string, type: string, solver: JsonObject): JsonObject {
  return {
    apiVersion: 'acme.cert-manager.io/v1',
    kind: 'Challenge',
    metadata: { namespace, name: 'app-1' },
    spec: {
      type,
      url: 'https://127.0.0.1:1/challenge/1',
      authorizationURL: 'https://127.0.0.1:1/authorization/1',
      dnsName: 'app.example.com',
      token: 'token',
      key: 'key',
      issuerRef: { name: 'acme', kind: 'Issuer' },
      solver,
    },
  };
}

/** A web console for it: it may read and change what the operator works on, and finishes nothing. */
export function bystander(product: Product): { name: string; objects: JsonObject[] } {
  const name = `console-${product.name}`;
  const { apiGroup, resource: written } = product.right ?? { apiGroup: '', resource: 'pods' };
  const [resource = ''] = written.split('/');
  const objects = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'tools' } },
    serviceAccount('tools', name),
    ...granted(name, 'tools', name, [
      rule(apiGroup, [resource], ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete']),
    ]),
    deployment('tools', name, { serviceAccountName: name }),
  ];
  return { name, objects };
}

function rule(apiGroup: string, resources: string[], verbs: string[]): JsonObject {
  return { apiGroups: [apiGroup], resources, verbs };
}

/** A ClusterRole, and a binding of the same name. */
function granted(
  name: string,
  namespace: string,
  account: string,
  rules: JsonObject[],
): JsonObject[] {
  const apiVersion = 'rbac.authorization.k8s.io/v1';
  return [
    { apiVersion, kind: 'ClusterRole', metadata: { name }, rules },
    {
      apiVersion,
      kind: 'ClusterRoleBinding',
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
      subjects: [{ kind: 'ServiceAccount', namespace, name: account }],
    },
  ];
}

export const PRODUCTS: readonly Product[] = [
  snapshotController,
  cloudControllerManager,
  rabbitmq,
  kustomizeController,
  certManager,
  csiSnapshotter,
  keda,
  metricsServer,
];
