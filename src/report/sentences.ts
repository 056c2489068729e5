import { formatDuration } from '../base/time.ts';
import {
  type Diagnosis,
  type Finding,
  type FindingCode,
  findingsOf,
  type Subject,
} from '../model/finding.ts';
import type { Outcome, Verdict } from '../model/outcome.ts';
import type { LeftBehind, NamespaceResult, RunResult } from '../model/result.ts';
import { type Cause, needsNoSubject, type Root } from './causes.ts';
import {
  bold,
  capitalized,
  counted,
  diagnosed,
  joinWords,
  listWords,
  literal,
  toPlain,
  type Words,
  withFullStop,
} from './words.ts';

/** The longest chain in a sentence, which has at most 30 words; the graph in the evidence has all links. */
const MAX_LINKS_TOLD = 3;

/** The context of a sentence: names in the home namespace have no prefix, ages count back from `now`. */
export interface Scene {
  home: string;
  /** ISO 8601. */
  now: string;
  /** Whether the finding no longer holds the namespace: verbs are then in the past tense. */
  isOver?: boolean;
}

/** Writes "Widget `db`", "Deployment `operators/widget-operator`", "type `configmaps`". */
export function subjectWords(subject: Subject, home: string): Words {
  if (subject.kind === 'APIResource') return `type ${literal(subject.name)}`;
  const isElsewhere = subject.namespace !== undefined && subject.namespace !== home;
  const path = isElsewhere ? `${subject.namespace}/${subject.name}` : subject.name;
  return `${diagnosed(subject.kind)} ${literal(path)}`;
}

/** Writes the subject of a finding, with the number of others that it represents. */
function findingSubject(finding: Finding, home: string): Words {
  if (finding.code === 'content-deleting')
    return `objects of type ${literal(finding.subject.name)}`;
  if (isAboutHome(finding, home)) return 'the namespace';
  const more = (finding.count ?? 1) - 1;
  const words = subjectWords(finding.subject, home);
  return more > 0 ? `${words} (and ${counted(more, 'other')} like it)` : words;
}

/** Reports whether the subject of a finding is the waiting namespace itself. */
export function isAboutHome({ finalizer, subject }: Finding, home: string): boolean {
  return finalizer === undefined && subject.kind === 'Namespace' && subject.name === home;
}

/**
 * Writes a finding as the end of "x waits for …". A finalizer of the namespace, or an owner that could not be
 * named, has the waiting object as its subject, and "x waits for x" would mean nothing.
 */
export function linkWords(finding: Finding, home: string, waits: Finding | undefined): Words {
  const { code, finalizer } = finding;
  if (isAboutHome(finding, home)) return titleWords(finding, home);
  if (finalizer !== undefined) {
    if (code === 'namespace-finalizer' || code === 'namespace-spec-finalizer') {
      return `finalizer ${literal(finalizer)}`;
    }
    if (needsNoSubject(finding, waits)) return `the controller of finalizer ${literal(finalizer)}`;
  }
  const subject = findingSubject(finding, home);
  // The sentence about an owner has its certainty itself.
  const isGuess = finding.certainty === 'likely' && !code.startsWith('owner-');
  return isGuess ? `${subject} (most likely)` : subject;
}

/** Returns the title of a cause, which is the same in all namespaces. */
export function titleWords(root: Finding, home: string): Words {
  if (root.finalizer !== undefined) return `finalizer ${literal(root.finalizer)}`;
  if (root.code === 'namespace-controller-inactive') return literal('kube-controller-manager');
  if (root.code === 'unexplained') return 'an unknown cause';
  return findingSubject({ ...root, count: 1 }, home);
}

/**
 * Returns the predicate of a finding. It begins with its verb, whose tense is set here. A finalizer
 * that `previous` has named is not named again.
 */
export function messageWords(finding: Finding, scene: Scene, previous?: Finding): Words {
  const { finalizer = '', message, quote = '' } = finding;
  const isNamed = finalizer !== '' && previous?.finalizer === finalizer;
  const own = message.slice(0, message.endsWith(quote) ? message.length - quote.length : undefined);
  const past = scene.isOver ? own.replace(/^(is|has)\b/, (verb) => PAST[verb] ?? verb) : own;
  const short = isNamed ? past.replace(finalizer, 'the finalizer') : past;
  const subjects = [finding, ...(previous ? [previous] : [])].map(({ subject }) => subject);
  return findingText(`${short}${message.slice(own.length)}`, finding, scene, subjects);
}

const PAST: Record<string, string> = { is: 'was', has: 'had' };

/** Returns the clause about a finding after its subject and finalizer were named. */
export function continuationWords(finding: Finding, scene: Scene): Words {
  return finding.continuation === undefined
    ? `it ${messageWords(finding, scene)}`
    : findingText(finding.continuation, finding, scene);
}

/** Returns a text of the diagnosis about a finding, with the names in it marked. */
export function findingText(
  text: string,
  { finalizer, subject, quote = '' }: Finding,
  { now }: Scene,
  subjects: readonly Subject[] = [subject],
): Words {
  // A name that is an ordinary word would mark every such word of the sentence as code.
  const special = [subject.name, subject.namespace ?? ''].filter((one) => /[^a-z]/.test(one));
  const names = finalizer === undefined ? special : [finalizer, ...special];
  const isQuoting = quote !== '' && text.endsWith(quote);
  const own = isQuoting ? text.slice(0, -quote.length).trimEnd() : text;
  const words = diagnosed(withAges(own, now), names, subjects);
  return isQuoting ? `${words} ${literal(quote)}` : words;
}

type Chain = Pick<Root, 'circle' | 'links'>;

/** Returns the clauses of a chain, one per link, each readable after the one before it; of a long one the two ends. */
export function chainClauses({ links, circle }: Chain, scene: Scene): Words[] {
  const isLong = links.length > MAX_LINKS_TOLD;
  // An owner is told together with the object that it holds.
  const end = links.length - (links.at(-1)?.code.startsWith('owner-') ? 2 : 1);
  const clauses = links.flatMap((link, at) => {
    const previous = links[at - 1];
    if (previous === undefined) {
      return [`${findingSubject(link, scene.home)} ${messageWords(link, scene)}`];
    }
    if (!isLong || at > end) return [clauseAfter(previous, link, scene, at)];
    if (at < end) return [];
    const which = relativeClause(findingSubject(link, scene.home), messageWords(link, scene));
    return [`it waits, through ${counted(at - 1, 'more object')}, for ${which}`];
  });
  if (circle.length === 0) return clauses;
  const others = circle.map((one) => findingSubject(one, scene.home));
  const all = listWords(
    [waiterWords(links.at(-1), scene, links.length), ...others],
    MAX_LINKS_TOLD + 1,
  );
  return [...clauses, `${all} wait for each other`];
}

/** Writes "Tenant acme, held by finalizer x", "Node n7, which is gone". */
function relativeClause(subject: Words, message: Words): Words {
  const held = toPlain(message).startsWith('is held ');
  return `${subject}, ${held ? message.replace('is held ', 'held ') : `which ${message}`}`;
}

/** Returns the subject of "waits for": "it" after the first link, later the name of the object. */
function waiterWords(waiter: Finding | undefined, { home }: Scene, at: number): Words {
  return waiter === undefined || at < 2 ? 'it' : findingSubject(waiter, home);
}

/** Writes sentences: "Widget db is held by … Its controller, Deployment x, was deleted …", each with its full stop. */
export function asSentences(clauses: readonly Words[]): Words {
  return clauses.map((clause) => withFullStop(capitalized(clause))).join(' ');
}

/** Writes one sentence without a full stop, for outputs and annotations. */
export function asSentence(clauses: readonly Words[]): Words {
  return joinWords(clauses, '; ');
}

function clauseAfter(previous: Finding, finding: Finding, scene: Scene, at: number): Words {
  if (needsNoSubject(finding, previous)) return continuationWords(finding, scene);
  const subject = findingSubject(finding, scene.home);
  const message = messageWords(finding, scene, previous);
  if (finding.code.startsWith('owner-')) {
    // The message about an owner that is not proven has its certainty: this sentence must not claim more.
    const isProven = finding.certainty === undefined || finding.certainty === 'proven';
    const role = ownerRole(previous, finding);
    return isProven ? `${role}, ${subject}, ${message}` : `${subject} ${message}`;
  }
  const which = relativeClause(subject, message);
  if (finding.code === 'pod-node-unavailable') return `it runs on ${which}`;
  if (!finding.code.startsWith('admission-')) {
    // A Node that is not ready may be held itself.
    const isSame = toPlain(subject) === toPlain(findingSubject(previous, scene.home));
    if (isSame) return `${subject} ${message}`;
    return `${waiterWords(previous, scene, at)} waits for ${which}`;
  }
  const guess = finding.certainty === 'likely' ? 'most likely ' : '';
  return `the request is ${guess}stopped by ${which}`;
}

function ownerRole(previous: Finding, owner: Finding): string {
  if (owner.subject.kind === 'CustomResourceDefinition') return 'its type';
  // After a namespace, "its controller" would be read as the namespace controller.
  return previous.subject.kind === 'Namespace' ? "the finalizer's controller" : 'its controller';
}

/** Findings without an attribution: nothing is wrong, or nothing is known. */
const BLAMELESS: readonly FindingCode[] = ['unexplained', 'content-deleting', 'pod-grace-period'];

/**
 * Returns who can fix a cause; empty if that is unknown.
 */
export function attributionOf(cause: Cause, run: RunResult): Words {
  const [{ namespace, finding }] = cause;
  const { diagnosis } = namespace;
  if (diagnosis === undefined || BLAMELESS.includes(finding.code)) return '';
  const likely = (finding.certainty ?? 'proven') === 'proven' ? '' : 'most likely ';
  if (diagnosis.deadlocks.some((circle) => circle.includes(finding.id))) {
    const [can, does] = run.kind === 'forecast' ? ['prevent', 'would delete'] : ['fix', 'deletes'];
    return `${bold(`You can ${likely}${can} this:`)} the teardown ${does} things in the wrong order.`;
  }
  if (finding.scope === 'cluster') {
    return finding.code === 'owner-running'
      ? `${bold('If it does not end by itself, ask your platform team:')} the controller runs outside of the namespace.`
      : `${bold('Ask your platform team.')} The cause lies outside of the namespace.`;
  }
  // The finding itself says that the owner is unknown.
  if (finding.code === 'owner-unknown') return '';
  return `${bold(`You can ${likely}fix this:`)} the cause lies in this environment.`;
}

/** Returns the emoji of an outcome. Words always follow it. */
export function outcomeSign(outcome: Outcome, verdict: Verdict): string {
  return outcome === 'not-found' && verdict === 'fail' ? '🔴' : MARKS[outcome];
}

const MARKS: Record<Outcome, string> = {
  clear: '✅',
  deleted: '✅',
  'not-found': '✅',
  recreated: '🟡',
  forced: '🟡',
  progressing: '🟡',
  inconclusive: '🟡',
  'not-terminating': '🔴',
  'would-hang': '🔴',
  stuck: '🔴',
  cancelled: '⚪',
};

/** Returns the outcome as a predicate, and the addition of a headline: "is stuck", ": still there after 5m 02s". */
export function stateOf(namespace: NamespaceResult, run: RunResult): [Words, Words?] {
  const took = formatDuration(namespace.elapsedMs);
  const age = terminatingFor(namespace, run);
  // A run that does not wait shows the age of the deletion instead of its own duration.
  const still =
    run.timeoutMs > 0 || age === undefined
      ? `still there${run.timeoutMs > 0 ? ` after ${took}` : ''}`
      : `terminating for ${formatAge(age)}`;
  const why = namespace.refusal === undefined ? 'not requested' : 'refused';
  const unknown =
    run.kind === 'forecast'
      ? `may hang: ${openQuestion(namespace)}`
      : `is ${still}; the cause is unknown`;
  const states: Record<Outcome, [Words, Words?]> = {
    clear: ['could be deleted', ': nothing that was read would hold it'],
    'would-hang': ['would hang if it were deleted now'],
    deleted: [`was deleted after ${took}`],
    'not-found': ['does not exist'],
    recreated: [`was deleted after ${took} and created again`],
    forced: [`was deleted after ${took}, because the gate force-finalized it`],
    progressing: ['is still being deleted', `: ${still}`],
    'not-terminating': [`is not terminating: the deletion was ${why}`],
    inconclusive: [unknown],
    stuck: ['is stuck', `: ${still}`],
    cancelled: [`was still there when the run was cancelled, after ${took}`],
  };
  return states[namespace.outcome];
}

/** Reports whether everything was read, and only the deletion can show the rest. */
export function isOpenOnly({ notInspected }: Pick<Diagnosis, 'notInspected'>): boolean {
  return notInspected.every(({ what }) => what.startsWith('whether '));
}

/** Returns what an inconclusive forecast leaves open. */
function openQuestion({ diagnosis, name: home }: NamespaceResult): Words {
  if (diagnosis === undefined) return 'it was not examined';
  const [first, ...others] = findingsOf(diagnosis, diagnosis.rootCauses);
  const more = others.length === 0 ? '' : `, and ${counted(others.length, 'more question')}`;
  if (first?.finalizer !== undefined)
    return `it is open who removes finalizer ${literal(first.finalizer)}${more}`;
  if (first !== undefined) return `${subjectWords(first.subject, home)} is an open question${more}`;
  const unread = diagnosis.notInspected.map(({ what }) => what);
  const words = listWords(
    unread.map((what) => diagnosed(what)),
    2,
  );
  return isOpenOnly(diagnosis)
    ? `it is not known ${words}`
    : `what it depends on could not be read: ${words}`;
}

/** Returns how long ago the deletion was requested, in ms; undefined if that is not known. */
export function terminatingFor(namespace: NamespaceResult, run: RunResult): number | undefined {
  const ms = Date.parse(run.finishedAt) - Date.parse(namespace.deletionTimestamp ?? '');
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

/** Writes "Left behind outside the namespace: 3 objects; breaking others: 1". */
export function leftBehindTitle(
  all: readonly LeftBehind[],
  { kind }: Pick<RunResult, 'kind'>,
): string {
  const breaking = all.filter(({ breaksOthers }) => breaksOthers).length;
  const left = kind === 'forecast' ? 'Would be left' : 'Left';
  const worse = breaking === 0 ? '' : `; breaking others: ${breaking}`;
  return `${left} behind outside the namespace: ${counted(all.length, 'object')}${worse}`;
}

/** Writes "Kubernetes 1.36.3". */
export function clusterWords(run: RunResult): Words {
  return `Kubernetes ${literal(run.cluster.version.replace(/^v(?=\d)/, ''))}`;
}

const TIMESTAMP = /\b(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}:\d{2})(?:\.\d+)?Z/g;
const DAY_MS = 24 * 3_600_000;

/**
 * Converts "2026-03-02T10:00:11Z" to "10:00:11 UTC (4m 51s ago)", counted from the end of the run: a bare timestamp
 * does not show its age. report.json keeps the timestamps as they were read.
 */
export function withAges(text: string, nowIso: string): string {
  const now = Date.parse(nowIso);
  return text.replace(TIMESTAMP, (stamp: string, date: string, time: string) => {
    const age = now - Date.parse(stamp);
    if (Number.isNaN(age)) return stamp;
    const isSameDay = Math.abs(age) < DAY_MS / 2;
    const clock = isSameDay ? `${time} UTC` : `${date} ${time.slice(0, 5)} UTC`;
    if (Math.abs(age) < 1_000) return clock;
    return `${clock} (${age < 0 ? `in ${formatAge(-age)}` : `${formatAge(age)} ago`})`;
  });
}

/** Formats as `formatDuration`, and in days from two days on. */
export function formatAge(ms: number): string {
  return ms >= 2 * DAY_MS ? `${Math.floor(ms / DAY_MS)} days` : formatDuration(ms);
}

/** Writes "2026-03-02 10:05 UTC", for the foot of a report. */
export function clockTime(iso: string): string {
  const at = Date.parse(iso);
  if (Number.isNaN(at)) return iso;
  return `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
