import type { JsonObject } from '../../../src/base/json.ts';
import type { Expectation, Scenario } from '../scenario.ts';
import { laterSecond } from '../wait-until.ts';
import type { World } from '../world.ts';
import {
  clusterName,
  FULL,
  NAMELESS,
  type OperatorOptions,
  operatorRules,
  READ,
  rule,
} from './operator.ts';
import {
  guardedRef,
  HANGS,
  NOBODY_IS_MISSING,
  releaseGuarded,
  type Situation,
  type Step,
  settledByFinalizer,
  situation,
} from './situation.ts';

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

export const impostors: Scenario[] = [
  impostor({
    id: 'status-of-the-powerless',
    title:
      'a program that looks after the health of all types writes the status; the operator has lost its rights, and its type has its labels',
    operator: { manager: 'widgets.example.com/labeller', rules: [rule('*', ['*'], READ)] },
    behaviour: { tells: false },
    bystanders: (world) => [
      { name: 'health-aggregator', namespace: 'platform', rules: asItself(world) },
    ],
    settle: statusBy('health-aggregator', { health: 'Progressing' }),
    cure: releaseGuarded,
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
];
