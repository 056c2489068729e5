import { formatDuration, serverTime } from '../base/time.ts';
import { itemsIn } from '../diagnose/context.ts';
import { diagnose } from '../diagnose/diagnose.ts';
import type { Inputs } from '../inputs.ts';
import { isActive, type Outcome, outcomeOf } from '../model/outcome.ts';
import type { ReadFailure } from '../model/read.ts';
import type { NamespaceResult, RunResult } from '../model/result.ts';
import { readBaselines } from '../observe/observe.ts';
import { deleteAll } from './delete.ts';
import {
  EXAMINE_LIMIT_MS,
  type Examination,
  examinationTimes,
  examine,
  isProvenPermanent,
} from './examine.ts';
import { forceAll } from './forcing.ts';
import { forecastAll } from './forecast.ts';
import { addLeftBehind } from './left-behind.ts';
import {
  describeStart,
  logRemainingWhenQuiet,
  type ProgressLog,
  startProgress,
  startProgressLog,
} from './progress.ts';
import { type GateDeps, type Run, resultOf, runResult, startRun } from './run.ts';
import { findTargets, type Target, type Waiting } from './targets.ts';
import { allOver, Follower, follow } from './wait.ts';

/**
 * Runs the gate: finds the namespaces, requests their deletion if configured, waits for all of them, explains
 * those that remain, and forces what may be forced. The caller publishes the report, which never changes the
 * result.
 */
export async function runGate(inputs: Inputs, deps: GateDeps): Promise<RunResult> {
  const run = await startRun(inputs, deps);
  const targets = await findTargets(run);
  const { server, context } = run.api.target;
  run.log.line(
    `namespace-teardown-gate ${run.gateVersion} · ${server} (Kubernetes ${run.cluster.version}), context ${context}`,
  );
  if (inputs.forecast) return runResult(await forecastAll(targets, run), run);
  if (inputs.delete) await deleteAll(targets, run);
  const progressLog = startProgressLog(run.startedAt, targets.length, run);
  const cases = targets.map((target) => beginFollowing(target, progressLog, run));
  const waiting = cases.filter((one) => 'follower' in one);
  const followers = waiting.map(({ follower }) => follower);
  const resultsOf = (some: typeof cases): NamespaceResult[] => some.map(({ result }) => result);
  const conclude = (): RunResult => runResult(resultsOf(cases), run);
  try {
    readEarlyBaselines(waiting, run);
    follow(followers, { ...run, idle: inputs.timeoutMs === 0 && !isActive(inputs.force) });
    await waitForAll(waiting, run);
    progressLog.flush();
    await forceAll(waiting, run, conclude);
    const ended = resultsOf(waiting).filter(({ outcome }) =>
      ['deleted', 'forced', 'recreated'].includes(outcome),
    );
    if (ended.length > 0) run.concluded?.(conclude());
    const claims = new Map(targets.map(({ name, baseline }) => [name, itemsIn(baseline?.claims)]));
    await addLeftBehind(ended, claims, run);
  } finally {
    progressLog.flush();
    for (const follower of followers) follower.stop();
  }
  return conclude();
}

/** Age up to which a deletion may still have its workloads. */
const YOUNG_MS = 30_000;

/** Reads baselines of namespaces whose deletion was requested elsewhere a moment ago. */
function readEarlyBaselines(waiting: readonly Waiting[], run: Run): void {
  if (run.inputs.timeoutMs === 0) return;
  const young = waiting
    .map(({ target }) => target)
    .filter(
      ({ baseline, first }) =>
        baseline === undefined &&
        !(serverTime(run) - Date.parse(first?.deletionTimestamp ?? '') >= YOUNG_MS),
    );
  if (young.length === 0) return;
  const names = young.map(({ name }) => name);
  void readBaselines(names, run).then((baselines) => {
    for (const target of young) target.baseline = baselines.get(target.name);
  });
}

/** Returns the result if it is already known, else a follower that waits. */
function beginFollowing(
  target: Target,
  progressLog: ProgressLog,
  run: Run,
): Waiting | Pick<Waiting, 'result'> {
  const { inputs, signal } = run;
  const { name, first, refusal, isAsked } = target;
  const settled = (outcome: Outcome, event: string) => ({
    result: resultOf(target, first, outcome, event, run),
  });
  if (first === undefined) return settled('not-found', 'it does not exist');
  if (first.deletionTimestamp === undefined && isAsked !== true) {
    if (signal.aborted) return settled('cancelled', 'the run was cancelled');
    return settled(
      'not-terminating',
      refusal === undefined
        ? 'it exists and its deletion was not requested'
        : `its deletion was refused: ${refusal}`,
    );
  }
  const wait = inputs.timeoutMs === 0 ? '' : `, waiting up to ${formatDuration(inputs.timeoutMs)}`;
  const start = describeStart(first);
  run.log.line(`${name}: ${start}${wait}`);
  const progress = startProgress(first, progressLog, run, target.ordered?.timeline);
  const follower = new Follower(first, progress.changed, signal);
  const result = resultOf(target, first, 'stuck', start, run);
  const one: Waiting = { target, result, progress, follower, examinations: [] };
  void follower.ended.then((ended) => {
    one.endedAt = run.clock.now();
    if ('event' in ended) progress.note(ended.event);
  });
  return one;
}

/**
 * Waits for all namespaces at the same time and examines them together. A namespace that is deleted gets its
 * result without the others.
 */
async function waitForAll(waiting: readonly Waiting[], run: Run): Promise<void> {
  const { clock, inputs, startedAt } = run;
  if (waiting.length === 0) return;
  const deadline = startedAt + inputs.timeoutMs;
  const over = allOver(waiting.map(({ follower }) => follower));
  const times = examinationTimes(inputs, startedAt);
  for (const { follower, progress } of waiting.length <= MAX_QUIET_NOTES ? waiting : []) {
    void logRemainingWhenQuiet(follower, progress, times[0] ?? deadline, run);
  }
  const done = new Set<Waiting>();
  const open = (): Waiting[] =>
    waiting.filter((one) => !done.has(one) && !one.follower.over.aborted);
  for (const at of times) {
    await clock.sleep(Math.max(0, at - clock.now()), over);
    if (open().length === 0) break;
    const latest = Math.min(EXAMINE_LIMIT_MS, deadline + LATE_MS - clock.now());
    if (latest > 0) await examineOpen(open(), latest, over, run);
    for (const one of open()) {
      const last = one.examinations.at(-1);
      if (last !== undefined) one.progress.examined(last.diagnosis);
      if (!inputs.failFast || !isProvenPermanent(one.examinations)) continue;
      one.progress.note('the hang is proven permanent: fail-fast ends the wait');
      done.add(one);
    }
  }
  if (open().length > 0) {
    await clock.sleep(Math.max(0, deadline - clock.now()), over);
    await examineOpen(open(), EXAMINE_LIMIT_MS, over, run);
  }
  await Promise.all(waiting.map((one) => namespaceResult(one, run)));
}

/** Time by which an examination may exceed the timeout. Afterwards the last examination begins. */
const LATE_MS = 5_000;
/**
 * Number of namespaces above which the log has no line for each of them at the start. Changes are always logged.
 */
const MAX_QUIET_NOTES = 8;

async function examineOpen(
  open: readonly Waiting[],
  limitMs: number,
  over: AbortSignal,
  run: Run,
): Promise<void> {
  const found = await examine(
    open.map(({ target, follower, progress, examinations }) => ({
      namespace: follower.last,
      before: examinations.at(-1)?.snapshot,
      watched: progress.watched(),
      baseline: target.baseline,
    })),
    limitMs,
    { ...run, signal: AbortSignal.any([run.signal, over]) },
  );
  open.forEach(({ follower, examinations }, index) => {
    // The namespace was deleted during the reads, so the snapshot is a mixture of two states.
    if (!follower.over.aborted) examinations.push(found[index] as Examination);
  });
}

/**
 * Returns the diagnosis from before the namespace could no longer be read. The namespace may have been deleted unobserved:
 * the diagnosis says when it was made, and explains no outcome. Reads that failed for the same reason show nothing.
 */
function lastSeen(
  examinations: readonly Examination[],
  failure: ReadFailure,
): Examination | undefined {
  const index = examinations.findLastIndex(
    ({ snapshot: { discovery, unread } }) =>
      discovery.ok && unread.every(({ reason }) => reason !== failure.message),
  );
  const last = examinations.at(index);
  if (last === undefined) return undefined;
  const message = `${failure.message}; the report shows what was read at ${last.snapshot.takenAt}`;
  const snapshot = { ...last.snapshot, trouble: { ...failure, message } };
  return { ...last, snapshot, diagnosis: diagnose(snapshot, examinations[index - 1]?.snapshot) };
}

/** Builds the result of a namespace from what was observed. */
async function namespaceResult(one: Waiting, run: Run): Promise<void> {
  const { target, follower, progress, examinations } = one;
  if (!follower.over.aborted) await follower.confirm();
  const ended = follower.over.aborted ? await follower.ended : undefined;
  const { last: namespace, trouble } = follower;
  const failure = ended?.how === 'unauthorized' ? ended.failure : trouble;
  const last = failure === undefined ? examinations.at(-1) : lastSeen(examinations, failure);
  const finish = (outcome: Outcome, event: string): void => {
    one.result = {
      ...resultOf(target, namespace, outcome, event, run),
      elapsedMs: (one.endedAt ?? run.clock.now()) - run.startedAt,
      timeline: progress.end(event),
      ...(last === undefined || outcome === 'deleted' || outcome === 'recreated'
        ? {}
        : { diagnosis: last.diagnosis, examination: last.cost }),
    };
  };
  switch (ended?.how) {
    case undefined: {
      if (last === undefined) return finish('inconclusive', 'there was no time to examine it');
      const outcome = outcomeOf(last.diagnosis);
      return finish(outcome, `still there: ${outcome}`);
    }
    case 'deleted':
    case 'recreated':
      return finish(ended.how, ended.event);
    case 'unauthorized':
      return finish(
        'inconclusive',
        `its credentials ended, so the gate could read nothing more: ${ended.failure.message}`,
      );
    case 'stopped':
      return finish('cancelled', 'the run was cancelled');
  }
}
