import { codeHtml, plainText, shorten, upperFirst } from '../base/text.ts';

/**
 * A text with marks: control characters stand around what must be written as code, around sentences of the diagnosis, in
 * which names are searched, and around bold type. Everything else is fixed words. Text from elsewhere gets into
 * a marked text only through `literal` and `diagnosed`, which remove control characters, so that no mark can be forged.
 */
export type Words = string;

const [CODE, CODE_END, SAID, SAID_END, BOLD, BOLD_END] = Array.from({ length: 6 }, (_, at) =>
  String.fromCharCode(at + 1),
) as [string, string, string, string, string, string];
const MARKS = new RegExp(`[${CODE}-${BOLD_END}]`, 'g');
const PIECES = new RegExp(
  `${CODE}([^${CODE_END}]*)${CODE_END}|${SAID}([^${SAID_END}]*)${SAID_END}|[^${CODE}${SAID}]+`,
  'g',
);

export function bold(words: Words): Words {
  return `${BOLD}${words}${BOLD_END}`;
}

/** Returns a text that must be written as code: a name as kubectl takes it, or a quotation. */
export function literal(text: string): Words {
  return `${CODE}${plainText(text)}${CODE_END}`;
}

/**
 * Returns a text of the diagnosis. `names`: words of it that are names although they look like ordinary words; those of
 * `subjects` are names after their kinds, as in "Widget db".
 */
export function diagnosed(
  text: string,
  names: readonly string[] = [],
  subjects: readonly { kind: string; name: string }[] = [],
): Words {
  let before = '';
  const marked = plainText(text).replace(/\S+/g, (token) => {
    const { open, core, close } = partsOf(token);
    const isName =
      names.includes(core) || subjects.some(({ kind, name }) => before === kind && core === name);
    before = token;
    return isName ? `${open}${literal(core)}${close}` : token;
  });
  return `${SAID}${marked}${SAID_END}`;
}

/** Joins texts with `between`; empty ones are left out. */
export function joinWords(parts: readonly Words[], between: string): Words {
  return parts.filter((part) => part !== '').join(between);
}

/** Writes "a", "a and b", "a, b and c"; beyond `most` the rest is counted. */
export function listWords(items: readonly Words[], most = items.length): Words {
  const left = items.length - most;
  const all = left > 0 ? [...items.slice(0, most), `${formatCount(left)} more`] : items;
  return all.length < 2 ? all.join('') : `${all.slice(0, -1).join(', ')} and ${all.at(-1)}`;
}

/** Lists names and other literal texts as `listWords` does. */
export function listExact(items: readonly string[], most = items.length): Words {
  return listWords(items.map(literal), most);
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
  return words.startsWith(SAID) ? `${SAID}${upperFirst(words.slice(1))}` : upperFirst(words);
}

/** Returns the sentence with a full stop, unless it ends with one, as a quotation may. */
export function withFullStop(words: Words): Words {
  return toPlain(words).endsWith('.') ? words : `${words}.`;
}

/** Renders one line for logs, terminals and outputs. */
export function toPlain(words: Words): string {
  return words.replace(MARKS, '');
}

const MAX_CHARS = 300;
const EMPTY = '(empty)';

type Span = (text: string, maxChars: number) => string;

/** Renders one line of Markdown that works in a sentence, a list item and a table cell. */
export function toMarkdown(words: Words, maxChars = MAX_CHARS, span: Span = codeSpan): string {
  let line = '';
  for (const [piece, code, said] of words.matchAll(PIECES)) {
    const next =
      code !== undefined
        ? span(code, maxChars)
        : said !== undefined
          ? prose(said, maxChars, span)
          : piece.replace(MARKS, '**');
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
  const plain = shorten(text.trim(), maxChars);
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
function prose(text: string, maxChars: number, span: Span): string {
  const out: string[] = [];
  let run: string[] = [];
  const flush = (open = '', close = ''): void => {
    if (run.length > 0) out.push(`${open}${span(run.join(' '), maxChars)}${close}`);
    run = [];
  };
  for (const token of shorten(text, maxChars).split(/\s+/)) {
    const { open, core, close } = partsOf(token);
    if (isOrdinary(core)) {
      flush();
      // At the beginning of a paragraph, "1." and "1)" would begin a list.
      const end = out.length === 0 && /^\d/.test(core) ? close.replace(/^[.)]/, '') : close;
      if (token !== '') out.push(`${open}${core}${end}`);
    } else {
      if (open !== '') flush();
      run.push(core.replace(MARKS, ''));
      if (open !== '' || close !== '') flush(open, close);
    }
  }
  flush();
  return out.length === 0 ? EMPTY : out.join(' ');
}

/** Splits brackets and quotation marks around a word, and the punctuation after it, which are not part of a name. */
function partsOf(token: string): { open: string; core: string; close: string } {
  const [, open = '', core = '', close = ''] = /^([("']*)(.*?)([)"',.;:!?]*)$/s.exec(token) ?? [];
  return { open, core, close };
}

const ORDINARY = [
  /^\p{L}+(?:[-'’]\p{L}+)*$/u,
  /^\d[\d,]*(?:ms|s|m|h|%)?$/,
  /^\d{1,2}:\d{2}(?::\d{2})?$/,
  /^\d{4}-\d{2}-\d{2}$/,
];

/** Reports whether a word may stay text. Seven and more hexadecimal letters are linked as a commit of that name. */
function isOrdinary(core: string): boolean {
  if (/^[0-9a-f]{7,40}$/i.test(core)) return false;
  return core === '' || ORDINARY.some((ordinary) => ordinary.test(core));
}
