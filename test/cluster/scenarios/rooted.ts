import { customObject, customType } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import { objectFinalizer, ownerUnknown, ref } from './links.ts';
import {
  ADMIN,
  install,
  NAMELESS,
  operatorOf,
  READ,
  rule,
  runPods,
  uninstall,
} from './operator.ts';
import {
  GUARDED,
  HANGS,
  heldBy,
  missingOrUnknown,
  nobodyKnown,
  nobodyLeft,
  owner,
  RIGHTS,
  releaseGuarded,
  scaleUp,
  settledByFinalizer,
  situation,
} from './situation.ts';

/**
 * What operators that people run look like, by other names. Where names or cluster-wide rights count, alone: others on
 * the cluster are called alike.
 */

/** Written by a part of the program that has a name of its own: kro labels objects as `kro.run/labeller`. */
const BY_A_PART = { manager: 'widgets.example.com/labeller' };

const READ_EVERYTHING = [rule('*', ['*'], READ)];

/** It may do everything in the beginning; what is left of that is to read everything. */
const lostEverything = situation({
  id: 'S86',
  own: true,
  title: 'the operator may still read everything, and change nothing; it has written the status',
  operator: { ...BY_A_PART, rules: READ_EVERYTHING },
  behaviour: { tells: false },
  afterwards: (world, operator) => writeStatus(world, operator, operator.name),
  owner: (_, operator) => [
    owner(operator, 'owner-failing', { says: [/neither update nor patch/] }),
  ],
  cure: releaseGuarded,
  mayChange: () => RIGHTS,
});

/** Rights on types that come and go are in a ClusterRole of their own, which may be deleted first. */
const lostRole = situation({
  id: 'S86-role',
  own: true,
  title: 'the role for just this type is gone; the operator has others for its group',
  operator: (world) => ({
    ...BY_A_PART,
    rules: [rule(operatorOf(world).group, ['definitions'], ['*'])],
  }),
  behaviour: { tells: false },
  afterwards: (world, operator) => writeStatus(world, operator, operator.name),
  owner: (_, operator) => [
    owner(operator, 'owner-failing', { says: [/neither update nor patch/] }),
  ],
  cure: releaseGuarded,
  mayChange: () => RIGHTS,
});

/** Its rights are where it lives. */
const namesakeElsewhere = situation({
  id: 'S86-namesake',
  own: true,
  title: 'the operator is gone; another install of it looks after a namespace of its own',
  bystanders: [{ name: 'widget-operator', namespace: 'team-b', scope: 'namespace' }],
  afterwards: async (world, operator) => {
    await writeStatus(world, operator, operator.name);
    await uninstall(world, operator);
  },
  expect: missingOrUnknown,
  cure: releaseGuarded,
});

/** Operators for one database share names: this one is called as another company's, of which nothing is installed. */
const namedAsAnotherProduct = situation({
  id: 'S87-product',
  own: true,
  title: 'an operator that may do everything is called as a known product, which is not installed',
  operator: {
    ...ADMIN,
    manager: 'fabric8-kubernetes-client',
    kind: 'Store',
    group: 'databases.example.com',
    name: 'mysql-operator',
    finalizer: 'databases.example.com/cleanup',
    // Without the labels of an installation and the name of a writer, only what it may do points to it.
    type: { metadata: {} },
  },
  behaviour: HANGS,
  // It may be the owner, so the owner is not missing.
  expect: (world, operator) => ({
    chains: [[heldBy(world, operator), nobodyKnown(world, operator)]],
  }),
  cure: releaseGuarded,
});

async function writeStatus(
  world: Parameters<typeof releaseGuarded>[0],
  operator: ReturnType<typeof operatorOf>,
  manager: string,
): Promise<void> {
  const apiVersion = `${operator.group}/${operator.version}`;
  await world.client.patchStatus(
    ref(apiVersion, operator.kind, world.namespace, GUARDED),
    { phase: 'Ready' },
    { fieldManager: manager },
  );
}

/** K3s brings one that is called as Flux’s, and sets the finalizers of the library that it is made with. */
const CHARTS = {
  ...ADMIN,
  kind: 'ReleaseChart',
  group: 'helm.example.com',
  name: 'helm-controller',
  namespace: 'helm-controller',
  finalizer: 'wrangler.cattle.io/on-chart-remove',
};

const namedAsGitOps = situation({
  id: 'S87',
  own: true,
  title: 'the sleeping operator is called as a GitOps tool, and its finalizer as a library',
  operator: { ...CHARTS, replicas: 0 },
  owner: 'owner-scaled-to-zero',
  cure: scaleUp,
});

const namedAsAnother = situation({
  id: 'S87-flux',
  own: true,
  title: 'that operator is gone, and the GitOps tool of that name runs',
  operator: CHARTS,
  bystanders: [
    {
      name: 'helm-controller',
      namespace: 'flux-system',
      rules: [rule('*', ['*'], ['*']), rule('helm.toolkit.fluxcd.io', ['helmreleases'], ['*'])],
    },
  ],
  afterwards: (world, operator) => uninstall(world, operator),
  expect: missingOrUnknown,
  cure: releaseGuarded,
});

/** It applies what others have written, finalizers and all. */
const appliedByGitOps: Scenario = {
  id: 'S87-applied',
  own: true,
  title: 'a GitOps tool of that name has applied the object, and the operator is gone',
  setUp: async (world) => {
    const group = world.domain('example.com');
    const tool = { ...ADMIN, name: 'helm-controller', namespace: world.name('flux-system') };
    await world.createNamespace();
    await world.createNamespace(tool.namespace);
    await runPods(world, await install(world, { ...tool, scope: 'cluster', type: false }));
    await world.createType(customType({ group: 'helm.toolkit.fluxcd.io', kind: 'HelmRelease' }));
    await world.createType(customType({ group, kind: 'Widget' }));
    await world.create(
      customObject(`${group}/v1`, 'Widget', world.namespace, GUARDED, {
        finalizers: [`widgets.${group}/cleanup`],
      }),
      { fieldManager: 'helm-controller' },
    );
  },
  settle: settledByFinalizer,
  expect: (world) => {
    const operator = operatorOf(world);
    return {
      outcome: 'stuck',
      ...missingOrUnknown(world, operator),
      never: [
        { kind: 'Deployment', namespace: world.name('flux-system'), name: 'helm-controller' },
      ],
    };
  },
};

/** Distributions run controllers inside the program of their control plane: no pod shows them. */
const embedded: Scenario = {
  id: 'S88',
  title: 'the controller is part of the program that runs the control plane',
  own: true,
  setUp: async (world) => {
    const group = world.domain('charts.example.com');
    await world.createNamespace();
    await world.createType(customType({ group, kind: 'ReleaseChart' }));
    const now = new Date().toISOString().replace('Z', '000Z');
    await world.create(
      {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { namespace: 'kube-system', name: 'supervisor' },
        spec: {
          holderIdentity: 'server-1_0d2c',
          leaseDurationSeconds: 3_600,
          acquireTime: now,
          renewTime: now,
        },
      },
      { fieldManager: 'acme' },
    );
    const object = customObject(`${group}/v1`, 'ReleaseChart', world.namespace, 'ingress');
    await world.create(object);
    await world.client.patch(
      ref(`${group}/v1`, 'ReleaseChart', world.namespace, 'ingress'),
      { metadata: { finalizers: [`${group}/on-remove`] } },
      { fieldManager: 'acme' },
    );
  },
  settle: settledByFinalizer,
  expect: (world) => {
    const group = world.domain('charts.example.com');
    const held = ref(`${group}/v1`, 'ReleaseChart', world.namespace, 'ingress');
    const finalizer = `${group}/on-remove`;
    return {
      outcome: 'stuck',
      chains: [[objectFinalizer(held, finalizer), ownerUnknown(held, finalizer)]],
    };
  },
};

const CONSOLE = { name: 'console', namespace: 'tools' };

const accountLeft = situation({
  id: 'S89',
  title: 'the rights of the nameless operator are left, and a web console may change its objects',
  operator: NAMELESS,
  bystanders: (world) => [
    {
      ...CONSOLE,
      rules: [rule(operatorOf(world).group, ['widgets'], [...READ, 'update', 'patch', 'delete'])],
    },
  ],
  afterwards: (world, operator) => uninstall(world, operator, ['rights', 'account']),
  owner: (_, operator) => [
    {
      ...nobodyLeft(operator),
      certainty: ['likely'],
      says: [new RegExp(`ran as ServiceAccount ${operator.namespace}/${operator.name}`)],
    },
  ],
  cure: releaseGuarded,
});

const watchesOnly = situation({
  id: 'S90',
  title: 'the nameless operator may watch its objects and write their status, and not change them',
  operator: { ...NAMELESS, verbs: READ },
  behaviour: HANGS,
  owner: { code: 'owner-failing', certainty: ['likely'], says: [/neither update nor patch/] },
  cure: releaseGuarded,
});

const insideWithEveryRight = situation({
  id: 'S91',
  own: true,
  title: 'the operator was in the namespace, and its cluster-wide right to do everything is left',
  operator: (world) => ({ ...ADMIN, namespace: world.namespace }),
  owner: (_, operator) => [nobodyLeft(operator)],
  expect: () => ({ deadlock: true }),
  cure: releaseGuarded,
});

/** As Cluster API's `kubeadm.controlplane.cluster.x-k8s.io` on a KubeadmControlPlane. */
const beginningOfKind = situation({
  id: 'S92',
  title: 'the domain of the finalizer is how the kind begins, in front of its group',
  operator: (world) => ({
    manager: 'manager',
    group: 'planes.example.com',
    kind: 'AcmeControlPlane',
    name: 'acmecontrolplane-operator',
    finalizer: `acme.${world.domain('planes.example.com')}`,
    replicas: 0,
  }),
  owner: 'owner-scaled-to-zero',
  cure: scaleUp,
});

export const rooted = [
  lostEverything,
  lostRole,
  namesakeElsewhere,
  namedAsGitOps,
  namedAsAnother,
  namedAsAnotherProduct,
  appliedByGitOps,
  embedded,
  accountLeft,
  watchesOnly,
  insideWithEveryRight,
  beginningOfKind,
];
