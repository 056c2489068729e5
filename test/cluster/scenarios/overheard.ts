import type { JsonObject } from '../../../src/base/json.ts';
import { apiVersionOf } from '../inventory.ts';
import { pluralOf } from '../objects.ts';
import type { Link, Scenario } from '../scenario.ts';
import type { OperatorBehaviour } from '../servers/operator-process.ts';
import type { World } from '../world.ts';
import { objectFinalizer, ownerUnknown, ref } from './links.ts';
import { logging } from './logs.ts';
import {
  ADMIN,
  createGuarded,
  install,
  type Operator,
  type OperatorOptions,
  operatorOf,
  operatorRules,
  READ,
  rule,
  start,
} from './operator.ts';
import {
  GUARDED,
  guardedRef,
  HANGS,
  heldBy,
  owner,
  type Situation,
  type Step,
  scaleUp,
  settledByFinalizer,
  situation,
} from './situation.ts';

/** What a log line, a status text or an annotation is about decides what it proves about the object. */

/** A log line as a container runtime stores it, with its time. */
const line = (text: string): string => `${new Date(Date.now() - 5_000).toISOString()} ${text}\n`;

/** Lines in the log of the operator, which hangs. */
const logged = (
  id: string,
  title: string,
  texts: (world: World, operator: Operator) => string[],
  rest: Omit<Situation, 'id' | 'title'>,
): Scenario =>
  situation({
    id,
    title,
    behaviour: HANGS,
    ...logging((world, operator) => ({
      [operator.name]: texts(world, operator).map(line).join(''),
    })),
    ...rest,
  });

const failsBy = (words: RegExp): Pick<Situation, 'owner'> => ({
  owner: { code: 'owner-failing', says: [words] },
});

/** The operator runs, and no text counts as its failure or as its reason to wait. */
export const RUNS: Pick<Situation, 'owner'> = { owner: 'owner-running' };

const WAITED_FOR = 'cache';

/** An operator of another type, scaled to zero, for whose objects the first operator waits. */
const otherOptions = (world: World, kind: string): OperatorOptions => ({
  kind,
  name: `${kind.toLowerCase()}-operator`,
  namespace: world.name('other-system'),
  replicas: 0,
  scope: 'cluster',
});

const otherOperator = (world: World, kind: string): Operator =>
  operatorOf(world, otherOptions(world, kind));

const createOthers =
  (kind: string, ...names: string[]): Step =>
  async (world) => {
    await world.ensureNamespace(world.name('other-system'));
    const operator = await install(world, otherOptions(world, kind));
    await start(world, operator);
    for (const name of names) await createGuarded(world, operator, name);
  };

/** The first operator may read the objects it waits for. */
const readsOthers =
  (kind: string) =>
  (world: World): OperatorOptions => {
    const group = world.domain('example.com');
    const rules = operatorRules({ group, kind: 'Widget' });
    return { rules: [...rules, rule(group, [pluralOf(kind)], [...READ, 'create', 'delete'])] };
  };

/** Cleans up once no object of the other type is left in the namespace. */
export const waitsForAll = (kind: string, api?: string): OperatorBehaviour => ({
  tells: false,
  cleanUp: async ({ metadata }, client, operator) => {
    const apiVersion = api ?? apiVersionOf(operator);
    const left = await client.list(apiVersion, kind, metadata.namespace ?? '');
    return left.length > 0 ? 'waits' : undefined;
  },
});

const otherHeld = (world: World, kind: string, name: string, count?: number): Link => {
  const operator = otherOperator(world, kind);
  const held = ref(apiVersionOf(operator), kind, world.namespace, name);
  return objectFinalizer(held, operator.finalizer, count === undefined ? {} : { count });
};

const otherAsleep = (world: World, kind: string): Link =>
  owner(otherOperator(world, kind), 'owner-scaled-to-zero');

/** The object waits for one of the other type, which holds the namespace as well; its owner is scaled to zero. */
const behindOther =
  (kind: string, name: string, count?: number) =>
  (world: World, operator: Operator): Link[][] => {
    const chain = [otherHeld(world, kind, name, count), otherAsleep(world, kind)];
    return [[heldBy(world, operator), ...chain], chain];
  };

/** What the operator writes into the status after the deletion has begun. */
export const reports =
  (status: (world: World) => JsonObject | Promise<JsonObject>): Step =>
  async (world, operator) => {
    await settledByFinalizer(world);
    const fieldManager = operator.manager;
    await world.client.patchStatus(guardedRef(world, operator), await status(world), {
      fieldManager,
    });
  };

const condition = (message: string): JsonObject => ({
  type: 'Ready',
  status: 'False',
  reason: 'Deleting',
  message,
  lastTransitionTime: new Date().toISOString().replace(/\.\d+/, ''),
});

const saysThat = (message: string): Step => reports(() => ({ conditions: [condition(message)] }));

const heard: Scenario[] = [
  logged(
    'log-of-parent',
    'the log has an error of another object that only mentions this one',
    ({ namespace }) => [
      `E1126 17:44:15.123456       1 controller.go:324] "Reconciler error" err="Widget ${namespace}/${GUARDED} still exists, cannot provision" controller="gadget" controllerKind="Gadget" Gadget="${namespace}/cache" namespace="${namespace}" name="cache"`,
    ],
    {
      operator: (world) => {
        const group = world.domain('example.com');
        const kinds = ['Widget', 'Gadget'];
        return { rules: kinds.flatMap((kind) => operatorRules({ group, kind })) };
      },
      ...RUNS,
    },
  ),
  situation({
    id: 'log-waits',
    title: 'the log says that the operator waits for an object of another type',
    operator: readsOthers('Gadget'),
    behaviour: waitsForAll('Gadget'),
    ...logging((world, { name }) => ({
      [name]: line(
        `{"level":"info","msg":"Waiting for Gadget ${world.namespace}/${WAITED_FOR} to be deleted","controllerKind":"Widget","namespace":"${world.namespace}","name":"${GUARDED}"}`,
      ),
    })),
    before: createOthers('Gadget', WAITED_FOR),
    expect: (world, operator) => ({
      chains: behindOther('Gadget', WAITED_FOR)(world, operator),
    }),
    cure: (world) => scaleUp(world, otherOperator(world, 'Gadget')),
  }),
];

/** Lines as products write them. */
const products: Scenario[] = [
  logged(
    'log-foreign-writer-well',
    'the log names the object and no error, and a program that is not in the cluster has written the finalizer',
    ({ namespace }) => [
      `{"level":"info","msg":"Reconciling","controller":"widget-controller","request":"${namespace}/${GUARDED}"}`,
    ],
    {
      operator: { manager: 'acme-cloud-sync', container: { name: 'widget-operator' } },
      owner: { code: 'owner-running', certainty: ['likely'] },
    },
  ),
  logged(
    'log-of-a-backup',
    'a backup tool logs an error about the object; who wrote the finalizer is not in the cluster',
    ({ namespace }) => [
      `level=error msg="Error backing up item" error="timed out" resource=widgets namespace=${namespace} name=${GUARDED}`,
    ],
    {
      operator: { ...ADMIN, name: 'safe', manager: 'acme-cloud-sync', container: { name: 'safe' } },
      owner: (world, operator) => [ownerUnknown(guardedRef(world, operator), operator.finalizer)],
    },
  ),
  logged(
    'log-java-exception',
    'a Java operator logs an exception of many lines about the object (Flink)',
    ({ namespace }) => [
      `2026-11-26 22:05:21,456 i.j.o.p.e.ReconciliationDispatcher [ERROR][${namespace}/${GUARDED}] Error during event processing`,
      'org.apache.flink.kubernetes.operator.exception.ReconciliationException: java.util.concurrent.TimeoutException',
      '\tat org.apache.flink.kubernetes.operator.controller.FlinkDeploymentController.cleanup(FlinkDeploymentController.java:101)',
      'Caused by: java.util.concurrent.TimeoutException: Could not savepoint job within 60 s',
      '\t... 12 more',
    ],
    failsBy(/Error during event processing/),
  ),
];

const statuses: Scenario[] = [
  ...[
    ['progress-of-expired', 'deleting 12 expired backups, 41% done'],
    [
      'progress-not-found',
      'bucket assets not found, assuming that it is deleted; removing records',
    ],
  ].map(([id = '', text = '']) =>
    situation({
      id,
      title: `the status reports progress: "${text}"`,
      settle: saysThat(text),
      ...RUNS,
    }),
  ),
];

export const overheard: readonly Scenario[] = [...heard, ...products, ...statuses];
