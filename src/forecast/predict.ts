import { dictionary } from '../base/json.ts';
import { type Context, contextOf, subjectOf, typeOf } from '../diagnose/context.ts';
import { diagnose } from '../diagnose/diagnose.ts';
import { ownerResults } from '../diagnose/owner/owner.ts';
import { controllerManager } from '../diagnose/rules/controller.ts';
import { isLost, isOverdue } from '../diagnose/rules/pods.ts';
import { typeName } from '../model/facts.ts';
import type { Diagnosis } from '../model/finding.ts';
import { type Read, read } from '../model/read.ts';
import type { ContentCount, ObjectFacts, PodFacts, Snapshot } from '../model/snapshot.ts';

/**
 * What a deletion of the namespace would leave of it, by how kube-controller-manager works: what has
 * finalizers terminates, what has none goes, and pods go if their kubelet lives. Who should remove the
 * finalizers is read from what is there now; the rules know that everything inside goes with the namespace
 * (`Snapshot.forecast`). A namespace that is terminating already is left as it is. `onlyPods`: pods stand in
 * the way, and nothing else is asked to go before them.
 */
export function predict(now: Snapshot, onlyPods = false): Snapshot {
  if (now.forecast === undefined || now.namespace.deletionTimestamp !== undefined) return now;
  const namespace = { ...now.namespace, deletionTimestamp: now.takenAt, phase: 'Terminating' };
  const asked = { ...now, namespace };
  // Nobody would empty it: everything stays as it is.
  if (controllerManager(contextOf(now)).state === 'stale') return asked;
  const context = contextOf(asked);
  const pods: Snapshot['pods'] = now.pods.ok
    ? read(
        now.pods.value
          .filter((pod) => staysPut(context, pod))
          // Its grace period will be over some day; a kubelet that is there will have confirmed its end.
          .map((pod) =>
            terminated(pod, now.takenAt, isLost(now, pod) ? {} : { deletionGracePeriodSeconds: 0 }),
          ),
      )
    : now.pods;
  const content = now.content.map(({ type, read: count }) => ({
    type,
    read: onlyPods && typeName(type) !== 'pods' ? count : after(count, now.takenAt),
  }));
  return { ...asked, pods, content, partners: deletedWith(now) };
}

/** What is bound to something in the namespace and says that it goes with it, as the content of a VolumeSnapshot. */
function deletedWith({ details, namespace, partners, takenAt }: Snapshot): Snapshot['partners'] {
  const goes = ({ uid }: ObjectFacts): boolean => {
    const detail = details[uid];
    return (
      detail?.ok === true &&
      detail.value.deletionPolicy === 'Delete' &&
      detail.value.references.some((back) => back.namespace === namespace.name)
    );
  };
  return dictionary(
    Object.entries(partners).map(([key, partner]) =>
      partner.ok && partner.value !== undefined && goes(partner.value)
        ? [key, read(terminated(partner.value, takenAt))]
        : [key, partner],
    ),
  );
}

/** Nobody ends it, or something holds it whose owner will not let go. */
function staysPut(context: Context, pod: PodFacts): boolean {
  const { now, nowMs } = context;
  if (isLost(now, pod)) return true;
  if (pod.deletionTimestamp !== undefined && isOverdue(pod, nowMs)) return true;
  const type = typeOf(context, pod);
  return pod.finalizers.some((finalizer) => {
    if (type === undefined) return true;
    const { writers } = pod;
    const held = { finalizer, subject: subjectOf(pod), type, objects: [pod], count: 1, writers };
    return !ownerResults(context, { ...held, since: pod.deletionTimestamp ?? now.takenAt })
      .isExpected;
  });
}

function after(count: Read<ContentCount>, since: string): Read<ContentCount> {
  if (!count.ok) return count;
  const guarded = count.value.guarded.map((group) => ({
    ...group,
    since,
    examples: group.examples.map((object) => terminated(object, since)),
  }));
  const terminating = [...count.value.terminating, ...guarded];
  const total = terminating.reduce((sum, group) => sum + group.count, 0);
  return read({ total, queued: 0, terminating, guarded: [] });
}

/** A deletion raises the generation (apiserver, rest.BeforeDelete): what was said before is about another. */
function terminated<T extends ObjectFacts>(
  object: T,
  deletionTimestamp: string,
  more?: Partial<T>,
): T {
  if (object.deletionTimestamp !== undefined) return object;
  const { generation: before } = object;
  const generation = before === undefined ? undefined : before + 1;
  return { ...object, deletionTimestamp, generation, ...more };
}

/** Since 1.33 pods go first (KEP-5080): while one is held, nothing else is asked to go. */
export function foresee(now: Snapshot, isPodsFirst: boolean): Diagnosis {
  const all = diagnose(predict(now));
  const holdsPods = all.findings.some(
    ({ id, code, subject }) =>
      all.blockers.includes(id) && (subject.kind === 'Pod' || code === 'pod-node-unavailable'),
  );
  return isPodsFirst && holdsPods ? diagnose(predict(now, true)) : all;
}
