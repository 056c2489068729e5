import type { Finding, Subject } from '../model/finding.ts';
import { MAX_EXAMPLES, type ObjectFacts } from '../model/snapshot.ts';

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

const MAX_NAMES = 5;

/** A few names for a sentence: `web-0, web-1, web-2, web-3, web-4 and 995 more`. */
export function namesOf(objects: readonly Pick<ObjectFacts, 'name'>[]): string {
  const names = objects.slice(0, MAX_NAMES).map(({ name }) => name);
  const more = objects.length - names.length;
  return `${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
