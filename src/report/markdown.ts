import { codeHtml, formatCount, plainText, shorten, upperFirst } from '../base/text.ts';
import { type Block, type Detail, documentOf } from './document.ts';
import type { Action } from './remedies.ts';
import { clockTime, clusterWords } from './sentences.ts';
import type { Ending, Failure, View } from './view.ts';
import { diagnosed, toHtml, toMarkdown } from './words.ts';

export interface RenderContext {
  /** Address of this run, for links; from the CI host, never from the cluster. */
  runUrl?: string | undefined;
  /** "run 812, attempt 1". */
  runLabel?: string | undefined;
}

const FULL: Detail = { causes: 200, rows: 200, isBrief: false };
const BRIEF: Detail = { ...FULL, rows: 5, isBrief: true };

/** From the longest to the shortest. */
const FORMS: readonly Detail[] = [
  FULL,
  BRIEF,
  { ...BRIEF, causes: 10 },
  { ...BRIEF, causes: 0, rows: 0 },
];

/** For a job summary or a comment: the longest form for which there is room; empty if there is none. */
export function renderSummary(ending: Ending, context: RenderContext, maxBytes: number): string {
  if (!('run' in ending)) return failureSection(ending, context);
  const texts = FORMS.values().map((detail) => renderDocument(ending, context, detail));
  return texts.find((text) => Buffer.byteLength(text) <= maxBytes) ?? '';
}

export function renderMarkdownReport(view: View, context: RenderContext): string {
  return renderDocument(view, context, { ...FULL, rows: 2_000 });
}

function failureSection({ at, hints, message }: Failure, context: RenderContext): string {
  return [
    '### 🔴 The teardown gate could not work',
    ...[message, ...hints].map((text) => codeHtml(text, MAX_FAILURE_CHARS)),
    'The state of the namespaces is unknown.',
    `<sub>${runLink(context)} · ${clockTime(at)}</sub>\n`,
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
  return `${blocksMarkdown(documentOf(view, detail))}\n\n<sub>${footer.join(' · ')}</sub>\n`;
}

function runLink({ runLabel = 'this run', runUrl }: RenderContext): string {
  const label = toMarkdown(diagnosed(runLabel));
  return runUrl === undefined ? label : `[${label}](${runUrl})`;
}

const MAX_COMMAND_CHARS = 4_000;
const MAX_FAILURE_CHARS = 1_000;

function blocksMarkdown(blocks: readonly Block[]): string {
  return blocks.map(blockMarkdown).join('\n\n');
}

function blockMarkdown(block: Block): string {
  const left = 'left' in block && block.left > 0 ? `\n\nAnd ${formatCount(block.left)} more.` : '';
  switch (block.kind) {
    case 'heading':
      return `${block.level} ${toMarkdown(block.words)}`;
    case 'line':
      return toMarkdown(block.words);
    case 'list': {
      const { title, items, isOrdered } = block;
      const lines = items.map(({ words, depth = 0 }, at) => {
        return `${'  '.repeat(depth)}${isOrdered ? `${at + 1}.` : '-'} ${toMarkdown(words)}`;
      });
      const head = title === '' ? '' : `**${toMarkdown(title)}**\n\n`;
      return `${head}${lines.join('\n')}${left}`;
    }
    case 'actions': {
      const { title, isOrdered, actions } = block;
      const [only, ...others] = actions;
      if (only !== undefined && others.length === 0)
        return `${actionMarkdown(only, `**${toMarkdown(title)}.** `, '')}${left}`;
      const items = actions.map((action, at) => {
        const lead = isOrdered ? `${at + 1}. ` : '- ';
        return actionMarkdown(action, lead, ' '.repeat(lead.length));
      });
      return `**${toMarkdown(title)}**\n\n${items.join('\n')}${left}`;
    }
    case 'yaml':
      return codeBlock('yaml', block.lines);
    case 'fold':
      return `<details><summary>${toHtml(block.title)}</summary>\n\n${blocksMarkdown(block.blocks)}\n\n</details>`;
  }
}

function actionMarkdown({ text, risk, commands }: Action, lead: string, indent: string): string {
  const isBare = risk === undefined && commands.size > 0;
  const danger = risk === undefined ? '' : ` **Risk:** ${toMarkdown(upperFirst(risk))}.`;
  const code = commands.size === 0 ? '' : `\n\n${codeBlock('sh', shownCommands(commands), indent)}`;
  return `${lead}${toMarkdown(upperFirst(text))}${isBare ? ':' : '.'}${danger}${code}`;
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
