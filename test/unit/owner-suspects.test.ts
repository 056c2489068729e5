import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { readFailed, readOk } from '../../src/model/read.ts';
import type { WorkloadFacts } from '../../src/model/snapshot.ts';
import {
  account,
  binding,
  type Change,
  deployment,
  drop,
  heldIn,
  listed,
  named,
  role,
  rule,
  told,
} from './changes.ts';
import { readRecordedLook, recordingNames } from './recorded-looks.ts';
import { podFacts, typeOf } from './snapshots.ts';

const KUBEBUILDER = 'everyday-kubebuilder-v4';
const GONE = `${KUBEBUILDER}-uninstalled`;
const RIGHTS_LEFT = `${KUBEBUILDER}-rights-left`;
const RABBIT_GONE = 'everyday-rabbitmq-uninstalled';
const KOPF_GONE = 'everyday-kopf-uninstalled';
const MANAGER = { name: 'manager', command: ['/manager'], image: 'acme/feed:1' };
const KOPF = { name: 'main', command: ['kopf', 'run'] };
const OPERATORS_IMAGE = { name: 'ui', image: 'acme/memcached:1' };

const all =
  (...changes: Change[]): Change =>
  (now) => {
    for (const change of changes) change(now);
  };
const bindAdmin: Change = (now) =>
  listed(now, 'clusterRoleBindings').push(binding('cluster-admin', [account('team-b', 'admin')]));
/** S3, in which one operator is scaled to zero, beside others that differ in this from it. */
const beside =
  (...others: Partial<WorkloadFacts>[]): Change =>
  (now) => {
    const deployments = listed(now, 'deployments');
    const [operator] = structuredClone(deployments);
    others.forEach((other, at) => {
      deployments.push({ ...(operator as WorkloadFacts), uid: `other-${at}`, ...other });
    });
  };
const besideGreen = (...selectors: string[]): Change =>
  beside({ name: 'widget-operator-green', selectors });
const blue: Change = (now) => {
  named(listed(now, 'deployments'), 'widget-operator').selectors = ['--widget-class=blue'];
};
const nameless = (text: string): string =>
  text.replaceAll('"manager":"widget-operator"', '"manager":"manager"');
const writtenBy =
  (writer: string) =>
  (text: string): string =>
    text.replaceAll('"manager":"manager"', `"manager":"${writer}"`);

const CACHE = 'cache.acme.dev';
const READ = ['get', 'list', 'watch'];
const READER = [rule(CACHE, ['memcacheds'], ...READ)];
const turnedInto =
  (apiVersion: string, type: ReturnType<typeof typeOf>): Change =>
  (now) => {
    for (const one of heldIn(now)) Object.assign(one, { apiVersion, kind: type.kind });
    for (const content of now.content) if (content.type.kind === 'Memcached') content.type = type;
  };
const MAPS = turnedInto('v1', typeOf('', 'configmaps', 'ConfigMap'));
const MARKS = [rule(CACHE, ['memcacheds', 'memcacheds/finalizers'], '*')];
const PLAIN = rule(CACHE, ['memcacheds'], '*');
const OTHERS = [rule('acid.zalan.do', ['*'], '*')];
const PREVIEWS = 'previews.acme.dev';
const READS_APPS = rule(PREVIEWS, ['previewapps'], ...READ);
const leave: Change = (now) => {
  const left = role('left', [rule(PREVIEWS, ['previewapps'], 'list', 'patch')]);
  listed(now, 'clusterRoles').push(left);
};

/** A program of another team; its role, and more roles that are bound to it where they are listed. */
const feed =
  (container: JsonObject, rules?: JsonObject[], { name = 'feed', bound = ['feed'] } = {}): Change =>
  (now) => {
    listed(now, 'deployments').push(deployment('team-b', name, container));
    if (rules !== undefined) listed(now, 'clusterRoles').push(role(bound[0] ?? name, rules));
    for (const one of bound)
      listed(now, 'clusterRoleBindings').push(binding(one, [account('team-b', name)]));
    now.places['team-b'] = { roleBindings: readOk([]) };
  };
const ADMIN = all(feed(KOPF, OTHERS, { name: 'admin' }), bindAdmin);
const watching = (place: string) => ({ name: 'feed', args: [`--namespace=${place}`] });
const ofRelease: Change = (now) => {
  named(listed(now, 'deployments'), 'feed').labels = listed(now, 'definitions')[0]?.labels ?? {};
};
const aggregated: Change = (now) => {
  const roles = listed(now, 'clusterRoles');
  drop(roles, ({ name }) => name === 'edit');
  roles.push(
    role('memcached-edit', MARKS, { 'rbac.authorization.k8s.io/aggregate-to-edit': 'true' }),
    role('edit', MARKS, { 'kubernetes.io/bootstrapping': 'rbac-defaults' }),
  );
};

/** Only part of the right that kopf needs; the rest of it, unbound, may be left of the operator that is gone. */
const copier =
  (resource: string, isRoleLeft: boolean): Change =>
  (now) => {
    if (isRoleLeft) leave(now);
    listed(now, 'deployments').push(deployment('tools', 'copier', KOPF));
    const own = role('copier', [rule('', [resource], '*')], {}, 'tools');
    const bound = binding('copier', [account('tools', 'copier')], { namespace: 'tools' }, 'Role');
    now.places['tools'] = { roles: readOk([own]), roleBindings: readOk([bound]) };
  };

const copyBoundTo =
  (bound: string): Change =>
  (now) => {
    const silent = readRecordedLook(`${KUBEBUILDER}-silent`).now;
    const operator = named(listed(silent, 'deployments'), 'memcached-');
    listed(now, 'deployments').push({ ...operator, uid: 'copy', namespace: 'team-b' });
    listed(now, 'clusterRoles').push(
      named(listed(silent, 'clusterRoles'), 'memcached-manager-role'),
    );
    now.places['team-b'] = { roleBindings: readOk([binding(bound, [], { namespace: 'team-b' })]) };
  };

const withoutPods: Change = (now) => {
  const pods = Object.values(now.places).map((place) => place.pods);
  for (const read of [...pods, now.cluster.pods, now.cluster.replicaSets])
    if (read?.ok) drop(read.value as unknown[], () => true);
};

/** All rights that begin so are gone, and no others are in this namespace. */
const deprived =
  (prefix: string, home: string): Change =>
  (now) => {
    drop(listed(now, 'clusterRoles'), ({ name }) => name.startsWith(prefix));
    drop(listed(now, 'clusterRoleBindings'), ({ role: { name } }) => name.startsWith(prefix));
    Object.assign(now.places[home] ?? {}, { roles: readOk([]), roleBindings: readOk([]) });
  };

/** A controller or autoscaler and a webhook with the account of the operator, in its place. */
const partsOf =
  (part: string): Change =>
  (now) => {
    const deployments = listed(now, 'deployments');
    const operator = named(deployments, 'memcached-');
    drop(deployments, (one) => one === operator);
    for (const name of [part, 'webhook']) {
      const own = { uid: name, name: `cache-${name}`, programs: [name], ready: 1, wanted: 1 };
      deployments.push({ ...operator, ...own });
    }
    withoutPods(now);
  };

/** S3 without its operator, but for what is left of it, beside another program with these rights. */
const without =
  (name: string, rules: JsonObject[], left = '', labels: Record<string, string> = {}): Change =>
  (now) => {
    const [deployments, roles] = [listed(now, 'deployments'), listed(now, 'clusterRoles')];
    const bindings = listed(now, 'clusterRoleBindings');
    const operator = named(deployments, 'widget-operator');
    const isOperators = (one: { name: string }): boolean => /widget-operator/.test(one.name);
    drop(deployments, () => true);
    if (left === 'workload') deployments.push({ ...operator, labels: {}, wanted: 1, ready: 1 });
    const own = { name, uid: name, account: name, programs: [name], labels, wanted: 1, ready: 1 };
    deployments.push({ ...operator, ...own });
    if (left !== 'role') drop(roles, isOperators);
    drop(bindings, isOperators);
    roles.push(role(name, rules));
    bindings.push(binding(name, [account(operator.namespace, name)]));
    if (now.discovery.ok)
      now.discovery.value.types.push(typeOf('shop.acme.io', 'storefronts', 'Storefront'));
    now.cluster.replicaSets = readOk([]);
    Object.assign(now.places[operator.namespace] ?? {}, { roleBindings: readOk([]) });
  };
const CHANGES = ['list', 'watch', 'update', 'patch'];

const BOTH = /widget-operator\b.*widget-operator-green.*it was started with --widget-class=/s;

interface Row {
  in: string;
  change?: Change;
  spelled?: (text: string) => string;
  /** The code, and the certainty or the namespace of who is named. */
  is: string;
  says?: RegExp;
  /** Who is innocent. */
  never?: string;
}

const ROWS: Record<string, Row> = {
  'an installation for one class of objects': {
    ...{ in: 'S3', change: blue, is: 'owner-scaled-to-zero likely' },
  },
  'two installations with different classes': {
    ...{ in: 'S3', change: all(blue, besideGreen('--widget-class=green')), is: 'owner-unknown' },
    says: BOTH,
  },
  'two installations of which one has a class': {
    ...{ in: 'S3', change: besideGreen('--widget-class=green'), is: 'owner-unknown' },
    says: BOTH,
  },
  'two installations of which one reconciles another namespace': {
    ...{ in: 'S3', is: 'owner-scaled-to-zero' },
    change: beside({ name: 'widget-operator-green', watches: ['b'], selectors: ['--shard=1'] }),
    says: /ruled out Deployment \S+widget-operator-green: it watches only other namespaces: /,
  },
  'another installation that may watch this namespace': {
    ...{ in: 'S3', change: besideGreen('--namespace-selector=kubernetes.io/metadata.name!=b') },
    is: 'owner-unknown',
  },
  'an operator whose name fits a pattern of many, for another product': {
    ...{ in: 'S3', is: 'owner-unknown' },
    spelled: (text) =>
      nameless(text)
        .replace(/widgets\.[\w.-]+\/cleanup/g, 'finalizer.stack.pulumi.com')
        .replaceAll('"Widget"', '"Stack"')
        .replaceAll('widget-operator', 'widget-operator-controller-manager'),
    says: /widget-operator-controller-manager \(scaled to zero\)/,
  },
  'a finalizer of the company on a ConfigMap, where the role of its operator is gone': {
    ...{ in: GONE, is: 'owner-failing team-b/db-memcached-operator' },
    change: all(
      MAPS,
      feed({ name: 'run' }, undefined, { name: 'db-memcached-operator', bound: ['db'] }),
    ),
  },
  'an operator that every right was taken from, and of which the namespace alone has a name': {
    ...{ in: `${KUBEBUILDER}-silent`, is: 'owner-failing memcached-system/controller-manager' },
    spelled: (text) => text.replaceAll('memcached-controller-manager', 'controller-manager'),
    change: deprived('memcached-manager', 'memcached-system'),
  },
  'an operator whose role was deleted, and whose name says nothing': {
    ...{ in: 'everyday-kube-rs-crashing', is: 'owner-not-ready likely' },
    spelled: (text) => text.replaceAll('doc-controller', 'platform'),
    change: (now) => drop(listed(now, 'clusterRoles'), ({ name }) => name === 'platform'),
  },
  'an operator with a binding, where the roles could not be read': {
    in: 'everyday-kube-rs-crashing',
    change: (now) => {
      named(listed(now, 'deployments'), 'doc-controller').name = 'document-operator';
      now.cluster.clusterRoles = readFailed({ kind: 'forbidden', message: '403', status: 403 });
    },
    ...{ is: '/owner-/', never: 'does not exist' },
  },
  'a role of an operator that reads, where the bindings could not be read': {
    ...{ in: GONE, is: '/owner-/', never: 'bound to nobody' },
    change: all(feed(MANAGER, MARKS, { name: 'db-operator', bound: ['db-operator'] }), (now) => {
      now.cluster.clusterRoleBindings = readFailed({ kind: 'forbidden', message: '403' });
    }),
  },
  'Crossplane, which may change what its providers manage, and a provider of something else': {
    ...{ in: 'everyday-crossplane-asleep', is: 'owner-missing' },
    change: (now) => {
      for (const { name, rules } of listed(now, 'clusterRoles'))
        if (/provider-aws-s3/.test(name)) rules[0]?.apiGroups.splice(0, 1, 'ec2.aws.m.upbound.io');
    },
  },
  'another with the marks, beside the rights that an uninstalled controller left': {
    ...{ in: RIGHTS_LEFT, is: 'owner-unknown' },
    change: (now) => {
      const [first] = listed(now, 'deployments') as [WorkloadFacts];
      const { name } = named(listed(now, 'clusterRoles'), 'memcached-manager-role');
      const own = { uid: 'relay', name: 'relay', account: 'relay' };
      listed(now, 'deployments').push({ ...first, ...own });
      listed(now, 'clusterRoleBindings').push(binding(name, [account(first.namespace, 'relay')]));
    },
    says: /one of: .*relay \(running\).*manager \(gone\)[\s\S]*Find out whether .*relay removes/,
  },
  'a copy of the operator in another namespace that has its role by a RoleBinding there': {
    ...{ in: GONE, change: copyBoundTo('memcached-manager-role') },
    is: 'owner-unknown preview',
  },
  'a copy of the operator that watches another namespace, and has its role there': {
    ...{ in: GONE, is: 'owner-missing' },
    change: all(copyBoundTo('memcached-manager-role'), (now) => {
      for (const one of listed(now, 'deployments')) one.watches = ['team-b'];
    }),
  },
  'a copy of the operator in another namespace that has another role there': {
    ...{ in: GONE, change: copyBoundTo('other'), is: 'owner-failing team-b' },
  },
  'who reads the type has not lost its right': {
    ...{ in: GONE, change: feed(MANAGER, READER), is: 'owner-missing' },
  },
  'a role that is aggregated into edit shows nobody who has lost it': {
    ...{ in: GONE, change: all(feed(MANAGER, [rule('', ['configmaps'], '*')]), aggregated) },
    ...{ is: 'owner-missing', says: /at most general tools/ },
  },
  'a team of people that may change all types of the group': {
    ...{ in: GONE, is: 'owner-missing' },
    change: (now) => {
      listed(now, 'clusterRoles').push(role('team', [rule(CACHE, ['*'], '*')]));
      listed(now, 'clusterRoleBindings').push(binding('team', [{ kind: 'Group', name: 'team' }]));
    },
  },
  'somebody outside that may change the type by name': {
    ...{ in: GONE, is: 'owner-unknown' },
    change: (now) => {
      listed(now, 'clusterRoles').push(role('far', [rule(CACHE, ['memcacheds'], '*')]));
      listed(now, 'clusterRoleBindings').push(binding('far', [{ kind: 'User', name: 'far' }]));
    },
  },
  'who may change the objects as anybody with the role edit': {
    ...{ in: GONE, change: all(feed({ name: 'bot' }, undefined, { bound: ['edit'] }), aggregated) },
    is: 'owner-unknown',
  },
  'a program that has no right but in its own namespace': {
    ...{ in: GONE, change: feed(MANAGER, undefined, { bound: [] }), is: 'owner-missing' },
  },
  'the same, called as the type': {
    ...{ in: GONE, is: 'owner-unknown' },
    change: feed(MANAGER, undefined, { name: 'memcached-operator', bound: [] }),
  },
  'another product with the name of the writer': {
    ...{ in: GONE, spelled: writtenBy('db-operator'), is: 'owner-missing' },
    change: feed({ name: 'db-operator' }, OTHERS, { name: 'db-operator' }),
  },
  'a writer with the name that Go gives to a program without one': {
    ...{ in: `${KUBEBUILDER}-silent`, spelled: writtenBy('cmd'), is: 'owner-running likely' },
  },
  'another product with the name of the writer, and a binding without a role': {
    ...{ in: GONE, spelled: writtenBy('db-operator'), is: 'owner-unknown' },
    change: feed({ name: 'db-operator' }, OTHERS, { name: 'db-operator', bound: ['db', 'gone'] }),
  },
  'a healthy operator of another product, with a binding to a role of its name that is gone': {
    ...{ in: GONE, is: 'owner-missing' },
    change: feed(MANAGER, OTHERS, { name: 'db-operator', bound: ['db', 'db-operator-role'] }),
  },
  'a runner of CI whose right to the type was deleted with the namespace': {
    ...{ in: GONE, is: 'owner-missing' },
    change: (now) => {
      const { name: namespace } = now.namespace;
      const runner = { name: 'runner', image: 'ghcr.io/actions/actions-runner:2' };
      listed(now, 'deployments').push(deployment('ci', 'runner', runner));
      const deploy = role('deploy', [rule(CACHE, ['memcacheds'], '*')], {}, namespace);
      const bound = binding('deploy', [account('ci', 'runner')], { namespace }, 'Role');
      now.baseline = {
        ...{ workloads: readOk([]), events: readOk([]) },
        ...{ roles: readOk([deploy]), roleBindings: readOk([bound]) },
      };
    },
  },
  'a second installation without a right': {
    ...{ in: 'S3', is: 'owner-scaled-to-zero likely' },
    change: beside({ name: 'second', account: 'lost', programs: ['widget-operator'] }),
  },
  'a program that reads, with the image of the writer': {
    ...{ in: GONE, spelled: writtenBy('memcached'), change: feed(OPERATORS_IMAGE, READER) },
    is: 'owner-failing likely',
  },
  'a program that reads, with the image of the writer, where rights are left': {
    ...{ in: RIGHTS_LEFT, spelled: writtenBy('memcached'), change: feed(OPERATORS_IMAGE, READER) },
    is: 'owner-unknown unknown',
  },
  'another program of kopf that changes another type': {
    ...{ in: KOPF_GONE, is: 'owner-missing' },
    change: feed(KOPF, [READS_APPS, rule(PREVIEWS, ['quotas'], 'patch')]),
  },
  'another program of kopf that changes the status': {
    ...{ in: KOPF_GONE, is: 'owner-failing' },
    change: feed(KOPF, [READS_APPS, rule(PREVIEWS, ['previewapps/status'], 'patch')]),
  },
  'another program of kopf that may only change Leases, and a role that waits for an account': {
    ...{ in: KOPF_GONE, change: copier('leases', true), is: 'owner-failing' },
  },
  'an operator of kopf for another product that may change everything': {
    ...{ in: KOPF_GONE, change: ADMIN, is: 'owner-unknown' },
  },
  'another program of kopf that works with Secrets, and a role that waits for an account': {
    ...{ in: KOPF_GONE, change: copier('secrets', true), is: 'owner-unknown' },
  },
  'who reads the type and is called an operator, where nobody else may change it': {
    ...{ in: GONE, is: 'owner-failing team-b/feed-operator' },
    change: feed(MANAGER, READER, { name: 'feed-operator' }),
  },
  'a Lease that the framework of the finalizer wrote, held by a pod of an unnamed program': {
    ...{ in: 'everyday-helm-operator-refused', is: 'owner-failing' },
    change: deprived('nginx-operator-manager-role', 'nginx-operator-system'),
  },
  'a workload that an object of the type has made is listed as that, and gets no right': {
    ...{ in: GONE, is: 'owner-unknown' },
    change: (now) => {
      const [{ apiVersion, kind, name, uid }] = heldIn(now) as [ReturnType<typeof heldIn>[0]];
      const ownerReferences = [{ apiVersion, kind, name, uid, controller: true }];
      const made = deployment('cache', 'memcached-db', MANAGER, { ownerReferences });
      listed(now, 'deployments').push(made);
    },
    says: /Deployment cache\/memcached-db \(made by such an object\)/,
    never: 'give it back its right',
  },
  'a webhook with the account of a controller': {
    ...{ in: `${KUBEBUILDER}-silent`, change: partsOf('controller'), is: 'owner-running' },
  },
  'a console of the company whose name the finalizer has': {
    ...{ in: GONE, is: 'owner-unknown' },
    spelled: (text) => text.replaceAll(`"${CACHE}/finalizer"`, '"acme-sync.acme.dev/protect"'),
    change: all(
      turnedInto('v1', typeOf('', 'configmaps', 'ConfigMap')),
      feed({ name: 'ui' }, [rule('', ['configmaps'], ...READ, 'update')], { name: 'acme-ui' }),
    ),
  },
  'an operator whose own role was deleted, and whose name has nothing of the type': {
    ...{ in: `${KUBEBUILDER}-silent`, is: 'owner-unknown' },
    spelled: (text) => writtenBy('unknown')(text.replaceAll(/memcached-(?=[cms])/g, 'mc-')),
    change: (now) => drop(listed(now, 'clusterRoles'), ({ name }) => name === 'mc-manager-role'),
    says: /Deployment mc-system.mc-controller-manager .may not change it. may be it/,
  },
  'the webhook of a well-known product, which is left alone': {
    ...{ in: 'everyday-external-secrets-refused', is: '/owner-(?:unknown|missing) /' },
    change: (now) => {
      const operator = named(listed(now, 'deployments'), 'external-secrets');
      Object.assign(operator, { name: 'external-secrets-webhook', uid: 'webhook' });
      withoutPods(now);
    },
  },
  'a console beside an operator that has lost its right': {
    ...{ in: `${KUBEBUILDER}-rights-lost`, is: 'owner-failing memcached-system' },
    change: feed({ name: 'console' }, [rule(CACHE, ['memcacheds'], ...READ, 'update')], {
      ...{ name: 'console', bound: ['console'] },
    }),
  },
  'a controller that is called a webhook, and writes under its name': {
    ...{ in: 'everyday-client-go-asleep', is: 'owner-scaled-to-zero' },
    spelled: (text) => text.replaceAll('dns-zone-controller', 'dns-zone-webhook'),
  },
  'an operator for webhooks': {
    ...{ in: 'everyday-josdk-v4-asleep', is: 'owner-scaled-to-zero' },
    spelled: (text) => text.replaceAll('"webpage-operator"', '"webpage-webhook-operator"'),
  },
  'a webhook with the account and the program of a controller that is gone': {
    ...{ in: `${KUBEBUILDER}-silent`, is: 'owner-unknown' },
    change: all(partsOf('webhook'), (now) => {
      for (const one of listed(now, 'deployments')) {
        if (one.name === 'cache-webhook') one.programs = ['manager'];
      }
    }),
  },
  'an application with the first name of a role that is left of the operator': {
    ...{ in: GONE, is: '/owner-(?:unknown|missing) /' },
    change: (now) => {
      const silent = readRecordedLook(`${KUBEBUILDER}-silent`).now;
      listed(now, 'clusterRoles').push(
        named(listed(silent, 'clusterRoles'), 'memcached-manager-role'),
      );
      listed(now, 'deployments').push(deployment('apps', 'memcached-frontend', { name: 'web' }));
      now.places['apps'] = { roles: readOk([]), roleBindings: readOk([]) };
    },
  },
  'an application with a part of the name of a role that is left of the operator': {
    ...{ in: GONE, is: 'owner-unknown' },
    change: (now) => {
      listed(now, 'clusterRoles').push(role('big-cache-operator-role', MARKS));
      listed(now, 'deployments').push(deployment('apps', 'big-cache', { name: 'web' }));
      now.places['apps'] = { roles: readOk([]), roleBindings: readOk([]) };
    },
    says: /not known: ClusterRole big-cache-operator-role, with .* is bound to nobody/,
  },
  'a webhook with the account of the operator that is gone, of which the role is left': {
    ...{ in: `${KUBEBUILDER}-silent`, is: '/owner-(?:unknown|missing) /' },
    change: all(partsOf('webhook'), (now) => {
      drop(listed(now, 'clusterRoleBindings'), ({ name }) => name.startsWith('memcached-'));
      now.places['memcached-system'] = { roles: readOk([]), roleBindings: readOk([]) };
    }),
  },
  'a workload with a binding to a role that is gone, in a namespace with a name like that of the type':
    {
      ...{ in: GONE, is: 'owner-missing', never: 'promtail' },
      change: (now) => {
        listed(now, 'deployments').push(deployment('cache', 'promtail'));
        listed(now, 'clusterRoleBindings').push(binding('logs', [account('cache', 'promtail')]));
      },
    },
  'another program of kopf, with a binding to a role that is gone, beside the operator': {
    ...{ in: 'everyday-kopf-silent', is: 'owner-running preview-operator' },
    change: feed(KOPF, undefined, { name: 'chatops', bound: ['chat'] }),
  },
  'a finalizer of another domain, whose operator wrote it as every operator does': {
    ...{ in: `${KUBEBUILDER}-silent`, is: 'owner-unknown' },
    spelled: (text) => text.replaceAll('"cache.acme.dev/finalizer"', '"corp.io/hold"'),
  },
  'a finalizer of a sibling of the company that is gone, whose type is still served': {
    ...{ in: `${KUBEBUILDER}-silent`, is: 'owner-missing', says: /audit\.acme\.dev\/hold/ },
    change: ({ discovery }) =>
      discovery.ok && discovery.value.types.push(typeOf('audit.acme.dev', 'audits', 'Audit')),
    spelled: (text) => text.replaceAll('"cache.acme.dev/finalizer"', '"audit.acme.dev/hold"'),
  },
  "a program of the finalizer's company without types of its own": {
    ...{ in: GONE, is: 'owner-unknown', says: /team-b.feed .running. may change it/ },
    change: all(
      ({ discovery }) =>
        discovery.ok && discovery.value.types.push(typeOf('audit.corp.io', 'audits', 'Audit')),
      feed(MANAGER, [rule(CACHE, ['memcacheds'], '*')]),
    ),
    spelled: (text) => text.replaceAll('"cache.acme.dev/finalizer"', '"corp.io/hold"'),
  },
  'an operator that was installed again elsewhere, beside the binding of its first account': {
    ...{ in: 'everyday-client-go-silent', is: 'owner-running infra' },
    change: (now) => {
      const { account: name } = named(listed(now, 'deployments'), 'dns-zone');
      const { role: bound } = named(listed(now, 'clusterRoleBindings'), 'dns-zone');
      const first = binding('first', [account('first', name)]);
      listed(now, 'clusterRoleBindings').push({ ...first, role: bound });
    },
  },
  'a program without any right that is told to watch this namespace, where the operator is gone': {
    ...{ in: GONE, is: 'owner-unknown', change: feed(watching(`preview-${GONE}`), []) },
  },
  'an operator with a class, beside the account that an earlier installation left': {
    ...{ in: RIGHTS_LEFT, is: 'owner-running team-b' },
    change: feed({ ...MANAGER, args: ['--memcached-class=blue'] }, MARKS),
  },
  'a program that may change the type and watches another namespace, where the operator is gone': {
    ...{ in: GONE, is: 'owner-unknown', change: feed(watching('team-c'), [PLAIN]) },
  },
  'a console of the release that watches another namespace, where the operator is gone': {
    ...{ in: RABBIT_GONE, is: 'owner-unknown' },
    change: all(feed(watching('tools'), [rule('rabbitmq.com', ['queues'], '*')]), ofRelease),
  },
  'a console of the release that is told to watch this namespace, where the operator is gone': {
    ...{ in: RABBIT_GONE, is: 'owner-unknown' },
    change: all(feed(watching(`preview-${RABBIT_GONE}`), []), ofRelease),
  },
  'an operator without replicas that another Deployment owns': {
    ...{ in: `${KUBEBUILDER}-asleep`, is: 'owner-scaled-to-zero memcached-system' },
    change: (now) => {
      const parent = { ...deployment('olm', 'parent'), apiVersion: 'apps/v1', controller: true };
      named(listed(now, 'deployments'), 'memcached').owner = parent;
      listed(now, 'deployments').push(parent);
    },
  },
  'a console of the release, beside the operator, which watches another namespace': {
    ...{ in: 'everyday-cert-manager-asleep', is: 'owner-not-acting cert-manager/cert-manager' },
    change: (now) => {
      const operator = named(listed(now, 'deployments'), 'cert-manager');
      const { annotations, labels } = operator;
      Object.assign(operator, { watches: ['b'], selectors: ['--ns=b'], wanted: 1, ready: 1 });
      const console = deployment('cert-manager', 'cert-console', {}, { annotations, labels });
      listed(now, 'deployments').push(console);
      const rules = [rule('acme.cert-manager.io', ['challenges'], '*')];
      listed(now, 'clusterRoles').push(role('console', rules));
      const its = account('cert-manager', 'cert-console');
      listed(now, 'clusterRoleBindings').push(binding('console', [its]));
    },
  },
  'a console in the namespace of the operator, with the name of the program and a right to another type':
    {
      in: GONE,
      change: (now) => {
        listed(now, 'deployments').push(deployment('memcached-system', 'ui', MANAGER));
        listed(now, 'clusterRoles').push(role('ui', [rule(CACHE, ['backups'], '*')]));
        listed(now, 'clusterRoleBindings').push(binding('ui', [account('memcached-system', 'ui')]));
        now.places['memcached-system'] = { roleBindings: readOk([]) };
      },
      is: 'owner-missing',
    },
  'another program of kopf that changes another type, and a role that waits for an account': {
    ...{ in: KOPF_GONE, is: '/owner-(?:unknown|missing) /' },
    change: all(feed(KOPF, [READS_APPS, rule(PREVIEWS, ['quotas'], 'patch')]), leave),
  },
  "the controller of another company's type, which may change this one as well": {
    ...{ in: GONE, is: 'owner-missing' },
    change: all(
      ({ discovery }) =>
        discovery.ok && discovery.value.types.push(typeOf('kueue.io', 'queues', 'Queue')),
      feed(MANAGER, [...MARKS, rule('kueue.io', ['queues', 'queues/status'], '*')], {
        name: 'kueue-jobs-controller-manager',
      }),
    ),
  },
  'an operator of a sibling type, which uses this one': {
    ...{ in: GONE, is: 'owner-unknown' },
    change: feed(MANAGER, [PLAIN, rule(CACHE, ['backups/status'], '*')], { name: 'my-operator' }),
  },
  'a finalizer of another company with the name of the product, which is gone': {
    ...{ in: GONE, is: 'owner-missing' },
    spelled: (text) => text.replaceAll('"cache.acme.dev/', '"cache.node.corp.io/'),
  },
  'an addition to a product, with its name in a finalizer of another company': {
    ...{ in: 'everyday-keda-asleep', is: 'owner-unknown' },
    spelled: (text) =>
      text
        .replaceAll(/"finalizer.keda.sh"/g, '"keda.corp.io/x"')
        .replaceAll(/"manager":"keda"/g, '"manager":"app"'),
    change: feed(MANAGER, [rule('keda.sh', ['scaledobjects'], ...CHANGES)]),
  },
  'a controller of which another process holds the Lease, in kube-system': {
    ...{ in: 'everyday-cert-manager-asleep', is: 'owner-running cert-manager/cert-manager' },
    change: (now) => {
      const lead = { holder: 'elsewhere_1', renewTime: now.takenAt };
      Object.assign(named(listed(now, 'leases'), 'cert-manager-controller'), lead);
      Object.assign(named(listed(now, 'deployments'), 'cert-manager'), { wanted: 1, ready: 1 });
    },
    says: /may not lead: Lease kube-system\/cert-manager-controller/,
  },
  'a controller that lost its Lease, and said as its last that it failed, before the deletion': {
    ...{ in: 'not-leading', is: 'owner-running', says: /may not lead: Lease .* by elsewhere_1/ },
    change: (now) => {
      const [regarding] = heldIn(now);
      const renewTime = regarding?.creationTimestamp;
      const lead = { holder: 'elsewhere_1', renewTime, durationSeconds: 86_400 };
      Object.assign(named(listed(now, 'leases'), 'widget-operator'), lead);
      const failed = { type: 'Warning', message: 'failed to do it', component: 'widget-operator' };
      const event = { ...failed, regarding, at: renewTime };
      Object.assign(now.places[now.namespace.name] ?? {}, { events: readOk([event]) });
    },
  },
  'an operator called after the type that reads it, and that of another product, and changes nothing':
    {
      ...{ in: GONE, is: 'owner-failing team-b/memcached-operator' },
      change: feed({ name: 'run' }, [...READER, rule('acid.zalan.do', ['*'], ...READ)], {
        name: 'memcached-operator',
      }),
    },
  'an admission controller, where the group of the type begins with that word': {
    ...{ in: GONE, is: 'owner-missing' },
    spelled: (text) => text.replaceAll('cache.acme.dev', 'controller.acme.dev'),
    change: feed({ name: 'kyverno' }, [], { name: 'kyverno-admission-controller' }),
  },
  'the controller of another product, below the domain of the company that the finalizer has': {
    in: 'S3',
    change: without('shop', [
      rule('shop.acme.io', ['storefronts', 'storefronts/status'], ...CHANGES),
      rule('example.com', ['widgets'], ...CHANGES),
    ]),
    spelled: (text) => nameless(text).replaceAll('widgets.example.com/cleanup', 'acme.io/dns'),
    ...{ is: '/owner-(?:unknown|missing|failing) (?!.*\\/shop)/' },
  },
  'a console with the labels of the CRD, where the role of the operator is bound to nobody': {
    in: 'S3',
    change: without('console', [rule('', ['pods'], ...CHANGES)], 'role', {
      'app.kubernetes.io/name': 'widget-operator',
    }),
    ...{ spelled: nameless, is: '/owner-(?:unknown|missing|failing) (?!.*\\/console)/' },
  },
  'who shares the type, where the one that wrote the finalizer has lost every right': {
    in: 'S3',
    change: without(
      'auditor',
      [rule('example.com', ['widgets', 'widgets/status'], ...CHANGES)],
      'workload',
    ),
    is: '/owner-(?:unknown|missing|failing) (?!.*\\/auditor)/',
  },
};

test.each(Object.entries(ROWS))('%s', (_, { in: recording, change, spelled, is, says, never }) => {
  const { owners } = told(recording, change, spelled);
  expect(owners).toHaveLength(1);
  const [{ code, certainty, finalizer, subject, message, evidence, remedies }] = owners as [
    (typeof owners)[0],
  ];
  const [, pattern] = /^\/(.*)\/$/.exec(is) ?? [];
  const who = `${code} ${certainty} ${subject.namespace}/${subject.name}`;
  const [isCode, isMore = ''] = is.split(' ');
  if (pattern !== undefined) expect(who).toMatch(new RegExp(pattern));
  else expect([code, who.includes(` ${isMore}`)], who).toEqual([isCode, true]);
  const text = `${subject.name} ${message}\n${finalizer}\n${evidence.join('\n')}\n${remedies[0]?.text}`;
  if (says !== undefined) expect(text).toMatch(says);
  if (never !== undefined) expect(JSON.stringify(owners)).not.toContain(never);
});

test('of 24 operators that may act, five are evidence, and the first are named, each with its state', () => {
  const crowd = Array.from({ length: 23 }, (_, at) => ({ name: `platform-${at}` }));
  const operator: Change = (now) =>
    Object.assign(named(listed(now, 'deployments'), 'widget-operator'), {
      ...{ name: 'platform-a', programs: ['main'], labels: {} },
    });
  const { owner } = told('S3', all(operator, beside(...crowd)), nameless);
  expect(owner?.code).toBe('owner-unknown');
  expect(owner?.evidence.filter((text) => text.startsWith('suspect '))).toHaveLength(5);
  expect(owner?.message).toMatch(/scaled to zero\).* and \d more/);
});

test.each([
  ['everyday-rabbitmq-uninstalled', 'rabbitmq.com', 'queues', true],
  ['everyday-crossplane-uninstalled', 's3.aws.m.upbound.io', 'buckets', false],
])('%s: a product that is gone, and no family, is one cause by any of its names', (...row) => {
  const [gone, group, resource, isOne] = row;
  const { owner } = told(gone, (now) => {
    const marks = role('left', [rule(group, [resource, `${resource}/status`], '*')]);
    listed(now, 'clusterRoles').push(marks);
    listed(now, 'clusterRoleBindings').push(binding('left', [account('ops', 'left')]));
  });
  expect(owner?.message).toContain('ServiceAccount ops/left');
  expect(owner?.cause === told(gone).owner?.cause).toBe(isOne);
});

test('an owner is not deleted with its namespace while a pod still runs there', () => {
  const certainty = (phase: string) =>
    told('S4-watched', (now) => {
      const ending = now.namespace.name;
      const pods = readOk([podFacts('late', { namespace: ending, phase })]);
      now.places[ending] = { ...now.places[ending], pods };
    }).owners.find(({ code }) => code === 'owner-missing')?.certainty;
  expect(certainty('Succeeded')).toBe('proven');
  expect(certainty('Running')).not.toBe('proven');
});

test.each([
  ['kubebuilder-v4-uninstalled', 'cache-platform', 'backstage', 'backstage', 'owner-unknown'],
  ['kubebuilder-v4-uninstalled', 'tools', 'cache-deployer', 'deployer', 'owner-unknown'],
  ['kubebuilder-v4-uninstalled', 'cache-system', 'cache-controller', 'manager', 'owner-running'],
  ['kubebuilder-v4-uninstalled', 'tools', 'environment-operator', 'manager', 'owner-unknown'],
  ['aws-load-balancer-uninstalled', 'kyverno', 'kyverno-background', 'controller', 'owner-missing'],
  ['aws-load-balancer-uninstalled', 'tools', 'metacontroller', 'metacontroller', 'owner-missing'],
  ['external-secrets-uninstalled', 'tools', 'metacontroller', 'metacontroller', 'owner-missing'],
  ['kubebuilder-v4-uninstalled', 'pepr-system', 'pepr-uds-core', 'server', 'owner-missing'],
  ['kubebuilder-v4-rights-left', 'tools', 'cache-deployer', 'deployer', 'owner-missing'],
])('%s: the only administrator %s/%s runs %s', (look, namespace, name, program, code) => {
  const { owners } = told(`everyday-${look}`, (now) => {
    listed(now, 'deployments').push(deployment(namespace, name, { name: program }));
    const bound = binding('cluster-admin', [account(namespace, name)]);
    listed(now, 'clusterRoleBindings').push(bound);
  });
  expect(owners.map((one) => one.code)).toEqual([code]);
  expect(JSON.stringify(owners).includes(name)).toBe(code !== 'owner-missing');
});

test.each([
  ['ci', 'deployer'],
  ['cache-system', 'cache-operator'],
])('the account %s/%s, without the marks of a controller, is not told', (namespace, name) => {
  const { owner } = told(GONE, (now) => {
    listed(now, 'clusterRoles').push(role(name, [rule(CACHE, ['memcacheds'], '*')]));
    listed(now, 'clusterRoleBindings').push(binding(name, [account(namespace, name)]));
  });
  expect(owner?.code).toBe('owner-missing');
  expect(owner?.message).not.toContain(`${namespace}/${name}`);
});

const EVERYDAY = recordingNames().filter((name) => /^everyday-.*-(?:silent|asleep)$/.test(name));

describe('an operator of every day that has lost', () => {
  const ownerOf = (recording: string, change?: Change): string => {
    const { kind, namespace, name } = told(recording, change).owner?.subject ?? {};
    return `${kind} ${namespace}/${name}`;
  };

  test.each(EVERYDAY)('the verbs of its role, %s, is named all the same', (name) => {
    const withoutVerbs: Change = (now) => {
      const types = now.content.filter(({ read }) => read.ok && read.value.terminating.length > 0);
      for (const one of listed(now, 'clusterRoles'))
        one.rules = one.rules.flatMap((given) => {
          const isAbout = types.some(
            ({ type }) =>
              given.apiGroups.includes(type.group) && given.resources.includes(type.resource),
          );
          const [parts, whole] = [true, false].map((isPart) =>
            given.resources.filter((resource) => resource.includes('/') === isPart),
          ) as [string[], string[]];
          return isAbout
            ? [
                { ...given, resources: parts },
                { ...given, resources: whole, verbs: READ },
              ]
            : [given];
        });
    };
    expect(ownerOf(name, withoutVerbs)).toBe(ownerOf(name));
  });

  const isCustom = ({ apiGroups }: { apiGroups: string[] }): boolean =>
    apiGroups.some((group) => group.includes('.') && !group.endsWith('.k8s.io'));

  test.each(EVERYDAY.filter((name) => /cert-manager|crossplane|keda|kubebuilder-v4/.test(name)))(
    'every binding, and may still read its Secrets, %s, is named by a role of its name',
    (name) => {
      const owner = ownerOf(name);
      const [, home = ''] = owner.split(/[ /]/);
      const unbound: Change = (now) => {
        const isIts = ({ rules }: { rules: { apiGroups: string[] }[] }) => rules.some(isCustom);
        const its = listed(now, 'clusterRoles').flatMap((one) => (isIts(one) ? one.name : []));
        drop(listed(now, 'clusterRoleBindings'), ({ subjects }) =>
          subjects.some(({ namespace }) => namespace === home),
        );
        const group = { kind: 'Group', name: `system:serviceaccounts:${home}` };
        const own = its.map((one) => role(one, [rule('', ['secrets'], '*')], {}, home));
        const bound = its.map((one) => binding(one, [group], { namespace: home }, 'Role'));
        now.places[home] = { roles: readOk(own), roleBindings: readOk(bound) };
      };
      expect(ownerOf(name, unbound)).toBe(owner);
    },
  );

  test.each(EVERYDAY.filter((name) => /kubebuilder|kopf/.test(name)))(
    'every binding, %s, is named where its namespace was read',
    (name) => {
      const owner = ownerOf(name);
      const [, home = ''] = owner.split(/[ /]/);
      const unbound =
        (...own: ReturnType<typeof binding>[]): Change =>
        (now) => {
          drop(listed(now, 'clusterRoleBindings'), ({ subjects }) =>
            subjects.some(({ namespace }) => namespace === home),
          );
          // What is called as its type is known without its role.
          if (!name.includes('kopf'))
            drop(listed(now, 'clusterRoles'), ({ rules }) => rules.some(isCustom));
          const roles = readOk(own.map(() => role('own', MARKS, {}, home)));
          now.places[home] = { roles, roleBindings: readOk(own) };
        };
      const unread: Change = all(unbound(), ({ places }) => delete places[home]);
      const group = { kind: 'Group', name: `system:serviceaccounts:${home}` };
      const bound = binding('own', [group], { namespace: home }, 'Role');

      expect(ownerOf(name, unread)).not.toBe(owner);
      expect(ownerOf(name, unbound())).toBe(owner);
      if (!name.includes('kopf')) expect(ownerOf(name, unbound(bound))).not.toBe(owner);
    },
  );
});
