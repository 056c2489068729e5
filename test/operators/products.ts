import type { JsonObject } from '../../src/base/json.ts';
import {
  accountSubject,
  deployment,
  grant,
  secret,
  service,
  serviceAccount,
} from '../cluster/objects.ts';
import { movedTo } from './manifests.ts';
import type { Product, Root } from './product.ts';

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
      ...{ apiVersion: SNAPSHOT_API, kind: 'VolumeSnapshotContent' },
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
      ...{ apiVersion: SNAPSHOT_API, kind: 'VolumeSnapshot' },
      metadata: { namespace, name: 'nightly' },
      spec: { source: { volumeSnapshotContentName: `content-${namespace}` } },
    },
  ],
  held: {
    kind: 'VolumeSnapshot',
    finalizer: 'snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection',
  },
  owner: 'snapshot-controller',
  right: { apiGroup: 'snapshot.storage.k8s.io', resource: 'volumesnapshots' },
  lease: { namespace: 'kube-system', name: 'snapshot-controller-leader' },
};

const ccm = 'acme-cloud-controller-manager';

const cloudControllerManager: Product = {
  name: 'cloud-controller-manager',
  module: SHARED,
  programs: { [ccm]: './cloud' },
  images: { [ccm]: [ccm, '--kubeconfig=$(KUBECONFIG)'] },
  namespace: 'kube-system',
  // Written as providers write theirs, with no more rights than Kubernetes' own service controller has.
  manifests: async (_, namespace) => [
    serviceAccount(namespace, 'cloud-controller-manager'),
    ...grant(
      { name: `system:${ccm}` },
      [accountSubject(namespace, 'cloud-controller-manager')],
      [
        rule('', ['events'], ['create', 'patch', 'update']),
        rule('', ['nodes'], ['get', 'list', 'watch']),
        rule('', ['services/status'], ['patch', 'update']),
        rule('', ['services'], ['get', 'list', 'watch']),
        rule('coordination.k8s.io', ['leases'], ['get', 'list', 'watch', 'create', 'update']),
        rule('', ['configmaps'], ['get', 'list', 'watch']),
      ],
    ),
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
  flags: {
    [ccm]: [
      '--authentication-kubeconfig=$(KUBECONFIG)',
      '--authorization-kubeconfig=$(KUBECONFIG)',
    ],
  },
  environment: (namespace) => [balanced(namespace)],
  held: { kind: 'Service', finalizer: 'service.kubernetes.io/load-balancer-cleanup' },
  owner: ccm,
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
      await sources.kustomized(RABBITMQ, 'config/installation'),
      'rabbitmq-system',
      namespace,
    ),
  flags: { 'cluster-operator': ['--metrics-bind-address=:9782'] },
  environment: (namespace) => [
    {
      ...{ apiVersion: 'rabbitmq.com/v1beta1', kind: 'RabbitmqCluster' },
      metadata: { namespace, name: 'queue' },
      spec: { persistence: { storage: '0' } },
    },
  ],
  held: { kind: 'RabbitmqCluster', finalizer: 'deletion.finalizers.rabbitmqclusters.rabbitmq.com' },
  owner: 'rabbitmq-cluster-operator',
  right: { apiGroup: 'rabbitmq.com', resource: 'rabbitmqclusters' },
  lease: { namespace: 'rabbitmq-system', name: 'rabbitmq-cluster-operator-leader-election' },
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
  flags: { 'cert-manager-webhook': ['--healthz-port=6080'] },
  environment: (namespace) => [
    {
      ...{ apiVersion: 'cert-manager.io/v1', kind: 'Issuer' },
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
  held: { kind: 'Challenge', finalizer: 'acme.cert-manager.io/finalizer' },
  owner: 'cert-manager',
  right: { apiGroup: 'acme.cert-manager.io', resource: 'challenges' },
  lease: { namespace: 'kube-system', name: 'cert-manager-controller' },
  truths: {
    // Its webhooks are nobody's content: they stay, and nothing is behind them.
    'its namespace deleted': () => ({
      ...{ outcome: 'stuck', roots: [{ code: ['owner-missing'] }, WEBHOOK_LEFT] },
    }),
    'in the environment itself': () => ({
      ...{ outcome: 'stuck', deadlock: 'either', isFinal: true },
      roots: [{ code: ['owner-missing', 'owner-unknown'] }, WEBHOOK_LEFT],
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

const WEBHOOK_LEFT: Root = {
  code: ['admission-webhook-failing'],
  subject: { kind: 'ValidatingWebhookConfiguration', name: 'cert-manager-webhook' },
};

function challenge(namespace: string, type: string, solver: JsonObject): JsonObject {
  return {
    ...{ apiVersion: 'acme.cert-manager.io/v1', kind: 'Challenge' },
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
    ...grant(
      { name },
      [accountSubject('tools', name)],
      [rule(apiGroup, [resource], ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'])],
    ),
    deployment('tools', name, { serviceAccountName: name }),
  ];
  return { name, objects };
}

function rule(apiGroup: string, resources: string[], verbs: string[]): JsonObject {
  return { apiGroups: [apiGroup], resources, verbs };
}

export const PRODUCTS: readonly Product[] = [
  snapshotController,
  cloudControllerManager,
  rabbitmq,
  certManager,
];

/** `OPERATORS=rabbitmq,cert-manager`: these; `OPERATORS=all`: every one. */
export function isTried(
  { name, onRequest }: Product,
  only = process.env['OPERATORS'] ?? '',
): boolean {
  if (only === '') return onRequest !== true;
  return only === 'all' || only.split(',').includes(name);
}
