import { pod } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import { startStandIn } from '../servers/stand-in.ts';
import { podRef, stuck } from './links.ts';
import { settledOverdue } from './pods-and-nodes.ts';
import { createEvent } from './traces.ts';

const words: Scenario[] = [
  {
    id: 'unmount-fails',
    versions: ['1.36.3'], // before, Events do not wait until the pods have gone
    title: 'an overdue pod on a ready node, of which the kubelet says what it cannot unmount',
    setUp: async (world) => {
      const node = world.name('node-ready');
      const about = podRef(world.namespace, 'web-0');
      await world.createNamespace();
      await startStandIn(world, { node, namespaces: [world.namespace], confirms: false });
      await world.create(pod(world.namespace, about.name, { nodeName: node, graceSeconds: 1 }));
      await world.client.delete(about);
      await world.terminating(about);
      await createEvent(world, {
        about,
        component: 'kubelet',
        instance: node,
        reason: 'FailedUnmount',
        note: 'UnmountVolume.TearDown failed for volume "data": device is busy',
      });
      // A warning from before the deletion, and no warning.
      await createEvent(world, {
        ...{ about, component: 'attachdetach-controller', instance: 'controller-manager' },
        ...{ reason: 'FailedAttachVolume', note: 'Multi-Attach error for volume "data"' },
        agoSeconds: 600,
      });
      await createEvent(world, {
        ...{ about, component: 'taint-eviction-controller', instance: 'controller-manager' },
        ...{ reason: 'TaintManagerEviction', note: 'Cancelling deletion of Pod', type: 'Normal' },
      });
    },
    settle: settledOverdue,
    expect: (world) =>
      stuck([
        {
          code: 'pod-not-confirmed',
          subject: podRef(world.namespace, 'web-0'),
          says: [/device is busy/],
        },
      ]),
    cure: (world) =>
      world.client.delete(podRef(world.namespace, 'web-0'), { gracePeriodSeconds: 0 }),
  },
];

export const newcomers = [...words];
