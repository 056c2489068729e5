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
  type Remedy,
  type RemedyRole,
} from '../model/finding.ts';
import {
  OUTCOMES,
  type Outcome,
  protectedBecause,
  VERDICTS,
  type Verdict,
} from '../model/outcome.ts';
import type { NamespaceResult, RunResult } from '../model/result.ts';
import {
  type Cause,
  causesOf,
  groupRoots,
  groupsBy,
  isStillHeld,
  namespacesOf,
  needsNoSubject,
  type Root,
} from './causes.ts';
import {
  asSentence,
  asSentences,
  attributionOf,
  chainClauses,
  continuationWords,
  findingText,
  formatAge,
  isAboutHome,
  isOpenOnly,
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

/** At most so many causes are rendered; the rest are counted. report.json has all of them. */
const MAX_CAUSES = 200;
const MAX_ROWS = 500;
const MAX_NAMED = 4;
const MAX_TITLES = 2;
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
  /** Commands that do the same in other places. */
  others: string[];
}

/** One edge of the wait-for graph, in the order of a walk that unfolds every finding once. */
export interface Row {
  from: string;
  to: string;
  /** For each level of the tree, whether another row follows at that level. */
  depth: boolean[];
  fromWords: Words;
  toWords: Words;
  /** The name of `to`; if that is the waiting object itself, its message, which is enough. */
  label: Words;
  /** The message about `to`; empty if the label has it. */
  message: Words;
  because: Words;
  isRootCause: boolean;
  /** An earlier row had the message. */
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
/** Equal causes, rendered once for all namespaces. */
export type CauseView = ReturnType<typeof causeView>;

/** The fixed words of a result: a secret that happens to be "progressing" must not break the report. */
const FIXED_WORDS: ReadonlySet<string> = new Set<
  | FindingCode
  | Outcome
  | Verdict
  | RemedyRole
  | Certainty
  | Movement['kind']
  | 'plan'
  | 'objects'
  | Finding['scope']
  | RunResult['kind']
>([
  ...FINDING_CODES,
  ...OUTCOMES,
  ...VERDICTS,
  ...([
    'now',
    'or',
    'look',
    'next',
    'proven',
    'likely',
    'unknown',
    'namespace',
    'cluster',
  ] as const),
  ...([
    'teardown',
    'forecast',
    'none',
    'starting',
    'retrying',
    'shrinking',
    'grace-period',
  ] as const),
  ...(['plan', 'objects'] as const),
]);

/**
 * Computes the content of a report once for all renderers: plain data whose texts are in pieces, in the
 * order of the report. `redact` is applied to all texts first: once a text is
 * escaped, cut or encoded, a secret in it cannot be recognized.
 */
export function viewOf(result: RunResult, redact?: (text: string) => string) {
  const run = redact ? redactDeep(result, redact, FIXED_WORDS) : result;
  const ordered = worstFirst(run.namespaces);
  // In a run over several, the cause of a deleted namespace is only rendered if it was forced.
  const found = causesOf(ordered.length === 1 ? ordered : ordered.filter(isStillHeld));
  const all = [...found, ...groupRoots(ordered.flatMap((one) => situationOf(one) ?? []))];
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
    notInspected: notInspectedSentences(unread),
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
  const [outcome, ...others] = new Set(told.map((one) => one.outcome));
  const shared =
    others.length === 0 && outcome !== undefined ? SHARED_OUTCOMES[outcome] : undefined;
  const all = counted(ordered.length, 'namespace');
  const which = told.length === ordered.length ? all : `${formatCount(told.length)} of ${all}`;
  const took = run.timeoutMs > 0 ? ` (${formatDuration(run.elapsedMs)})` : '';
  return `${which}: ${shared ?? (failed.length > 0 ? 'not passed' : 'passed')}${took}`;
}

/**
 * Refers to the fix of an earlier cause: if one object has several finalizers, its commands serve all of them. One log may
 * be worth reading for several causes, which have little else in common.
 */
function withoutRepeatedFixes(views: readonly CauseView[]): CauseView[] {
  const byCommands = new Map<string, number>();
  return views.map((view, at) => {
    const actions = view.remedies.flatMap((group) => (group.isExtra ? [] : group.actions));
    const key = actions.flatMap(({ command }) => command ?? []).join('\n');
    const first = key === '' ? undefined : byCommands.get(key);
    if (first === undefined) {
      byCommands.set(key, at);
      return view;
    }
    const enough = `The fix of cause ${first + 1} fixes this one, too.`;
    return { ...view, also: joinWords([view.also, enough], ' '), remedies: [] };
  });
}

function causeView(cause: Cause, run: RunResult) {
  const [{ namespace, links }] = cause;
  const names = namespacesOf(cause).map(({ name }) => name);
  const isGone = !isStillHeld(namespace);
  const isOver = run.kind === 'teardown' && isGone;
  const scene: Scene = { home: namespace.name, now: run.finishedAt, isOver };
  const isLocal = links.some(
    ({ scope, subject }) => scope === 'namespace' || subject.namespace === scene.home,
  );
  const isMany = names.length > 1;
  const example = isMany && isLocal ? `for example in ${literal(scene.home)}, ` : '';
  const clauses = chainClauses(links, scene);
  const sentence = asSentence(clauses);
  return {
    title: causeTitle(cause),
    /** The cause as an entry of a list: "5 namespaces, for up to 2 days: for example in preview-1, …". */
    listed:
      run.namespaces.length === 1
        ? asSentences([sentence])
        : `${bold(`${extentOf(cause, run)}:`)} ${example}${sentence}.`,
    /** Clauses that follow the chain to its end, for the first namespace. */
    clauses,
    /** Other objects that wait here, as a sentence. */
    also: isMany ? '' : alsoHeldWords(cause),
    /** The people who can fix it; empty if that is not known. */
    attribution: isGone ? '' : attributionOf(cause, run),
    /** Groups in their order; none is empty. A cause that forcing has ended needs no remedy. */
    remedies: isGone && namespace.diagnosis !== undefined ? [] : remediesOf(cause, run),
    proofs: links
      .map((link, at) => proofOf(link, links[at - 1], scene))
      .filter(({ lines }) => lines.length > 0),
    namespaces: names,
  };
}

function causeTitle(cause: Cause): Words {
  const [{ namespace, finding }] = cause;
  if (finding.code === 'unexplained' && finding.cause !== undefined) return finding.cause;
  if (finalizersOf(cause).length < 2) return titleWords(finding, namespace.name);
  return finding.cause === undefined
    ? subjectWords(finding.subject, namespace.name)
    : `controller ${diagnosed(finding.cause)}`;
}

function extentOf(cause: Cause, run: RunResult): Words {
  const namespaces = namespacesOf(cause);
  const isOne = namespaces.length === 1;
  const who = isOne ? literal(cause[0].namespace.name) : counted(namespaces.length, 'namespace');
  const ages = namespaces.flatMap((one) => terminatingFor(one, run) ?? []);
  if (run.kind === 'forecast' || ages.length === 0) return who;
  return `${who}, for ${isOne ? '' : 'up to '}${formatAge(Math.max(...ages))}`;
}

/** Returns a sentence with the other finalizers and objects of the namespace that wait for the same cause. */
function alsoHeldWords(cause: Cause): Words {
  const [{ namespace, finding, links }] = cause;
  const wordsOf = (one: Finding): Words => subjectWords(one.subject, namespace.name);
  const finalizers = finalizersOf(cause).filter((one) => one !== finding.finalizer);
  const objects = cause.flatMap(({ blockers }) => blockers).map(wordsOf);
  const others = new Map(objects.map((words) => [toPlain(words), words]));
  for (const link of links.slice(0, 1)) others.delete(toPlain(wordsOf(link)));
  const also = [...finalizers.map((one) => `finalizer ${literal(one)}`), ...others.values()];
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
  // An error of an API server has its status, but not in a condition: the longer text is kept. A clue to who is ruled out may
  // be a clue to somebody else as well.
  const lines = evidence
    .filter(
      (one) =>
        !evidence.some((all) => all !== one && all.endsWith(one) && !all.startsWith('ruled out ')),
    )
    .map((line) => diagnosed(withAges(line, scene.now)));
  const examples = (link.examples ?? []).map(({ name }) => name);
  if (count > 1 && examples.length > 1) lines.push(`among them ${listExact(examples)}`);
  return { words: `${subject}${held}${duration}:`, lines };
}

/** Groups remedies under their titles. If no fix is known, the remedies that show more become "What to do". */
function remedyGroups(
  { now = [], or = [], look = [], next = [] }: Partial<Record<RemedyRole, Action[]>>,
  isForecast: boolean,
): Remedies[] {
  const duties = isForecast ? [...next, ...now] : now;
  const isBlind = duties.length === 0;
  const group = (title: string, actions: Action[], isExtra = false): Remedies => ({
    title,
    isOrdered: actions === duties && actions.length > 1,
    isExtra,
    actions,
  });
  return [
    isBlind ? group('What to do', look) : group('Fix', duties),
    group(isBlind && look.length === 0 ? 'Fix' : 'Alternatives', or),
    group('Prevent it', isForecast ? [] : next),
    group('Look closer', isBlind ? [] : look, true),
  ].filter(({ actions }) => actions.length > 0);
}

/**
 * Returns the remedies by their role, those of the root cause first. Commands of equal causes that do the same to
 * other objects are kept with the first.
 */
function remediesOf(cause: Cause, run: RunResult): Remedies[] {
  const [first, ...rest] = cause;
  const { name: home, outcome, order = [] } = first.namespace;
  const scene: Scene = { home, now: run.finishedAt };
  const known = new Map<string, Action & { role: RemedyRole }>();
  if (outcome === 'progressing' && !PATIENT.includes(first.finding.code)) {
    const now = run.timeoutMs > 0 ? ` (now ${formatDuration(run.timeoutMs)})` : '';
    const text = `Give the deletion more time${now}: raise the input ${literal('timeout')}`;
    known.set('more time', { role: 'now', text, others: [] });
  }
  // The steps of an ordered deletion have these commands.
  const steps = new Set(order.map(({ command }) => typeIn(command)));
  const others = rest.slice(0, MAX_INSTANCES).map(remediesIn);
  for (const { finding, remedy } of remediesIn(first)) {
    const { text, command, risk, role = 'now' } = remedy;
    if (command !== undefined && steps.has(typeIn(command))) continue;
    const key = [role, text, risk].join('\n');
    const action = known.get(key) ?? {
      role,
      text: findingText(text.replace(/[.:]$/, ''), finding, scene),
      command,
      risk: risk === undefined ? undefined : findingText(risk, finding, scene),
      others: [],
    };
    known.set(key, action);
    // Equal causes may differ in the number of their remedies: a command belongs to the first that does the same.
    const same = others.flatMap((all) => {
      const at = all.findIndex(
        (other) =>
          other.finding.code === finding.code &&
          (other.remedy.role ?? 'now') === role &&
          deedOf(other.remedy) === deedOf(remedy),
      );
      return (at < 0 ? [] : all.splice(at, 1)).flatMap((other) => other.remedy.command ?? []);
    });
    for (const one of [command, ...same]) {
      const isNew = one !== undefined && one !== action.command && !action.others.includes(one);
      if (isNew) action.others.push(one);
    }
  }
  return remedyGroups(
    Object.groupBy(known.values(), ({ role }) => role),
    run.kind === 'forecast',
  );
}

/** Returns the program and the verb of a command: "kubectl patch". */
function deedOf({ command = '' }: Remedy): string {
  return command.split(' ', 2).join(' ');
}

function remediesIn(root: Root): { finding: Finding; remedy: Remedy }[] {
  return findingsWithRemedies(root).flatMap((finding) =>
    finding.remedies.map((remedy) => ({ finding, remedy })),
  );
}

/** Returns the beginning of a command: "kubectl delete widgets.example.com". */
function typeIn(command: string): string {
  return command.split(' ', 3).join(' ');
}

/** Returns the steps in which a namespace can be deleted without a hang; none if the order does not matter. */
function stepsOf({ name, order = [] }: NamespaceResult): Action[] {
  if (order.length === 0) return [];
  const left = order.filter(({ isByHand }) => isByHand).length;
  const others = left < order.length ? 'does the other steps' : 'does not delete them';
  const does = left === 0 ? 'does these steps' : others;
  const then = `Then delete the namespace. ${literal('delete: ordered')} ${does}`;
  const steps = order.map(({ why, command, isByHand }) => ({
    text: isByHand
      ? `Delete these objects yourself, and wait until they are deleted; ${diagnosed(why)}`
      : `Delete these objects, and wait until they are deleted, because ${diagnosed(why)}`,
    command,
    others: [],
  }));
  return [...steps, { text: then, command: `kubectl delete namespace ${name}`, others: [] }];
}

function findingsWithRemedies({ blockers, links }: Root): Finding[] {
  return [...new Set([...links.toReversed(), ...blockers.slice(0, MAX_BLOCKERS_WITH_REMEDIES)])];
}

/** Findings whose own remedies advise to wait. */
const PATIENT: readonly FindingCode[] = ['content-deleting', 'pod-grace-period', 'owner-running'];

/** Returns the cause of a namespace without a root cause, as a finding about the namespace itself. */
function situationOf(namespace: NamespaceResult): Root | undefined {
  const { diagnosis, outcome, verdict, name, refusal, timeline } = namespace;
  /** `message` is a predicate about the namespace; `quote` follows it. */
  const situation = (cause: string, message: string, look?: Remedy, quote = ''): Root => {
    const finding: Finding = {
      ...{ id: '', code: 'unexplained', scope: 'namespace', evidence: [], waitsFor: [], cause },
      subject: { apiVersion: 'v1', kind: 'Namespace', name },
      message: `${message}${quote}`,
      quote,
      remedies: look === undefined ? [] : [{ ...look, role: 'look' }],
    };
    return { namespace, finding, links: [finding], blockers: [] };
  };
  switch (outcome) {
    case 'not-terminating': {
      const command = `kubectl delete namespace ${name} --wait=false`;
      // The gate requested the deletion, and RBAC or admission refused it, or the namespace changed all the time.
      if (refusal !== undefined) {
        const text = 'Fix what refuses the deletion, or use another identity, and delete it again';
        return situation('deletion refused', 'was not deleted: ', { text, command }, refusal);
      }
      const kept = protectedBecause(name);
      const text = 'Delete the namespace first, or set the input delete: then the gate deletes it';
      return situation(
        'deletion not requested',
        'is not being deleted, so the gate does not wait',
        kept === undefined
          ? { text, command }
          : { text: `Check the name: ${kept}, and the gate never deletes it` },
      );
    }
    case 'recreated':
      return situation(
        'created again',
        'was created again while it was being deleted, for example by a deploy that ran at the same time, or by a controller',
      );
    case 'not-found':
      if (verdict !== 'fail') return undefined;
      return situation(
        'not there',
        'did not exist at the start: it was deleted before, its name is misspelt, or this is another cluster',
        {
          text: 'Check the name and the cluster. If a missing namespace is no error, set the input if-not-found to ok',
        },
      );
    case 'stuck':
    case 'progressing':
    case 'inconclusive':
    case 'would-hang': {
      const examine = {
        text: 'Run the gate again, or see what the namespace reports itself',
        command: `kubectl describe namespace ${name}`,
      };
      const quote = remainingContent(namespace);
      if (diagnosis === undefined) {
        const reported = quote === '' ? '' : '. The namespace controller reports: ';
        const message = `was not examined: ${timeline.at(-1)?.event ?? 'there was no time'}${reported}`;
        return situation('not examined', message, examine, quote);
      }
      const { notInspected, rootCauses } = diagnosis;
      if (rootCauses.length > 0) return undefined;
      if (notInspected.length === 0) {
        return outcome === 'progressing'
          ? situation('still being deleted', 'is still being deleted')
          : undefined;
      }
      const [first] = notInspected;
      if (first !== undefined && isOpenOnly(diagnosis)) {
        const message = `may hang: it is not known ${first.what}: `;
        return situation('an open question', message, undefined, first.reason);
      }
      const unread = 'may be held by objects that could not be read';
      const message = quote === '' ? unread : `${unread}. The namespace controller reports: `;
      const grant = {
        text: 'Allow the identity of the gate to read the rest: add the permissions below to its role',
      };
      const look = notInspected.some((one) => one.grant) ? grant : examine;
      return situation('not everything could be read', message, look, quote);
    }
    default:
      return undefined;
  }
}

/** Quotes the counts of the namespace controller, which may read more than the gate. */
function remainingContent({ conditions }: NamespaceResult): string {
  const counts = ['NamespaceContentRemaining', 'NamespaceFinalizersRemaining'];
  return conditions
    .filter(({ type, status }) => counts.includes(type) && status === 'True')
    .map(({ message }) => message)
    .join('; ');
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
    case 'grace-period': {
      const until = diagnosed(withAges(movement.until, run.finishedAt));
      return [`a pod may take until ${until} to end`];
    }
    case 'starting':
      return ['Kubernetes starts 5 s after the request, and has not started yet'];
    case 'retrying':
      return ['the error that Kubernetes reported is fixed; it tries again within a minute'];
    case 'none':
    case 'unknown':
      return [];
  }
}

function namespaceView(result: NamespaceResult, causes: readonly Cause[], run: RunResult) {
  const { diagnosis, name: home } = result;
  const isHeld = isStillHeld(result);
  const scene: Scene = { home, now: run.finishedAt, isOver: run.kind === 'teardown' && !isHeld };
  const [state, detail = ''] = stateOf(result, run);
  const roots = causes.flatMap((one) => one.find(({ namespace }) => namespace === result) ?? []);
  const titles = roots.map(({ finding }) => titleWords(finding, home));
  const [first] = roots;
  const [unread] = notInspectedSentences(diagnosis?.notInspected ?? []);
  const notRead = unread === undefined ? '' : `could not read ${unread}`;
  const chainOf = ({ links }: Root): Words => asSentence(chainClauses(links, scene));
  const more = roots.length > 1 ? ` (and ${counted(roots.length - 1, 'more cause')})` : '';
  return {
    ...result,
    mark: outcomeSign(result.outcome, result.verdict),
    state,
    headline: `Namespace ${literal(home)} ${state}${detail}`,
    /** The cause as one sentence without a full stop; empty if it is unknown. */
    sentence: first === undefined ? notRead : `${chainOf(first)}${more}`,
    /** The first root cause. */
    root: diagnosis && findingsOf(diagnosis, diagnosis.rootCauses)[0],
    /** The titles of its causes. */
    titles: listWords(titles, MAX_TITLES),
    /** The progress, if no cause describes it. */
    notes: diagnosis !== undefined && isHeld ? movementClauses(diagnosis, run) : [],
    rows: diagnosis === undefined ? [] : rowsOf(diagnosis, scene),
    steps: stepsOf(result),
  };
}

/** Returns the wait-for graph as rows from the namespace on, also the link that closes a circle. */
export function rowsOf(diagnosis: Diagnosis, scene: Scene): Row[] {
  const byId = new Map(diagnosis.findings.map((finding) => [finding.id, finding]));
  const roots = new Set(diagnosis.rootCauses);
  const next = Map.groupBy(diagnosis.edges, ({ from }) => from);
  const namespaceWords = `Namespace ${literal(scene.home)}`;
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
        !isKnown &&
        (needsNoSubject(finding, waits) || isAboutHome(finding, scene.home));
      const names = finding?.finalizer === undefined ? [] : [finding.finalizer];
      const reason = diagnosed(withAges(because, scene.now), names);
      const message = finding === undefined ? reason : messageWords(finding, scene, waits);
      rows.push({
        from,
        to,
        depth: here,
        fromWords,
        toWords,
        label: isSelf ? continuationWords(finding, scene) : toWords,
        message: isKnown ? '(see above)' : isSelf ? '' : message,
        because: reason,
        isRootCause: roots.has(to),
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
function notInspectedSentences(entries: readonly NotInspected[]): Words[] {
  const byReason = Map.groupBy(entries, ({ reason, grant }) => (grant ? undefined : reason));
  return [...byReason].map(([common, group]) => {
    const whats = new Map(group.map(({ what, grant }) => [what, grant]));
    // Resource types have the names that kubectl takes; other entries are phrases.
    const list = [...whats].map(([what, grant]) =>
      grant === undefined ? diagnosed(what) : literal(what),
    );
    const reason = group[0]?.reason ?? '';
    if (common !== undefined) return `${listWords(list, MAX_NAMED)}: ${diagnosed(common)}`;
    const example = list.length > 1 ? 'for example ' : '';
    const types = listWords(list, MAX_NAMED);
    return `${types}: permissions are missing, ${example}${literal(reason)}`;
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
