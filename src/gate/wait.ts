import { formatDuration, serverTime } from '../base/time.ts';
import { isActive, type Outcome, outcomeOf } from '../model/outcome.ts';
import type { NamespaceResult } from '../model/result.ts';
import { readBaselines } from '../observe/observe.ts';
import {
  EXAMINE_LIMIT_MS,
  type Examination,
  examinationTimes,
  examine,
  isProvenPermanent,
} from './examine.ts';
import { type Follower, Following } from './follow.ts';
import { causeText, describeStart, type Progress, startProgress } from './progress.ts';
import { type Existing, type Run, resultOf, type Target } from './run.ts';

interface Case {
  target: Existing;
  follower: Follower;
  progress: Progress;
  examinations: Examination[];
}

export interface Waited {
  result: NamespaceResult;
  /** If the gate had to wait for it. */
  waited?: Case;
}

/** An examination may exceed the timeout by so much. Afterwards the last one begins. */
const LATE_MS = 5_000;

export async function waitForAll(
  targets: readonly Target[],
  run: Run,
  signal: AbortSignal,
): Promise<Waited[]> {
  const open = targets.filter(isGoing);
  const cases = open.length === 0 ? [] : await waitFor(open, run, signal);
  return targets.map((target): Waited => {
    const waited = cases[open.indexOf(target as Existing)];
    if (waited !== undefined) return { result: resultAfter(waited, run), waited };
    return { result: settledResult(target, run) };
  });
}

function isGoing(target: Target): target is Existing {
  return target.first !== undefined && (target.isAsked || !!target.first.deletionTimestamp);
}

function settledResult(target: Target, run: Run): NamespaceResult {
  const { first, refusal } = target;
  const settled = (outcome: Outcome, event: string) => resultOf(target, first, outcome, event, run);
  if (first === undefined) return settled('not-found', 'it does not exist');
  if (run.signal.aborted) return settled('cancelled', 'the run was cancelled');
  const why = refusal === undefined ? 'was not requested' : `failed: ${refusal}`;
  return settled('not-terminating', `it exists and its deletion ${why}`);
}

async function waitFor(
  targets: readonly Existing[],
  run: Run,
  signal: AbortSignal,
): Promise<Case[]> {
  const { clock, inputs, log, startedAt } = run;
  const wait = inputs.timeoutMs === 0 ? '' : `, waiting up to ${formatDuration(inputs.timeoutMs)}`;
  const progress = new Map(
    targets.map(({ name, first, timeline }) => {
      log.line(`${name}: ${describeStart(first)}${wait}`);
      return [name, startProgress(first, run, timeline)];
    }),
  );
  const idle = inputs.timeoutMs === 0 && !isActive(inputs.force);
  const onChange = (one: Follower): void => progress.get(one.name)?.changed(one);
  const firsts = targets.map(({ first }) => first);
  const following = new Following(firsts, { ...run, signal, idle, onChange });
  const { over } = following;
  const cases = targets.map((target, index): Case => {
    const follower = following.followers[index] as Follower;
    return { target, follower, progress: progress.get(target.name) as Progress, examinations: [] };
  });
  const bounded = { ...run, signal: AbortSignal.any([run.signal, over]) };
  const early = readEarlyBaselines(cases, bounded);
  const deadline = startedAt + inputs.timeoutMs;
  const permanent = new Set<Case>();
  for (const at of [...examinationTimes(inputs, startedAt), deadline]) {
    await clock.sleep(Math.max(0, at - clock.now()), over);
    const open = cases.filter((one) => !permanent.has(one) && one.follower.ended === undefined);
    if (open.length === 0) break;
    await early;
    const untilMs = at === deadline ? Number.POSITIVE_INFINITY : deadline + LATE_MS;
    const limitMs = Math.min(EXAMINE_LIMIT_MS, untilMs - clock.now());
    const found = limitMs > 0 ? await examineCases(open, limitMs, bounded) : [];
    for (const [index, seen] of found.entries()) {
      const one = open[index] as Case;
      // If it was deleted during the reads, the snapshot is a mixture of two states.
      if (one.follower.ended !== undefined) continue;
      one.examinations.push(seen);
      const cause = at === deadline ? undefined : causeText(seen.diagnosis);
      if (cause !== undefined) one.progress.note(cause);
      if (at === deadline || !inputs.failFast || !isProvenPermanent(one.examinations)) continue;
      one.progress.note('the hang is proven permanent: fail-fast ends the wait');
      permanent.add(one);
    }
  }
  await following.confirm();
  return cases;
}

/** Age up to which a deletion may still have its workloads. */
const YOUNG_MS = 30_000;

/** Reads the baselines of namespaces whose deletion was requested elsewhere a moment ago. */
async function readEarlyBaselines(cases: readonly Case[], run: Run): Promise<void> {
  const young = cases.filter(
    ({ target: { baseline, first } }) =>
      baseline === undefined &&
      !(serverTime(run) - Date.parse(first.deletionTimestamp ?? '') >= YOUNG_MS),
  );
  if (run.inputs.timeoutMs === 0 || young.length === 0) return;
  const names = young.map(({ target }) => target.name);
  const baselines = await readBaselines(names, run);
  for (const one of young) one.target = { ...one.target, baseline: baselines.get(one.target.name) };
}

export function examineCases(
  cases: readonly Case[],
  limitMs: number,
  run: Run,
  isCompared = true,
): Promise<Examination[]> {
  const examined = cases.map(({ target: { baseline }, follower, examinations }) => {
    const before = isCompared ? examinations.at(-1)?.snapshot : undefined;
    return { namespace: follower.last, before, baseline };
  });
  return examine(examined, limitMs, run);
}

/** From before the namespace could no longer be read: the diagnosis says when it was made, and explains no outcome. */
function lastSeen({ examinations, follower: { name, trouble } }: Case): Examination | undefined {
  const last = examinations.at(-1);
  if (trouble === undefined || last === undefined) return last;
  const isBlind = ({ snapshot: { discovery, unread } }: Examination): boolean =>
    !discovery.ok || unread.some(({ reason }) => reason === trouble.message);
  const seen = examinations.findLast((one) => !isBlind(one)) ?? last;
  const reason = `${trouble.message}; the report shows what was read at ${seen.snapshot.takenAt}`;
  const grant = { apiGroup: '', resource: 'namespaces', verb: 'get' };
  const own = { what: `namespace ${name}`, reason, ...(trouble.kind === 'forbidden' && { grant }) };
  const notInspected = [own, ...seen.diagnosis.notInspected];
  return { ...seen, diagnosis: { ...seen.diagnosis, notInspected } };
}

function resultAfter(one: Case, run: Run): NamespaceResult {
  const { target, follower, progress } = one;
  const { ended, last: facts, trouble } = follower;
  const last = lastSeen(one);
  const finish = (outcome: Outcome, event: string): NamespaceResult => ({
    ...resultOf(target, facts, outcome, event, run),
    elapsedMs: (ended?.at ?? run.clock.now()) - run.startedAt,
    timeline: progress.end(event),
    ...(last && { diagnosis: last.diagnosis }),
  });
  if (ended?.how === 'stopped') return finish('cancelled', 'the run was cancelled');
  if (ended !== undefined && 'event' in ended)
    return { ...finish(ended.how, ended.event), diagnosis: undefined };
  if (trouble !== undefined) {
    const event = `it could not be read at the end: ${trouble.message}`;
    return { ...finish('inconclusive', event), isUnread: true };
  }
  if (last === undefined) return finish('inconclusive', 'there was no time to examine it');
  const outcome = outcomeOf(last.diagnosis);
  return finish(outcome, `still there: ${outcome}`);
}
