import type { Log } from '../base/log.ts';
import { plainText, shorten } from '../base/text.ts';
import {
  alikeNamespaces,
  type Block,
  type Detail,
  documentOf,
  othersLikeIt,
  SMALL_TABLE,
} from './document.ts';
import { clusterWords, leftBehindTitle } from './sentences.ts';
import type { Action, NamespaceView, Row, View } from './view.ts';
import { capitalized, counted, formatCount, listExact, toPlain } from './words.ts';

const MAX_PLACES = 5;
const MAX_TREE_LINES = 60;
const MAX_SUBJECT_WIDTH = 60;
const MAX_EVIDENCE = 30;
const MAX_FINDINGS = 100;
/** GitHub shows ten annotations of a kind for a step; the tenth says how many more there are. */
const MAX_ANNOTATIONS = 10;
const MAX_ANNOTATION_CHARS = 500;
const MAX_LOOKS = 20;
const MAX_ROOT_CAUSE_CHARS = 1_000;
const MAX_CHAT_CHARS = 500;
const TITLE = 'Namespace teardown';

/** Renders the report for a terminal. */
export function renderText(view: View): string {
  const headline = `${toPlain(view.headline)}  (${toPlain(clusterWords(view.run))})`;
  const lines = explanationLines(view, view.namespaces.length === 1);
  return `${[headline, ...lines.map((line) => (line === '' ? '' : `  ${line}`))].join('\n')}\n`;
}

/** Writes the end of the step log: the outcome and cause of each namespace, folded details, annotations. */
export function logReport(view: View, log: Log): void {
  const [only] = view.namespaces.length === 1 ? view.namespaces : [];
  log.line(only ? plainText(`${only.name} ${only.state}`) : toPlain(view.headline));
  for (const line of explanationLines(view, false)) log.line(line);
  const examined = view.namespaces.filter(({ diagnosis }) => diagnosis !== undefined);
  for (const [one, ...alike] of alikeNamespaces(examined).slice(0, MAX_LOOKS)) {
    log.group(lookTitle(one, only ? undefined : alike.length), lookLines(one));
  }
  annotate(view, log);
}

/**
 * Writes the cause, who can fix it, what to do, and what was not inspected, after an empty line each. Of many
 * causes, each has one remedy, so that forty namespaces fit on a screen.
 */
function explanationLines(view: View, hasEvidence: boolean): string[] {
  const { namespaces, notSeen, causeCount } = view;
  const [only] = namespaces.length === 1 ? namespaces : [];
  const detail: Detail = {
    lines: Number.POSITIVE_INFINITY,
    causes: 8,
    remedies: causeCount > 2 ? 1 : 8,
    rows: 10,
    forced: 100,
    chars: 0,
    namespaces: 0,
    hasEvidence,
    hasRawData: false,
  };
  const [, ...blocks] = documentOf(view, detail, () => 0);
  const hasLooked = namespaces.some(({ diagnosis }) => diagnosis !== undefined);
  return [
    only === undefined ? [] : treeLines(only.rows),
    ...blocks.map((block) => blockLines(block, detail.remedies === 1)),
    hasLooked && notSeen.length === 0 ? ['Everything was inspected.'] : [],
    namespaces.length > SMALL_TABLE ? statesOf(namespaces) : [],
  ].flatMap((lines) => (lines.length === 0 ? [] : ['', ...lines]));
}

function blockLines(block: Block, isBrief: boolean): string[] {
  const left = 'left' in block ? block.left : 0;
  const rest = left > 0 ? [`And ${formatCount(left)} more.`] : [];
  switch (block.kind) {
    case 'heading':
    case 'line':
      return [toPlain(block.words)];
    case 'list':
      return block.items.map(
        (item, at) => `${block.isOrdered ? `${at + 1}.` : '-'} ${toPlain(item)}`,
      );
    case 'actions': {
      const { title, isOrdered, first, actions } = block;
      const lines = actions.flatMap((action, at) =>
        actionLines(action, isBrief ? '->' : isOrdered ? `${first + at}.` : '-'),
      );
      return isBrief ? lines : [`${title}:`, ...lines, ...rest];
    }
    case 'table': {
      const { title, rows } = block;
      const lines = rows.map((cells) => `- ${cells.map(toPlain).join('  ').trimEnd()}`);
      return [...(title.length > 0 ? [`${toPlain(title)}:`] : []), ...lines, ...rest];
    }
    case 'proofs': {
      const lines = block.proofs.flatMap((proof) => [
        `${toPlain(proof.subject)}:`,
        ...proof.lines.map((line) => `  · ${toPlain(line)}`),
      ]);
      return ['Evidence:', ...lines.slice(0, MAX_EVIDENCE)];
    }
    case 'commands':
      return block.lines.map((line) => `  ${plainText(line)}`);
    case 'fold':
      if (block.inText === 'all') {
        const inner = block.blocks.flatMap((one) => blockLines(one, true));
        return [`${toPlain(block.title)}:`, ...inner];
      }
      // The tree replaces the table of the chain.
      return block.inText === 'proofs'
        ? block.blocks.flatMap((one) => (one.kind === 'proofs' ? blockLines(one, isBrief) : []))
        : [];
    case 'section': {
      const parts = block.blocks.map((one) => blockLines(one, isBrief));
      return parts.flatMap((lines, at) => (at === 0 || isBrief ? lines : ['', ...lines]));
    }
    case 'graph':
    case 'terms':
      return [];
  }
}

function actionLines({ text, risk, command, rules, others }: Action, lead: string): string[] {
  const places = others.length > 0 ? `; the first of ${others.length + 1} commands` : '';
  const cost = risk === undefined ? '' : ` (risk: ${toPlain(risk)})`;
  const block = [...(command === undefined ? [] : [command]), ...(rules ?? [])];
  const margin = ' '.repeat(lead.length + 1);
  return [
    `${lead} ${toPlain(capitalized(text))}${places}${cost}`,
    ...block.map((line) => `${margin}${plainText(line)}`),
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

/** Writes the wait-for graph as indented lines. */
export function treeLines(rows: readonly Row[]): string[] {
  const [first] = rows;
  if (first === undefined) return [];
  const shown = rows.slice(0, MAX_TREE_LINES);
  const left = ({ depth, isSelf, message, toWords }: Row): string => {
    const lead = depth.map((more, at) =>
      at < depth.length - 1 ? (more ? '│  ' : '   ') : more ? '├─ ' : '└─ ',
    );
    // A finding about the waiting object itself is shown by its message alone.
    return `${lead.join('')}${toPlain(isSelf ? message : toWords)}`;
  };
  const right = ({ isKnown, isSelf, message }: Row): string =>
    isKnown ? '(see above)' : isSelf ? '' : toPlain(message);
  const widths = shown.flatMap((row) => (right(row) === '' ? [] : left(row).length));
  const width = Math.min(MAX_SUBJECT_WIDTH, Math.max(0, ...widths));
  return [
    toPlain(first.fromWords),
    ...shown.map((row) => {
      const line = right(row) === '' ? left(row) : `${left(row).padEnd(width)}  ${right(row)}`;
      return `${line}${row.isRootCause && !row.isKnown ? '   ← root cause' : ''}`;
    }),
    ...(rows.length > shown.length
      ? [`… and ${formatCount(rows.length - shown.length)} more`]
      : []),
  ];
}

/** Writes one annotation for equal namespaces that were not simply deleted, and one for the worst leftover. */
function annotate({ headline, namespaces, leftBehind, run }: View, log: Log): void {
  if (namespaces.length === 0 && run.verdict === 'fail') log.error(toPlain(headline), TITLE);
  const told = namespaces.filter(({ verdict }) => verdict !== 'pass');
  const keyOf = ({ name, outcome, verdict, sentence }: NamespaceView): string =>
    [verdict, outcome, toPlain(sentence) || name].join('\n');
  const groups = [...Map.groupBy(told, keyOf).values()];
  const shown = groups.length > MAX_ANNOTATIONS ? groups.slice(0, MAX_ANNOTATIONS - 1) : groups;
  const levelOf = (some: readonly NamespaceView[]) =>
    some.some(({ verdict }) => verdict === 'fail') ? 'error' : 'warning';
  for (const group of shown) {
    const [first, ...others] = group as [NamespaceView, ...NamespaceView[]];
    const title = plainText(`${TITLE}: ${namesOf(first, others.length)}`);
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

/** Writes "team-1", "team-1 and 30 others". */
function namesOf({ name }: NamespaceView, others: number): string {
  return others === 0 ? name : `${name} and ${counted(others, 'other')}`;
}

/** Writes "preview-pr-42 is stuck: Widget db is held by …", "team-1 and 30 others are stuck: …". */
function namespaceLine(namespace: NamespaceView, others = 0): string {
  const { state, stateOfMany, sentence } = namespace;
  const line = `${namesOf(namespace, others)} ${others === 0 ? state : stateOfMany}`;
  return plainText(sentence.length === 0 ? line : `${line}: ${toPlain(sentence)}`);
}

/** Returns the title of a group. `alike`: how many others are equal; undefined in a run over one namespace. */
function lookTitle(namespace: NamespaceView, alike: number | undefined): string {
  const { name, diagnosis, examination } = namespace;
  const cost =
    examination === undefined
      ? ''
      : `, ${examination.requests} requests, ${(examination.ms / 1_000).toFixed(1)} s`;
  const where = alike === undefined ? '' : ` in ${name}${toPlain(othersLikeIt(alike))}`;
  return plainText(`What was inspected${where} (${diagnosis?.inspectedTypes ?? 0} types${cost})`);
}

function lookLines({ diagnosis, conditions, timeline }: NamespaceView): string[] {
  return [
    ...(diagnosis?.findings ?? [])
      .slice(0, MAX_FINDINGS)
      .flatMap(({ code, subject, message, evidence: lines }) => [
        `${code}: ${subject.kind} ${subject.name} ${message}`,
        ...lines.map((line) => `  ${line}`),
      ]),
    ...(diagnosis?.notInspected ?? []).map((one) => `not inspected: ${one.what}: ${one.reason}`),
    ...conditions
      .filter(({ status }) => status !== 'False')
      .map((one) => `condition ${one.type}=${one.status} ${one.reason}: ${one.message}`),
    ...timeline.map(({ at, event }) => `${at} ${event}`),
  ].map((line) => plainText(shorten(line, 2_000)));
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
  return shorten(line.replace(/[<>@`$\\|*~]/g, ' '), MAX_CHAT_CHARS);
}
