import { type JsonObject, stringAt } from '../../../src/base/json.ts';
import {
  createPolicy,
  createWebhook,
  policyRef,
  refusesDeletion,
  webhookRef,
} from '../admission.ts';
import type { Scenario } from '../scenario.ts';
import { startWebhook } from '../servers/webhook.ts';
import { waitUntil } from '../wait-until.ts';
import { CONTENT_FAILURE, ref, stuck } from './links.ts';
import { liveWebhook } from './webhooks.ts';

/** Somebody is there, and says no. */

const RETENTION = 'ledgers are kept for ten years';

const deniedByWebhook: Scenario = {
  ...liveWebhook(
    'denied-by-webhook',
    'a live webhook says no to the deletion',
    { deny: RETENTION },
    new RegExp(RETENTION),
    (world) => ({
      code: 'admission-denied',
      subject: webhookRef(world),
      says: [new RegExp(RETENTION)],
    }),
  ),
};

/** The DELETE that somebody sent was refused, so the namespace is as alive as ever. */
const s50b: Scenario = {
  id: 'S50b',
  title: 'it is Active because a webhook refused its DELETE',
  setUp: async (world) => {
    const clientConfig = await startWebhook(world, () => ({ deny: 'ask the platform team' }));
    await world.createNamespace();
    await createWebhook(world, {
      operations: ['DELETE'],
      apiGroup: '',
      resource: 'namespaces',
      clientConfig,
    });
    const path = await world.client.pathOf(world.namespaceRef);
    await waitUntil('the webhook to refuse the DELETE', async () => {
      const dryRun = await world.client.call('DELETE', `${path}?dryRun=All`);
      return dryRun.status === 403;
    });
    const answer = await world.client.call('DELETE', path);
    if (!stringAt(answer.body, 'message')?.includes('platform team')) throw new Error(answer.text);
    // The namespace has to be taken away afterwards.
    world.atEnd(() => world.client.delete(webhookRef(world)));
  },
  delete: false,
  inputs: { timeout: '60s' },
  expect: () => ({
    outcome: 'not-terminating',
    also: ({ elapsedMs }) => {
      if (elapsedMs > 50_000) throw new Error(`waited ${elapsedMs} ms for what nobody started`);
    },
  }),
};

const TEMPLATE = {
  metadata: { labels: { app: 'none' } },
  spec: { containers: [{ name: 'c', image: 'none.example/none' }] },
};
const CONTROLLER = 'system:serviceaccount:kube-system:namespace-controller';
const USER = 'request.userInfo.username';
const GROUPS = 'request.userInfo.groups';

/**
 * Policies that deny everything that they are asked about, each about the one object of another type. By its match
 * condition (CEL) the real API server decides whether it is asked when the namespace controller deletes.
 */
const QUESTIONS: {
  type: string;
  spec?: JsonObject;
  more?: JsonObject;
  labels?: Record<string, string>;
  condition: string;
  /** It has no message of its own. */
  isSilent?: true;
  /** `no`: the namespace controller may delete the object, whatever the answer to a dry run of the gate is. */
  asked: 'yes' | 'no';
}[] = [
  // Who asks.
  {
    type: 'v1 LimitRange',
    spec: { limits: [] },
    condition: `${USER} == "${CONTROLLER}"`,
    asked: 'yes',
  },
  {
    type: 'v1 ResourceQuota',
    spec: {},
    condition: `${USER}.startsWith('system:serviceaccount:kube-system:') && ${USER}.endsWith('-controller')`,
    asked: 'yes',
  },
  {
    type: 'networking.k8s.io/v1 NetworkPolicy',
    spec: { podSelector: {} },
    condition: `${GROUPS}.exists(g, g == 'system:serviceaccounts:kube-system')`,
    asked: 'yes',
  },
  {
    type: 'networking.k8s.io/v1 Ingress',
    spec: { defaultBackend: { service: { name: 'web', port: { number: 80 } } } },
    condition: `${GROUPS}.all(g, g.startsWith('system:')) && ${USER}.contains('namespace')`,
    asked: 'yes',
  },
  {
    type: 'coordination.k8s.io/v1 Lease',
    spec: {},
    condition: `!('system:serviceaccounts' in ${GROUPS})`,
    asked: 'no',
  },
  { type: 'v1 Secret', condition: `${USER} != '${CONTROLLER}' || object != null`, asked: 'no' },
  { type: 'rbac.authorization.k8s.io/v1 Role', condition: `${USER}.matches('^jane')`, asked: 'no' },
  // What it is.
  {
    type: 'policy/v1 PodDisruptionBudget',
    spec: { selector: { matchLabels: { app: 'none' } } },
    labels: { keep: 'yes' },
    condition: `has(oldObject.metadata.labels) && 'keep' in oldObject.metadata.labels && oldObject.metadata.labels['keep'] == 'yes' && ${USER} in ['${CONTROLLER}', 'jane']`,
    asked: 'yes',
  },
  {
    type: 'apps/v1 Deployment',
    spec: {
      replicas: 0,
      selector: { matchLabels: { app: 'none' } },
      template: TEMPLATE,
    },
    labels: { tier: 'front' },
    condition: `oldObject.metadata.labels.tier == 'back' || ${USER} == 'jane'`,
    asked: 'no',
  },
  {
    type: 'autoscaling/v2 HorizontalPodAutoscaler',
    spec: {
      maxReplicas: 2,
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'x' },
    },
    condition: `oldObject.metadata.?labels['tier'].orValue('none') == 'none' && ${USER} != 'jane'`,
    asked: 'yes',
  },
  {
    type: 'batch/v1 CronJob',
    spec: {
      schedule: '0 0 1 1 *',
      jobTemplate: {
        spec: {
          template: { spec: { ...TEMPLATE.spec, restartPolicy: 'Never' } },
        },
      },
    },
    condition: `oldObject.metadata.?labels.orValue({})[?'tier'].orValue('') == 'front' && ${USER} != 'jane'`,
    asked: 'no',
  },
  // The request.
  {
    type: 'v1 Service',
    spec: { ports: [{ port: 80 }] },
    condition: `request.operation in ['DELETE'] && request.resource.resource == 'services' && !has(request.subResource) && !(${USER} in ['jane'])`,
    asked: 'yes',
  },
  {
    type: 'v1 ConfigMap',
    labels: { kept: 'yes' },
    condition: `request.namespace == 'another' && ${USER} != 'jane'`,
    asked: 'no',
  },
  {
    type: 'v1 Namespace',
    condition: `request.name == 'another' || ${USER} == 'jane'`,
    asked: 'no',
  },
  {
    type: 'rbac.authorization.k8s.io/v1 RoleBinding',
    more: { roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'one' } },
    condition: `${USER} == '${CONTROLLER}'`,
    isSilent: true,
    asked: 'yes',
  },
  // What only the API server can evaluate.
  {
    type: 'v1 Endpoints',
    condition: `${USER} == oldObject.metadata.uid`,
    asked: 'no',
  },
  {
    type: 'v1 ServiceAccount',
    condition: `${USER} == 'jane' && r'x' == 'x'`,
    asked: 'no',
  },
  {
    type: 'apps/v1 ControllerRevision',
    more: { revision: 1, data: { none: 1 } },
    condition: `${USER} in ['[', ']']`,
    asked: 'no',
  },
  {
    type: 'v1 ReplicationController',
    spec: { replicas: 0, selector: { app: 'none' }, template: TEMPLATE },
    condition: `oldObject.spec.selector.app.startsWith(${USER})`,
    asked: 'no',
  },
  {
    type: 'v1 PodTemplate',
    more: { template: TEMPLATE },
    condition: `${USER}.endsWith(oldObject.template.metadata.labels.app)`,
    asked: 'no',
  },
  {
    type: 'apps/v1 StatefulSet',
    spec: {
      ...{ replicas: 0, template: TEMPLATE, serviceName: 'none' },
      selector: { matchLabels: { app: 'none' } },
    },
    labels: { tier: 'front' },
    condition: `oldObject.metadata.labels.exists(key, key == 'none') && ${USER} != 'jane'`,
    asked: 'no',
  },
  {
    type: 'apps/v1 DaemonSet',
    spec: { selector: { matchLabels: { app: 'none' } }, template: TEMPLATE },
    labels: { tier: 'front' },
    condition: `oldObject.metadata.labels[?oldObject.metadata.uid].orValue('none') != 'none' && ${USER} != 'jane'`,
    asked: 'no',
  },
  {
    type: 'storage.k8s.io/v1 CSIStorageCapacity',
    more: { storageClassName: 'none' },
    condition: `oldObject.metadata.?annotations[?'team'].orValue('none') != 'none' && ${USER} != 'jane'`,
    asked: 'no',
  },
];

const policyName = (type: string): string => `keeps-${kindIn(type).toLowerCase()}`;
const kindIn = (type: string): string => type.split(' ')[1] ?? '';
const plural = (kind: string): string =>
  `${kind.toLowerCase().replace(/y$/, 'ie').replace(/ss$/, 'sse').replace(/s$/, '')}s`;
const groupIn = (type: string): string => (type.includes('/') ? (type.split('/')[0] ?? '') : '');

/** It is asked of the API server itself who is refused: only those are in the condition of the namespace. */
const whoIsAsked: Scenario = {
  id: 'who-is-asked',
  title: 'many policies, of which only some are asked when the namespace controller deletes',
  setUp: async (world) => {
    await world.createNamespace();
    for (const { type, spec, more, labels, condition, isSilent } of QUESTIONS) {
      const [apiVersion = ''] = type.split(' ');
      const kind = kindIn(type);
      const metadata = { namespace: world.namespace, name: 'one', ...(labels && { labels }) };
      if (kind !== 'Namespace') {
        await world.create({ apiVersion, kind, metadata, ...(spec && { spec }), ...more });
      }
      await createPolicy(world, {
        name: policyName(type),
        operations: ['DELETE'],
        apiGroup: groupIn(type),
        resource: plural(kind),
        expression: 'false',
        ...(isSilent ? {} : { message: `${kind} stays` }),
        condition,
      });
    }
    await refusesDeletion(world, ref('v1', 'Service', world.namespace, 'one'));
  },
  settle: (world) => world.settled({ [CONTENT_FAILURE]: ['True', /Service stays/] }),
  expect: (world) =>
    stuck(
      ...QUESTIONS.filter(({ asked }) => asked === 'yes').map(({ type, isSilent }) => [
        {
          code: 'admission-denied' as const,
          subject: policyRef(world, policyName(type)),
          says: [isSilent ? /failed expression: false/ : new RegExp(`${kindIn(type)} stays`)],
        },
      ]),
    ),
  mayChange: (world) =>
    QUESTIONS.map(({ type }) => ({
      kind: 'ValidatingAdmissionPolicyBinding',
      name: policyRef(world, policyName(type)).name,
    })),
};

export const denials = [deniedByWebhook, s50b, whoIsAsked];
