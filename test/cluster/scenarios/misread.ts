import type { JsonObject } from '../../../src/base/json.ts';
import { configMap, RBAC } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import { ref } from './links.ts';
import {
  createGuarded,
  install,
  NAMELESS,
  operatorRules,
  READ,
  rule,
  runPods,
} from './operator.ts';
import {
  asleepOrUnknown,
  GUARDED,
  guardedRef,
  HANGS,
  type Step,
  settledByFinalizer,
  situation,
  writesStatus,
} from './situation.ts';

/** Signs of a failure, of a permission or of a scope that are easily misread. */

/** Statuses as products write them while a deletion fails, and the words that must be quoted. */
const FAILURES: Record<string, [status: JsonObject, says: RegExp]> = {
  recoverable: [
    {
      conditions: [
        {
          type: 'ACK.Recoverable',
          status: 'True',
          message: 'operation error S3: DeleteBucket, StatusCode: 409, BucketNotEmpty',
        },
      ],
    },
    /BucketNotEmpty/,
  ],
  'failure-message': [
    {
      phase: 'Failed',
      failureReason: 'DeleteError',
      failureMessage: 'failed to terminate instance i-1: OptInRequired',
    },
    /OptInRequired/,
  ],
};

const says =
  (status: JsonObject): Step =>
  async (world, operator) => {
    await settledByFinalizer(world);
    await writesStatus(status, operator.manager)(world, operator);
  };

const waitsFor = (message: string): JsonObject => ({
  conditions: [{ type: 'Ready', status: 'False', reason: 'InUse', message }],
});

export const misread: Scenario[] = [
  ...Object.entries(FAILURES).map(([name, [status, words]]) =>
    situation({
      id: `told-by-${name}`,
      title: `the status tells the failure by ${name}`,
      behaviour: HANGS,
      settle: says(status),
      owner: { code: 'owner-failing', says: [words] },
    }),
  ),
  situation({
    id: 'rights-by-aggregation',
    title: 'its permissions come by an aggregated ClusterRole',
    operator: (world) => ({ role: world.name('widget-aggregate') }),
    before: async (world, operator) => {
      const labels = { [`rbac.${operator.group}/part`]: 'true' };
      const name = world.name('widget-aggregate');
      const whole = { apiVersion: `${RBAC}/v1`, kind: 'ClusterRole', name };
      await world.create({
        ...{ apiVersion: whole.apiVersion, kind: whole.kind, metadata: { name } },
        aggregationRule: { clusterRoleSelectors: [{ matchLabels: labels }] },
        rules: [],
      });
      await world.create({
        ...{ apiVersion: whole.apiVersion, kind: whole.kind },
        metadata: { name: `${name}-part`, labels },
        rules: operatorRules(operator),
      });
      await world.client.waitFor(
        whole,
        'has rules',
        (found) => JSON.stringify(found?.['rules'] ?? []) !== '[]',
      );
    },
    owner: 'owner-running',
  }),
  situation({
    id: 'status-of-everything',
    title: 'a reporter may write only the status and finalizers subresources of every type',
    operator: { ...NAMELESS, replicas: 0 },
    bystanders: [
      {
        name: 'status-reporter',
        namespace: 'reporting',
        rules: [
          rule('*', ['*/status', '*/finalizers'], ['update', 'patch']),
          rule('*', ['*'], READ),
        ],
      },
    ],
    afterwards: writesStatus({ phase: 'Healthy' }, 'status-reporter'),
    expect: asleepOrUnknown,
  }),
  situation({
    id: 'scope-in-a-config-map',
    title: 'two installations take their namespaces from ConfigMaps, and the right one sleeps',
    operator: { namespace: 'team-a', replicas: 0, ...scopeByConfigMap() },
    bystanders: [{ name: 'widget-operator', namespace: 'team-b', ...scopeByConfigMap() }],
    afterwards: async (world) => {
      for (const [team, watched] of [
        ['team-a', world.namespace],
        ['team-b', 'elsewhere'],
      ] as const) {
        const data = { WATCH_NAMESPACE: watched };
        await world.create(configMap(world.name(team), 'widget-scope', {}, data));
      }
    },
    expect: asleepOrUnknown,
  }),
  situation({
    id: 'waits-in-a-circle',
    title: 'two objects of two running operators wait for each other',
    behaviour: HANGS,
    beyondCommands:
      'both operators hang here: the second does not act when the first object is gone',
    afterwards: async (world) => {
      const namespace = world.name('gadget-system');
      await world.ensureNamespace(namespace);
      const other = await install(world, { kind: 'Gadget', namespace, scope: 'cluster' });
      await runPods(world, other);
      await createGuarded(world, other, 'cache');
    },
    settle: async (world, operator) => {
      await settledByFinalizer(world);
      const gadget = ref(`${operator.group}/v1`, 'Gadget', world.namespace, 'cache');
      await world.terminating(gadget);
      const { client, namespace } = world;
      const first = waitsFor(`waiting for Gadget ${namespace}/cache to be deleted`);
      await client.patchStatus(guardedRef(world, operator), first, {
        fieldManager: operator.manager,
      });
      const second = waitsFor(`still in use by Widget ${namespace}/${GUARDED}`);
      await client.patchStatus(gadget, second, { fieldManager: 'gadget-operator' });
    },
    expect: (world) => ({
      chains: 'any',
      deadlock: true,
      never: ['widget', 'gadget'].map((name) => ({
        kind: 'Deployment',
        namespace: world.name(`${name}-system`),
        name: `${name}-operator`,
      })),
    }),
    cure: async (world, operator) => {
      const { client, namespace } = world;
      for (const held of [
        guardedRef(world, operator),
        ref(`${operator.group}/v1`, 'Gadget', namespace, 'cache'),
      ]) {
        await client.patch(held, { metadata: { finalizers: null } });
      }
    },
  }),
];

function scopeByConfigMap() {
  return { container: { envFrom: [{ configMapRef: { name: 'widget-scope' } }] } };
}
