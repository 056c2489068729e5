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
import { type Cause, continues, namespacesOf } from './causes.ts';
import {
  capitalized,
  counted,
  exact,
  formatCount,
  joinWords,
  listExact,
  said,
  strong,
  type Words,
} from './words.ts';

/** Longer chains are told by their two ends; the table of the chain has all links. */
const MAX_LINKS_TOLD = 4;
const MAX_NAMESPACES_NAMED = 5;

/** Where a sentence is told from: names of this namespace stand alone, ages count back from `now`. */
export interface Scene {
  home: string;
  /** ISO 8601. */
  now: string;
  /** Whether what was found no longer holds the namespace: verbs stand in the past. */
  isOver?: boolean;
}

/** "Widget `db`", "Deployment `operators/widget-operator`", "type `configmaps`". */
export function subjectWords(subject: Subject, home: string): Words {
  if (subject.kind === 'APIResource') return ['type ', exact(subject.name)];
  const isElsewhere = subject.namespace !== undefined && subject.namespace !== home;
  const path = isElsewhere ? `${subject.namespace}/${subject.name}` : subject.name;
  return [said(subject.kind), ' ', exact(path)];
}

/** The subject of a finding, with how many more it stands for. */
function findingSubject(finding: Finding, home: string): Words {
  if (finding.code === 'content-deleting') return ['objects of type ', exact(finding.subject.name)];
  const more = (finding.count ?? 1) - 1;
  const words = subjectWords(finding.subject, home);
  return more > 0 ? [...words, ` (and ${counted(more, 'other')} like it)`] : words;
}

/** Whether a finding has nothing to name but the namespace, which is what waits. */
export function isAboutHome({ finalizer, subject }: Finding, home: string): boolean {
  return finalizer === undefined && subject.kind === 'Namespace' && subject.name === home;
}

/**
 * A finding as something that is waited for. A finalizer of the namespace, or an owner that nobody could
 * name, has the thing that waits as its subject, and "x waits for x" tells nothing.
 */
export function linkWords(finding: Finding, home: string, waits: Finding | undefined): Words {
  const { code, finalizer } = finding;
  if (isAboutHome(finding, home)) return titleWords(finding, home);
  if (finalizer !== undefined) {
    if (code === 'namespace-finalizer' || code === 'namespace-spec-finalizer') {
      return ['finalizer ', exact(finalizer)];
    }
    if (continues(finding, waits)) return ['the owner of finalizer ', exact(finalizer)];
  }
  const subject = findingSubject(finding, home);
  // The sentence about a missing owner says itself what was not found and what would not be visible.
  const isGuess = finding.certainty === 'likely' && finding.code !== 'owner-missing';
  return isGuess ? ['most likely ', ...subject] : subject;
}

/** What a cause is called in a heading: what stays the same wherever it is found. */
export function titleWords(root: Finding, home: string): Words {
  if (root.finalizer !== undefined) return ['finalizer ', exact(root.finalizer)];
  switch (root.code) {
    case 'namespace-controller-inactive':
      return [exact('kube-controller-manager')];
    case 'unexplained':
      return ['an unknown cause'];
    default:
      return findingSubject({ ...root, count: 1 }, home);
  }
}

/**
 * Returns the predicate of a finding. It begins with its verb, so its tense can be set there. A finalizer
 * that `previous` has named is not named again.
 */
export function messageWords(finding: Finding, scene: Scene, previous?: Finding): Words {
  const { finalizer = '', quote = '' } = finding;
  const isNamed = finalizer !== '' && previous?.finalizer === finalizer;
  const end = finding.message.endsWith(quote) ? finding.message.length - quote.length : undefined;
  const own = finding.message.slice(0, end);
  const past =
    scene.isOver === true ? own.replace(/^(is|has)\b/, (verb) => PAST[verb] ?? verb) : own;
  const short = isNamed ? past.replace(finalizer, 'the finalizer') : past;
  return phrase(`${short}${finding.message.slice(own.length)}`, finding, scene);
}

const PAST: Record<string, string> = { is: 'was', has: 'had' };

/** The same where subject and finalizer were just named, as a clause of its own. */
export function continuationWords(finding: Finding, scene: Scene): Words {
  return finding.continuation === undefined
    ? ['it ', ...messageWords(finding, scene)]
    : phrase(finding.continuation, finding, scene);
}

/** A text of the diagnosis about a finding, with the finding's names in it. */
export function phrase(text: string, finding: Finding, { now }: Scene): Words {
  const { finalizer, subject, quote: words } = finding;
  const names = [finalizer, subject.name, subject.namespace].filter((one) => one !== undefined);
  // A name that is an ordinary word would turn every such word of the sentence into code.
  const special = names.filter((one) => one === finalizer || /[^a-z]/.test(one));
  if (words === undefined || words === '' || !text.endsWith(words)) {
    return [said(withAges(text, now), special)];
  }
  const own = text.slice(0, -words.length).trimEnd();
  return [said(withAges(own, now), special), ' ', exact(words)];
}

/** The clauses of a chain, each about one link, each readable after the one before it. */
export function chainClauses(links: readonly Finding[], scene: Scene): Words[] {
  const isLong = links.length > MAX_LINKS_TOLD;
  const told = isLong ? [...links.slice(0, MAX_LINKS_TOLD - 2), ...links.slice(-1)] : links;
  return told.flatMap((link, at) => {
    const previous = told[at - 1];
    if (previous === undefined) {
      return [[...findingSubject(link, scene.home), ' ', ...messageWords(link, scene)]];
    }
    const clause = following(previous, link, scene);
    if (!isLong || at < told.length - 1) return [clause];
    const left = links.length - told.length;
    return [[`it waits, through ${counted(left, 'more link')}, for the following`], clause];
  });
}

/** "Widget db is held by … Its controller, Deployment x, was deleted …", each with its full stop. */
export function asSentences(clauses: readonly Words[]): Words {
  return joinWords(
    clauses.map((clause) => [...capitalized(clause), endsItself(clause.at(-1)) ? '' : '.']),
    ' ',
  );
}

/** Reports whether a clause ends with a full stop of its own, as a quotation may. */
function endsItself(last: Words[number] = ''): boolean {
  if (typeof last === 'string') return last.endsWith('.');
  if ('strong' in last) return endsItself(last.strong.at(-1));
  return ('exact' in last ? last.exact : last.said).endsWith('.');
}

/** One sentence without a full stop, for outputs and annotations. */
export function asSentence(clauses: readonly Words[]): Words {
  return joinWords(clauses, '; ');
}

function following(previous: Finding, finding: Finding, scene: Scene): Words {
  if (continues(finding, previous)) return continuationWords(finding, scene);
  const subject = findingSubject(finding, scene.home);
  const message = messageWords(finding, scene, previous);
  if (finding.code.startsWith('owner-')) {
    // Of an owner that is not proven, the message says how likely it is: nothing here may claim more.
    const isProven = finding.certainty === undefined || finding.certainty === 'proven';
    return isProven
      ? [ownerRole(previous, finding), ', ', ...subject, ', ', ...message]
      : [...subject, ' ', ...message];
  }
  const which = [...subject, ', which ', ...message];
  switch (finding.code) {
    case 'pod-node-unavailable':
      return ['it runs on ', ...which];
    case 'admission-webhook-failing':
    case 'admission-denied':
      return ['the request is stopped by ', ...which];
    default:
      return ['it waits for ', ...which];
  }
}

function ownerRole(previous: Finding, owner: Finding): string {
  if (owner.subject.kind === 'CustomResourceDefinition') return 'its type';
  // "Its controller" beside a namespace would be read as the namespace controller.
  return previous.subject.kind === 'Namespace' ? "the finalizer's controller" : 'its controller';
}

/** Findings that blame nothing: nothing is wrong, or nothing is known. */
const BLAMELESS: readonly FindingCode[] = ['unexplained', 'content-deleting', 'pod-grace-period'];

/**
 * Says who can fix a cause; empty where that is unknown. A change is called innocent only where other
 * namespaces have waited for the same cause since before this run and before these namespaces were deleted:
 * a cause in the cluster can be this change's. `inComment`: for the author of a pull request.
 */
export function attributionOf(cause: Cause, run: RunResult, inComment = false): Words {
  const [{ namespace, finding }] = cause;
  const { diagnosis } = namespace;
  if (diagnosis === undefined || BLAMELESS.includes(finding.code)) return [];
  const isCluster = finding.scope === 'cluster';
  const others = isCluster ? othersHeld(cause, run) : [];
  const names = listExact(
    others.map(({ name }) => name),
    MAX_NAMESPACES_NAMED,
  );
  const wait = others.length === 1 ? 'namespace waits' : 'namespaces wait';
  const count = `${formatCount(others.length)} other ${wait} for the same cause: `;
  const also = others.length === 0 ? [] : [count, ...names, '.'];
  if (diagnosis.deadlocks.some((circle) => circle.includes(finding.id))) {
    const [can, does] = run.kind === 'forecast' ? ['prevent', 'would delete'] : ['fix', 'deletes'];
    const order = ` the teardown ${does} things in the wrong order.`;
    return joinWords([[strong(`You can ${can} this:`), order], also], ' ');
  }
  if (isCluster) {
    const these = namespacesOf(cause).length > 1 ? 'these namespaces' : 'this namespace';
    const isInnocent =
      others.some(({ since }) => isBefore(since, cause, run)) &&
      findingsOf(diagnosis, diagnosis.rootCauses).filter(({ scope }) => scope === 'cluster')
        .length === 1;
    const merge = inComment ? 'You can merge; ask' : 'Not caused by this change; ask';
    const answer = isInnocent ? `${merge} your platform team.` : 'Ask your platform team.';
    const where = `The cause lies in the cluster, outside of ${these}.`;
    return joinWords([[strong(answer)], [where], also], ' ');
  }
  // The finding says that the owner is unknown.
  if (finding.code === 'owner-unknown') return [];
  return [strong('You can fix this:'), ' the cause lies in this environment.'];
}

/** What the run was not asked about. */
function othersHeld(cause: Cause, run: RunResult): Diagnosis['alsoHeld'] {
  const held = namespacesOf(cause).flatMap(({ diagnosis }) => diagnosis?.alsoHeld ?? []);
  const others = new Map(held.map((one) => [one.name, one]));
  for (const { name } of run.namespaces) others.delete(name);
  return [...others.values()];
}

function isBefore(since: string, cause: Cause, run: RunResult): boolean {
  const start = Math.min(
    Date.parse(run.finishedAt) - run.elapsedMs,
    ...cause.flatMap(
      ({ namespace: { deletionTimestamp } }) => Date.parse(deletionTimestamp ?? '') || [],
    ),
  );
  const began = Date.parse(cause[0].finding.since ?? since);
  return Date.parse(since) < start && !(began >= start);
}

/** One sign per outcome, always beside words that say the same. */
export function markOf(outcome: Outcome, verdict: Verdict): string {
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

/**
 * The outcome as a predicate, for one namespace or `isMany`, and what a headline adds to it: "is stuck",
 * ": still there after 5m 02s".
 */
export function stateOf(
  namespace: NamespaceResult,
  run: RunResult,
  isMany = false,
): [string, string] {
  const took = formatDuration(namespace.elapsedMs);
  const age = terminatingFor(namespace, run);
  // A run that does not wait has no duration of interest: the age of the deletion counts.
  const still =
    run.timeoutMs > 0 || age === undefined
      ? `still there${run.timeoutMs > 0 ? ` after ${took}` : ''}`
      : `terminating for ${formatAge(age)}`;
  const [is, was, does] = isMany ? ['are', 'were', 'do'] : ['is', 'was', 'does'];
  const it = isMany ? 'them' : 'it';
  switch (namespace.outcome) {
    case 'clear':
      return ['could be deleted', `: nothing that was read would hold ${it}`];
    case 'would-hang':
      return [`would hang if ${isMany ? 'they were' : 'it was'} deleted now`, ''];
    case 'deleted':
      return [`${was} deleted after ${took}`, ''];
    case 'not-found':
      return [`${does} not exist`, ''];
    case 'recreated':
      return [`${was} deleted after ${took} and created again`, ''];
    case 'forced':
      return [`${was} deleted after ${took}, because the gate force-finalized ${it}`, ''];
    case 'progressing':
      return [`${is} still being deleted`, `: ${still}`];
    case 'not-terminating': {
      const why = namespace.refusal === undefined ? 'not requested' : 'refused';
      return [`${is} not terminating: the deletion was ${why}`, ''];
    }
    case 'inconclusive':
      return run.kind === 'forecast'
        ? [`may hang or not: too little could be read`, '']
        : [`${is} ${still}; the cause is unknown`, ''];
    case 'stuck':
      return [`${is} stuck`, `: ${still}`];
    case 'cancelled':
      return [`${was} still there when the run was cancelled, after ${took}`, ''];
  }
}

/** How long ago the deletion was asked for, in ms; undefined when that cannot be told. */
export function terminatingFor(namespace: NamespaceResult, run: RunResult): number | undefined {
  const ms = Date.parse(run.finishedAt) - Date.parse(namespace.deletionTimestamp ?? '');
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

/** "Left behind outside the namespace: 3 objects; 1 breaks other namespaces". */
export function leftBehindTitle(
  all: readonly LeftBehind[],
  { kind }: Pick<RunResult, 'kind'>,
): string {
  const breaking = all.filter(({ breaksOthers }) => breaksOthers).length;
  const worse =
    breaking === 0 ? '' : `; ${breaking} ${breaking === 1 ? 'breaks' : 'break'} other namespaces`;
  return `${kind === 'forecast' ? 'Would be left' : 'Left'} behind outside the namespace: ${counted(all.length, 'object')}${worse}`;
}

/** "Kubernetes 1.36.3". */
export function clusterWords(run: RunResult): Words {
  return ['Kubernetes ', exact(run.cluster.version.replace(/^v(?=\d)/, ''))];
}

const TIMESTAMP = /\b(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}:\d{2})(?:\.\d+)?Z/g;
const DAY_MS = 24 * 3_600_000;

/**
 * "2026-03-02T10:00:11Z" to "10:00:11 UTC (4m 51s ago)", seen from the end of the run: nobody can tell
 * from a bare timestamp whether it is long ago. report.json keeps the timestamps as they were read.
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

/** As `formatDuration`, and days where hours say little. */
export function formatAge(ms: number): string {
  return ms >= 2 * DAY_MS ? `${Math.floor(ms / DAY_MS)} days` : formatDuration(ms);
}

/** "2026-03-02 10:05 UTC", for the foot of a report. */
export function clockTime(iso: string): string {
  const at = Date.parse(iso);
  if (Number.isNaN(at)) return iso;
  return `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
