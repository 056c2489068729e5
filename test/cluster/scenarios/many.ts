import { type JsonObject, stringAt } from '../../../src/base/json.ts';
import type { Ref } from '../client.ts';
import { apiVersionOf } from '../inventory.ts';
import { customType } from '../objects.ts';
import type { Link, Scenario } from '../scenario.ts';
import { type ContainerLogs, serveContainerLogs } from '../servers/container-logs.ts';
import { namespaceRef, type World } from '../world.ts';
import { objectFinalizer, ownerUnknown, ref } from './links.ts';
import {
  createGuarded,
  install,
  type Operator,
  type OperatorOptions,
  operatorOf,
  operatorRules,
  runPods,
} from './operator.ts';
import { HANGS, heldBy, owner, type Situation, situation } from './situation.ts';

/**
 * One namespace with many objects of one operator, each with a finalizer of its own: what each of them says, in a log
 * or in its status, is judged for itself.
 */

const widget = ({ namespace }: World, operator: Operator, name: string): Ref =>
  ref(apiVersionOf(operator), operator.kind, namespace, name);

const ago = (seconds: number): string => new Date(Date.now() - 1_000 * seconds).toISOString();

async function createEach(world: World, operator: Operator, names: string[]): Promise<void> {
  for (const name of names) {
    const finalizer = `widgets.${operator.group}/${name}`;
    await createGuarded(world, { ...operator, finalizer }, name);
  }
}

/** A line about the object of this name. */
type Line = (name: string, namespace: string, uid: string) => string | string[];

const json = (level: string, msg: string, more: JsonObject): string =>
  JSON.stringify({ level, ts: ago(5), msg, controller: 'widget', ...more });

/** Lines of the operator, by the object that they are about; none of those named `other-…` is. */
const LINES: Record<string, Line> = {
  'zap-json': (name, namespace) =>
    json('error', 'Reconciler error', {
      ...{ controllerKind: 'Widget', Widget: { name, namespace }, namespace, name },
      error: 'cannot reach bucket: AccessDenied\nmain.main\n\t/src/main.go:12',
    }),
  'zap-console': (name, namespace) =>
    `${ago(5)}\tERROR\tcontroller.widget\tReconciler error\t${JSON.stringify({ controllerKind: 'Widget', namespace, name, error: 'AccessDenied' })}`,
  klog: (name, namespace) =>
    `E0302 10:01:20.123456       1 controller.go:324] "Reconciler error" err="AccessDenied" controllerKind="Widget" Widget="${namespace}/${name}" namespace="${namespace}" name="${name}"`,
  'klog-words': (name, namespace) =>
    `E0302 10:01:20.123456       1 sync.go:99] error syncing '${namespace}/${name}': AccessDenied`,
  logfmt: (name, namespace) =>
    `time="${ago(5)}" level=error msg="deletion failed" widget=${namespace}/${name} err="AccessDenied"`,
  python: (name, namespace) =>
    `2026-03-02 10:01:20,123 ERROR [handlers.py:42] AccessDenied for ${namespace}/${name}`,
  java: (name, namespace) => [
    `2026-03-02 10:01:20.123 ERROR 1 --- [main] c.e.WidgetReconciler : AccessDenied: Widget ${namespace}/${name}`,
    '\tat com.example.WidgetReconciler.delete(WidgetReconciler.java:42)',
  ],
  words: (name, namespace) =>
    `error: cannot delete the bucket of widget "${name}" in namespace ${namespace}`,
  path: (name, namespace) =>
    `E0302 10:01:20.1       1 client.go:10] PATCH /apis/example.com/v1/namespaces/${namespace}/widgets/${name}: AccessDenied`,
  dotted: (name, namespace) => `error: cannot delete ${name}.${namespace}: AccessDenied`,
  uid: (_, namespace, uid) => `deleting ${uid} of ${namespace}`,
  'no-error': (name, namespace) =>
    `time="${ago(5)}" msg="Deleting" widget=${namespace}/${name} err="<nil>"`,
  repeated: (name, namespace) =>
    [17, 18].map((count) =>
      json('error', `retry ${count}`, { namespace, name, error: 'AccessDenied' }),
    ),
  newest: (name, namespace) => [
    json('info', 'Deleting', { namespace, name }),
    json('info', 'Waiting for the backup', { namespace, name }),
    json('error', 'Reconciler error', { namespace, name, error: 'Throttled' }),
  ],
  conflict: (name, namespace) =>
    json('error', 'Reconciler error', {
      ...{ namespace, name },
      error: 'Operation cannot be fulfilled: the object has been modified',
    }),
  // About another object, or a copy of what another program has said.
  'other-event': (name, namespace) =>
    json('error', 'deleting failed', { involvedObject: { namespace, name }, name, namespace }),
  'other-kind': (name, namespace) =>
    json('error', 'failed', { controllerKind: 'Gadget', namespace, name, error: 'AccessDenied' }),
  'other-kind-in-words': (name, namespace) =>
    `E0302 10:01:20.1       1 r.go:1] error syncing ConfigMap ${namespace}/${name}: AccessDenied`,
  'other-namespace': (name, namespace) => [
    json('error', `failed in ${namespace}`, { namespace: `${namespace}-2`, name, error: 'Denied' }),
    `error: cannot delete widget ${name} in namespace ${namespace}-2`,
  ],
  'other-word': (name, namespace) =>
    `level=error msg="${name} is not ready" namespace=${namespace}`,
  'other-ambiguous': (name, namespace) =>
    `E0302 10:01:20.1       1 sync.go:99] error syncing '${namespace}/${name}': AccessDenied`,
};

/** Lines of another controller with the same rights; only the first two show that it works on the object. */
const STRANGERS_LINES: Record<string, Line> = {
  strange: (name, namespace) => json('info', 'Deleting', { namespace, name }),
  'strange-error': (name, namespace) =>
    json('error', 'AccessDenied', { namespace, name, error: 'x' }),
  'other-scanned': (name, namespace) => json('info', 'Scanned', { namespace, name }),
  'other-ignored': (name, namespace) =>
    json('error', 'Ignoring the deletion: class mismatch', { namespace, name, error: 'x' }),
};

const STRANGER = { name: 'janitor', namespace: 'janitor-system' };

async function installStranger(world: World): Promise<void> {
  const namespace = world.name(STRANGER.namespace);
  const rules = operatorRules({ group: world.domain('example.com'), kind: 'Widget' });
  await world.ensureNamespace(namespace);
  const given: OperatorOptions = { ...STRANGER, namespace, type: false, scope: 'cluster', rules };
  await runPods(world, await install(world, given));
}

async function serveLines(world: World, operator: Operator): Promise<void> {
  const { client, namespace } = world;
  const names = [...Object.keys(LINES), ...Object.keys(STRANGERS_LINES)];
  await createEach(world, operator, names);
  await world.create({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace, name: 'other-ambiguous', finalizers: [`maps.${operator.group}/x`] },
  });
  // Of three pods the one that leads is read first, and here the only one that has a log.
  const pods = await client.list('v1', 'Pod', operator.namespace);
  const leader = pods
    .map(({ metadata }) => metadata.name)
    .sort()
    .at(-1);
  await world.create({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { namespace: operator.namespace, name: operator.name },
    spec: { holderIdentity: `${leader}_1`, leaseDurationSeconds: 40, renewTime: renewTime() },
  });
  const uids = new Map<string, string>();
  for (const { metadata } of await client.list(apiVersionOf(operator), operator.kind, namespace)) {
    uids.set(metadata.name, stringAt(metadata, 'uid') ?? '');
  }
  const written = (all: Record<string, Line>): string =>
    Object.entries(all)
      .flatMap(([name, line]) => line(name, namespace, uids.get(name) ?? ''))
      .map((line, index) => `${ago(30 - index / 10)} ${line}\n`)
      .join('');
  const logs: ContainerLogs = ({ pod }) =>
    pod.startsWith(STRANGER.name)
      ? written(STRANGERS_LINES)
      : pod === leader
        ? written(LINES)
        : undefined;
  await serveContainerLogs(world, world.name('node-1'), logs);
}

const renewTime = (): string => new Date().toISOString().replace('Z', '000Z');

/** Another namespace, which is terminating as well. */
const elsewhere = (world: World): string => world.name('elsewhere');

interface Said {
  before?: JsonObject;
  after?: JsonObject;
  /** Another writer than the operator. */
  by?: string;
}

/** What the status of each object says: before the deletion, and after it. */
const statuses = (world: World): Record<string, Said> => ({
  // Conditions that tell of the removal, without a word of failure in their types.
  'about-removal': {
    after: { conditions: [condition('Terminating', 'True', 'cannot delete the bucket')] },
  },
  'removed-well': { after: { conditions: [condition('Terminating', 'True', 'on its way')] } },
  'no-message': { after: { conditions: [condition('Ready', 'False', '')] } },
  conflict: {
    after: { conditions: [condition('Ready', 'False', 'the object has been modified; error')] },
  },
  'not-found': { after: { message: 'secrets "login" not found' } },
  'not-found-lower': { after: { message: 'issuers.example.org "login" not found' } },
  'core-not-found': { after: { message: 'secret "login" not found' } },
  'not-found-outside': { after: { message: 'bucket "login" not found' } },
  'new-message': {
    before: { conditions: [condition('Synced', 'False', 'creating', '2026-01-01T00:00:00Z')] },
    after: {
      conditions: [condition('Synced', 'False', 'denied by the cloud', '2026-01-01T00:00:00Z')],
    },
  },
  // Said before the deletion.
  'old-words': { before: { message: 'failed to reach the cloud' } },
  'old-error': { before: { lastError: 'Löschen nicht möglich: in Benutzung' } },
  'old-noise': { before: { message: 'failed: the object has been modified' } },
  'old-work': { before: { phase: 'Running', message: 'the last backup failed' } },
  'old-removal': { before: { phase: 'Running', message: 'failed to delete the bucket' } },
  'over-work': {
    before: { completionTime: '2026-01-01T00:00:00Z', message: 'the backup failed' },
  },
  'old-not-ready': {
    before: { conditions: [condition('Ready', 'False', 'the quota is exceeded: failed')] },
  },
  // Said by another program, which owns nothing here.
  'by-another': { after: { message: 'scan failed' }, by: 'janitor' },
  'by-another-before': { before: { message: 'scan failed' }, by: 'janitor' },
  // What is waited for.
  'waits-for-self': { after: { message: 'waiting for Widget old-words to be deleted' } },
  'waits-for-outside': { after: { message: 'waiting for Network vpc to be deleted' } },
  'waits-elsewhere': { after: { message: `Gadget ${elsewhere(world)}/data still exists` } },
  'waits-elsewhere-for-none': { after: { message: `Gadget ${elsewhere(world)}/dat still exists` } },
  'waits-for-namespace': {
    after: { message: `waiting until namespace ${elsewhere(world)} is deleted` },
  },
  'waits-in-namespace': {
    after: { message: `waiting for the login in namespace ${elsewhere(world)}` },
  },
  'made-namespace': { before: { namespaceRef: { kind: 'Namespace', name: elsewhere(world) } } },
  'waits-for-first': {
    after: {
      message: `waiting for ${SECOND} before widgets.example.com/waits-for-first is removed`,
    },
  },
  // References to objects that only seem to be those of this namespace.
  'refers-elsewhere': {
    before: { inputRef: { kind: 'Widget', name: 'used', namespace: elsewhere(world) } },
  },
  'refers-to-kind': { before: { inputRef: { kind: 'Gadget', name: 'used' } } },
  'refers-to-group': {
    before: { inputRef: { apiVersion: 'other.example.org/v1', kind: 'Widget', name: 'used' } },
  },
  'refers-to-network': { before: { networkRef: { kind: 'Network', name: 'vpc' } } },
  'says-kind-only': {
    before: { inputRef: { kind: 'Widget', name: 'used' } },
    after: { message: 'Widget is still in use' },
  },
  'waits-for-refused': { after: { message: 'waiting for Widget old-words: connection refused' } },
  // What is missing was in this namespace, by the words of the text.
  'lost-secret': {
    after: {
      message: `error getting secret creds in namespace ${world.namespace}: secrets "creds" not found`,
    },
  },
  'lost-secret-words': {
    after: { message: `cannot get secret "creds" from namespace "${world.namespace}": missing` },
  },
  'lost-host': {
    after: {
      message: `failed: lookup grafana.${world.namespace}.svc on 10.0.0.1:53: no such host`,
    },
  },
  'lost-pod-host': {
    after: {
      message: `unable to dial: lookup grafana-0.grafana.${world.namespace}.svc.cluster.local.: no such host`,
    },
  },
  'host-elsewhere': {
    after: { message: `failed: lookup grafana.${elsewhere(world)}.svc: no such host` },
  },
  // It counts, and so goes on.
  percent: { after: { message: 'deleted 40 % of the data' } },
  'percent-of-errors': { after: { message: 'the deletion failed for 3 % of the files, going on' } },
  // Nothing that anybody can resolve.
  'goes-on': { after: { message: "the instance is in 'deleting' state, requeuing" } },
});

/** It can never succeed, because what it needs was in this namespace. */
const HOPELESS = new Set(['lost-secret', 'lost-host', 'lost-pod-host']);

const SECOND = 'hold.example.com/second';

/** Objects outside of the namespace that are terminating. */
async function createOutside(world: World, { group }: Operator): Promise<void> {
  const { client } = world;
  const apiVersion = `${group}/v1`;
  await world.createType(customType({ group, kind: 'Network', scope: 'Cluster' }));
  await world.createType(customType({ group, kind: 'Gadget' }));
  await world.createNamespace(elsewhere(world));
  for (const about of [
    { kind: 'Network', metadata: { name: 'vpc' } },
    { kind: 'Gadget', metadata: { name: 'data', namespace: elsewhere(world) } },
  ]) {
    const metadata = { ...about.metadata, finalizers: [`outside.${group}/x`] };
    await world.create({ apiVersion, kind: about.kind, metadata });
  }
  await client.delete({ apiVersion, kind: 'Network', name: 'vpc' });
  await client.delete({ apiVersion: 'v1', kind: 'Namespace', name: elsewhere(world) });
}

function condition(
  type: string,
  status: string,
  message: string,
  lastTransitionTime?: string,
): JsonObject {
  return {
    ...{ type, status, message, reason: 'Cleanup' },
    ...(lastTransitionTime === undefined ? {} : { lastTransitionTime }),
  };
}

async function writeStatuses(world: World, operator: Operator, at: 'before' | 'after') {
  for (const [name, one] of Object.entries(statuses(world))) {
    const status = one[at];
    if (status === undefined) continue;
    const fieldManager = one.by ?? operator.manager;
    await world.client.patchStatus(widget(world, operator, name), status, { fieldManager });
  }
}

/** Events of programs that own nothing here, or without a trouble, and one of the operator. */
const EVENTS: Record<string, { component?: string; type?: string; message?: string }> = {
  'event-own': {},
  'event-normal': { type: 'Normal' },
  'event-conflict': { message: 'the object has been modified' },
  'event-controller': { component: 'deployment-controller' },
  'event-kubelet': { component: 'kubelet' },
  'event-stranger': { component: 'janitor' },
};

async function writeEvents(world: World, operator: Operator): Promise<void> {
  const { namespace } = world;
  for (const [name, given] of Object.entries(EVENTS)) {
    const { component = operator.name, type = 'Warning', message = 'AccessDenied' } = given;
    const { metadata } = await world.client.get(widget(world, operator, name));
    const at = ago(0).replace(/\.\d+/, '');
    await world.create({
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { namespace, name },
      involvedObject: {
        ...{ apiVersion: apiVersionOf(operator), kind: operator.kind, namespace, name },
        uid: stringAt(metadata, 'uid') ?? '',
      },
      ...{ type, reason: 'CleanupFailed', message, source: { component } },
      ...{ firstTimestamp: at, lastTimestamp: at, count: 1 },
    });
  }
}

const ODD = ['managed-off', 'paused-by-another', 'on-a-node', 'uses', 'used', 'silent-writers'];

/** Objects that say by other fields what becomes of them. */
async function createOddities(world: World, operator: Operator): Promise<void> {
  const { client, namespace } = world;
  await createOutside(world, operator);
  await createEach(world, operator, ODD);
  const annotate = (name: string, annotations: JsonObject) =>
    client.patch(widget(world, operator, name), { metadata: { annotations } });
  await annotate('managed-off', { [`${operator.group}/reconcile`]: 'disabled' });
  await annotate('paused-by-another', { 'gitops.example.org/paused': 'true' });
  await client.patch(widget(world, operator, 'on-a-node'), { spec: { nodeName: 'node-x' } });
  await client.patch(widget(world, operator, 'paused-by-another'), {
    spec: { namespaceRef: { kind: 'Namespace', name: elsewhere(world) } },
  });
  await client.patch(widget(world, operator, 'waits-for-first'), {
    metadata: { finalizers: [`widgets.${operator.group}/waits-for-first`, SECOND] },
  });
  const { metadata } = await client.get(widget(world, operator, 'used'));
  const uid = stringAt(metadata, 'uid') ?? '';
  await client.patchStatus(
    widget(world, operator, 'uses'),
    { ...{ inputRef: { kind: operator.kind, name: 'used', uid, namespace } } },
    { fieldManager: operator.manager },
  );
  await client.patchStatus(
    widget(world, operator, 'silent-writers'),
    { conditions: [condition('Ready', 'False', 'cannot delete: denied')] },
    { fieldManager: operator.manager },
  );
  await client.patch(widget(world, operator, 'silent-writers'), {
    metadata: { managedFields: [{}] },
  });
}

/** Objects whose owner fails by what it says; every other owner only runs. */
const FAILING = new Set([
  ...['zap-json', 'zap-console', 'klog', 'klog-words', 'logfmt', 'words', 'python', 'java'],
  ...['path', 'dotted'],
  ...['repeated', 'newest', 'about-removal', 'new-message', 'event-own'],
  ...['not-found', 'not-found-lower', 'core-not-found', 'not-found-outside'],
  ...['silent-writers', 'waits-for-refused', 'host-elsewhere'],
]);

/** Objects that wait for others of this namespace. */
const WAITS: Record<string, string> = {
  uses: 'used',
  'says-kind-only': 'used',
  'waits-for-self': 'old-words',
};

function chainOf(world: World, operator: Operator, name: string): Link[] {
  const finalizer = `widgets.${operator.group}/${name}`;
  const held = objectFinalizer(widget(world, operator, name), finalizer);
  const waited = WAITS[name];
  if (waited !== undefined) return [held, ...chainOf(world, operator, waited)];
  if (/^(?:waits-for-namespace|made-namespace)$/.test(name)) {
    return [held, { code: 'unexplained', subject: namespaceRef(elsewhere(world)) }];
  }
  if (/^(?:waits-for-outside|refers-to-network)$/.test(name)) {
    return [held, ...outside(operator)];
  }
  if (name === 'waits-for-first') {
    const object = widget(world, operator, name);
    return [held, objectFinalizer(object, SECOND), ownerUnknown(object, SECOND)];
  }
  const isFailing = FAILING.has(name) || name.startsWith('lost-');
  const code = isFailing ? 'owner-failing' : 'owner-running';
  // The log of one controller names the object, and the finalizer has another writer.
  if (name.startsWith('strange')) {
    return [held, ownerUnknown(widget(world, operator, name), finalizer)];
  }
  if (HOPELESS.has(name)) {
    const says = [/can never succeed/];
    return [held, owner({ ...operator, finalizer }, 'owner-failing', { says })];
  }
  if (name === 'goes-on') {
    const advises = [/more time/];
    return [held, owner({ ...operator, finalizer }, code, { advises })];
  }
  const end = name === 'managed-off' ? 'owner-not-acting' : code;
  return [held, owner({ ...operator, finalizer }, end)];
}

/** The Network, which is held in turn. */
function outside({ group }: Operator): Link[] {
  const finalizer = `outside.${group}/x`;
  const object = { apiVersion: `${group}/v1`, kind: 'Network', name: 'vpc' };
  return [objectFinalizer(object, finalizer), ownerUnknown(object, finalizer)];
}

type Given = Pick<Situation, 'id' | 'title'> &
  Partial<Situation> & { names: (world: World) => string[] };

const many = ({ names, ...given }: Given): Scenario =>
  situation({
    ...given,
    own: true,
    behaviour: HANGS,
    expect: (world, operator) => {
      const map = ref('v1', 'ConfigMap', world.namespace, 'other-ambiguous');
      const finalizer = `maps.${operator.group}/x`;
      const second = widget(world, operator, 'waits-for-first');
      return {
        notInspected: given.id === 'many-logs' ? [/log of/] : [],
        deadlock: given.id === 'many-statuses',
        mutations: given.id === 'many-logs' ? [] : [`delete namespaces/${world.namespace}`],
        chains: [
          [heldBy(world, operator), owner(operator, 'owner-running')],
          ...names(world).map((name) => chainOf(world, operator, name)),
          ...(given.id === 'many-logs'
            ? [[objectFinalizer(map, finalizer), ownerUnknown(map, finalizer)]]
            : [[objectFinalizer(second, SECOND), ownerUnknown(second, SECOND)]]),
        ],
      };
    },
    beyondCommands: 'what most of the statuses and logs say is made up',
    cure: async (world, operator) => {
      const { client, namespace } = world;
      const apiVersion = apiVersionOf(operator);
      const free = { metadata: { finalizers: null } };
      for (const { metadata } of await client.list(apiVersion, operator.kind, namespace)) {
        await client.patch(ref(apiVersion, operator.kind, namespace, metadata.name), free);
      }
      if (given.id === 'many-logs') {
        await client.patch(ref('v1', 'ConfigMap', namespace, 'other-ambiguous'), free);
        return;
      }
      await client.patch({ apiVersion, kind: 'Network', name: 'vpc' }, free);
      await client.patch(ref(apiVersion, 'Gadget', elsewhere(world), 'data'), free);
    },
  });

export const manyObjects: Scenario[] = [
  many({
    id: 'many-logs',
    names: () => [...Object.keys(LINES), ...Object.keys(STRANGERS_LINES)],
    title: 'the logs of two controllers name many objects, in every format',
    operator: { replicas: 3 },
    before: installStranger,
    identity: 'teardown-logs',
    inputs: { 'owner-logs': 'true' },
    afterwards: serveLines,
  }),
  many({
    id: 'many-statuses',
    names: (world) => [...Object.keys(statuses(world)), ...Object.keys(EVENTS), ...ODD],
    title: 'the statuses of many objects tell of trouble, of other work and of waits',
    bystanders: [{ ...STRANGER, rules: operatorRules({ group: 'example.org', kind: 'Other' }) }],
    afterwards: async (world, operator) => {
      await createEach(world, operator, [...Object.keys(statuses(world)), ...Object.keys(EVENTS)]);
      await createOddities(world, operator);
      await writeStatuses(world, operator, 'before');
      await writeEvents(world, operator);
    },
    // What existed before the deletion is read: the Events are deleted with the namespace.
    identity: 'teardown-gate',
    delete: false,
    inputs: { delete: 'true' },
    settle: async () => {},
    meanwhile: async (world) => {
      const operator = operatorOf(world, { namespace: world.name('widget-system') });
      // The namespace controller deletes them seconds after the namespace is terminating.
      for (const name of Object.keys(statuses(world))) {
        await world.terminating(widget(world, operator, name));
      }
      await writeStatuses(world, operator, 'after');
    },
  }),
];
