import { codeHtml, formatCount, listWords, plainText, shorten, upperFirst } from '../base/text.ts';

/**
 * A text with marks: control characters stand around what must be written as code, and around bold type. Everything else is
 * fixed or ordinary words. Text from elsewhere gets into a marked text only through `literal` and `diagnosed`, which
 * remove control characters, so that no mark can be forged.
 */
export type Words = string;

const [CODE, CODE_END, BOLD, BOLD_END] = ['\u0001', '\u0002', '\u0003', '\u0004'] as const;
const MARKS = new RegExp(`[${CODE}-${BOLD_END}]`, 'g');
const PIECES = new RegExp(`${CODE}([^${CODE_END}]*)${CODE_END}|[^${CODE}]+`, 'g');

export function bold(words: Words): Words {
  return `${BOLD}${words}${BOLD_END}`;
}

/** A name as kubectl takes it, or a quotation. */
export function literal(text: string): Words {
  return `${CODE}${plainText(text)}${CODE_END}`;
}

const MAX_TEXT_CHARS = 2_000;

/**
 * Marks a text of the diagnosis: ordinary words stay text, everything else becomes code. Since only letters, plain numbers
 * and closing punctuation stay outside of it, no mention, reference, link or mark-up can be formed, whatever name
 * stands in the text. `names`: words of it that are names although they look like ordinary words; those of `subjects` are
 * names after their kinds, as in "Widget db".
 */
export function diagnosed(
  text: string,
  names: readonly string[] = [],
  subjects: readonly { kind: string; name: string }[] = [],
): Words {
  const out: string[] = [];
  let run: string[] = [];
  let before = '';
  const flush = (open = '', close = ''): void => {
    if (run.length > 0) out.push(`${open}${literal(run.join(' '))}${close}`);
    run = [];
  };
  for (const token of shorten(plainText(text), MAX_TEXT_CHARS).split(/\s+/).filter(Boolean)) {
    // Brackets and quotation marks around a word, and the punctuation after it, are not part of a name.
    const [, open = '', core = '', close = ''] = PARTS.exec(token) ?? [];
    const isName =
      names.includes(core) || subjects.some(({ kind, name }) => before === kind && core === name);
    before = token;
    if (!isName && isOrdinary(core)) {
      flush();
      // At the beginning of a paragraph, "1." and "1)" would begin a list.
      const end = out.length === 0 && /^\d/.test(core) ? close.replace(/^[.)]/, '') : close;
      out.push(`${open}${core}${end}`);
    } else {
      if (open !== '') flush();
      run.push(core);
      if (open !== '' || close !== '') flush(open, close);
    }
  }
  flush();
  return out.join(' ') || literal('');
}

const PARTS = /^([("']*)(.*?)([)"',.;:!?]*)$/s;
const ORDINARY =
  /^(?:\p{L}+(?:[-'’]\p{L}+)*|\d[\d,]*(?:ms|s|m|h|%)?|\d{1,2}:\d{2}(?::\d{2})?|\d{4}-\d{2}-\d{2}|)$/u;

/** Seven and more hexadecimal letters are linked as a commit of that name. */
function isOrdinary(core: string): boolean {
  return ORDINARY.test(core) && !/^[0-9a-f]{7,40}$/i.test(core);
}

export function joinWords(parts: readonly Words[], between: string): Words {
  return parts.filter((part) => part !== '').join(between);
}

export function listExact(items: readonly string[], most = items.length): Words {
  return listWords(items.map(literal), most);
}

export function counted(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** Each clause with its full stop. */
export function asSentences(clauses: readonly Words[]): Words {
  return clauses
    .map((clause) => upperFirst(toPlain(clause).endsWith('.') ? clause : `${clause}.`))
    .join(' ');
}

export function toPlain(words: Words): string {
  return words.replace(MARKS, '');
}

/** One line that works in a sentence, a list item and a table cell. */
export function toMarkdown(words: Words, span = codeSpan): string {
  let line = '';
  for (const [piece, code] of words.matchAll(PIECES)) {
    const next = code === undefined ? piece.replace(MARKS, '**') : span(code);
    // Two code spans side by side would be read as one with other ends.
    line += line.endsWith('`') && next.startsWith('`') ? ` ${next}` : next;
  }
  return line;
}

/** For the title of a fold, where Markdown is not parsed. */
export function toHtml(words: Words): string {
  return toMarkdown(words, codeHtml);
}

/**
 * Writes a code span: nothing in it is parsed, and GitHub searches no mention, reference or link there. A
 * table splits even code at `|`, and a line with `<!--` must never look like the gate's marker; such texts are
 * written in entities, which are decoded after Markdown was parsed.
 */
/** As long as the quotation of a failure may be: nested errors end with the cause. */
const MAX_CODE_CHARS = 500;

function codeSpan(text: string): string {
  const plain = shorten(text.trim(), MAX_CODE_CHARS);
  if (plain === '') return '(empty)';
  if (/[|<\\]/.test(plain)) return codeHtml(plain, MAX_CODE_CHARS);
  const runs = plain.match(/`+/g) ?? [];
  const fence = '`'.repeat(1 + Math.max(0, ...runs.map((run) => run.length)));
  const space = /^`|`$/.test(plain) ? ' ' : '';
  return `${fence}${space}${plain}${space}${fence}`;
}
