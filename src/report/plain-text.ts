import type { Log } from '../base/log.ts';
import { plainText, shorten } from '../base/text.ts';
import { groupsBy } from './causes.ts';
import {
  type Block,
  causeSection,
  type Detail,
  documentOf,
  type Fold,
  SMALL_LIST,
} from './document.ts';
import type { Action } from './remedies.ts';
import { clusterWords, leftBehindTitle } from './sentences.ts';
import type { CauseView, NamespaceView, Row, View } from './view.ts';
import {
  capitalized,
  counted,
  formatCount,
  joinWords,
  listExact,
  literal,
  toPlain,
} from './words.ts';

const MAX_PLACES = 5;
/** GitHub shows ten annotations of a kind for a step; the tenth says how many more there are. */
const MAX_ANNOTATIONS = 10;
const MAX_ANNOTATION_CHARS = 500;
const MAX_ROOT_CAUSE_CHARS = 1_000;
const MAX_CHAT_CHARS = 500;
const TITLE = 'Namespace teardown';

/** A text without folds, with one remedy for each of many causes: forty namespaces fit on a screen. */
const TEXT: Detail = { causes: 8, remedies: 8, rows: 10, chars: 0, hasEvidence: true };
/** The groups of a step log, which has no limit on a page. */
const GROUPS: Detail = { ...TEXT, remedies: 100, rows: 100 };

/** Renders the report for a terminal. */
export function renderText(view: View): string {
  const headline = `${toPlain(view.headline)}  (${toPlain(clusterWords(view.run))})`;
  const lines = explanationLines(view, ({ inText }) => inText !== 'nowhere');
  return `${[headline, ...lines.map((line) => (line === '' ? '' : `  ${line}`))].join('\n')}\n`;
}

/** Writes the end of the step log: the outcome and cause of each namespace, folded details, annotations. */
export function logReport(view: View, log: Log): void {
  const [only] = view.namespaces.length === 1 ? view.namespaces : [];
  log.line(toPlain(only ? `${literal(only.name)} ${only.state}` : view.headline));
  const isVisible = ({ inText }: Fold): boolean => inText === 'everywhere';
  for (const line of explanationLines(view, isVisible)) log.line(line);
  for (const block of documentOf(view, GROUPS)) {
    if (block.kind !== 'fold' || isVisible(block)) continue;
    const lines = block.blocks.flatMap((one) => blockLines(one, () => true));
    log.group(toPlain(block.title), lines);
  }
  annotate(view, log);
}

/** Writes the cause, who can fix it, what to do, and what was not inspected, after an empty line each. */
function explanationLines(view: View, isShown: (fold: Fold) => boolean): string[] {
  const { namespaces, notInspected, causeCount } = view;
  const isBrief = causeCount > 2;
  const detail = {
    ...TEXT,
    remedies: isBrief ? 1 : TEXT.remedies,
    hasEvidence: namespaces.length === 1,
  };
  const [, ...blocks] = documentOf(view, detail);
  const hasLooked = namespaces.some(({ diagnosis }) => diagnosis !== undefined);
  return [
    ...blocks.map((block) => blockLines(block, isShown, isBrief)),
    hasLooked && notInspected.length === 0 ? ['Everything was inspected.'] : [],
    namespaces.length > SMALL_LIST ? statesOf(namespaces) : [],
  ].flatMap((lines) => (lines.length === 0 ? [] : ['', ...lines]));
}

/** Writes the section about a cause for a file that has no other causes. */
export function causeText(cause: CauseView): string[] {
  return causeSection({ causeCount: 1, whyTitle: 'Cause' }, cause, 1, TEXT.remedies, TEXT)
    .flatMap((block) => blockLines(block, () => true))
    .filter((line) => line !== '');
}

/** Writes a block. In a brief text, a section has no titles and no empty lines. */
function blockLines(block: Block, isShown: (fold: Fold) => boolean, isBrief = false): string[] {
  const rest = 'left' in block && block.left > 0 ? [`And ${formatCount(block.left)} more.`] : [];
  const inner = (blocks: Block[]) => blocks.map((one) => blockLines(one, isShown, isBrief));
  switch (block.kind) {
    case 'heading':
    case 'line':
      return [toPlain(block.words)];
    case 'note':
      return [];
    case 'list': {
      const { title, items, isOrdered } = block;
      const lines = items.flatMap(({ words, lines: below }, at) => [
        `${isOrdered ? `${at + 1}.` : '-'} ${toPlain(words)}`,
        ...below.map((line) => `  · ${toPlain(line)}`),
      ]);
      return [...(title.length > 0 ? [`${toPlain(title)}:`] : []), ...lines, ...rest];
    }
    case 'actions': {
      const { title, isOrdered, first, actions } = block;
      const lines = actions.flatMap((action, at) =>
        actionLines(action, isBrief ? '->' : isOrdered ? `${first + at}.` : '-'),
      );
      return isBrief ? lines : [`${title}:`, ...lines, ...rest];
    }
    case 'commands':
      return block.lines.map((line) => `  ${plainText(line)}`);
    case 'graph':
      return [toPlain(block.start), ...block.rows.map(treeLine), ...rest];
    case 'fold':
      return isShown(block) ? [`${toPlain(block.title)}:`, ...inner(block.blocks).flat()] : [];
    case 'section':
      return inner(block.blocks).flatMap((lines, at) =>
        at === 0 || isBrief ? lines : ['', ...lines],
      );
  }
}

function actionLines({ text, risk, command, others }: Action, lead: string): string[] {
  const places = others.length > 0 ? `; the first of ${others.length + 1} commands` : '';
  const cost = risk === undefined ? '' : ` (risk: ${toPlain(risk)})`;
  return [
    `${lead} ${toPlain(capitalized(text))}${places}${cost}`,
    ...(command === undefined ? [] : [`${' '.repeat(lead.length + 1)}${plainText(command)}`]),
  ];
}

/** Writes "stuck: a, b and 38 more". */
function statesOf(namespaces: readonly NamespaceView[]): string[] {
  const byOutcome = Map.groupBy(namespaces, (one) => one.outcome);
  return [...byOutcome].map(([outcome, list]) => {
    const names = list.map(({ name }) => name);
    return `${outcome}: ${toPlain(listExact(names, MAX_PLACES))}`;
  });
}

/** Writes an edge of the wait-for graph: "│  └─ Widget db is held by … ← root cause". */
function treeLine({ depth, label, message, isRootCause }: Row): string {
  const lead = depth.map((more, at) =>
    at < depth.length - 1 ? (more ? '│  ' : '   ') : more ? '├─ ' : '└─ ',
  );
  const words = toPlain(joinWords([label, message], ' '));
  return `${lead.join('')}${words}${isRootCause ? ' ← root cause' : ''}`;
}

/** Writes one annotation for equal namespaces that were not simply deleted, and one for the worst leftover. */
function annotate({ headline, namespaces, leftBehind, run }: View, log: Log): void {
  if (namespaces.length === 0 && run.verdict === 'fail') log.error(toPlain(headline), TITLE);
  const told = namespaces.filter(({ verdict }) => verdict !== 'pass');
  const keyOf = ({ name, outcome, verdict, sentence }: NamespaceView): string =>
    [verdict, outcome, toPlain(sentence) || name].join('\n');
  const groups = groupsBy(told, keyOf);
  const shown = groups.length > MAX_ANNOTATIONS ? groups.slice(0, MAX_ANNOTATIONS - 1) : groups;
  const levelOf = (some: readonly NamespaceView[]) =>
    some.some(({ verdict }) => verdict === 'fail') ? 'error' : 'warning';
  for (const group of shown) {
    const [first, ...others] = group;
    const title = plainText(`${TITLE}: ${first.name}`);
    log[levelOf(group)](shorten(namespaceLine(first, others.length), MAX_ANNOTATION_CHARS), title);
  }
  const left = groups.slice(shown.length).flat();
  if (left.length > 0) {
    const message = `and ${left.length} more namespaces that did not pass; see the log`;
    log[levelOf(left)](message, TITLE);
  }
  const [worst] = leftBehind;
  if (worst !== undefined) {
    const { kind, name, why, breaksOthers } = worst;
    const title = `${leftBehindTitle(leftBehind, run)}${leftBehind.length > 1 ? '; the first:' : ':'}`;
    const message = plainText(`${title} ${kind} ${name}: ${why}`);
    log[breaksOthers ? 'warning' : 'notice'](shorten(message, MAX_ANNOTATION_CHARS), TITLE);
  }
}

/** Writes "preview-pr-42 is stuck: Widget db is held by …", "team-1 is stuck, like 30 others: …". */
function namespaceLine({ name, state, sentence }: NamespaceView, others = 0): string {
  const like = others === 0 ? '' : `, like ${counted(others, 'other')}`;
  const cause = sentence === '' ? '' : `: ${sentence}`;
  return toPlain(`${literal(name)} ${state}${like}${cause}`);
}

/** Returns output `root-cause`: one sentence about the chain of the worst namespace; empty without a chain. */
export function rootCauseSentence(view: View): string {
  const [worst] = view.namespaces;
  return worst === undefined ? '' : shorten(toPlain(worst.sentence), MAX_ROOT_CAUSE_CHARS);
}

/** Returns output `summary-text`: one line for chat, without mark-up and mentions of chat programs. */
export function summaryText({ namespaces, run, headline }: View): string {
  const [worst] = namespaces;
  const isAlone = namespaces.length === 1;
  const line = [
    ...(isAlone ? [] : [toPlain(headline)]),
    ...(worst !== undefined && (isAlone || run.verdict === 'fail') ? [namespaceLine(worst)] : []),
  ].join(': ');
  return shorten(line.replace(/[<>@`$\\|*~[\]]/g, ' '), MAX_CHAT_CHARS);
}
