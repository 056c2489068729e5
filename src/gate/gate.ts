import { stringAt } from '../base/json.ts';
import type { Log } from '../base/log.ts';
import { type Clock, formatDuration, serverTime, serverTimestamp } from '../base/time.ts';
import type { Inputs } from '../inputs.ts';
import type { KubernetesApi } from '../kubernetes/api.ts';
import type { NotInspected } from '../model/finding.ts';
import { type Outcome, outcomeOf, verdict, worstOutcome } from '../model/outcome.ts';
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
import { describeStart, noteWhenQuiet, Progress, ProgressLog } from './progress.ts';
import { cannot, findTargets, requestDeletions, type Target } from './targets.ts';
import { type Ended, type Follower, Following } from './wait.ts';

export interface GateDeps {
  api: KubernetesApi;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
  gateVersion: string;
  /** Reports what is known before the first forced write: a write may destroy the evidence. */
  announce?: (result: RunResult) => Promise<void>;
}

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
  const startedAt = deps.clock.now();
  const cluster = readCluster(deps);
  const { targets: found, leftOut } = await findTargets(inputs, serverTime(deps), deps);
  const { server, context } = deps.api.target;
  deps.log.line(
    `namespace-teardown-gate ${deps.gateVersion} · ${server} (Kubernetes ${(await cluster).version}), context ${context}`,
  );
  const targets = inputs.delete ? await deleteAll(found, deps) : found;
  const following = new Following({ ...deps, idle: inputs.timeoutMs === 0 });
  const progressLog = new ProgressLog(startedAt, targets.length, deps);
  const cases = targets.map((target) => begin(target, inputs, progressLog, following, deps));
  readEarlyBaselines(cases, inputs, deps);
  following.start();
  const conclude = async (): Promise<RunResult> =>
    runResult(
      cases.map(({ result }) => result),
      { cluster: await cluster, startedAt, leftOut },
      inputs,
      deps,
    );
  try {
    await waitForAll(cases, inputs, startedAt, deps);
    progressLog.flush();
    await forceAll(cases, inputs, deps, conclude);
  } finally {
    progressLog.flush();
    for (const { follower } of cases) follower?.stop();
  }
  return conclude();
}

/** Nice to know, and nothing to wait for. */
async function readCluster({
  api,
  signal,
}: GateDeps): Promise<{ version: string; uid: string | undefined }> {
  const options = { signal, timeoutMs: 5_000, retries: 0 };
  const [version, system] = await Promise.all([
    api.get('/version', options),
    api.get('/api/v1/namespaces/kube-system', options),
  ]);
  return {
    version: version.ok ? (stringAt(version.value, 'gitVersion') ?? 'unknown') : 'unknown',
    uid: system.ok ? stringAt(system.value, 'metadata', 'uid') : undefined,
  };
}

/** Asks who is in each namespace first: once its content goes, nobody can tell any more. */
async function deleteAll(targets: readonly Target[], deps: GateDeps): Promise<Target[]> {
  const isActive = ({ first }: Target): boolean =>
    first !== undefined && first.deletionTimestamp === undefined;
  const baselines = await readBaselines(
    targets.filter(isActive).map(({ name }) => name),
    deps,
  );
  const asked = await requestDeletions(targets, deps);
  return asked.map((target) => {
    const baseline = baselines.get(target.name);
    return baseline === undefined ? target : { ...target, baseline };
  });
}

/** The same for those whose deletion somebody else has asked for just now. */
function readEarlyBaselines(cases: readonly Case[], inputs: Inputs, deps: GateDeps): void {
  if (inputs.timeoutMs === 0) return;
  const young = cases.filter(
    ({ baseline, follower }) =>
      baseline === undefined &&
      follower !== undefined &&
      isYoung(follower.last.deletionTimestamp, serverTime(deps)),
  );
  const names = young.map(({ target }) => target.name);
  if (names.length === 0) return;
  void readBaselines(names, deps).then((baselines) => {
    for (const one of young) one.baseline = baselines.get(one.target.name);
  });
}

/** What can be said at once, and a follower where there is something to wait for. */
function begin(
  target: Target,
  inputs: Inputs,
  progressLog: ProgressLog,
  following: Following,
  deps: GateDeps,
): Case {
  const { startedAt } = progressLog;
  const { name, first, refusal } = target;
  const idle = { target, follower: undefined, progress: undefined, baseline: undefined };
  const settled = (outcome: Outcome, event: string): Case => ({
    ...idle,
    examinations: [],
    result: {
      ...resultOf(name, outcome, inputs, startedAt, deps),
      ...(first === undefined ? {} : { uid: first.uid, conditions: first.conditions }),
      ...(refusal === undefined ? {} : { refusal }),
      timeline: [{ at: serverTimestamp(deps), event }],
    },
  });
  if (first === undefined) return settled('not-found', 'it does not exist');
  if (first.deletionTimestamp === undefined && target.wentAtOnce !== true) {
    if (deps.signal.aborted) return settled('cancelled', 'the run was cancelled');
    return settled(
      'not-terminating',
      refusal === undefined
        ? 'it exists and nobody has asked for its deletion'
        : `its deletion was refused: ${refusal}`,
    );
  }
  const wait = inputs.timeoutMs === 0 ? '' : `, waiting up to ${formatDuration(inputs.timeoutMs)}`;
  deps.log.line(`${name}: ${describeStart(first)}${wait}`);
  const progress = new Progress(first, progressLog, deps);
  const follower = following.add(first, (last, trouble) => progress.changed(last, trouble));
  const one: Case = {
    target,
    progress,
    follower,
    baseline: target.baseline,
    examinations: [],
    result: resultOf(name, 'stuck', inputs, startedAt, deps),
  };
  void follower.ended.then((ended) => {
    one.endedAt = deps.clock.now();
    if (ended.how === 'deleted' || ended.how === 'recreated') progress.note(endedText(ended));
  });
  return one;
}

/** All at the same time, examined together; one that ends does not wait for the others. */
async function waitForAll(
  cases: readonly Case[],
  inputs: Inputs,
  startedAt: number,
  deps: GateDeps,
): Promise<void> {
  const waiting = cases.filter(({ follower }) => follower !== undefined);
  if (waiting.length === 0) return;
  const deadline = startedAt + inputs.timeoutMs;
  const allOver = new AbortController();
  void Promise.all(waiting.map(({ follower }) => follower?.ended)).then(() => allOver.abort());
  const times = examinationTimes(inputs, startedAt);
  for (const { follower, progress } of waiting) {
    if (follower === undefined || progress === undefined) continue;
    if (waiting.length <= MAX_QUIET_NOTES) {
      void noteWhenQuiet(follower, progress, times[0] ?? deadline, deps);
    }
  }
  const done = new Set<Case>();
  const open = (): Case[] =>
    waiting.filter((one) => !done.has(one) && one.follower?.over.aborted === false);
  for (const at of times) {
    await deps.clock.sleep(Math.max(0, at - deps.clock.now()), allOver.signal);
    if (open().length === 0) break;
    const latest = Math.min(EXAMINE_LIMIT_MS, deadline + LATE_MS - deps.clock.now());
    if (latest > 0) await examineCases(open(), latest, allOver.signal, deps);
    for (const one of open()) {
      const last = one.examinations.at(-1);
      if (last !== undefined) one.progress?.examined(last.diagnosis);
      if (!inputs.failFast || !isProvenPermanent(one.examinations)) continue;
      one.progress?.note('the hang is proven permanent: fail-fast ends the wait');
      done.add(one);
    }
  }
  if (open().length > 0) {
    await deps.clock.sleep(Math.max(0, deadline - deps.clock.now()), allOver.signal);
    await examineCases(open(), EXAMINE_LIMIT_MS, allOver.signal, deps);
  }
  await Promise.all(waiting.map((one) => settle(one, inputs, startedAt, deps)));
}

/** An examination on the way may outlast the timeout by this; then the last one has its time. */
const LATE_MS = 5_000;
/** Of more, nobody reads a line for each; what changes is said anyway. */
const MAX_QUIET_NOTES = 8;

async function examineCases(
  cases: readonly Case[],
  limitMs: number,
  over: AbortSignal,
  deps: GateDeps,
): Promise<void> {
  const found = await examine(
    cases.map(({ follower, examinations, baseline }) => ({
      namespace: (follower as Follower).last,
      before: examinations.at(-1)?.snapshot,
      baseline,
    })),
    limitMs,
    { ...deps, signal: AbortSignal.any([deps.signal, over]) },
  );
  cases.forEach((one, index) => {
    // The end came while it was being read: that is a mixture of two states.
    if (one.follower?.over.aborted === false) one.examinations.push(found[index] as Examination);
  });
}

/** From what was seen to the result. */
async function settle(one: Case, inputs: Inputs, startedAt: number, deps: GateDeps): Promise<void> {
  const { follower, progress, examinations } = one;
  if (follower === undefined || progress === undefined) return;
  if (!follower.over.aborted) await follower.confirm();
  const last = examinations.at(-1);
  const before = examinations.at(-2)?.snapshot;
  const known = last && withTrouble(last, before, follower.trouble);
  if (known !== undefined) examinations[examinations.length - 1] = known;
  const finish = (outcome: Outcome, event: string): void => {
    const { name, uid, deletionTimestamp, conditions } = follower.last;
    one.result = {
      ...resultOf(name, outcome, inputs, startedAt, deps),
      elapsedMs: (one.endedAt ?? deps.clock.now()) - startedAt,
      uid,
      deletionTimestamp,
      conditions,
      timeline: progress.end(event),
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
      throw cannot('get', `namespace "${one.target.name}"`, ended.failure, deps.api);
    case 'stopped':
      return finish('cancelled', 'the run was cancelled');
  }
}

function endedText(ended: Extract<Ended, { how: 'deleted' | 'recreated' }>): string {
  return ended.how === 'deleted'
    ? 'gone'
    : `gone; a new namespace with the same name has UID ${ended.uid}`;
}

function resultOf(
  name: string,
  outcome: Outcome,
  inputs: Inputs,
  startedAt: number,
  deps: GateDeps,
): NamespaceResult {
  return {
    name,
    uid: '',
    outcome,
    verdict: verdict(outcome, inputs.policy),
    elapsedMs: deps.clock.now() - startedAt,
    deletionTimestamp: undefined,
    conditions: [],
    diagnosis: undefined,
    timeline: [],
    forced: null,
    leftBehind: undefined,
    examination: undefined,
  };
}

function runResult(
  namespaces: NamespaceResult[],
  {
    cluster,
    startedAt,
    leftOut,
  }: {
    cluster: { version: string; uid: string | undefined };
    startedAt: number;
    leftOut: NotInspected[];
  },
  inputs: Inputs,
  deps: GateDeps,
): RunResult {
  const outcome =
    deps.signal.aborted && namespaces.length === 0
      ? 'cancelled'
      : worst(namespaces, leftOut, inputs);
  return {
    kind: 'teardown',
    gateVersion: deps.gateVersion,
    finishedAt: serverTimestamp(deps),
    elapsedMs: deps.clock.now() - startedAt,
    timeoutMs: inputs.timeoutMs,
    cluster: { server: deps.api.target.server, ...cluster },
    outcome,
    verdict: verdict(outcome, inputs.policy),
    namespaces,
    sharedCauses: [],
    ...(leftOut.length === 0 ? {} : { leftOut }),
  };
}

/** A selector that matches nothing is "not found": it may be a typo, or everything is gone. */
function worst(
  namespaces: readonly NamespaceResult[],
  leftOut: readonly NotInspected[],
  inputs: Inputs,
): Outcome {
  if (namespaces.length === 0) return inputs.terminating === undefined ? 'not-found' : 'deleted';
  const outcomes = namespaces.map(({ outcome }) => outcome);
  // That those which were looked at are gone says nothing about the others.
  return worstOutcome(leftOut.length > 0 ? [...outcomes, 'inconclusive'] : outcomes, inputs.policy);
}
