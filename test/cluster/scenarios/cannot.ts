import { stringAt } from '../../../src/base/json.ts';
import { configMap, customType } from '../objects.ts';
import type { Expectation, Scenario } from '../scenario.ts';
import type { OperatorBehaviour } from '../servers/operator-process.ts';
import { laterSecond } from '../wait-until.ts';
import type { World } from '../world.ts';
import { type OperatorOptions, operatorRules, rule } from './operator.ts';
import { settledWithPod } from './pods.ts';
import {
  GUARDED,
  guardedRef,
  HANGS,
  KEPT,
  keeper,
  type Step,
  settledByFinalizer,
  situation,
  writesStatus,
} from './situation.ts';
import { createEvent } from './traces.ts';

/** The controller tries, and no waiting helps; beside each its neighbour, where waiting may help. */

const mayCreate =
  (resource: string) =>
  (world: World): OperatorOptions => ({
    rules: [
      ...operatorRules({ group: world.domain('example.com'), kind: 'Widget' }),
      rule('', [resource], ['create']),
    ],
  });

/** What the API server answers when the operator creates this in the namespace of the object. */
const creates =
  (
    make: (namespace: string) => Record<string, unknown>,
  ): NonNullable<OperatorBehaviour['cleanUp']> =>
  async ({ metadata: { namespace = '' } }, client) => {
    const object = make(namespace);
    const path = `/api/v1/namespaces/${namespace}/${`${object['kind']}`.toLowerCase()}s`;
    const answer = await client.call('POST', path, object as never);
    return stringAt(answer.body, 'message');
  };

const HOPELESS = {
  code: 'owner-failing',
  says: [/can never succeed/],
  advises: [/Remove this one finalizer/],
} as const;

const notHopeless: NonNullable<Expectation['also']> = ({ namespace }) => {
  const wrong = namespace.findings.find(({ message }) => /can never succeed/.test(message));
  if (wrong !== undefined) throw new Error(`gives up: ${wrong.message}`);
};

/** The status, written since the deletion. */
const says =
  (message: string, reason = 'CleanupFailed'): Step =>
  async (world, operator) => {
    await settledByFinalizer(world);
    const condition = { type: 'Ready', status: 'False', reason, message };
    await world.client.patchStatus(
      guardedRef(world, operator),
      { conditions: [{ ...condition, lastTransitionTime: new Date().toISOString() }] },
      { fieldManager: operator.manager },
    );
  };

const lastWords =
  (agoSeconds: number): Step =>
  (world, operator) =>
    createEvent(world, {
      about: guardedRef(world, operator),
      component: operator.name,
      instance: `${operator.name}-5d8f7c9b6-x2xvq`,
      reason: 'DeleteFailed',
      note: 'AccessDenied: not allowed to delete the volume',
      agoSeconds,
    });

export const cannot: Scenario[] = [
  situation({
    id: 'must-create',
    title: 'the operator must create an object in the namespace, which accepts none',
    operator: mayCreate('configmaps'),
    behaviour: { cleanUp: creates((namespace) => configMap(namespace, 'cleanup')) },
    complains: true,
    owner: HOPELESS,
    expect: () => ({ deadlock: true }),
  }),
  situation({
    id: 'may-not-report',
    title: 'the operator hangs, and all that is refused is an Event that it wants to write',
    operator: mayCreate('events'),
    settle: async (world, operator) => {
      await settledByFinalizer(world);
      const refused = await world.client.call(
        'POST',
        `/api/v1/namespaces/${world.namespace}/events`,
        {
          apiVersion: 'v1',
          kind: 'Event',
          metadata: { name: `${GUARDED}.1`, namespace: world.namespace },
          involvedObject: { kind: 'Widget', namespace: world.namespace, name: GUARDED },
        },
      );
      await says(`cannot write Event: ${stringAt(refused.body, 'message')}`)(world, operator);
    },
    owner: 'owner-running',
    expect: () => ({ also: notHopeless }),
  }),
  situation({
    id: 'gone-in-words',
    title: 'the status says in its own words that a Secret of the namespace is missing',
    behaviour: HANGS,
    spec: { credentials: { secretName: 'db-login' } },
    settle: says('giving up: the login in secret db-login is missing'),
    owner: HOPELESS,
    expect: () => ({ deadlock: true }),
  }),
  situation({
    id: 'gone-behind-a-store',
    title: 'the status says that a Secret is missing, which a store names that the object names',
    behaviour: HANGS,
    before: async (world, { group }) => {
      await world.createType(customType({ group, kind: 'Store', scope: 'Cluster' }));
      const secretRef = { namespace: world.namespace, name: 'db-login' };
      const metadata = { name: world.name('vault') };
      await world.create({
        ...{ apiVersion: `${group}/v1`, kind: 'Store', metadata },
        spec: { auth: { secretRef } },
      });
    },
    afterwards: (world, operator) =>
      world.client.patch(guardedRef(world, operator), {
        spec: { storeRef: { kind: 'Store', name: world.name('vault') } },
      }),
    settle: says('giving up: the login in secret db-login is missing'),
    owner: HOPELESS,
    expect: () => ({ deadlock: true }),
  }),
  situation({
    id: 'gone-by-place',
    title: 'the status names what is missing with its namespace, which is this one',
    behaviour: HANGS,
    settle: (world, operator) =>
      says(`namespaced credential "${world.namespace}/db-login" was not found`)(world, operator),
    owner: HOPELESS,
    expect: () => ({ deadlock: true }),
  }),
  situation({
    id: 'gone-by-cluster',
    title: 'a Secret is missing that has the name of a cluster to which the object refers',
    behaviour: HANGS,
    before: async (world, { group }) => {
      await world.createType(customType({ group, kind: 'WidgetCluster' }));
    },
    spec: { widgetClusterReference: { name: 'rabbit' } },
    settle: says('failed to retrieve cluster: Secret "rabbit-default-user" not found'),
    owner: HOPELESS,
    expect: () => ({ deadlock: true }),
  }),
  situation({
    id: 'gone-elsewhere',
    title: 'the same words about a Secret of another namespace',
    behaviour: HANGS,
    spec: { credentialsRef: { kind: 'Secret', namespace: 'vault', name: 'db-login' } },
    settle: says('giving up: the login in secret db-login is missing'),
    owner: { code: 'owner-failing', says: [/is missing/] },
    expect: () => ({ also: notHopeless }),
  }),
  situation({
    id: 'class-gone',
    title: 'the operator says nothing, and the class that the object names does not exist',
    behaviour: HANGS,
    before: async (world, { group }) => {
      await world.createType(customType({ group, kind: 'Tier', scope: 'Cluster' }));
    },
    spec: { tierRef: { kind: 'Tier', name: 'gold' } },
    owner: {
      code: 'owner-failing',
      certainty: ['likely'],
      says: [/may need Tier gold \(spec.tierRef\), which does not exist/],
      advises: [/Create Tier gold .* again/],
    },
  }),
  situation({
    id: 'job-by-catalogue',
    title: 'the operator says nothing, and is known to create a Job in the namespace',
    own: true,
    operator: {
      ...{ group: 'ray.io', ownGroup: false, kind: 'RayCluster', name: 'kuberay-operator' },
      finalizer: 'ray.io/gcs-ft-redis-cleanup-finalizer',
    },
    behaviour: HANGS,
    owner: {
      code: 'owner-failing',
      certainty: ['likely'],
      says: [/may need to create a Job/],
      advises: [/Remove this one finalizer/],
    },
  }),
  situation({
    ...KEPT,
    id: 'last-words',
    title: 'a Warning Event about the object, seconds before the deletion; the operator runs',
    operator: keeper,
    behaviour: HANGS,
    afterwards: lastWords(5),
    settle: settledWithPod,
    owner: { code: 'owner-failing', says: [/AccessDenied/] },
  }),
  situation({
    id: 'not-ready-true',
    title: 'a condition NotReady=True, with a list of errors beside it',
    behaviour: HANGS,
    settle: async (world, operator) => {
      await settledByFinalizer(world);
      const lastTransitionTime = new Date().toISOString();
      const condition = { type: 'NotReady', status: 'True', reason: 'TopicOperatorException' };
      const status = {
        conditions: [{ ...condition, lastTransitionTime, message: 'topic shop is in use' }],
        lastOperation: { type: 'Delete', state: 'Error', description: 'Waiting for the network' },
        lastErrors: [{ description: 'DependencyViolation: vpc-1 has 2 dependencies' }],
      };
      await writesStatus(status, operator.manager)(world, operator);
    },
    owner: { code: 'owner-failing', says: [/topic shop is in use|DependencyViolation/] },
  }),
  situation({
    id: 'harmless-words',
    title: 'a healthy phase and conditions that are well, with words of failure',
    settle: async (world, operator) => {
      await settledByFinalizer(world);
      const lastTransitionTime = new Date().toISOString();
      const reason = 'AsExpected';
      const status = {
        phase: 'Running',
        message: 'last backup failed over to zone b',
        lastError: '',
        conditions: [
          { type: 'Degraded', status: 'False', message: 'nothing has failed' },
          { type: 'Available', status: 'True', message: 'no failures' },
        ].map((condition) => ({ ...condition, reason, lastTransitionTime })),
      };
      await writesStatus(status, operator.manager)(world, operator);
    },
    owner: 'owner-running',
  }),
  situation({
    id: 'own-field',
    title: 'the status says in a field of its own, in another language, what failed',
    settle: async (world, operator) => {
      await world.terminating(guardedRef(world, operator));
      await laterSecond();
      const meldung = 'Löschen fehlgeschlagen: Zugriff auf Mandant 4711 verweigert';
      await writesStatus({ phase: 'Fehler', meldung }, operator.manager)(world, operator);
      await settledByFinalizer(world);
    },
    owner: { code: 'owner-running', says: [/says: Löschen fehlgeschlagen/] },
  }),
  situation({
    id: 'error-before',
    title: 'the status has an error from before the deletion, and nobody has written it since',
    afterwards: async (world, operator) => {
      const error = { message: 'rpc error: code = DeadlineExceeded desc = deadline exceeded' };
      await writesStatus({ error }, operator.manager)(world, operator);
      await laterSecond();
    },
    owner: { code: 'owner-running', says: [/before the deletion, says: rpc error/] },
  }),
  situation({
    id: 'other-language',
    title: 'the status says in another language what goes on',
    settle: says('バケットを空にしています', 'Emptying'),
    owner: { code: 'owner-running', says: [/says: バケット/] },
  }),
];
