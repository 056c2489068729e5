import { dump } from 'js-yaml';
import { redactDeep } from '../base/redact.ts';
import { formatDuration } from '../base/time.ts';
import {
  type Certainty,
  type Diagnosis,
  FINDING_CODES,
  type Finding,
  type FindingCode,
  findingsOf,
  type Movement,
  NAMESPACE_NODE,
  type NotInspected,
  type RemedyRole,
} from '../model/finding.ts';
import { OUTCOMES, type Outcome, VERDICTS, type Verdict } from '../model/outcome.ts';
import type { NamespaceResult, RunResult } from '../model/result.ts';
import {
  type Cause,
  causesOf,
  groupRoots,
  groupsBy,
  isStillHeld,
  namespacesOf,
  needsNoSubject,
} from './causes.ts';
import { remediesOf, stepsOf } from './remedies.ts';
import {
  asSentence,
  asSentences,
  attributionOf,
  chainClauses,
  continuationWords,
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
import { situationRoot } from './situations.ts';
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
  type Words,
} from './words.ts';

/** At most so many causes are rendered; the rest are counted. report.json has all of them. */
const MAX_CAUSES = 200;
const MAX_ROWS = 500;
const MAX_NAMED = 4;
const MAX_TITLES = 2;

/** One edge of the wait-for graph, in the order of a walk that unfolds every finding once. */
export interface Row {
  /** Id of the finding, or `NAMESPACE_NODE`. */
  to: string;
  /** For each level of the tree, whether another row follows at that level. */
  depth: boolean[];
  /** The name of `to`; if that is the waiting object itself, its message, which is enough. */
  label: Words;
  /** The message about `to`; empty if the label has it. */
  message: Words;
  isRootCause: boolean;
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
/** Equal causes, rendered once for all namespaces. */
export type CauseView = ReturnType<typeof causeView>;

/** The types of a result whose values are words of this program. */
type FixedWord =
  | FindingCode
  | Outcome
  | Verdict
  | RemedyRole
  | Certainty
  | Movement['kind']
  | NonNullable<NamespaceResult['forced']>['mode']
  | Finding['scope']
  | RunResult['kind'];

/** A secret that happens to be "progressing" must not break the report. */
const FIXED_WORDS: ReadonlySet<string> = new Set<FixedWord>([
  ...[...FINDING_CODES, ...OUTCOMES, ...VERDICTS],
  ...(['now', 'or', 'look', 'next', 'proven', 'likely', 'unknown'] as const),
  ...(['none', 'starting', 'retrying', 'shrinking', 'grace-period'] as const),
  ...(['plan', 'objects', 'namespace', 'cluster', 'teardown', 'forecast'] as const),
]);

/**
 * Computes the content of a report once for all renderers, in the order of the report. `redact` is applied to all texts
 * first: once a text is escaped, cut or encoded, a secret in it cannot be recognized.
 */
export function viewOf(result: RunResult, redact?: (text: string) => string) {
  const run = redact ? redactDeep(result, redact, FIXED_WORDS) : result;
  const ordered = worstFirst(run.namespaces);
  // In a run over several, the cause of a deleted namespace is only rendered if it was forced.
  const found = causesOf(ordered.length === 1 ? ordered : ordered.filter(isStillHeld));
  const all = [...found, ...groupRoots(ordered.flatMap((one) => situationRoot(one) ?? []))];
  const told = all.slice(0, MAX_CAUSES);
  const unread = [
    ...(run.leftOut ?? []),
    ...ordered.flatMap(({ diagnosis, leftBehindUnread = [] }) => [
      ...(diagnosis?.notInspected ?? []),
      ...leftBehindUnread,
    ]),
  ];
  const namespaces = ordered.map((one) => namespaceView(one, found, run));
  const only = namespaces.length === 1 ? namespaces[0] : undefined;
  return {
    run,
    mark: outcomeSign(run.outcome, run.verdict),
    headline: only?.headline ?? headlineOf(ordered, run),
    whyTitle: run.kind === 'forecast' ? 'What would hold it' : 'Cause',
    /** The causes of most namespaces first; then situations without a cause. */
    causes: withoutRepeatedFixes(told.map((cause) => causeView(cause, run))),
    /** The number of all causes, rendered or not. */
    causeCount: all.length,
    /** The worst first. */
    namespaces,
    /** "Secrets and Widgets: 403 Forbidden …", one per reason. */
    notInspected: notInspectedSentences(unread, MAX_NAMED),
    /** RBAC rules that would show it, as lines of YAML. */
    rules: rulesFor(unread),
    /** The number of objects queued behind the causes. */
    queued: queuedWords(ordered.filter(isStillHeld)),
    /** Technical terms that the causes use, explained once each. */
    terms: TERMS.filter(({ isUsed }) => told.some(([{ links }]) => links.some(isUsed))),
    /** Objects that break others first. */
    leftBehind: ordered
      .flatMap(({ leftBehind = [] }) => leftBehind)
      .sort((a, b) => Number(b.breaksOthers) - Number(a.breaksOthers)),
    inspectedTypes: Math.max(0, ...ordered.map(({ diagnosis }) => diagnosis?.inspectedTypes ?? 0)),
  };
}

/** Sorts failures first, then by outcome, the worst first, then as given. */
function worstFirst(namespaces: readonly NamespaceResult[]): NamespaceResult[] {
  const rank = ({ verdict, outcome }: NamespaceResult): number =>
    VERDICTS.indexOf(verdict) * OUTCOMES.length + OUTCOMES.indexOf(outcome);
  return [...namespaces].sort((a, b) => rank(b) - rank(a));
}

/** The outcome in the headline of several namespaces, if it is the same for all of them. */
const SHARED_OUTCOMES: Partial<Record<Outcome, string>> = {
  deleted: 'deleted',
  clear: 'could be deleted',
  stuck: 'stuck',
  'would-hang': 'would hang',
};

/** Returns the headline of a run over several namespaces, or over none: "3 of 5 namespaces: stuck (5m 02s)". */
function headlineOf(ordered: readonly NamespaceResult[], run: RunResult): Words {
  if (ordered.length === 0) {
    if (run.outcome === 'cancelled') return 'The run was cancelled before any namespace was read';
    if (run.outcome === 'not-found') return 'No namespace matched the selector';
    return 'No namespace that the inputs ask for is terminating';
  }
  const failed = ordered.filter(({ verdict }) => verdict === 'fail');
  const told = failed.length > 0 ? failed : ordered;
  const outcomes = new Set(told.map(({ outcome }) => SHARED_OUTCOMES[outcome]));
  const [shared] = outcomes.size === 1 ? outcomes : [];
  const all = counted(ordered.length, 'namespace');
  const which = told.length === ordered.length ? all : `${formatCount(told.length)} of ${all}`;
  const took = run.timeoutMs > 0 ? ` (${formatDuration(run.elapsedMs)})` : '';
  return `${which}: ${shared ?? (failed.length > 0 ? 'not passed' : 'passed')}${took}`;
}

/** Refers to the fix of an earlier cause: if one object has several finalizers, its commands serve all of them. */
function withoutRepeatedFixes(views: readonly CauseView[]): CauseView[] {
  const byCommands = new Map<string, number>();
  return views.map((view, at) => {
    const actions = view.remedies.flatMap((group) => (group.isExtra ? [] : group.actions));
    const key = actions.flatMap(({ command }) => command ?? []).join('\n');
    const first = byCommands.get(key);
    if (key === '' || first === undefined) {
      byCommands.set(key, at);
      return view;
    }
    const enough = `The fix of cause ${first + 1} fixes this one, too.`;
    return { ...view, also: joinWords([view.also, enough], ' '), remedies: [] };
  });
}

function causeView(cause: Cause, run: RunResult) {
  const [first] = cause;
  const { namespace, links, circle } = first;
  const names = namespacesOf(cause).map(({ name }) => name);
  const isGone = !isStillHeld(namespace);
  const scene = sceneOf(namespace, run);
  const clauses = chainClauses(first, scene);
  return {
    title: causeTitle(cause),
    /** The cause as an entry of a list: "5 namespaces, for up to 2 days: for example in preview-1, …". */
    listed: run.namespaces.length === 1 ? asSentences(clauses) : listedWords(cause, clauses, run),
    /** Clauses that follow the chain to its end, for the first namespace. */
    clauses,
    /** Other objects that wait here, as a sentence. */
    also: names.length > 1 ? '' : alsoHeldWords(cause),
    /** The people who can fix it; empty if that is not known. */
    attribution: isGone ? '' : attributionOf(cause, run),
    /** Groups in their order; none is empty. A cause that forcing has ended needs no remedy. */
    remedies: isGone && namespace.diagnosis !== undefined ? [] : remediesOf(cause, run),
    proofs: [...links, ...circle.filter((one) => !links.includes(one))]
      .map((link, at) => proofOf(link, links[at - 1], scene))
      .filter(({ lines }) => lines.length > 0),
    namespaces: names,
  };
}

function sceneOf(namespace: NamespaceResult, run: RunResult): Scene {
  const isOver = run.kind === 'teardown' && !isStillHeld(namespace);
  return { home: namespace.name, now: run.finishedAt, isOver };
}

function causeTitle(cause: Cause): Words {
  const [{ namespace, finding }] = cause;
  if (finding.code === 'unexplained' && finding.cause !== undefined) return finding.cause;
  if (finalizersOf(cause).length < 2) return titleWords(finding, namespace.name);
  return finding.cause === undefined
    ? subjectWords(finding.subject, namespace.name)
    : `controller ${diagnosed(finding.cause)}`;
}

function listedWords(cause: Cause, clauses: Words[], run: RunResult): Words {
  const [{ namespace, links }] = cause;
  const namespaces = namespacesOf(cause);
  const isMany = namespaces.length > 1;
  const ages = namespaces.flatMap((one) => terminatingFor(one, run) ?? []);
  const age = formatAge(Math.max(...ages));
  const who = isMany ? counted(namespaces.length, 'namespace') : literal(namespace.name);
  const isAged = run.kind === 'teardown' && ages.length > 0;
  const extent = isAged ? `${who}, for ${isMany ? 'up to ' : ''}${age}` : who;
  const isLocal = links.some(
    ({ scope, subject }) => scope === 'namespace' || subject.namespace === namespace.name,
  );
  const example = isMany && isLocal ? `for example in ${literal(namespace.name)}, ` : '';
  return `${bold(`${extent}:`)} ${example}${asSentence(clauses)}.`;
}

/** Returns a sentence with the other finalizers and objects of the namespace that wait for the same cause. */
function alsoHeldWords(cause: Cause): Words {
  const [{ namespace, finding, links, circle }] = cause;
  const wordsOf = (one: Finding): Words => subjectWords(one.subject, namespace.name);
  const finalizers = finalizersOf(cause).filter((one) => one !== finding.finalizer);
  const objects = new Set(cause.flatMap(({ blockers }) => blockers).map(wordsOf));
  for (const link of [...links.slice(0, 1), ...circle]) objects.delete(wordsOf(link));
  const also = [...finalizers.map((one) => `finalizer ${literal(one)}`), ...objects];
  return also.length === 0 ? '' : `Also waiting for this: ${listWords(also, MAX_NAMED)}.`;
}

function finalizersOf(cause: Cause): string[] {
  return [...new Set(cause.flatMap(({ finding }) => finding.finalizer ?? []))];
}

/** Returns a link of a chain with its evidence. */
function proofOf(link: Finding, waits: Finding | undefined, scene: Scene) {
  const { code, count = 1, evidence, finalizer = '', since = '' } = link;
  const age = Date.parse(scene.now) - Date.parse(since);
  const duration = Number.isNaN(age) ? '' : `, for ${formatAge(age)}`;
  const held = code === 'object-finalizer' ? `, finalizer ${literal(finalizer)}` : '';
  const subject = capitalized(linkWords(link, scene.home, waits));
  const subjects = [link, ...(waits ? [waits] : [])].map((one) => one.subject);
  // An error of an API server has its status, but not in a condition: the longer text is kept. A clue to who is ruled out may
  // be a clue to somebody else as well.
  const isRepeated = (line: string): boolean =>
    evidence.some((all) => all !== line && all.endsWith(line) && !all.startsWith('ruled out '));
  const lines = evidence
    .filter((line) => !isRepeated(line))
    .map((line) => diagnosed(withAges(line, scene.now), [], subjects));
  const examples = (link.examples ?? []).map(({ name }) => name);
  if (count > 1 && examples.length > 1) lines.push(`among them ${listExact(examples)}`);
  return { words: `${subject}${held}${duration}:`, lines };
}

function namespaceView(result: NamespaceResult, causes: readonly Cause[], run: RunResult) {
  const { diagnosis, name: home } = result;
  const scene = sceneOf(result, run);
  const [state, detail = ''] = stateOf(result, run);
  const roots = causes.flatMap((one) => one.find(({ namespace }) => namespace === result) ?? []);
  const [first] = roots;
  const [unread] = notInspectedSentences(diagnosis?.notInspected ?? [], MAX_NAMED);
  const more = roots.length > 1 ? ` (and ${counted(roots.length - 1, 'more cause')})` : '';
  const notRead = unread === undefined ? '' : `could not read ${unread}`;
  return {
    ...result,
    mark: outcomeSign(result.outcome, result.verdict),
    state,
    headline: `Namespace ${literal(home)} ${state}${detail}`,
    /** The cause as one sentence without a full stop; empty if it is unknown. */
    sentence: first === undefined ? notRead : `${asSentence(chainClauses(first, scene))}${more}`,
    /** The first root cause. */
    root: diagnosis && findingsOf(diagnosis, diagnosis.rootCauses)[0],
    /** The titles of its causes. */
    titles: listWords(
      roots.map(({ finding }) => titleWords(finding, home)),
      MAX_TITLES,
    ),
    /** The progress, if no cause describes it. */
    notes: diagnosis !== undefined && isStillHeld(result) ? movementClauses(diagnosis, run) : [],
    rows: diagnosis === undefined ? [] : rowsOf(diagnosis, scene),
    unread: notInspectedSentences(diagnosis?.notInspected ?? []),
    steps: stepsOf(result),
  };
}

/** Describes the progress of the namespace, unless a finding does. */
function movementClauses({ movement, findings }: Diagnosis, run: RunResult): Words[] {
  const saying: readonly FindingCode[] = ['content-deleting', 'pod-grace-period'];
  if (findings.some(({ code }) => saying.includes(code))) return [];
  switch (movement.kind) {
    case 'shrinking': {
      const counts = `${formatCount(movement.before)} objects, then ${formatCount(movement.now)}`;
      const apart = formatDuration(movement.comparedMs);
      return [`its content is still being deleted: ${counts}, ${apart} apart`];
    }
    case 'grace-period':
      return [`a pod may take until ${diagnosed(withAges(movement.until, run.finishedAt))} to end`];
    case 'starting':
      return ['Kubernetes starts 5 s after the request, and has not started yet'];
    case 'retrying':
      return ['the error that Kubernetes reported is fixed; it tries again within a minute'];
    default:
      return [];
  }
}

/** Returns the wait-for graph as rows from the namespace on, also the link that closes a circle. */
function rowsOf(diagnosis: Diagnosis, scene: Scene): Row[] {
  const byId = new Map(diagnosis.findings.map((finding) => [finding.id, finding]));
  const roots = new Set(diagnosis.rootCauses);
  const next = Map.groupBy(diagnosis.edges, ({ from }) => from);
  const rows: Row[] = [];
  const seen = new Set<string>();
  const walk = (from: string, depth: readonly boolean[]): void => {
    const waits = byId.get(from);
    const edges = (next.get(from) ?? []).filter(({ to }) => to === NAMESPACE_NODE || byId.has(to));
    for (const [at, { to }] of edges.entries()) {
      if (rows.length >= MAX_ROWS) return;
      const here = [...depth, at < edges.length - 1];
      const finding = byId.get(to);
      if (finding === undefined) {
        const label = `Namespace ${literal(scene.home)}`;
        rows.push({ to, depth: here, label, message: '(see above)', isRootCause: false });
        continue;
      }
      const isKnown = seen.has(to);
      const isSelf =
        !isKnown && (needsNoSubject(finding, waits) || isAboutHome(finding, scene.home));
      rows.push({
        to,
        depth: here,
        label: isSelf ? continuationWords(finding, scene) : linkWords(finding, scene.home, waits),
        message: isKnown ? '(see above)' : isSelf ? '' : messageWords(finding, scene, waits),
        isRootCause: roots.has(to) && !isKnown,
      });
      if (isKnown) continue;
      seen.add(to);
      walk(to, here);
    }
  };
  walk(NAMESPACE_NODE, []);
  return rows;
}

/** Writes what could not be read: one sentence for missing permissions, and one per other reason. */
function notInspectedSentences(entries: readonly NotInspected[], most?: number): Words[] {
  const byReason = Map.groupBy(entries, ({ reason, grant }) => (grant ? undefined : reason));
  return [...byReason].map(([common, group]) => {
    // Resource types have the names that kubectl takes; other entries are phrases.
    const names = group.map(({ what, grant }) => (grant ? literal(what) : diagnosed(what)));
    const whats = [...new Set(names)];
    const list = listWords(whats, most);
    if (common !== undefined) return `${list}: ${diagnosed(common)}`;
    const example = whats.length > 1 ? 'for example ' : '';
    return `${list}: permissions are missing, ${example}${literal(group[0]?.reason ?? '')}`;
  });
}

/** Returns the missing RBAC rules, a line of YAML each: one per group and verbs. */
function rulesFor(entries: readonly NotInspected[]): string[] {
  const grants = entries.flatMap(({ grant }) => grant ?? []);
  const perType = groupsBy(grants, ({ apiGroup, resource }) => `${apiGroup}/${resource}`);
  const types = perType.map((group) => {
    return { ...group[0], verbs: [...new Set(group.map(({ verb }) => verb))] };
  });
  const perRule = groupsBy(types, ({ apiGroup, verbs }) => [apiGroup, ...verbs].join('\n'));
  return perRule.flatMap((alike) => {
    const [{ apiGroup, verbs }] = alike;
    const rule = { apiGroups: [apiGroup], resources: alike.map((one) => one.resource), verbs };
    return dump([rule], { flowLevel: 1, lineWidth: -1 }).trimEnd().split('\n');
  });
}

function queuedWords(held: readonly NamespaceResult[]): Words {
  const queued = held.flatMap(({ diagnosis }) => diagnosis?.queued ?? []);
  const total = queued.reduce((sum, { count }) => sum + count, 0);
  return total === 0 ? '' : `Not marked for deletion yet: ${counted(total, 'object')}.`;
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
