import { deployment } from '../cluster/objects.ts';
import { movedTo } from './manifests.ts';
import type { Product, Truth } from './product.ts';

const SNAPSHOTTER = 'github.com/kubernetes-csi/external-snapshotter/v8';
const SNAPSHOT_API = 'snapshot.storage.k8s.io/v1';
const DRIVER = 'csi.example.com';

const snapshotController: Product = {
  name: 'snapshot-controller',
  module: 'snapshot-controller',
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
};

const METRICS_SERVER = 'sigs.k8s.io/metrics-server';

/** Its API is discovered for every namespace, and the API is what fails: nothing inside is held. */
function unserved(namespace: string): Truth {
  return {
    outcome: 'stuck',
    roots: [
      {
        code: ['apiservice-unavailable'],
        subject: { kind: 'APIService', name: 'v1beta1.metrics.k8s.io' },
        says: [new RegExp(`Deployment ${namespace}/metrics-server is scaled to zero`)],
      },
    ],
    unreadable: /metrics\.k8s\.io/,
  };
}

const metricsServer: Product = {
  name: 'metrics-server',
  module: 'metrics-server',
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
    'scaled to zero': unserved('kube-system'),
    'in another namespace, scaled to zero': unserved('platform'),
    // Its APIService goes with it.
    uninstalled: { outcome: 'deleted' },
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
    {
      apiVersion: 'acme.cert-manager.io/v1',
      kind: 'Challenge',
      metadata: { namespace, name: 'app-1' },
      spec: {
        type: 'HTTP-01',
        url: 'https://127.0.0.1:1/challenge/1',
        authorizationURL: 'https://127.0.0.1:1/authorization/1',
        dnsName: 'app.example.com',
        token: 'token',
        key: 'key',
        issuerRef: { name: 'acme', kind: 'Issuer' },
        solver: { http01: { ingress: { ingressClassName: 'nginx' } } },
      },
    },
  ],
  held: {
    apiVersion: 'acme.cert-manager.io/v1',
    kind: 'Challenge',
    name: 'app-1',
    finalizer: 'acme.cert-manager.io/finalizer',
  },
  owner: { kind: 'Deployment', name: 'cert-manager' },
  right: { apiGroup: 'acme.cert-manager.io', resource: 'challenges' },
};

export const PRODUCTS: readonly Product[] = [
  snapshotController,
  kustomizeController,
  certManager,
  keda,
  metricsServer,
];
