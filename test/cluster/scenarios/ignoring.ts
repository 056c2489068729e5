import type { JsonObject } from '../../../src/base/json.ts';
import type { Scenario } from '../scenario.ts';
import { createGuarded, type Operator } from './operator.ts';
import { RUNS } from './overheard.ts';
import {
  advisesNot,
  guardedRef,
  heldBy,
  owner,
  release,
  releaseGuarded,
  type Situation,
  type Step,
  situation,
} from './situation.ts';

/** What does, and what does not, keep a running controller from an object that is being deleted. */

const annotate =
  (annotations: (operator: Operator) => JsonObject): Step =>
  (world, operator) =>
    world.client.patch(guardedRef(world, operator), {
      metadata: { annotations: annotations(operator) },
    });

/** No command may undo what keeps no controller from removing its finalizer. */
const resumesNothing: Situation['expect'] = () => ({ also: advisesNot(/suspend|paused/) });

export const ignoring: readonly Scenario[] = [
  situation({
    id: 'keda-paused',
    title: 'a ScaledObject of KEDA is paused, which KEDA ignores for deletions',
    own: true,
    afterwards: annotate(() => ({ 'autoscaling.keda.sh/paused': 'true' })),
    operator: {
      ...{ group: 'keda.sh', ownGroup: false, version: 'v1alpha1', kind: 'ScaledObject' },
      ...{
        name: 'keda-operator',
        namespace: 'keda',
        finalizer: 'finalizer.keda.sh',
        manager: 'keda',
      },
    },
    ...RUNS,
    expect: resumesNothing,
  }),
  ...[
    ['paused-capital', 'paused', 'False'],
    ['paused-by-no', 'suspended', 'no'],
  ].map(([id = '', key, value = '']) =>
    situation({
      id,
      title: `the annotation \`${key}\` has the value "${value}", which is no pause`,
      afterwards: annotate(({ group }) => ({ [`${group}/${key}`]: value })),
      ...RUNS,
      expect: resumesNothing,
    }),
  ),
  situation({
    id: 'group-partly-paused',
    title: 'of two objects with the same finalizer, one is paused',
    behaviour: { tells: false, cleanUp: () => 'hangs' },
    afterwards: async (world, operator) => {
      await createGuarded(world, operator, 'db2');
      await annotate(({ group }) => ({ [`${group}/paused`]: 'true' }))(world, operator);
    },
    expect: (world, operator) => ({
      chains: [[{ ...heldBy(world, operator), count: 2 }, owner(operator, 'owner-running')]],
    }),
    cure: async (world, operator) => {
      await releaseGuarded(world, operator);
      await release(world, guardedRef(world, operator, 'db2'));
    },
  }),
];
