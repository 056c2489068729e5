import type { Finding, Subject } from '../model/finding.ts';
import { formatCount, name, said, type Words } from './words.ts';

/** "Widget `db`", "Deployment `operators/widget-operator`", "type `configmaps`". */
export function subjectWords(subject: Subject, home: string): Words {
  if (subject.kind === 'APIResource') return ['type ', name(subject.name)];
  const isElsewhere = subject.namespace !== undefined && subject.namespace !== home;
  const path = isElsewhere ? `${subject.namespace}/${subject.name}` : subject.name;
  return [said(subject.kind), ' ', name(path)];
}

/** The subject of a finding, with how many more it stands for. */
export function findingSubject(finding: Finding, home: string): Words {
  if (finding.code === 'content-deleting') return ['objects of type ', name(finding.subject.name)];
  const more = (finding.count ?? 1) - 1;
  const words = subjectWords(finding.subject, home);
  return more > 0 ? [...words, ` (and ${formatCount(more)} more like it)`] : words;
}

/**
 * A finding as something that is waited for. A finalizer of the namespace, or an owner that nobody
 * could name, has the thing that waits as its subject, and "x waits for x" tells nothing.
 */
export function linkWords(finding: Finding, home: string, waits: Finding | undefined): Words {
  const { code, finalizer } = finding;
  if (finalizer !== undefined) {
    if (code === 'namespace-finalizer' || code === 'namespace-spec-finalizer') {
      return ['finalizer ', name(finalizer)];
    }
    if (isOwnerOfItself(finding, waits)) return ['the owner of finalizer ', name(finalizer)];
  }
  return findingSubject(finding, home);
}

/** Whether a finding tells about the owner of what waits, and has no other thing to name for it. */
export function isOwnerOfItself(finding: Finding, waits: Finding | undefined): boolean {
  return (
    finding.code.startsWith('owner-') &&
    waits !== undefined &&
    isSameSubject(waits.subject, finding.subject)
  );
}

export function isSameSubject(a: Subject, b: Subject): boolean {
  return (
    a.kind === b.kind &&
    a.name === b.name &&
    a.namespace === b.namespace &&
    groupOf(a.apiVersion) === groupOf(b.apiVersion)
  );
}

function groupOf(apiVersion: string): string {
  return apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '';
}
