import { type JsonObject, numberAt } from '../../../src/base/json.ts';
import type { KubeObject, Ref } from '../client.ts';
import { customObject, customType } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import { readyPods } from '../servers/operator-process.ts';
import { containerStatus, runningStatus, unready } from '../servers/stand-in.ts';
import { waitUntil } from '../wait-until.ts';
import type { World } from '../world.ts';
import { objectFinalizer, ref } from './links.ts';
import { type Operator, operatorRules, READ, rule } from './operator.ts';
import {
  guardedRef,
  HANGS,
  heldBy,
  owner,
  release,
  type Situation,
  situation,
} from './situation.ts';

/** The controller runs and will not act. */

/** A Rack is paused, by its spec unless `pause` says more; the Widget is tied to it, or to something else. */
const pausedBeside = (
  id: string,
  title: string,
  tie: (rack: KubeObject, operator: Operator) => JsonObject,
  given: { isPart?: false; pause?: (operator: Operator) => JsonObject } = {},
): Scenario =>
  situation({
    id,
    title,
    operator: (world) => ({ rules: [rule(world.domain('example.com'), ['*'], ['*'])] }),
    behaviour: HANGS,
    afterwards: async (world, operator) => {
      const { group, manager } = operator;
      await world.createType(customType({ group, kind: 'Rack' }));
      const { apiVersion, kind, name } = rackRef(world, operator);
      const annotations = given.pause?.(operator) ?? {};
      const metadata = { finalizers: [operator.finalizer], annotations };
      const rack = customObject(apiVersion, kind, world.namespace, name, metadata);
      const spec = given.pause === undefined ? { paused: true } : {};
      const made = await world.create({ ...rack, spec }, { fieldManager: manager });
      await world.client.patch(guardedRef(world, operator), tie(made, operator));
    },
    expect: (world, operator) => {
      const rack = [
        objectFinalizer(rackRef(world, operator), operator.finalizer),
        owner(operator, 'owner-not-acting'),
      ];
      const own = given.isPart === false ? [owner(operator, 'owner-running')] : rack;
      return { chains: [[heldBy(world, operator), ...own], rack] };
    },
    cure: async (world, operator) => {
      await release(world, rackRef(world, operator));
      await release(world, guardedRef(world, operator));
    },
    beyondCommands: 'the controller hangs',
  });

const rackRef = (world: World, { group }: Operator): Ref =>
  ref(`${group}/v1`, 'Rack', world.namespace, 'rack-1');

/** Of three replicas one crashes; each has objects of its own, or one of them leads. */
const shards = (
  id: string,
  title: string,
  given: Pick<Situation, 'afterwards' | 'owner' | 'behaviour' | 'cure' | 'beyondCommands'>,
): Scenario =>
  situation({
    id,
    title,
    operator: (world) => {
      const own = operatorRules({ group: world.domain('example.com'), kind: 'Widget' });
      const rules = [...own, rule('', ['pods'], READ)];
      return { workload: 'StatefulSet', replicas: 3, rules };
    },
    ...given,
    afterwards: async (world, operator) => {
      await waitUntil('three replicas', async () => {
        return (await readyPods(world.client, operator)).length === 3;
      });
      await world.client.patchStatus(lastReplica(operator), {
        conditions: unready('Ready', 'ContainersReady'),
        containerStatuses: [
          containerStatus({ waiting: { reason: 'CrashLoopBackOff', message: 'back-off 5m0s' } }),
        ],
      });
      await world.client.waitFor(
        { apiVersion: 'apps/v1', kind: 'StatefulSet', ...place(operator) },
        'counts two replicas',
        (found) => numberAt(found, 'status', 'readyReplicas') === 2,
      );
      await given.afterwards?.(world, operator);
    },
  });

const place = ({ namespace, name }: Operator) => ({ namespace, name });

const lastReplica = ({ namespace, name }: Operator): Ref =>
  ref('v1', 'Pod', namespace, `${name}-2`);

export const notActing: Scenario[] = [
  shards('one-shard', 'the replica that has this object crashes, the two others run', {
    behaviour: {
      tells: false,
      cleanUp: async (_, client, operator) =>
        (await readyPods(client, operator)).length < 3
          ? 'it is in the shard of another'
          : undefined,
    },
    owner: {
      code: 'owner-running',
      certainty: ['likely'],
      says: [/only 2 of 3 pods are ready: the one for Widget db may not be/],
    },
    beyondCommands: 'a person has to find what makes the pod crash',
    cure: (world, operator) =>
      world.client.patchStatus(lastReplica(operator), {
        ...runningStatus(),
        containerStatuses: null,
      }),
  }),
  pausedBeside(
    'paused-sibling',
    'a Widget names the Rack that it is part of, which is paused',
    ({ metadata }) => ({ spec: { rackName: metadata.name } }),
  ),
];
