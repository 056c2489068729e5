import { type JsonObject, numberAt, stringAt, valueAt } from '../../../src/base/json.ts';
import type { KubeObject, Ref } from '../client.ts';
import { customObject, customType, typeRef } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import { readyPods } from '../servers/operator-process.ts';
import { containerStatus, runningStatus, unready } from '../servers/stand-in.ts';
import { laterSecond, waitUntil } from '../wait-until.ts';
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
  settledByFinalizer,
  situation,
} from './situation.ts';
import { createLease } from './traces.ts';

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

/** The operator obeys a label or a field of its object, and acts once a person has changed it. */
const obeying = (
  id: string,
  title: string,
  given: { spec?: JsonObject; label?: string; says: RegExp; acts: (object: KubeObject) => boolean },
): Scenario =>
  situation({
    id,
    title,
    behaviour: { tells: false, cleanUp: (object) => (given.acts(object) ? undefined : 'ignored') },
    ...(given.spec && { spec: given.spec }),
    afterwards: async (world, operator) => {
      if (given.label === undefined) return;
      const labels = { [`${operator.group}/${given.label}`]: 'true' };
      await world.client.patch(guardedRef(world, operator), { metadata: { labels } });
    },
    owner: { code: 'owner-not-acting', says: [given.says], advises: [/Let its controller act on/] },
    cure: async (world, operator) => release(world, guardedRef(world, operator)),
  });

const rackRef = (world: World, { group }: Operator): Ref =>
  ref(`${group}/v1`, 'Rack', world.namespace, 'rack-1');

/** The operator hangs, and its CRD is deleted before the object or after it. */
const typeDeleted = (id: string, title: string, isEarlier: boolean): Scenario => {
  const deleteType = (world: World, { group }: Operator): Promise<void> =>
    world.client.delete(typeRef(group, 'Widget'));
  return situation({
    id,
    title,
    behaviour: HANGS,
    ...(isEarlier && { afterwards: deleteType }),
    settle: async (world, operator) => {
      await settledByFinalizer(world);
      if (isEarlier) return;
      await laterSecond();
      await deleteType(world, operator);
    },
    expect: (world, operator) => ({
      chains: [
        [
          heldBy(world, operator),
          owner(operator, isEarlier ? 'owner-not-acting' : 'owner-running'),
        ],
      ],
      contributing: [{ code: 'crd-terminating', subject: typeRef(operator.group, 'Widget') }],
    }),
  });
};

/** The operator is an agent on one node; the object names that node, or one that is not there any more. */
const onNode = (
  id: string,
  title: string,
  isLost: boolean,
  naming: (node: string) => JsonObject = (nodeID) => ({ nodeID }),
): Scenario =>
  situation({
    id,
    title,
    operator: { workload: 'DaemonSet' },
    behaviour: { tells: false, cleanUp: () => 'is on another node' },
    afterwards: (world, operator) =>
      world.client.patch(guardedRef(world, operator), {
        spec: naming(world.name(isLost ? 'node-2' : 'node-1')),
      }),
    owner: isLost
      ? {
          code: 'owner-not-ready',
          certainty: ['likely'], // the name may be none of a node
          says: [/may not act, because it has no pod on node .*node-2/],
          advises: [/^If node .*node-2\S* is gone for good: remove/m],
        }
      : 'owner-running',
    beyondCommands: 'the stand-in of the operator cleans up nothing',
  });

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
      says: [/only 2 of 3 pods are ready: the one for Widget db may not be/, /CrashLoopBackOff/],
      advises: [/Fix what keeps Pod widget-operator-2/],
    },
    beyondCommands: 'a person has to find what makes the pod crash',
    cure: (world, operator) =>
      world.client.patchStatus(lastReplica(operator), {
        ...runningStatus(),
        containerStatuses: null,
      }),
  }),
  shards('one-replica', 'a replica crashes, and one of the others leads and hangs', {
    behaviour: { tells: false, cleanUp: () => 'hangs' },
    afterwards: (world, { namespace, name }) =>
      createLease(world, { namespace, name, holder: `${name}-0_4f1c` }),
    owner: {
      code: 'owner-running',
      certainty: ['proven'],
      says: [/runs, but nothing that was read shows why/],
    },
    beyondCommands: 'the stand-in of the operator hangs for ever',
  }),
  onNode(
    'agent-lost',
    'the object names a node on which the operator, a DaemonSet, has no pod',
    true,
  ),
  onNode(
    'agent-lost-below',
    'the same, and the field is called node, in a part of the object',
    true,
    (node) => ({ current: { node } }),
  ),
  onNode(
    'agent-there',
    'the object names the node on which the operator, a DaemonSet, hangs',
    false,
  ),
  pausedBeside(
    'paused-sibling',
    'a Widget names the Rack that it is part of, which is paused',
    ({ metadata }) => ({ spec: { rackName: metadata.name } }),
  ),
  pausedBeside(
    'paused-sibling-namesake',
    'a Widget names something else of the name of a paused Rack',
    ({ metadata }) => ({ spec: { shelfName: metadata.name } }),
    { isPart: false },
  ),
  pausedBeside(
    'paused-referred',
    'a Widget refers to its Rack, whose annotation for a pause has no value',
    ({ metadata }) => ({ spec: { rackRef: { name: metadata.name } } }),
    { pause: ({ group }) => ({ [`${group}/paused`]: '' }) },
  ),
  pausedBeside(
    'paused-labelled',
    'a label of a Widget names its Rack, which an annotation in other words pauses',
    ({ metadata }, { group }) => ({
      metadata: { labels: { [`${group}/rack-name`]: metadata.name } },
    }),
    { pause: ({ group }) => ({ [`${group}/reconcile-pause`]: 'true' }) },
  ),
  obeying('ignored-by-label', 'a label of the object tells its operator to ignore it', {
    label: 'ignore',
    says: /may be configured to ignore Widget db: label .*\/ignore=true/,
    acts: ({ metadata }) => Object.keys((metadata['labels'] ?? {}) as JsonObject).length === 0,
  }),
  obeying('unmanaged', 'the object says that its operator does not manage it', {
    spec: { managementState: 'Unmanaged' },
    says: /spec\.managementState: Unmanaged/,
    acts: (object) => stringAt(object, 'spec', 'managementState') === 'Managed',
  }),
  obeying('protected', 'the object is protected from its deletion by a field', {
    spec: { deletionProtection: true },
    says: /spec\.deletionProtection: true/,
    acts: (object) => valueAt(object, 'spec', 'deletionProtection') === false,
  }),
  situation({
    id: 'lease-of-another',
    title: 'a pod of another workload with the same account holds the Lease of the operator',
    bystanders: [{ name: 'widget-operator-debug', account: 'widget-operator' }],
    behaviour: HANGS,
    afterwards: async (world, { namespace, name }) => {
      const [pod] = (await world.client.list('v1', 'Pod', namespace)).filter(({ metadata }) =>
        metadata.name.startsWith(`${name}-debug-`),
      );
      await createLease(world, { namespace, name, holder: `${pod?.metadata.name}_77aa` });
    },
    owner: { code: 'owner-running', certainty: ['likely'], says: [/may not lead/] },
  }),
  situation({
    id: 'selector-of-its-own',
    title:
      'the operator, with 0 replicas, selects its own Secrets by a label that the object lacks',
    operator: { replicas: 0, container: { args: ['--label-selector=app=widget-operator'] } },
    owner: 'owner-scaled-to-zero',
  }),
  situation({
    id: 'class-of-its-own',
    title: 'the operator serves one class; whether the object is of that class is not known',
    operator: { container: { args: ['--widget-class=gold'] } },
    behaviour: HANGS,
    owner: { code: 'owner-running', certainty: ['likely'], says: [/--widget-class=gold/] },
  }),
  situation({
    id: 'class-of-storage',
    title: 'the operator has a storage class for what it makes; the object names another one',
    operator: { container: { args: ['--storage-class=gold'] } },
    spec: { storageClass: 'silver', storageClassName: 'silver' },
    behaviour: HANGS,
    owner: 'owner-running',
  }),
  typeDeleted(
    'type-deleted-before',
    'the type was deleted, and with it the object; its operator does nothing',
    true,
  ),
  typeDeleted(
    'type-deleted-after',
    'the type was deleted after the object; its operator hangs',
    false,
  ),
];
