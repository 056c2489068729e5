import { dictionary } from '../base/json.ts';
import { actorText } from '../diagnose/actors.ts';
import { countsOf } from '../diagnose/content.ts';
import { type Context, contextOf } from '../diagnose/context.ts';
import { diagnose } from '../diagnose/diagnose.ts';
import { sum } from '../diagnose/movement.ts';
import { everythingHeld } from '../diagnose/owner/finalizers.ts';
import {
  finalizersOfObject,
  isOfControllerManager,
  knownFinalizer,
} from '../diagnose/owner/held.ts';
import { isOfTheCloud, ownerResults } from '../diagnose/owner/owner.ts';
import { findOwner } from '../diagnose/owner/verdict.ts';
import { controllerManager } from '../diagnose/rules/controller.ts';
import { isNodeLost } from '../diagnose/rules/pods.ts';
import { groupOf, isBuiltIn, typeName } from '../model/facts/metadata.ts';
import { hasPodEnded, isOverdue } from '../model/facts/workloads.ts';
import { type Diagnosis, findingsOf } from '../model/finding.ts';
import { itemsIn, type Read, readOk, valueIn } from '../model/read.ts';
import type { ForecastBasis } from '../model/result.ts';
import type { ContentCount, ObjectFacts, PodFacts, Snapshot } from '../model/snapshot.ts';

/**
 * Predicts what a deletion of the namespace would leave, by how kube-controller-manager works: objects with finalizers
 * terminate, objects without are deleted, and pods end if their kubelet runs. Owners are found in the present state; the rules
 * know what goes with the namespace. One that is terminating does not change. `onlyPods`: only pods were to be deleted yet.
 */
export function predict(now: Snapshot, onlyPods = false): Snapshot {
  if (now.forecast === undefined || now.namespace.deletionTimestamp !== undefined) return now;
  const namespace = { ...now.namespace, deletionTimestamp: now.takenAt, phase: 'Terminating' };
  const asked = { ...now, namespace };
  // Without kube-controller-manager nothing would be deleted.
  if (controllerManager(contextOf(now)).state === 'stale') return asked;
  const context = contextOf(asked);
  // A grace period will end, and a running kubelet will have confirmed that the containers ended.
  const ended = { deletionGracePeriodSeconds: 0 };
  const pods = itemsIn(now.pods)
    .filter((pod) => cannotEnd(context, pod))
    .map((pod) => terminated(pod, now.takenAt, isNodeLost(now, pod) ? {} : ended));
  const content = now.content.map(({ type, read: count }) => ({
    type,
    read: onlyPods && typeName(type) !== 'pods' ? count : afterDeletion(count, now.takenAt),
  }));
  const partners = partnersAfterDeletion(now);
  return { ...asked, pods: now.pods.ok ? readOk(pods) : now.pods, content, partners };
}

/** Returns what was read outside: what is bound to the namespace is deleted with it, as a composite with its claim, and so is what that owns. */
function partnersAfterDeletion({ details, namespace, partners, takenAt }: Snapshot) {
  const all = Object.values(partners).flatMap((read) => valueIn(read) ?? []);
  const bound = all.filter(({ apiVersion, uid }) => {
    const { settings = [], references = [] } = valueIn(details[uid]) ?? {};
    const isKept = settings.some((one) => /^spec\.\w*Policy=(?:Orphan|Retain)$/.test(one));
    const isBound = references.some((back) => back.namespace === namespace.name);
    return isBound && !isKept && !isBuiltIn(groupOf(apiVersion));
  });
  const going = new Set(bound.map(({ uid }) => uid));
  // The set grows while it is read.
  for (const owner of going)
    for (const { ownerReferences, uid } of all)
      if (ownerReferences.some((by) => by.uid === owner)) going.add(uid);
  const after = Object.entries(partners).map(([key, read]) => {
    const partner = valueIn(read);
    const goes = partner && going.has(partner.uid);
    return [key, goes ? readOk(terminated(partner, takenAt)) : read] as const;
  });
  return dictionary(after);
}

/** Reports whether a pod would remain: no kubelet ends it, or an owner will not remove its finalizer. */
function cannotEnd(context: Context, pod: PodFacts): boolean {
  const { now, nowMs } = context;
  // A pod that has finished is deleted without its kubelet (kubernetes pkg/registry/core/pod, CheckGracefulDelete).
  if (isNodeLost(now, pod) && !hasPodEnded(pod)) return true;
  if (pod.deletionTimestamp !== undefined && isOverdue(pod, nowMs)) return true;
  const all = finalizersOfObject(context, terminated(pod, now.takenAt));
  return all.some((held) => !ownerResults(context, held).isExpected);
}

/** Returns the diagnosis of a deletion. Since 1.33, nothing else is deleted while a pod is held (KEP-5080). */
export function foresee(now: Snapshot, isPodsFirst: boolean): Diagnosis {
  const all = diagnose(predict(now));
  // A grace period ends, and then the rest is deleted.
  const holdsPods = findingsOf(all, all.blockers).some(
    ({ code, subject: { kind } }) => /^(?:Pod|Node)$/.test(kind) && code !== 'pod-grace-period',
  );
  return isPodsFirst && holdsPods ? diagnose(predict(now, true)) : all;
}

/** Returns what a forecast rests on: the objects with finalizers, and the owners that are expected to remove them. */
export function basisOf(now: Snapshot, { notInspected }: Diagnosis): ForecastBasis {
  const context = contextOf(predict(now));
  const owners = everythingHeld(context).map((held) => {
    if (isOfControllerManager(held)) return 'kube-controller-manager';
    const actor = findOwner(context, held).owner?.actor;
    if (actor !== undefined) return actorText(actor);
    return (isOfTheCloud(held) ? knownFinalizer(held)?.owner : undefined) ?? 'unknown';
  });
  const all = countsOf(now).flatMap(({ guarded, terminating }) => [...guarded, ...terminating]);
  return {
    objectsWithFinalizers: sum(all.map((one) => (one.finalizers.length > 0 ? one.count : 0))),
    owners: [...new Set(owners)],
    notInspected: notInspected.length,
  };
}

/** Returns the content after a deletion request: objects with finalizers terminate, all others are deleted. */
function afterDeletion(count: Read<ContentCount>, since: string): Read<ContentCount> {
  if (!count.ok) return count;
  const guarded = count.value.guarded.map((group) => ({
    ...group,
    since,
    examples: group.examples.map((object) => terminated(object, since)),
  }));
  const terminating = [...count.value.terminating, ...guarded];
  const total = sum(terminating.map((group) => group.count));
  return readOk({ total, queued: 0, terminating, guarded: [] });
}

/** Returns the object as terminating. Its conditions are about an earlier generation then (apiserver, rest.BeforeDelete). */
function terminated<T extends ObjectFacts>(object: T, at: string, more?: Partial<T>): T {
  if (object.deletionTimestamp !== undefined) return object;
  const generation = object.generation && object.generation + 1;
  return { ...object, deletionTimestamp: at, generation, ...more };
}
