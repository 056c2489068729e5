import type { JsonObject } from '../../../src/base/json.ts';
import { apiVersionOf } from '../inventory.ts';
import { customType, pluralOf } from '../objects.ts';
import type { Link, Scenario } from '../scenario.ts';
import type { OperatorBehaviour } from '../servers/operator-process.ts';
import type { World } from '../world.ts';
import { objectFinalizer, ownerUnknown, ref } from './links.ts';
import { logging } from './logs.ts';
import {
  ADMIN,
  createGuarded,
  FULL,
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
  release,
  restart,
  type Situation,
  type Step,
  scaleUp,
  settledByFinalizer,
  situation,
} from './situation.ts';

/** What a log line, a status text or an annotation is about decides what it proves about the object. */

const DENIED = 'AccessDenied: bucket assets';

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

/** The status names what the operator waits for: objects of the other type, whose owner is scaled to zero. */
const waiting = (
  id: string,
  title: string,
  settle: Step,
  { kind = 'Gadget', names = [WAITED_FOR] }: { kind?: string; names?: string[] } = {},
): Scenario =>
  situation({
    id,
    title,
    operator: readsOthers(kind),
    behaviour: waitsForAll(kind),
    afterwards: createOthers(kind, ...names),
    settle,
    expect: (world, operator) => {
      const count = names.length > 1 ? names.length : undefined;
      return { chains: behindOther(kind, names[0] ?? '', count)(world, operator) };
    },
    cure: (world) => scaleUp(world, otherOperator(world, kind)),
  });

/** A Gadget whose finalizer no known controller sets. */
const STRAY = 'stray.example.net/hold';

const strayRef = (world: World, namespace: string) =>
  ref(`${world.domain('example.com')}/v1`, 'Gadget', namespace, WAITED_FOR);

async function createStray(world: World, namespace: string): Promise<void> {
  const { apiVersion, kind, name } = strayRef(world, namespace);
  await world.ensureNamespace(namespace);
  await world.create(
    { apiVersion, kind, metadata: { namespace, name, finalizers: [STRAY] } },
    { fieldManager: 'kubectl-create' },
  );
}

const strayChain = (world: World, namespace: string): Link[] => {
  const stray = strayRef(world, namespace);
  return [objectFinalizer(stray, STRAY), ownerUnknown(stray, STRAY)];
};

const heard: Scenario[] = [
  logged(
    'log-traceback',
    'a Python operator logs the error as the last line of a traceback',
    ({ namespace }) => [
      `[2026-11-26 17:44:15,123] kopf.objects         [ERROR   ] [${namespace}/${GUARDED}] Handler 'delete_fn' failed with an exception. Will retry.`,
      'Traceback (most recent call last):',
      '  File "/usr/lib/python3.11/site-packages/kopf/_core/actions/execution.py", line 276, in execute_handler_once',
      '    result = await invoke_handler(',
      'botocore.exceptions.ClientError: An error occurred (AccessDenied) when calling the DeleteBucket operation',
    ],
    failsBy(/delete_fn.*AccessDenied/),
  ),
  logged(
    'log-object-reference',
    'a Rust operator logs the error with the reference of the object, name before namespace',
    ({ namespace }, { group }) => [
      `2026-11-26T17:44:15.123456Z ERROR reconciling object{object.ref=Widget.v1.${group}/${GUARDED}.${namespace} object.reason=error policy requested retry}: widget_operator: ${DENIED}`,
    ],
    failsBy(/AccessDenied/),
  ),
  logged(
    'log-number-as-level',
    'a Node.js operator logs the error with a number as level and the message inside `err`',
    ({ namespace }) => [
      `{"level":50,"pid":1,"msg":"cleanup of Widget ${namespace}/${GUARDED} failed","err":{"type":"Error","message":"${DENIED}"}}`,
    ],
    failsBy(/AccessDenied/),
  ),
  logged(
    'log-warning-fails',
    'the operator logs its failure as a warning',
    ({ namespace }) => [
      `W1126 17:44:15.123456       1 bucket.go:17] Failed to delete bucket assets of ${namespace}/${GUARDED}: AccessDenied, will retry`,
    ],
    failsBy(/AccessDenied/),
  ),
  logged(
    'log-unauthorized',
    'the log says that every request of the operator is unauthorized, and names no object',
    () => [
      'E1126 17:44:15.123456       1 reflector.go:200] "Failed to watch" err="failed to list *v1.Widget: Unauthorized" reflector="pkg/client:231" type="*v1.Widget"',
      'E1126 17:44:16.123456       1 leaderelection.go:429] Failed to update lock optimistically: Unauthorized, falling back to slow path',
    ],
    failsBy(/Unauthorized/),
  ),
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
    id: 'log-of-user',
    title:
      'another operator uses the object and logs an error about it; the owner is scaled to zero',
    operator: { replicas: 0 },
    bystanders: (world) => [
      {
        name: 'app-operator',
        namespace: 'app-system',
        rules: [rule(world.domain('example.com'), ['widgets'], FULL)],
      },
    ],
    ...logging(({ namespace }) => ({
      'app-operator': line(
        `{"level":"error","msg":"cannot connect to database","controller":"app","App":{"name":"shop","namespace":"team-shop"},"error":"Widget ${namespace}/${GUARDED} is terminating"}`,
      ),
    })),
    owner: 'owner-scaled-to-zero',
  }),
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
  situation({
    id: 'log-waits-for-field',
    title: 'the log says that the operator waits, with both objects in its fields',
    operator: readsOthers('Gadget'),
    behaviour: waitsForAll('Gadget'),
    ...logging((world, { name }) => ({
      [name]: line(
        `I1126 20:00:00.000000       1 widget.go:88] "Waiting for the Gadget to be deleted" Widget="${world.namespace}/${GUARDED}" Gadget="${world.namespace}/${WAITED_FOR}"`,
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
    'log-object-in-any-field',
    'the log names the object in a field of its own choice (Zalando)',
    ({ namespace }) => [
      `time="2026-11-26T17:44:14Z" level=info msg="starting deletion now" cluster-name=${namespace}/${GUARDED} pkg=controller worker=0`,
      `time="2026-11-26T17:44:15Z" level=warning msg="could not delete statefulset: ${DENIED}" cluster-name=${namespace}/${GUARDED} pkg=cluster worker=0`,
    ],
    failsBy(/could not delete statefulset: AccessDenied/),
  ),
  logged(
    'log-api-path',
    'the log names the object by its API path, and the cause only in a stack (operatorkit)',
    ({ namespace }, { group }) => [
      `{"caller":"operatorkit/resource_wrapper.go:98","level":"warning","message":"retrying due to error","object":"/apis/${group}/v1/namespaces/${namespace}/widgets/${GUARDED}","resource":"encryptionkeyv7","stack":"[{/go/src/resource_wrapper.go:91: } {/go/src/delete.go:22: } {${DENIED}}]"}`,
    ],
    failsBy(/retrying due to error: AccessDenied/),
  ),
  logged(
    'log-capnslog',
    'the log has the level of capnslog (Rook)',
    ({ namespace }) => [
      `2026-11-26 22:05:12.811881 I | widget-controller: Widget "${namespace}/${GUARDED}" has no dependent custom resources blocking deletion`,
      `2026-11-26 22:05:12.856776 E | widget-controller: failed to reconcile Widget "${namespace}/${GUARDED}". failed to get pool stats: exit status 2`,
    ],
    failsBy(/failed to get pool stats: exit status 2/),
  ),
  logged(
    'log-writer-in-name',
    "the log names the object, and the name of the finalizer's writer is part of the workload's name",
    ({ namespace }) => [
      `{"level":"error","logger":"controller-runtime.controller","msg":"Reconciler error","controller":"widget-controller","request":"${namespace}/${GUARDED}","error":"pq: permission denied to reassign objects"}`,
    ],
    {
      operator: {
        name: 'ext-widget-operator',
        manager: 'widget-operator',
        container: { name: 'ext-widget-operator' },
      },
      ...failsBy(/permission denied to reassign objects/),
    },
  ),
  logged(
    'log-foreign-writer',
    'the log names the object, and a program that is not in the cluster has written the finalizer',
    ({ namespace }) => [
      `{"level":"error","msg":"Reconciler error","controller":"widget-controller","request":"${namespace}/${GUARDED}","error":"${DENIED}"}`,
    ],
    {
      operator: { manager: 'acme-cloud-sync', container: { name: 'widget-operator' } },
      owner: { code: 'owner-failing', certainty: ['likely'], says: [/AccessDenied/] },
    },
  ),
  logged(
    'log-foreign-writer-well',
    'the same, and the log reports no error',
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
    'log-absent-issuer',
    'the log says that an object does not exist which the spec names, of a type of another group',
    ({ namespace }, { group }) => [
      `E1126 22:05:24.561604       1 controller.go:167] "re-queuing item due to error processing" err="error reading (cluster)issuer \\"letsencrypt\\": issuer.certs.${group} \\"letsencrypt\\" not found" key="${namespace}/${GUARDED}"`,
    ],
    {
      before: async (world, { group }) => {
        await world.create(customType({ group: `certs.${group}`, kind: 'Issuer' }));
      },
      spec: { issuerRef: { name: 'letsencrypt', kind: 'Issuer' } },
      ...failsBy(/can never succeed.*Issuer letsencrypt does not exist/),
      expect: () => ({ deadlock: true }),
    },
  ),
  logged(
    'log-java-exception',
    'a Java operator logs the error as the last cause of an exception (Flink)',
    ({ namespace }) => [
      `2026-11-26 22:05:21,456 i.j.o.p.e.ReconciliationDispatcher [ERROR][${namespace}/${GUARDED}] Error during event processing`,
      'org.apache.flink.kubernetes.operator.exception.ReconciliationException: java.util.concurrent.TimeoutException',
      '\tat org.apache.flink.kubernetes.operator.controller.FlinkDeploymentController.cleanup(FlinkDeploymentController.java:101)',
      'Caused by: java.util.concurrent.TimeoutException: Could not savepoint job within 60 s',
      '\t... 12 more',
    ],
    failsBy(/Could not savepoint job within 60 s/),
  ),
  logged(
    'log-of-group',
    'the log says why the group of objects fails that the finalizer names (AWS load balancers)',
    () => [
      '{"level":"error","msg":"Reconciler error","controller":"ingress","object":{"name":"shared"},"namespace":"","name":"shared","error":"ingress: prod/web: no certificate found for host: web.example.com"}',
    ],
    {
      own: true, // the catalogue names this workload
      operator: {
        ...{ group: 'networking.k8s.io', ownGroup: false, kind: 'Ingress', type: false },
        ...{ name: 'aws-load-balancer-controller', namespace: 'alb-system', manager: 'controller' },
        finalizer: 'group.ingress.k8s.aws/shared',
        rules: [rule('networking.k8s.io', ['ingresses', 'ingresses/status'], FULL)],
      },
      spec: { defaultBackend: { service: { name: 'web', port: { number: 80 } } } },
      ...failsBy(/no certificate found for host/),
    },
  ),
];

const statuses: Scenario[] = [
  situation({
    id: 'absent-with-namespace',
    title: 'the status says that a Secret of this namespace, named with it, does not exist',
    behaviour: HANGS,
    settle: (world, operator) =>
      saysThat(`credential secret "${world.namespace}/login" not found: Secret "login" not found`)(
        world,
        operator,
      ),
    ...failsBy(/can never succeed.*Secret login does not exist/),
    expect: () => ({ deadlock: true }),
  }),
  situation({
    id: 'conditions-by-type',
    title: 'the conditions of the status are a map by type, and one of them reports a failure',
    behaviour: HANGS,
    settle: reports(() => ({ conditions: { Ready: condition(`cannot delete: ${DENIED}`) } })),
    ...failsBy(/AccessDenied/),
  }),
  situation({
    id: 'sync-is-the-clean-up',
    title: 'the operator calls all its work a sync, and its last one was refused by a cloud',
    behaviour: HANGS,
    settle: reports(() => ({
      conditions: [{ ...condition(DENIED), reason: 'SyncFailed' }],
    })),
    ...failsBy(/AccessDenied/),
  }),
  situation({
    id: 'error-with-old-time',
    title: 'the status is written again and repeats an error with the time of two days ago',
    settle: reports(() => ({
      heartbeat: Date.now(),
      lastError: {
        message: 'cannot reach backend: connection refused',
        time: new Date(Date.now() - 172_800_000).toISOString(),
      },
    })),
    ...RUNS,
  }),
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
  waiting(
    'waits-for-count',
    'the status counts what is left, without names',
    saysThat('2 gadgets remaining'),
    {
      names: [WAITED_FOR, 'queue'],
    },
  ),
  waiting(
    'waits-for-certificate',
    'the operator waits for a Certificate, which is no failure of TLS',
    saysThat('waiting for Certificate web-tls to be deleted'),
    { kind: 'Certificate', names: ['web-tls'] },
  ),
  waiting(
    'waits-with-number',
    'the operator waits, and its text has a number like an HTTP status',
    saysThat(`waiting for Gadget ${WAITED_FOR} to be deleted, 512 blocks remain`),
  ),
  waiting(
    'waits-for-uid',
    'the status has only the UID of the object that the operator waits for',
    reports(async (world) => {
      const { apiVersion, kind, name } = strayRef(world, world.namespace);
      const { metadata } = await world.client.get(ref(apiVersion, kind, world.namespace, name));
      return { pendingDependents: [{ uid: String(metadata['uid']) }] };
    }),
  ),
  situation({
    id: 'waits-for-second',
    title: 'the status names an object that is kept, and one that the operator waits for',
    operator: readsOthers('Gadget'),
    behaviour: waitsForAll('Gadget'),
    afterwards: async (world, operator) => {
      await createOthers('Gadget', 'queue')(world, operator);
      await createStray(world, world.namespace);
    },
    settle: saysThat(
      `Gadget ${WAITED_FOR} is retained and needs no cleanup; waiting for Gadget queue to be deleted`,
    ),
    expect: (world, operator) => ({
      chains: [
        ...behindOther('Gadget', 'queue')(world, operator),
        strayChain(world, world.namespace),
      ],
    }),
    cure: async (world) => {
      await scaleUp(world, otherOperator(world, 'Gadget'));
      await release(world, strayRef(world, world.namespace));
    },
    beyondCommands: 'each of the two Gadgets has a cause of its own',
  }),
  situation({
    id: 'waits-for-namesake',
    title: 'the operator waits for an object of another namespace; one here has the same name',
    operator: readsOthers('Gadget'),
    behaviour: HANGS,
    afterwards: async (world, operator) => {
      await createOthers('Gadget', WAITED_FOR)(world, operator);
      await createStray(world, world.name('team-b'));
      await world.client.delete(strayRef(world, world.name('team-b')));
    },
    settle: (world, operator) =>
      saysThat(`waiting for Gadget ${world.name('team-b')}/${WAITED_FOR} to be deleted`)(
        world,
        operator,
      ),
    expect: (world, operator) => ({
      chains: [
        [heldBy(world, operator), ...strayChain(world, world.name('team-b'))],
        [otherHeld(world, 'Gadget', WAITED_FOR), otherAsleep(world, 'Gadget')],
      ],
    }),
    cure: async (world, operator) => {
      await scaleUp(world, otherOperator(world, 'Gadget'));
      await release(world, strayRef(world, world.name('team-b')));
      await restart(world, operator);
    },
    beyondCommands: 'each of the two Gadgets has a cause of its own',
  }),
];

export const overheard: readonly Scenario[] = [...heard, ...products, ...statuses];
