import fc from 'fast-check';
import { wantedFor } from '../../src/diagnose/wanted.ts';
import { readFailed, readOk } from '../../src/model/read.ts';
import type {
  BindingFacts,
  ClusterSources,
  DefinitionDetail,
  EventFacts,
  FinalizerWriter,
  LeaseFacts,
  NamespaceSources,
  ObjectFacts,
  OwnerReference,
  PodFacts,
  RoleFacts,
  Snapshot,
  WebhookFacts,
  WorkloadFacts,
} from '../../src/model/snapshot.ts';
import {
  CONFIG_MAPS,
  contentOf,
  DEMO,
  failureOf,
  NOW,
  namespaceFacts,
  objectFacts,
  PODS,
  podFacts,
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
export interface World {
  type: 'custom' | 'built-in';
  /** Whose name the finalizer has: the type's group, another served group, nobody's, none. */
  domain: 'own' | 'foreign' | 'unclear' | 'bare';
  owner: Program;
  others: Other[];
  evidence: Evidence[];
  /** `tool`: the admin's, which has restored the object from a backup, finalizer and all. */
  writer: 'owner' | 'generic' | 'kubectl' | 'tool' | 'nobody';
  leftovers: boolean;
  unread: string[];
}

type Kind =
  | 'Deployment'
  | 'StatefulSet'
  | 'DaemonSet'
  | 'ReplicaSet'
  | 'Job'
  | 'CronJob'
  | 'Pod'
  | 'Rollout';
type State = 'runs' | 'asleep' | 'crashes' | 'gone' | 'outside';
type Evidence = (typeof EVIDENCE)[number];
type Other = (typeof OTHERS)[number];

interface Program {
  kind: Kind;
  state: State;
  /** What a container of it is called, beside its image; a word that anybody uses. */
  workload: 'telling' | 'generic';
  bound: 'account' | 'user' | 'group' | 'everyone';
  by: 'ClusterRoleBinding' | 'RoleBinding';
  role: 'ClusterRole' | 'Role';
  rule: 'type' | 'type and status' | 'group' | 'everything' | 'this object';
  verbs: 'update' | 'patch' | '*';
  watches: 'all' | 'this';
}

const EVIDENCE = [
  'status',
  'event',
  'helm',
  'olm',
  'conversion',
  'webhook',
  'lease',
  'stale lease',
  'labels',
] as const;

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

const CLUSTER_READS = [
  'deployments',
  'statefulSets',
  'daemonSets',
  'replicaSets',
  'jobs',
  'cronJobs',
  'clusterRoles',
  'clusterRoleBindings',
  'leases',
  'definitions',
  'apiServices',
  'validatingWebhooks',
  'clusterServiceVersions',
] as const satisfies (keyof ClusterSources)[];

export const worlds: fc.Arbitrary<World> = fc
  .record({
    type: fc.constantFrom('custom' as const, 'custom' as const, 'built-in' as const),
    domain: fc.constantFrom(
      'own' as const,
      'foreign' as const,
      'unclear' as const,
      'bare' as const,
    ),
    owner: fc.record({
      kind: fc.constantFrom<Kind>(
        ...(['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet'] as const),
        ...(['Job', 'CronJob', 'Pod', 'Rollout'] as const),
      ),
      state: fc.constantFrom<State>('runs', 'asleep', 'crashes', 'gone', 'outside'),
      workload: fc.constantFrom('telling' as const, 'generic' as const),
      bound: fc.constantFrom('account' as const, 'user', 'group', 'everyone'),
      by: fc.constantFrom('ClusterRoleBinding' as const, 'RoleBinding'),
      role: fc.constantFrom('ClusterRole' as const, 'Role'),
      rule: fc.constantFrom<Program['rule']>(
        ...(['type', 'type and status', 'group', 'everything', 'this object'] as const),
      ),
      verbs: fc.constantFrom('update' as const, 'patch', '*'),
      watches: fc.constantFrom('all' as const, 'this'),
    }),
    others: fc.uniqueArray(fc.constantFrom(...OTHERS), { maxLength: 4 }),
    evidence: fc.uniqueArray(fc.constantFrom(...EVIDENCE), { maxLength: 4 }),
    writer: fc.constantFrom<World['writer']>('owner', 'generic', 'kubectl', 'tool', 'nobody'),
    leftovers: fc.boolean(),
    unread: fc.oneof(
      { arbitrary: fc.constant<string[]>([]), weight: 3 },
      {
        arbitrary: fc.uniqueArray(
          fc.constantFrom<string>(
            ...CLUSTER_READS,
            ...['roles', 'roleBindings', 'events', 'pods', 'services'],
          ),
          { minLength: 1, maxLength: 2 },
        ),
        weight: 1,
      },
    ),
  })
  .map((world) => made(world as World));

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

export function finalizerOf({ domain, type }: World): string {
  switch (domain) {
    case 'own':
      // What is built in has no group of its own that a finalizer could be called after.
      return type === 'custom' ? 'widgets.example.com/cleanup' : 'acme.dev/protect';
    case 'foreign':
      return 'gadgets.org/hold';
    case 'unclear':
      return 'acme.dev/protect';
    case 'bare':
      return 'hold';
  }
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
  cluster: { [K in keyof ClusterSources]: ClusterSources[K] };
  places: Record<string, { [K in keyof NamespaceSources]: NamespaceSources[K] }>;
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
  const { owner, evidence, others } = world;
  const type = world.type === 'custom' ? WIDGETS : CONFIG_MAPS;
  const finalizer = finalizerOf(world);
  const group = groupOfOwner(world);
  const place = () => ({
    roles: [] as RoleFacts[],
    roleBindings: [] as BindingFacts[],
    pods: [] as PodFacts[],
    services: [] as NamespaceSources['services'],
    locks: [],
    events: [] as EventFacts[],
  });
  const places: Everything['places'] = { [DEMO]: place(), [OPS]: place(), [TOOLS]: place() };
  const cluster: Everything['cluster'] = {
    namespaces: [DEMO, OPS, TOOLS].map((name) =>
      namespaceFacts(name === DEMO ? {} : { name, uid: name, deletionTimestamp: undefined }),
    ),
    apiServices: [],
    definitions: [WIDGETS, GADGETS].map(({ group: of, resource }) => ({
      name: `${resource}.${of}`,
      deletionTimestamp: undefined,
      labels: {},
      annotations: {},
    })),
    validatingWebhooks: [],
    mutatingWebhooks: [],
    validatingPolicies: [],
    validatingPolicyBindings: [],
    mutatingPolicies: [],
    mutatingPolicyBindings: [],
    deployments: [],
    statefulSets: [],
    daemonSets: [],
    replicaSets: [],
    jobs: [],
    cronJobs: [],
    pods: [],
    clusterRoles: [],
    clusterRoleBindings: [],
    leases: [],
    clusterServiceVersions: [],
    conversions: [],
    providerNodes: [],
  };
  const details: Everything['details'] = Object.fromEntries(
    [WIDGETS, GADGETS].map(({ group: of, kind, resource, version }) => [
      `${resource}.${of}`,
      {
        name: `${resource}.${of}`,
        deletionTimestamp: undefined,
        labels: {},
        annotations: {},
        group: of,
        kind,
        storedVersions: [version],
        conditions: [],
        conversionService: undefined,
      },
    ]),
  );

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
      kind,
      namespace,
      name,
      uid,
      deletionTimestamp: undefined,
      wanted: asleep ? 0 : 1,
      ready: isUp ? 1 : 0,
      labels: {},
      annotations: {},
      conditions: [],
      nodeSelector: {},
      owner: undefined,
      account,
      podLabels: { app: name },
      programs: containers,
      watches: undefined,
      ...{ selectors: [], addresses: [], limits: [] },
      scaledBy: undefined,
      ...given,
    };
    const controller: OwnerReference = {
      apiVersion: kind === 'Rollout' ? 'rollouts.dev/v1' : workload.apiVersion,
      kind,
      name,
      uid,
      controller: true,
    };
    const isThere = state !== 'gone' && state !== 'outside';
    if (isThere && kind !== 'Pod' && kind !== 'Rollout') {
      const lists = {
        Deployment: cluster.deployments,
        StatefulSet: cluster.statefulSets,
        DaemonSet: cluster.daemonSets,
        ReplicaSet: cluster.replicaSets,
        Job: cluster.jobs,
        CronJob: cluster.cronJobs,
      };
      lists[kind].push(workload);
    }
    if (isThere && !asleep) {
      const facts = podFacts(pod, {
        namespace,
        uid: `uid-pod-${namespace}-${name}`,
        deletionTimestamp: undefined,
        phase: isUp ? 'Running' : 'Pending',
        ready: isUp,
        account,
        podLabels: { app: name },
        programs: containers,
        watches: workload.watches,
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
  const isGone = owner.state === 'gone';
  const release = { 'meta.helm.sh/release-name': 'keeper', 'meta.helm.sh/release-namespace': OPS };
  const labels = { 'app.kubernetes.io/name': 'keeper' };
  const generic = owner.workload === 'generic';
  const pod = isGone
    ? ''
    : install(OPS, OWNER, owner, rules, {
        containers: generic ? ['manager'] : [OWNER],
        watches: owner.watches === 'this' ? [DEMO] : undefined,
        ...(evidence.includes('helm') ? { annotations: release } : {}),
        ...(evidence.includes('labels') ? { labels } : {}),
      });
  if (isGone && world.leftovers) install(OPS, OWNER, { ...owner, bound: 'account' }, rules);

  // What shows who it is. Its manager is called as its program is, which may tell nothing.
  const manager = generic ? 'manager' : OWNER;
  const time = '2026-03-02T09:30:00Z';
  const by = (name: string): FinalizerWriter => ({
    finalizer,
    manager: name,
    operation: 'Update',
    time,
  });
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
    type: 'Normal',
    reason: 'Reconciled',
    message: 'fine',
    regarding: { kind: type.kind, namespace: DEMO, name: 'db', uid: object.uid },
    component,
    instance,
    at: time,
  });
  const there = owner.state !== 'gone' && owner.state !== 'outside';
  const definition =
    group === undefined ? undefined : cluster.definitions.find((d) => d.name.endsWith(group));
  const service = (namespace: string, app: string): void => {
    places[namespace]?.services.push({ namespace, name: app, selector: { app } });
  };
  const webhook = (namespace: string, app: string, apiGroups: string[]): WebhookFacts => ({
    configuration: { kind: 'ValidatingWebhookConfiguration', name: app, uid: `webhook-${app}` },
    name: `${app}.example.com`,
    index: 0,
    failurePolicy: 'Ignore',
    matchPolicy: 'Equivalent',
    service: { namespace, name: app },
    rules: [
      {
        operations: ['CREATE'],
        apiGroups,
        apiVersions: ['*'],
        resourceNames: [],
        resources: ['*'],
        scope: '*',
      },
    ],
    namespaceSelector: [],
    objectSelector: [],
    matchConditions: [],
    dependsOnUser: false,
    dependsOnDeletion: false,
  });
  const lease = (renewTime: string): LeaseFacts => ({
    namespace: OPS,
    name: group === undefined ? 'keeper-leader' : `${group}-leader`,
    holder: `${pod === '' ? `${OWNER}-5d8f7-x2x4z` : pod}_6a1c7be2`,
    renewTime,
    durationSeconds: 15,
    writers: [world.writer === 'generic' ? 'manager' : OWNER],
  });
  for (const one of evidence) {
    switch (one) {
      case 'event':
        if (there && !generic) places[DEMO]?.events.push(event(OWNER, pod));
        break;
      case 'helm':
        if (definition !== undefined) definition.annotations = release;
        break;
      case 'labels':
        if (definition !== undefined) definition.labels = labels;
        break;
      case 'olm':
        if (there && definition !== undefined && owner.kind === 'Deployment') {
          cluster.clusterServiceVersions.push({
            namespace: OPS,
            name: 'keeper.v1',
            owned: [definition.name],
            deployments: [OWNER],
          });
        }
        break;
      case 'conversion': {
        const detail = definition === undefined ? undefined : details[definition.name];
        if (!there || detail === undefined) break;
        service(OPS, OWNER);
        detail.conversionService = { namespace: OPS, name: OWNER };
        break;
      }
      case 'webhook':
        if (!there || group === undefined) break;
        service(OPS, OWNER);
        cluster.validatingWebhooks.push(webhook(OPS, OWNER, [group]));
        break;
      case 'lease':
        // Fresh only where somebody renews it.
        if (owner.state === 'runs') cluster.leases.push(lease(NOW));
        break;
      case 'stale lease':
        cluster.leases.push(lease('2026-03-01T00:00:00Z'));
        break;
      case 'status':
        break;
    }
  }

  const full = [ruleOf(['*'], ['*'], ['*'])];
  const own = [ruleOf([resource], [...watching, 'update', 'patch'], groups)];
  for (const other of others) {
    switch (other) {
      case 'maker of the type': {
        // Where the owner is the operator of the type, there is no second one.
        if (isReconciler || world.type === 'built-in') break;
        const reconciling = [...own, ruleOf([`${resource}/status`], ['update'], groups)];
        const made = {
          'meta.helm.sh/release-name': 'widgets',
          'meta.helm.sh/release-namespace': TOOLS,
        };
        install(TOOLS, 'widget-maker', {}, reconciling, { annotations: made });
        const crd = cluster.definitions.find((d) => d.name === 'widgets.example.com');
        if (crd !== undefined) crd.annotations = made;
        service(TOOLS, 'widget-maker');
        cluster.validatingWebhooks.push(webhook(TOOLS, 'widget-maker', ['example.com']));
        break;
      }
      case 'admin':
        install(TOOLS, 'backup', {}, full);
        break;
      case 'sleeping admin':
        install(TOOLS, 'mirror', { state: 'asleep' }, full);
        break;
      case 'user interface':
        install(TOOLS, 'console', {}, [ruleOf([resource], ['get', 'list', 'update'], groups)]);
        break;
      case 'viewer':
        install(TOOLS, 'viewer', {}, [ruleOf([resource], watching, groups)]);
        break;
      case 'parent':
        install(TOOLS, 'parent', {}, [ruleOf([`${resource}/finalizers`], ['update'], groups)]);
        break;
      case 'annotator':
        install(TOOLS, 'annotator', {}, own);
        break;
      case 'sleeping annotator':
        install(TOOLS, 'widget-annotator', { state: 'asleep' }, own);
        break;
      case 'policy engine':
        install(TOOLS, 'policies', {}, full);
        service(TOOLS, 'policies');
        cluster.validatingWebhooks.push(webhook(TOOLS, 'policies', ['*']));
        places[DEMO]?.events.push(event('policies', 'policies-5d8f7-x2x4z'));
        break;
      case 'install for another namespace':
        install(TOOLS, OWNER, {}, rules, {
          containers: generic ? ['manager'] : [OWNER],
          watches: ['team-b'],
        });
        break;
      case 'sibling':
        if (there)
          install(OPS, 'keeper-metrics', { ...owner, kind: 'Deployment' }, [], { account: OWNER });
        break;
      case 'operator of another group':
        install(TOOLS, 'box-operator', {}, [
          ruleOf(['boxes', 'boxes/status'], ['*'], ['boxes.io']),
        ]);
        break;
    }
  }
  return { all: { cluster, places, details }, object };
}

/** What the gate sees of it: what it asks for, in rounds, as long as it may be read. */
export function look(world: World): Snapshot {
  const { all, object } = build(world);
  const type = world.type === 'custom' ? WIDGETS : CONFIG_MAPS;
  const now: Snapshot = {
    takenAt: NOW,
    namespace: namespaceFacts(),
    discovery: readOk({ types: [PODS, CONFIG_MAPS, WIDGETS, GADGETS], failedGroups: [] }),
    content: [
      contentOf(type, [
        {
          finalizers: object.finalizers,
          count: 1,
          since: object.deletionTimestamp ?? '',
          examples: [object],
        },
      ]),
    ],
    pods: readOk([]),
    cluster: {},
    places: {},
    nodes: {},
    definitions: {},
    details: {},
    partners: {},
    trials: {},
    unread: [],
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
      now.details[object.uid] ??= readOk({
        conditions: [],
        observedGeneration: undefined,
        texts: [],
        references: [],
      });
    }
  }
  return now;
}
