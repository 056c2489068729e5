import { type JsonObject, recordAt, stringAt } from '../../../src/base/json.ts';
import { badRequest } from './status.ts';

type Matcher = (object: JsonObject) => boolean;

/** `fieldSelector` and `labelSelector` of a list or watch, as far as the server's types share them. */
export function parseSelectors(query: URLSearchParams): Matcher {
  const matchers = [
    ...requirements(query.get('fieldSelector')).map(fieldMatcher),
    ...requirements(query.get('labelSelector')).map(labelMatcher),
  ];
  return (object) => matchers.every((matches) => matches(object));
}

/** Splits at commas outside of parentheses: `a in (b,c),!d`. */
function requirements(selector: string | null): string[] {
  return (selector ?? '').match(/[^,(]+(\([^)]*\))?/g) ?? [];
}

function fieldMatcher(requirement: string): Matcher {
  const match = /^([^=!]+)(==|=|!=)(.*)$/.exec(requirement);
  if (match === null)
    throw badRequest(`invalid selector: '${requirement}'; can't understand '${requirement}'`);
  const [, field = '', operator, value = ''] = match;
  // Other fields exist for some types only (spec.nodeName, status.phase, involvedObject.name).
  if (field !== 'metadata.name' && field !== 'metadata.namespace') {
    throw badRequest(`field label not supported: ${field}`);
  }
  const wanted = operator !== '!=';
  return (object) => ((stringAt(object, ...field.split('.')) ?? '') === value) === wanted;
}

function labelMatcher(requirement: string): Matcher {
  const text = requirement.trim();
  const set = /^(\S+)\s+(in|notin)\s+\(([^)]*)\)$/.exec(text);
  if (set !== null) {
    const [, key = '', operator, list = ''] = set;
    const values = list.split(',').map((value) => value.trim());
    return operator === 'in'
      ? (object) => values.includes(labelOf(object, key) ?? '\0')
      : (object) => !values.includes(labelOf(object, key) ?? '\0');
  }
  const equality = /^([^\s=!]+)\s*(==|=|!=)\s*([^\s=!]*)$/.exec(text);
  if (equality !== null) {
    const [, key = '', operator, value = ''] = equality;
    return (object) => (labelOf(object, key) === value) === (operator !== '!=');
  }
  const existence = /^(!?)\s*([^\s=!]+)$/.exec(text);
  if (existence === null) throw badRequest(`unable to parse requirement: found '${text}'`);
  const [, negation, key = ''] = existence;
  return (object) => (labelOf(object, key) !== undefined) === (negation === '');
}

function labelOf(object: JsonObject, key: string): string | undefined {
  return recordAt(object, 'metadata', 'labels')[key];
}
