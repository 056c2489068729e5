import { listWords } from '../base/text.ts';
import { formatDuration } from '../base/time.ts';
import { type Finding, type FindingCode, findingsOf, type Subject } from '../model/finding.ts';
import type { Outcome, Verdict } from '../model/outcome.ts';
import type { LeftBehind, NamespaceResult, RunResult } from '../model/result.ts';
import { type Cause, needsNoSubject, type Root } from './causes.ts';
import { bold, counted, diagnosed, literal, type Words } from './words.ts';

/** The longest chain in a sentence, which has at most 30 words; the graph in the evidence has all links. */
const MAX_LINKS_TOLD = 3;

/** Names in the home namespace have no prefix, ages count back from `now`. */
export interface Scene {
  home: string;
  /** ISO 8601. */
  now: string;
  /** The finding no longer holds the namespace: verbs are in the past tense. */
  isOver?: boolean;
}

/** "Widget `db`", "Deployment `operators/widget-operator`", "type `configmaps`". */
export function subjectWords(subject: Subject, home: string): Words {
  if (subject.kind === 'APIResource') return `type ${literal(subject.name)}`;
  const isElsewhere = subject.namespace !== undefined && subject.namespace !== home;
  const path = isElsewhere ? `${subject.namespace}/${subject.name}` : subject.name;
  return `${diagnosed(subject.kind)} ${literal(path)}`;
}

export function findingSubject(finding: Finding, home: string): Words {
  const { code, count = 1, subject } = finding;
  if (code === 'content-deleting') return `objects of type ${literal(subject.name)}`;
  if (isAboutHome(finding, home)) return 'the namespace';
  const words = subjectWords(subject, home);
  return count > 1 ? `${words} (and ${counted(count - 1, 'other')} like it)` : words;
}

export function isAboutHome({ finalizer, subject }: Finding, home: string): boolean {
  return finalizer === undefined && subject.kind === 'Namespace' && subject.name === home;
}

/** The end of "x waits for …". An unknown owner has the waiting object as its subject. */
export function linkWords(finding: Finding, home: string, waits: Finding | undefined): Words {
  const { code, certainty, finalizer } = finding;
  if (isAboutHome(finding, home)) return titleWords(finding, home);
  if (finalizer !== undefined && needsNoSubject(finding, waits))
    return `the controller of finalizer ${literal(finalizer)}`;
  const subject = findingSubject(finding, home);
  // The sentence about an owner has its certainty itself.
  const isGuess = certainty === 'likely' && !code.startsWith('owner-');
  return isGuess ? `${subject} (most likely)` : subject;
}

/** The same in all namespaces. */
export function titleWords(root: Finding, home: string): Words {
  if (root.finalizer !== undefined) return `finalizer ${literal(root.finalizer)}`;
  if (root.code === 'namespace-controller-inactive') return literal('kube-controller-manager');
  if (root.code === 'unexplained') return root.cause ?? 'an unknown cause';
  return findingSubject({ ...root, count: 1 }, home);
}

/** A finalizer that `previous` has named is not named again. */
export function messageWords(finding: Finding, scene: Scene, previous?: Finding): Words {
  const { finalizer = '', message } = finding;
  const isNamed = finalizer !== '' && previous?.finalizer === finalizer;
  const subjects = [finding, ...(previous ? [previous] : [])].map(({ subject }) => subject);
  const text = isNamed ? message.replace(`finalizer ${finalizer}`, 'the finalizer') : message;
  const past = text.replace(/^is\b/, 'was').replace(/^has\b/, 'had');
  return findingText(scene.isOver ? past : text, finding, scene, subjects);
}

/** After the subject and finalizer of the finding were named. */
export function continuationWords(finding: Finding, scene: Scene): Words {
  return finding.continuation === undefined
    ? `it ${messageWords(finding, scene)}`
    : findingText(finding.continuation, finding, scene);
}

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
  const own = isQuoting ? text.slice(0, -quote.length) : text;
  const words = diagnosed(withAges(own, now), names, subjects);
  return isQuoting ? `${words} ${literal(quote)}` : words;
}

/** One clause per link, each readable after the one before it; of a long chain the two ends. */
export function chainClauses({ links, circle }: Pick<Root, 'circle' | 'links'>, scene: Scene) {
  const subjectOf = (link: Finding): Words => findingSubject(link, scene.home);
  // An owner is told together with the object that it holds.
  const end = links.length - (links.at(-1)?.code.startsWith('owner-') ? 2 : 1);
  const isLong = links.length > MAX_LINKS_TOLD;
  const clauses = links.flatMap((link, at): Words[] => {
    const previous = links[at - 1];
    if (previous === undefined) return [`${subjectOf(link)} ${messageWords(link, scene)}`];
    // What stops its request is the cause.
    if (link.code === 'owner-failing' && links[at + 1]?.code.startsWith('admission-')) return [];
    if (!isLong || at > end)
      return [clauseAfter(previous, link, scene, at < 2 ? 'it' : subjectOf(previous))];
    const which = relativeClause(subjectOf(link), messageWords(link, scene));
    return at < end ? [] : [`it waits, through ${counted(at - 1, 'more object')}, for ${which}`];
  });
  if (circle.length === 0) return clauses;
  const last = links.at(-1);
  const all = [links.length < 2 || !last ? 'it' : subjectOf(last), ...circle.map(subjectOf)];
  return [...clauses, `${listWords(all, MAX_LINKS_TOLD + 1)} wait for each other`];
}

/** "Tenant acme, held by finalizer x", "Node n7, which is gone". */
function relativeClause(subject: Words, message: Words): Words {
  const held = message.startsWith('is held ');
  return `${subject}, ${held ? message.replace('is ', '') : `which ${message}`}`;
}

function clauseAfter(previous: Finding, finding: Finding, scene: Scene, waiter: Words): Words {
  const { certainty = 'proven', code } = finding;
  if (needsNoSubject(finding, previous)) return continuationWords(finding, scene);
  const subject = findingSubject(finding, scene.home);
  const message = messageWords(finding, scene, previous);
  if (code.startsWith('owner-')) {
    // The message about an owner that is not proven has its certainty: this sentence must not claim more.
    if (certainty !== 'proven') return `${subject} ${message}`;
    return `${ownerRole(previous, finding)}, ${subject}, ${message}`;
  }
  // A Node that is not ready may be held itself.
  if (subject === findingSubject(previous, scene.home)) return `${subject} ${message}`;
  const which = relativeClause(subject, message);
  if (code === 'pod-node-unavailable') return `it runs on ${which}`;
  if (!code.startsWith('admission-')) return `${waiter} waits for ${which}`;
  if (/^(?:most likely|may be) /.test(message)) return `${subject} ${message}`;
  const whose = previous.code === 'owner-failing' ? "its controller's" : 'the';
  const what = previous.code === 'object-finalizer' ? 'removal' : 'request';
  return `${whose} ${what} is ${certainty === 'likely' ? 'most likely ' : ''}stopped by ${which}`;
}

function ownerRole(previous: Finding, owner: Finding): string {
  if (owner.subject.kind === 'CustomResourceDefinition') return 'its type';
  // After a namespace, "its controller" would be read as the namespace controller.
  return previous.subject.kind === 'Namespace' ? "the finalizer's controller" : 'its controller';
}

/** Findings without an attribution: nothing is wrong, or nothing is known. */
const BLAMELESS: readonly FindingCode[] = ['unexplained', 'content-deleting', 'pod-grace-period'];

export function attributionOf([{ namespace, finding }]: Cause): Words {
  const { certainty = 'proven', code, id, scope } = finding;
  if (BLAMELESS.includes(code)) return '';
  const you = bold(`You can ${certainty === 'proven' ? '' : 'most likely '}fix this:`);
  // Two objects that wait for each other would do so in any order.
  const isOfOrder = code !== 'object-finalizer';
  if (isOfOrder && namespace.diagnosis?.deadlocks.some((circle) => circle.includes(id)))
    return `${you} the teardown deletes things in the wrong order.`;
  if (scope === 'cluster') {
    const ask = code === 'owner-running' ? 'If it does not end by itself, ask' : 'Ask';
    const isOpen = code === 'owner-missing' && certainty !== 'proven';
    const unless = isOpen ? ', unless the controller ran in it' : '';
    return `${bold(`${ask} your platform team:`)} the cause lies outside of the namespace${unless}.`;
  }
  // The finding itself says that the owner is unknown.
  return code === 'owner-unknown' ? '' : `${you} the cause lies in this environment.`;
}

/** Words always follow the emoji. */
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

/** The predicate, and the addition of a headline: "is stuck", ": still there after 5m 02s". */
export function stateOf(namespace: NamespaceResult, run: RunResult): [Words, Words?] {
  const took = formatDuration(namespace.elapsedMs);
  const age = terminatingFor(namespace, run);
  // A run that does not wait shows the age of the deletion instead of its own duration.
  const waited = run.timeoutMs > 0 ? `still there after ${took}` : 'still there';
  const still = run.timeoutMs > 0 || !age ? waited : `terminating for ${formatDuration(age)}`;
  const why = namespace.refusal === undefined ? 'was not requested' : 'failed';
  const isForecast = run.kind === 'forecast';
  const states: Record<Outcome, [Words, Words?]> = {
    clear: ['could be deleted', ': nothing that was read would hold it'],
    'would-hang': ['would hang if it were deleted now'],
    deleted: [`was deleted after ${took}`],
    'not-found': ['does not exist'],
    recreated: [`was deleted after ${took} and created again`],
    forced: [`was deleted after ${took}, because the gate force-finalized it`],
    progressing: ['is still being deleted', `: ${still}`],
    'not-terminating': [`is not terminating: the deletion ${why}`],
    inconclusive: [
      isForecast
        ? `may hang: ${openQuestion(namespace, run.finishedAt)}`
        : namespace.isUnread
          ? 'could not be read at the end; whether it was deleted is unknown'
          : `is ${still}; the cause is unknown`,
    ],
    stuck: ['is stuck', `: ${still}`],
    cancelled: [`was still there when the run was cancelled, after ${took}`],
  };
  return states[namespace.outcome];
}

function openQuestion({ diagnosis, name: home }: NamespaceResult, now: string): Words {
  const [first] = diagnosis ? findingsOf(diagnosis, diagnosis.rootCauses) : [];
  if (first === undefined) return 'not everything that it depends on is known';
  const { code, finalizer } = first;
  const who = subjectWords(first.subject, home);
  return finalizer === undefined
    ? `${who} ${messageWords(first, { home, now })}`
    : `it is not known whether ${/^owner-(?!missing|unknown)/.test(code) ? who : 'a controller'} removes finalizer ${literal(finalizer)}`;
}

/** How long ago the deletion was requested, in ms. */
export function terminatingFor(namespace: NamespaceResult, run: RunResult): number | undefined {
  const ms = Date.parse(run.finishedAt) - Date.parse(namespace.deletionTimestamp ?? '');
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

export function leftBehindTitle(all: readonly LeftBehind[], { kind }: RunResult): string {
  const left = kind === 'forecast' ? 'Would be left' : 'Left';
  return `${left} behind outside the namespace: ${counted(all.length, 'object')}`;
}

export function clusterWords(run: RunResult): Words {
  return `Kubernetes ${literal(run.cluster.version.replace(/^v(?=\d)/, ''))}`;
}

const HALF_DAY_MS = 12 * 3_600_000;
const TIMESTAMP = /\b(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}:\d{2})(?:\.\d+)?Z/g;

/** Converts "2026-03-02T10:00:11Z" to "10:00:11 UTC (4m 51s ago)", counted from the end of the run. */
export function withAges(text: string, nowIso: string): string {
  const now = Date.parse(nowIso);
  return text.replace(TIMESTAMP, (stamp: string, date: string, time: string) => {
    const age = now - Date.parse(stamp);
    if (Number.isNaN(age)) return stamp;
    const isSameDay = Math.abs(age) < HALF_DAY_MS;
    const clock = isSameDay ? `${time} UTC` : `${date} ${time.slice(0, 5)} UTC`;
    if (Math.abs(age) < 1_000) return clock;
    return `${clock} (${age < 0 ? `in ${formatDuration(-age)}` : `${formatDuration(age)} ago`})`;
  });
}

export function clockTime(iso: string): string {
  const at = Date.parse(iso);
  if (Number.isNaN(at)) return iso;
  return `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
