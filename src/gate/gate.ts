import { formatDuration, serverTime, serverTimestamp } from '../base/time.ts';
import { listed } from '../diagnose/context.ts';
import type { Inputs } from '../inputs.ts';
import { type Outcome, outcomeOf } from '../model/outcome.ts';
import type { NamespaceResult, RunResult } from '../model/result.ts';
import type { Baseline } from '../model/snapshot.ts';
import { isYoung, readBaselines } from '../observe/observe.ts';
import {
  EXAMINE_LIMIT_MS,
  type Examination,
  examinationTimes,
  examine,
  isProvenPermanent,
  withTrouble,
} from './examine.ts';
import { forceAll } from './forcing.ts';
import { deletesPodsFirst, forecastAll } from './forecast.ts';
import { deleteInOrder, type Ordered } from './order.ts';
import { describeStart, noteWhenQuiet, Progress, ProgressLog } from './progress.ts';
import {
  addLeftBehind,
  type GateDeps,
  logStart,
  type Run,
  resultOf,
  runResult,
  startRun,
} from './run.ts';
import {
  cannot,
  findTargets,
  isDeletable,
  requestDeletions,
  type Target,
  tryDeletions,
} from './targets.ts';
import { createFollowing, type Ended, type Follower } from './wait.ts';

/** A namespace on its way through the run. */
export interface Case {
  target: Target;
  result: NamespaceResult;
  /** Absent when there was nothing to wait for. */
  follower: Follower | undefined;
  progress: Progress | undefined;
  baseline: Baseline | undefined;
  examinations: Examination[];
  /** When it went, in ms since the epoch. */
  endedAt?: number;
}

/**
 * The story: find the namespaces, ask for their deletion if told to, wait for all of them, explain those
 * that stay, force what may be forced. Reporting is the caller's; it never changes what is decided here.
 */
export async function runGate(inputs: Inputs, deps: GateDeps): Promise<RunResult> {
  const started = await startRun(inputs, deps);
  const { targets: found, leftOut } = await findTargets(inputs, serverTime(started), started);
  const run: Run = { ...started, leftOut };
  logStart(run);
  if (inputs.forecast) return runResult(await forecastAll(found, run), run);
  const targets = inputs.delete ? await deleteAll(found, run) : found;
  const following = createFollowing({ ...run, idle: inputs.timeoutMs === 0 });
  const progressLog = new ProgressLog(run.startedAt, targets.length, run);
  const cases = targets.map((target) => begin(target, progressLog, following, run));
  readEarlyBaselines(cases, run);
  following.start();
  const conclude = async (): Promise<RunResult> =>
    runResult(
      cases.map(({ result }) => result),
      run,
    );
  try {
    await waitForAll(cases, run);
    progressLog.flush();
    await forceAll(cases, inputs, run, conclude);
    const went = cases.map(({ result }) => result);
    await addLeftBehind(
      went.filter(({ outcome }) => ['deleted', 'forced', 'recreated'].includes(outcome)),
      run,
      new Map(cases.map(({ target, baseline }) => [target.name, listed(baseline?.claims)])),
    );
  } finally {
    progressLog.flush();
    for (const { follower } of cases) follower?.stop();
  }
  return conclude();
}

/** Asks who is in each namespace first: once its content goes, nobody can tell any more. */
async function deleteAll(targets: readonly Target[], run: Run): Promise<Target[]> {
  const isActive = ({ first }: Target): boolean =>
    first !== undefined && first.deletionTimestamp === undefined;
  const baselines = await readBaselines(
    targets.filter(isActive).map(({ name }) => name),
    run,
  );
  const tried = await tryDeletions(targets, run);
  const namespaces = tried.filter(isDeletable).flatMap(({ first }) => first ?? []);
  const ordered =
    run.inputs.delete === 'ordered'
      ? await deleteInOrder(namespaces, deletesPodsFirst(run), run)
      : new Map<string, Ordered>();
  // What was deleted inside has changed nothing about the namespace itself.
  const asked = await requestDeletions(tried, run);
  return asked.map((target) => {
    const baseline = baselines.get(target.name);
    const before = ordered.get(target.name);
    return {
      ...target,
      ...(before === undefined ? {} : { ordered: before }),
      ...(baseline === undefined ? {} : { baseline }),
    };
  });
}

/** The same for those whose deletion somebody else has asked for just now. */
function readEarlyBaselines(cases: readonly Case[], run: Run): void {
  if (run.inputs.timeoutMs === 0) return;
  const young = cases.filter(
    ({ baseline, follower }) =>
      baseline === undefined &&
      follower !== undefined &&
      isYoung(follower.last.deletionTimestamp, serverTime(run)),
  );
  const names = young.map(({ target }) => target.name);
  if (names.length === 0) return;
  void readBaselines(names, run).then((baselines) => {
    for (const one of young) one.baseline = baselines.get(one.target.name);
  });
}

/** What can be said at once, and a follower where there is something to wait for. */
function begin(
  target: Target,
  progressLog: ProgressLog,
  following: ReturnType<typeof createFollowing>,
  run: Run,
): Case {
  const { inputs } = run;
  const { name, first, refusal } = target;
  const idle = { target, follower: undefined, progress: undefined, baseline: undefined };
  const settled = (outcome: Outcome, event: string): Case => ({
    ...idle,
    examinations: [],
    result: {
      ...resultOf(name, outcome, run),
      ...(first === undefined ? {} : { uid: first.uid, conditions: first.conditions }),
      ...(refusal === undefined ? {} : { refusal }),
      timeline: [{ at: serverTimestamp(run), event }],
    },
  });
  if (first === undefined) return settled('not-found', 'it does not exist');
  if (first.deletionTimestamp === undefined && target.wentAtOnce !== true) {
    if (run.signal.aborted) return settled('cancelled', 'the run was cancelled');
    return settled(
      'not-terminating',
      refusal === undefined
        ? 'it exists and nobody has asked for its deletion'
        : `its deletion was refused: ${refusal}`,
    );
  }
  const wait = inputs.timeoutMs === 0 ? '' : `, waiting up to ${formatDuration(inputs.timeoutMs)}`;
  run.log.line(`${name}: ${describeStart(first)}${wait}`);
  const progress = new Progress(first, progressLog, run, target.ordered?.timeline);
  const follower = following.add(first, (last, trouble) => progress.changed(last, trouble));
  const one: Case = {
    target,
    progress,
    follower,
    baseline: target.baseline,
    examinations: [],
    result: resultOf(name, 'stuck', run),
  };
  void follower.ended.then((ended) => {
    one.endedAt = run.clock.now();
    if (ended.how === 'deleted' || ended.how === 'recreated') progress.note(endedText(ended));
  });
  return one;
}

/** All at the same time, examined together; one that ends does not wait for the others. */
async function waitForAll(cases: readonly Case[], run: Run): Promise<void> {
  const { clock, inputs, startedAt } = run;
  const waiting = cases.filter(({ follower }) => follower !== undefined);
  if (waiting.length === 0) return;
  const deadline = startedAt + inputs.timeoutMs;
  const allOver = new AbortController();
  void Promise.all(waiting.map(({ follower }) => follower?.ended)).then(() => allOver.abort());
  const times = examinationTimes(inputs, startedAt);
  for (const { follower, progress } of waiting) {
    if (follower === undefined || progress === undefined) continue;
    if (waiting.length <= MAX_QUIET_NOTES) {
      void noteWhenQuiet(follower, progress, times[0] ?? deadline, run);
    }
  }
  const done = new Set<Case>();
  const open = (): Case[] =>
    waiting.filter((one) => !done.has(one) && one.follower?.over.aborted === false);
  for (const at of times) {
    await clock.sleep(Math.max(0, at - clock.now()), allOver.signal);
    if (open().length === 0) break;
    const latest = Math.min(EXAMINE_LIMIT_MS, deadline + LATE_MS - clock.now());
    if (latest > 0) await examineCases(open(), latest, allOver.signal, run);
    for (const one of open()) {
      const last = one.examinations.at(-1);
      if (last !== undefined) one.progress?.examined(last.diagnosis);
      if (!inputs.failFast || !isProvenPermanent(one.examinations)) continue;
      one.progress?.note('the hang is proven permanent: fail-fast ends the wait');
      done.add(one);
    }
  }
  if (open().length > 0) {
    await clock.sleep(Math.max(0, deadline - clock.now()), allOver.signal);
    await examineCases(open(), EXAMINE_LIMIT_MS, allOver.signal, run);
  }
  await Promise.all(waiting.map((one) => settle(one, run)));
}

/** An examination on the way may outlast the timeout by this; then the last one has its time. */
const LATE_MS = 5_000;
/** Of more, nobody reads a line for each; what changes is said anyway. */
const MAX_QUIET_NOTES = 8;

async function examineCases(
  cases: readonly Case[],
  limitMs: number,
  over: AbortSignal,
  run: Run,
): Promise<void> {
  const found = await examine(
    cases.map(({ follower, examinations, baseline }) => ({
      namespace: (follower as Follower).last,
      before: examinations.at(-1)?.snapshot,
      baseline,
    })),
    limitMs,
    { ...run, signal: AbortSignal.any([run.signal, over]) },
  );
  cases.forEach((one, index) => {
    // The end came while it was being read: that is a mixture of two states.
    if (one.follower?.over.aborted === false) one.examinations.push(found[index] as Examination);
  });
}

/** From what was seen to the result. */
async function settle(one: Case, run: Run): Promise<void> {
  const { follower, progress, examinations } = one;
  if (follower === undefined || progress === undefined) return;
  if (!follower.over.aborted) await follower.confirm();
  const last = examinations.at(-1);
  const before = examinations.at(-2)?.snapshot;
  const known = last && withTrouble(last, before, follower.trouble);
  if (known !== undefined) examinations[examinations.length - 1] = known;
  const finish = (outcome: Outcome, event: string): void => {
    const { name, uid, creationTimestamp, deletionTimestamp, conditions } = follower.last;
    one.result = {
      ...resultOf(name, outcome, run),
      createdAt: creationTimestamp,
      elapsedMs: (one.endedAt ?? run.clock.now()) - run.startedAt,
      uid,
      deletionTimestamp,
      conditions,
      timeline: progress.end(event),
      ...(one.target.ordered === undefined ? {} : { deletions: one.target.ordered.deletions }),
      ...(known === undefined || outcome === 'deleted' || outcome === 'recreated'
        ? {}
        : { diagnosis: known.diagnosis, examination: known.cost }),
    };
  };
  if (!follower.over.aborted && known !== undefined) {
    const outcome = outcomeOf(known.diagnosis);
    return finish(outcome, `not gone: ${outcome}`);
  }
  if (!follower.over.aborted) return finish('inconclusive', 'there was no time to look');
  const ended = await follower.ended;
  switch (ended.how) {
    case 'deleted':
    case 'recreated':
      return finish(ended.how, endedText(ended));
    case 'unauthorized':
      throw cannot('get', `namespace "${one.target.name}"`, ended.failure, run.api);
    case 'stopped':
      return finish('cancelled', 'the run was cancelled');
  }
}

function endedText(ended: Extract<Ended, { how: 'deleted' | 'recreated' }>): string {
  return ended.how === 'deleted'
    ? 'gone'
    : `gone; a new namespace with the same name has UID ${ended.uid}`;
}
