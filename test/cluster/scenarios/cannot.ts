import type { Scenario } from '../scenario.ts';
import { guardedRef, HANGS, type Step, settledByFinalizer, situation } from './situation.ts';

const HOPELESS = {
  code: 'owner-failing',
  says: [/can never succeed/],
  advises: [/Remove this one finalizer/],
} as const;

/** The status, written since the deletion. */
const says =
  (message: string, reason = 'CleanupFailed'): Step =>
  async (world, operator) => {
    await settledByFinalizer(world);
    const condition = { type: 'Ready', status: 'False', reason, message };
    await world.client.patchStatus(
      guardedRef(world, operator),
      { conditions: [{ ...condition, lastTransitionTime: new Date().toISOString() }] },
      { fieldManager: operator.manager },
    );
  };

export const cannot: Scenario[] = [
  situation({
    id: 'gone-in-words',
    title: 'the status says in its own words that a Secret of the namespace is missing',
    behaviour: HANGS,
    spec: { credentials: { secretName: 'db-login' } },
    settle: says('giving up: the login in secret db-login is missing'),
    owner: HOPELESS,
    expect: () => ({ deadlock: true }),
  }),
];
