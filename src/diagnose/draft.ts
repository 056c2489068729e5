import type { Finding, FindingCode, Subject } from '../model/finding.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { ParsedConditions } from './conditions.ts';

/** What a rule looks at. Rules are pure: data in, drafts out. */
export interface View {
  now: Snapshot;
  /** An earlier look during the same wait, to tell slow from stuck. */
  before: Snapshot | undefined;
  conditions: ParsedConditions;
  /** `now.takenAt` in ms since the epoch: the server's clock. */
  nowMs: number;
}

export type Rule = (view: View) => Draft[];

/** A finding before it is tied into the graph. */
export interface Draft extends Omit<Finding, 'id' | 'waitsFor'> {
  /** Why the namespace itself waits for this; absent for links further down a chain. */
  blocksNamespace?: string;
  /** Findings that this one waits for. Ids that no rule produced are dropped. */
  waitsFor?: { id: string; because: string }[];
  /** Why it can only proceed after the namespace is gone: what closes a circle. */
  waitsForNamespace?: string;
}

/** The same finding has the same id in every look and every run. */
export function findingId(code: FindingCode, subject: Subject, finalizer?: string): string {
  const group = subject.apiVersion.includes('/') ? `.${subject.apiVersion.split('/')[0]}` : '';
  const place = subject.namespace === undefined ? '' : `${subject.namespace}/`;
  const suffix = finalizer === undefined ? '' : `:${finalizer}`;
  return `${code}:${subject.kind}${group}/${place}${subject.name}${suffix}`;
}

export function idOf(draft: Draft): string {
  return findingId(draft.code, draft.subject, draft.finalizer);
}

export function namespaceSubject(name: string): Subject {
  return { apiVersion: 'v1', kind: 'Namespace', name };
}
