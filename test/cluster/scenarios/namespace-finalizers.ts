import { arrayAt, stringsAt } from '../../../src/base/json.ts';
import { KUBESPHERE_METADATA } from '../../stub/kubesphere.ts';
import { ApiError } from '../client.ts';
import type { Scenario } from '../scenario.ts';
import type { World } from '../world.ts';
import { namespaceFinalizer, ownerMissing, ownerUnknown, specFinalizer, stuck } from './links.ts';

/** The namespace's own two lists of finalizers; no condition covers them. */

function ownFinalizer(
  id: string,
  title: string,
  finalizer: string,
  owner: typeof ownerMissing,
): Scenario {
  return {
    id,
    title,
    setUp: (world) => world.createNamespace(undefined, { finalizers: [finalizer] }).then(() => {}),
    settle: controllerIsDone,
    expect: (world) =>
      stuck([
        namespaceFinalizer(world.namespaceRef, finalizer),
        owner(world.namespaceRef, finalizer),
      ]),
  };
}

const s34: Scenario = ownFinalizer(
  'S34',
  'a finalizer of Rancher on the namespace, and no Rancher',
  'controller.cattle.io/namespace-auth',
  ownerMissing,
);

function extraSpecFinalizer(id: string, title: string, finalizer: string): Scenario {
  return {
    id,
    title,
    setUp: async (world) => {
      await world.createNamespace();
      await addSpecFinalizers(world, [finalizer]);
    },
    settle: hasLostKubernetes,
    expect: (world) =>
      stuck([
        specFinalizer(world.namespaceRef, finalizer),
        ownerUnknown(world.namespaceRef, finalizer, { advises: [/\/finalize/] }),
      ]),
  };
}

const s37a = extraSpecFinalizer(
  'S37a',
  'spec.finalizers with openshift.io/origin besides kubernetes',
  'openshift.io/origin',
);

export async function createKubeSphereNamespace(world: World): Promise<void> {
  await world.createNamespace(undefined, KUBESPHERE_METADATA);
}

/** Only /finalize can write this list, and only an Active namespace can get new entries. */
export async function addSpecFinalizers(
  world: World,
  more: readonly string[],
  manager = 'kubectl',
): Promise<void> {
  const namespace = await world.client.get(world.namespaceRef);
  const path = await world.client.pathOf(world.namespaceRef, 'finalize');
  const finalizers = [...stringsAt(namespace, 'spec', 'finalizers'), ...more];
  const answer = await world.client.call('PUT', `${path}?fieldManager=${manager}`, {
    ...namespace,
    spec: { finalizers },
  });
  if (answer.status !== 200) throw new ApiError('PUT /finalize', answer);
}

/** Its controller has dropped its own entry; others are left. */
export function hasLostKubernetes(world: World): Promise<unknown> {
  return world.namespaceIs('has lost "kubernetes"', (namespace) => {
    const left = stringsAt(namespace, 'spec', 'finalizers');
    return left.length > 0 && !left.includes('kubernetes');
  });
}

/** Its part is done when it has taken "kubernetes" out: the conditions are green by then. */
export function controllerIsDone(world: World): Promise<unknown> {
  return world.namespaceIs(
    'has no spec.finalizers left',
    (namespace) => arrayAt(namespace, 'spec', 'finalizers').length === 0,
  );
}

export const namespaceFinalizers = [s34, s37a];
