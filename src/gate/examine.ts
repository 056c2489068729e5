import type { Log } from '../base/log.ts';
import { Throttle } from '../base/throttle.ts';
import type { Clock, TimelineEntry } from '../base/time.ts';
import { questionsOf } from '../diagnose/ask.ts';
import { diagnose } from '../diagnose/diagnose.ts';
import type { Inputs } from '../inputs.ts';
import { counted, type KubernetesApi } from '../kubernetes/api.ts';
import type { Diagnosis } from '../model/finding.ts';
import { isPermanent, type Outcome, outcomeOf } from '../model/outcome.ts';
import type { ReadFailure } from '../model/read.ts';
import { type NamespaceFacts, noDetails, type RollCall, type Snapshot } from '../model/snapshot.ts';
import { investigate } from '../observe/investigate.ts';
import { type ObserveDeps, observe } from '../observe/observe.ts';
import { hasQuestions } from '../observe/questions.ts';
import { glanceWhenQuiet, Progress } from './progress.ts';
import { type Ended, type Follower, followNamespace } from './wait.ts';

/** Finalizer, then its owner, then what the owner waits for: deeper questions do not exist. */
const MAX_ROUNDS = 6;

/** One look at the cluster: the sweep, and then what the findings raise questions about. */
export async function look(
  namespace: NamespaceFacts,
  before: Snapshot | undefined,
  rollCall: RollCall | undefined,
  deps: ObserveDeps,
): Promise<Snapshot> {
  const seen = await observe(namespace, deps);
  let snapshot = rollCall === undefined ? seen : { ...seen, rollCall };
  for (let round = 0; round < MAX_ROUNDS && !deps.signal.aborted; round++) {
    const questions = questionsOf(snapshot, before);
    if (!hasQuestions(questions)) break;
    const known = snapshot.details ?? noDetails();
    snapshot = {
      ...snapshot,
      details: await investigate(namespace.name, questions, known, deps.api, deps.signal),
    };
  }
  return snapshot;
}

/** Reading for one diagnosis is bounded; what is not read by then is "not inspected". */
const LOOK_LIMIT_MS = 45_000;
/** A look on the way may outlast the timeout by this; then the last one has its time. */
const LATE_MS = 5_000;
/** The look that tells slow from stuck comes this long before the deadline, in a wait long enough. */
const COMPARE_MS = 30_000;
/** With fail-fast: how often to look, and how long the same cause must have held. */
const FAIL_FAST = { everyMs: 30_000, unchangedMs: 90_000 };

export interface TeardownDeps {
  api: KubernetesApi;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
}

export interface TeardownsDeps extends TeardownDeps {
  turns: Throttle;
}

/**
 * Looks of several namespaces share one server: too many at once are all slow, and what is not read in
 * time is not inspected.
 */
export function lookTurns(): Throttle {
  return new Throttle(4);
}

/** What became of one namespace that was Terminating at the start, and why it is still there. */
export interface Teardown {
  outcome: Outcome;
  last: NamespaceFacts;
  diagnosis: Diagnosis | undefined;
  snapshot: Snapshot | undefined;
  timeline: TimelineEntry[];
  look: { requests: number; ms: number } | undefined;
  unauthorized?: Extract<Ended, { how: 'unauthorized' }>;
}

interface Look {
  snapshot: Snapshot;
  diagnosis: Diagnosis;
  cost: { requests: number; ms: number };
  at: number;
}

/** Waits until the namespace is gone or the deadline has passed, then says why it is not. */
export async function tearDown(
  start: NamespaceFacts,
  inputs: Pick<Inputs, 'failFast' | 'timeoutMs'>,
  startedAt: number,
  deps: TeardownsDeps,
  rollCall: Promise<RollCall> | undefined,
): Promise<Teardown> {
  const progress = new Progress(start, startedAt, deps);
  const follower = followNamespace(start, {
    ...deps,
    onChange: (last, trouble) => progress.changed(last, trouble),
    idle: inputs.timeoutMs === 0,
  });
  try {
    const deadline = startedAt + inputs.timeoutMs;
    const looks: Look[] = [];
    const times = lookTimes(inputs, startedAt);
    void glanceWhenQuiet(follower, progress, times[0] ?? deadline, deps);
    for (const at of times) {
      if (!(await waitUntil(at, follower, deps.clock))) break;
      const before = looks.at(-1)?.snapshot;
      const look = await lookAt(follower, before, rollCall, deps, deadline + LATE_MS);
      if (look === undefined) break;
      looks.push(look);
      progress.looked(look.diagnosis);
      if (inputs.failFast && isProven(looks)) {
        progress.note('the hang is proven permanent: fail-fast ends the wait');
        break;
      }
    }
    await waitUntil(looks.length > 0 && isProven(looks) ? 0 : deadline, follower, deps.clock);
    return await conclude(follower, looks, rollCall, progress, deps);
  } finally {
    follower.stop();
  }
}

/** One look to compare with, shortly before the deadline; with fail-fast also on the way. */
export function lookTimes(
  inputs: Pick<Inputs, 'failFast' | 'timeoutMs'>,
  startedAt: number,
): number[] {
  const { timeoutMs } = inputs;
  if (timeoutMs === 0) return [];
  const compareAt = startedAt + Math.max(timeoutMs - COMPARE_MS, timeoutMs / 3);
  if (!inputs.failFast) return [compareAt];
  const times: number[] = [];
  for (let at = startedAt + FAIL_FAST.everyMs; at < compareAt; at += FAIL_FAST.everyMs) {
    times.push(at);
  }
  return [...times, compareAt];
}

/** False when the namespace ended, or the run was cancelled, before `at`. */
async function waitUntil(at: number, follower: Follower, clock: Clock): Promise<boolean> {
  await clock.sleep(Math.max(0, at - clock.now()), follower.over);
  return !follower.over.aborted;
}

async function lookAt(
  follower: Follower,
  before: Snapshot | undefined,
  rollCall: Promise<RollCall> | undefined,
  deps: TeardownsDeps,
  latest = Number.POSITIVE_INFINITY,
): Promise<Look | undefined> {
  const { over } = follower;
  return deps.turns
    .run(
      async () => lookNow(follower, before, await rollCall, deps, latest),
      () => false,
      over,
    )
    .catch((error: unknown) => {
      if (over.aborted) return undefined;
      throw error;
    });
}

/** `latest`: when it has to be over, in ms since the epoch. */
async function lookNow(
  follower: Follower,
  before: Snapshot | undefined,
  rollCall: RollCall | undefined,
  deps: TeardownDeps,
  latest: number,
): Promise<Look | undefined> {
  const begin = deps.clock.now();
  const limitMs = Math.floor(Math.min(LOOK_LIMIT_MS, latest - begin));
  if (limitMs <= 0) return undefined;
  const { api, requests } = counted(deps.api);
  const limit = AbortSignal.any([follower.over, AbortSignal.timeout(limitMs)]);
  const snapshot = await look(follower.last, before, rollCall, { ...deps, api, signal: limit });
  // The end came while we were reading: what was read is a mixture of two states.
  if (follower.over.aborted) return undefined;
  return {
    snapshot,
    diagnosis: diagnose(snapshot, before),
    cost: { requests: requests(), ms: deps.clock.now() - begin },
    at: begin,
  };
}

/** The same causes, of a kind that does not heal by itself, for as long as Kubernetes retries. */
function isProven(looks: readonly Look[]): boolean {
  const last = looks[looks.length - 1];
  if (last === undefined || !isPermanent(last.diagnosis)) return false;
  const causes = last.diagnosis.rootCauses.join('\n');
  const since = looks.findLastIndex((look) => look.diagnosis.rootCauses.join('\n') !== causes) + 1;
  return last.at - (looks[since] as Look).at >= FAIL_FAST.unchangedMs;
}

async function conclude(
  follower: Follower,
  looks: readonly Look[],
  rollCall: Promise<RollCall> | undefined,
  progress: Progress,
  deps: TeardownsDeps,
): Promise<Teardown> {
  const final = follower.over.aborted
    ? undefined
    : await lookAt(follower, looks.at(-1)?.snapshot, rollCall, deps);
  if (final !== undefined) await follower.confirm();
  const before = looks[looks.length - 1];
  const known = final === undefined ? before : withTrouble(final, before, follower.trouble);
  if (!follower.over.aborted && known !== undefined) {
    return {
      outcome: outcomeOf(known.diagnosis),
      ...resultOf(known),
      last: follower.last,
      timeline: progress.end(`not gone: ${outcomeOf(known.diagnosis)}`),
    };
  }
  const ended = await follower.ended;
  const nothing = { diagnosis: undefined, snapshot: undefined, look: undefined };
  const { last } = follower;
  switch (ended.how) {
    case 'deleted':
      return { outcome: 'deleted', ...nothing, last, timeline: progress.end('gone') };
    case 'recreated': {
      const event = `gone; a new namespace with the same name has UID ${ended.uid}`;
      return { outcome: 'recreated', ...nothing, last, timeline: progress.end(event) };
    }
    case 'unauthorized': {
      const event = `credentials refused: ${ended.failure.message}`;
      const timeline = progress.end(event);
      return { outcome: 'inconclusive', ...nothing, last, timeline, unauthorized: ended };
    }
    case 'stopped': {
      const timeline = progress.end('the run was cancelled');
      const seen = known === undefined ? nothing : resultOf(known);
      return { outcome: 'cancelled', ...seen, last, timeline };
    }
  }
}

/** It may be gone, and nobody could see: then what it seemed to wait for explains nothing. */
function withTrouble(look: Look, before: Look | undefined, trouble: ReadFailure | undefined): Look {
  if (trouble === undefined) return look;
  const snapshot = { ...look.snapshot, trouble };
  return { ...look, snapshot, diagnosis: diagnose(snapshot, before?.snapshot) };
}

function resultOf(look: Look): Pick<Teardown, 'diagnosis' | 'snapshot' | 'look'> {
  return { diagnosis: look.diagnosis, snapshot: look.snapshot, look: look.cost };
}
