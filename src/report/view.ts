import { dump } from 'js-yaml';
import { redactDeep } from '../base/redact.ts';
import { formatDuration } from '../base/time.ts';
import {
  type Diagnosis,
  type Finding,
  type FindingCode,
  NAMESPACE_NODE,
  type NotInspected,
  type RemedyRole,
} from '../model/finding.ts';
import { OUTCOMES, protectedBecause } from '../model/outcome.ts';
import type { NamespaceResult, OrderEntry, RunResult } from '../model/result.ts';
import {
  type Cause,
  causesOf,
  isStillHeld,
  namespacesOf,
  needsNoSubject,
  type Root,
} from './causes.ts';
import {
  asSentence,
  attributionOf,
  chainClauses,
  continuationWords,
  findingText,
  formatAge,
  isAboutHome,
  linkWords,
  messageWords,
  outcomeSign,
  type Scene,
  stateOf,
  subjectWords,
  terminatingFor,
  titleWords,
  withAges,
} from './sentences.ts';
import {
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

/** At most so many causes are rendered; the rest are counted. report.json has all of them. */
const MAX_CAUSES = 200;
const MAX_ROWS = 500;
const MAX_NAMED = 4;
const MAX_NEXT = 3;
const MAX_INSTANCES = 100;
const MAX_BLOCKERS_WITH_REMEDIES = 20;

export interface Remedies {
  title: string;
  /** Whether all have to be done, in their order; otherwise each is enough. */
  isOrdered: boolean;
  /** Whether they only show more about the cause: most readers do not need them. */
  isExtra: boolean;
  actions: Action[];
}

export interface Action {
  text: Words;
  risk?: Words | undefined;
  command?: string | undefined;
  /** Lines of YAML to put into a role. */
  rules?: string[];
  /** Commands that do the same in other places. */
  others: string[];
}

/** One edge of the wait-for graph, in the order of a walk that unfolds every finding once. */
export interface Row {
  from: string;
  to: string;
  /** The depth: for each level above, whether others follow at the same level. */
  depth: boolean[];
  fromWords: Words;
  toWords: Words;
  /** The message about `to`; empty if an earlier row had it, or if `toWords` is enough. */
  message: Words;
  because: Words;
  isRootCause: boolean;
  /** The subject of `to` is the waiting object itself: its message is enough. */
  isSelf: boolean;
  isKnown: boolean;
}

/** A failure of the gate itself, which has no result but has to be reported. Its texts hold no secrets. */
export interface Failure {
  message: string;
  /** Advice, one sentence each. */
  hints: readonly string[];
  /** ISO 8601, by the clock of the gate. */
  at: string;
  elapsedMs: number;
}

export type View = ReturnType<typeof viewOf>;
/** The content that is published. */
export type Ending = View | Failure;
export type NamespaceView = ReturnType<typeof namespaceView>;
export type Proof = ReturnType<typeof proofOf>;
/** Equal causes, rendered once for all namespaces. */
export type CauseView = typeof NOTHING_TOLD;

/** Properties with fixed values: a secret that happens to be "progressing" must not break the report. */
const VOCABULARY = new Set('outcome verdict code scope mode movement role certainty'.split(' '));

/**
 * Computes the content of a report once for all renderers: plain data whose texts are in pieces, in the
 * order of the report. `redact` is applied to all texts first: once a text is
 * escaped, cut or encoded, a secret in it cannot be recognized.
 */
export function viewOf(result: RunResult, redact?: (text: string) => string) {
  const run = redact ? { ...redactDeep(result, redact, VOCABULARY), kind: result.kind } : result;
  const ordered = worstFirst(run.namespaces);
  const isForecast = run.kind === 'forecast';
  // In a run over several, the cause of a deleted namespace is only rendered if it was forced.
  const all = causesOf(ordered.length === 1 ? ordered : ordered.filter(isStillHeld));
  const told = all.slice(0, MAX_CAUSES);
  const unread = [
    ...(run.leftOut ?? []),
    ...ordered.flatMap(({ diagnosis, leftBehindUnread = [] }) => [
      ...(diagnosis?.notInspected ?? []),
      ...leftBehindUnread,
    ]),
  ];
  const rules = rulesFor(unread);
  const situations = situationsOf(ordered, rules, run);
  const actions = situations.flatMap(({ remedies }) => remedies.flatMap((group) => group.actions));
  const namespaces = ordered.map((result) => namespaceView(result, all, situations, run));
  const only = namespaces.length === 1 ? namespaces[0] : undefined;
  const headline = only?.headline ?? headlineOf(ordered, run);
  return {
    run,
    mark: outcomeSign(run.outcome, run.verdict),
    headline,
    /** The headline of the comment on a pull request, if that differs. */
    commentHeadline: isForecast ? forecastWords(ordered, run) : headline,
    whyTitle: isForecast ? 'What would hold it' : 'Cause',
    /** The causes of most namespaces first; then situations without a cause. */
    causes: [
      ...withDistinctTitles(
        told.map((cause) => causeView(cause, run, orderFor(cause, all))),
        told,
      ),
      ...situations,
    ],
    /** The number of all causes, rendered or not. */
    causeCount: all.length + situations.length,
    /** The worst first. */
    namespaces,
    /** "Secrets and Widgets: 403 Forbidden …", one per reason. */
    notSeen: notSeenSentences(unread),
    /** RBAC rules that would show it, as lines of YAML; empty if a cause has them. */
    rules: actions.some((one) => one.rules !== undefined) ? [] : rules,
    /** The number of objects queued behind the causes. */
    queued: queuedWords(ordered.filter(isStillHeld)),
    /** Technical terms that the causes use, explained once each. */
    terms: TERMS.filter(({ isUsed }) => told.some(([{ links }]) => links.some(isUsed))).map(
      ({ term }): Words => [term],
    ),
    /** Objects that break others first. */
    leftBehind: ordered
      .flatMap(({ leftBehind = [] }) => leftBehind)
      .sort((a, b) => Number(b.breaksOthers) - Number(a.breaksOthers)),
    leftBehindUnread: ordered.some(({ leftBehindUnread = [] }) => leftBehindUnread.length > 0),
    inspectedTypes: Math.max(0, ...ordered.map(({ diagnosis }) => diagnosis?.inspectedTypes ?? 0)),
  };
}

/**
 * Returns the objects to delete first, to be rendered with a cause: with the first cause that lies in the
 * namespace, since an order does not fix a fault in the cluster.
 */
function orderFor(cause: Cause, all: readonly Cause[]): readonly OrderEntry[] {
  const [{ namespace }] = cause;
  if (namespace.order === undefined) return [];
  const mine = all.filter((one) => one.some((root) => root.namespace === namespace));
  const isHere = ([{ finding }]: Cause): boolean => finding.scope === 'namespace';
  return cause === (mine.find(isHere) ?? mine[0]) ? namespace.order : [];
}

const VERDICTS = ['pass', 'warn', 'fail'] as const;

/** Sorts failures first, then by outcome, the worst first, then as given. */
function worstFirst(namespaces: readonly NamespaceResult[]): NamespaceResult[] {
  const rank = ({ verdict, outcome }: NamespaceResult): number =>
    VERDICTS.indexOf(verdict) * OUTCOMES.length + OUTCOMES.indexOf(outcome);
  return [...namespaces].sort((a, b) => rank(b) - rank(a));
}

/** Returns the headline of a run over several namespaces, or over none. */
function headlineOf(ordered: readonly NamespaceResult[], run: RunResult): Words {
  if (ordered.length === 0) {
    if (run.outcome === 'cancelled') return ['The run was cancelled before any namespace was read'];
    if (run.outcome === 'not-found') return ['No namespace matched the selector'];
    return ['No namespace that the inputs ask for is terminating'];
  }
  const failed = ordered.filter(({ verdict }) => verdict === 'fail');
  const outcomes = new Set((failed.length > 0 ? failed : ordered).map(({ outcome }) => outcome));
  const [only] = outcomes.size === 1 ? outcomes : [];
  const elapsed = formatDuration(run.elapsedMs);
  const took = run.timeoutMs > 0 ? ` (${elapsed})` : '';
  if (only === 'deleted')
    return [`All ${counted(ordered.length, 'namespace')} were deleted after ${elapsed}`];
  if (failed.length === 0) {
    const passed = only === 'clear' ? 'could be deleted' : 'passed';
    return [`All ${counted(ordered.length, 'namespace')} ${passed}${took}`];
  }
  const are = failed.length === 1 ? 'is' : 'are';
  const did =
    only === 'stuck' ? `${are} stuck` : only === 'would-hang' ? 'would hang' : 'did not pass';
  return [`${countOfAll(failed.length, ordered.length)} ${did}${took}`];
}

function countOfAll(some: number, all: number): string {
  return `${some === all ? '' : `${formatCount(some)} of `}${counted(all, 'namespace')}`;
}

/**
 * Returns the headline of a forecast in a comment: it speaks of the close of the pull request, which its author
 * knows.
 */
function forecastWords(ordered: readonly NamespaceResult[], { outcome }: RunResult): Words {
  const same = ordered.filter((one) => one.outcome === outcome);
  const [only] = ordered.length === 1 ? ordered : [];
  const told =
    outcome === 'would-hang'
      ? 'When this pull request is closed, its environment would hang: '
      : outcome === 'clear'
        ? 'When this pull request is closed, nothing that was read would hold its environment: '
        : 'Too little could be read to tell whether this environment would hang when this pull request is closed: ';
  return only === undefined
    ? [told, countOfAll(same.length, ordered.length)]
    : [told, 'namespace ', literal(only.name)];
}

/**
 * Adds the kind to equal titles: one finalizer may have a cause for each kind of object. If one object has several
 * finalizers, the commands for one of them serve all.
 */
function withDistinctTitles(views: readonly CauseView[], causes: readonly Cause[]): CauseView[] {
  const alike = Map.groupBy(views, ({ title }) => toPlain(title));
  const byActions = new Map<string, number>();
  return views.map((view, at) => {
    const isOne = alike.get(toPlain(view.title))?.length === 1;
    const held = causes[at]?.[0].links[0]?.subject.kind ?? '';
    const title = isOne ? view.title : [...view.title, ' on ', diagnosed(held)];
    const actions = view.remedies.flatMap((group) => group.actions);
    const key = actions.map(({ command, text }) => command ?? toPlain(text)).join('\n');
    const first = byActions.get(key);
    if (first === undefined) byActions.set(key, at);
    if (first === undefined || actions.every(({ command }) => command === undefined)) {
      return { ...view, title };
    }
    const enough = `The fix of cause ${first + 1} fixes this one, too.`;
    return { ...view, title, also: joinWords([view.also, [enough]], ' '), remedies: [] };
  });
}

const NOTHING_TOLD = {
  title: [] as Words,
  /** "5 namespaces, for up to 2 days". */
  extent: [] as Words,
  /** Clauses that follow the chain to its end, for the first namespace. */
  clauses: [] as Words[],
  /** The introduction of clauses that are an example of several: "for example in preview-1, ". */
  example: [] as Words,
  /** Other objects that wait here, and what holds them next, as sentences. */
  also: [] as Words,
  /** Who can fix it; empty if that is not known. */
  attribution: [] as Words,
  /** The same for the author of a pull request. */
  forAuthor: [] as Words,
  /** In the order in which they are read; none is empty. */
  remedies: [] as Remedies[],
  proofs: [] as Proof[],
  namespaces: [] as string[],
};

function causeView(cause: Cause, run: RunResult, order: readonly OrderEntry[]): CauseView {
  const [{ namespace, finding, links }] = cause;
  const names = namespacesOf(cause).map(({ name }) => name);
  const isGone = !isStillHeld(namespace);
  const isOver = run.kind === 'teardown' && isGone;
  const scene: Scene = { home: namespace.name, now: run.finishedAt, isOver };
  const isLocal = links.some(
    ({ scope, subject }) => scope === 'namespace' || subject.namespace === scene.home,
  );
  const isMany = names.length > 1;
  return {
    title:
      finalizersOf(cause).length > 1
        ? finding.cause === undefined
          ? subjectWords(finding.subject, scene.home)
          : ['controller ', diagnosed(finding.cause)]
        : titleWords(finding, scene.home),
    extent: extentOf(cause, run),
    clauses: chainClauses(links, scene),
    example: isMany && isLocal ? ['for example in ', literal(scene.home), ', '] : [],
    also: isMany ? [] : joinWords([alsoHeldWords(cause), nextWords(cause, scene)], ' '),
    attribution: isGone ? [] : attributionOf(cause, run),
    forAuthor: isGone ? [] : attributionOf(cause, run, true),
    // Forcing has ended the cause: no remedy is needed.
    remedies: isGone ? [] : remediesOf(cause, run, order),
    proofs: links.map((link, at) => proofOf(link, links[at - 1], scene)),
    namespaces: names,
  };
}

function extentOf(cause: Cause, run: RunResult): Words {
  const namespaces = namespacesOf(cause);
  const isOne = namespaces.length === 1;
  const who = isOne ? literal(cause[0].namespace.name) : counted(namespaces.length, 'namespace');
  const ages = namespaces.flatMap((one) => terminatingFor(one, run) ?? []);
  if (run.kind === 'forecast' || ages.length === 0) return [who];
  return [who, `, for ${isOne ? '' : 'up to '}${formatAge(Math.max(...ages))}`];
}

/** Says which other finalizers and objects of the namespace wait for the same cause. */
function alsoHeldWords(cause: Cause): Words {
  const [{ namespace, finding, links }] = cause;
  const same = finalizersOf(cause).filter((one) => one !== finding.finalizer);
  const words = (one: Finding): Words => subjectWords(one.subject, namespace.name);
  const first = links[0] && toPlain(words(links[0]));
  const all = cause.flatMap(({ blockers }) => blockers).map(words);
  const others = [...new Map(all.map((one) => [toPlain(one), one]))];
  const rest = others.filter(([name]) => name !== first).map(([, one]) => one);
  const wait = rest.length === 1 ? 'waits' : 'wait';
  const [names, objects] = [listExact(same, MAX_NAMED), capitalized(listWords(rest, MAX_NAMED))];
  const more = `The same holds for ${counted(same.length, 'more finalizer')}: `;
  return joinWords(
    [
      same.length === 0 ? [] : [more, ...names, '.'],
      rest.length === 0 ? [] : [...objects, ` ${wait} for the same cause.`],
    ],
    ' ',
  );
}

/** Says what holds the same objects once the cause is fixed. */
function nextWords([root]: Cause, { now }: Scene): Words {
  const next = [...new Set(findingsWithRemedies(root).flatMap((finding) => finding.next ?? []))];
  const more = next.length > MAX_NEXT ? [[`${formatCount(next.length - MAX_NEXT)} more`]] : [];
  const told = next.slice(0, MAX_NEXT).map((text): Words => [diagnosed(withAges(text, now))]);
  return next.length === 0 ? [] : ['Next: ', ...joinWords([...told, ...more], '; '), '.'];
}

function finalizersOf(cause: Cause): string[] {
  return [...new Set(cause.flatMap(({ finding }) => finding.finalizer ?? []))];
}

/** Returns a link of a chain with its evidence. */
function proofOf(link: Finding, waits: Finding | undefined, scene: Scene) {
  const age = Date.parse(scene.now) - Date.parse(link.since ?? '');
  const examples = (link.examples ?? []).map(({ name }) => name);
  const { code, evidence, finalizer = '' } = link;
  const subject = linkWords(link, scene.home, waits);
  // An error of an API server has its status, but not in a condition: the longer text is kept.
  const lines = evidence.filter((one) => !evidence.some((all) => all !== one && all.endsWith(one)));
  return {
    subject: capitalized(
      code === 'object-finalizer' ? [...subject, ', finalizer ', literal(finalizer)] : subject,
    ),
    /** "for 4m 51s"; empty where the start is unknown. */
    age: Number.isNaN(age) ? '' : `for ${formatAge(age)}`,
    lines: [
      ...lines.map((line): Words => [diagnosed(withAges(line, scene.now))]),
      ...((link.count ?? 1) > 1 && examples.length > 1
        ? [['among them ', ...listExact(examples)]]
        : []),
    ],
  };
}

type ByRole = Record<RemedyRole, Action[]>;

/** Groups remedies under their titles. If no fix is known, the remedies that show more become "What to do". */
function remedyGroups({ now, or, look, next }: ByRole, { kind }: RunResult): Remedies[] {
  const isForecast = kind === 'forecast';
  const todo = isForecast ? 'Fix before the deletion' : 'Fix';
  const duties = isForecast ? [...next, ...now] : now;
  const isBlind = duties.length === 0;
  const group = (title: string, actions: Action[], isExtra = false): Remedies => ({
    title,
    isOrdered: actions === duties && actions.length > 1,
    isExtra,
    actions,
  });
  return [
    isBlind ? group('What to do', look) : group(todo, duties),
    group(
      isBlind && look.length === 0 ? todo : or.length === 1 ? 'Alternative' : 'Alternatives',
      or,
    ),
    group('Prevent it', isForecast ? [] : next),
    group('Look closer', isBlind ? [] : look, true),
  ].filter(({ actions }) => actions.length > 0);
}

/**
 * Returns the remedies by their role, those of the root cause first. The remedies of equal causes
 * have the same position in the same rule, so the commands for other namespaces are kept with the first.
 */
function remediesOf(cause: Cause, run: RunResult, order: readonly OrderEntry[]): Remedies[] {
  const [first, ...rest] = cause;
  const scene: Scene = { home: first.namespace.name, now: run.finishedAt };
  const found: ByRole = { now: [], or: [], look: [], next: [] };
  const known = new Map<string, Action>();
  const isProgressing = first.namespace.outcome === 'progressing';
  if (isProgressing && !PATIENT.includes(first.finding.code)) found.now.push(waitLongerAction(run));
  const others = rest.slice(0, MAX_INSTANCES).map(findingsWithRemedies);
  for (const [at, finding] of findingsWithRemedies(first).entries()) {
    for (const [index, { text, command, risk, role = 'now' }] of finding.remedies.entries()) {
      const key = [role, text, risk].join('\n');
      const action: Action = known.get(key) ?? {
        text: findingText(text.replace(/[.:]$/, ''), finding, scene),
        command,
        risk: risk === undefined ? undefined : findingText(risk, finding, scene),
        others: [],
      };
      if (!known.has(key)) found[role].push(action);
      known.set(key, action);
      const commands = [command, ...others.map((way) => way[at]?.remedies[index]?.command)];
      for (const one of commands) {
        const isNew = one !== undefined && one !== action.command && !action.others.includes(one);
        if (isNew) action.others.push(one);
      }
    }
  }
  return remedyGroups(inOrder(found, order, first.namespace.name), run);
}

/** Merges the remedies with the order, without repetition; commands for other namespaces are kept with it. */
function inOrder(found: ByRole, order: readonly OrderEntry[], namespace: string): ByRole {
  if (order.length === 0) return found;
  const typeOf = (command = ''): string => command.split(' ', 3).join(' ');
  const first = order.map(({ why, command }) => ({
    text: ['Delete these objects, and wait until they are deleted, because ', diagnosed(why)],
    command,
    others: found.next
      .filter((same) => typeOf(same.command) === typeOf(command))
      .flatMap(({ others }) => others),
  }));
  const told = new Set(order.map(({ command }) => typeOf(command)));
  const next = found.next.filter(({ command }) => !told.has(typeOf(command)));
  // A remedy outside of the namespace is needed whatever is deleted inside.
  const isOutside = ({ command }: Action): boolean =>
    command !== undefined && !told.has(typeOf(command));
  const outside = found.now.filter(isOutside);
  const does =
    outside.length === 0 ? ' does all these steps)' : ' deletes only objects inside the namespace)';
  const then = actionWith(['Then delete the namespace (', literal('delete: ordered'), does], {
    command: `kubectl delete namespace ${namespace}`,
  });
  const now = found.now.filter((one) => !isOutside(one) && !told.has(typeOf(one.command)));
  return { ...found, now, next: [...first, ...outside, then, ...next] };
}

function findingsWithRemedies({ blockers, links }: Root): Finding[] {
  return [...new Set([...links.toReversed(), ...blockers.slice(0, MAX_BLOCKERS_WITH_REMEDIES)])];
}

/** Findings whose own remedies advise to wait. */
const PATIENT: readonly FindingCode[] = ['content-deleting', 'pod-grace-period', 'owner-running'];

/** Returns the advice to wait longer. */
function waitLongerAction({ timeoutMs }: RunResult): Action {
  const now = timeoutMs > 0 ? ` (now ${formatDuration(timeoutMs)})` : '';
  return actionWith([
    `Give the deletion more time${now}, or run the gate again: raise the input `,
    literal('timeout'),
  ]);
}

function actionWith(text: Words, given: Partial<Action> = {}): Action {
  return { text, others: [], ...given };
}

/** Returns the situations of namespaces without a root cause; equal situations are merged. */
function situationsOf(
  ordered: readonly NamespaceResult[],
  rules: string[],
  run: RunResult,
): CauseView[] {
  const found = new Map<string, CauseView>();
  for (const namespace of ordered) {
    const [title = '', clauses = [], now = []] = situationOf(namespace, rules, run) ?? [];
    if (clauses.length === 0) continue;
    const key = JSON.stringify([title, clauses]);
    const remedies = remedyGroups({ now: [], or: [], look: now, next: [] }, run);
    const known = found.get(key);
    if (known === undefined) {
      const [extent, namespaces] = [[literal(namespace.name)], [namespace.name]];
      found.set(key, { ...NOTHING_TOLD, title: [title], extent, clauses, remedies, namespaces });
      continue;
    }
    known.namespaces.push(namespace.name);
    known.extent = [counted(known.namespaces.length, 'namespace')];
    known.remedies[0]?.actions[0]?.others.push(...now.flatMap(({ command }) => command ?? []));
  }
  return [...found.values()];
}

/** The title of a situation, its clauses and its remedies. */
type Situation = [title: string, clauses: Words[], now: Action[]];

function situationOf(
  namespace: NamespaceResult,
  rules: string[],
  run: RunResult,
): Situation | undefined {
  const { diagnosis, outcome, verdict } = namespace;
  switch (outcome) {
    case 'not-terminating': {
      const command = `kubectl delete namespace ${namespace.name} --wait=false`;
      const kept = protectedBecause(namespace.name);
      const { refusal } = namespace;
      // The gate requested the deletion, and RBAC or admission refused it, or the namespace changed all the time.
      if (refusal !== undefined) {
        const cure = refusal.includes('cannot delete resource "namespaces"')
          ? 'Allow the identity of the gate to delete namespaces, or delete it with another identity'
          : 'Fix what refuses the deletion, then delete it again';
        const why: Words = ['its deletion was refused: ', literal(refusal)];
        return ['the deletion was refused', [why], [actionWith([cure], { command })]];
      }
      const ask: Words = [
        'Delete the namespace first, or let the gate delete it with ',
        literal('delete: true'),
      ];
      return [
        'the deletion was not requested',
        [['the deletion was not requested, so the gate does not wait']],
        kept === undefined
          ? [actionWith(ask, { command })]
          : [actionWith([`Check the name: ${kept}, and the gate never deletes it`])],
      ];
    }
    case 'recreated': {
      const who = 'a deploy that ran at the same time, or a controller that creates this namespace';
      return [
        'created again',
        [[`the namespace was created again while it was being deleted, for example by ${who}`]],
        [],
      ];
    }
    case 'not-found': {
      const why = 'it was deleted before, its name is misspelt, or this is another cluster';
      const check = 'Check the name and the cluster; if a missing namespace is no error, set ';
      if (verdict !== 'fail') return undefined;
      return [
        'not there',
        [[`no namespace of this name was there at the start: ${why}`]],
        [actionWith([check, literal('if-not-found: ok')])],
      ];
    }
    case 'stuck':
    case 'progressing':
    case 'inconclusive':
    case 'would-hang': {
      const examine = actionWith(['Run the gate again, or see what the namespace reports itself'], {
        command: `kubectl describe namespace ${namespace.name}`,
      });
      if (diagnosis === undefined) {
        const why = 'there was no time to examine the namespace, so its cause is unknown';
        return ['not examined', [[why]], [examine]];
      }
      if (diagnosis.rootCauses.length > 0) return undefined;
      const isBlind = diagnosis.notInspected.length > 0;
      const unread =
        'no object that could be read holds the namespace, but not everything could be read';
      const grant = 'Allow the identity of the gate to read the rest: add these rules to its role';
      return [
        isBlind ? 'not everything could be read' : 'still being deleted',
        [
          ...movementClauses(diagnosis, run),
          ...(isBlind ? [[unread], ...countedClauses(namespace)] : []),
        ],
        [
          ...(outcome === 'progressing' ? [waitLongerAction(run)] : []),
          ...(rules.length > 0 ? [actionWith([grant], { rules })] : isBlind ? [examine] : []),
        ],
      ];
    }
    default:
      return undefined;
  }
}

/** Quotes the counts of the namespace controller, which may read more than the gate. */
function countedClauses({ conditions }: NamespaceResult): Words[] {
  const counts = ['NamespaceContentRemaining', 'NamespaceFinalizersRemaining'];
  const said = conditions
    .filter(({ type, status }) => counts.includes(type) && status === 'True')
    .flatMap(({ message }): Words => [', ', literal(message)]);
  return said.length === 0 ? [] : [['the namespace controller reports: ', ...said.slice(1)]];
}

/** Describes the progress of the namespace, unless a finding does. */
function movementClauses({ movement, findings }: Diagnosis, run: RunResult): Words[] {
  const saying: readonly FindingCode[] = ['content-deleting', 'pod-grace-period'];
  if (findings.some(({ code }) => saying.includes(code))) return [];
  switch (movement.kind) {
    case 'shrinking': {
      const counts = `${formatCount(movement.before)} objects, then ${formatCount(movement.now)}`;
      const apart = formatDuration(movement.comparedMs);
      return [[`its content is still being deleted: ${counts}, ${apart} apart`]];
    }
    case 'grace-period':
      return [
        ['a pod may take until ', diagnosed(withAges(movement.until, run.finishedAt)), ' to end'],
      ];
    case 'starting':
      return [['Kubernetes starts 5 s after the request, and has not started yet']];
    case 'retrying':
      return [['the error that Kubernetes reported is fixed; it tries again within a minute']];
    case 'none':
    case 'unknown':
      return [];
  }
}

function namespaceView(
  result: NamespaceResult,
  causes: readonly Cause[],
  situations: readonly CauseView[],
  run: RunResult,
) {
  const { diagnosis, name: home } = result;
  const isOver = run.kind === 'teardown' && !isStillHeld(result);
  const scene: Scene = { home, now: run.finishedAt, isOver };
  const [state, detail] = stateOf(result, run);
  const roots = causes.flatMap((one) => one.find(({ namespace }) => namespace === result) ?? []);
  const [first] = roots;
  const [unread] = notSeenSentences(diagnosis?.notInspected ?? []);
  const situation = situations.find(({ namespaces }) => namespaces.includes(home));
  const more = roots.length > 1 ? [` (and ${counted(roots.length - 1, 'more cause')})`] : [];
  const titles = roots.slice(0, 2).map(({ finding }) => titleWords(finding, home));
  const left = roots.length - titles.length;
  const others = left > 0 ? [`, and ${counted(left, 'more cause')}`] : [];
  return {
    ...result,
    mark: outcomeSign(result.outcome, result.verdict),
    state,
    /** The predicate for several namespaces. */
    stateOfMany: stateOf(result, run, true)[0],
    headline: ['Namespace ', literal(home), ` ${state}${detail}`],
    /** The cause as one sentence without a full stop; empty if it is unknown. */
    sentence:
      first !== undefined
        ? [...asSentence(chainClauses(first.links, scene)), ...more]
        : diagnosis === undefined
          ? []
          : unread === undefined
            ? asSentence(situation?.clauses ?? [])
            : ['could not read ', ...unread],
    /** The titles of its causes, or of its situation. */
    titles: first === undefined ? (situation?.title ?? []) : [...listWords(titles), ...others],
    /** The progress, if no cause describes it. */
    notes:
      diagnosis !== undefined && first !== undefined && isStillHeld(result)
        ? movementClauses(diagnosis, run)
        : [],
    rows: diagnosis === undefined ? [] : rowsOf(diagnosis, scene),
  };
}

/** Returns the wait-for graph as rows from the namespace on, also the link that closes a circle. */
export function rowsOf(diagnosis: Diagnosis, scene: Scene): Row[] {
  const byId = new Map(diagnosis.findings.map((finding) => [finding.id, finding]));
  const roots = new Set(diagnosis.rootCauses);
  const next = Map.groupBy(diagnosis.edges, ({ from }) => from);
  const namespaceWords: Words = ['Namespace ', literal(scene.home)];
  const rows: Row[] = [];
  const seen = new Set<string>();
  const walk = (from: string, fromWords: Words, depth: readonly boolean[]): void => {
    const waits = byId.get(from);
    const edges = (next.get(from) ?? []).filter(({ to }) => to === NAMESPACE_NODE || byId.has(to));
    for (const [at, { to, because }] of edges.entries()) {
      if (rows.length >= MAX_ROWS) return;
      const finding = byId.get(to);
      const isKnown = seen.has(to);
      const toWords =
        finding === undefined ? namespaceWords : linkWords(finding, scene.home, waits);
      const here = [...depth, at < edges.length - 1];
      const isSelf =
        finding !== undefined &&
        (needsNoSubject(finding, waits) || isAboutHome(finding, scene.home));
      const names = finding?.finalizer === undefined ? [] : [finding.finalizer];
      const reason: Words = [diagnosed(withAges(because, scene.now), names)];
      rows.push({
        from,
        to,
        depth: here,
        fromWords,
        toWords,
        message:
          finding === undefined
            ? reason
            : isKnown
              ? []
              : isSelf
                ? continuationWords(finding, scene)
                : messageWords(finding, scene, waits),
        because: reason,
        isRootCause: roots.has(to),
        isSelf: isSelf && !isKnown,
        isKnown,
      });
      if (isKnown || finding === undefined) continue;
      seen.add(to);
      walk(to, toWords, here);
    }
  };
  walk(NAMESPACE_NODE, namespaceWords, []);
  return rows;
}

/** Writes what could not be read: one sentence for missing permissions, and one per other reason. */
function notSeenSentences(entries: readonly NotInspected[]): Words[] {
  const byReason = Map.groupBy(entries, ({ reason, grant }) => (grant ? undefined : reason));
  return [...byReason].map(([common, group]) => {
    const whats = new Map(group.map(({ what, grant }) => [what, grant]));
    // Resource types have the names that kubectl takes; other entries are phrases.
    const list = [...whats].map(([what, grant]) => [
      grant === undefined ? diagnosed(what) : literal(what),
    ]);
    const reason = group[0]?.reason ?? '';
    if (common !== undefined) return [...listWords(list, MAX_NAMED), ': ', diagnosed(common)];
    const example = list.length > 1 ? 'for example ' : '';
    return [
      ...listWords(list, MAX_NAMED),
      `: permissions are missing, ${example}`,
      literal(reason),
    ];
  });
}

/** Returns the missing RBAC rules, a line of YAML each: one per group and verbs. */
function rulesFor(entries: readonly NotInspected[]): string[] {
  const grants = entries.flatMap(({ grant }) => grant ?? []);
  const perType = Map.groupBy(grants, ({ apiGroup, resource }) => `${apiGroup}/${resource}`);
  const verbsOf = (list: typeof grants): string[] => [...new Set(list.map(({ verb }) => verb))];
  const perRule = Map.groupBy(perType.values(), (list) =>
    [list[0]?.apiGroup, ...verbsOf(list)].join('\n'),
  );
  return [...perRule.values()].flatMap((lists) => {
    const types = lists.flatMap(([first]) => first ?? []);
    const [{ apiGroup } = { apiGroup: '' }] = types;
    const resources = types.map(({ resource }) => resource);
    const rule = { apiGroups: [apiGroup], resources, verbs: verbsOf(lists[0] ?? []) };
    return dump([rule], { flowLevel: 1, lineWidth: -1 }).trimEnd().split('\n');
  });
}

function queuedWords(held: readonly NamespaceResult[]): Words {
  const queued = held.flatMap(({ diagnosis }) => diagnosis?.queued ?? []);
  const total = queued.reduce((sum, { count }) => sum + count, 0);
  if (total === 0) return [];
  const [are, they] = total === 1 ? ['is', 'it follows'] : ['are', 'they follow'];
  const isLast = held.every(({ diagnosis }) =>
    diagnosis?.findings.every(({ next }) => next === undefined),
  );
  const end = isLast ? 'without further action' : 'once what comes next is resolved';
  return [`${counted(total, 'more object')} ${are} not marked for deletion yet; ${they} ${end}.`];
}

/** Technical terms that the author of a change may not know. At most one line each. */
const TERMS: readonly { term: string; isUsed: (link: Finding) => boolean }[] = [
  {
    term: 'Finalizer: a mark that keeps an object in the cluster until its controller has cleaned up and removed the mark.',
    isUsed: ({ finalizer }) => finalizer !== undefined,
  },
  {
    term: 'APIService: the registration of an add-on that serves part of the Kubernetes API. No namespace can be deleted until every APIService responds.',
    isUsed: ({ subject }) => subject.kind === 'APIService',
  },
  {
    term: 'Webhook: a program that Kubernetes asks before it changes or reads an object.',
    isUsed: ({ code, subject }) =>
      /^Webhook$|WebhookConfiguration$/.test(subject.kind) || code.startsWith('conversion-'),
  },
];
