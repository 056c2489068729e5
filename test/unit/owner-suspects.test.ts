import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import { bindingFacts, roleFacts } from '../../src/model/facts/cluster.ts';
import { workloadFacts } from '../../src/model/facts/workloads.ts';
import type { Finding } from '../../src/model/finding.ts';
import { readOk } from '../../src/model/read.ts';
import type { Snapshot, WorkloadFacts } from '../../src/model/snapshot.ts';
import { readRecordedLook, recordingNames } from './recorded-looks.ts';
import { podFacts, typeOf } from './snapshots.ts';

/** The finding about the owner in S3 (one operator, scaled to zero), with other Deployments beside it. */
function ownerBeside(
  others: (operator: WorkloadFacts) => Partial<WorkloadFacts>[],
  change: (operator: WorkloadFacts) => void = () => {},
  changeText: (text: string) => string = (text) => text,
): Finding | undefined {
  const look = readRecordedLook('S3');
  const { now, before } = JSON.parse(changeText(JSON.stringify(look))) as typeof look;
  const [operator] = now.cluster.deployments?.ok ? now.cluster.deployments.value : [];
  if (operator === undefined) throw new Error('S3 has no Deployment');
  change(operator);
  const added = others(operator).map((other, index) => ({
    ...structuredClone(operator),
    uid: `other-${index}`,
    ...other,
  }));
  const deployments = readOk([operator, ...added]) as Snapshot['cluster']['deployments'];
  const changed = { ...now, cluster: { ...now.cluster, deployments } } as Snapshot;
  return diagnose(changed, before).findings.find(({ code }) => code.startsWith('owner-'));
}

const WATCHING = { name: 'side', env: [{ name: 'WATCH_NAMESPACE', value: 'b' }] };

const GREEN = { name: 'widget-operator-green' };
const blue = (operator: WorkloadFacts): void => {
  operator.selectors = ['--widget-class=blue'];
};

describe('two installations of one program', () => {
  test.each<[string, Partial<WorkloadFacts>, ((operator: WorkloadFacts) => void)?]>([
    ['with different classes', { selectors: ['--widget-class=green'] }, blue],
    ['of which one has a class', { selectors: ['--widget-class=green'] }],
    ['of which the other has a class', { selectors: [] }, blue],
  ])('%s are both suspects', (_, other, change) => {
    const found = ownerBeside(() => [{ ...GREEN, ...other }], change);

    expect(found?.code).toBe('owner-unknown');
    expect(found?.message).toMatch(/widget-operator\b.*widget-operator-green/);
    expect(found?.evidence.join('\n')).toContain('it was started with --widget-class=');
  });

  test('with the same arguments are equal', () => {
    const found = ownerBeside(() => [{ ...GREEN, selectors: ['--widget-class=blue'] }], blue);

    expect(found).toMatchObject({
      code: 'owner-scaled-to-zero',
      subject: { name: 'widget-operator' },
    });
  });

  test('one of which reconciles another namespace: that one is ruled out, with the reason', () => {
    const found = ownerBeside(() => [{ ...GREEN, watches: ['team-b'], selectors: ['--shard=1'] }]);

    expect(found?.code).toBe('owner-scaled-to-zero');
    expect(found?.evidence.join('\n')).toMatch(
      /ruled out Deployment \S+widget-operator-green: its arguments .* restrict it to other namespaces/,
    );
  });

  test.each([
    ['--namespace-selector=team=a', 'owner-scaled-to-zero'],
    ['--namespace-selector=kubernetes.io/metadata.name!=b', 'owner-unknown'],
  ])('one of which is started with %s', (selector, code) => {
    const found = ownerBeside(() => [{ ...GREEN, selectors: [selector] }]);

    expect(found?.code).toBe(code);
  });
});

test.each([
  [['--widget-class=blue', '-v=4'], ['--widget-class=blue']],
  [['--instance-id', 'a', '--metrics'], ['--instance-id=a']],
  [['--watch-label-selector=team=a'], ['--watch-label-selector=team=a']],
  [
    ['--shard=1', '--shards', '3'],
    ['--shard=1', '--shards=3'],
  ],
  [['--namespace=platform', '--leader-election-namespace=b'], undefined],
  [['--namespaces=team-a'], ['--namespaces=team-a']],
  [['--application-namespaces=platform'], ['--application-namespaces=platform']],
])('of the arguments %j, %j select objects', (args, selectors) => {
  const facts = workloadFacts(
    'apps/v1',
    'Deployment',
  )({
    metadata: { namespace: 'platform', name: 'one', uid: 'u' },
    spec: { template: { spec: { containers: [{ name: 'main', args }] } } },
  });
  expect(facts.selectors).toEqual(selectors);
});

test('an operator whose name fits a pattern of many is not known for another product', () => {
  const found = ownerBeside(
    () => [],
    () => {},
    (text) =>
      text
        .replace(/widgets\.[\w.-]+\/cleanup/g, 'finalizer.stack.pulumi.com')
        .replaceAll('"Widget"', '"Stack"')
        .replaceAll('"manager":"widget-operator"', '"manager":"manager"')
        .replaceAll('widget-operator', 'widget-operator-controller-manager'),
  );

  expect(found?.code).toBe('owner-unknown');
  expect(found?.message).toContain('widget-operator-controller-manager (scaled to zero)');
});

test('of 24 operators that may act, five are evidence, and those that fit are named, each with its state', () => {
  const crowd = Array.from({ length: 23 }, (_, index) => ({ name: `platform-${index}` }));
  const nameless = (operator: WorkloadFacts): void => {
    Object.assign(operator, { name: 'platform-a', programs: ['main'], labels: {} });
  };
  const found = ownerBeside(
    () => [...crowd, { name: 'acme-janitor' }],
    nameless,
    (text) =>
      text
        .replace(/(widgets\.[\w.-]+)\/cleanup/g, '$1/acme-janitor-hold')
        .replaceAll('"manager":"widget-operator"', '"manager":"manager"'),
  );

  expect(found?.code).toBe('owner-unknown');
  const suspects = found?.evidence.filter((text) => text.startsWith('suspect ')) ?? [];
  expect(suspects).toHaveLength(5);
  expect(found?.message).toMatch(/scaled to zero\).* or \d more/);
});

test.each([
  ['--deny-namespaces=a,b'],
  ['--exclude-namespace=b'],
  ['--ignored-namespaces', 'a, b'],
  ['--namespaces-denylist=b'],
])('a workload that is started with %s may leave the namespace out', (...args) => {
  const containers = [{ name: 'manager', args }];
  const facts = workloadFacts(
    'apps/v1',
    'Deployment',
  )({ spec: { template: { spec: { containers } } } });
  expect(facts.selectors).toEqual([args.join('=')]);
  expect(facts.watches).toBeUndefined();
});

test.each([
  ['OPERATOR_WATCH_NS', 'shop'],
  ['WIDGET_OPERATOR_NAMESPACES_TO_WATCH', 'shop'],
  ['WIDGET_OPERATOR_OWN_NAMESPACE_ONLY', 'true'],
])('a controller with the variable %s=%s leaves other namespaces out', (name, value) => {
  const containers = [{ name: 'manager', env: [{ name, value }] }];
  const { watches } = workloadFacts(
    'apps/v1',
    'Deployment',
  )({ metadata: { namespace: 'shop' }, spec: { template: { spec: { containers } } } });
  expect(watches).toEqual(['shop']);
});

test('a workload named after a part of a word in the finalizer is no suspect', () => {
  const found = ownerBeside(() => [{ name: 'get', programs: ['get'], account: 'get', labels: {} }]);
  expect(found?.code).toBe('owner-scaled-to-zero');
  expect(found?.evidence.join('\n')).not.toContain('/get');
});

test.each<[string, JsonObject, string[] | undefined]>([
  ['a sidecar', { containers: [{ name: 'one' }, WATCHING] }, undefined],
  ['the only container', { containers: [WATCHING] }, ['b']],
  ['the controller', { containers: [{ ...WATCHING, name: 'one' }, { name: 'proxy' }] }, ['b']],
  ['one of two unclear containers', { containers: [{ name: 'main' }, WATCHING] }, undefined],
])('a restriction of %s', (_, spec, watches) => {
  const facts = workloadFacts(
    'apps/v1',
    'Deployment',
  )({
    metadata: { name: 'one', namespace: 'platform' },
    spec: { template: { spec } },
  });
  expect(facts.watches).toEqual(watches);
});

test('an owner is not deleted with its namespace while a pod still runs there', () => {
  const { now, before } = readRecordedLook('S4-watched');
  const wasDeleted = (phase: string): string | undefined => {
    const ending = now.namespace.name;
    const pods = readOk([podFacts('late', { namespace: ending, phase })]);
    const places = { ...now.places, [ending]: { ...now.places[ending], pods } };
    const { findings } = diagnose({ ...now, places }, before);
    return findings.find(({ code }) => code === 'owner-missing')?.certainty;
  };
  expect(wasDeleted('Succeeded')).toBe('proven');
  expect(wasDeleted('Running')).not.toBe('proven');
});

test('Crossplane, which may change what its providers manage, is not named for a provider that is gone', () => {
  const looks = readRecordedLook('everyday-crossplane-asleep');
  const { cluster } = looks.now;
  for (const source of [
    'deployments',
    'replicaSets',
    'clusterRoles',
    'clusterRoleBindings',
  ] as const) {
    const read = cluster[source];
    if (!read?.ok) continue;
    const others = (read.value as unknown[]).filter(
      (one) => !JSON.stringify(one).includes('provider-aws-s3'),
    );
    Object.assign(read, { value: others });
  }
  const owners = diagnose(looks.now, looks.before).findings.filter(({ code }) =>
    code.startsWith('owner-'),
  );
  expect(owners).toHaveLength(1);
  expect(owners[0]?.code).toBe('owner-missing');
});

test('beside the rights that an uninstalled controller left, another with the marks is not named', () => {
  const looks = readRecordedLook('everyday-kubebuilder-v4-rights-left');
  const { cluster } = looks.now;
  const { deployments, clusterRoles, clusterRoleBindings } = cluster;
  if (!deployments?.ok || !clusterRoles?.ok || !clusterRoleBindings?.ok)
    throw new Error('not read');
  const isOwners = ({ name }: { name: string }): boolean =>
    name.startsWith('memcached-manager-role');
  const [beside] = deployments.value;
  const role = clusterRoles.value.find(isOwners);
  const binding = clusterRoleBindings.value.find((one) => one.role.name === role?.name);
  if (beside === undefined || role === undefined || binding === undefined)
    throw new Error('no rights');
  const account = { namespace: beside.namespace, name: 'relay' };
  Object.assign(cluster, {
    deployments: readOk([
      ...deployments.value,
      { ...beside, uid: 'relay', name: 'relay', account: account.name },
    ]),
    clusterRoleBindings: readOk([
      ...clusterRoleBindings.value,
      { ...binding, name: 'relay', subjects: [{ kind: 'ServiceAccount', ...account }] },
    ]),
  });
  const owners = diagnose(looks.now, looks.before).findings.filter(({ code }) =>
    code.startsWith('owner-'),
  );
  expect(owners.map(({ code }) => code)).toEqual(['owner-unknown']);
  expect(owners[0]?.message).toMatch(
    /one of: .*relay \(running\).*memcached-controller-manager \(gone\)/,
  );
});

test.each([
  ['has its role by a RoleBinding there', 'memcached-manager-role'],
  ['has another role there', 'other'],
])('a copy of the operator in another namespace that %s', (_, bound) => {
  const { now: silent } = readRecordedLook('everyday-kubebuilder-v4-silent');
  const isOurs = ({ name }: { name: string }): boolean => name.startsWith('memcached-');
  const [operator] = silent.cluster.deployments?.ok
    ? silent.cluster.deployments.value.filter(isOurs)
    : [];
  const role = silent.cluster.clusterRoles?.ok
    ? silent.cluster.clusterRoles.value.find(({ name }) => name === 'memcached-manager-role')
    : undefined;
  const { now, before } = readRecordedLook('everyday-kubebuilder-v4-uninstalled');
  const { deployments, clusterRoles } = now.cluster;
  if (!deployments?.ok || !clusterRoles?.ok || !operator || !role) throw new Error('not read');
  const copy = { ...operator, uid: 'copy', namespace: 'team-b' };
  const binding = bindingFacts({
    metadata: { namespace: 'team-b', name: bound },
    roleRef: { kind: 'ClusterRole', name: bound },
  });
  Object.assign(deployments, { value: [...deployments.value, copy] });
  Object.assign(clusterRoles, { value: [...clusterRoles.value, role] });
  now.places['team-b'] = { roleBindings: readOk([binding]) };
  const owners = diagnose(now, before).findings.filter(({ code }) => code.startsWith('owner-'));

  expect(owners.map(({ code, subject }) => `${code} ${subject.namespace}`)).toEqual(
    bound === 'other'
      ? ['owner-failing team-b']
      : [expect.stringMatching(/^owner-unknown preview/)],
  );
});

test.each([
  ['kubebuilder-v4-uninstalled', 'cache-platform', 'backstage', 'backstage', 'owner-unknown'],
  ['kubebuilder-v4-uninstalled', 'tools', 'cache-deployer', 'deployer', 'owner-unknown'],
  [
    'kubebuilder-v4-uninstalled',
    'cache-system',
    'cache-controller-manager',
    'manager',
    'owner-running',
  ],
  ['aws-load-balancer-uninstalled', 'tools', 'metacontroller', 'metacontroller', 'owner-missing'],
  ['external-secrets-uninstalled', 'tools', 'metacontroller', 'metacontroller', 'owner-missing'],
  // A part of a backup tool; and beside the account of the controller.
  ['kubebuilder-v4-uninstalled', 'kasten-io', 'executor-svc', 'executor', 'owner-missing'],
  ['kubebuilder-v4-rights-left', 'tools', 'cache-deployer', 'deployer', 'owner-missing'],
])('%s: the only administrator %s/%s runs %s', (install, namespace, name, program, code) => {
  const { now, before } = readRecordedLook(`everyday-${install}`);
  const { deployments, clusterRoleBindings } = now.cluster;
  if (!deployments?.ok || !clusterRoleBindings?.ok) throw new Error('not read');
  const workload = workloadFacts(
    'apps/v1',
    'Deployment',
  )({
    metadata: { namespace, name, uid: name },
    spec: { template: { spec: { serviceAccountName: name, containers: [{ name: program }] } } },
    status: { replicas: 1, readyReplicas: 1 },
  });
  const binding = bindingFacts({
    metadata: { name },
    roleRef: { kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'ServiceAccount', namespace, name }],
  });
  Object.assign(deployments, { value: [...deployments.value, workload] });
  Object.assign(clusterRoleBindings, { value: [...clusterRoleBindings.value, binding] });
  const owners = diagnose(now, before).findings.filter((one) => one.code.startsWith('owner-'));

  expect(owners.map((one) => one.code)).toEqual([code]);
  expect(JSON.stringify(owners).includes(name)).toBe(code !== 'owner-missing');
});

test('a finalizer that ends with finalizer.name has no domain', () => {
  const look = readRecordedLook('everyday-kubebuilder-v4-asleep');
  const text = JSON.stringify(look).replaceAll(
    /[\w.]+\/finalizer(?=")/g,
    'memcached.finalizer.name',
  );
  const { now, before } = JSON.parse(text) as typeof look;
  const owners = diagnose(now, before).findings.filter((one) => one.code.startsWith('owner-'));
  expect(owners.map((one) => one.code)).toEqual(['owner-scaled-to-zero']);
  expect(owners[0]).toMatchObject({ finalizer: 'memcached.finalizer.name' });
});

const GROUP = ['cache.acme.dev'];
const READ = ['get', 'list', 'watch'];
const MARKS = [
  { apiGroups: GROUP, resources: ['memcacheds', 'memcacheds/finalizers'], verbs: ['*'] },
];

/** A program in a recording without the operator, and ClusterRoles; those with its name are bound to it. */
function programAfterwards(
  recording: string,
  container: JsonObject,
  roles: Record<string, { rules: JsonObject[]; labels?: Record<string, string> }>,
  { name = 'feed', writer = 'manager', bound = ['feed'] } = {},
): Finding[] {
  const look = readRecordedLook(recording);
  const text = JSON.stringify(look).replaceAll('"manager":"manager"', `"manager":"${writer}"`);
  const { now, before } = JSON.parse(text) as typeof look;
  const { deployments, clusterRoles, clusterRoleBindings } = now.cluster;
  if (!deployments?.ok || !clusterRoles?.ok || !clusterRoleBindings?.ok)
    throw new Error('not read');
  const workload = workloadFacts(
    'apps/v1',
    'Deployment',
  )({
    metadata: { namespace: 'team-b', name, uid: name },
    spec: {
      replicas: 1,
      template: { spec: { serviceAccountName: name, containers: [container] } },
    },
    status: { replicas: 1, readyReplicas: 1 },
  });
  const subjects = [{ kind: 'ServiceAccount', namespace: 'team-b', name }];
  const bindings = bound.map((role) =>
    bindingFacts({
      metadata: { name: role },
      roleRef: { kind: 'ClusterRole', name: role },
      subjects,
    }),
  );
  const added = Object.entries(roles).map(([role, { rules, labels = {} }]) =>
    roleFacts({ metadata: { name: role, labels }, rules }),
  );
  const others = clusterRoles.value.filter((one) => roles[one.name] === undefined);
  Object.assign(deployments, { value: [...deployments.value, workload] });
  Object.assign(clusterRoles, { value: [...others, ...added] });
  Object.assign(clusterRoleBindings, { value: [...clusterRoleBindings.value, ...bindings] });
  now.places['team-b'] = { roleBindings: readOk([]) };
  return diagnose(now, before).findings.filter(({ code }) => code.startsWith('owner-'));
}

const UNINSTALLED = 'everyday-kubebuilder-v4-uninstalled';
const RIGHTS_LEFT = 'everyday-kubebuilder-v4-rights-left';
const MANAGER = { name: 'manager', command: ['/manager'], image: 'acme/feed:1' };
const OPERATORS_IMAGE = { name: 'ui', image: 'acme/memcached:1' };
const READER = { rules: [{ apiGroups: GROUP, resources: ['memcacheds'], verbs: READ }] };
const OTHERS = { rules: [{ apiGroups: ['acid.zalan.do'], resources: ['*'], verbs: ['*'] }] };
const CORE = { rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['*'] }] };
const EDIT = {
  rules: MARKS,
  labels: { 'rbac.authorization.k8s.io/aggregate-to-edit': 'true' },
};
const DEFAULT_EDIT = {
  rules: MARKS,
  labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults' },
};

test.each([UNINSTALLED, RIGHTS_LEFT])(
  'in %s, who reads the type has not lost its right',
  (look) => {
    const owners = programAfterwards(look, MANAGER, { feed: READER });
    expect(owners.map(({ code }) => code)).toEqual(['owner-missing']);
  },
);

test.each([
  [UNINSTALLED, /but general tools/],
  [RIGHTS_LEFT, /ran as ServiceAccount memcached-system/],
])('in %s, a role that is aggregated into edit shows nobody who has lost it', (look, message) => {
  const roles = { feed: CORE, 'memcached-edit': EDIT, edit: DEFAULT_EDIT };
  const owners = programAfterwards(look, MANAGER, roles);
  expect(owners.map(({ code }) => code)).toEqual(['owner-missing']);
  expect(owners[0]?.message).toMatch(message);
});

test.each([
  ['feed', 'owner-missing'],
  ['memcached-operator', 'owner-unknown'],
])('%s, which has no right but in its own namespace', (name, code) => {
  const owners = programAfterwards(UNINSTALLED, MANAGER, {}, { name, bound: [] });
  expect(owners.map((one) => one.code)).toEqual([code]);
});

test.each([
  ['quotas', 'owner-missing'],
  ['previewapps/status', 'owner-failing'],
])('where kopf set the finalizer, another program of it that changes %s: %s', (resource, code) => {
  const rules = [
    { apiGroups: ['previews.acme.dev'], resources: ['previewapps'], verbs: READ },
    { apiGroups: ['previews.acme.dev'], resources: [resource], verbs: ['patch'] },
  ];
  const kopf = { name: 'main', command: ['kopf', 'run'] };
  const owners = programAfterwards('everyday-kopf-uninstalled', kopf, { feed: { rules } });
  expect(owners.map((one) => one.code)).toEqual([code]);
});

test.each([
  ['leases', 'a role', 'owner-failing'],
  ['secrets', 'a role', 'owner-missing'],
  // It works on another cluster, by a kubeconfig.
  ['leases', 'no role', 'owner-missing'],
])(
  'where kopf set the finalizer, another program of it may only change %s of its own namespace, and %s waits for an account: %s',
  (resource, left, code) => {
    const { now, before } = readRecordedLook('everyday-kopf-uninstalled');
    const { clusterRoles, deployments } = now.cluster;
    if (!deployments?.ok || !clusterRoles?.ok) throw new Error('not read');
    const rules = [
      { apiGroups: ['previews.acme.dev'], resources: ['previewapps'], verbs: ['list', 'patch'] },
    ];
    const unbound = left === 'a role' ? [roleFacts({ metadata: { name: 'left' }, rules })] : [];
    Object.assign(clusterRoles, { value: [...clusterRoles.value, ...unbound] });
    const containers = [{ name: 'main', command: ['kopf', 'run'] }];
    const copier = workloadFacts(
      'apps/v1',
      'Deployment',
    )({
      metadata: { namespace: 'tools', name: 'copier', uid: 'copier' },
      spec: { template: { spec: { serviceAccountName: 'copier', containers } } },
      status: { replicas: 1, readyReplicas: 1 },
    });
    const metadata = { namespace: 'tools', name: 'copier' };
    const role = roleFacts({
      metadata,
      rules: [{ apiGroups: [''], resources: [resource], verbs: ['*'] }],
    });
    const binding = bindingFacts({
      metadata,
      roleRef: { kind: 'Role', name: 'copier' },
      subjects: [{ kind: 'ServiceAccount', ...metadata }],
    });
    Object.assign(deployments, { value: [...deployments.value, copier] });
    now.places['tools'] = { roles: readOk([role]), roleBindings: readOk([binding]) };
    const owners = diagnose(now, before).findings.filter((one) => one.code.startsWith('owner-'));
    expect(owners.map((one) => one.code)).toEqual([code]);
  },
);

test.each([
  ['ci', 'deployer', false],
  ['cache-system', 'cache-operator', true],
])(
  'of an account that no workload uses, %s/%s, the controller is told to have run as it: %s',
  (namespace, name, isTold) => {
    const { now, before } = readRecordedLook(UNINSTALLED);
    const { clusterRoleBindings } = now.cluster;
    if (!clusterRoleBindings?.ok) throw new Error('not read');
    const rules = [{ apiGroups: GROUP, resources: ['memcacheds'], verbs: ['*'] }];
    clusterRolesOf(now).push(roleFacts({ metadata: { name }, rules }));
    const roleRef = { kind: 'ClusterRole', name };
    const subjects = [{ kind: 'ServiceAccount', namespace, name }];
    clusterRoleBindings.value.push(bindingFacts({ metadata: { name }, roleRef, subjects }));
    const [owner] = diagnose(now, before).findings.filter(({ code }) => code.startsWith('owner-'));
    expect(owner?.code).toBe('owner-missing');
    expect(owner?.message.includes(`${namespace}/${name}`)).toBe(isTold);
  },
);

test('a workload that an object of the type has made is listed as that, and gets no right', () => {
  const { now, before } = readRecordedLook(UNINSTALLED);
  const { deployments } = now.cluster;
  const [object] = now.content.flatMap(({ read }) =>
    read.ok ? read.value.terminating.flatMap(({ examples }) => examples) : [],
  );
  if (!deployments?.ok || !object) throw new Error('not read');
  const { apiVersion, kind, name, uid } = object;
  const ownerReferences = [{ apiVersion, kind, name, uid, controller: true }];
  const made = workloadFacts(
    'apps/v1',
    'Deployment',
  )({
    metadata: { namespace: 'cache', name: 'memcached-db', uid: 'made', ownerReferences },
    spec: { template: { spec: { containers: [MANAGER] } } },
    status: { replicas: 1, readyReplicas: 1 },
  });
  deployments.value.push(made);
  const [owner] = diagnose(now, before).findings.filter(({ code }) => code.startsWith('owner-'));
  expect(owner?.message).toContain('Deployment cache/memcached-db (made by such an object)');
  expect(JSON.stringify(owner?.remedies)).not.toContain('give it back its right');
});

test('who may change the objects as anybody with the role edit is not named', () => {
  const roles = { 'memcached-edit': EDIT, edit: DEFAULT_EDIT };
  const owners = programAfterwards(UNINSTALLED, { name: 'bot' }, roles, { bound: ['edit'] });
  expect(owners.map(({ code }) => code)).toEqual(['owner-unknown']);
});

test('of another product with the name of the writer, a binding without a role shows no lost right', () => {
  const named = { name: 'db-operator', writer: 'db-operator', bound: ['db', 'gone-psp'] };
  const owners = programAfterwards(UNINSTALLED, { name: 'db-operator' }, { db: OTHERS }, named);
  expect(owners.map(({ code }) => code)).toEqual(['owner-unknown']);
});

test.each([
  [RIGHTS_LEFT, 'owner-unknown', 'unknown'],
  [UNINSTALLED, 'owner-failing', 'likely'],
])(
  'in %s, a program that reads, with the image of the writer, is not proven',
  (look, code, how) => {
    const owners = programAfterwards(
      look,
      OPERATORS_IMAGE,
      { feed: READER },
      { writer: 'memcached' },
    );
    expect(owners.map((one) => `${one.code} ${one.certainty}`)).toEqual([`${code} ${how}`]);
  },
);

test.each([
  ['autoscaler', 'owner-unknown'],
  ['controller', 'owner-running'],
])('a webhook with the account of a %s', (role, code) => {
  const { now, before } = readRecordedLook('everyday-kubebuilder-v4-silent');
  const { deployments } = now.cluster;
  if (!deployments?.ok) throw new Error('not read');
  const [operator] = deployments.value.filter(({ name }) => name.startsWith('memcached-'));
  if (operator === undefined) throw new Error('no operator');
  const others = deployments.value.filter((one) => one !== operator);
  const parts = [role, 'webhook'].map((part) => ({
    ...operator,
    ...{ uid: part, name: `cache-${part}`, programs: [part], ready: 1, wanted: 1 },
  }));
  Object.assign(deployments, { value: [...others, ...parts] });
  const places = Object.values(now.places);
  for (const place of places) if (place.pods?.ok) Object.assign(place.pods, { value: [] });
  if (now.cluster.pods?.ok) Object.assign(now.cluster.pods, { value: [] });
  if (now.cluster.replicaSets?.ok) Object.assign(now.cluster.replicaSets, { value: [] });
  const owners = diagnose(now, before).findings.filter((one) => one.code.startsWith('owner-'));
  expect(owners.map((one) => one.code)).toEqual([code]);
});

/** S3 without its operator, beside another program: with these labels and these resources that RBAC lets it change. */
interface Beside {
  name: string;
  labels?: Record<string, string>;
  rights: [group: string, ...resources: string[]][];
  /** What is left of the operator: its workload, without any right; its role, which is bound to nobody. */
  left?: 'workload' | 'role';
  changeText?: (text: string) => string;
}

function ownerWithout({ name, labels = {}, rights, left, changeText }: Beside) {
  const look = readRecordedLook('S3');
  const text = JSON.stringify(look);
  const { now, before } = JSON.parse(changeText?.(text) ?? text) as typeof look;
  const { deployments, clusterRoles, clusterRoleBindings } = now.cluster;
  if (!deployments?.ok || !clusterRoles?.ok || !clusterRoleBindings?.ok || !now.discovery.ok) {
    throw new Error('S3 was not read');
  }
  const [operator] = deployments.value;
  if (operator === undefined) throw new Error('S3 has no Deployment');
  const own = { name, uid: name, account: name, programs: [name], labels, wanted: 1, ready: 1 };
  const isOfOperator = (one: { name: string }): boolean => /widget-operator/.test(one.name);
  const rules = rights.map(([group, ...resources]) => {
    return { apiGroups: [group], resources, verbs: ['list', 'watch', 'update', 'patch'] };
  });
  const subjects = [{ kind: 'ServiceAccount', namespace: operator.namespace, name }];
  const roleRef = { kind: 'ClusterRole', name };
  now.discovery.value.types.push(typeOf('shop.acme.io', 'storefronts', 'Storefront'));
  deployments.value = [
    ...(left === 'workload' ? [{ ...operator, labels: {}, wanted: 1, ready: 1 }] : []),
    { ...operator, ...own },
  ];
  clusterRoles.value = [
    ...clusterRoles.value.filter((one) => left === 'role' || !isOfOperator(one)),
    roleFacts({ metadata: { name }, rules }),
  ];
  clusterRoleBindings.value = [
    ...clusterRoleBindings.value.filter((one) => !isOfOperator(one)),
    bindingFacts({ metadata: { name }, roleRef, subjects }),
  ];
  now.cluster.replicaSets = readOk([]);
  Object.assign(now.places[operator.namespace] ?? {}, { roleBindings: readOk([]) });
  const found = diagnose(now, before).findings.find(({ code }) => code.startsWith('owner-'));
  return { code: found?.code, name: found?.subject.name };
}

test.each<[string, Beside]>([
  [
    'the controller of another product, below the domain of the company that the finalizer has',
    {
      name: 'shop',
      rights: [
        ['shop.acme.io', 'storefronts', 'storefronts/status'],
        ['example.com', 'widgets'],
      ],
      changeText: (text) =>
        text
          .replaceAll('widgets.example.com/cleanup', 'acme.io/dns')
          .replaceAll('"manager":"widget-operator"', '"manager":"manager"'),
    },
  ],
  [
    'a console with the labels of the CRD, where the role of the operator is bound to nobody',
    {
      name: 'console',
      labels: { 'app.kubernetes.io/name': 'widget-operator' },
      rights: [['', 'pods']],
      left: 'role',
      changeText: (text) => text.replaceAll('"manager":"widget-operator"', '"manager":"manager"'),
    },
  ],
  [
    'who shares the type, where the one that wrote the finalizer has lost every right',
    {
      name: 'auditor',
      rights: [['example.com', 'widgets', 'widgets/status']],
      left: 'workload',
    },
  ],
])('%s is not named', (_, beside) => {
  const { code, name } = ownerWithout(beside);
  expect(name).not.toBe(beside.name);
  expect(code).toMatch(/^owner-(?:unknown|missing|failing)$/);
});

const EVERYDAY = recordingNames().filter((name) => /^everyday-.*-(?:silent|asleep)$/.test(name));

describe('an operator of every day that has lost', () => {
  test.each(EVERYDAY)('the verbs of its role, %s, is named all the same', (name) => {
    const { now, before } = readRecordedLook(name);
    const owner = ownerIn(diagnose(now, before).findings);
    const types = now.content.filter(({ read }) => read.ok && read.value.terminating.length > 0);
    for (const role of clusterRolesOf(now))
      role.rules = role.rules.flatMap((rule) => {
        const isAbout = types.some(
          ({ type }) =>
            rule.apiGroups.includes(type.group) && rule.resources.includes(type.resource),
        );
        if (!isAbout) return [rule];
        const parts = rule.resources.filter((one) => one.includes('/'));
        const whole = rule.resources.filter((one) => !one.includes('/'));
        return [
          { ...rule, resources: parts },
          { ...rule, resources: whole, verbs: READ },
        ];
      });

    expect(ownerIn(diagnose(now, before).findings)).toBe(owner);
  });

  test.each(EVERYDAY.filter((name) => /kubebuilder|kopf/.test(name)))(
    'every binding, %s, is named where its namespace was read',
    (name) => {
      const { now, before } = readRecordedLook(name);
      const owner = ownerIn(diagnose(now, before).findings);
      const { clusterRoleBindings } = now.cluster;
      if (!clusterRoleBindings?.ok) throw new Error('not read');
      const [, home = ''] = owner.split(/[ /]/);
      const others = clusterRoleBindings.value.filter(
        ({ subjects }) => !subjects.some(({ namespace }) => namespace === home),
      );
      Object.assign(clusterRoleBindings, { value: others });
      // What is called as its type is known without its role.
      if (!name.includes('kopf'))
        Object.assign(now.cluster.clusterRoles ?? {}, {
          value: clusterRolesOf(now).filter(({ rules }) => !rules.some((rule) => isCustom(rule))),
        });
      const owners = (): string => ownerIn(diagnose(structuredClone(now), before).findings);

      expect(owners()).not.toBe(owner);
      now.places[home] = { roles: readOk([]), roleBindings: readOk([]) };
      expect(owners()).toBe(owner);
      const role = roleFacts({ metadata: { namespace: home, name: 'own' }, rules: MARKS });
      const binding = bindingFacts({
        metadata: { namespace: home, name: 'own' },
        roleRef: { kind: 'Role', name: 'own' },
        subjects: [{ kind: 'Group', name: `system:serviceaccounts:${home}` }],
      });
      now.places[home] = { roles: readOk([role]), roleBindings: readOk([binding]) };
      expect(owners()).not.toBe(owner);
    },
  );
});

/** Returns the workload that is named as the owner: `Deployment ops/widget-operator`. */
function ownerIn(findings: Finding[]): string {
  const [owner] = findings.filter(({ code }) => code.startsWith('owner-'));
  const { kind, namespace, name } = owner?.subject ?? {};
  return `${kind} ${namespace}/${name}`;
}

function clusterRolesOf({ cluster }: Snapshot) {
  if (!cluster.clusterRoles?.ok) throw new Error('not read');
  return cluster.clusterRoles.value;
}

const isCustom = ({ apiGroups }: { apiGroups: string[] }): boolean =>
  apiGroups.some((group) => group.includes('.') && !group.endsWith('.k8s.io'));
