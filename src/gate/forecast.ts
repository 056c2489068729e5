import { isVersionFrom } from '../base/text.ts';
import { serverTimestamp } from '../base/time.ts';
import { typeName } from '../diagnose/context.ts';
import { orderCommand, orderOf } from '../forecast/order.ts';
import { forecastOf, outcomeOf } from '../model/outcome.ts';
import type { NamespaceResult } from '../model/result.ts';
import type { Claim, Snapshot } from '../model/snapshot.ts';
import { EXAMINE_LIMIT_MS, type Examination, examine } from './examine.ts';
import { addLeftBehind, type Run, resultOf } from './run.ts';
import type { Target } from './targets.ts';

/**
 * Says what would hold these namespaces if they were deleted now. Nothing is deleted, waited for or changed; one
 * that is terminating already is explained as it is.
 */
export async function forecastAll(
  targets: readonly Target[],
  run: Run,
): Promise<NamespaceResult[]> {
  const there = targets.flatMap(({ first }) => first ?? []);
  const isPodsFirst = deletesPodsFirst(run);
  const found = await examine(
    there.map((namespace) => ({ namespace, before: undefined, baseline: undefined })),
    EXAMINE_LIMIT_MS,
    run,
    { isPodsFirst },
  );
  const results = targets.map(({ name, first }) => {
    const seen = first === undefined ? undefined : found[there.indexOf(first)];
    const at = serverTimestamp(run);
    return seen === undefined
      ? { ...resultOf(name, 'not-found', run), timeline: [{ at, event: 'it does not exist' }] }
      : foreseen(seen, run);
  });
  await addLeftBehind(
    results.filter(({ uid }) => uid !== ''),
    run,
    new Map(found.map(({ snapshot }) => [snapshot.namespace.name, claimsIn(snapshot)])),
  );
  return results;
}

/** Claims have a finalizer, always; of many the first are known. */
function claimsIn({ content }: Snapshot): Claim[] {
  const claims = content.find(({ type }) => typeName(type) === 'persistentvolumeclaims')?.read;
  const groups = claims?.ok ? [...claims.value.terminating, ...claims.value.guarded] : [];
  return groups.flatMap(({ examples }) => examples);
}

function foreseen({ snapshot, diagnosis, cost }: Examination, run: Run): NamespaceResult {
  const { name, uid, creationTimestamp, deletionTimestamp, conditions } = snapshot.namespace;
  const isGoing = deletionTimestamp !== undefined;
  const seen = outcomeOf(diagnosis);
  const now = seen === 'stuck' ? 'would-hang' : seen === 'progressing' ? 'clear' : seen;
  const outcome = isGoing ? now : forecastOf(diagnosis);
  const event = isGoing
    ? `it is terminating since ${deletionTimestamp}: this is what holds it now`
    : `if it were deleted now: ${outcome}`;
  run.log.line(`${name}: ${event}`);
  return {
    ...resultOf(name, outcome, run),
    uid,
    createdAt: creationTimestamp,
    deletionTimestamp,
    conditions,
    diagnosis,
    examination: cost,
    order: orderOf(snapshot).map((step) => ({
      why: step.why,
      command: orderCommand(name, step),
    })),
    timeline: [{ at: serverTimestamp(run), event }],
  };
}

/** On by default since 1.33 (KEP-5080, feature gate OrderedNamespaceDeletion). */
export function deletesPodsFirst({ cluster: { version } }: Pick<Run, 'cluster'>): boolean {
  return isVersionFrom(version, 1, 33);
}
