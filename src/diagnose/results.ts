import { apiVersionOf, groupOf, type TypeRef, typeName } from '../model/facts/metadata.ts';
import type { Finding, Remedy, Subject } from '../model/finding.ts';
import { MAX_EXAMPLES, type ObjectFacts, type ServiceRef } from '../model/snapshot.ts';

/** A finding before the graph links it to others. Without a scope it is about the whole cluster. */
export type RuleResult = Undefinable<
  Omit<Finding, 'id' | 'scope' | 'waitsFor'> & Partial<Pick<Finding, 'scope'> & Ties>
>;
type Undefinable<T> = { [K in keyof T]: object extends Pick<T, K> ? T[K] | undefined : T[K] };

interface Ties {
  /** The namespace itself waits for this; absent for links further down a chain. */
  blocksNamespace: boolean;
  /** Ids of findings that this one waits for. Those without a finding are dropped. */
  waitsFor: string[];
  /** It can proceed only after the namespace was deleted, which closes a circle. */
  waitsForNamespace: boolean;
  /** The workload that should serve the subject, as `actorText` writes it. */
  servedBy: string;
  /** Remedies for a finding that waits for itself through others: no fix is at the end of the chain. */
  wayOut: Remedy[];
  /** The chain ends here only because the examination ended: the finding is no root cause. */
  isCut: boolean;
}

/** Returns the id of a finding, which is the same in every snapshot and every run. */
export function resultId(result: Pick<RuleResult, 'code' | 'subject' | 'finalizer'>): string {
  const { code, subject, finalizer } = result;
  const group = groupOf(subject.apiVersion);
  const place = subject.namespace === undefined ? '' : `${subject.namespace}/`;
  const suffix = finalizer === undefined ? '' : `:${finalizer}`;
  return `${code}:${subject.kind}${group === '' ? '' : `.${group}`}/${place}${subject.name}${suffix}`;
}

export function idsOfHeld(object: ObjectFacts): string[] {
  const held = { code: 'object-finalizer', subject: subjectOf(object) } as const;
  return object.finalizers.map((finalizer) => resultId({ ...held, finalizer }));
}

export function namespaceSubject(name: string): Subject {
  return { apiVersion: 'v1', kind: 'Namespace', name };
}

export function typeSubject(type: TypeRef): Subject {
  return { apiVersion: apiVersionOf(type), kind: 'APIResource', name: typeName(type) };
}

export function definitionSubject(name: string): Subject {
  return { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', name };
}

export function subjectOf({ apiVersion, kind, namespace, name }: Subject): Subject {
  return { apiVersion, kind, ...(namespace && { namespace }), name };
}

export function nameOf({ kind, name }: Pick<Subject, 'kind' | 'name'>): string {
  return `${kind} ${name}`;
}

/** Folds objects with one cause into one finding: the first is its subject, up to ten are examples. */
export function foldSubjects(objects: readonly ObjectFacts[], count = objects.length) {
  const subjects = objects.slice(0, MAX_EXAMPLES).map(subjectOf);
  const subject = subjects[0] ?? { apiVersion: '', kind: '', name: '' };
  return count > 1 ? { subject, count, examples: subjects } : { subject };
}

export function serviceText({ namespace, name }: ServiceRef): string {
  return `Service ${namespace}/${name}`;
}
