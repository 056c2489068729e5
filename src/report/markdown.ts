import { codeHtml, plainText, shorten, upperFirst } from '../base/text.ts';
import { type Block, type Detail, documentOf } from './document.ts';
import type { Action } from './remedies.ts';
import { clockTime, clusterWords } from './sentences.ts';
import type { Ending, Failure, View } from './view.ts';
import { diagnosed, formatCount, toHtml, toMarkdown, type Words } from './words.ts';

export interface RenderContext {
  /** Address of this run, for links; from the CI host, never from the cluster. */
  runUrl?: string | undefined;
  /** "run 812, attempt 1". */
  runLabel?: string | undefined;
}

const FULL: Detail = { causes: 200, rows: 200, chars: 300, isBrief: false };

const FILE: Detail = { ...FULL, rows: 2_000, chars: 2_000 };

const BRIEF: Detail = { ...FULL, rows: 5, chars: 200, isBrief: true };

/** From the longest to the shortest. */
const FORMS: readonly Detail[] = [
  FULL,
  BRIEF,
  { ...BRIEF, causes: 10 },
  { ...BRIEF, causes: 0, rows: 0, chars: 100 },
];

export function renderSummary(ending: Ending, context: RenderContext, maxBytes: number): string {
  const text = longestThatFits(ending, context, (one) => Buffer.byteLength(one) < maxBytes);
  return text === '' ? '' : `${text}\n`;
}

/** The part of one run in a comment; empty if there is no room for it. */
export function renderSection(ending: Ending, context: RenderContext, maxChars: number): string {
  return longestThatFits(ending, context, (one) => one.length <= maxChars);
}

export function renderMarkdownReport(view: View, context: RenderContext): string {
  return `${renderDocument(view, context, FILE)}\n`;
}

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
  const { run, inspectedTypes } = view;
  const place = context.runUrl === undefined ? '' : `; [the run](${context.runUrl}) has the rest`;
  const footer = [
    runLink(context),
    clockTime(run.finishedAt),
    toMarkdown(clusterWords(run)),
    ...(inspectedTypes === 0 ? [] : [`${inspectedTypes} resource types inspected`]),
    ...(detail.isBrief ? [`shortened${place}`] : []),
  ];
  return `${blocksMarkdown(documentOf(view, detail), detail.chars)}\n\n<sub>${footer.join(' · ')}</sub>`;
}

function runLink({ runLabel = 'this run', runUrl }: RenderContext): string {
  const label = toMarkdown(diagnosed(runLabel));
  return runUrl === undefined ? label : `[${label}](${runUrl})`;
}

const MAX_COMMAND_CHARS = 4_000;
const MAX_FAILURE_CHARS = 1_000;
/** Lines below an item of a list. */
const MAX_LINES = 20;

function blocksMarkdown(blocks: readonly Block[], chars: number): string {
  return blocks.map((block) => blockMarkdown(block, chars)).join('\n\n');
}

function blockMarkdown(block: Block, chars: number): string {
  const text = (words: Words): string => toMarkdown(words, chars);
  const left = 'left' in block && block.left > 0 ? `\n\nAnd ${formatCount(block.left)} more.` : '';
  switch (block.kind) {
    case 'heading':
      return `${block.level} ${text(block.words)}`;
    case 'line':
      return text(block.words);
    case 'list': {
      const { title, items, isOrdered } = block;
      const lines = items.flatMap(({ words, lines: below, depth = 0 }, at) => [
        `${'  '.repeat(depth)}${isOrdered ? `${at + 1}.` : '-'} ${text(words)}`,
        ...below.slice(0, MAX_LINES).map((line) => `  - ${text(line)}`),
      ]);
      const head = title === '' ? '' : `**${text(title)}**\n\n`;
      return `${head}${lines.join('\n')}${left}`;
    }
    case 'actions': {
      const { title, isOrdered, actions } = block;
      const [only, ...others] = actions;
      if (only !== undefined && others.length === 0)
        return `${actionMarkdown(only, `**${text(title)}.** `, '', chars)}${left}`;
      const items = actions.map((action, at) => {
        const lead = isOrdered ? `${at + 1}. ` : '- ';
        return actionMarkdown(action, lead, ' '.repeat(lead.length), chars);
      });
      return `**${text(title)}**\n\n${items.join('\n')}${left}`;
    }
    case 'yaml':
      return codeBlock('yaml', block.lines);
    case 'fold':
      return `<details><summary>${toHtml(block.title)}</summary>\n\n${blocksMarkdown(block.blocks, chars)}\n\n</details>`;
  }
}

function actionMarkdown(
  { text, risk, commands }: Action,
  lead: string,
  indent: string,
  chars: number,
): string {
  const isBare = risk === undefined && commands.size > 0;
  const danger = risk === undefined ? '' : ` **Risk:** ${toMarkdown(upperFirst(risk), chars)}.`;
  const code = commands.size === 0 ? '' : `\n\n${codeBlock('sh', shownCommands(commands), indent)}`;
  return `${lead}${toMarkdown(upperFirst(text), chars)}${isBare ? ':' : '.'}${danger}${code}`;
}

const MAX_COMMANDS = 5;

export function shownCommands(commands: ReadonlySet<string>): string[] {
  const left = commands.size - MAX_COMMANDS;
  const rest = left > 0 ? [`# and ${formatCount(left)} more, in report.json`] : [];
  return [...[...commands].slice(0, MAX_COMMANDS), ...rest];
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
