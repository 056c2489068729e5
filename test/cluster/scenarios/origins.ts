import { customObject } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import { FULL, NAMELESS, rule } from './operator.ts';
import {
  asleepOrUnknown,
  either,
  GUARDED,
  guardedRef,
  HANGS,
  nobodyKnown,
  owner,
  release,
  releaseGuarded,
  type Situation,
  type Step,
  situation,
} from './situation.ts';

/** The operator itself creates the object, together with the finalizer. */
const createdByOperator: Step = async (world, operator) => {
  const held = guardedRef(world, operator);
  await world.client.delete(held);
  await release(world, held);
  await world.gone(held);
  const object = customObject(held.apiVersion, held.kind, world.namespace, GUARDED);
  const metadata = {
    namespace: world.namespace,
    name: GUARDED,
    finalizers: [operator.finalizer],
  };
  await world.create({ ...object, metadata }, { fieldManager: operator.manager });
};

/** It is there, in this state, or nobody knows whose the finalizer is; it is not missing. */
const thereOr = (...codes: Parameters<typeof owner>[1][]): NonNullable<Situation['expect']> => {
  const ends = codes.map(
    (code) => (_: unknown, operator: Parameters<Step>[1]) => owner(operator, code),
  );
  return either(...ends, nobodyKnown);
};

const CONFIG_MAPS = ['get', 'list', 'create', 'update', 'patch'];

/** Owners that leave few traces, and could be mistaken for missing or for others. */
export const origins: readonly Scenario[] = [
  situation({
    id: 'own-config-maps',
    title: 'an operator made its own ConfigMap with a finalizer, may not watch, and has 0 replicas',
    operator: (world) => ({
      ...{ group: '', ownGroup: false, kind: 'ConfigMap', type: false, name: 'settings-operator' },
      finalizer: `${world.domain('settings.example.com')}/cleanup`,
      ...{ rules: [rule('', ['configmaps'], CONFIG_MAPS)], replicas: 0 },
    }),
    afterwards: createdByOperator,
    expect: asleepOrUnknown,
    cure: releaseGuarded,
  }),
  situation({
    id: 'annotates-only',
    title:
      'an owner with 0 replicas has written nothing but an annotation; its finalizer is by "manager"',
    operator: { replicas: 0, ...NAMELESS, metadata: { labels: {} } },
    afterwards: (world, operator) =>
      world.client.patch(
        guardedRef(world, operator),
        { metadata: { annotations: { 'example.com/state': 'ready' } } },
        { fieldManager: operator.name },
      ),
    expect: thereOr('owner-scaled-to-zero'),
    cure: releaseGuarded,
  }),
  situation({
    id: 'cron-job-patches',
    title: 'the owner is a suspended CronJob that lists and patches, and does not watch',
    operator: { workload: 'CronJob', replicas: 0, verbs: ['get', 'list', 'patch'] },
    expect: thereOr('owner-scaled-to-zero'),
    cure: releaseGuarded,
  }),
  situation({
    id: 'namesake-of-product',
    title: 'the owner is named like a well-known product and serves another API group',
    operator: { name: 'cert-manager', verbs: FULL },
    owner: 'owner-running',
  }),
  situation({
    id: 'two-classes',
    title: 'two installations of one program reconcile different classes, and one has 0 replicas',
    operator: { container: { args: ['--widget-class=blue'] } },
    behaviour: HANGS,
    bystanders: [
      {
        ...{ name: 'widget-operator-green', manager: 'widget-operator', replicas: 0 },
        container: { args: ['--widget-class=green'] },
      },
    ],
    owner: 'owner-unknown',
    cure: releaseGuarded,
  }),
];
