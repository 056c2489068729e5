import type { JsonObject } from '../../../src/base/json.ts';
import type { Expectation, Scenario } from '../scenario.ts';
import { readyPods } from '../servers/operator-process.ts';
import { laterSecond } from '../wait-until.ts';
import type { World } from '../world.ts';
import { namespaceFinalizer, ownerUnknown, stuck } from './links.ts';
import {
  ADMIN,
  clusterName,
  FULL,
  install,
  NAMELESS,
  type OperatorOptions,
  operatorOf,
  operatorRules,
  READ,
  rule,
  runPods,
  uninstall,
} from './operator.ts';
import { settledWithPod } from './pods.ts';
import {
  guardedRef,
  HANGS,
  heldBy,
  KEPT,
  keeper,
  NOBODY_IS_MISSING,
  releaseGuarded,
  type Situation,
  type Step,
  settledByFinalizer,
  situation,
} from './situation.ts';
import { createEvent } from './traces.ts';

/** Innocent programs that leave a trace on the object, while its owner leaves none that names it. */

/** Nothing points to the operator but its permissions: its type has no labels. */
const SILENT: OperatorOptions = { ...NAMELESS, type: { metadata: {} } };

const asItself = (world: World): readonly JsonObject[] =>
  operatorRules({ group: world.domain('example.com'), kind: 'Widget' });

/** Whoever is named, it is none of the bystanders; and somebody is there. */
const notThem = (): Partial<Expectation> => ({ chains: 'any', never: [NOBODY_IS_MISSING] });

/** The status once the deletion has begun, as this field manager writes it. */
const statusBy =
  (fieldManager: string, status: JsonObject): Step =>
  async (world, operator) => {
    await world.terminating(guardedRef(world, operator));
    await laterSecond();
    await world.client.patchStatus(guardedRef(world, operator), status, { fieldManager });
    await settledByFinalizer(world);
  };

const notReady = (reason: string, message: string): JsonObject => ({
  conditions: [
    {
      type: 'Ready',
      status: 'False',
      reason,
      message,
      lastTransitionTime: new Date().toISOString().replace(/\.\d+/, ''),
    },
  ],
});

const impostor = (told: Situation): Scenario =>
  situation({ own: true, operator: SILENT, behaviour: HANGS, expect: notThem, ...told });

const AGENT = { kind: 'Deployment', namespace: 'cattle-system', name: 'cattle-cluster-agent' };
const OF_RANCHER = 'controller.cattle.io/namespace-auth';

export const impostors: Scenario[] = [
  impostor({
    ...KEPT,
    id: 'exporter-reports',
    title: 'an exporter with a word of the finalizer in its name reports an Event about the object',
    operator: (world) => ({ ...keeper(world), ...NAMELESS }),
    bystanders: [
      { name: 'drain-exporter', namespace: 'monitoring', rules: [rule('', ['pods'], FULL)] },
    ],
    settle: settledWithPod,
    afterwards: async (world, operator) => {
      const exporter = operatorOf(world, { name: 'drain-exporter', namespace: 'monitoring' });
      const [pod] = await readyPods(world.client, exporter);
      await createEvent(world, {
        about: guardedRef(world, operator),
        component: exporter.name,
        instance: pod?.metadata.name ?? '',
        note: 'observed the pod',
        type: 'Normal',
        reason: 'Observed',
      });
    },
  }),
  impostor({
    ...KEPT,
    id: 'rights-on-pods',
    title:
      'what guards the pod is uninstalled; a controller with other work may watch and change pods',
    operator: (world) => ({ ...keeper(world), ...NAMELESS }),
    bystanders: [{ name: 'announcer', namespace: 'network', rules: [rule('', ['pods'], FULL)] }],
    settle: settledWithPod,
    afterwards: uninstall,
    cure: releaseGuarded,
    expect: (world, operator) => ({
      chains: [
        [
          heldBy(world, operator),
          ownerUnknown(guardedRef(world, operator), operator.finalizer, {
            says: [/no clue points to a controller/],
          }),
        ],
      ],
    }),
  }),
  impostor({
    id: 'health-writes-status',
    title: 'a program that looks after the health of all types writes the status of the object',
    operator: { ...SILENT, manager: 'Go-http-client' },
    bystanders: (world) => [
      { name: 'health-aggregator', namespace: 'platform', rules: asItself(world) },
    ],
    settle: statusBy('health-aggregator', { health: 'Progressing' }),
  }),
  impostor({
    id: 'status-of-the-powerless',
    title: 'the same, and the operator has lost its rights; its type has its labels',
    operator: { manager: 'widgets.example.com/labeller', rules: [rule('*', ['*'], READ)] },
    behaviour: { tells: false },
    bystanders: (world) => [
      { name: 'health-aggregator', namespace: 'platform', rules: asItself(world) },
    ],
    settle: statusBy('health-aggregator', { health: 'Progressing' }),
    cure: releaseGuarded,
  }),
  impostor({
    id: 'account-mentioned',
    title: 'the status mentions the account of somebody whose approval the operator waits for',
    bystanders: (world) => [{ name: 'gatekeeper', namespace: 'policy', rules: asItself(world) }],
    settle: (world, operator) =>
      statusBy(
        'manager',
        notReady('Waiting', 'waiting for approval by system:serviceaccount:policy:gatekeeper'),
      )(world, operator),
  }),
  impostor({
    id: 'refused-as-a-tenant',
    title: 'the operator, whose name nobody sees, is refused as the account of a tenant',
    operator: (world) => ({
      ...SILENT,
      rules: [
        ...asItself(world),
        rule('', ['serviceaccounts'], ['impersonate']),
        // As a controller of the platform, which makes objects for others.
        rule('monitoring.example.org', ['servicemonitors'], FULL),
      ],
    }),
    owner: 'owner-failing',
    expect: () => ({ never: [NOBODY_IS_MISSING] }),
    settle: (world, operator) =>
      statusBy(
        'manager',
        notReady(
          'DeleteFailed',
          'deployments.apps is forbidden: User "system:serviceaccount:team-apps:shop" cannot delete resource "deployments" in API group "apps" in the namespace "shop"',
        ),
      )(world, operator),
  }),
  impostor({
    id: 'container-called-manager',
    title: 'a bystander has a container called manager; the image of the operator starts /manager',
    operator: { ...SILENT, container: { name: 'widget-operator' } },
    bystanders: (world) => [
      {
        name: 'inventory',
        namespace: 'platform',
        container: { name: 'manager' },
        rules: asItself(world),
      },
    ],
  }),
  impostor({
    id: 'writer-lost-permission',
    title: 'the writer of the finalizer has lost its permissions, silently; an exporter may patch',
    operator: { type: { metadata: {} } },
    behaviour: { tells: false },
    bystanders: (world) => [
      {
        name: 'exporter',
        namespace: 'monitoring',
        rules: [rule(world.domain('example.com'), ['widgets'], [...READ, 'patch'])],
      },
    ],
    afterwards: (world, operator) =>
      world.client.delete({
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        name: clusterName(operator),
      }),
    expect: () => ({
      ...notThem(),
      also: ({ namespace }) => {
        const told = namespace.findings.map(({ message }) => message).join();
        const roots = namespace.findings.filter(({ id }) => namespace.rootCauses.includes(id));
        if (`${told} ${roots.map(({ subject }) => subject.name)}`.includes('widget-operator')) {
          return;
        }
        throw new Error(`does not name the writer: ${told}`);
      },
    }),
  }),
  {
    id: 'agent-of-rancher',
    title: 'a finalizer of Rancher on the namespace; here runs only the agent, as cluster-admin',
    own: true,
    setUp: async (world) => {
      await world.createNamespace(undefined, { finalizers: [OF_RANCHER] });
      await world.createNamespace(AGENT.namespace);
      const { name, namespace } = AGENT;
      const agent: OperatorOptions = { ...ADMIN, type: false, name, namespace, scope: 'cluster' };
      await runPods(world, await install(world, agent));
    },
    expect: (world) => ({
      ...stuck([
        namespaceFinalizer(world.namespaceRef, OF_RANCHER),
        ownerUnknown(world.namespaceRef, OF_RANCHER),
      ]),
      never: [AGENT],
    }),
  },
];
