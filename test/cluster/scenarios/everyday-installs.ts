import { type JsonObject, stringsAt, valueAt } from '../../../src/base/json.ts';
import { customObject, podSpec, service } from '../objects.ts';
import { FULL, type OperatorOptions, READ, rule } from './operator.ts';

/** A controller as its published manifests install it, and an object of which it takes care. */
export interface Install {
  title: string;
  /** Of the object. */
  group: string;
  version: string;
  kind: string;
  /** Labels and annotations of its CustomResourceDefinition; `false`: Kubernetes has the type. */
  type: JsonObject | false;
  spec?: JsonObject;
  /** Base name of its namespace. */
  namespace: string;
  name: string;
  workload?: 'StatefulSet';
  account?: string;
  /** Of the workload, and of its pods, beside those that select them. */
  labels?: JsonObject;
  selector: JsonObject;
  containers: JsonObject[];
  /** Name of its ClusterRole. */
  role: string;
  rules: JsonObject[];
  /** Name of the Lease by which it leads; `kube-system/…` where it is not in its own namespace. */
  lease?: string;
  finalizer: string;
  /** Field manager of the finalizer, and of the status where that is another. */
  writer: string;
  statusWriter?: string;
  /** It writes by server-side apply. */
  applies?: true;
  /** The finalizer's writer is one of its program names, or the catalogue knows the finalizer and the workload. */
  isIdentified?: true;
  /** What it writes to the status about a failure. */
  complaint?: (message: string, at: string) => JsonObject;
  /** Which objects it lets go without a word to what is outside of the cluster. */
  letsGo?: (object: JsonObject) => boolean;
  /** What its maker installs beside it: innocent. */
  parts?: readonly OperatorOptions[];
}

const ALL = [...READ, 'create', 'update', 'patch', 'delete'];
const STATUS = ['get', 'update', 'patch'];

/** As controller-gen writes them from the markers of a controller. */
const scaffolded = (group: string, plural: string): JsonObject[] => [
  rule(group, [plural], ALL),
  rule(group, [`${plural}/finalizers`], ['update']),
  rule(group, [`${plural}/status`], STATUS),
  rule('', ['events'], ['create', 'patch']),
  rule('apps', ['deployments'], ALL),
];

/** As operators without code have them. */
const inOneRule = (group: string, plural: string): JsonObject[] => [
  rule(group, [plural, `${plural}/status`, `${plural}/finalizers`], ALL),
  rule('', ['secrets', 'pods', 'services', 'configmaps'], ALL),
  rule('apps', ['deployments', 'statefulsets'], ALL),
];

const manager = (more: JsonObject = {}): JsonObject => ({
  name: 'manager',
  image: 'example.com/controller:latest',
  command: ['/manager'],
  args: ['--leader-elect', '--health-probe-bind-address=:8081'],
  resources: {},
  ...more,
});

const PROXY: JsonObject = {
  name: 'kube-rbac-proxy',
  image: 'gcr.io/kubebuilder/kube-rbac-proxy:v0.13.1',
  args: ['--secure-listen-address=0.0.0.0:8443', '--upstream=http://127.0.0.1:8080/', '--v=0'],
  resources: {},
};

/** A project of `kubebuilder init` or `operator-sdk init`. */
const project = (
  name: string,
  more: Omit<Install, 'namespace' | 'name' | 'selector' | 'role'>,
) => ({
  ...{ namespace: `${name}-system`, name: `${name}-controller-manager` },
  ...{ selector: { 'control-plane': 'controller-manager' }, role: `${name}-manager-role` },
  ...more,
});

const GENERATED = { annotations: { 'controller-gen.kubebuilder.io/version': 'v0.16.4' } };

/** What a chart of Helm sets on everything, its types as well. */
const chart = (name: string, part = name): JsonObject => ({
  'app.kubernetes.io/name': part,
  'app.kubernetes.io/instance': name,
  'app.kubernetes.io/managed-by': 'Helm',
  'helm.sh/chart': `${name}-1.0.0`,
});

const selected = (name: string, part = name): JsonObject => ({
  'app.kubernetes.io/name': part,
  'app.kubernetes.io/instance': name,
});

const released = (name: string, namespace = name): JsonObject => ({
  labels: chart(name),
  annotations: {
    'meta.helm.sh/release-name': name,
    'meta.helm.sh/release-namespace': namespace,
  },
});

const container = (name: string, image: string, more: JsonObject = {}): JsonObject => ({
  ...{ name, image: `example.com/${image}`, resources: {} },
  ...more,
});

const condition =
  (type: string, status: string, reason: string) =>
  (message: string, at: string): JsonObject => ({
    conditions: [{ type, status, reason, message, lastTransitionTime: at }],
  });

const FLUX = 'toolkit.fluxcd.io';

/** One of the controllers of Flux. */
const flux = (name: string, group: string, kind: string): Install => ({
  title: `Flux's ${name}`,
  ...{ group, version: group.startsWith('helm') ? 'v2' : 'v1', kind },
  type: {
    labels: { 'app.kubernetes.io/part-of': 'flux', 'app.kubernetes.io/instance': 'flux-system' },
  },
  spec: { interval: '10m', serviceAccountName: 'deployer' },
  ...{ namespace: 'flux-system', name, selector: { app: name } },
  labels: {
    'app.kubernetes.io/part-of': 'flux',
    'app.kubernetes.io/component': name,
    'control-plane': 'controller',
  },
  containers: [
    container('manager', `fluxcd/${name}:v1.1.0`, {
      args: ['--watch-all-namespaces=true', '--enable-leader-election'],
    }),
  ],
  role: `crd-controller-flux-system-${name}`,
  // The default installation makes it cluster-admin besides.
  rules: [rule(`source.${FLUX}`, ['*'], ['*']), rule(group, ['*'], ['*']), rule('*', ['*'], ['*'])],
  lease: `${name}-leader-election`,
  ...{ finalizer: 'finalizers.fluxcd.io', writer: name, isIdentified: true },
  // A suspended object is let go without a clean-up (reconcileDelete and finalize of these controllers).
  letsGo: (object) => valueAt(object, 'spec', 'suspend') === true,
  complaint: condition('Ready', 'False', 'UninstallFailed'),
  parts: [
    {
      ...{ name: 'source-controller', namespace: 'flux-system', metadata: {} },
      rules: [rule(`source.${FLUX}`, ['*'], ['*']), rule(group, ['*'], ['*'])],
    },
  ],
});

const ESO = 'external-secrets.io';
const STORES = [
  'externalsecrets',
  'clusterexternalsecrets',
  'pushsecrets',
  'secretstores',
  'clustersecretstores',
];
const KAFKA = 'kafka.strimzi.io';
const S3 = 's3.aws.m.upbound.io';
const BUCKETS = ['buckets', 'buckets/status', 'buckets/finalizers'];

export const INSTALLS = {
  'kubebuilder-v4': project('memcached', {
    title: 'an operator made with kubebuilder',
    ...{ group: 'cache.acme.dev', version: 'v1alpha1', kind: 'Memcached', type: GENERATED },
    spec: { size: 1 },
    labels: { 'app.kubernetes.io/name': 'memcached', 'app.kubernetes.io/managed-by': 'kustomize' },
    containers: [manager()],
    rules: scaffolded('cache.acme.dev', 'memcacheds'),
    ...{ lease: '4c1d3f0a.acme.dev', finalizer: 'cache.acme.dev/finalizer', writer: 'manager' },
  }),
  'kubebuilder-v3': project('storefront', {
    title: 'an operator made with an older kubebuilder',
    ...{ group: 'shop.corp.io', version: 'v1', kind: 'Storefront', type: GENERATED },
    containers: [
      PROXY,
      manager({ args: ['--leader-elect', '--metrics-bind-address=127.0.0.1:8080'] }),
    ],
    rules: scaffolded('shop.corp.io', 'storefronts'),
    ...{ lease: '80807133.corp.io', finalizer: 'storefront.shop.corp.io', writer: 'manager' },
  }),
  'operator-sdk': project('ledger', {
    title: 'an operator made with the Operator SDK, whose finalizer has no domain',
    ...{ group: 'finance.example.org', version: 'v1beta1', kind: 'Ledger', type: GENERATED },
    containers: [PROXY, manager()],
    rules: scaffolded('finance.example.org', 'ledgers'),
    ...{ lease: '86f835c3.example.org', finalizer: 'ledgerFinalizer', writer: 'manager' },
  }),
  'helm-operator': project('nginx-operator', {
    title: 'a Helm operator',
    ...{ group: 'demo.acme.dev', version: 'v1alpha1', kind: 'Nginx', type: {} },
    containers: [
      manager({
        command: [],
        image: 'example.com/nginx-operator:v0.0.1',
        args: ['--leader-elect', '--leader-election-id=nginx-operator'],
      }),
    ],
    rules: inOneRule('demo.acme.dev', 'nginxs'),
    ...{ lease: 'nginx-operator', writer: 'helm-operator' },
    finalizer: 'helm.sdk.operatorframework.io/uninstall-release',
    complaint: condition('ReleaseFailed', 'True', 'UninstallError'),
  }),
  'ansible-operator': project('wiki-operator', {
    title: 'an Ansible operator',
    ...{ group: 'ansible.acme.dev', version: 'v1', kind: 'Wiki', type: {} },
    containers: [
      manager({
        command: [],
        image: 'example.com/wiki-operator:v0.0.1',
        args: ['--leader-elect', '--leader-election-id=wiki-operator'],
      }),
    ],
    rules: inOneRule('ansible.acme.dev', 'wikis'),
    ...{
      lease: 'wiki-operator',
      finalizer: 'ansible.acme.dev/finalizer',
      writer: 'ansible-operator',
    },
    complaint: (message, at) => ({
      conditions: [
        {
          type: 'Running',
          status: 'True',
          reason: 'Running',
          message: 'Running reconciliation',
          lastTransitionTime: at,
        },
        { type: 'Failure', status: 'True', reason: 'Failed', message, lastTransitionTime: at },
      ],
    }),
  }),
  kopf: {
    title: 'an operator made with kopf',
    ...{ group: 'previews.acme.dev', version: 'v1', kind: 'PreviewApp', type: {} },
    ...{ namespace: 'preview-operator', name: 'preview-operator', account: 'preview-operator' },
    selector: { application: 'preview-operator' },
    containers: [
      container('operator', 'preview-operator:1', {
        command: ['kopf', 'run', '--all-namespaces', '/src/handlers.py'],
      }),
    ],
    role: 'preview-operator-cluster',
    rules: [
      rule('apiextensions.k8s.io', ['customresourcedefinitions'], ['list', 'watch']),
      rule('', ['namespaces'], ['list', 'watch']),
      rule('previews.acme.dev', ['previewapps'], ['list', 'watch', 'patch']),
      rule('', ['events'], ['create']),
      rule('batch', ['jobs'], ['create']),
    ],
    ...{ finalizer: 'kopf.zalando.org/KopfFinalizerMarker', writer: 'kopf' },
  },
  'josdk-v4': {
    title: 'an operator made with the Java Operator SDK 4',
    ...{ group: 'sample.javaoperatorsdk', version: 'v1', kind: 'WebPage', type: {} },
    ...{
      namespace: 'webpage-operator',
      name: 'webpage-operator',
      selector: { app: 'webpage-operator' },
    },
    containers: [container('operator', 'webpage-operator:1.0')],
    role: 'webpage-operator',
    rules: inOneRule('sample.javaoperatorsdk', 'webpages'),
    finalizer: 'webpages.sample.javaoperatorsdk/finalizer',
    writer: 'fabric8-kubernetes-client',
  },
  'josdk-v5': {
    title: 'an operator made with the Java Operator SDK 5, which applies',
    ...{ group: 'sites.acme.dev', version: 'v1', kind: 'StaticSite', type: {} },
    ...{ namespace: 'sites', name: 'site-operator', selector: selected('site-operator') },
    labels: { 'app.kubernetes.io/managed-by': 'quarkus' },
    containers: [container('site-operator', 'site-operator:1.0')],
    role: 'site-operator',
    rules: inOneRule('sites.acme.dev', 'staticsites'),
    ...{
      finalizer: 'staticsites.sites.acme.dev/finalizer',
      writer: 'staticsitereconciler',
      applies: true,
    },
  },
  'kube-rs': {
    title: 'a controller made with kube-rs',
    ...{ group: 'docs.acme.rs', version: 'v1', kind: 'Document', type: {} },
    ...{ namespace: 'documents', name: 'doc-controller', selector: { app: 'doc-controller' } },
    containers: [container('doc-controller', 'doc-controller:0.16.0')],
    role: 'doc-controller',
    rules: [
      rule('docs.acme.rs', ['documents', 'documents/status'], FULL),
      rule('events.k8s.io', ['events'], ['create', 'patch']),
    ],
    finalizer: 'documents.docs.acme.rs',
    ...{ writer: 'unknown', statusWriter: 'cntrlr' },
  },
  'client-go': {
    title: 'a controller made with client-go, without leader election',
    ...{ group: 'dns.corp.example', version: 'v1', kind: 'DnsZone', type: {} },
    ...{
      namespace: 'infra',
      name: 'dns-zone-controller',
      selector: { app: 'dns-zone-controller' },
    },
    containers: [
      container('controller', 'dns-zone-controller:1.4', { command: ['/dns-zone-controller'] }),
    ],
    role: 'dns-zone-controller',
    rules: [
      rule('dns.corp.example', ['dnszones'], FULL),
      rule('dns.corp.example', ['dnszones/status'], ['update']),
      rule('', ['events'], ['create', 'patch']),
    ],
    ...{ finalizer: 'dns.corp.example/zone', writer: 'dns-zone-controller', isIdentified: true },
  },
  'cert-manager': {
    title: 'cert-manager',
    ...{
      group: 'acme.cert-manager.io',
      version: 'v1',
      kind: 'Challenge',
      type: released('cert-manager'),
    },
    spec: { type: 'DNS-01', dnsName: 'preview.example.com' },
    ...{ namespace: 'cert-manager', name: 'cert-manager', selector: selected('cert-manager') },
    labels: {
      ...chart('cert-manager'),
      app: 'cert-manager',
      'app.kubernetes.io/component': 'controller',
    },
    containers: [
      container('cert-manager-controller', 'jetstack/cert-manager-controller:v1.16.1', {
        args: [
          '--v=2',
          '--cluster-resource-namespace=$(POD_NAMESPACE)',
          '--leader-election-namespace=kube-system',
        ],
      }),
    ],
    role: 'cert-manager-controller-challenges',
    rules: [
      rule('acme.cert-manager.io', ['challenges', 'challenges/status'], ['update', 'patch']),
      rule('acme.cert-manager.io', ['challenges'], READ),
      rule('acme.cert-manager.io', ['challenges/finalizers'], ['update']),
      rule('cert-manager.io', ['issuers', 'clusterissuers'], READ),
      rule('', ['secrets'], READ),
      rule('', ['pods', 'services'], [...READ, 'create', 'delete']),
    ],
    ...{
      lease: 'kube-system/cert-manager-controller',
      finalizer: 'acme.cert-manager.io/finalizer',
    },
    ...{ writer: 'cert-manager-challenges', isIdentified: true },
    complaint: (reason) => ({ presented: true, processing: true, state: 'pending', reason }),
    parts: [
      {
        ...{
          name: 'cert-manager-cainjector',
          namespace: 'cert-manager',
          metadata: { labels: chart('cert-manager', 'cainjector') },
        },
        rules: [
          rule('cert-manager.io', ['certificates'], READ),
          rule('admissionregistration.k8s.io', ['validatingwebhookconfigurations'], FULL),
          rule('apiextensions.k8s.io', ['customresourcedefinitions'], FULL),
        ],
      },
    ],
  },
  'external-secrets': {
    title: 'External Secrets',
    ...{ group: ESO, version: 'v1alpha1', kind: 'PushSecret', type: released('external-secrets') },
    spec: { deletionPolicy: 'Delete', secretStoreRefs: [{ name: 'vault', kind: 'SecretStore' }] },
    ...{
      namespace: 'external-secrets',
      name: 'external-secrets',
      selector: selected('external-secrets'),
    },
    labels: chart('external-secrets'),
    containers: [
      container('external-secrets', 'external-secrets/external-secrets:v0.10.5', {
        args: ['--concurrent=1', '--metrics-addr=:8080'],
      }),
    ],
    role: 'external-secrets-controller',
    rules: [
      rule(ESO, STORES, READ),
      rule(
        ESO,
        STORES.flatMap((one) => [one, `${one}/status`, `${one}/finalizers`]),
        ['get', 'update', 'patch'],
      ),
      rule('', ['serviceaccounts', 'namespaces'], READ),
      rule('', ['secrets'], ALL),
      rule('', ['serviceaccounts/token'], ['create']),
    ],
    finalizer: 'pushsecret.externalsecrets.io/finalizer',
    ...{ writer: 'external-secrets', isIdentified: true },
    complaint: condition('Ready', 'False', 'Errored'),
    parts: [
      {
        ...{ name: 'external-secrets-cert-controller', namespace: 'external-secrets' },
        metadata: { labels: chart('external-secrets', 'external-secrets-cert-controller') },
        rules: [
          rule('apiextensions.k8s.io', ['customresourcedefinitions'], FULL),
          rule('', ['secrets'], FULL),
        ],
      },
    ],
  },
  strimzi: {
    title: "Strimzi's topic operator, beside its cluster operator",
    ...{
      group: KAFKA,
      version: 'v1beta2',
      kind: 'KafkaTopic',
      type: { labels: { app: 'strimzi', 'strimzi.io/crd-install': 'true' } },
    },
    ...{
      namespace: 'kafka',
      name: 'my-cluster-entity-operator',
      selector: { 'strimzi.io/name': 'my-cluster-entity-operator' },
    },
    labels: {
      'app.kubernetes.io/managed-by': 'strimzi-cluster-operator',
      'strimzi.io/cluster': 'my-cluster',
    },
    containers: [
      container('topic-operator', 'strimzi/operator:0.44.0'),
      container('user-operator', 'strimzi/operator:0.44.0'),
    ],
    role: 'strimzi-entity-operator',
    rules: [
      rule(KAFKA, ['kafkatopics', 'kafkausers'], ALL),
      rule(KAFKA, ['kafkatopics/status', 'kafkausers/status'], STATUS),
      rule('', ['secrets'], ALL),
    ],
    ...{ finalizer: 'strimzi.io/topic-operator', writer: 'strimzi-topic-operator' },
    complaint: condition('Ready', 'False', 'KafkaError'),
    parts: [
      {
        ...{
          name: 'strimzi-cluster-operator',
          namespace: 'strimzi',
          metadata: { labels: { app: 'strimzi' } },
        },
        rules: [
          rule(
            KAFKA,
            ['kafkas', 'kafkanodepools', 'kafkaconnects', 'kafkas/status', 'kafkas/finalizers'],
            ALL,
          ),
          // It may grant only what it may do itself.
          rule(KAFKA, ['kafkatopics', 'kafkausers'], ALL),
          rule(KAFKA, ['kafkatopics/status', 'kafkausers/status'], STATUS),
          rule('apps', ['deployments', 'statefulsets'], ALL),
        ],
      },
    ],
  },
  cnpg: {
    title: 'CloudNativePG',
    ...{ group: 'postgresql.cnpg.io', version: 'v1', kind: 'Database', type: GENERATED },
    spec: { name: 'app', databaseReclaimPolicy: 'delete', cluster: { name: 'main' } },
    ...{ namespace: 'cnpg-system', name: 'cnpg-controller-manager', account: 'cnpg-manager' },
    selector: { 'app.kubernetes.io/name': 'cloudnative-pg' },
    containers: [manager({ args: ['controller', '--leader-elect', '--webhook-port=9443'] })],
    role: 'cnpg-manager',
    rules: [
      rule('postgresql.cnpg.io', ['backups', 'clusters', 'databases', 'poolers'], ALL),
      rule('postgresql.cnpg.io', ['backups/status', 'databases/status', 'clusters/status'], STATUS),
      rule('postgresql.cnpg.io', ['clusters/finalizers', 'poolers/finalizers'], ['update']),
      rule('', ['configmaps', 'secrets', 'services'], ALL),
      rule('apps', ['deployments'], ALL),
    ],
    ...{ lease: 'db9c8771.cnpg.io', finalizer: 'cnpg.io/deleteDatabase', writer: 'manager' },
  },
  argocd: {
    title: 'Argo CD',
    ...{ group: 'argoproj.io', version: 'v1alpha1', kind: 'Application' },
    type: {
      labels: {
        'app.kubernetes.io/part-of': 'argocd',
        'app.kubernetes.io/name': 'applications.argoproj.io',
      },
    },
    spec: {
      project: 'default',
      destination: { server: 'https://kubernetes.default.svc', namespace: 'web' },
    },
    ...{ namespace: 'argocd', name: 'argocd-application-controller', workload: 'StatefulSet' },
    selector: { 'app.kubernetes.io/name': 'argocd-application-controller' },
    labels: {
      'app.kubernetes.io/component': 'application-controller',
      'app.kubernetes.io/part-of': 'argocd',
    },
    containers: [
      container('argocd-application-controller', 'argoproj/argocd:v2.13.1', {
        args: ['/usr/local/bin/argocd-application-controller'],
      }),
    ],
    role: 'argocd-application-controller',
    rules: [rule('*', ['*'], ['*'])],
    finalizer: 'resources-finalizer.argocd.argoproj.io',
    ...{
      writer: 'kubectl-client-side-apply',
      statusWriter: 'argocd-application-controller',
      isIdentified: true,
    },
    complaint: (message, lastTransitionTime) => ({
      conditions: [{ type: 'DeletionError', message, lastTransitionTime }],
    }),
    parts: [
      {
        ...{ name: 'argocd-server', namespace: 'argocd' },
        metadata: { labels: { 'app.kubernetes.io/part-of': 'argocd' } },
        rules: [
          rule('*', ['*'], ['get', 'patch', 'delete']),
          rule('argoproj.io', ['applications'], ALL),
        ],
      },
    ],
  },
  'flux-helm': flux('helm-controller', `helm.${FLUX}`, 'HelmRelease'),
  'flux-kustomize': flux('kustomize-controller', `kustomize.${FLUX}`, 'Kustomization'),
  keda: {
    title: 'KEDA',
    ...{ group: 'keda.sh', version: 'v1alpha1', kind: 'ScaledObject', type: released('keda') },
    spec: { scaleTargetRef: { name: 'web' } },
    ...{ namespace: 'keda', name: 'keda-operator', selector: { app: 'keda-operator' } },
    labels: {
      ...chart('keda'),
      'app.kubernetes.io/name': 'keda-operator',
      'app.kubernetes.io/part-of': 'keda-operator',
    },
    containers: [
      container('keda-operator', 'kedacore/keda:2.16.0', {
        command: ['/keda'],
        args: ['--leader-elect', '--zap-log-level=info'],
      }),
    ],
    role: 'keda-operator',
    rules: [
      rule('keda.sh', ['scaledobjects', 'scaledobjects/finalizers', 'scaledobjects/status'], ['*']),
      rule('autoscaling', ['horizontalpodautoscalers'], ['*']),
      rule('*', ['*'], ['get']),
    ],
    ...{
      lease: 'operator.keda.sh',
      finalizer: 'finalizer.keda.sh',
      writer: 'keda',
      isIdentified: true,
    },
    parts: [
      {
        ...{ name: 'keda-operator-metrics-apiserver', namespace: 'keda' },
        metadata: { labels: { 'app.kubernetes.io/part-of': 'keda-operator' } },
        rules: [rule('keda.sh', ['scaledobjects'], READ)],
      },
    ],
  },
  'aws-load-balancer': {
    title: 'the AWS Load Balancer Controller',
    ...{ group: '', version: 'v1', kind: 'Service', type: false },
    ...{ namespace: 'kube-system', name: 'aws-load-balancer-controller' },
    ...{
      selector: selected('aws-load-balancer-controller'),
      labels: chart('aws-load-balancer-controller'),
    },
    containers: [
      container('aws-load-balancer-controller', 'eks/aws-load-balancer-controller:v2.10.0', {
        args: ['--cluster-name=preview', '--ingress-class=alb'],
      }),
    ],
    role: 'aws-load-balancer-controller-role',
    rules: [
      rule('elbv2.k8s.aws', ['targetgroupbindings'], ALL),
      rule('', ['services', 'ingresses'], FULL),
      rule('', ['services/status', 'pods/status'], ['update', 'patch']),
      rule('', ['events'], ['create', 'patch']),
    ],
    lease: 'aws-load-balancer-controller-leader',
    ...{ finalizer: 'service.k8s.aws/resources', writer: 'controller', isIdentified: true },
  },
  rabbitmq: {
    title: "RabbitMQ's topology operator",
    ...{ group: 'rabbitmq.com', version: 'v1beta1', kind: 'Queue' },
    type: {
      ...GENERATED,
      labels: {
        'app.kubernetes.io/name': 'messaging-topology-operator',
        'app.kubernetes.io/part-of': 'rabbitmq',
      },
    },
    spec: { name: 'orders', rabbitmqClusterReference: { name: 'rabbit' } },
    ...{ namespace: 'rabbitmq-system', name: 'messaging-topology-operator' },
    selector: { 'app.kubernetes.io/name': 'messaging-topology-operator' },
    labels: {
      'app.kubernetes.io/component': 'rabbitmq-operator',
      'app.kubernetes.io/part-of': 'rabbitmq',
    },
    containers: [
      manager({
        args: [],
        image: 'example.com/rabbitmqoperator/messaging-topology-operator:1.15.0',
      }),
    ],
    role: 'messaging-topology-manager-role',
    rules: [
      ...['queues', 'exchanges', 'users', 'vhosts'].flatMap((one) =>
        scaffolded('rabbitmq.com', one).slice(0, 3),
      ),
      rule('rabbitmq.com', ['rabbitmqclusters'], READ),
      rule('', ['secrets'], ['create', ...READ]),
    ],
    lease: 'messaging-topology-operator-leader-election',
    ...{ finalizer: 'deletion.finalizers.queues.rabbitmq.com', writer: 'manager' },
    isIdentified: true,
    parts: [
      {
        ...{ name: 'rabbitmq-cluster-operator', namespace: 'rabbitmq-system' },
        metadata: { labels: { 'app.kubernetes.io/part-of': 'rabbitmq' } },
        rules: [
          rule(
            'rabbitmq.com',
            ['rabbitmqclusters', 'rabbitmqclusters/status', 'rabbitmqclusters/finalizers'],
            ALL,
          ),
        ],
      },
    ],
  },
  crossplane: {
    title: 'a provider of Crossplane, beside Crossplane, which may change what it composes',
    ...{ group: S3, version: 'v1beta1', kind: 'Bucket', type: { labels: { provider: 'aws' } } },
    spec: { forProvider: { region: 'eu-central-1' }, providerConfigRef: { name: 'default' } },
    ...{ namespace: 'crossplane-system', name: 'provider-aws-s3-5c1c2f0e9d37' },
    selector: { 'pkg.crossplane.io/revision': 'provider-aws-s3-5c1c2f0e9d37' },
    labels: { 'pkg.crossplane.io/provider': 'provider-aws-s3' },
    containers: [
      container('package-runtime', 'upbound/provider-aws-s3:v2.0.0', { args: ['--debug'] }),
    ],
    role: 'crossplane:provider:provider-aws-s3-5c1c2f0e9d37:system',
    rules: [
      rule(S3, BUCKETS, [...FULL, 'create']),
      rule('', ['secrets', 'configmaps', 'events'], ['*']),
    ],
    lease: 'crossplane-leader-election-provider-aws-s3',
    ...{ finalizer: 'finalizer.managedresource.crossplane.io', writer: 'provider' },
    complaint: condition('Synced', 'False', 'ReconcileError'),
    letsGo: (bucket) => {
      const policies = stringsAt(bucket, 'spec', 'managementPolicies');
      return policies.length > 0 && !policies.includes('*') && !policies.includes('Delete');
    },
    parts: [
      {
        ...{
          name: 'crossplane',
          namespace: 'crossplane-system',
          metadata: { labels: chart('crossplane') },
        },
        rules: [
          rule('apiextensions.crossplane.io', ['*'], ['*']),
          rule('pkg.crossplane.io', ['*'], ['*']),
          rule(S3, BUCKETS, ['*']),
        ],
      },
    ],
  },
} satisfies Record<string, Install>;

export type InstallName = keyof typeof INSTALLS;

/** What most clusters run, with its usual rights: never a suspect. */
export const COMPANY: readonly OperatorOptions[] = [
  {
    ...{ name: 'argocd-application-controller', namespace: 'argocd', workload: 'StatefulSet' },
    rules: [rule('*', ['*'], ['*'])],
  },
  { name: 'kyverno-background-controller', namespace: 'kyverno', rules: [rule('*', ['*'], FULL)] },
  {
    ...{ name: 'prometheus-k8s', namespace: 'monitoring', workload: 'StatefulSet' },
    rules: [rule('*', ['*'], READ)],
  },
  { name: 'velero', namespace: 'velero', role: 'cluster-admin' },
];

/** The object as people create it. */
export function everydayObject(install: Install, namespace: string, name: string): JsonObject {
  const { group, version, kind, spec } = install;
  if (group === '') {
    return service(namespace, name, {
      type: 'LoadBalancer',
      loadBalancerClass: 'service.k8s.aws/nlb',
    });
  }
  const object = customObject(`${group}/${version}`, kind, namespace, name);
  return spec === undefined ? object : { ...object, spec };
}

/** The workload as its manifest has it. */
export function everydayWorkload(install: Install, namespace: string): JsonObject {
  const { name, selector, labels = {}, containers } = install;
  const isStateful = install.workload === 'StatefulSet';
  return {
    apiVersion: 'apps/v1',
    kind: install.workload ?? 'Deployment',
    metadata: { namespace, name, labels: { ...labels, ...selector } },
    spec: {
      replicas: 1,
      ...(isStateful ? { serviceName: name } : {}),
      selector: { matchLabels: selector },
      template: {
        metadata: { labels: selector },
        spec: { ...podSpec(install.account ?? name), containers },
      },
    },
  };
}
