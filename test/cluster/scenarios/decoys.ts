import type { JsonObject } from '../../../src/base/json.ts';
import type { Scenario } from '../scenario.ts';
import { FULL, type Operator, READ, rule } from './operator.ts';
import {
  GUARDED,
  guardedRef,
  HANGS,
  NOBODY_IS_MISSING,
  type Step,
  settledByFinalizer,
  situation,
} from './situation.ts';

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
  situation({
    id: 'paused-condition',
    title: 'a condition of the object says that its operator has paused',
    behaviour: HANGS,
    settle: reports(() => ({
      conditions: [
        {
          type: 'Paused',
          status: 'True',
          reason: 'Maintenance',
          message: '',
          lastTransitionTime: now(),
        },
      ],
    })),
    owner: { code: 'owner-not-acting', says: [/status condition Paused=True/] },
  }),
  situation({
    id: 'in-use-since',
    title: 'a condition that is no failure says since the deletion what the object waits for',
    behaviour: HANGS,
    settle: reports(() => ({
      conditions: [
        {
          type: 'Attached',
          status: 'True',
          reason: 'Attached',
          message: 'still used by the old machine',
          lastTransitionTime: '2026-01-01T00:00:00Z',
        },
        {
          type: 'InUse',
          status: 'True',
          reason: 'InUse',
          message: 'still used by two machines',
          lastTransitionTime: now(),
        },
      ],
    })),
    owner: { code: 'owner-running', says: [/still used by two machines/] },
  }),
  situation({
    id: 'outside-namesake',
    title:
      'the status says that something outside of the cluster with the name of the object is not found',
    behaviour: HANGS,
    settle: reports((namespace) => ({
      conditions: [
        {
          type: 'Ready',
          status: 'False',
          reason: 'CleanupFailed',
          message: `cannot drop it: database ${namespace}/${GUARDED} was not found`,
          lastTransitionTime: now(),
        },
      ],
    })),
    owner: { code: 'owner-failing', says: [/but status condition .* says: "?cannot drop it/] },
  }),
  situation({
    id: 'lost-one-type',
    title:
      'an operator of two products may no longer change the objects of one, of which another may',
    operator: (world) => ({
      rules: [
        rule(world.domain('example.com'), ['widgets'], READ),
        rule('gadgets.example.net', ['gadgets'], FULL),
      ],
    }),
    behaviour: HANGS,
    bystanders: [{ name: 'reporting', namespace: 'reporting' }],
    owner: { code: 'owner-failing', says: [/RBAC lets it neither update nor patch/] },
    expect: () => ({ never: [NOBODY_IS_MISSING] }),
    cure: (world, operator) =>
      world.client.patch(guardedRef(world, operator), { metadata: { finalizers: null } }),
  }),
];
