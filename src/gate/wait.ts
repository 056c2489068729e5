import { formatDuration, serverTime } from '../base/time.ts';
import { diagnose } from '../diagnose/diagnose.ts';
import { collectItems, type KubernetesApi } from '../kubernetes/api.ts';
import { collectionPath } from '../kubernetes/paths.ts';
import { objectFacts, POD_TYPE } from '../model/facts/metadata.ts';
import { isActive, type Outcome, outcomeOf } from '../model/outcome.ts';
import type { ReadFailure } from '../model/read.ts';
import type { NamespaceResult } from '../model/result.ts';
import type { Baseline } from '../model/snapshot.ts';
import { readBaselines } from '../observe/observe.ts';
import {
  EXAMINE_LIMIT_MS,
  type Examination,
  examinationTimes,
  examine,
  isProvenPermanent,
} from './examine.ts';
import { allOver, type Follower, follow } from './follow.ts';
import { describeStart, type Progress, startProgress } from './progress.ts';
import { type Existing, type Run, resultOf, type Target } from './run.ts';

/** A target and its result after the wait; `follower` and `examinations` if the gate had to wait for it. */
export interface Waited {
  target: Target;
  result: NamespaceResult;
  follower?: Follower;
  examinations: readonly Examination[];
}

/** A namespace that the gate waits for. */
interface Case {
  target: Existing;
  follower: Follower;
  progress: Progress;
  examinations: Examination[];
}

/** Time by which an examination may exceed the timeout. Afterwards the last examination begins. */
const LATE_MS = 5_000;
/**
 * Number of namespaces above which the log has no line for each of them that nothing has changed. Changes are always
 * logged.
 */
const MAX_QUIET_NOTES = 8;

/**
 * Waits for all namespaces at the same time and examines them together. A namespace that is deleted gets its
 * result without the others. Those that remain are followed further, until the signal aborts.
 */
export async function waitForAll(
  targets: readonly Target[],
  run: Run,
  signal: AbortSignal,
): Promise<Waited[]> {
  const results = targets.map((target) => settledResult(target, run));
  const open = targets.filter((_, index) => results[index] === undefined) as Existing[];
  const cases = startFollowing(open, run, signal);
  const baselines = await waitFor(cases, run);
  const ended = await Promise.all(cases.map((one) => resultAfter(one, run)));
  return targets.map((target, index) => {
    const result = results[index];
    if (result !== undefined) return { target, result, examinations: [] };
    const at = open.indexOf(target as Existing);
    const { follower, examinations } = cases[at] as Case;
    const baseline = target.baseline ?? baselines.get(target.name);
    const known = { ...target, baseline };
    return { target: known, result: ended[at] as NamespaceResult, follower, examinations };
  });
}

/** Returns the result if it is already known. */
function settledResult(target: Target, run: Run): NamespaceResult | undefined {
  const { first, refusal, isAsked } = target;
  const settled = (outcome: Outcome, event: string) => resultOf(target, first, outcome, event, run);
  if (first === undefined) return settled('not-found', 'it does not exist');
  if (first.deletionTimestamp !== undefined || isAsked === true) return undefined;
  if (run.signal.aborted) return settled('cancelled', 'the run was cancelled');
  return settled(
    'not-terminating',
    refusal === undefined
      ? 'it exists and its deletion was not requested'
      : `its deletion was refused: ${refusal}`,
  );
}

function startFollowing(targets: readonly Existing[], run: Run, signal: AbortSignal): Case[] {
  const { inputs, log } = run;
  const wait = inputs.timeoutMs === 0 ? '' : `, waiting up to ${formatDuration(inputs.timeoutMs)}`;
  const all = targets.map(({ name, first, timeline }) => {
    log.line(`${name}: ${describeStart(first)}${wait}`);
    return startProgress(first, run, timeline);
  });
  const starts = targets.map(({ first }, index) => {
    return { first, onChange: (all[index] as Progress).changed };
  });
  const idle = inputs.timeoutMs === 0 && !isActive(inputs.force);
  const followers = follow(starts, { ...run, signal, idle });
  return targets.map((target, index) => {
    const follower = followers[index] as Follower;
    const progress = all[index] as Progress;
    void follower.ended.then((ended) => 'event' in ended && progress.note(ended.event));
    return { target, follower, progress, examinations: [] };
  });
}

/** Waits until all are deleted or the timeout is over, and examines meanwhile. Returns baselines that were read early. */
async function waitFor(
  cases: readonly Case[],
  run: Run,
): Promise<ReadonlyMap<string, Baseline | undefined>> {
  const { clock, inputs, startedAt } = run;
  const baselines = readEarlyBaselines(cases, run);
  if (cases.length === 0) return baselines;
  const deadline = startedAt + inputs.timeoutMs;
  const over = allOver(cases.map(({ follower }) => follower));
  const times = examinationTimes(inputs, startedAt);
  for (const { follower, progress } of cases.length <= MAX_QUIET_NOTES ? cases : []) {
    const whatIsLeft = () => describeHeldPod(follower, run.api);
    void progress.noteWhenQuiet(times[0] ?? deadline, whatIsLeft, follower.over);
  }
  const done = new Set<Case>();
  const open = () => cases.filter((one) => !done.has(one) && !one.follower.over.aborted);
  for (const at of times) {
    await clock.sleep(Math.max(0, at - clock.now()), over);
    if (open().length === 0) break;
    const latest = Math.min(EXAMINE_LIMIT_MS, deadline + LATE_MS - clock.now());
    if (latest > 0) await examineOpen(open(), baselines, latest, over, run);
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
    await examineOpen(open(), baselines, EXAMINE_LIMIT_MS, over, run);
  }
  return baselines;
}

const MAX_LISTED = 20;

/**
 * Describes the first terminating pod and what holds it. Kubernetes deletes pods first and does not count them in
 * the namespace's conditions, whose counts the log already has. It is not a diagnosis and decides nothing.
 */
async function describeHeldPod(
  { name, over: signal }: Follower,
  api: KubernetesApi,
): Promise<string | undefined> {
  const options = { signal, metadataOnly: true, limit: MAX_LISTED, maxItems: MAX_LISTED };
  const begin = collectItems((item) => objectFacts(item, POD_TYPE));
  const listed = await api.list(collectionPath(POD_TYPE, name), begin, options);
  const pods = listed.ok ? listed.value.kept : [];
  const held = pods.find(({ deletionTimestamp }) => deletionTimestamp !== undefined);
  const finalizers = held?.finalizers.join(', ');
  return (
    held && `Pod ${held.name} is ${finalizers ? `held by ${finalizers}` : 'still terminating'}`
  );
}

/** Age up to which a deletion may still have its workloads. */
const YOUNG_MS = 30_000;

/** Begins to read baselines of namespaces whose deletion was requested elsewhere a moment ago, into the map. */
function readEarlyBaselines(
  cases: readonly Case[],
  run: Run,
): ReadonlyMap<string, Baseline | undefined> {
  const found = new Map<string, Baseline | undefined>();
  const young = cases.filter(
    ({ target: { baseline, first } }) =>
      baseline === undefined &&
      !(serverTime(run) - Date.parse(first.deletionTimestamp ?? '') >= YOUNG_MS),
  );
  if (run.inputs.timeoutMs === 0 || young.length === 0) return found;
  const names = young.map(({ target }) => target.name);
  void readBaselines(names, run).then((baselines) => {
    for (const [name, baseline] of baselines) found.set(name, baseline);
  });
  return found;
}

async function examineOpen(
  open: readonly Case[],
  baselines: ReadonlyMap<string, Baseline | undefined>,
  limitMs: number,
  over: AbortSignal,
  run: Run,
): Promise<void> {
  const found = await examine(
    open.map(({ target, follower, progress, examinations }) => ({
      namespace: follower.last,
      before: examinations.at(-1)?.snapshot,
      watched: progress.watched(),
      baseline: target.baseline ?? baselines.get(target.name),
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
async function resultAfter(one: Case, run: Run): Promise<NamespaceResult> {
  const { target, follower, progress, examinations } = one;
  if (!follower.over.aborted) await follower.confirm();
  const ended = follower.over.aborted ? await follower.ended : undefined;
  const { last: namespace, trouble } = follower;
  const failure = ended?.how === 'unauthorized' ? ended.failure : trouble;
  const last = failure === undefined ? examinations.at(-1) : lastSeen(examinations, failure);
  const finish = (outcome: Outcome, event: string): NamespaceResult => ({
    ...resultOf(target, namespace, outcome, event, run),
    elapsedMs: (ended?.at ?? run.clock.now()) - run.startedAt,
    timeline: progress.end(event),
    ...(last === undefined || outcome === 'deleted' || outcome === 'recreated'
      ? {}
      : { diagnosis: last.diagnosis, examination: last.cost }),
  });
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
