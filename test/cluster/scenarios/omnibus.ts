import type { JsonObject } from '../../../src/base/json.ts';
import { byService, policyRef, refusesDeletion, webhookRef } from '../admission.ts';
import { configMap, secret, service } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import type { World } from '../world.ts';
import { CONTENT_FAILURE, configMapRef, ref, stuck } from './links.ts';
import { guardedRef, HANGS, situation } from './situation.ts';

/**
 * Many questions asked of one real API server at once: each is about an object of a type of its own, so that the
 * answer to one does not hide another.
 */

/** A webhook without a backend, which refuses whatever it is asked about. */
interface Question {
  type: string;
  spec?: JsonObject;
  more?: JsonObject;
  labels?: Record<string, string>;
  mutating?: true;
  rule?: JsonObject;
  namespaces?: JsonObject;
  objects?: JsonObject;
  webhook?: JsonObject;
  asked: 'yes' | 'no';
}

const TEMPLATE = {
  metadata: { labels: { app: 'none' } },
  spec: { containers: [{ name: 'c', image: 'none.example/none' }] },
};
const SELECTOR = { matchLabels: { app: 'none' } };

/** The rule is DELETE of the type in any version and scope, unless it says otherwise. */
const QUESTIONS: readonly Question[] = [
  // Which namespaces.
  {
    type: 'v1 LimitRange',
    spec: { limits: [] },
    namespaces: { key: 'tier', operator: 'NotIn', values: ['live', 'test'] },
    asked: 'yes',
  },
  {
    type: 'v1 ResourceQuota',
    spec: {},
    namespaces: { key: 'team', operator: 'DoesNotExist' },
    asked: 'yes',
  },
  {
    type: 'networking.k8s.io/v1 NetworkPolicy',
    spec: { podSelector: {} },
    namespaces: { key: 'tier', operator: 'In', values: ['live', 'test'] },
    asked: 'no',
  },
  {
    type: 'apps/v1 StatefulSet',
    spec: { replicas: 0, selector: SELECTOR, template: TEMPLATE, serviceName: 'none' },
    namespaces: { key: 'team', operator: 'Exists' },
    asked: 'no',
  },
  {
    type: 'v1 Namespace',
    rule: { operations: ['DELETE', 'UPDATE'], resources: ['namespaces', 'namespaces/finalize'] },
    namespaces: { key: 'tier', operator: 'In', values: ['live'] },
    asked: 'no',
  },
  // Which objects.
  {
    type: 'networking.k8s.io/v1 Ingress',
    spec: { defaultBackend: { service: { name: 'web', port: { number: 80 } } } },
    labels: { keep: 'yes' },
    objects: { matchLabels: { keep: 'yes' } },
    asked: 'yes',
  },
  {
    type: 'coordination.k8s.io/v1 Lease',
    spec: {},
    labels: { keep: 'no' },
    objects: { matchLabels: { keep: 'yes' } },
    asked: 'no',
  },
  {
    type: 'apps/v1 ControllerRevision',
    more: { revision: 1, data: { none: 1 } },
    labels: { keep: 'yes' },
    objects: { matchExpressions: [{ key: 'keep', operator: 'DoesNotExist' }] },
    // The controller of the StatefulSet makes one without the label.
    asked: 'yes',
  },
  // Which rule.
  { type: 'v1 Secret', rule: { scope: 'Cluster' }, asked: 'no' },
  {
    type: 'rbac.authorization.k8s.io/v1 Role',
    rule: { scope: 'Namespaced', apiVersions: ['v1'] },
    webhook: { matchPolicy: 'Exact' },
    asked: 'yes',
  },
  {
    type: 'policy/v1 PodDisruptionBudget',
    spec: { selector: SELECTOR },
    rule: { operations: ['*'] },
    asked: 'yes',
  },
  {
    type: 'apps/v1 Deployment',
    spec: { replicas: 0, selector: SELECTOR, template: TEMPLATE },
    rule: { operations: ['CREATE', 'CONNECT'] },
    asked: 'no',
  },
  {
    type: 'autoscaling/v2 HorizontalPodAutoscaler',
    spec: {
      maxReplicas: 2,
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'x' },
    },
    rule: { apiVersions: ['v1'] },
    webhook: { matchPolicy: 'Equivalent' },
    asked: 'yes',
  },
  {
    type: 'batch/v1 CronJob',
    spec: {
      schedule: '0 0 1 1 *',
      jobTemplate: { spec: { template: { spec: { ...TEMPLATE.spec, restartPolicy: 'Never' } } } },
    },
    rule: { apiVersions: ['v1beta1'] },
    webhook: { matchPolicy: 'Exact' },
    asked: 'no',
  },
  {
    type: 'v1 Service',
    spec: { ports: [{ port: 80 }] },
    rule: { resources: ['services/*'] },
    asked: 'yes',
  },
  {
    type: 'v1 PodTemplate',
    more: { template: TEMPLATE },
    rule: { resources: ['podtemplates/status'] },
    asked: 'no',
  },
  {
    type: 'storage.k8s.io/v1 CSIStorageCapacity',
    more: { storageClassName: 'none' },
    rule: { resources: ['*'], scope: 'Namespaced' },
    asked: 'yes',
  },
  {
    type: 'apps/v1 DaemonSet',
    spec: { selector: SELECTOR, template: TEMPLATE },
    rule: { apiGroups: [''] },
    asked: 'no',
  },
  // Whether it can refuse.
  {
    type: 'v1 ReplicationController',
    spec: { replicas: 0, selector: { app: 'none' }, template: TEMPLATE },
    webhook: { failurePolicy: 'Ignore' },
    asked: 'no',
  },
  {
    type: 'rbac.authorization.k8s.io/v1 RoleBinding',
    more: { roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'one' } },
    mutating: true,
    asked: 'yes',
  },
  {
    type: 'v1 Endpoints',
    webhook: {
      matchConditions: [{ name: 'jane', expression: "request.userInfo.username == 'jane'" }],
    },
    asked: 'no',
  },
];

const kindIn = (type: string): string => type.split(' ')[1] ?? '';
const groupIn = (type: string): string => (type.includes('/') ? (type.split('/')[0] ?? '') : '');
const plural = (kind: string): string =>
  `${kind.toLowerCase().replace(/y$/, 'ie').replace(/ss$/, 'sse').replace(/s$/, '')}s`;

const configurationOf = (world: World, { type, mutating }: Question) =>
  webhookRef(
    world,
    mutating ? 'MutatingWebhookConfiguration' : 'ValidatingWebhookConfiguration',
    `asks-${kindIn(type).toLowerCase()}`,
  );

async function createAsked(world: World, question: Question): Promise<void> {
  const { type, rule, namespaces, objects, webhook } = question;
  const { apiVersion, kind, name } = configurationOf(world, question);
  const own = { key: 'kubernetes.io/metadata.name', operator: 'In', values: [world.namespace] };
  await world.create({
    apiVersion,
    kind,
    metadata: { name },
    webhooks: [
      {
        name: `${kindIn(type).toLowerCase()}.${world.domain('example.com')}`,
        rules: [
          {
            operations: ['DELETE'],
            apiGroups: [groupIn(type)],
            apiVersions: ['*'],
            resources: [plural(kindIn(type))],
            ...rule,
          },
        ],
        namespaceSelector: { matchExpressions: [own, ...(namespaces ? [namespaces] : [])] },
        ...(objects && { objectSelector: objects }),
        clientConfig: byService(world.name('uninstalled'), 'guard'),
        failurePolicy: 'Fail',
        timeoutSeconds: 2,
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
        ...webhook,
      },
    ],
  });
}

const whichWebhooks: Scenario = {
  id: 'which-webhooks',
  title: 'many webhooks without a backend, of which only some are asked about a deletion',
  setUp: async (world) => {
    await world.createNamespace(world.namespace, { labels: { tier: 'preview' } });
    for (const { type, spec, more, labels } of QUESTIONS) {
      if (type === 'v1 Namespace') continue;
      const [apiVersion = ''] = type.split(' ');
      const metadata = { namespace: world.namespace, name: 'one', ...(labels && { labels }) };
      await world.create({
        apiVersion,
        kind: kindIn(type),
        metadata,
        ...(spec && { spec }),
        ...more,
      });
    }
    for (const question of QUESTIONS) await createAsked(world, question);
    await refusesDeletion(world, ref('v1', 'Service', world.namespace, 'one'));
    await refusesDeletion(
      world,
      ref('rbac.authorization.k8s.io/v1', 'RoleBinding', world.namespace, 'one'),
    );
  },
  settle: (world) => world.settled({ [CONTENT_FAILURE]: ['True', /service "guard" not found/] }),
  expect: (world) =>
    stuck(
      ...QUESTIONS.filter(({ asked }) => asked === 'yes').map((question) => [
        {
          code: 'admission-webhook-failing' as const,
          subject: configurationOf(world, question),
        },
      ]),
    ),
};

const POLICY = 'ValidatingAdmissionPolicy';

const JANE = "request.userInfo.username == 'jane'";

/** Policies that refuse every deletion of a ConfigMap that they are asked about, by what they differ in. */
const POLICIES: Record<
  string,
  {
    rule?: JsonObject;
    match?: JsonObject;
    binding?: JsonObject;
    actions?: string[];
    expression?: string;
  }
> = {
  'by-label': { match: { objectSelector: { matchLabels: { keep: 'yes' } } } },
  // Who deletes a collection names nothing.
  'by-name': { rule: { resourceNames: ['more', 'none'] } },
  elsewhere: {
    match: { namespaceSelector: { matchLabels: { tier: 'live' } } },
  },
  'bound-elsewhere': {
    binding: { namespaceSelector: { matchLabels: { tier: 'live' } } },
  },
  'of-labels': { match: { objectSelector: { matchLabels: { keep: 'never' } } } },
  audits: { actions: ['Audit', 'Warn'] },
  'of-protected': {
    expression: `!('protect' in oldObject.metadata.?labels.orValue({})) || ${JANE}`,
  },
  'another-namespace': { rule: { resources: ['namespaces'], resourceNames: ['another'] } },
  'audits-namespace': {
    rule: { resources: ['namespaces'], resourceNames: ['preview-which-policies'] },
    actions: ['Audit'],
  },
};

/** Some that refuse, and more that do not. */
const whichPolicies: Scenario = {
  id: 'which-policies',
  title: 'many policies that refuse deletions, of which only one is asked about an object here',
  setUp: async (world) => {
    await world.createNamespace(world.namespace, { labels: { tier: 'preview' } });
    await world.createAll([
      configMap(world.namespace, 'any'),
      configMap(world.namespace, 'kept', { labels: { keep: 'yes' } }),
      configMap(world.namespace, 'more'),
    ]);
    for (const [name, given] of Object.entries(POLICIES)) {
      const { rule, match, binding, actions, expression = JANE } = given;
      const { apiVersion, kind, name: own } = policyRef(world, name);
      const here = { matchLabels: { 'kubernetes.io/metadata.name': world.namespace } };
      const resourceRule = {
        operations: ['DELETE'],
        apiGroups: [''],
        apiVersions: ['v1'],
        resources: ['configmaps'],
        ...rule,
      };
      await world.create({
        apiVersion,
        kind,
        metadata: { name: own },
        spec: {
          matchConstraints: { resourceRules: [resourceRule], ...match },
          validations: [{ expression, message: `${name} says no` }],
        },
      });
      await world.create({
        apiVersion,
        kind: `${kind}Binding`,
        metadata: { name: own },
        spec: {
          policyName: own,
          validationActions: actions ?? ['Deny'],
          matchResources: { namespaceSelector: here, ...binding },
        },
      });
    }
    await refusesDeletion(world, configMapRef(world.namespace, 'kept'));
  },
  settle: (world) => world.settled({ [CONTENT_FAILURE]: ['True', /by-label says no/] }),
  expect: (world) =>
    stuck([
      {
        code: 'admission-denied',
        subject: policyRef(world, 'by-label'),
        says: [/by-label says no/],
      },
    ]),
  mayChange: (world) => [{ kind: `${POLICY}Binding`, name: policyRef(world, 'by-label').name }],
};

const HERE = 'by-selector';

/** Things that an owner may need or not, beside a widget that it holds. */
const manyReferences = situation({
  id: 'many-references',
  title: 'an object names much that is deleted with it, and more is named after it',
  behaviour: HANGS,
  spec: {
    credentials: { secretName: 'creds' },
    parentRef: { name: 'parent' },
    settingsRef: { kind: 'ConfigMap', name: 'settings' },
    poolRef: { kind: 'Widget', name: 'absent' },
    keyRef: { kind: 'Secret', name: 'key', namespace: 'default' },
    endpoint: 'https://store.preview-many-references.svc/bucket',
  },
  afterwards: async (world, operator) => {
    const { namespace } = world;
    const guarded = await world.client.get(guardedRef(world, operator));
    const { apiVersion, kind, metadata } = guarded;
    const owner = { apiVersion, kind, name: metadata.name, uid: String(metadata['uid']) };
    await world.create(secret(namespace, 'creds'));
    await world.create(service(namespace, 'store'));
    await world.create(configMap(namespace, 'settings', { labels: { of: HERE } }));
    // Named after it: somebody's input, what the owner made for it, and nothing of it.
    await world.create(secret(namespace, 'db-admin'));
    await world.create(secret(namespace, 'db-output', { ownerReferences: [owner] }));
    const made = { ...configMap(namespace, 'db-made'), data: { by: 'the owner' } };
    await world.create(made, { fieldManager: operator.manager });
    await world.create(secret(namespace, 'dbx'));
    const { apiVersion: api, kind: policy, name } = policyRef(world, HERE);
    await world.create({
      apiVersion: api,
      kind: policy,
      metadata: { name },
      spec: {
        paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
        matchConstraints: {
          resourceRules: [
            {
              operations: ['UPDATE'],
              apiGroups: [operator.group],
              apiVersions: ['*'],
              resources: ['widgets'],
            },
          ],
        },
        validations: [{ expression: "params.metadata.name != 'none'", message: 'not now' }],
      },
    });
    await world.create({
      apiVersion: api,
      kind: `${policy}Binding`,
      metadata: { name },
      spec: {
        policyName: name,
        validationActions: ['Deny'],
        paramRef: { selector: { matchLabels: { of: HERE } }, parameterNotFoundAction: 'Deny' },
        matchResources: {
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        },
      },
    });
  },
  owner: {
    code: 'owner-failing',
    certainty: ['likely'],
  },
  expect: () => ({ chains: 'any' }),
  beyondCommands: 'the controller hangs',
});

export const omnibus = [whichWebhooks, whichPolicies, manyReferences];
