import { MAX_EXAMPLES, type ObjectFacts } from '../observe/snapshot.ts';
import type { Finding, Subject } from './diagnosis.ts';

export function subjectOf(object: ObjectFacts): Subject {
  return {
    apiVersion: object.apiVersion,
    kind: object.kind,
    ...(object.namespace === '' ? {} : { namespace: object.namespace }),
    name: object.name,
  };
}

/** Many objects with one cause are one finding: the first is its subject, up to ten are examples. */
export function foldSubjects(
  objects: readonly ObjectFacts[],
  count = objects.length,
): Pick<Finding, 'subject' | 'count' | 'examples'> {
  const subjects = objects.slice(0, MAX_EXAMPLES).map(subjectOf);
  const subject = subjects[0] ?? { apiVersion: '', kind: '', name: '' };
  return count > 1 ? { subject, count, examples: subjects } : { subject };
}
