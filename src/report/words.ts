import { plainText, upperFirst } from '../base/text.ts';

/**
 * A text in pieces, each with where it came from, so that every rendering can encode it its own way: our
 * own words, a name as kubectl takes it, words of others that stay in one piece, a line of evidence (which
 * may quote them), or a sentence of the diagnosis, which has names in it.
 */
export type Word =
  | string
  | { strong: Words }
  | { name: string }
  | { quote: string }
  | { fact: string }
  | { said: string; names: readonly string[] };
export type Words = readonly Word[];

/** Our own words, to be seen first. */
export function strong(...words: Word[]): Word {
  return { strong: words };
}

export function name(value: string): Word {
  return { name: value };
}

/** What somebody else wrote, word for word. */
export function quote(text: string): Word {
  return { quote: text };
}

export function fact(text: string): Word {
  return { fact: text };
}

/** `names`: words of the text that are names although they look like ordinary words. */
export function said(text: string, names: readonly string[] = []): Word {
  return { said: text, names };
}

/** For logs, terminals and outputs: one line. */
export function toPlain(words: Words): string {
  return words
    .map((word) => {
      if (typeof word === 'string') return word;
      if ('strong' in word) return toPlain(word.strong);
      if ('name' in word) return plainText(word.name);
      if ('quote' in word) return plainText(word.quote);
      return plainText('fact' in word ? word.fact : word.said);
    })
    .join('');
}

/** Pieces side by side, with `between` where two of them meet; empty ones are left out. */
export function joinWords(parts: readonly Words[], between: string): Words {
  return parts
    .filter((part) => part.length > 0)
    .flatMap((part, at) => (at === 0 ? part : [between, ...part]));
}

/** "a", "a and b", "a, b and c"; beyond `most` the rest is counted. */
export function listWords(items: readonly Words[], most = items.length): Words {
  const shown = items.slice(0, most);
  const left = items.length - shown.length;
  const all: Words[] = left > 0 ? [...shown, [`${formatCount(left)} more`]] : shown;
  return all.flatMap((item, at) => {
    if (at === 0) return item;
    return [at === all.length - 1 ? ' and ' : ', ', ...item];
  });
}

/** 20000 to "20,000". Not by locale: a report must not depend on the machine that wrote it. */
export function formatCount(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** "1 object", "3 objects". */
export function counted(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** First letter of a sentence; only our own words and the diagnosis's are touched, never a name. */
export function capitalized(words: Words): Words {
  const [first, ...rest] = words;
  if (first === undefined) return words;
  if (typeof first === 'string') return [upperFirst(first), ...rest];
  return 'said' in first ? [{ ...first, said: upperFirst(first.said) }, ...rest] : words;
}
