import { orderEntry, orderOf } from '../forecast/order.ts';
import { forecastOf } from '../forecast/outcome.ts';
import { basisOf } from '../forecast/predict.ts';
import type { NamespaceResult } from '../model/result.ts';
import { EXAMINE_LIMIT_MS, type Examination, examine } from './examine.ts';
import { addLeftBehind } from './left-behind.ts';
import { type Run, resultOf, type Target } from './run.ts';

/** Changes nothing and does not wait. A namespace that is already terminating is diagnosed as it is. */
export async function forecastAll(
  targets: readonly Target[],
  run: Run,
): Promise<NamespaceResult[]> {
  const there = targets.flatMap(({ first }) => first ?? []);
  const examined = there.map((namespace) => ({ namespace }));
  const found = await examine(examined, EXAMINE_LIMIT_MS, run, run);
  const results = targets.map((target) => {
    const seen = target.first && found[there.indexOf(target.first)];
    if (seen !== undefined) return forecastResult(seen, run);
    return resultOf(target, undefined, 'not-found', 'it does not exist', run);
  });
  return addLeftBehind(results, ({ uid }) => uid !== '', run);
}

function forecastResult({ snapshot, diagnosis }: Examination, run: Run): NamespaceResult {
  const { namespace } = snapshot;
  const { name, deletionTimestamp } = namespace;
  const isGoing = deletionTimestamp !== undefined;
  const outcome = run.signal.aborted ? 'cancelled' : forecastOf(diagnosis, isGoing);
  const now = isGoing
    ? `it has been terminating since ${deletionTimestamp}: this is what holds it now`
    : `if it were deleted now: ${outcome}`;
  const event = run.signal.aborted ? 'the run was cancelled' : now;
  run.log.line(`${name}: ${event}`);
  return {
    ...resultOf({ name }, namespace, outcome, event, run),
    diagnosis,
    ...(isGoing ? {} : { basis: basisOf(snapshot, diagnosis) }),
    order: orderOf(snapshot).map((step) => orderEntry(name, step)),
  };
}
