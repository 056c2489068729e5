import type { JsonObject } from '../base/json.ts';
import type { Mutation } from '../kubernetes/api.ts';
import type { ReadFailure } from '../model/read.ts';
import type { Run } from './run.ts';

/** How often one thing is read again because it had moved. */
export const MAX_REREADS = 3;
const PAUSE_MS = 1_000;

/** What an error says about a write that was sent. */
export type Answer = 'moved' | 'unclear' | 'throttled' | 'refused' | 'cancelled';

export function judgeFailure(failure: ReadFailure): Answer {
  // Also a 404 about something else than the object: its namespace, its type, is gone.
  if (failure.status === 404) return 'moved';
  switch (failure.kind) {
    case 'not-found':
    case 'conflict':
      return 'moved';
    case 'invalid':
      // A failed JSON Patch test is 422; so is an object that no longer is valid, which reading again settles.
      return failure.status === 422 ? 'moved' : 'refused';
    case 'forbidden':
    case 'unauthorized':
      return 'refused';
    case 'throttled':
      return 'throttled';
    case 'aborted':
      return 'cancelled';
    case 'server-error':
    case 'timeout':
    case 'network':
    case 'unreadable':
      return 'unclear';
  }
}

export interface Written {
  /** Whether the cluster was, or may have been, changed. */
  wrote: boolean;
  /** Whether things are now as they were meant to be. */
  reached: boolean;
  result: string;
}

export type Reread<T> =
  | { now: 'to-do'; state: T }
  /** Somebody else, or an unanswered request of ours, has done it. */
  | { now: 'reached'; result: string }
  | { now: 'stop'; result: string };

export interface Write<T> {
  request(state: T): Mutation;
  reread(): Promise<Reread<T>>;
  /** Result of a write that succeeded. */
  done: string;
}

/** Sends one write for what was just read; when that has moved, reads again, at most three times. */
export async function write<T>(run: Run, first: T, how: Write<T>): Promise<Written> {
  let state = first;
  let mayHaveWritten = false;
  for (let rereads = 0; ; rereads++) {
    if (run.signal.aborted) {
      return { wrote: mayHaveWritten, reached: false, result: 'not done: the run was cancelled' };
    }
    const sent = await run.api.send(how.request(state), { signal: run.signal });
    if (sent.ok) return { wrote: true, reached: true, result: how.done };
    const answer = judgeFailure(sent.failure);
    if (answer === 'cancelled') {
      return {
        wrote: true,
        reached: false,
        result: 'cancelled while it was being sent: it may have happened',
      };
    }
    if (answer === 'unclear') mayHaveWritten = true;
    if (answer === 'refused' || rereads === MAX_REREADS) {
      const tries = rereads > 0 ? ` (read again ${rereads} times)` : '';
      return {
        wrote: mayHaveWritten,
        reached: false,
        result: `not done: ${sent.failure.message}${tries}`,
      };
    }
    if (answer !== 'moved') await run.clock.sleep(PAUSE_MS * 2 ** rereads, run.signal);
    const again = await how.reread();
    if (again.now === 'to-do') {
      state = again.state;
      continue;
    }
    const reached = again.now === 'reached';
    return {
      wrote: mayHaveWritten,
      reached,
      result: reached && mayHaveWritten ? how.done : again.result,
    };
  }
}

/** Takes every occurrence of `finalizer` out of the list as it was read, and nothing if it moved. */
export function removalPatch(
  uid: string,
  finalizers: readonly string[],
  finalizer: string,
): JsonObject[] {
  const indexes = finalizers.flatMap((entry, index) => (entry === finalizer ? [index] : []));
  const path = (index: number): string => `/metadata/finalizers/${index}`;
  return [
    { op: 'test', path: '/metadata/uid', value: uid },
    ...indexes.map((index) => ({ op: 'test', path: path(index), value: finalizer })),
    // From the end: each removal moves what comes after it.
    ...indexes.toReversed().map((index) => ({ op: 'remove', path: path(index) })),
  ];
}
