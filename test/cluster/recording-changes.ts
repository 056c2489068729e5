import { isObject, type Json } from '../../src/base/json.ts';

/** What is different each time, in a form that is the same each time. */
const EACH_TIME: readonly [RegExp, string][] = [
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'UID'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, 'TIME'],
  // Of names that a controller makes up.
  [/(?:-[bcdfghjklmnpqrstvwxz2456789]{8,10})?-[bcdfghjklmnpqrstvwxz2456789]{5}\b/g, '-RANDOM'],
];
const NUMBERS_OF_WRITES = /(?:resourceVersion|generation|observedGeneration)$/;
const MOST = 20;

/** Lines about what only one of two recordings of a scenario has; `-` is the old one. */
export function changesBetween(old: Json, now: Json): string[] {
  const [was, is] = [linesOf(old), linesOf(now)];
  const changes = [...new Set([...was.keys(), ...is.keys()])].sort().flatMap((line) => {
    const more = (is.get(line) ?? 0) - (was.get(line) ?? 0);
    const times = Math.abs(more) > 1 ? ` (${Math.abs(more)} times)` : '';
    return more === 0 ? [] : [`${more > 0 ? '+' : '-'} ${line}${times}`];
  });
  const left = changes.length - MOST;
  return left > 0 ? [...changes.slice(0, MOST), `and ${left} more`] : changes;
}

/** Returns how often each value is at its place; elements of a list have one place. */
function linesOf(value: Json, place = '', lines = new Map<string, number>()): Map<string, number> {
  if (Array.isArray(value)) for (const item of value) linesOf(item, `${place}[]`, lines);
  else if (isObject(value)) {
    for (const [key, item] of Object.entries(value)) {
      linesOf(item ?? null, place === '' ? key : `${place}.${key}`, lines);
    }
  } else if (!NUMBERS_OF_WRITES.test(place)) {
    let text = JSON.stringify(value);
    for (const [pattern, same] of EACH_TIME) text = text.replaceAll(pattern, same);
    const line = `${place}: ${text}`;
    lines.set(line, (lines.get(line) ?? 0) + 1);
  }
  return lines;
}
