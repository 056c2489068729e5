import type { JsonObject } from '../../../src/base/json.ts';
import type { Scenario } from '../scenario.ts';
import type { Operator } from './operator.ts';
import { guardedRef, HANGS, type Step, settledByFinalizer, situation } from './situation.ts';

/** Beside what counts there is something similar that does not. */

/** Another program, or the same with the same name, with these arguments. */
const withArgs = (name: string, ...args: string[]): { container: JsonObject } => ({
  container: { name, image: `registry.example/${name}:1`, args },
});

/** The operator writes the status, after the deletion. */
const reports =
  (status: (namespace: string) => JsonObject, times = 1): Step =>
  async (world, operator) => {
    await settledByFinalizer(world);
    for (let time = 0; time < times; time++) {
      await world.client.patchStatus(guardedRef(world, operator), status(world.namespace), {
        fieldManager: operator.manager,
      });
    }
  };

const now = (): string => new Date().toISOString();

/** Annotations of its own domain that look like a pause. */
const NO_PAUSES: Step = (world, operator: Operator) =>
  world.client.patch(guardedRef(world, operator), {
    metadata: {
      annotations: {
        [`${operator.group}/reconcile`]: 'enabled',
        [`${operator.group}/backup`]: 'false',
      },
    },
  });

export const decoys: Scenario[] = [
  situation({
    id: 'other-classes',
    title:
      'operators with arguments for another class, other labels of namespaces, and another type',
    spec: { widgetClass: 'green' },
    operator: withArgs('widget-operator', '--widget-class=green,red'),
    behaviour: HANGS,
    bystanders: [
      { name: 'blue-operator', namespace: 'blue', ...withArgs('blue', '--widget-class=blue') },
      { name: 'disk-operator', namespace: 'disk', ...withArgs('disk', '--storage-class=fast') },
      {
        name: 'team-operator',
        namespace: 'team',
        ...withArgs('team', '--namespace-selector=team=a'),
      },
    ],
    owner: 'owner-running',
  }),
  situation({
    id: 'harmless-status',
    title:
      'a sentence of the status tells of a failed backup, a condition is of an older generation',
    behaviour: HANGS,
    afterwards: NO_PAUSES,
    settle: reports(() => ({
      summary: 'the nightly backup failed and is repeated tomorrow',
      conditions: [
        {
          type: 'Ready',
          status: 'False',
          reason: 'SyncError',
          message: 'cannot resize the volume',
          observedGeneration: 1,
          lastTransitionTime: '2026-01-01T00:00:00Z',
        },
      ],
    })),
    owner: 'owner-running',
  }),
  situation({
    id: 'status-of-older-generation',
    title: 'a condition has changed since the deletion, with the generation from before it',
    behaviour: HANGS,
    afterwards: NO_PAUSES,
    settle: reports(() => ({
      conditions: [
        {
          type: 'Ready',
          status: 'False',
          reason: 'Failed',
          message: 'cannot delete the volume: AccessDenied',
          observedGeneration: 1,
          lastTransitionTime: now(),
        },
      ],
    })),
    owner: { code: 'owner-failing', says: [/AccessDenied/] },
  }),
];
