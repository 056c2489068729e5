import { codeHtml, plainText, shorten } from '../base/text.ts';
import { NAMESPACE } from '../model/finding.ts';
import type { Row } from './view.ts';
import { toPlain, type Word, type Words } from './words.ts';

const MAX_NAME_CHARS = 253;
const MAX_QUOTE_CHARS = 300;
const MAX_COMMAND_CHARS = 4_000;
const EMPTY = '(empty)';

type Span = (text: string, maxChars: number) => string;

/** Text in pieces to one line of Markdown that is the same in a sentence, a list item and a table cell. */
export function toMarkdown(words: Words, maxChars = MAX_QUOTE_CHARS): string {
  return render(words, maxChars, code);
}

/** The same where Markdown is not read: in the title of a fold. */
export function toHtml(words: Words): string {
  return render(words, MAX_QUOTE_CHARS, (text, maxChars) => codeHtml(text, maxChars));
}

function render(words: Words, maxChars: number, span: Span): string {
  let line = '';
  for (const word of words) {
    const next = wordMarkup(word, maxChars, span);
    // Two code spans side by side would be read as one with other ends.
    line += line.endsWith('`') && next.startsWith('`') ? ` ${next}` : next;
  }
  return line;
}

function wordMarkup(word: Word, maxChars: number, span: Span): string {
  if (typeof word === 'string') return word;
  if ('strong' in word) return `**${render(word.strong, maxChars, span)}**`;
  if ('name' in word) return span(word.name, MAX_NAME_CHARS);
  if ('quote' in word) return span(word.quote, maxChars);
  if ('said' in word) return prose(word, maxChars, span);
  // In one piece, unless there is nothing in it but ordinary words.
  const isOwn = plainText(word.fact)
    .split(/\s+/)
    .every((token) => isOrdinary(split(token)[1], []));
  return isOwn ? prose({ said: word.fact, names: [] }, maxChars, span) : span(word.fact, maxChars);
}

/**
 * One code span: nothing in it is parsed, and GitHub looks for no mention, reference or link there. A
 * table splits even code at `|`, and a line with `<!--` must never look like our marker; such texts are
 * written in entities, which are decoded after Markdown was parsed.
 */
function code(text: string, maxChars: number): string {
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
  { said, names }: { said: string; names: readonly string[] },
  maxChars: number,
  span: Span,
): string {
  const out: string[] = [];
  let run: string[] = [];
  const flush = (): void => {
    if (run.length > 0) out.push(span(run.join(' '), maxChars));
    run = [];
  };
  for (const token of shorten(plainText(said), maxChars).split(/\s+/)) {
    const [open, core, close] = split(token);
    if (isOrdinary(core, names)) {
      flush();
      if (token === '') continue;
      // Where a paragraph begins with a number, "1." and "1)" would begin a list.
      const end = out.length === 0 && /^\d/.test(core) ? close.replace(/^[.)]/, '') : close;
      out.push(`${open}${core}${end}`);
    } else {
      if (open !== '') flush();
      run.push(core);
      if (open === '' && close === '') continue;
      out.push(`${open}${span(run.join(' '), maxChars)}${close}`);
      run = [];
    }
  }
  flush();
  return out.length === 0 ? EMPTY : out.join(' ');
}

/** Brackets and quotation marks around a word, and the punctuation after it, are not part of a name. */
function split(token: string): [string, string, string] {
  const match = /^([("']*)(.*?)([)"',.;:!?]*)$/s.exec(token);
  return [match?.[1] ?? '', match?.[2] ?? '', match?.[3] ?? ''];
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

/** A table whose cells are Markdown already; every cell must be one line. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(header), `|${' --- |'.repeat(header.length)}`, ...rows.map(line)].join('\n');
}

/** Something to copy. A fence where that is safe, since GitHub gives it a copy button and colours. */
export function codeBlock(language: 'sh' | 'yaml', text: readonly string[], indent = ''): string {
  const lines = text.map((line) => shorten(plainText(line), MAX_COMMAND_CHARS));
  const isOrdinary = lines.every((line) => /^[ -~]*$/.test(line) && !/[`<]/.test(line));
  const block = isOrdinary
    ? [`\`\`\`${language}`, ...lines, '```']
    : // One line, whose entities leave nothing to parse.
      [`<pre>${lines.map((line) => codeHtml(line, MAX_COMMAND_CHARS)).join('&#10;')}</pre>`];
  return block.map((line) => `${indent}${line}`).join('\n');
}

/** `title` is Markdown of one line; blank lines around the content let Markdown work inside. */
export function folded(title: string, content: string): string {
  return `<details><summary>${title}</summary>\n\n${content}\n\n</details>`;
}

const MAX_NODES = 40;
/** Mermaid breaks lines itself; a namespaced name with its kind has mostly less. */
const MAX_LABEL_CHARS = 90;
/** A border that is seen on GitHub's light and dark page; the label says the same in words. */
const ROOT_CAUSE_STYLE = '  classDef rootCause stroke:#d1242f,stroke-width:3px';

/** The wait-for graph for Mermaid, below the text that says the same. */
export function diagramSource(rows: readonly Row[]): string {
  const [first] = rows;
  if (first === undefined) return '';
  const labels = new Map([[NAMESPACE, toPlain(first.fromWords)]]);
  const roots = new Set<string>();
  for (const { to, toWords, isRootCause } of rows) {
    if (isRootCause) roots.add(to);
    if (!labels.has(to)) labels.set(to, toPlain(toWords));
  }
  const all = [...labels];
  const shown = all.slice(0, all.length > MAX_NODES ? MAX_NODES - 1 : MAX_NODES);
  const idOf = new Map(shown.map(([id], at) => [id, `n${at}`]));
  const lines = ['graph TD'];
  for (const [id, label] of shown) {
    const prefix = roots.has(id) ? 'root cause: ' : '';
    lines.push(`  ${idOf.get(id)}["${prefix}${mermaidText(label)}"]`);
  }
  if (all.length > shown.length) lines.push('  more["and more"]');
  for (const { from, to } of rows) {
    const [a, b] = [idOf.get(from), idOf.get(to)];
    if (a !== undefined && b !== undefined) lines.push(`  ${a} --> ${b}`);
  }
  const marked = [...roots].flatMap((id) => idOf.get(id) ?? []);
  if (marked.length > 0) lines.push(ROOT_CAUSE_STYLE, `  class ${marked.join(',')} rootCause`);
  return [...new Set(lines)].join('\n');
}

/** Labels are built from an allow-list: what Mermaid gives a meaning never reaches it. */
function mermaidText(text: string): string {
  const kept = shorten(plainText(text), MAX_LABEL_CHARS).replace(
    /[^\p{L}\p{N} .,/:+_()=…-]/gu,
    ' ',
  );
  return kept.trim() === '' ? '(no name)' : kept;
}
