import { plainText } from '../base/text.ts';

/**
 * A text in pieces, each with where it came from, so that every rendering can encode it its own way:
 * our own words, a name as kubectl takes it, or what the diagnosis says (which quotes the cluster).
 */
export type Word = string | { name: string } | { said: string; names?: readonly string[] };
export type Words = readonly Word[];

export function name(value: string): Word {
  return { name: value };
}

/** `names`: words of the text that are names although they look like ordinary words. */
export function said(text: string, names: readonly string[] = []): Word {
  return names.length === 0 ? { said: text } : { said: text, names };
}

/** For logs, terminals and outputs: one line. */
export function toPlain(words: Words): string {
  return words.map((word) => plainText(rawText(word))).join('');
}

export function rawText(word: Word): string {
  if (typeof word === 'string') return word;
  return 'name' in word ? word.name : word.said;
}

/** "a", "a and b", "a, b and c"; beyond `most` the rest is counted. */
export function listWords(items: readonly Words[], most = items.length): Words {
  const shown = items.length > most ? [...items.slice(0, most)] : [...items];
  if (items.length > most) shown.push([`${formatCount(items.length - most)} more`]);
  return shown.flatMap((item, at) => {
    if (at === 0) return item;
    return [at === shown.length - 1 ? ' and ' : ', ', ...item];
  });
}

/** 20000 to "20,000". Not by locale: a report must not depend on the machine that wrote it. */
export function formatCount(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** "1 object", "3 objects". */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${formatCount(count)} ${count === 1 ? noun : plural}`;
}

/** First letter of a sentence; only our own words and the diagnosis's are touched, never a name. */
export function capitalized(words: Words): Words {
  const [first, ...rest] = words;
  if (first === undefined) return words;
  if (typeof first === 'string') return [upperFirst(first), ...rest];
  if ('said' in first) return [{ ...first, said: upperFirst(first.said) }, ...rest];
  return words;
}

function upperFirst(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
