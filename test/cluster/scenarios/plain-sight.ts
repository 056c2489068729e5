import type { JsonObject } from '../../../src/base/json.ts';
import type { Ref } from '../client.ts';
import { customType, secret } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import { laterSecond } from '../wait-until.ts';
import type { World } from '../world.ts';
import { objectFinalizer, ref } from './links.ts';
import {
  createGuarded,
  NAMELESS,
  type Operator,
  type OperatorOptions,
  operatorRules,
} from './operator.ts';
import {
  GUARDED,
  guardedRef,
  HANGS,
  heldBy,
  owner,
  release,
  releaseGuarded,
  type Situation,
  type Step,
  settledByFinalizer,
  situation,
} from './situation.ts';

/** What the operator writes into the status after the deletion has begun. */
const reports =
  (status: (world: World) => JsonObject | Promise<JsonObject>): Step =>
  async (world, operator) => {
    await settledByFinalizer(world);
    const fieldManager = operator.manager;
    await world.client.patchStatus(guardedRef(world, operator), await status(world), {
      fieldManager,
    });
  };

/** The reason, or whose the finalizer is, stands in plain sight, but in words that no convention gives. */

/** A product under its own names, whose controller writes as any other does. */
const product = (group: string, kind: string, more: OperatorOptions = {}): OperatorOptions => ({
  ...{ group, kind, ownGroup: false, version: 'v1alpha1', type: { metadata: {} }, ...NAMELESS },
  ...more,
});

const inTheField = (told: Situation): Scenario =>
  situation({ own: true, behaviour: HANGS, cure: releaseGuarded, ...told });

const condition = (type: string, status: string, reason: string, message: string): JsonObject => ({
  conditions: [
    {
      ...{ type, status, reason, message },
      lastTransitionTime: new Date().toISOString().replace(/\.\d+/, ''),
    },
  ],
});

/** So late that whole seconds show it to be after the deletion. */
const later =
  (step: Step): Step =>
  async (world, operator) => {
    await settledByFinalizer(world);
    await laterSecond();
    await step(world, operator);
  };

const notReady = (reason: string, message: string) =>
  later(reports(() => condition('Ready', 'False', reason, message)));

const createSecret =
  (name: string): Step =>
  (world) =>
    world.create(secret(world.namespace, name));

/** These objects are freed besides the usual one. */
const releasing =
  (...others: ((world: World, operator: Operator) => Ref)[]): Step =>
  async (world, operator) => {
    await releaseGuarded(world, operator);
    for (const other of others) await release(world, other(world, operator));
  };

const PULSAR = 'resource.streamnative.io';
const topicRef = ({ namespace }: World) =>
  ref(`${PULSAR}/v1alpha1`, 'PulsarTopic', namespace, 'orders');

const reasons: Scenario[] = [
  inTheField({
    id: 'token-of-connection',
    title: 'the connection of a topic needs a Secret that was deleted with the namespace',
    operator: product(PULSAR, 'PulsarConnection', {
      name: 'pulsar-resources-operator',
      finalizer: 'cloud.streamnative.io/finalizer',
      rules: ['PulsarConnection', 'PulsarTopic'].flatMap((kind) =>
        operatorRules({ group: PULSAR, kind }),
      ),
    }),
    spec: { authentication: { token: { secretRef: { name: 'pulsar-token', key: 'TOKEN' } } } },
    before: createSecret('pulsar-token'),
    afterwards: async (world, operator) => {
      const [group, kind] = [PULSAR, 'PulsarTopic'];
      await world.createType(customType({ group, kind, versions: [operator.version] }));
      const spec = { connectionRef: { name: GUARDED } };
      const topic = { ...operator, kind };
      await createGuarded(world, topic, 'orders', world.namespace, spec);
      const ready = condition('Ready', 'True', 'Reconciled', '');
      const { manager: fieldManager } = operator;
      await world.client.patchStatus(topicRef(world), ready, { fieldManager });
    },
    settle: notReady('AuthenticationError', 'secrets "pulsar-token" not found'),
    expect: (world, operator) => ({
      chains: [
        [
          heldBy(world, operator),
          owner(operator, 'owner-failing', {
            ...{
              certainty: ['likely'],
              says: [/can never succeed: .*Secret pulsar-token does not/],
            },
            advises: [/^Let this gate remove .* from the 2 objects/m],
          }),
        ],
        [
          objectFinalizer(topicRef(world), operator.finalizer),
          // Nothing was written to the topic since the deletion.
          owner(operator, 'owner-running', { certainty: ['likely'] }),
        ],
      ],
      deadlock: true,
    }),
    cure: releasing(topicRef),
  }),
];

export const plainSight = [...reasons];
