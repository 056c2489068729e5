import fc from 'fast-check';
import { objectDetail } from '../../src/diagnose/detail.ts';
import { wantedFor } from '../../src/diagnose/wanted.ts';
import { webhookFacts } from '../../src/model/facts/admission.ts';
import { readFailed, readOk } from '../../src/model/read.ts';
import type {
  BindingFacts,
  DefinitionDetail,
  EventFacts,
  FinalizerWriter,
  LeaseFacts,
  ObjectFacts,
  OwnerReference,
  RoleFacts,
  Snapshot,
  WorkloadFacts,
} from '../../src/model/snapshot.ts';
import {
  CLUSTER_SOURCES,
  type ClusterSources,
  NAMESPACE_SOURCES,
  type NamespaceSources,
} from '../../src/model/sources.ts';
import {
  CONFIG_MAPS,
  contentOf,
  DELETED_AT,
  DEMO,
  failureOf,
  NOW,
  namespaceFacts,
  objectFacts,
  PODS,
  podFacts,
  snapshot,
  typeOf,
  WIDGETS,
} from './snapshots.ts';

/**
 * Clusters whose truth is known: one program has put a finalizer on one object and would remove it. Everything
 * else is beside the point, asleep, left over, or could not be read. What holds in every one of these worlds:
 * - the owner watches the type and may change the object, and its pods show it, unless it runs outside;
 * - a name that tells (of a field manager, of an Event's component) is that of its program;
 * - tools that anybody uses (kubectl, GitOps) may have written the finalizer last.
 */

const EVIDENCE = [
  ...(['status', 'event', 'helm', 'conversion'] as const),
  ...(['webhook', 'lease', 'stale lease', 'labels'] as const),
];

/** Innocent all of them. */
const OTHERS = [
  'maker of the type', // reconciles the type, and has put another finalizer on it, or none
  'admin', // may do everything, as backup and GitOps tools
  'sleeping admin',
  'user interface', // changes on demand: no watch
  'viewer', // watches only
  'parent', // makes children: only widgets/finalizers
  'annotator', // watches and changes the type for reasons of its own
  'sleeping annotator',
  'policy engine', // a webhook for every type, and rights on everything
  'install for another namespace', // the same program, told to look elsewhere
  'sibling', // another program of the same product, with the same account
  'operator of another group',
] as const;

const READS = [
  ...['deployments', 'statefulSets', 'daemonSets', 'replicaSets', 'jobs', 'cronJobs'],
  ...['clusterRoles', 'clusterRoleBindings', 'leases', 'definitions', 'apiServices'],
  ...['validatingWebhooks'],
  ...['roles', 'roleBindings', 'events', 'pods', 'services'],
];

const one = fc.constantFrom;
const drawn = fc.record({
  type: one('custom', 'custom', 'built-in'),
  /** Whose name the finalizer has: the type's group, another served group, nobody's, none. */
  domain: one('own', 'foreign', 'unclear', 'bare'),
  owner: fc.record({
    kind: one(
      ...(['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet'] as const),
      ...(['Job', 'CronJob', 'Pod', 'Rollout'] as const),
    ),
    state: one('runs', 'asleep', 'crashes', 'gone', 'outside'),
    /** What a container of it is called, beside its image; a word that anybody uses. */
    workload: one('telling', 'generic'),
    bound: one('account', 'user', 'group', 'everyone'),
    by: one('ClusterRoleBinding', 'RoleBinding'),
    role: one('ClusterRole', 'Role'),
    rule: one('type', 'type and status', 'group', 'everything', 'this object'),
    verbs: one('update', 'patch', '*'),
    watches: one('all', 'this'),
  }),
  others: fc.uniqueArray(one(...OTHERS), { maxLength: 4 }),
  evidence: fc.uniqueArray(one(...EVIDENCE), { maxLength: 4 }),
  /** `tool`: the admin's, which has restored the object from a backup, finalizer and all. */
  writer: one('owner', 'generic', 'kubectl', 'tool', 'nobody'),
  leftovers: fc.boolean(),
  unread: fc.oneof(
    { arbitrary: fc.constant<string[]>([]), weight: 3 },
    { arbitrary: fc.uniqueArray(one(...READS), { minLength: 1, maxLength: 2 }), weight: 1 },
  ),
});
type Drawn<A> = A extends fc.Arbitrary<infer T> ? T : never;
export type World = Drawn<typeof drawn>;
type Program = World['owner'];
export const worlds = drawn.map(made);

/** A bare pod does not sleep, a Role is bound by a RoleBinding, one that runs outside is a user or a group. */
function made(world: World): World {
  const owner = { ...world.owner };
  if (owner.state === 'asleep' && (owner.kind === 'Pod' || owner.kind === 'Rollout')) {
    owner.kind = 'Deployment';
  }
  if (owner.by === 'ClusterRoleBinding') owner.role = 'ClusterRole';
  if (owner.state === 'outside') {
    owner.bound = owner.bound === 'group' ? 'group' : 'user';
    owner.rule = 'type and status';
  }
  return { ...world, owner };
}

export const GADGETS = typeOf('gadgets.org', 'gadgets', 'Gadget');
export const OWNER = 'keeper-operator';
const OPS = 'ops';
/** Of the namespace in which everybody else runs. */
const TOOLS = 'tools';

function finalizerOf({ domain, type }: World): string {
  // What is built in has no group of its own that a finalizer could be called after.
  const own = type === 'custom' ? 'widgets.example.com/cleanup' : 'acme.dev/protect';
  return { own, foreign: 'gadgets.org/hold', unclear: 'acme.dev/protect', bare: 'hold' }[domain];
}

/** The API group whose operator the owner is, where it is one. */
function groupOfOwner({ domain, type }: World): string | undefined {
  if (domain === 'foreign') return 'gadgets.org';
  return type === 'custom' && (domain === 'own' || domain === 'bare') ? 'example.com' : undefined;
}

export function ownerName({ owner: { kind, state } }: World): string | undefined {
  return state === 'gone' || state === 'outside' ? undefined : `${kind} ${OPS}/${OWNER}`;
}

interface Everything {
  cluster: ClusterSources;
  places: Record<string, NamespaceSources>;
  details: Record<string, DefinitionDetail>;
}

const ruleOf = (
  resources: string[],
  verbs: string[],
  apiGroups: string[],
  resourceNames: string[] = [],
) => ({ apiGroups, resources, resourceNames, verbs });

/** Everything there is; what of it is seen depends on what is asked for and what may be read. */
function build(world: World): { all: Everything; object: ObjectFacts } {
  const { domain, owner, evidence, others } = world;
  const type = world.type === 'custom' ? WIDGETS : CONFIG_MAPS;
  const finalizer = finalizerOf(world);
  const group = groupOfOwner(world);
  const empty = (sources: object) =>
    Object.fromEntries(Object.keys(sources).map((key) => [key, []]));
  const places = Object.fromEntries(
    [DEMO, OPS, TOOLS].map((name) => [name, empty(NAMESPACE_SOURCES)]),
  ) as unknown as Everything['places'];
  const cluster = empty(CLUSTER_SOURCES) as unknown as ClusterSources;
  cluster.namespaces.push(
    ...[DEMO, OPS, TOOLS].map((name) =>
      namespaceFacts(name === DEMO ? {} : { name, uid: name, deletionTimestamp: undefined }),
    ),
  );
  const installed = { deletionTimestamp: undefined, labels: {}, annotations: {} };
  const details: Everything['details'] = {};
  for (const { group: of, kind, resource, version } of [WIDGETS, GADGETS]) {
    const name = `${resource}.${of}`;
    cluster.definitions.push({ name, ...installed });
    details[name] = {
      ...{ name, ...installed, group: of, kind, storedVersions: [version] },
      ...{ conditions: [], conversionService: undefined },
    };
  }

  /** Installs a workload, its pod and its rights. */
  const install = (
    namespace: string,
    name: string,
    program: Partial<Program>,
    rules: RoleFacts['rules'],
    more: Partial<WorkloadFacts> & { containers?: string[] } = {},
  ): string => {
    const { kind = 'Deployment', state = 'runs', bound = 'account', by, role } = program;
    const { containers = [name], ...given } = more;
    const account = given.account ?? name;
    const uid = `uid-${namespace}-${name}`;
    const pod = kind === 'Pod' ? name : `${name}-5d8f7-x2x4z`;
    const isUp = state === 'runs';
    const asleep = state === 'asleep';
    const workload: WorkloadFacts = {
      apiVersion: kind === 'Job' || kind === 'CronJob' ? 'batch/v1' : 'apps/v1',
      ...{ kind, namespace, name, uid, account, ...installed, programs: containers },
      ...{ wanted: asleep ? 0 : 1, ready: isUp ? 1 : 0, podLabels: { app: name } },
      ...{ conditions: [], nodeSelector: {}, owner: undefined, scaledBy: undefined },
      ...{ watches: undefined, selectors: [], addresses: [], limits: [], ...given },
    };
    const apiVersion = kind === 'Rollout' ? 'rollouts.dev/v1' : workload.apiVersion;
    const controller: OwnerReference = { apiVersion, kind, name, uid, controller: true };
    const isThere = state !== 'gone' && state !== 'outside';
    if (isThere && kind !== 'Pod' && kind !== 'Rollout') {
      const list = `${kind.charAt(0).toLowerCase()}${kind.slice(1)}s` as 'deployments';
      cluster[list].push(workload);
    }
    if (isThere && !asleep) {
      const facts = podFacts(pod, {
        ...{ namespace, uid: `uid-pod-${namespace}-${name}`, deletionTimestamp: undefined },
        ...{ phase: isUp ? 'Running' : 'Pending', ready: isUp, account, programs: containers },
        ...{ podLabels: { app: name }, watches: workload.watches },
        ownerReferences: kind === 'Pod' ? [] : [controller],
      });
      cluster.pods.push(facts);
      places[namespace]?.pods.push(facts);
    }
    const user = `system:serviceaccount:${namespace}:${account}`;
    const outside = state === 'outside';
    const subject = {
      account: { kind: 'ServiceAccount', namespace, name: account },
      user: { kind: 'User', namespace: undefined, name: outside ? 'remote-keeper' : user },
      group: {
        kind: 'Group',
        namespace: undefined,
        name: outside ? 'remote-keepers' : `system:serviceaccounts:${namespace}`,
      },
      everyone: { kind: 'Group', namespace: undefined, name: 'system:serviceaccounts' },
    }[bound];
    const here = by === 'RoleBinding';
    const roleFacts = { name: `${namespace}-${name}`, rules, labels: {}, annotations: {} };
    const bindingFacts: BindingFacts = {
      name: `${namespace}-${name}`,
      namespace: here ? DEMO : undefined,
      role: { kind: role ?? 'ClusterRole', name: roleFacts.name },
      subjects: [subject],
    };
    if (role === 'Role') places[DEMO]?.roles.push({ ...roleFacts, namespace: DEMO });
    else cluster.clusterRoles.push({ ...roleFacts, namespace: undefined });
    if (here) places[DEMO]?.roleBindings.push(bindingFacts);
    else cluster.clusterRoleBindings.push(bindingFacts);
    return pod;
  };

  const { resource } = type;
  const groups = [type.group];
  const watching = ['get', 'list', 'watch'];
  const changing = [...watching, owner.verbs];
  const rules = {
    type: [ruleOf([resource], changing, groups)],
    'type and status': [
      ruleOf([resource], changing, groups),
      ruleOf([`${resource}/status`, `${resource}/finalizers`], ['update'], groups),
    ],
    group: [ruleOf(['*'], changing, groups)],
    everything: [ruleOf(['*'], ['*'], ['*'])],
    'this object': [
      ruleOf([resource], watching, groups),
      ruleOf([resource], [owner.verbs], groups, ['db']),
    ],
  }[owner.rule];
  const ownGroup = domain === 'foreign' ? [ruleOf(['*'], watching, ['gadgets.org'])] : [];
  const isGone = owner.state === 'gone';
  const release = { 'meta.helm.sh/release-name': 'keeper', 'meta.helm.sh/release-namespace': OPS };
  const labels = { 'app.kubernetes.io/name': 'keeper' };
  const generic = owner.workload === 'generic';
  const containers = generic ? ['manager'] : [OWNER];
  const pod = isGone
    ? ''
    : install(OPS, OWNER, owner, [...rules, ...ownGroup], {
        containers,
        watches: owner.watches === 'this' ? [DEMO] : undefined,
        ...(evidence.includes('helm') ? { annotations: release } : {}),
        ...(evidence.includes('labels') ? { labels } : {}),
      });
  if (isGone && world.leftovers) install(OPS, OWNER, { ...owner, bound: 'account' }, rules);

  // What shows who it is. Its manager is called as its program is, which may tell nothing.
  const manager = generic ? 'manager' : OWNER;
  const time = '2026-03-02T09:30:00Z';
  const by = (name: string): FinalizerWriter => ({ finalizer, manager: name, time });
  const writers = {
    owner: [by(manager)],
    generic: [by('manager')],
    kubectl: [by('kubectl')],
    tool: [{ ...by('backup'), isAuthor: true as const }],
    nobody: [],
  };
  // Who reconciles the type writes its status; who only guards its objects does not.
  const isReconciler = group === type.group;
  const makerWrites = others.includes('maker of the type') && !isReconciler;
  const object = objectFacts(type, 'db', {
    finalizers: [finalizer],
    writers: writers[world.writer],
    statusWriters: [
      ...(evidence.includes('status') && isReconciler ? [{ manager, time }] : []),
      ...(makerWrites ? [{ manager: 'widget-maker', time }] : []),
    ],
  });
  const event = (component: string, instance: string): EventFacts => ({
    ...{ type: 'Normal', reason: 'Reconciled', message: 'fine', component, instance, at: time },
    regarding: { uid: object.uid },
  });
  const there = owner.state !== 'gone' && owner.state !== 'outside';
  const definition =
    group === undefined ? undefined : cluster.definitions.find((d) => d.name.endsWith(group));
  const webhook = (namespace: string, name: string, apiGroups: string[]): void => {
    places[namespace]?.services.push({ namespace, name, selector: { app: name } });
    const rules = [{ operations: ['CREATE'], apiGroups, apiVersions: ['*'], resources: ['*'] }];
    const clientConfig = { service: { namespace, name } };
    const hook = { name: `${name}.example.com`, failurePolicy: 'Ignore', clientConfig, rules };
    const object = { metadata: { name, uid: `webhook-${name}` }, webhooks: [hook] };
    cluster.validatingWebhooks.push(...webhookFacts('ValidatingWebhookConfiguration')(object));
  };
  const lease = (renewTime: string): LeaseFacts => ({
    namespace: OPS,
    name: group === undefined ? 'keeper-leader' : `${group}-leader`,
    holder: `${pod === '' ? `${OWNER}-5d8f7-x2x4z` : pod}_6a1c7be2`,
    renewTime,
    durationSeconds: 15,
    writers: [world.writer === 'generic' ? 'manager' : OWNER],
  });
  const shown: Record<World['evidence'][number], () => void> = {
    event: () => void (there && !generic && places[DEMO]?.events.push(event(OWNER, pod))),
    helm: () => void (definition && Object.assign(definition, { annotations: release })),
    labels: () => void (definition && Object.assign(definition, { labels })),
    conversion: () => {
      const detail = details[definition?.name ?? ''];
      if (!there || detail === undefined) return;
      places[OPS]?.services.push({ namespace: OPS, name: OWNER, selector: { app: OWNER } });
      detail.conversionService = { namespace: OPS, name: OWNER };
    },
    webhook: () => void (there && group !== undefined && webhook(OPS, OWNER, [group])),
    // Fresh only where somebody renews it.
    lease: () => void (owner.state === 'runs' && cluster.leases.push(lease(NOW))),
    'stale lease': () => void cluster.leases.push(lease('2026-03-01T00:00:00Z')),
    status: () => {},
  };
  for (const one of evidence) shown[one]();

  const full = [ruleOf(['*'], ['*'], ['*'])];
  const may = (what: string, ...verbs: string[]) => ruleOf([`${resource}${what}`], verbs, groups);
  const own = [may('', ...watching, 'update', 'patch')];
  const asleep = { state: 'asleep' } as const;
  const beside: Record<World['others'][number], () => void> = {
    'maker of the type': () => {
      // Where the owner is the operator of the type, there is no second one.
      if (isReconciler || world.type === 'built-in') return;
      const annotations = {
        'meta.helm.sh/release-name': 'widgets',
        'meta.helm.sh/release-namespace': TOOLS,
      };
      install(TOOLS, 'widget-maker', {}, [...own, may('/status', 'update')], { annotations });
      const crd = cluster.definitions.find((d) => d.name === 'widgets.example.com');
      if (crd !== undefined) crd.annotations = annotations;
      webhook(TOOLS, 'widget-maker', ['example.com']);
    },
    admin: () => install(TOOLS, 'backup', {}, full),
    'sleeping admin': () => install(TOOLS, 'mirror', asleep, full),
    'user interface': () => install(TOOLS, 'console', {}, [may('', 'get', 'list', 'update')]),
    viewer: () => install(TOOLS, 'viewer', {}, [may('', ...watching)]),
    parent: () => install(TOOLS, 'parent', {}, [may('/finalizers', 'update')]),
    annotator: () => install(TOOLS, 'annotator', {}, own),
    'sleeping annotator': () => install(TOOLS, 'widget-annotator', asleep, own),
    'policy engine': () => {
      install(TOOLS, 'policies', {}, full);
      webhook(TOOLS, 'policies', ['*']);
      places[DEMO]?.events.push(event('policies', 'policies-5d8f7-x2x4z'));
    },
    'install for another namespace': () =>
      install(TOOLS, OWNER, {}, rules, { containers, watches: ['team-b'] }),
    sibling: () => {
      const program = { ...owner, kind: 'Deployment' } as const;
      if (there) install(OPS, 'keeper-metrics', program, [], { account: OWNER });
    },
    'operator of another group': () =>
      install(TOOLS, 'box-operator', {}, [ruleOf(['boxes', 'boxes/status'], ['*'], ['boxes.io'])]),
  };
  for (const other of others) beside[other]();
  return { all: { cluster, places, details }, object };
}

/** What the gate sees of it: what it asks for, in rounds, as long as it may be read. */
export function look(world: World): Snapshot {
  const { all, object } = build(world);
  const type = world.type === 'custom' ? WIDGETS : CONFIG_MAPS;
  const now: Snapshot = {
    ...snapshot(),
    discovery: readOk({ types: [PODS, CONFIG_MAPS, WIDGETS, GADGETS], failedGroups: [] }),
    content: [
      contentOf(type, [
        { finalizers: object.finalizers, count: 1, since: DELETED_AT, examples: [object] },
      ]),
    ],
    ...{ cluster: {}, places: {} },
  };
  const answer = <T>(source: string, value: T) => {
    if (!world.unread.includes(source)) return readOk(value);
    now.unread.push({ source, what: source, reason: '403 Forbidden: no' });
    return readFailed(failureOf());
  };
  for (let round = 0; round < 3; round++) {
    const wanted = wantedFor(now);
    const cluster = now.cluster as Record<string, unknown>;
    for (const key of wanted.cluster) cluster[key] ??= answer(key, all.cluster[key]);
    for (const { namespace, sources } of wanted.places) {
      now.places[namespace] ??= {};
      const seen = now.places[namespace] as Record<string, unknown>;
      for (const source of sources)
        seen[source] ??= answer(source, all.places[namespace]?.[source] ?? []);
    }
    for (const name of wanted.definitions) now.definitions[name] ??= readOk(all.details[name]);
    for (const { object } of wanted.details) {
      now.details[object.uid] ??= readOk(objectDetail({}));
    }
  }
  return now;
}
