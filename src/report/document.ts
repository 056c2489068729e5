import { shellQuote, upperFirst } from '../base/text.ts';
import type { LeftBehind } from '../model/result.ts';
import { groupsBy } from './causes.ts';
import type { Action, Remedies } from './remedies.ts';
import { asSentences, leftBehindTitle, messageWords, subjectWords, withAges } from './sentences.ts';
import type { CauseView, NamespaceView, Row, View } from './view.ts';
import {
  bold,
  capitalized,
  counted,
  diagnosed,
  formatCount,
  joinWords,
  listExact,
  literal,
  toPlain,
  type Words,
} from './words.ts';

/** An entry of a list, with the lines below it. */
interface Item {
  words: Words;
  lines: Words[];
}

/** A part of a report before it is written as Markdown or as text. `left` items, rows or actions are not shown. */
export type Block =
  | { kind: 'heading'; level: '###' | '####'; words: Words }
  /** A note explains a term. The text output has no notes. */
  | { kind: 'line' | 'note'; words: Words }
  /** The title may be empty. */
  | { kind: 'list'; title: Words; items: Item[]; left: number; isOrdered: boolean }
  /** `first`: number of the first action. */
  | {
      kind: 'actions';
      title: string;
      actions: Action[];
      isOrdered: boolean;
      first: number;
      left: number;
    }
  | { kind: 'commands'; language: 'sh' | 'yaml'; lines: string[] }
  | { kind: 'graph'; start: Words; rows: Row[]; left: number }
  /** Blocks about one cause. */
  | { kind: 'section'; blocks: Block[] }
  | Fold;

/** A collapsed part. `inText`: where the text output shows it expanded; the step log has a group for every other part. */
export interface Fold {
  kind: 'fold';
  title: Words;
  blocks: Block[];
  inText: 'everywhere' | 'terminal' | 'nowhere';
}

/**
 * The length of the report, from everything to the bare verdict. It is shortened by whole blocks:
 * a cut inside a block would leave a fence or a fold open.
 */
export interface Detail {
  /** Causes with their remedies. */
  causes: number;
  /** Remedies of a cause; 1: only the first remedy. */
  remedies: number;
  /** Items of a list; 0: the bare verdict. */
  rows: number;
  /** Limit for one quoted text, in characters. */
  chars: number;
  hasEvidence: boolean;
}

/** Causes in the list at the top. */
const MAX_LISTED = 8;
/** The most namespaces in a list outside of the folds. */
export const SMALL_LIST = 6;
const MAX_PLACES = 10;
const MAX_CONTRADICTIONS = 10;
/** Actions of one kind outside of the folds. */
const MAX_VISIBLE_ACTIONS = 3;
/** Rows for one namespace of many with details. */
const ROWS_PER_NAMESPACE = 20;

/** Returns the visible part of the report, and then everything else in folds. */
export function documentOf(view: View, detail: Detail): Block[] {
  const { headline, namespaces, queued, terms } = view;
  const isMany = namespaces.length > 1;
  const only = isMany ? undefined : namespaces[0];
  const all = isMany ? listOf('', namespaces, detail.rows, namespaceItem) : [];
  const isSmall = namespaces.length <= SMALL_LIST;
  const isBare = detail.rows === 0;
  const [first] = view.causes.slice(0, detail.causes);
  const visible = Math.min(MAX_VISIBLE_ACTIONS, detail.remedies);
  return [
    { kind: 'heading', level: '###', words: `${view.mark} ${headline}` },
    ...(view.causeCount > 1 ? causeList(view, detail) : []),
    ...(only?.notes ?? []).map((note) => lineBlock(asSentences([note]))),
    ...(first === undefined ? [] : causeSection(view, first, 1, visible, detail)),
    ...(only === undefined ? [] : stepBlocks(only, detail)),
    ...namespaces.flatMap((one) => forcedBlocks(one, isMany, detail)),
    ...notInspectedBlocks(view),
    ...(only === undefined || isBare ? [] : basisLine(only)),
    ...leftBehindLines(view, detail),
    ...(queued.length > 0 && !isBare ? [lineBlock(queued)] : []),
    ...(isSmall ? all : []),
    ...(isBare ? [] : terms.map(({ term }): Block => ({ kind: 'note', words: term }))),
    ...restOfCauses(view, detail),
    ...(isSmall ? [] : foldBlock(`All ${counted(namespaces.length, 'namespace')}`, all)),
    ...harmlessFold(view, isMany, detail),
    ...namespaces.flatMap((one) => ownFolds(one, isMany, detail)),
    ...(isBare ? [] : permissionsFold(view)),
    ...evidenceFold(view, only, detail),
    ...detailsFold(view, only, detail),
  ];
}

function lineBlock(words: Words): Block {
  return { kind: 'line', words };
}

function foldBlock(title: Words, blocks: Block[], inText: Fold['inText'] = 'nowhere'): Fold[] {
  return blocks.length === 0 ? [] : [{ kind: 'fold', title, blocks, inText }];
}

/** Returns a list of the items for which there is room; nothing without items. */
function listOf<T>(
  title: Words,
  given: readonly T[],
  most: number,
  itemOf: (item: T) => Words | Item,
): Block[] {
  const items = given.slice(0, most).map((one) => {
    const item = itemOf(one);
    return typeof item === 'string' ? { words: item, lines: [] } : item;
  });
  const left = given.length - items.length;
  return items.length === 0 ? [] : [{ kind: 'list', title, items, left, isOrdered: false }];
}

/** Lists several causes, in one sentence each. */
function causeList({ causes, causeCount, whyTitle }: View, detail: Detail): Block[] {
  const most = Math.min(MAX_LISTED, detail.causes + 2);
  const items = causes.slice(0, most).map(({ listed }) => ({ words: listed, lines: [] }));
  return [
    lineBlock(`${bold(`${whyTitle}.`)} ${counted(causeCount, 'cause')}:`),
    { kind: 'list', title: '', items, left: causeCount - items.length, isOrdered: true },
  ];
}

/** Returns the section about one cause. The list of several causes has its sentence already. */
export function causeSection(
  { causeCount, whyTitle }: Pick<View, 'causeCount' | 'whyTitle'>,
  { also, attribution, clauses, namespaces, remedies, title }: CauseView,
  number: number,
  limit: number,
  detail: Detail,
): Block[] {
  const isOnly = causeCount === 1;
  const isListed = !isOnly && number <= MAX_LISTED;
  const groups = remedies.filter(({ isExtra }) => !isExtra).slice(0, limit > 1 ? 4 : 1);
  const sentences = isListed ? '' : asSentences(clauses);
  const places = Math.min(MAX_PLACES, detail.rows);
  const lines = [
    joinWords([isOnly ? bold(`${whyTitle}.`) : '', sentences, also], ' '),
    namespaces.length > 1 ? `In ${listExact(namespaces, places)}.` : '',
    attribution,
  ].filter((line) => line !== '');
  const blocks = [
    ...lines.map(lineBlock),
    ...groups.flatMap((group) => actionBlocks(group, 0, limit, detail)),
  ];
  if (blocks.length === 0) return [];
  const words = `${number}. ${capitalized(title)}`;
  const heading: Block[] = isOnly ? [] : [{ kind: 'heading', level: '####', words }];
  return [{ kind: 'section', blocks: [...heading, ...blocks] }];
}

/** Returns folds with the rest of the first cause, and with all other causes. */
function restOfCauses(view: View, detail: Detail): Block[] {
  const [first, ...others] = view.causes.slice(0, detail.causes);
  if (first === undefined) return [];
  const left = view.causeCount - 1 - others.length;
  const told = others.flatMap((cause, at) => [
    ...causeSection(view, cause, at + 2, detail.remedies, detail),
    ...restOfCause(cause, detail.remedies, detail),
  ]);
  const rest = left > 0 ? [lineBlock(`And ${counted(left, 'more cause')}.`)] : [];
  return [
    ...restOfCause(first, MAX_VISIBLE_ACTIONS, detail),
    ...foldBlock(counted(others.length + left, 'more cause'), [...told, ...rest], 'everywhere'),
  ];
}

/** Returns the folded part of a cause: more remedies, ways to look closer, and the commands for other places. */
function restOfCause({ title, remedies }: CauseView, limit: number, detail: Detail): Block[] {
  if (detail.remedies <= 1) return [];
  const others = remedies.flatMap(({ actions }) => actions.filter((one) => one.others.length > 0));
  return foldBlock(`More about ${title}`, [
    ...remedies.flatMap((group) =>
      actionBlocks(group, group.isExtra ? 0 : limit, detail.remedies, detail),
    ),
    ...others.flatMap(({ text, others: commands }): Block[] => [
      lineBlock(`${capitalized(text)}; the other commands:`),
      { kind: 'commands', language: 'sh', lines: commands.slice(0, detail.rows) },
    ]),
  ]);
}

function actionBlocks(group: Remedies, from: number, to: number, { remedies }: Detail): Block[] {
  const { title, isOrdered } = group;
  const actions = group.actions.slice(from, to);
  if (actions.length === 0) return [];
  const left = from === 0 && remedies > 1 ? group.actions.length - actions.length : 0;
  return [{ kind: 'actions', title, isOrdered, actions, first: from + 1, left }];
}

/** Returns the steps of a deletion that would not hang. */
function stepBlocks({ steps: actions }: NamespaceView, { remedies }: Detail): Block[] {
  if (actions.length === 0 || remedies <= 1) return [];
  return [
    { kind: 'actions', title: 'Delete in this order', isOrdered: true, actions, first: 1, left: 0 },
  ];
}

function notInspectedBlocks({ notInspected }: View): Block[] {
  const left = notInspected.length - 3;
  const rest = left > 0 ? [`${formatCount(left)} more, for other reasons`] : [];
  return [...notInspected.slice(0, 3), ...rest].map((words) =>
    lineBlock(`${bold('Not inspected:')} ${words}`),
  );
}

function namespaceItem({ mark, name, state, titles }: NamespaceView): Words {
  return joinWords([`${mark} ${literal(name)} ${state}`, titles], ': ');
}

function objectName({ kind, name }: { kind: string; name: string }): Words {
  return literal(`${kind} ${name}`);
}

/** Returns what forcing did or would do, and what that left behind; these are never folded. */
function forcedBlocks({ forced, name }: NamespaceView, isMany: boolean, detail: Detail): Block[] {
  if (forced === null) return [];
  const { mode, actions, orphans, refused } = forced;
  const what = mode === 'plan' ? 'Force-finalize would do this (plan)' : 'Force-finalized';
  const title = isMany ? `${what} in ${literal(name)}` : what;
  const left = `Left behind by forcing (${counted(orphans.length, 'object')})`;
  const { rows: most } = detail;
  return [
    ...(actions.length === 0 ? [lineBlock(`${bold(`${title}:`)} nothing.`)] : []),
    ...listOf(title, actions, most, ({ target, finalizer, result }) => {
      const holder = finalizer === '' ? '' : ` ${literal(finalizer)}`;
      return `${literal(target)}${holder}: ${diagnosed(result)}`;
    }),
    ...listOf(left, orphans, most, ({ apiVersion, uid, finalizers, ...object }) => {
      const parts = joinWords([literal(apiVersion), listExact(finalizers)], ', ');
      return `${objectName(object)}, ${parts}, UID ${literal(uid)}`;
    }),
    ...listOf('Refused', refused, most, ({ target, reason }) => {
      return `${literal(target)}: ${diagnosed(reason)}`;
    }),
  ];
}

/**
 * Returns the visible lines about leftovers: objects that break others, or that there are none. What is outside of the
 * cluster, and objects of other namespaces, are not searched.
 */
function leftBehindLines({ leftBehind, namespaces, run }: View, detail: Detail): Block[] {
  const isSearched = namespaces.every((one) => one.leftBehind && !one.leftBehindUnread?.length);
  if (isSearched && namespaces.length > 0 && leftBehind.length === 0) {
    return [lineBlock('No cluster-scoped object that was read points into it.')];
  }
  const breaking = leftBehind.filter(({ breaksOthers }) => breaksOthers);
  return breaking.slice(0, detail.rows).flatMap((one) => {
    const why = `${objectName(one)}: ${diagnosed(one.why)}`;
    const line = lineBlock(`${bold('Breaks other namespaces:')} ${why}.`);
    const fix = removalOf(one, run.kind === 'forecast');
    if (fix === undefined) return [line];
    return [
      line,
      { kind: 'actions', title: 'Fix', actions: [fix], isOrdered: false, first: 1, left: 0 },
    ];
  });
}

/** Returns how to remove what calls a Service of the namespace; undefined if objects would be lost with it. */
function removalOf({ kind, name }: LeftBehind, isForecast: boolean): Action | undefined {
  const isWebhook = /^(Validating|Mutating)WebhookConfiguration$/.test(kind);
  if (kind !== 'APIService' && !isWebhook) return undefined;
  const when = isForecast ? 'before the namespace' : 'if it was installed with the namespace';
  return {
    text: `Delete ${objectName({ kind, name })} ${when}`,
    command: `kubectl delete ${kind.toLowerCase()} ${shellQuote(name)}`,
    risk: isWebhook ? 'all its webhooks stop for the whole cluster' : undefined,
    others: [],
  };
}

function harmlessFold({ leftBehind, run }: View, isMany: boolean, detail: Detail): Block[] {
  const harmless = leftBehind.filter(({ breaksOthers }) => !breaksOthers);
  const list = listOf('', harmless, detail.rows, (one) => {
    const place = isMany ? ` for ${literal(one.namespace)}` : '';
    return `${objectName(one)}${place}: ${diagnosed(one.why)}`;
  });
  return foldBlock(leftBehindTitle(harmless, run), list, 'everywhere');
}

/** Returns folds with the steps of one of many namespaces, and the objects that an ordered deletion deleted first. */
function ownFolds(namespace: NamespaceView, isMany: boolean, detail: Detail): Block[] {
  const { deletions = [], name } = namespace;
  const where = isMany ? ` in ${literal(name)}` : '';
  const deleted = listOf('', deletions, detail.rows, ({ apiVersion, result, uid, ...object }) => {
    const type = literal(apiVersion);
    return `${objectName(object)}, ${type}: ${diagnosed(result)}, UID ${literal(uid)}`;
  });
  const title = `Deleted first, in order: ${counted(deletions.length, 'object')}${where}`;
  return [
    ...(isMany ? foldBlock(`Delete in order${where}`, stepBlocks(namespace, detail)) : []),
    ...foldBlock(title, deleted),
  ];
}

function permissionsFold({ namespaces, rules }: View): Block[] {
  if (rules.length === 0) return [];
  return foldBlock(
    'Permissions that would show what was not inspected',
    [{ kind: 'commands', language: 'yaml', lines: rules }],
    // Without a cause, they are what to do.
    namespaces.every(({ titles }) => titles !== '') ? 'nowhere' : 'everywhere',
  );
}

/** Returns one line about what a forecast rests on. */
function basisLine({ basis }: NamespaceView): Block[] {
  if (basis === undefined) return [];
  const { objectsWithFinalizers: objects, owners, notInspected } = basis;
  const who = owners.length === 0 ? '' : `, expected to be removed by ${listExact(owners, 3)}`;
  const unseen =
    notInspected === 0 ? 'everything was inspected' : `${formatCount(notInspected)} not inspected`;
  const rests = `${counted(objects, 'object')} with finalizers${who}; ${unseen}`;
  return [lineBlock(`This forecast rests on ${rests}.`)];
}

/** Returns the wait-for graph and what supports each link. */
function evidenceFold(view: View, only: NamespaceView | undefined, detail: Detail): Block[] {
  if (!detail.hasEvidence) return [];
  const proofs = view.causes.flatMap((cause) => cause.proofs);
  return foldBlock(
    'Evidence',
    [
      ...(only === undefined ? [] : graphBlocks(only, detail)),
      ...listOf('What was seen', proofs, detail.rows, (proof) => proof),
    ],
    'terminal',
  );
}

function graphBlocks({ name, rows, diagnosis }: NamespaceView, detail: Detail): Block[] {
  if (rows.length === 0) return [];
  const shown = rows.slice(0, detail.rows);
  const left = (diagnosis?.edges.length ?? 0) - shown.length;
  return [{ kind: 'graph', start: `Namespace ${literal(name)}`, rows: shown, left }];
}

/** Returns the details for readers who want to check the report. */
function detailsFold(view: View, only: NamespaceView | undefined, detail: Detail): Block[] {
  if (only !== undefined) return foldBlock('Details', readBlocks(only, view, detail));
  // The details of namespaces that wait for the same causes differ only in names.
  const alikeBy = ({ name, outcome, titles }: NamespaceView): string =>
    titles === '' ? name : `${outcome} ${toPlain(titles)}`;
  const most = detail.hasEvidence ? Math.floor(detail.rows / ROWS_PER_NAMESPACE) : 0;
  const each = groupsBy(view.namespaces, alikeBy)
    .slice(0, most)
    .flatMap(([one, ...alike]) => {
      const like = alike.length === 0 ? '' : ` and ${counted(alike.length, 'other')} like it`;
      const blocks = [...graphBlocks(one, detail), ...readBlocks(one, view, detail)];
      return foldBlock(`${literal(one.name)}${like}`, blocks);
    });
  return foldBlock('Details of each namespace', each);
}

/** Returns other findings and raw data, which few readers need. */
function readBlocks(namespace: NamespaceView, { run }: View, detail: Detail): Block[] {
  const { name: home, diagnosis, conditions, timeline, verdict, forced, rows, unread } = namespace;
  // A namespace that was deleted has no details.
  if (diagnosis === undefined && forced === null && verdict !== 'fail') return [];
  const { findings = [], queued = [], contradictions = [] } = diagnosis ?? {};
  const { rows: most } = detail;
  const raw = detail.hasEvidence ? most : 0;
  const scene = { home, now: run.finishedAt };
  const aged = (text: string) => diagnosed(withAges(text, scene.now));
  const told = new Set(rows.map(({ to }) => to));
  const others = findings.filter(({ id }) => !told.has(id));
  // Conditions of a namespace are True when something is wrong.
  const reported = conditions.filter(({ status }) => status !== 'False');
  return [
    ...contradictions
      .slice(0, Math.min(raw, MAX_CONTRADICTIONS))
      .map((one) => lineBlock(`${diagnosed(upperFirst(one))}.`)),
    ...listOf('Other findings', others, most, (finding) => {
      const subject = subjectWords(finding.subject, home);
      return `${literal(finding.code)}: ${subject} ${messageWords(finding, scene)}`;
    }),
    ...listOf('Not marked for deletion yet, and no cause', queued, most, (one) => {
      const count = formatCount(one.count);
      return `${count} × ${literal(one.kind)}, ${literal(one.apiVersion)}`;
    }),
    ...listOf('Not inspected', unread, most, (words) => words),
    ...listOf('Conditions of the namespace', reported, raw, (one) => {
      const state = literal(`${one.type}=${one.status}`);
      return `${state}, ${literal(one.reason)}: ${literal(one.message)}`;
    }),
    ...listOf('Timeline', timeline, raw, ({ at, event }) => `${aged(at)}: ${aged(event)}`),
  ];
}
