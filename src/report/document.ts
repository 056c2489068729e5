import {
  asSentence,
  asSentences,
  leftBehindTitle,
  messageWords,
  subjectWords,
  withAges,
} from './sentences.ts';
import type { CauseView, NamespaceView, Proof, Remedies, Row, View } from './view.ts';
import {
  bold,
  capitalized,
  counted,
  diagnosed,
  formatCount,
  joinWords,
  listExact,
  listWords,
  literal,
  toPlain,
  type Words,
} from './words.ts';

/** A part of a report before it is written as Markdown or as text. */
export type Block =
  | { kind: 'heading'; level: '###' | '####'; words: Words }
  | { kind: 'line'; words: Words }
  | { kind: 'list'; items: Words[]; isOrdered: boolean }
  /** `first` is the number of the first action; `left` actions stand elsewhere. */
  | ({ kind: 'actions'; first: number; left: number } & Remedies)
  /** The title may be empty; `left` rows are not shown. */
  | { kind: 'table'; title: Words; header: readonly string[]; rows: Words[][]; left: number }
  | { kind: 'proofs'; proofs: Proof[] }
  | { kind: 'commands'; language: 'sh' | 'yaml'; lines: string[] }
  | { kind: 'graph'; rows: Row[] }
  | { kind: 'terms'; terms: Words[] }
  /** Blocks about one cause. */
  | { kind: 'section'; blocks: Block[] }
  /** A collapsed part. A text without folds shows only what `inText` names. */
  | { kind: 'fold'; title: Words; blocks: Block[]; inText: 'all' | 'proofs' | 'nothing' };

/**
 * The length of the report, from everything to the bare verdict. It is shortened by whole blocks:
 * a cut inside a block would leave a table, a fence or a fold open.
 */
export interface Detail {
  /** Lines of text outside of the folds. */
  lines: number;
  /** Causes with their remedies. */
  causes: number;
  /** Remedies of a cause; 1: only the first remedy. */
  remedies: number;
  /** Rows of a table. */
  rows: number;
  /** Rows of the tables about forcing, which are outside of the folds. */
  forced: number;
  /** Characters of one quoted text. */
  chars: number;
  /** Namespaces whose graph and conditions are shown, in a run over several. */
  namespaces: number;
  hasEvidence: boolean;
  /** Whether to add data that is read last: diagram, conditions as read, timeline. */
  hasRawData: boolean;
}

/** Causes in the list at the top. */
const MAX_LISTED = 8;
/** The most namespaces in a table outside of the folds. */
export const SMALL_TABLE = 6;
const MAX_PLACES = 10;

/** Returns how many lines these blocks take on the page. */
type Measure = (blocks: readonly Block[]) => number;

/** Returns the visible part of the report, and then everything else in folds. */
export function documentOf(view: View, detail: Detail, measure: Measure): Block[] {
  const { headline, namespaces, queued, terms } = view;
  const isMany = namespaces.length > 1;
  const table = isMany ? namespaceTable(view, detail) : [];
  const isSmall = namespaces.length <= SMALL_TABLE;
  const notes = isMany ? [] : namespaces.flatMap((one) => one.notes);
  const head: Block[] = [
    { kind: 'heading', level: '###', words: [`${view.mark} `, ...headline] },
    ...(view.causeCount > 1 ? causeList(view, detail) : []),
    ...notes.map((note): Block => lineBlock(asSentences([note]))),
  ];
  const tail: Block[] = [
    ...namespaces.flatMap((one) => forcedBlocks(one, isMany, detail)),
    ...notSeenBlocks(view),
    ...namespaces.flatMap((one) => (isMany || detail.rows === 0 ? [] : basisLine(one))),
    ...leftBehindLines(view, detail),
    ...(queued.length > 0 && detail.rows > 0 ? [lineBlock(queued)] : []),
    ...(isSmall ? table : []),
    ...(terms.length > 0 && detail.rows > 0 ? [{ kind: 'terms', terms } as const] : []),
  ];
  const room = detail.lines - measure([...head, ...tail]);
  const [causes, folds] = causeBlocks(view, { ...detail, lines: room }, measure);
  return [
    ...head,
    ...causes,
    ...tail,
    ...folds,
    ...(isSmall ? [] : foldBlock([`All ${counted(namespaces.length, 'namespace')}`], table)),
    ...leftBehindBlocks(view, detail),
    ...namespaces.flatMap((one) => ownFolds(one, isMany, detail)),
    ...(detail.rows === 0 || view.rules.length === 0
      ? []
      : foldBlock(
          ['Permissions that would show what was not inspected'],
          [{ kind: 'commands', language: 'yaml', lines: view.rules }],
        )),
    ...detailBlocks(view, detail),
  ];
}

function lineBlock(...parts: Words[]): Block {
  return { kind: 'line', words: joinWords(parts, ' ') };
}

function foldBlock(
  title: Words,
  blocks: Block[],
  inText: 'all' | 'proofs' | 'nothing' = 'nothing',
): Block[] {
  return blocks.length === 0 ? [] : [{ kind: 'fold', title, blocks, inText }];
}

/** Lists several causes, in one line each. */
function causeList({ causes, causeCount, namespaces, whyTitle }: View, detail: Detail): Block[] {
  const shown = causes.slice(0, Math.min(MAX_LISTED, detail.causes + 2));
  const items = shown.map(({ extent, example, clauses }): Words => {
    if (namespaces.length === 1) return asSentences([asSentence(clauses)]);
    return [bold(...extent, ':'), ' ', ...example, ...asSentence(clauses), '.'];
  });
  const left = causeCount - shown.length;
  return [
    lineBlock([bold(`${whyTitle}.`), ` ${counted(causeCount, 'cause')}:`]),
    { kind: 'list', items, isOrdered: true },
    ...(left > 0 ? [lineBlock([`And ${counted(left, 'more cause')}.`])] : []),
  ];
}

/**
 * Returns visible and folded causes. The first is always visible, in as much detail as there is room for; others
 * whole or folded.
 */
function causeBlocks(view: View, detail: Detail, measure: Measure): [Block[], Block[]] {
  const causes = view.causes.slice(0, detail.causes);
  const visible: Block[] = [];
  const folds: Block[] = [];
  const hidden: Block[] = [];
  let room = detail.lines;
  for (const [at, cause] of causes.entries()) {
    const number = view.causeCount > 1 ? at + 1 : undefined;
    const tell = (limit: number): Block[] => causeSection(view, cause, number, limit, detail);
    const limits = (at === 0 ? [8, 3, 1] : [8]).map((limit) => Math.min(limit, detail.remedies));
    const fitting =
      hidden.length > 0 ? undefined : limits.find((limit) => measure(tell(limit)) <= room);
    const isSeen = at === 0 || fitting !== undefined;
    const limit = isSeen ? (fitting ?? 1) : detail.remedies;
    if (isSeen) room -= measure(tell(limit));
    (isSeen ? visible : hidden).push(...tell(limit));
    (isSeen ? folds : hidden).push(...restOfCause(cause, limit, detail));
  }
  const untold = view.causeCount - causes.length;
  const elsewhere = lineBlock([`And ${counted(untold, 'more cause')}.`]);
  const rest = untold > 0 && causes.length > 0 ? [elsewhere] : [];
  if (hidden.length === 0) return [[...visible, ...rest], folds];
  const count = hidden.filter(({ kind }) => kind === 'section').length + untold;
  const title = `${counted(count, 'more cause')}, with fixes`;
  return [visible, [...folds, ...foldBlock([title], [...hidden, ...rest])]];
}

/** Returns the section about one cause; `number` is its place in the list, which has its sentence already. */
function causeSection(
  { whyTitle }: View,
  cause: CauseView,
  number: number | undefined,
  limit: number,
  detail: Detail,
): Block[] {
  const { also, attribution, clauses, namespaces, title } = cause;
  const isListed = number !== undefined && number <= MAX_LISTED;
  const why = isListed ? [] : asSentences(clauses);
  const groups = cause.remedies.filter(({ isExtra }) => !isExtra).slice(0, limit > 1 ? 4 : 1);
  const told = [
    ...(number !== undefined && why.length + also.length > 0 ? [lineBlock(why, also)] : []),
    ...(namespaces.length > 1
      ? [lineBlock(['In ', ...listExact(namespaces, Math.min(MAX_PLACES, detail.rows)), '.'])]
      : []),
    ...(attribution.length > 0 ? [lineBlock(attribution)] : []),
    ...groups.flatMap((group) => actionBlocks(group, 0, limit, detail)),
  ];
  if (number === undefined) {
    return [{ kind: 'section', blocks: [lineBlock([bold(`${whyTitle}.`)], why, also), ...told] }];
  }
  if (told.length === 0) return [];
  const words = [`${number}. `, ...capitalized(title)];
  return [{ kind: 'section', blocks: [{ kind: 'heading', level: '####', words }, ...told] }];
}

/** Returns the folded part of a cause: more remedies, ways to look closer, and the commands for other places. */
function restOfCause({ title, remedies }: CauseView, limit: number, detail: Detail): Block[] {
  if (detail.remedies <= 1) return [];
  const others = remedies.flatMap(({ actions }) => actions.filter((one) => one.others.length > 0));
  return foldBlock(
    ['More about ', ...title],
    [
      ...remedies.flatMap((group, at) => {
        const isUntold = group.isExtra || (limit === 1 && at > 0);
        return actionBlocks(group, isUntold ? 0 : limit, detail.remedies, detail);
      }),
      ...others.flatMap(({ text, others: commands }): Block[] => [
        lineBlock([...capitalized(text), '; the other commands:']),
        { kind: 'commands', language: 'sh', lines: commands.slice(0, detail.rows) },
      ]),
    ],
  );
}

function actionBlocks(group: Remedies, from: number, to: number, { remedies }: Detail): Block[] {
  const actions = group.actions.slice(from, to);
  if (actions.length === 0) return [];
  const left = from === 0 && remedies > 1 ? group.actions.length - actions.length : 0;
  return [{ kind: 'actions', ...group, actions, first: from + 1, left }];
}

function notSeenBlocks({ notSeen }: View): Block[] {
  const shown = notSeen.slice(0, 3);
  const left = notSeen.length - shown.length;
  const rest: Words[] = left > 0 ? [[`${formatCount(left)} more, for other reasons`]] : [];
  return [...shown, ...rest].map((words) => lineBlock([bold('Not inspected:')], words));
}

/** Returns a table with the rows for which there is room; no table without rows. */
function tableOf<T>(
  title: Words,
  items: readonly T[],
  most: number,
  columns: Record<string, (item: T) => Words>,
  total = items.length,
): Block[] {
  const cells = Object.values(columns);
  const rows = items.slice(0, most).map((item) => cells.map((cell) => cell(item)));
  if (rows.length === 0) return [];
  return [{ kind: 'table', title, header: Object.keys(columns), rows, left: total - rows.length }];
}

function namespaceTable({ namespaces }: View, detail: Detail): Block[] {
  return tableOf([], namespaces, detail.rows, {
    namespace: (one) => [`${one.mark} `, literal(one.name)],
    outcome: (one) => [one.state],
    'because of': (one) => one.titles,
  });
}

/** Returns what forcing did or would do, and what that left behind; these are never folded. */
function forcedBlocks(
  { forced, name: home }: NamespaceView,
  isMany: boolean,
  detail: Detail,
): Block[] {
  if (forced === null) return [];
  const { mode, actions, orphans, refused } = forced;
  const what = mode === 'plan' ? 'Force-finalize would do this (plan)' : 'Force-finalized';
  const title: Words = isMany ? [`${what} in `, literal(home)] : [what];
  const left: Words = [`Left behind by forcing (${counted(orphans.length, 'object')})`];
  return [
    ...(actions.length === 0 ? [lineBlock([bold(...title, ':'), ' nothing.'])] : []),
    ...tableOf(title, actions, detail.forced, {
      object: ({ target, finalizer }) =>
        finalizer === '' ? [literal(target)] : [literal(target), ' ', literal(finalizer)],
      result: (one) => [diagnosed(one.result)],
    }),
    ...tableOf(left, orphans, detail.forced, {
      object: ({ apiVersion, kind, name }) => [
        literal(`${kind} ${name}`),
        ', ',
        literal(apiVersion),
      ],
      'finalizers and UID': ({ uid, finalizers }) => [
        ...listExact(finalizers),
        ...(finalizers.length > 0 ? [', '] : []),
        literal(uid),
      ],
    }),
    ...tableOf(['Refused'], refused, detail.forced, {
      object: ({ target }) => [literal(target)],
      reason: ({ reason }) => [diagnosed(reason)],
    }),
  ];
}

/** Returns the visible lines about leftovers: objects that break others, or that there are none. */
function leftBehindLines(
  { leftBehind, leftBehindUnread, namespaces }: View,
  detail: Detail,
): Block[] {
  const breaking = leftBehind.filter(({ breaksOthers }) => breaksOthers).slice(0, detail.rows);
  if (breaking.length > 0) {
    return breaking.map(({ kind, name, why }) =>
      lineBlock(
        [bold('Breaks other namespaces:')],
        [literal(`${kind} ${name}`), ': ', diagnosed(why), '.'],
      ),
    );
  }
  const isSearched =
    namespaces.length > 0 && namespaces.every((one) => one.leftBehind !== undefined);
  if (!isSearched || leftBehindUnread || leftBehind.length > 0) return [];
  return [lineBlock(['Nothing was left behind outside the namespace.'])];
}

function leftBehindBlocks({ leftBehind, namespaces, run }: View, detail: Detail): Block[] {
  const table = tableOf([], leftBehind, detail.rows, {
    object: ({ breaksOthers, kind, name, namespace }) => [
      ...(breaksOthers ? [bold('breaks others:'), ' '] : []),
      literal(`${kind} ${name}`),
      ...(namespaces.length > 1 ? [' for ', literal(namespace)] : []),
    ],
    why: ({ why }) => [diagnosed(why)],
  });
  return foldBlock([leftBehindTitle(leftBehind, run)], table, 'all');
}

/**
 * Returns folds with the objects that an ordered deletion deleted before the namespace, and the controllers that a
 * forecast expects to act, each with its latest sign of life.
 */
function ownFolds(
  { basis, deletions = [], name: home }: NamespaceView,
  isMany: boolean,
  { rows }: Detail,
): Block[] {
  const deleted = tableOf([], deletions, rows, {
    object: ({ apiVersion, kind, name }) => [literal(`${kind} ${name}`), ', ', literal(apiVersion)],
    result: ({ result, uid }) => [diagnosed(result), ', UID ', literal(uid)],
  });
  const owners = tableOf([], basis?.owners ?? [], rows, {
    controller: ({ owner }) => [literal(owner)],
    objects: ({ objects }) => [formatCount(objects)],
    evidence: ({ evidence }) => [diagnosed(evidence)],
  });
  const where = (joint: string): Words => (isMany ? [joint, literal(home)] : []);
  const first = `Deleted first, in order: ${counted(deletions.length, 'object')}`;
  return [
    ...foldBlock([first, ...where(' of ')], deleted),
    ...foldBlock(['What this forecast rests on', ...where(' in ')], owners),
  ];
}

/** Returns one line about the basis of a forecast, or about whether an earlier one was right. */
function basisLine({ basis, hindsight }: NamespaceView): Block[] {
  if (hindsight !== undefined) {
    const { at, outcome, verdict, because } = hindsight;
    const is = { foreseen: 'foreseen', 'not-foreseen': 'not foreseen', open: 'left open' };
    const words = verdict === 'not-comparable' ? 'not comparable' : is[verdict];
    const text = `The forecast of ${at} said ${outcome}: ${words}, because ${because}`;
    return [lineBlock(asSentences([[diagnosed(text)]]))];
  }
  if (basis === undefined) return [];
  const { objectsWithFinalizers, owners, dryRuns, notInspected } = basis;
  const parts = [
    `${counted(objectsWithFinalizers, 'object')} with finalizers`,
    `${counted(owners.length, 'controller')} that should remove them`,
    counted(dryRuns.deletions + dryRuns.removals, 'dry run'),
  ];
  const unseen =
    notInspected === 0 ? 'everything was inspected' : `${formatCount(notInspected)} not inspected`;
  const next = basis.next.slice(0, 3).map((one): Words => [diagnosed(one)]);
  const then: Words = ['Once its pods are deleted, this would hold it: ', ...listWords(next), '.'];
  return [
    lineBlock([`This forecast rests on ${parts.join(', ')}; ${unseen}.`]),
    ...(next.length === 0 ? [] : [lineBlock(then)]),
  ];
}

/** Returns the details for readers who want to check the report. */
function detailBlocks(view: View, detail: Detail): Block[] {
  const [only, ...others] = view.namespaces;
  const proofs = view.causes
    .flatMap((cause) => cause.proofs)
    .filter(({ lines }) => lines.length > 0);
  const proven: Block[] =
    detail.hasEvidence && proofs.length > 0
      ? [{ kind: 'proofs', proofs: proofs.slice(0, detail.rows) }]
      : [];
  if (only !== undefined && others.length === 0) {
    return [
      ...foldBlock(['Evidence'], [...chainBlocks(only, detail), ...proven], 'proofs'),
      ...foldBlock(['Details'], readBlocks(only, view, detail)),
    ];
  }
  const each = alikeNamespaces(view.namespaces)
    .slice(0, detail.namespaces)
    .flatMap(([one, ...alike]) =>
      foldBlock(
        [literal(one.name), ...othersLikeIt(alike.length)],
        [...chainBlocks(one, detail), ...readBlocks(one, view, detail)],
      ),
    );
  return [
    ...foldBlock(['Evidence'], proven, 'proofs'),
    ...foldBlock(['Details of each namespace'], each),
  ];
}

/** Groups namespaces that wait for the same causes: their details differ only in names. */
export function alikeNamespaces<T extends Pick<NamespaceView, 'name' | 'outcome' | 'titles'>>(
  namespaces: readonly T[],
): [T, ...T[]][] {
  const keyOf = ({ name, outcome, titles }: T): string =>
    titles.length === 0 ? name : `${outcome} ${toPlain(titles)}`;
  return [...Map.groupBy(namespaces, keyOf).values()] as [T, ...T[]][];
}

/** Writes " and 19 others like it". */
export function othersLikeIt(count: number): Words {
  return count === 0 ? [] : [` and ${counted(count, 'other')} like it`];
}

/** Returns every link with its reason, contradictions, and the graph as a picture. */
function chainBlocks({ rows, diagnosis }: NamespaceView, detail: Detail): Block[] {
  if (!detail.hasEvidence || rows.length === 0) return [];
  const items = (diagnosis?.contradictions ?? []).slice(0, 10).map((one) => [diagnosed(one)]);
  return [
    ...tableOf(
      [],
      rows,
      detail.rows,
      {
        '': ({ fromWords }) => fromWords,
        'waits for': ({ toWords, isRootCause }) =>
          isRootCause ? [...toWords, ' (', bold('root cause'), ')'] : toWords,
        because: ({ because }) => because,
      },
      diagnosis?.edges.length,
    ),
    ...(items.length > 0 ? [{ kind: 'list', items, isOrdered: false } as const] : []),
    // A chain of two links is read faster in the table.
    ...(detail.hasRawData && rows.length > 2 ? [{ kind: 'graph', rows } as const] : []),
  ];
}

/** Returns other findings and raw data, which few readers need. */
function readBlocks(namespace: NamespaceView, { run }: View, detail: Detail): Block[] {
  const { name: home, diagnosis, conditions, timeline, verdict, forced, rows } = namespace;
  // A namespace that was deleted has no details.
  if (diagnosis === undefined && forced === null && verdict !== 'fail') return [];
  const scene = { home, now: run.finishedAt };
  const most = detail.rows;
  const raw = detail.hasRawData ? most : 0;
  const told = new Set(rows.map(({ to }) => to));
  const findings = (diagnosis?.findings ?? []).filter(({ id }) => !told.has(id));
  const queued = (diagnosis?.queued ?? []).reduce((sum, { count }) => sum + count, 0);
  const total = counted(queued, 'object');
  // Conditions of a namespace are True when something is wrong.
  const reported = conditions.filter(({ status }) => status !== 'False');
  return [
    ...tableOf(['Other findings'], findings, most, {
      code: ({ code }) => [literal(code)],
      what: ({ subject }) => subjectWords(subject, home),
      why: (finding) => messageWords(finding, scene),
    }),
    ...tableOf(
      [`Not marked for deletion yet, and no cause: ${total}`],
      diagnosis?.queued ?? [],
      most,
      {
        kind: ({ kind }) => [literal(kind)],
        apiVersion: ({ apiVersion }) => [literal(apiVersion)],
        objects: ({ count }) => [formatCount(count)],
      },
    ),
    ...tableOf(['Not inspected'], diagnosis?.notInspected ?? [], most, {
      what: ({ what }) => [diagnosed(what)],
      'why not': ({ reason, grant }) => [grant ? literal(reason) : diagnosed(reason)],
    }),
    ...tableOf(['Conditions of the namespace'], reported, raw, {
      condition: ({ type, status }) => [literal(`${type}=${status}`)],
      reason: ({ reason }) => [literal(reason)],
      message: ({ message }) => [literal(message)],
    }),
    ...tableOf(['Timeline'], timeline, raw, {
      when: ({ at }) => [diagnosed(withAges(at, scene.now))],
      what: ({ event }) => [diagnosed(withAges(event, scene.now))],
    }),
  ];
}
