import type { Certainty } from '../../../src/model/finding.ts';
import { configMap, pod, secret, service } from '../objects.ts';
import type { Expectation, Scenario } from '../scenario.ts';
import type { World } from '../world.ts';
import { deploymentRef, objectFinalizer, ownerMissing, podRef, ref, stuck } from './links.ts';
import { createGuarded, install, type Operator, operatorOf, start } from './operator.ts';
import { settledWithPod } from './pods.ts';
import { GUARDED, heldBy, nobodyLeft, settledByFinalizer, situation } from './situation.ts';

const s3 = situation({
  id: 'S3',
  title: 'the Deployment of the operator is scaled to zero',
  operator: { replicas: 0 },
  owner: 'owner-scaled-to-zero',
});

/** Only the cluster-scoped part of the operator outlives the namespace. */
const s4: Scenario = {
  id: 'S4',
  title: 'the operator was in the namespace and went first; its object is left',
  namespace: 'preview-pr-42',
  setUp: (world) => setUpPreview(world, 'cluster').then(() => {}),
  settle: settledByFinalizer,
  expect: (world) => {
    const operator = operatorOf(world);
    const chain = [heldBy(world, operator), nobodyLeft(operator)];
    return { outcome: 'stuck', chains: [chain], deadlock: true };
  },
};

/** Nothing of the operator outlives the namespace, but the gate saw it before it went. */
const s4Watched: Scenario = {
  id: 'S4-watched',
  title: 'the same, with the gate there from the beginning',
  own: true, // a namesake that runs elsewhere may act by other means than its account
  namespace: 'preview-pr-42',
  identity: 'teardown-gate',
  setUp: (world) => setUpPreview(world, 'namespace').then(() => {}),
  delete: false,
  inputs: { delete: 'true' },
  expect: (world) => departed(world, 'proven'),
};

function departed(world: World, certainty: Certainty, ...says: RegExp[]): Expectation {
  const operator = operatorOf(world);
  const { name, finalizer } = operator;
  const gone = ownerMissing(deploymentRef(world.namespace, name), finalizer, {
    certainty: [certainty],
    says,
    advises: [
      /^Install .* in another namespace, with a ClusterRoleBinding: a terminating namespace/m,
    ],
  });
  return {
    ...stuck([heldBy(world, operator), gone]),
    deadlock: true,
    mutations: [`delete namespaces/${world.namespace}`],
  };
}

/** The operator guards the pod of its object too: everything else queues up behind that pod. */
const s4Queued: Scenario = {
  ...s4,
  id: 'S4-queued',
  title: 'the same, and its finalizer is on a pod too: 40 other objects are queued',
  own: true, // programs of the same name in other scenarios could have been the owner
  inputs: { timeout: '15s' }, // the grace period of the pod has to end
  setUp: async (world) => {
    const operator = await setUpPreview(world, 'cluster');
    const guarded = podRef(world.namespace, 'db-0');
    await world.create(pod(world.namespace, guarded.name));
    const metadata = { finalizers: [operator.finalizer] };
    await world.client.patch(guarded, { metadata }, { fieldManager: operator.name });
    // A script that deletes the parts before the namespace, in the wrong order: the operator first.
    const { group, kind } = operator;
    const operatorWorkload = deploymentRef(world.namespace, operator.name);
    await world.client.delete(operatorWorkload, { propagationPolicy: 'Foreground' });
    await world.gone(operatorWorkload);
    await world.client.delete(ref(`${group}/v1`, kind, world.namespace, GUARDED));
  },
  settle: settledWithPod,
  expect: async (world) => {
    const operator = operatorOf(world);
    const { finalizer } = operator;
    const guarded = podRef(world.namespace, 'db-0');
    const chains = [
      [heldBy(world, operator), nobodyLeft(operator)],
      [objectFinalizer(guarded, finalizer), ownerMissing(guarded, finalizer)],
    ];
    const expected = { outcome: 'stuck' as const, chains, deadlock: true };
    if (!(await world.deletesPodsFirst())) return expected;
    return { ...expected, queued: { kinds: ['ConfigMap', 'Secret', 'Service', 'ServiceAccount'] } };
  },
};

/** A preview environment: an operator, its object, and 40 ordinary things. */
async function setUpPreview(world: World, scope: 'namespace' | 'cluster'): Promise<Operator> {
  const { namespace } = world;
  await world.createNamespace(undefined, { labels: { 'app.kubernetes.io/part-of': 'preview' } });
  const operator = await install(world, { scope });
  await start(world, operator, { hangs: true });
  await createGuarded(world, operator, GUARDED);
  const names = Array.from({ length: 12 }, (_, index) => `service-${index + 1}`);
  await world.createAll(
    names.flatMap((name) => [
      configMap(namespace, `${name}-settings`),
      secret(namespace, `${name}-credentials`),
      service(namespace, name, { selector: { app: name } }),
    ]),
  );
  return operator;
}

export const owners = [s3, s4, s4Watched, s4Queued];
