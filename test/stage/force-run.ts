import type { Log } from '../../src/base/log.ts';
import type { Clock } from '../../src/base/time.ts';
import { applyForce, type ForceDeps, type ForceResult } from '../../src/force/apply.ts';
import type { ForceAction, ForcePlan, ForceType } from '../../src/force/force-plan.ts';
import { DEMO, type FakeCluster } from './force-fake.ts';

export const CLEANUP = 'example.com/cleanup';

export function removeFrom(type: ForceType, finalizer = CLEANUP, count = 1): ForceAction {
  return { step: 'object-finalizer', type, finalizer, count, examples: ['a'], leak: undefined };
}

export function ownEntry(finalizer: string, list: 'metadata' | 'spec' = 'spec'): ForceAction {
  const step = list === 'spec' ? 'namespace-spec-finalizer' : 'namespace-finalizer';
  return { step, finalizer, leak: undefined };
}

export function planOf(actions: ForceAction[], over: Partial<ForcePlan> = {}): ForcePlan {
  return {
    mode: 'namespace',
    namespace: { name: DEMO, uid: 'ns-uid' },
    label: undefined,
    orphans: 'refuse',
    actions,
    refused: [],
    forecast: undefined,
    controllerAtWork: true,
    ...over,
  };
}

/** A clock that only moves when somebody sleeps. */
export function stillClock(at = Date.parse('2026-01-01T00:10:00Z')): Clock & { slept: number[] } {
  let now = at;
  const slept: number[] = [];
  return {
    slept,
    now: () => now,
    sleep: async (ms, signal) => {
      if (signal?.aborted) return;
      slept.push(ms);
      now += ms;
    },
  };
}

export function lines(): Log & { all: string[] } {
  const all: string[] = [];
  const push = (text: string): void => {
    all.push(text);
  };
  return {
    all,
    line: push,
    group: (title, more) => all.push(title, ...more),
    notice: push,
    warning: push,
    error: push,
    debug: push,
  };
}

export interface Ran extends ForceResult {
  log: string[];
  slept: number[];
}

/** Applies the plan to the fake; waiting lets its namespace controller work. */
export async function force(
  cluster: FakeCluster,
  plan: ForcePlan,
  over: Partial<ForceDeps> = {},
): Promise<Ran> {
  const clock = stillClock();
  const log = lines();
  const result = await applyForce(plan, {
    api: cluster,
    clock,
    log,
    signal: new AbortController().signal,
    waitGone: async (untilMs) => {
      await clock.sleep(Math.max(0, untilMs - clock.now()));
      cluster.settle();
      return cluster.read(`/api/v1/namespaces/${DEMO}`) === undefined ? 'gone' : 'still-there';
    },
    ...over,
  });
  return { ...result, log: log.all, slept: clock.slept };
}

export function results({ record }: ForceResult): string[] {
  return record.actions.map(({ target, finalizer, result }) =>
    `${target} ${finalizer}: ${result}`.replace(' :', ':'),
  );
}

export function refusals({ record }: ForceResult): string[] {
  return record.refused.map(({ target, reason }) => `${target}: ${reason}`);
}
