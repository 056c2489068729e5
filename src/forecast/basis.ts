import { actorText } from '../diagnose/actors.ts';
import { countsOf } from '../diagnose/content.ts';
import { contextOf } from '../diagnose/context.ts';
import { everythingHeld } from '../diagnose/owner/finalizers.ts';
import { isOfControllerManager, knownFinalizer } from '../diagnose/owner/held.ts';
import { isOfTheCloud } from '../diagnose/owner/owner.ts';
import { findOwner } from '../diagnose/owner/verdict.ts';
import type { Diagnosis } from '../model/finding.ts';
import type { ForecastBasis } from '../model/result.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { predict } from './predict.ts';

/** Returns what a forecast rests on: the objects with finalizers, and the owners that are expected to remove them. */
export function basisOf(now: Snapshot, foreseen: Diagnosis): ForecastBasis {
  const context = contextOf(predict(now));
  const owners = everythingHeld(context).map((held) => {
    if (isOfControllerManager(held)) return 'kube-controller-manager';
    const actor = findOwner(context, held).owner?.actor;
    if (actor !== undefined) return actorText(actor);
    return (isOfTheCloud(held) ? knownFinalizer(held)?.owner : undefined) ?? 'unknown';
  });
  return {
    objectsWithFinalizers: countsOf(now)
      .flatMap(({ guarded, terminating }) => [...guarded, ...terminating])
      .filter(({ finalizers }) => finalizers.length > 0)
      .reduce((sum, { count }) => sum + count, 0),
    owners: [...new Set(owners)],
    notInspected: foreseen.notInspected.length,
  };
}
