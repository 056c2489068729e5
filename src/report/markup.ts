import { codeHtml, plainText, shorten } from '../base/text.ts';
import type { Word, Words } from './words.ts';

export const MAX_NAME_CHARS = 253;
export const MAX_SAID_CHARS = 300;
const EMPTY = '(empty)';

/** Text in pieces to one line of Markdown that is the same in a sentence, a list item and a table cell. */
export function toMarkdown(words: Words, maxChars = MAX_SAID_CHARS): string {
  return words.map((word) => wordMarkdown(word, maxChars)).join('');
}

function wordMarkdown(word: Word, maxChars: number): string {
  if (typeof word === 'string') return word;
  if ('name' in word) return codeText(word.name, MAX_NAME_CHARS);
  return prose(word.said, word.names ?? [], maxChars);
}

/**
 * What the diagnosis says, for reading: ordinary words stay text, everything that is not (names, paths,
 * quotations) becomes code. Since only letters, plain numbers and closing punctuation stay outside of
 * `<code>`, no mention, reference, link or mark-up can be formed, whatever the cluster wrote.
 */
export function prose(
  text: string,
  names: readonly string[] = [],
  maxChars = MAX_SAID_CHARS,
): string {
  const out: string[] = [];
  let code: string[] = [];
  const flush = (): void => {
    if (code.length > 0) out.push(codeText(code.join(' '), maxChars));
    code = [];
  };
  for (const token of shorten(plainText(text), maxChars).split(/\s+/)) {
    if (token === '') continue;
    const [open, core, close] = split(token);
    if (isOrdinary(core, names)) {
      flush();
      const isList = out.length === 0 && /^\d/.test(core);
      out.push(`${punctuation(open, isList)}${core}${punctuation(close, isList)}`);
    } else if (open === '' && close === '') {
      code.push(core);
    } else {
      if (open !== '') flush();
      code.push(core);
      const joined = codeText(code.join(' '), maxChars);
      code = [];
      out.push(`${punctuation(open)}${joined}${punctuation(close)}`);
    }
  }
  flush();
  // A list item without text would underline the line above it, which makes that a heading.
  return out.length === 0 ? EMPTY : out.join(' ');
}

/**
 * `codeHtml`, but with dots and colons left as they are where they can make no link: most names have
 * them, and mail programs show comments as they were written.
 */
function codeText(text: string, maxChars: number): string {
  if (plainText(text).trim() === '') return EMPTY;
  const encoded = codeHtml(text, maxChars);
  return /www|:\//i.test(text)
    ? encoded
    : encoded.replaceAll('&#46;', '.').replaceAll('&#58;', ':');
}

/** Brackets and quotes around a word, and the punctuation after it, are not part of a name. */
function split(token: string): [string, string, string] {
  const match = /^([("']*)(.*?)([)"',.;:!?]*)$/s.exec(token);
  return [match?.[1] ?? '', match?.[2] ?? '', match?.[3] ?? ''];
}

const WORD = /^\p{L}+(?:[-'’]\p{L}+)*$/u;
const NUMBER = /^\d[\d,]*(?:ms|s|m|h|%)?$/;
const CLOCK_TIME = /^\d{1,2}:\d{2}(?::\d{2})?$/;
const DATE = /^\d{4}-\d{2}-\d{2}$/;

function isOrdinary(core: string, names: readonly string[]): boolean {
  if (names.includes(core)) return false;
  // Seven and more hexadecimal letters are linked as a commit where one has that name.
  if (/^[0-9a-f]{7,40}$/.test(core)) return false;
  return core === '' || [WORD, NUMBER, CLOCK_TIME, DATE].some((ordinary) => ordinary.test(core));
}

/**
 * Punctuation that no Markdown parser gives a meaning beside a word; after a number at the start of a
 * text it could begin a list.
 */
function punctuation(text: string, mayBeginList = false): string {
  const harmless = mayBeginList ? /[,:;("']/ : /[,.:;!?()"']/;
  return Array.from(text, (char) =>
    harmless.test(char) ? char : `&#${char.codePointAt(0)};`,
  ).join('');
}
