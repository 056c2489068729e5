import { codeHtml, plainText, shorten } from '../base/text.ts';
import { NAMESPACE_NODE } from '../model/finding.ts';
import { type Block, type Detail, documentOf } from './document.ts';
import { clockTime, clusterWords } from './sentences.ts';
import type { Action, Row, View } from './view.ts';
import {
  bold,
  capitalized,
  diagnosed,
  formatCount,
  toHtml,
  toMarkdown,
  toPlain,
  type Words,
} from './words.ts';

export interface RenderContext {
  /** Address of this run, for links; from the CI host, never from the cluster. */
  runUrl?: string | undefined;
  /** "run 812, attempt 1". */
  runLabel?: string | undefined;
}

const FULL: Detail = {
  causes: 200,
  remedies: 20,
  rows: 200,
  forced: 8,
  chars: 300,
  namespaces: 10,
  hasEvidence: true,
  isGraphFirst: false,
};

/** The file on disk: its size is not limited by a host, but a million rows would not help. */
const FILE: Detail = {
  ...FULL,
  remedies: 100,
  rows: 2_000,
  forced: 2_000,
  chars: 2_000,
  namespaces: 1_000,
};

/** Every cause with its first remedy. */
const BRIEF: Detail = {
  ...FULL,
  remedies: 1,
  rows: 5,
  chars: 200,
  namespaces: 0,
  hasEvidence: false,
};

/** Forms of a report, from the longest to the shortest. */
const FORMS: readonly Detail[] = [
  FULL,
  { ...FULL, rows: 50, namespaces: 3 },
  { ...BRIEF, remedies: 20, rows: 20, chars: 300 },
  { ...BRIEF, remedies: 3 },
  ...[200, 50, 20, 5, 1].map((causes) => ({ ...BRIEF, causes })),
  { ...BRIEF, causes: 0, rows: 0, chars: 100 },
];

/** Renders the job summary, in the longest form that stays below `maxBytes`. */
export function renderSummary(view: View, context: RenderContext, maxBytes: number): string {
  const text = longestThatFits(view, context, (one) => Buffer.byteLength(one) < maxBytes);
  return text === '' ? '' : `${text}\n`;
}

/** Renders report.md with everything, for downloads. */
export function renderMarkdownReport(view: View, context: RenderContext): string {
  return `${renderDocument(view, context, FILE)}\n`;
}

/** Returns the longest form that fits; empty if not even the shortest fits. */
export function longestThatFits(
  view: View,
  context: RenderContext,
  fits: (text: string) => boolean,
): string {
  for (const detail of FORMS) {
    const text = renderDocument(view, context, detail);
    if (fits(text)) return text;
  }
  return '';
}

function renderDocument(view: View, context: RenderContext, detail: Detail): string {
  const sections = documentOf(view, detail).map((block) => blockMarkdown(block, detail.chars));
  const { run, inspectedTypes } = view;
  const place = context.runUrl === undefined ? '' : `; [the run](${context.runUrl}) has the rest`;
  const footer = [
    runLink(context),
    clockTime(run.finishedAt),
    toMarkdown(clusterWords(run)),
    ...(inspectedTypes === 0 ? [] : [`${inspectedTypes} resource types inspected`]),
    ...(detail === FULL || detail === FILE ? [] : [`shortened${place}`]),
  ];
  return [...sections, `<sub>${footer.join(' · ')}</sub>`].join('\n\n');
}

export function runLink({ runLabel = 'this run', runUrl }: RenderContext): string {
  const label = toMarkdown(diagnosed(runLabel));
  return runUrl === undefined ? label : `[${label}](${runUrl})`;
}

const MAX_COMMAND_CHARS = 4_000;
/** Lines below an item of a list. */
const MAX_LINES = 20;
function blockMarkdown(block: Block, chars: number): string {
  const text = (words: Words): string => toMarkdown(words, chars);
  const inner = (blocks: readonly Block[]): string =>
    blocks.map((one) => blockMarkdown(one, chars)).join('\n\n');
  switch (block.kind) {
    case 'heading':
      return `${block.level} ${text(block.words)}`;
    case 'line':
      return text(block.words);
    case 'note':
      return `<sub>${text(block.words)}</sub>`;
    case 'list': {
      const { title, items, left, isOrdered } = block;
      const lines = items.flatMap(({ words, lines: below }, at) => [
        `${isOrdered ? `${at + 1}.` : '-'} ${text(words)}`,
        ...below.slice(0, MAX_LINES).map((line) => `  - ${text(line)}`),
      ]);
      const head = title.length > 0 ? `**${text(title)}**\n\n` : '';
      return `${head}${lines.join('\n')}${andMore(left)}`;
    }
    case 'actions': {
      const { title, isOrdered, first, actions, left } = block;
      const [only, ...others] = actions;
      if (only !== undefined && others.length === 0)
        return `${actionMarkdown(only, `**${title}.** `, '', chars)}${andMore(left)}`;
      const items = actions.map((action, at) => {
        const lead = isOrdered ? `${first + at}. ` : '- ';
        return actionMarkdown(action, lead, ' '.repeat(lead.length), chars);
      });
      return `**${title}**\n\n${items.join('\n')}${andMore(left)}`;
    }
    case 'commands': {
      const { language, lines } = block;
      const broken = language === 'sh' ? lines.flatMap((line) => brokenCommand(line)) : lines;
      return codeBlock(language, broken);
    }
    case 'graph': {
      const links = block.rows.map(({ fromWords, toWords, because, isRootCause }, at) => {
        const root = isRootCause ? ` (${bold('root cause')})` : '';
        return `${at + 1}. ${text(`${fromWords} waits for ${toWords}${root}: ${because}`)}`;
      });
      // A chain of two links is read faster in the list.
      const picture =
        block.rows.length > 2 ? `\n\n\`\`\`mermaid\n${diagramSource(block.rows)}\n\`\`\`` : '';
      return `${links.join('\n')}${andMore(block.left)}${picture}`;
    }
    case 'section':
      return inner(block.blocks);
    case 'fold':
      return markdownFold(toHtml(block.title), inner(block.blocks));
  }
}

function andMore(left: number): string {
  return left > 0 ? `\n\nAnd ${formatCount(left)} more.` : '';
}

function actionMarkdown(action: Action, lead: string, indent: string, chars: number): string {
  const { text, risk, command, others } = action;
  const isBare = risk === undefined && others.length === 0;
  const lines = [
    `${lead}${toMarkdown(capitalized(text), chars)}`,
    isBare && command !== undefined ? ':' : '.',
    risk === undefined ? '' : ` **Risk:** ${toMarkdown(capitalized(risk), chars)}.`,
    others.length === 0 ? '' : ` This is the first of ${others.length + 1} commands.`,
    command === undefined
      ? ''
      : `\n\n${codeBlock('sh', brokenCommand(command, COMMAND_CHARS - 2 * indent.length), indent)}`,
  ];
  return lines.join('');
}

/** Writes a text to copy: in a fence if that is safe, since GitHub gives it a copy button and colours. */
function codeBlock(language: 'sh' | 'yaml', text: readonly string[], indent = ''): string {
  const lines = text.map((line) => shorten(plainText(line), MAX_COMMAND_CHARS));
  const isOrdinary = lines.every((line) => /^[ -~]*$/.test(line) && !/[`<]/.test(line));
  const block = isOrdinary
    ? [`\`\`\`${language}`, ...lines, '```']
    : // One line, whose entities leave nothing to parse.
      [`<pre>${lines.map((line) => codeHtml(line, MAX_COMMAND_CHARS)).join('&#10;')}</pre>`];
  return block.map((line) => `${indent}${line}`).join('\n');
}

/** Characters of a line that a phone shows without scrolling; in a list, fewer fit. */
const COMMAND_CHARS = 42;
/** A word of a command, with its quotes and the `$(…)` inside of it. */
const COMMAND_WORD = /(?:\\.|'[^']*'|"(?:\\.|[^"\\])*"|\$\([^)]*\)|[^\s'"$\\]|\$(?!\())+/g;

/** Breaks a command into lines that a phone shows and that a shell reads as the same command. */
export function brokenCommand(command: string, maxChars = COMMAND_CHARS): string[] {
  const words = command.match(COMMAND_WORD) ?? [];
  if (words.join(' ') !== command) return [command];
  const lines: string[] = [];
  let line = '';
  for (const [at, word] of words.entries()) {
    const patch = patchLines(word);
    const before = words[at - 1] ?? '';
    const after = words[at + 1] ?? '-';
    // An option and its value stay on one line.
    const isValue = /^--?[A-Za-z][\w-]*$/.test(before) && !word.startsWith('-');
    const hasValue = /^--?[A-Za-z][\w-]*$/.test(word) && !after.startsWith('-');
    const unit = hasValue ? `${word} ${patchLines(after)[0]}` : word;
    // Each call of a list or pipe begins a line, if the whole command does not fit into one.
    const isCall = command.length > maxChars && (before === '&&' || word === '|');
    if (line !== '' && !isValue && (isCall || line.length + 1 + unit.length > maxChars)) {
      lines.push(`${line} \\`);
      line = before === '&&' ? '' : ' ';
    }
    lines.push(...patch.slice(0, -1).map((one, index) => (index === 0 ? `${line} ${one}` : one)));
    const last = patch.at(-1) ?? word;
    line = patch.length > 1 ? last : line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

/** Splits a JSON Patch into lines, one per operation: JSON may be broken between them, also inside quotes. */
function patchLines(word: string): string[] {
  if (!/^'\[\{"op":.*\}\]'$/.test(word)) return [word];
  const parts = word.slice(2, -2).split(/(?<=\}),(?=\{"op")/);
  return ["'[", ...parts.map((one, at) => `    ${one}${at < parts.length - 1 ? ',' : "]'"}`)];
}

/** Writes a fold. `title` is one line of Markdown; blank lines around the content let Markdown work inside. */
export function markdownFold(title: string, content: string): string {
  return `<details><summary>${title}</summary>\n\n${content}\n\n</details>`;
}

const MAX_NODES = 40;
/** The longest label: Mermaid breaks lines itself; a namespaced name with its kind is mostly shorter. */
const MAX_LABEL_CHARS = 90;
/** A border that is visible on GitHub's light and dark pages; the label says "root cause" as well. */
const ROOT_CAUSE_STYLE = '  classDef rootCause stroke:#d1242f,stroke-width:3px';

/**
 * Draws the wait-for graph for Mermaid; the table above it has the same links. What has the same words, as a controller
 * that should remove three finalizers, is one node.
 */
export function diagramSource(rows: readonly Row[]): string {
  const [first] = rows;
  if (first === undefined) return '';
  const wordsOf = new Map([[NAMESPACE_NODE, toPlain(first.fromWords)]]);
  for (const { to, toWords, isRootCause } of rows) {
    if (!wordsOf.has(to)) wordsOf.set(to, `${isRootCause ? ROOT_CAUSE : ''}${toPlain(toWords)}`);
  }
  const all = [...new Set(wordsOf.values())];
  const shown = all.slice(0, all.length > MAX_NODES ? MAX_NODES - 1 : MAX_NODES);
  const nodeOf = (id: string): string | undefined => {
    const at = shown.indexOf(wordsOf.get(id) ?? '');
    return at < 0 ? undefined : `n${at}`;
  };
  const lines = ['graph TD', ...shown.map((words, at) => `  n${at}["${mermaidText(words)}"]`)];
  if (all.length > shown.length) lines.push('  more["and more"]');
  for (const { from, to } of rows) {
    const [a, b] = [nodeOf(from), nodeOf(to)];
    if (a !== undefined && b !== undefined) lines.push(`  ${a} --> ${b}`);
  }
  const marked = shown.flatMap((words, at) => (words.startsWith(ROOT_CAUSE) ? `n${at}` : []));
  if (marked.length > 0) lines.push(ROOT_CAUSE_STYLE, `  class ${marked.join(',')} rootCause`);
  return [...new Set(lines)].join('\n');
}

const ROOT_CAUSE = 'root cause: ';

/** Writes a label from an allow-list, without characters that have a meaning for Mermaid. */
function mermaidText(text: string): string {
  const kept = shorten(plainText(text), MAX_LABEL_CHARS).replace(
    /[^\p{L}\p{N} .,/:+_()=…-]/gu,
    ' ',
  );
  return kept.trim() === '' ? '(no name)' : kept;
}
