import type { Log } from '../base/log.ts';
import { formatCount, plainText, shorten, upperFirst } from '../base/text.ts';
import { groupsBy } from './causes.ts';
import { type Block, causeSection, type Detail, documentOf } from './document.ts';
import { shownCommands } from './markdown.ts';
import type { Action } from './remedies.ts';
import { clusterWords, leftBehindTitle } from './sentences.ts';
import type { CauseView, NamespaceView, View } from './view.ts';
import { counted, literal, toPlain } from './words.ts';

/** GitHub shows ten annotations of a kind for a step. */
const MAX_ANNOTATIONS = 10;
const MAX_ANNOTATION_CHARS = 500;
const MAX_ROOT_CAUSE_CHARS = 1_000;
const MAX_CHAT_CHARS = 500;
const TITLE = 'Namespace teardown';

/** A text for one screen. */
const TEXT: Detail = { causes: 8, rows: 15, isBrief: false };
/** A step log has no limit on a page. */
const LOG: Detail = { ...TEXT, causes: 100, rows: 100 };

export function renderText(view: View): string {
  const isBrief = view.causeCount > 2;
  const [, ...blocks] = documentOf(view, { ...TEXT, isBrief });
  const headline = `${toPlain(view.headline)}  (${toPlain(clusterWords(view.run))})`;
  const lines = blocks.filter((block) => block.kind !== 'fold' || !block.isDetail).flatMap(spaced);
  if (isBrief) lines.push('', 'To see alternatives and evidence, add --format markdown');
  return `${[headline, ...lines.map((line) => (line === '' ? '' : `  ${line}`))].join('\n')}\n`;
}

/** The end of the step log, with folds as groups, and annotations. */
export function logReport(view: View, log: Log): void {
  const [only] = view.namespaces.length === 1 ? view.namespaces : [];
  const [, ...blocks] = documentOf(view, LOG);
  log.line(toPlain(only ? `${literal(only.name)} ${only.state}` : view.headline));
  for (const block of blocks) {
    if (block.kind === 'fold') log.group(toPlain(block.title), block.blocks.flatMap(blockLines));
    else for (const line of spaced(block)) log.line(line);
  }
  annotate(view, log);
}

export function causeText(cause: CauseView): string[] {
  return causeSection({ causeCount: 1, whyTitle: 'Cause' }, cause, 1, TEXT).flatMap(blockLines);
}

function spaced(block: Block): string[] {
  return ['', ...blockLines(block)];
}

function blockLines(block: Block): string[] {
  const left = 'left' in block && block.left > 0 ? [`And ${formatCount(block.left)} more.`] : [];
  switch (block.kind) {
    case 'heading':
    case 'line':
      return [toPlain(block.words)];
    case 'list': {
      const { title, items, isOrdered } = block;
      const lines = items.map(({ words, depth = 0 }, at) => {
        return `${'  '.repeat(depth)}${isOrdered ? `${at + 1}.` : '-'} ${toPlain(words)}`;
      });
      return [...(title === '' ? [] : [`${toPlain(title)}:`]), ...lines, ...left];
    }
    case 'actions': {
      const { title, isOrdered, actions } = block;
      const lines = actions.flatMap((action, at) =>
        actionLines(action, isOrdered ? `${at + 1}.` : '-'),
      );
      return [`${toPlain(title)}:`, ...lines, ...left];
    }
    case 'yaml':
      return block.lines.map((line) => `  ${plainText(line)}`);
    case 'fold':
      return [`${toPlain(block.title)}:`, ...block.blocks.flatMap(blockLines)];
  }
}

function actionLines({ text, risk, commands }: Action, lead: string): string[] {
  const cost = risk === undefined ? '' : ` (risk: ${toPlain(risk)})`;
  const indent = ' '.repeat(lead.length + 1);
  return [
    `${lead} ${toPlain(upperFirst(text))}${cost}`,
    ...shownCommands(commands).map((command) => `${indent}${plainText(command)}`),
  ];
}

/** One annotation for equal namespaces that were not simply deleted, and one for the worst leftover. */
function annotate({ headline, namespaces, leftBehind, run }: View, log: Log): void {
  if (namespaces.length === 0 && run.verdict === 'fail') log.error(toPlain(headline), TITLE);
  const told = namespaces.filter(({ verdict }) => verdict !== 'pass');
  const groups = groupsBy(told, ({ name, outcome, verdict, sentence }) =>
    [verdict, outcome, sentence || name].join('\n'),
  );
  for (const [first, ...others] of groups.slice(0, MAX_ANNOTATIONS)) {
    const message = shorten(namespaceLine(first, others.length), MAX_ANNOTATION_CHARS);
    log[first.verdict === 'fail' ? 'error' : 'warning'](
      message,
      plainText(`${TITLE}: ${first.name}`),
    );
  }
  const [worst] = leftBehind;
  if (worst !== undefined) {
    const { kind, name, why, breaksOthers } = worst;
    const message = plainText(`${leftBehindTitle(leftBehind, run)}, first ${kind} ${name}: ${why}`);
    log[breaksOthers ? 'warning' : 'notice'](shorten(message, MAX_ANNOTATION_CHARS), TITLE);
  }
}

/** "team-1 is stuck, like 30 others: Widget db is held by …". */
function namespaceLine({ name, state, sentence }: NamespaceView, others = 0): string {
  const like = others === 0 ? '' : `, like ${counted(others, 'other')}`;
  const cause = sentence === '' ? '' : `: ${sentence}`;
  return toPlain(`${literal(name)} ${state}${like}${cause}`);
}

/** Output `root-cause`: one sentence about the chain of the worst namespace. */
export function rootCauseSentence({ namespaces }: View): string {
  return shorten(toPlain(namespaces[0]?.sentence ?? ''), MAX_ROOT_CAUSE_CHARS);
}

/** Output `summary-text`: one line for chat, without mark-up and mentions of chat programs. */
export function summaryText({ namespaces, run, headline }: View): string {
  const [worst] = namespaces;
  const isAlone = namespaces.length === 1;
  const line = [
    ...(isAlone ? [] : [toPlain(headline)]),
    ...(worst !== undefined && (isAlone || run.verdict === 'fail') ? [namespaceLine(worst)] : []),
  ].join(': ');
  return shorten(line.replace(/[<>@`$\\|*~[\]]/g, ' '), MAX_CHAT_CHARS);
}
