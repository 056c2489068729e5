import { type Block, type Detail, documentOf, type Measure } from './document.ts';
import { codeBlock, diagramSource, folded, table, toHtml, toMarkdown } from './markup.ts';
import { clockTime, clusterWords } from './sentences.ts';
import type { Action, View } from './view.ts';
import { capitalized, fact, type Words } from './words.ts';

export interface RenderContext {
  /** Address of this run, for links; ours, never from the cluster. */
  runUrl?: string;
  /** "run 812, attempt 1". */
  runLabel?: string;
  /** ISO 8601, our clock. */
  finishedAt: string;
}

const FULL: Detail = {
  // Two screens at a width of 900 pixels.
  lines: 60,
  causes: 200,
  remedies: 20,
  rows: 200,
  forced: 8,
  chars: 300,
  namespaces: 10,
  hasEvidence: true,
  hasRawData: true,
};

/** The file on disk: nobody counts its bytes, but a million rows would help nobody. */
const FILE: Detail = {
  ...FULL,
  lines: Number.POSITIVE_INFINITY,
  remedies: 100,
  rows: 2_000,
  forced: 2_000,
  chars: 2_000,
  namespaces: 1_000,
};

/** Every cause still with its first remedy. */
const BRIEF: Detail = {
  ...FULL,
  remedies: 1,
  rows: 5,
  chars: 200,
  namespaces: 0,
  hasEvidence: false,
  hasRawData: false,
};

const LADDER: readonly Detail[] = [
  FULL,
  { ...FULL, hasRawData: false, rows: 50, namespaces: 3 },
  { ...BRIEF, remedies: 20, rows: 20, chars: 300 },
  { ...BRIEF, remedies: 3 },
  BRIEF,
  { ...BRIEF, causes: 50 },
  { ...BRIEF, causes: 20 },
  { ...BRIEF, causes: 5 },
  { ...BRIEF, causes: 1 },
  { ...BRIEF, causes: 0, rows: 0, chars: 100 },
];

/** The job summary, in the longest form that stays below `maxBytes`. */
export function renderSummary(view: View, context: RenderContext, maxBytes: number): string {
  return longestThatFits(
    (detail, isShortened) => renderDocument(view, context, detail, isShortened),
    (text) => Buffer.byteLength(text) <= maxBytes,
  );
}

/** report.md: everything, for whoever downloads it. */
export function renderMarkdownReport(view: View, context: RenderContext): string {
  return renderDocument(view, context, FILE, false);
}

/** Empty when not even the shortest form fits: then there is no room to say anything. */
export function longestThatFits(
  render: (detail: Detail, isShortened: boolean) => string,
  fits: (text: string) => boolean,
): string {
  for (const [at, detail] of LADDER.entries()) {
    const text = render(detail, at > 0);
    if (fits(text)) return text;
  }
  return '';
}

function renderDocument(
  view: View,
  context: RenderContext,
  detail: Detail,
  isShortened: boolean,
): string {
  const sections = [...bodySections(view, detail), footer(view, context, isShortened)];
  return `${sections.join('\n\n')}\n`;
}

/** The report without its foot, a string per block. */
export function bodySections(view: View, detail: Detail, headline = view.headline): string[] {
  const encode = (block: Block): string => blockMarkdown(block, detail.chars);
  const measure: Measure = (blocks) =>
    blocks.reduce((sum, block) => sum + linesOf(encode(block)), 0);
  return documentOf(view, detail, measure, headline).map(encode);
}

export function footer(view: View, context: RenderContext, isShortened: boolean): string {
  const run = toMarkdown([fact(context.runLabel ?? 'this run')]);
  const isLinked = context.runUrl !== undefined;
  const parts = [
    isLinked ? `[${run}](${context.runUrl})` : run,
    clockTime(context.finishedAt),
    toMarkdown(clusterWords(view.run)),
    ...(view.inspectedTypes === 0 ? [] : [`${view.inspectedTypes} resource types inspected`]),
    ...(isShortened
      ? [
          `shortened; the full report is in ${isLinked ? `[the run](${context.runUrl})` : 'report.json'}`,
        ]
      : []),
  ];
  return `<sub>${parts.join(' · ')}</sub>`;
}

/** At a width of 900 pixels. */
const LINE_CHARS = 105;

/** How many lines a block takes on a page, margins included. */
function linesOf(markdown: string): number {
  let lines = 0;
  const shown = markdown.replace(/&#\d+;/g, ' ').replace(/<\/?code>/g, '');
  for (const line of ['', ...shown.split('\n')]) {
    const long = Math.ceil(line.length / LINE_CHARS);
    // A command does not wrap; its block has a margin and a border above and below.
    if (line === '') lines += 0.7;
    else if (line.startsWith('#')) lines += 1.8;
    else if (/^ *```/.test(line)) lines += 1;
    else if (line.startsWith('|')) lines += 0.6 + long;
    else lines += /^ *kubectl/.test(line) ? 1 : long;
  }
  return lines;
}

function blockMarkdown(block: Block, chars: number): string {
  const text = (words: Words): string => toMarkdown(words, chars);
  const inner = (blocks: readonly Block[]): string =>
    blocks.map((one) => blockMarkdown(one, chars)).join('\n\n');
  switch (block.kind) {
    case 'heading':
      return `${block.level} ${text(block.words)}`;
    case 'line':
      return text(block.words);
    case 'list':
      return block.items
        .map((item, at) => `${block.isOrdered ? `${at + 1}.` : '-'} ${text(item)}`)
        .join('\n');
    case 'actions': {
      const { title, isOrdered, first, actions } = block;
      const [only, ...others] = actions;
      if (only !== undefined && others.length === 0)
        return actionMarkdown(only, `**${title}.** `, '', chars);
      const items = actions.map((action, at) => {
        const lead = isOrdered ? `${first + at}. ` : '- ';
        return actionMarkdown(action, lead, ' '.repeat(lead.length), chars);
      });
      return `**${title}**\n\n${items.join('\n')}`;
    }
    case 'table':
      return table(
        block.header,
        block.rows.map((cells) => cells.map(text)),
      );
    case 'proofs':
      return block.proofs
        .map(({ sentence, age, lines }) => {
          const head = `- ${text(sentence)}${age === '' ? '' : `, ${age}`}:`;
          return [head, ...lines.slice(0, 20).map((line) => `  - ${text(line)}`)].join('\n');
        })
        .join('\n');
    case 'commands':
      return codeBlock(block.language, block.lines);
    case 'graph':
      return `\`\`\`mermaid\n${diagramSource(block.rows)}\n\`\`\``;
    case 'terms':
      return block.terms.map((term) => `<sub>${text(term)}</sub>`).join('<br>');
    case 'section':
      return inner(block.blocks);
    case 'fold':
      return folded(toHtml(block.title), inner(block.blocks));
  }
}

function actionMarkdown(action: Action, lead: string, indent: string, chars: number): string {
  const { text, risk, command, rules, others } = action;
  const isBare = risk === undefined && others.length === 0;
  const lines = [
    `${lead}${toMarkdown(capitalized(text), chars)}`,
    isBare && (command ?? rules) !== undefined ? ':' : '.',
    risk === undefined ? '' : ` **Risk:** ${toMarkdown(risk, chars)}.`,
    others.length === 0 ? '' : ` Here in the first of ${others.length + 1} places.`,
    command === undefined ? '' : `\n${codeBlock('sh', [command], indent)}`,
    rules === undefined ? '' : `\n${codeBlock('yaml', rules, indent)}`,
  ];
  return lines.join('');
}
