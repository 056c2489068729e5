import { codeHtml, plainText, shorten, upperFirst } from '../base/text.ts';

/**
 * A text in pieces, each with where it came from, so that every rendering can encode it its own way: our
 * own words, what is shown letter by letter (a name as kubectl takes it, the words of somebody else), or a
 * sentence of the diagnosis, which has names in it.
 */
type Word =
  | string
  | { strong: Words }
  | { exact: string }
  | { said: string; names: readonly string[] };
export type Words = readonly Word[];

/** Our own words, to be seen first. */
export function strong(...words: Word[]): Word {
  return { strong: words };
}

export function exact(text: string): Word {
  return { exact: text };
}

/** `names`: words of the text that are names although they look like ordinary words. */
export function said(text: string, names: readonly string[] = []): Word {
  return { said: text, names };
}

/** Pieces side by side, with `between` where two of them meet; empty ones are left out. */
export function joinWords(parts: readonly Words[], between: string): Words {
  return parts
    .filter((part) => part.length > 0)
    .flatMap((part, at) => (at === 0 ? part : [between, ...part]));
}

/** "a", "a and b", "a, b and c"; beyond `most` the rest is counted. */
export function listWords(items: readonly Words[], most = items.length): Words {
  const left = items.length - most;
  const all = left > 0 ? [...items.slice(0, most), [`${formatCount(left)} more`]] : items;
  return all.flatMap((item, at) => {
    if (at === 0) return item;
    return [at === all.length - 1 ? ' and ' : ', ', ...item];
  });
}

/** The same for names and other texts that are shown letter by letter. */
export function listExact(items: readonly string[], most = items.length): Words {
  return listWords(
    items.map((item) => [exact(item)]),
    most,
  );
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
  if (typeof first === 'string') return [upperFirst(first), ...rest];
  if (first === undefined || !('said' in first)) return words;
  return [{ ...first, said: upperFirst(first.said) }, ...rest];
}

/** For logs, terminals and outputs: one line. */
export function toPlain(words: Words): string {
  return words
    .map((word) => {
      if (typeof word === 'string') return word;
      if ('strong' in word) return toPlain(word.strong);
      return plainText('exact' in word ? word.exact : word.said);
    })
    .join('');
}

const MAX_CHARS = 300;
const EMPTY = '(empty)';

type Span = (text: string, maxChars: number) => string;

/** One line of Markdown that is the same in a sentence, a list item and a table cell. */
export function toMarkdown(words: Words, maxChars = MAX_CHARS, span: Span = codeSpan): string {
  let line = '';
  for (const word of words) {
    const next =
      typeof word === 'string'
        ? word
        : 'strong' in word
          ? `**${toMarkdown(word.strong, maxChars, span)}**`
          : 'exact' in word
            ? span(word.exact, maxChars)
            : prose(word, maxChars, span);
    // Two code spans side by side would be read as one with other ends.
    line += line.endsWith('`') && next.startsWith('`') ? ` ${next}` : next;
  }
  return line;
}

/** The same where Markdown is not read: in the title of a fold. */
export function toHtml(words: Words): string {
  return toMarkdown(words, MAX_CHARS, codeHtml);
}

/**
 * One code span: nothing in it is parsed, and GitHub looks for no mention, reference or link there. A
 * table splits even code at `|`, and a line with `<!--` must never look like our marker; such texts are
 * written in entities, which are decoded after Markdown was parsed.
 */
function codeSpan(text: string, maxChars: number): string {
  const plain = shorten(plainText(text).trim(), maxChars);
  if (plain === '') return EMPTY;
  if (/[|<\\]/.test(plain)) return codeHtml(plain, maxChars);
  const runs = plain.match(/`+/g) ?? [];
  const fence = '`'.repeat(1 + Math.max(0, ...runs.map((run) => run.length)));
  const space = /^`|`$/.test(plain) ? ' ' : '';
  return `${fence}${space}${plain}${space}${fence}`;
}

/**
 * A sentence of the diagnosis: ordinary words stay text, runs of anything else become code. Since only
 * letters, plain numbers and closing punctuation stay outside of it, no mention, reference, link or
 * mark-up can be formed, whatever name stands in the sentence.
 */
function prose(
  { said: text, names }: { said: string; names: readonly string[] },
  maxChars: number,
  span: Span,
): string {
  const out: string[] = [];
  let run: string[] = [];
  const flush = (open = '', close = ''): void => {
    if (run.length > 0) out.push(`${open}${span(run.join(' '), maxChars)}${close}`);
    run = [];
  };
  for (const token of shorten(plainText(text), maxChars).split(/\s+/)) {
    // Brackets and quotation marks around a word, and the punctuation after it, are not part of a name.
    const [, open = '', core = '', close = ''] = /^([("']*)(.*?)([)"',.;:!?]*)$/s.exec(token) ?? [];
    if (isOrdinary(core, names)) {
      flush();
      // Where a paragraph begins with a number, "1." and "1)" would begin a list.
      const end = out.length === 0 && /^\d/.test(core) ? close.replace(/^[.)]/, '') : close;
      if (token !== '') out.push(`${open}${core}${end}`);
    } else {
      if (open !== '') flush();
      run.push(core);
      if (open !== '' || close !== '') flush(open, close);
    }
  }
  flush();
  return out.length === 0 ? EMPTY : out.join(' ');
}

const ORDINARY = [
  /^\p{L}+(?:[-'’]\p{L}+)*$/u,
  /^\d[\d,]*(?:ms|s|m|h|%)?$/,
  /^\d{1,2}:\d{2}(?::\d{2})?$/,
  /^\d{4}-\d{2}-\d{2}$/,
];

function isOrdinary(core: string, names: readonly string[]): boolean {
  // Seven and more hexadecimal letters are linked as a commit where one has that name.
  if (names.includes(core) || /^[0-9a-f]{7,40}$/i.test(core)) return false;
  return core === '' || ORDINARY.some((ordinary) => ordinary.test(core));
}
