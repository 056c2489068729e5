import { typeName } from '../model/facts/metadata.ts';
import { type Diagnosis, type Finding, findingsOf } from '../model/finding.ts';
import { type Read, readOk } from '../model/read.ts';
import type { ContentCount, ObjectFacts, Snapshot } from '../model/snapshot.ts';
import { wantedFor } from './wanted.ts';

/** Returns the content after a deletion request: objects with finalizers terminate, all others are deleted. */
export function afterDeletion(count: Read<ContentCount>, since: string): Read<ContentCount> {
  if (!count.ok) return count;
  const guarded = count.value.guarded.map((group) => ({
    ...group,
    since,
    examples: group.examples.map((object) => terminated(object, since)),
  }));
  const terminating = [...count.value.terminating, ...guarded];
  const total = terminating.reduce((sum, group) => sum + group.count, 0);
  return readOk({ total, queued: 0, terminating, guarded: [] });
}

/**
 * Returns the object as terminating. A deletion raises the generation (apiserver, rest.BeforeDelete), so
 * earlier conditions are about another generation.
 */
export function terminated<T extends ObjectFacts>(
  object: T,
  deletionTimestamp: string,
  more?: Partial<T>,
): T {
  if (object.deletionTimestamp !== undefined) return object;
  const { generation: before } = object;
  const generation = before === undefined ? undefined : before + 1;
  return { ...object, deletionTimestamp, generation, ...more };
}

/** Reports whether the finding is about pods. Since Kubernetes 1.33 they are deleted before all other objects. */
export function isAboutPods({ code, subject }: Finding): boolean {
  return subject.kind === 'Pod' || code === 'pod-node-unavailable';
}

/** Findings that hold no object for long. */
const PASSING: readonly Finding['code'][] = ['owner-running', 'content-deleting'];

/**
 * Adds what will hold the namespace after its pods to the first finding about pods: objects with finalizers whose
 * deletion Kubernetes has not requested yet. `explain` diagnoses the later state from what was read now.
 */
export function withQueue(
  now: Snapshot,
  diagnosis: Diagnosis,
  explain: (later: Snapshot) => Diagnosis,
): Diagnosis {
  const first = findingsOf(diagnosis, diagnosis.blockers).find(isAboutPods);
  if (first === undefined || now.forecast !== undefined) return diagnosis;
  const later: Snapshot = {
    ...now,
    pods: readOk([]),
    content: now.content.flatMap((content) =>
      typeName(content.type) === 'pods'
        ? []
        : { ...content, read: afterDeletion(content.read, now.takenAt) },
    ),
  };
  const asked = new Set<string>([...Object.keys(now.cluster), ...wantedFor(now).cluster]);
  const isUnread = wantedFor(later).cluster.some((key) => !asked.has(key));
  const then = explain(later);
  const next = findingsOf(then, then.blockers)
    .filter(({ id }) => !diagnosis.blockers.includes(id))
    .flatMap((held) => queuedText(held, findingsOf(then, held.waitsFor), isUnread));
  const findings = diagnosis.findings.map((finding) =>
    finding === first && next.length > 0
      ? { ...finding, next: [...(finding.next ?? []), ...next] }
      : finding,
  );
  return { ...diagnosis, findings };
}

function queuedText(held: Finding, waitsFor: readonly Finding[], isUnread: boolean): string[] {
  const { subject, finalizer, message } = held;
  const what = `${subject.kind} ${subject.name}`;
  const [cause] = waitsFor.filter(({ code }) => !PASSING.includes(code));
  if (cause === undefined) return [];
  if (isUnread) return [`${what} has finalizer ${finalizer}, whose owner was not searched yet`];
  const { kind, namespace, name } = cause.subject;
  const isSame = kind === subject.kind && name === subject.name && namespace === subject.namespace;
  // The finding names no owner: the object and its finalizer were just named.
  if (cause.continuation !== undefined && (isSame || kind === 'CustomResourceDefinition')) {
    return [`${what} ${message}, and ${cause.continuation}`];
  }
  const place = namespace === undefined ? name : `${namespace}/${name}`;
  return [`${what} ${message}, and ${kind} ${place} ${cause.message}`];
}
