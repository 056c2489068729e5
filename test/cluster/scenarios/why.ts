import { arrayAt, type JsonObject, stringAt } from '../../../src/base/json.ts';
import { byService, createWebhook, webhookRef } from '../admission.ts';
import type { Ref } from '../client.ts';
import { accountSubject, grant, podSpec, secret, serviceAccount } from '../objects.ts';
import type { Expectation, Scenario } from '../scenario.ts';
import { runPodsIn } from '../servers/stand-in.ts';
import { waitUntil } from '../wait-until.ts';
import type { World } from '../world.ts';
import { ref, statusSays } from './links.ts';
import {
  firstPod,
  type Operator,
  type OperatorOptions,
  operatorRules,
  READ,
  rule,
  workloadRef,
} from './operator.ts';
import { settledWithPod } from './pods.ts';
import {
  GUARDED,
  guardedRef,
  HANGS,
  KEPT,
  keeper,
  owner,
  RIGHTS,
  restart,
  type Situation,
  type Step,
  settledByFinalizer,
  situation,
} from './situation.ts';
import { createEvent, happensAgain } from './traces.ts';

/** The owner is known. Why does it not act? */

/** It may read the type, and change these objects of it. */
const named = (world: World, name: string): OperatorOptions => {
  const type = { apiGroups: [world.domain('example.com')], resources: ['widgets'] };
  return {
    rules: [
      { ...type, verbs: READ },
      { ...type, verbs: ['update', 'patch'], resourceNames: [name] },
    ],
  };
};

/** Lets the operator change objects of its type in this namespace. */
async function grantIn(world: World, operator: Operator, namespace: string): Promise<void> {
  const name = 'widget-writer';
  await world.ensureNamespace(namespace);
  const subject = accountSubject(operator.namespace, operator.account);
  const rules = operatorRules(operator, ['update', 'patch']);
  await world.createAll(grant({ namespace, name }, [subject], rules));
}

/** What an admin does who sees that a right is missing. */
async function grantAgain(world: World, operator: Operator): Promise<void> {
  const name = world.name('widget-writer');
  const subject = accountSubject(operator.namespace, operator.account);
  await world.createAll(grant({ name }, [subject], operatorRules(operator)));
}

/** It tells nobody, and goes on when the right is there again. */
const MAY_NOT = {
  behaviour: { tells: false },
  owner: { code: 'owner-failing', says: [/update|patch/] },
  cure: grantAgain,
  mayChange: () => RIGHTS,
} as const;

const rights: Scenario[] = [
  situation({
    ...MAY_NOT,
    id: 'S66',
    title: 'the operator runs and may no longer change its objects; it tells nobody',
    operator: (world) => ({
      rules: [rule(world.domain('example.com'), ['widgets'], READ)],
    }),
  }),
  situation({
    ...MAY_NOT,
    id: 'S66-finalizers',
    title: 'the same; `widgets/finalizers` it may change, which is no right on the objects',
    operator: { verbs: READ },
  }),
  situation({
    ...MAY_NOT,
    id: 'S66-other-object',
    title: 'its right to change is about an object of another name',
    operator: (world) => named(world, 'cache'),
  }),
  situation({
    id: 'S66-this-object',
    title: 'its right to change is about just this object',
    operator: (world) => named(world, GUARDED),
    owner: 'owner-running',
  }),
  situation({
    ...MAY_NOT,
    id: 'S66-other-namespace',
    title: 'its right to change is in another namespace',
    operator: { verbs: READ },
    afterwards: (world, operator) => grantIn(world, operator, world.name('team-b')),
  }),
];

/** What the operator has written into the status of the object. */
function report(...conditions: JsonObject[]): Step {
  return (world, operator) => {
    const at = new Date().toISOString().replace(/\.\d+/, '');
    const status = {
      conditions: conditions.map((condition) => ({ lastTransitionTime: at, ...condition })),
      ready: 3,
      failed: 0,
    };
    const fieldManager = operator.manager;
    return world.client.patchStatus(guardedRef(world, operator), status, { fieldManager });
  };
}

const afterDeletion =
  (step: Step): Step =>
  async (world, operator) => {
    await settledByFinalizer(world);
    await step(world, operator);
  };

const HEALTHY = {
  type: 'Ready',
  status: 'True',
  reason: 'AllReplicasReady',
  message: '3 ready, 0 failed, no error',
};

const statuses: Scenario[] = [
  situation({
    id: 'S67',
    title: 'the status says Ready=True, "3 ready, 0 failed"; the operator runs',
    afterwards: report(HEALTHY),
    owner: 'owner-running',
  }),
  situation({
    id: 'S67-polarity',
    title: 'the status says Degraded=False and Failed=False with words of errors',
    settle: afterDeletion(
      report(
        { type: 'Degraded', status: 'False', reason: 'NoError', message: 'no failures' },
        { type: 'Failed', status: 'False', reason: 'NotFailed', message: 'errors: 0' },
      ),
    ),
    owner: 'owner-running',
  }),
  situation({
    id: 'S67-degraded',
    title: 'the status says Degraded=True since the deletion',
    behaviour: HANGS,
    settle: afterDeletion(
      report(HEALTHY, {
        type: 'Degraded',
        status: 'True',
        reason: 'BackendUnreachable',
        message: 'cannot delete bucket assets: quota service answers 503',
      }),
    ),
    owner: { code: 'owner-failing', says: [/quota service answers 503/] },
  }),
  situation({
    id: 'S67-stale',
    title: 'the status says Ready=False about the generation before the deletion',
    afterwards: report({
      type: 'Ready',
      status: 'False',
      reason: 'Installing',
      message: 'install failed: image not found',
      observedGeneration: 1,
      lastTransitionTime: '2024-05-01T10:00:00Z',
    }),
    owner: 'owner-running',
  }),
];

const QUOTA = 'cannot detach the disk: quota of the provider exceeded';

const complaint = (world: World, operator: Operator): Promise<Ref> =>
  createEvent(world, {
    about: guardedRef(world, operator),
    component: operator.name,
    instance: `${operator.name}-5d8f7c9b6-x2xvq`,
    reason: 'DrainFailed',
    note: QUOTA,
    agoSeconds: 2_400,
  });

const heldPod = { ...KEPT, operator: keeper, behaviour: HANGS };

const events: Scenario[] = [
  situation({
    ...heldPod,
    id: 'S68',
    title: 'a Warning Event about the object, long before the deletion; the operator runs',
    afterwards: complaint,
    settle: settledWithPod,
    owner: 'owner-running',
  }),
  situation({
    ...heldPod,
    id: 'S68-again',
    title: 'the same Event, and it has happened again since the deletion',
    afterwards: complaint,
    settle: async (world, operator) => {
      await settledWithPod(world);
      const name = `${GUARDED}.${operator.name}`;
      await happensAgain(world, ref('events.k8s.io/v1', 'Event', world.namespace, name));
    },
    owner: { code: 'owner-failing', says: [/quota of the provider/] },
  }),
];

const MUTATING = 'MutatingWebhookConfiguration';

export const injector = (world: World): Ref => webhookRef(world, MUTATING, 'injector');

/** Its backend was uninstalled; it only sees pods that are made in the operator's namespace. */
export const deadInjector =
  (failurePolicy: 'Fail' | 'Ignore'): Step =>
  async (world, { namespace }) => {
    await world.ensureNamespace(namespace);
    await createWebhook(world, {
      kind: MUTATING,
      name: 'injector',
      operations: ['CREATE'],
      resource: 'pods',
      clientConfig: byService(world.name('mesh-system'), 'injector'),
      failurePolicy,
      timeoutSeconds: 1,
      sees: namespace,
    });
    if (failurePolicy === 'Ignore') return;
    await waitUntil('the webhook to refuse pods', async () => {
      const path = `/api/v1/namespaces/${namespace}/pods?dryRun=All`;
      const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'probe' }, spec: podSpec() };
      return (await world.client.call('POST', path, pod)).status === 500;
    });
  };

/** Its ReplicaSet says why there is no pod. */
export const noPod =
  (words: RegExp): Step =>
  (world, operator) =>
    world.client.waitFor(workloadRef(operator), 'tells why it has no pod', (found) =>
      arrayAt(found, 'status', 'conditions').some(
        (condition) =>
          stringAt(condition, 'type') === 'ReplicaFailure' &&
          words.test(stringAt(condition, 'message') ?? ''),
      ),
    );

/** A controller that failed often tries again late; a change makes it look at once. */
export async function tryAgain({ client }: World, { namespace }: Operator): Promise<void> {
  for (const { metadata } of await client.list('apps/v1', 'ReplicaSet', namespace)) {
    await client.patch(ref('apps/v1', 'ReplicaSet', namespace, metadata.name), {
      metadata: { annotations: { 'tests.example.com/look': 'again' } },
    });
  }
}

const labelEnforce = (world: World, { namespace: name }: Operator, value: string | null) =>
  world.client.patch(
    { apiVersion: 'v1', kind: 'Namespace', name },
    { metadata: { labels: { 'pod-security.kubernetes.io/enforce': value } } },
  );

const quotaRef = ({ namespace }: Operator): Ref => ref('v1', 'ResourceQuota', namespace, 'none');

const podless: Scenario[] = [
  situation({
    id: 'S69',
    title: 'no pod of the operator can be made: a dead mutating webhook refuses',
    unscheduled: true,
    before: deadInjector('Fail'),
    afterwards: async (world, operator) => {
      await runPodsIn(world, operator.namespace);
      await noPod(/injector/)(world, operator);
    },
    owner: (world, operator) => [
      owner(operator, 'owner-not-ready'),
      { code: 'admission-webhook-failing', subject: injector(world) },
    ],
    cure: async (world, operator) => {
      await world.client.delete(injector(world));
      await tryAgain(world, operator);
    },
  }),
  situation({
    id: 'S69-quota',
    title: 'no pod of the operator can be made: a quota refuses',
    unscheduled: true,
    before: async (world, operator) => {
      await world.ensureNamespace(operator.namespace);
      const { apiVersion, kind, namespace = '', name } = quotaRef(operator);
      await world.create({
        apiVersion,
        kind,
        metadata: { namespace, name },
        spec: { hard: { pods: '0' } },
      });
      await statusSays(world, quotaRef(operator), 'is counted', 'used');
    },
    afterwards: async (world, operator) => {
      await runPodsIn(world, operator.namespace);
      await noPod(/quota/)(world, operator);
    },
    owner: { code: 'owner-not-ready', says: [/quota/] },
    cure: async (world, operator) => {
      await world.client.delete(quotaRef(operator));
      await tryAgain(world, operator);
    },
    mayChange: (_, operator) => [quotaRef(operator)],
  }),
  situation({
    id: 'S69-pod-security',
    title: 'no pod of the operator can be made: a Pod Security Standard refuses',
    unscheduled: true,
    before: async (world, operator) => {
      await world.ensureNamespace(operator.namespace);
      await labelEnforce(world, operator, 'restricted');
    },
    afterwards: async (world, operator) => {
      await runPodsIn(world, operator.namespace);
      await noPod(/PodSecurity/)(world, operator);
    },
    owner: {
      code: 'owner-not-ready',
      says: [/violates PodSecurity/],
      advises: [/Fix what refuses the pods/],
    },
    beyondCommands: 'which Pod Security Standard the namespace enforces, a person decides',
    cure: async (world, operator) => {
      await labelEnforce(world, operator, null);
      await tryAgain(world, operator);
    },
    mayChange: (_, { namespace }) => [{ kind: 'Namespace', name: namespace }],
  }),
  situation({
    id: 'S69-account',
    title: 'no pod of the operator can be made: its ServiceAccount is gone',
    afterwards: async (world, operator) => {
      const { namespace, account: name } = operator;
      await world.client.delete({ apiVersion: 'v1', kind: 'ServiceAccount', namespace, name });
      await restart(world, operator);
      await noPod(/serviceaccount/)(world, operator);
    },
    owner: { code: 'owner-not-ready', says: [/service ?account/i] },
    cure: async (world, operator) => {
      const { namespace, account: name } = operator;
      await world.create(serviceAccount(namespace, name));
      await tryAgain(world, operator);
    },
    mayChange: (_, { namespace, account }) => [
      { kind: 'ServiceAccount', namespace, name: account },
    ],
  }),
  situation({
    id: 'S69-unschedulable',
    title: 'the pod of the operator finds no node; the dead webhook lets everything pass',
    unscheduled: true,
    before: deadInjector('Ignore'),
    afterwards: async (world, { namespace }) => {
      const pod = await firstPod(world, namespace);
      const condition = {
        type: 'PodScheduled',
        status: 'False',
        reason: 'Unschedulable',
        message: '0/3 nodes are available: 3 Insufficient memory.',
      };
      const name = pod.metadata.name;
      await world.client.patchStatus(ref('v1', 'Pod', namespace, name), {
        conditions: [condition],
      });
    },
    owner: { code: 'owner-not-ready', says: [/Insufficient memory/] },
    expect: (world) => ({ never: [injector(world)] }),
    cure: (world, operator) => runPodsIn(world, operator.namespace),
    beyondCommands: 'somebody has to make room on the nodes',
  }),
];

/** It takes a while for the first steps, and then looks for its Secret, here or at home. */
const needsSecret = (place: 'here' | 'home'): Pick<Situation, 'operator' | 'behaviour'> => ({
  operator: (world) => {
    const own = operatorRules({ group: world.domain('example.com'), kind: 'Widget' });
    return { rules: [...own, { apiGroups: [''], resources: ['secrets'], verbs: ['get'] }] };
  },
  behaviour: {
    isSlow: true,
    cleanUp: async ({ metadata }, client, operator) => {
      const namespace = place === 'here' ? metadata.namespace : operator.namespace;
      const path = `/api/v1/namespaces/${namespace}/secrets/${CREDENTIALS}`;
      const { status, body } = await client.call('GET', path);
      return status === 200 ? undefined : stringAt(body, 'message');
    },
  },
});

const CREDENTIALS = 'db-credentials';

const withoutSecret = {
  code: 'owner-failing',
  says: [/secrets "db-credentials" not found/],
} as const;

/** Nothing can be created in a namespace that is terminating. */
const offersNoRestoring: Expectation['also'] = ({ namespace }) => {
  const texts = namespace.findings.flatMap(({ remedies }) => remedies.map(({ text }) => text));
  const wrong = texts.filter((text) => /\brestore\b/i.test(text));
  if (wrong.length > 0) throw new Error(`offers what is impossible: ${wrong.join(' | ')}`);
};

const needs: Scenario[] = [
  situation({
    id: 'S82',
    title: 'the operator needs a Secret that was in this namespace and went with it',
    ...needsSecret('here'),
    complains: true,
    spec: { credentials: { secretName: CREDENTIALS } },
    afterwards: (world) => world.create(secret(world.namespace, CREDENTIALS)),
    owner: { ...withoutSecret, advises: [/Remove this one finalizer/] },
    expect: () => ({ deadlock: true, also: offersNoRestoring }),
  }),
  situation({
    id: 'S82-silent',
    title: 'the same, and the operator says nothing',
    ...needsSecret('here'),
    behaviour: HANGS,
    spec: { credentials: { secretName: CREDENTIALS } },
    afterwards: (world) => world.create(secret(world.namespace, CREDENTIALS)),
    owner: {
      code: 'owner-failing',
      certainty: ['likely'],
      says: [/may need Secret db-credentials .*, which does not exist here/],
      advises: [/Remove this one finalizer/],
    },
  }),
  situation({
    id: 'S82-right',
    title: 'the right of the operator came from a RoleBinding in this namespace and went with it',
    operator: { verbs: READ },
    behaviour: { isSlow: true },
    complains: true,
    afterwards: (world, operator) => grantIn(world, operator, world.namespace),
    owner: { code: 'owner-failing', says: [/forbidden|cannot patch/] },
    // Only who asked before the namespace was deleted can know of the RoleBinding.
    identity: 'teardown-gate',
    delete: false,
    inputs: { delete: 'true' },
    expect: ({ namespace }) => ({
      deadlock: true,
      also: offersNoRestoring,
      mutations: [`delete namespaces/${namespace}`],
    }),
    cure: grantAgain,
    mayChange: () => RIGHTS,
  }),
  situation({
    id: 'S82-home',
    title: 'the operator needs a Secret of its own namespace, which somebody deleted',
    ...needsSecret('home'),
    complains: true,
    owner: withoutSecret,
    cure: (world, { namespace }) => world.create(secret(namespace, CREDENTIALS)),
    beyondCommands: 'nobody but its owner knows what was in the Secret',
  }),
];

/** Annotations that tell operators to leave an object alone. */
const paused = (id: string, title: string, value: string, more: Pick<Situation, 'owner'>) =>
  situation({
    id,
    title,
    behaviour: {
      hangs: value === 'false',
      tells: false,
      cleanUp: ({ metadata }) =>
        JSON.stringify(metadata['annotations'] ?? {}).includes('"true"') ? 'paused' : undefined,
    },
    afterwards: (world, operator) =>
      world.client.patch(guardedRef(world, operator), {
        metadata: { annotations: { [`${operator.group}/paused`]: value } },
      }),
    ...more,
    cure: async (world, operator) => {
      await world.client.patch(guardedRef(world, operator), { metadata: { annotations: null } });
      if (value === 'false') await restart(world, operator);
    },
  });

const told: Scenario[] = [
  paused('paused', 'an annotation tells the operator to leave the object alone', 'true', {
    owner: (_, operator) => [
      owner(operator, 'owner-not-acting', { says: [/paus/i], advises: [/again/] }),
    ],
  }),
  paused('paused-no-more', 'the same annotation says "false"', 'false', {
    owner: 'owner-running',
  }),
];

export const why = [...rights, ...statuses, ...events, ...podless, ...needs, ...told];
