import { codeHtml, plainText, shorten, upperFirst } from '../base/text.ts';

/**
 * A text in pieces, each with its origin, so that every renderer can encode it: fixed
 * words, a literal text (a name as kubectl takes it, a quotation), or a
 * sentence of the diagnosis, which has names in it.
 */
export type Word =
  | string
  | { strong: Words }
  | { exact: string }
  | { said: string; names: readonly string[] };
export type Words = readonly Word[];

/** Returns fixed words in bold type. */
export function bold(...words: Word[]): Word {
  return { strong: words };
}

export function literal(text: string): Word {
  return { exact: text };
}

/** Returns a text of the diagnosis. `names`: words of it that are names although they look like ordinary words. */
export function diagnosed(text: string, names: readonly string[] = []): Word {
  return { said: text, names };
}

/**
 * Writes a template as pieces. Its text is fixed words, and so is a string among its values: a name or a sentence from a
 * cluster has to be `literal` or `diagnosed`.
 */
export function phrase(texts: TemplateStringsArray, ...values: (Word | Words)[]): Words {
  return texts.flatMap((text, at) => [text, values[at] ?? []].flat()).filter((one) => one !== '');
}

/** Joins pieces with `between`; empty ones are left out. */
export function joinWords(parts: readonly Words[], between: string): Words {
  return parts
    .filter((part) => part.length > 0)
    .flatMap((part, at) => (at === 0 ? part : [between, ...part]));
}

/** Writes "a", "a and b", "a, b and c"; beyond `most` the rest is counted. */
export function listWords(items: readonly Words[], most = items.length): Words {
  const left = items.length - most;
  const all = left > 0 ? [...items.slice(0, most), [`${formatCount(left)} more`]] : items;
  return all.flatMap((item, at) => {
    if (at === 0) return item;
    return [at === all.length - 1 ? ' and ' : ', ', ...item];
  });
}

/** Lists names and other literal texts as `listWords` does. */
export function listExact(items: readonly string[], most = items.length): Words {
  const words = items.map((item) => [literal(item)]);
  return listWords(words, most);
}

/** Formats 20000 as "20,000". Not by locale: a report must not depend on the machine that wrote it. */
export function formatCount(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** Writes "1 object", "3 objects". */
export function counted(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** Capitalizes the first letter of a sentence, unless the sentence starts with a name. */
export function capitalized(words: Words): Words {
  const [first, ...rest] = words;
  if (typeof first === 'string') return [upperFirst(first), ...rest];
  if (first === undefined || !('said' in first)) return words;
  return [{ ...first, said: upperFirst(first.said) }, ...rest];
}

/** Renders one line for logs, terminals and outputs. */
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

/** Renders one line of Markdown that works in a sentence, a list item and a table cell. */
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

/** Renders one line of HTML, for the title of a fold, where Markdown is not parsed. */
export function toHtml(words: Words): string {
  return toMarkdown(words, MAX_CHARS, codeHtml);
}

/**
 * Writes a code span: nothing in it is parsed, and GitHub searches no mention, reference or link there. A
 * table splits even code at `|`, and a line with `<!--` must never look like the gate's marker; such texts are
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
 * Renders a sentence of the diagnosis: ordinary words stay text, all other characters become code. Since only
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
      // At the beginning of a paragraph, "1." and "1)" would begin a list.
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
