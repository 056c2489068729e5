import { codeHtml, plainText, shorten } from '../base/text.ts';
import { type Block, type Detail, documentOf } from './document.ts';
import type { Action } from './remedies.ts';
import { clockTime, clusterWords } from './sentences.ts';
import type { Ending, Failure, View } from './view.ts';
import {
  bold,
  capitalized,
  diagnosed,
  formatCount,
  joinWords,
  toHtml,
  toMarkdown,
  type Words,
} from './words.ts';

export interface RenderContext {
  /** Address of this run, for links; from the CI host, never from the cluster. */
  runUrl?: string | undefined;
  /** "run 812, attempt 1". */
  runLabel?: string | undefined;
}

const FULL: Detail = { causes: 200, remedies: 20, rows: 200, chars: 300, hasEvidence: true };

/** The file on disk: its size is not limited by a host, but a million rows would not help. */
const FILE: Detail = { ...FULL, remedies: 100, rows: 2_000, chars: 2_000 };

/** Every cause with its first remedy. */
const BRIEF: Detail = { ...FULL, remedies: 1, rows: 5, chars: 200, hasEvidence: false };

/** Forms of a report, from the longest to the shortest. */
const FORMS: readonly Detail[] = [
  FULL,
  BRIEF,
  { ...BRIEF, causes: 10 },
  { ...BRIEF, causes: 0, rows: 0, chars: 100 },
];

/** Renders the job summary, in the longest form that stays below `maxBytes`. */
export function renderSummary(ending: Ending, context: RenderContext, maxBytes: number): string {
  const text = longestThatFits(ending, context, (one) => Buffer.byteLength(one) < maxBytes);
  return text === '' ? '' : `${text}\n`;
}

/** Renders the part of one run in a comment; empty if there is no room for it. */
export function renderSection(ending: Ending, context: RenderContext, maxChars: number): string {
  return longestThatFits(ending, context, (one) => one.length <= maxChars);
}

/** Renders report.md with everything, for downloads. */
export function renderMarkdownReport(view: View, context: RenderContext): string {
  return `${renderDocument(view, context, FILE)}\n`;
}

/** Returns the longest form that fits; empty if not even the shortest fits. */
function longestThatFits(
  ending: Ending,
  context: RenderContext,
  fits: (text: string) => boolean,
): string {
  if (!('run' in ending)) return failureSection(ending, context);
  for (const detail of FORMS) {
    const text = renderDocument(ending, context, detail);
    if (fits(text)) return text;
  }
  return '';
}

function failureSection({ at, hints, message }: Failure, context: RenderContext): string {
  return [
    '### 🔴 The teardown gate could not work',
    ...[message, ...hints].map((text) => codeHtml(text, MAX_FAILURE_CHARS)),
    'The state of the namespaces is unknown.',
    `<sub>${runLink(context)} · ${clockTime(at)}</sub>`,
  ].join('\n\n');
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

function runLink({ runLabel = 'this run', runUrl }: RenderContext): string {
  const label = toMarkdown(diagnosed(runLabel));
  return runUrl === undefined ? label : `[${label}](${runUrl})`;
}

const MAX_COMMAND_CHARS = 4_000;
const MAX_FAILURE_CHARS = 1_000;
/** Lines below an item of a list. */
const MAX_LINES = 20;
/** Levels of the wait-for graph. */
const MAX_DEPTH = 5;

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
    case 'commands':
      return codeBlock(block.language, block.lines);
    case 'graph': {
      // A nested list wraps on a narrow screen. From some depth on it would have no room.
      const links = block.rows.map(({ depth, label, message, isRootCause }) => {
        const root = isRootCause ? bold('Root cause:') : '';
        const indent = '  '.repeat(Math.min(depth.length, MAX_DEPTH));
        return `${indent}- ${text(joinWords([root, label, message], ' '))}`;
      });
      return `- ${text(block.start)}\n${links.join('\n')}${andMore(block.left)}`;
    }
    case 'section':
      return inner(block.blocks);
    case 'fold':
      return `<details><summary>${toHtml(block.title)}</summary>\n\n${inner(block.blocks)}\n\n</details>`;
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
    command === undefined ? '' : `\n\n${codeBlock('sh', [command], indent)}`,
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
