import { formatCount, shellQuote, upperFirst } from '../base/text.ts';
import type { LeftBehind } from '../model/result.ts';
import type { Action, Remedies } from './remedies.ts';
import { leftBehindTitle, withAges } from './sentences.ts';
import type { CauseView, Item, NamespaceView, View } from './view.ts';
import {
  asSentences,
  bold,
  counted,
  diagnosed,
  joinWords,
  listExact,
  literal,
  type Words,
} from './words.ts';

/** A part of a report before it is written as Markdown or as text. `left` items, rows or actions are not shown. */
export type Block =
  | { kind: 'heading'; level: '###' | '####'; words: Words }
  | { kind: 'line'; words: Words }
  /** The title may be empty. */
  | { kind: 'list'; title: Words; items: Item[]; left: number; isOrdered: boolean }
  | ({ kind: 'actions'; left: number } & Remedies)
  | { kind: 'yaml'; lines: string[] }
  /** A collapsed part. A terminal shows it expanded, unless it `isDetail`; the step log has a group for it. */
  | { kind: 'fold'; title: Words; blocks: Block[]; isDetail: boolean };

/** A report is shortened by whole blocks: a cut inside a block would leave a fence or a fold open. */
export interface Detail {
  /** Causes with their remedies. */
  causes: number;
  /** Items of a list; 0: the bare verdict. */
  rows: number;
  /** Each cause has only its first remedy, and nothing supports it. */
  isBrief: boolean;
}

/** Causes in the list at the top. */
const MAX_LISTED = 8;
/** Namespaces in a list outside of the folds. */
const MAX_VISIBLE_NAMESPACES = 6;
const MAX_PLACES = 10;
/** Actions of one group that is no sequence of steps. */
const MAX_CHOICES = 6;

export function documentOf(view: View, detail: Detail): Block[] {
  const { causes, headline, namespaces } = view;
  const { isBrief, rows } = detail;
  const only = namespaces.length === 1 ? namespaces[0] : undefined;
  const list = only ? [] : listOf('', namespaces, rows, namespaceItem);
  const sections = causes
    .slice(0, detail.causes)
    .map((cause, at) => causeSection(view, cause, at + 1, detail));
  const left = view.causeCount - sections.length;
  const others = sections.slice(1).flat();
  if (left > 0) others.push(line(`And ${counted(left, 'more cause')}.`));
  const more = counted(view.causeCount - 1, 'more cause');
  const rules: Block[] = view.rules.length === 0 ? [] : [{ kind: 'yaml', lines: view.rules }];
  const told: Block[] = [
    { kind: 'heading', level: '###', words: `${view.mark} ${headline}` },
    ...(view.causeCount > 1 ? causeList(view, detail) : []),
    ...(only?.note ? [line(asSentences([only.note]))] : []),
    ...(sections[0] ?? []),
    ...namespaces.flatMap((one) => forcedBlocks(one, detail)),
    ...notInspectedBlocks(view),
  ];
  if (rows === 0) return told;
  const shown = [
    ...told,
    ...(only?.basis ? [basisLine(only.basis)] : []),
    ...leftBehindBlocks(view, detail),
    ...namespaces
      .filter(({ steps }) => steps.length > 0 && (only || !isBrief))
      .map(({ name, steps }) => {
        const title = `Delete ${literal(name)} in this order`;
        return actions({ title, isOrdered: true, actions: steps }, { rows, isBrief: false });
      }),
    ...(namespaces.length > MAX_VISIBLE_NAMESPACES
      ? fold(`All ${counted(namespaces.length, 'namespace')}`, list, true)
      : list),
    ...fold(more, others),
    ...fold('Permissions that would show what was not inspected', rules),
  ];
  if (isBrief) return shown;
  const examples = namespaces.filter(({ name }) =>
    causes.some((cause) => cause.namespaces[0] === name),
  );
  const all = examples.flatMap((one) => one.rows);
  const evidence = all.length > rows ? all.filter(({ isMinor }) => !isMinor) : all;
  const tree = listOf('', evidence, rows, (row) => row);
  return [
    ...shown,
    ...fold('Evidence', tree),
    ...fold('Details', only ? readBlocks(only, view, detail) : [], true),
  ];
}

function line(words: Words): Block {
  return { kind: 'line', words };
}

function fold(title: Words, blocks: Block[], isDetail = false): Block[] {
  return blocks.length === 0 ? [] : [{ kind: 'fold', title, blocks, isDetail }];
}

function listOf<T>(
  title: Words,
  given: readonly T[],
  most: number,
  itemOf: (item: T) => Words | Item,
): Block[] {
  const items = given.slice(0, most).map((one) => {
    const item = itemOf(one);
    return typeof item === 'string' ? { words: item } : item;
  });
  const left = given.length - items.length;
  return items.length === 0 ? [] : [{ kind: 'list', title, items, left, isOrdered: false }];
}

function causeList({ causes, causeCount, whyTitle }: View, detail: Detail): Block[] {
  const most = Math.min(MAX_LISTED, detail.causes + 2);
  const items = causes.slice(0, most).map(({ listed }) => ({ words: listed }));
  return [
    line(`${bold(`${whyTitle}.`)} There are ${counted(causeCount, 'cause')}:`),
    { kind: 'list', title: '', items, left: causeCount - items.length, isOrdered: true },
  ];
}

/** The list of several causes has the sentence already. */
export function causeSection(
  { causeCount, whyTitle }: Pick<View, 'causeCount' | 'whyTitle'>,
  { also, attribution, clauses, namespaces, remedies, title }: CauseView,
  number: number,
  detail: Detail,
): Block[] {
  const isOnly = causeCount === 1;
  const sentences = isOnly || number > MAX_LISTED ? asSentences(clauses) : '';
  const places = listExact(namespaces, Math.min(MAX_PLACES, detail.rows));
  const lines = [
    joinWords([isOnly ? bold(`${whyTitle}.`) : '', sentences, also], ' '),
    namespaces.length > 1 ? `In ${places}.` : '',
    attribution,
  ].filter((one) => one !== '');
  const blocks = [
    ...lines.map(line),
    ...(detail.isBrief ? remedies.slice(0, 1) : remedies).map((group) => actions(group, detail)),
  ];
  if (blocks.length === 0 || isOnly) return blocks;
  const words = `${number}. ${upperFirst(title)}`;
  return [{ kind: 'heading', level: '####', words }, ...blocks];
}

function actions(group: Remedies, { isBrief, rows }: Omit<Detail, 'causes'>): Block {
  const most = isBrief ? 1 : group.isOrdered ? rows : MAX_CHOICES;
  const shown = group.actions.slice(0, most);
  const left = isBrief ? 0 : group.actions.length - shown.length;
  return { kind: 'actions', ...group, actions: shown, left };
}

function notInspectedBlocks({ namespaces, notInspected }: View): Block[] {
  const left = notInspected.length - 3;
  const rest = left > 0 ? [`${formatCount(left)} more, for other reasons`] : [];
  const isAll = notInspected.length === 0 && namespaces.some(({ diagnosis }) => diagnosis);
  return [
    ...[...notInspected.slice(0, 3), ...rest].map((words) =>
      line(`${bold('Not inspected:')} ${words}`),
    ),
    ...(isAll ? [line('Everything was inspected.')] : []),
  ];
}

function namespaceItem({ mark, name, state, titles }: NamespaceView): Words {
  return joinWords([`${mark} ${literal(name)} ${state}`, titles], ': ');
}

/** What forcing and an ordered deletion did or would do, and left behind, is never folded. */
function forcedBlocks({ deletions = [], forced, name }: NamespaceView, detail: Detail): Block[] {
  const { rows } = detail;
  const { mode, actions: done = [], orphans = [], refused = [] } = forced ?? {};
  const what = mode === 'plan' ? 'Force-finalize would do this (plan)' : 'Force-finalized';
  const title = `${what} in ${literal(name)}`;
  const left = `Left behind by forcing (${counted(orphans.length, 'object')})`;
  return [
    ...listOf(`Deletions requested first in ${literal(name)}`, deletions, rows, (one) => {
      const where = `${literal(one.apiVersion)}, UID ${literal(one.uid)}`;
      return `${objectName(one)}, ${where}: ${diagnosed(one.result)}`;
    }),
    ...(forced && done.length === 0 ? [line(`${bold(`${title}:`)} nothing.`)] : []),
    ...listOf(title, done, rows, ({ target, finalizer, result }) => {
      const holder = finalizer === '' ? '' : ` ${literal(finalizer)}`;
      return `${literal(target)}${holder}: ${diagnosed(result)}`;
    }),
    ...listOf(left, orphans, rows, ({ uid, finalizers, ...one }) =>
      joinWords([objectName(one), `UID ${literal(uid)}`, listExact(finalizers)], ', '),
    ),
    ...listOf('Refused', refused, rows, ({ target, reason }) => {
      return `${literal(target)}: ${diagnosed(reason)}`;
    }),
  ];
}

function objectName({ kind, name }: { kind: string; name: string }): Words {
  return literal(`${kind} ${name}`);
}

function leftBehindBlocks({ leftBehind, namespaces, run }: View, detail: Detail): Block[] {
  const isSearched = namespaces.every((one) => one.leftBehind && !one.leftBehindUnread?.length);
  if (isSearched && namespaces.length > 0 && leftBehind.length === 0)
    return [line('No cluster-scoped object that was read points into it.')];
  const fixes = leftBehind.filter(({ breaksOthers }) => breaksOthers).flatMap(removalOf);
  return [
    ...listOf(leftBehindTitle(leftBehind, run), leftBehind, detail.rows, (one) => {
      const mark = one.breaksOthers ? `${bold('Breaks other namespaces:')} ` : '';
      const why = `pointing into ${literal(one.namespace)}: ${diagnosed(one.why)}`;
      return `${mark}${objectName(one)}, ${why}`;
    }),
    ...(fixes.length === 0
      ? []
      : [actions({ title: 'Fix', isOrdered: false, actions: fixes }, detail)]),
  ];
}

/** Nothing if objects would be lost with it. */
function removalOf({ kind, name }: LeftBehind): Action[] {
  const isWebhook = /^(Validating|Mutating)WebhookConfiguration$/.test(kind);
  if (kind !== 'APIService' && !isWebhook) return [];
  return [
    {
      text: `Delete ${objectName({ kind, name })} if it was installed with the namespace`,
      commands: new Set([`kubectl delete ${kind.toLowerCase()} ${shellQuote(name)}`]),
      risk: isWebhook ? 'all its webhooks stop for the whole cluster' : undefined,
    },
  ];
}

function basisLine({ objectsWithFinalizers, owners }: NonNullable<NamespaceView['basis']>): Block {
  const who = owners.length === 0 ? '' : `; their controllers: ${listExact(owners, 3)}`;
  const objects = counted(objectsWithFinalizers, 'object');
  return line(`This forecast rests on ${objects} with finalizers${who}.`);
}

/** Raw data, which few readers need. */
function readBlocks(namespace: NamespaceView, { run }: View, { rows: most }: Detail): Block[] {
  const { diagnosis, timeline, verdict, forced, unread } = namespace;
  // A namespace that was deleted has no details.
  if (diagnosis === undefined && forced === null && verdict !== 'fail') return [];
  const aged = (text: string) => diagnosed(withAges(text, run.finishedAt));
  return [
    ...listOf('Not inspected', unread, most, (words) => words),
    ...listOf('Timeline', timeline, most, ({ at, event }) => `${aged(at)}: ${aged(event)}`),
  ];
}
