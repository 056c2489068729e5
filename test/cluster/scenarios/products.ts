import { customObject, customType, service, typeRef } from '../objects.ts';
import type { Link, Scenario } from '../scenario.ts';
import type { World } from '../world.ts';
import { FINALIZERS, objectFinalizer, ownerMissing, ownerUnknown, ref, stuck } from './links.ts';

/** Finalizers of well-known products, without the product. */

const LOAD_BALANCER = 'service.kubernetes.io/load-balancer-cleanup';

const s31: Scenario = {
  id: 'S31',
  title: 'a Service with a load balancer, and no cloud controller',
  setUp: async (world) => {
    await world.createNamespace();
    await world.create(
      {
        ...service(world.namespace, 'web', { type: 'LoadBalancer' }),
        metadata: { namespace: world.namespace, name: 'web', finalizers: [LOAD_BALANCER] },
      },
      { fieldManager: 'cloud-controller-manager' },
    );
  },
  settle: (world) => world.settled({ [FINALIZERS]: ['True', /load-balancer-cleanup/] }),
  expect: (world) => {
    const subject = ref('v1', 'Service', world.namespace, 'web');
    return stuck([
      objectFinalizer(subject, LOAD_BALANCER),
      ownerMissing(subject, LOAD_BALANCER, { says: [/cloud/], advises: [/load balancer/i] }),
    ]);
  },
};

interface Leftover {
  group: string;
  version: string;
  kind: string;
  name: string;
  finalizer: string;
  product: RegExp;
  owner: 'missing' | 'unknown';
}

const LEFTOVERS: readonly Leftover[] = [
  {
    group: 'networking.k8s.io',
    version: 'v1',
    kind: 'Ingress',
    name: 'web',
    finalizer: 'ingress.k8s.aws/resources',
    product: /aws-load-balancer-controller|AWS Load Balancer/i,
    owner: 'missing',
  },
  {
    group: 'networking.gke.io',
    version: 'v1beta1',
    kind: 'ServiceNetworkEndpointGroup',
    name: 'k8s1-web',
    finalizer: 'networking.gke.io/neg-finalizer',
    product: /GKE/,
    owner: 'unknown',
  },
  {
    group: 'elbv2.k8s.aws',
    version: 'v1beta1',
    kind: 'TargetGroupBinding',
    name: 'k8s-web',
    finalizer: 'elbv2.k8s.aws/resources',
    product: /aws-load-balancer-controller|AWS Load Balancer/i,
    owner: 'missing',
  },
];

const s32: Scenario = {
  id: 'S32',
  title: 'objects of three load balancer products whose controllers were uninstalled',
  own: true, // the products' own API groups: there can be one of each
  setUp: async (world) => {
    await world.createNamespace();
    for (const { group, version, kind, name, finalizer } of LEFTOVERS) {
      if (kind !== 'Ingress') {
        await world.createType(customType({ group, kind, versions: [version] }));
      }
      const object = customObject(`${group}/${version}`, kind, world.namespace, name, {
        finalizers: [finalizer],
      });
      const backend = { service: { name: 'web', port: { number: 80 } } };
      await world.create(
        kind === 'Ingress' ? { ...object, spec: { defaultBackend: backend } } : object,
        { fieldManager: 'controller' },
      );
    }
  },
  settle: (world) =>
    world.settled({ [FINALIZERS]: ['True', /elbv2.*ingress\.k8s\.aws.*networking\.gke\.io/] }),
  expect: (world) => ({ outcome: 'stuck', chains: LEFTOVERS.map((one) => chainOf(world, one)) }),
};

function chainOf(world: World, leftover: Leftover): Link[] {
  const { group, version, kind, name, finalizer, product } = leftover;
  const subject = ref(`${group}/${version}`, kind, world.namespace, name);
  const words = { says: [product] };
  const definition = kind === 'Ingress' ? subject : typeRef(group, kind);
  return [
    objectFinalizer(subject, finalizer),
    leftover.owner === 'missing'
      ? ownerMissing(definition, finalizer, words)
      : ownerUnknown(subject, finalizer, words),
  ];
}

export const products = [s31, s32];
