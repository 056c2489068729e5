import { dictionary } from '../base/json.ts';
import { diagnose } from '../diagnose/diagnose.ts';
import { wantedAnyway, wantedFor } from '../diagnose/wanted.ts';
import { foresee, predict } from '../forecast/predict.ts';
import type { Inputs } from '../inputs.ts';
import type { Diagnosis } from '../model/finding.ts';
import { isPermanent } from '../model/outcome.ts';
import type { Baseline, NamespaceFacts, Snapshot } from '../model/snapshot.ts';
import { oneAfterAnother } from '../observe/collections.ts';
import { type ObserveDeps, observe } from '../observe/observe.ts';
import type { Run } from './run.ts';

/** Limit for the reads of one examination; sources that were not read by then are "not inspected". */
export const EXAMINE_LIMIT_MS = 30_000;
/** For the diagnosis after the reads. Namespaces that are not explained by then are reported as such. */
const EXPLAIN_MS = 5_000;
/** Between the last two examinations, which distinguish slow from stuck. */
const COMPARE_MS = 30_000;
const FAIL_FAST = { everyMs: 30_000, unchangedMs: 90_000 };

export interface Examination {
  snapshot: Snapshot;
  diagnosis: Diagnosis;
  at: number;
  endedAt: number;
}

interface Examined {
  namespace: NamespaceFacts;
  before?: Snapshot | undefined;
  baseline?: Baseline | undefined;
}

export async function examine(
  namespaces: readonly Examined[],
  limitMs: number,
  deps: ObserveDeps & { inputs?: Pick<Inputs, 'ownerLogs'> },
  /** For a forecast: diagnoses the namespaces as if they were deleted now by this cluster. */
  ahead?: Pick<Run, 'isPodsFirst'>,
): Promise<Examination[]> {
  const at = deps.clock.now();
  const within = (ms: number): AbortSignal =>
    AbortSignal.any([deps.signal, AbortSignal.timeout(Math.max(1, Math.ceil(ms)))]);
  const byName = new Map(namespaces.map((one) => [one.namespace.name, one]));
  /** Adds to a snapshot, once its content was read, what was known before, and returns the snapshot to compare with. */
  const complete = (snapshot: Snapshot): Snapshot | undefined => {
    const { name } = snapshot.namespace;
    const { baseline, before } = byName.get(name) as Examined;
    if (baseline !== undefined) snapshot.baseline = baseline;
    if (deps.inputs?.ownerLogs) snapshot.logs ??= {};
    if (ahead !== undefined) {
      snapshot.forecast ??= {
        deletions: dictionary(),
        present: { content: snapshot.content, pods: snapshot.pods },
        together: [...byName.keys()].filter((other) => other !== name),
      };
    }
    return before;
  };
  const snapshots = await observe(
    namespaces.map(({ namespace }) => namespace),
    (snapshot) => {
      const before = complete(snapshot);
      return wantedFor(predict(snapshot), before);
    },
    { ...deps, signal: within(limitMs) },
    ({ namespace }) =>
      wantedAnyway(namespace, ahead !== undefined, byName.get(namespace.name)?.before),
  );
  const explain = (snapshot: Snapshot): Diagnosis => {
    const before = complete(snapshot);
    return ahead ? foresee(snapshot, ahead.isPodsFirst) : diagnose(snapshot, before);
  };
  const explaining = within(EXPLAIN_MS);
  const diagnoses = await oneAfterAnother(snapshots, explain, { ...deps, signal: explaining });
  const endedAt = deps.clock.now();
  return snapshots.map((snapshot, index) => {
    const diagnosis = diagnoses[index] ?? explain(unexamined(snapshot));
    return { snapshot, diagnosis, at, endedAt };
  });
}

function unexamined(snapshot: Snapshot): Snapshot {
  const what = `what holds namespace ${snapshot.namespace.name}`;
  const unread = [...snapshot.unread, { what, reason: 'the time for explaining was over' }];
  return { ...snapshot, content: [], cluster: {}, unread };
}

/** Once shortly before the deadline, for comparison; with fail-fast also earlier. */
export function examinationTimes(
  { failFast, timeoutMs }: Pick<Inputs, 'failFast' | 'timeoutMs'>,
  startedAt: number,
): number[] {
  if (timeoutMs === 0) return [];
  const compareAt = startedAt + Math.max(timeoutMs - COMPARE_MS, timeoutMs / 3);
  const times: number[] = [];
  const { everyMs } = FAIL_FAST;
  for (let at = startedAt + everyMs; failFast && at < compareAt; at += everyMs) times.push(at);
  return [...times, compareAt];
}

/** Reports whether the same causes, which do not heal by themselves, have held for as long as Kubernetes retries. */
export function isProvenPermanent(examinations: readonly Examination[]): boolean {
  const last = examinations.at(-1);
  if (last === undefined || !isPermanent(last.diagnosis)) return false;
  const causesOf = ({ diagnosis }: Examination): string => diagnosis.rootCauses.join('\n');
  const other = examinations.findLastIndex((one) => causesOf(one) !== causesOf(last));
  return last.at - (examinations[other + 1] as Examination).at >= FAIL_FAST.unchangedMs;
}
