import { dump } from 'js-yaml';
import { redactDeep } from '../base/redact.ts';
import { formatCount, listWords } from '../base/text.ts';
import { formatDuration } from '../base/time.ts';
import {
  type Diagnosis,
  FINDING_CODES,
  type Finding,
  findingsOf,
  NAMESPACE_NODE,
  type NotInspected,
} from '../model/finding.ts';
import { OUTCOMES, VERDICTS } from '../model/outcome.ts';
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
  attributionOf,
  chainClauses,
  continuationWords,
  findingSubject,
  isAboutHome,
  linkWords,
  messageWords,
  outcomeSign,
  type Scene,
  stateOf,
  terminatingFor,
  titleWords,
  withAges,
} from './sentences.ts';
import { situationRoot } from './situations.ts';
import { asSentences, bold, counted, diagnosed, listExact, literal, type Words } from './words.ts';

/** At most so many causes are rendered; the rest are counted. report.json has all of them. */
const MAX_CAUSES = 200;
const MAX_ROWS = 500;
/** Levels of the wait-for graph: a nested list needs room. */
const MAX_DEPTH = 5;
/** Evidence of one finding. */
const MAX_LINES = 20;
const MAX_NAMED = 4;
const MAX_TITLES = 2;

/** An entry of a list; `depth`: its level in a tree. */
export interface Item {
  words: Words;
  depth?: number;
  /** Evidence of a finding that is no root cause: the first to go if there is no room. */
  isMinor?: boolean;
}

/** A failure of the gate itself, which has no result but has to be reported. Its texts hold no secrets. */
export interface Failure {
  message: string;
  hints: readonly string[];
  /** ISO 8601, by the clock of the gate. */
  at: string;
}

export type View = ReturnType<typeof viewOf>;
export type Ending = View | Failure;
export type NamespaceView = ReturnType<typeof namespaceView>;
/** Equal causes, rendered once for all namespaces. */
export type CauseView = ReturnType<typeof causeView>;

/** Words of this program in a result: a secret that happens to be "progressing" must not break the report. */
const FIXED_WORDS: ReadonlySet<string> = new Set([
  ...[...FINDING_CODES, ...OUTCOMES, ...VERDICTS],
  ...['now', 'or', 'look', 'next', 'proven', 'likely', 'unknown'],
  ...['none', 'starting', 'retrying', 'shrinking', 'grace-period'],
  ...['plan', 'objects', 'namespace', 'cluster', 'teardown', 'forecast'],
]);

/** The content of a report for all renderers. `redact` comes first: in an escaped or cut text no secret is recognized. */
export function viewOf(result: RunResult, redact?: (text: string) => string) {
  const run = redact ? redactDeep(result, redact, FIXED_WORDS) : result;
  // Failures first, then by outcome, the worst first, then as given.
  const rank = ({ verdict, outcome }: NamespaceResult): number =>
    VERDICTS.indexOf(verdict) * OUTCOMES.length + OUTCOMES.indexOf(outcome);
  const ordered = [...run.namespaces].sort((a, b) => rank(b) - rank(a));
  // In a run over several, the cause of a deleted namespace is only rendered if it was forced.
  const found = causesOf(ordered.length === 1 ? ordered : ordered.filter(isStillHeld));
  const all = [...found, ...groupRoots(ordered.flatMap(situationRoot))];
  const unread = [
    ...(run.leftOut ?? []),
    ...ordered.flatMap(({ diagnosis, leftBehindUnread = [] }) => [
      ...(diagnosis?.notInspected ?? []),
      ...leftBehindUnread,
    ]),
  ];
  const namespaces = ordered.map((one) => namespaceView(one, found, run));
  const [worst] = namespaces;
  return {
    run,
    mark: outcomeSign(run.outcome, run.verdict),
    headline: worst && namespaces.length === 1 ? worst.headline : headlineOf(run),
    whyTitle: run.kind === 'forecast' ? 'What would hold it' : 'Cause',
    /** The causes of most namespaces first; then situations without a cause. */
    causes: all.slice(0, MAX_CAUSES).map((cause) => causeView(cause, run)),
    causeCount: all.length,
    namespaces,
    /** "Secrets and Widgets: 403 Forbidden …", one per reason. */
    notInspected: notInspectedSentences(unread, MAX_NAMED),
    /** RBAC rules that would show it, as lines of YAML. */
    rules: rulesFor(unread),
    /** Objects that break others first. */
    leftBehind: ordered
      .flatMap(({ leftBehind = [] }) => leftBehind)
      .sort((a, b) => Number(b.breaksOthers) - Number(a.breaksOthers)),
    inspectedTypes: Math.max(0, ...ordered.map(({ diagnosis }) => diagnosis?.inspectedTypes ?? 0)),
  };
}

/** "3 of 5 namespaces: stuck (5m 02s)". */
function headlineOf({ elapsedMs, namespaces, outcome, timeoutMs }: RunResult): Words {
  if (namespaces.length === 0) {
    return outcome === 'cancelled'
      ? 'The run was cancelled before any namespace was read'
      : 'No namespace matched the inputs';
  }
  const failed = namespaces.filter(({ verdict }) => verdict === 'fail');
  const told = failed.length > 0 ? failed : namespaces;
  const all = counted(namespaces.length, 'namespace');
  const which = told.length === namespaces.length ? all : `${formatCount(told.length)} of ${all}`;
  const mixed = failed.length > 0 ? 'not passed' : 'passed';
  const state = told.every((one) => one.outcome === outcome) ? outcome : mixed;
  return `${which}: ${state}${timeoutMs > 0 ? ` (${formatDuration(elapsedMs)})` : ''}`;
}

function causeView(cause: Cause, run: RunResult) {
  const [first] = cause;
  const { namespace } = first;
  const names = namespacesOf(cause).map(({ name }) => name);
  const isGone = !isStillHeld(namespace);
  const scene = sceneOf(namespace, run);
  const clauses = chainClauses(first, scene);
  return {
    title: titleWords(first.finding, namespace.name),
    /** The cause as an entry of a list: "5 namespaces, for up to 2 days: for example in preview-1, …". */
    listed: run.namespaces.length === 1 ? asSentences(clauses) : listedWords(cause, clauses, run),
    /** Clauses that follow the chain to its end, for the first namespace. */
    clauses,
    /** Other objects that wait here, as a sentence. */
    also: names.length > 1 ? '' : alsoHeldWords(cause),
    attribution: isGone ? '' : attributionOf(cause),
    /** Groups in their order; none is empty. A cause that forcing has ended needs no remedy. */
    remedies: isGone && namespace.diagnosis !== undefined ? [] : remediesOf(cause, run),
    namespaces: names,
  };
}

function sceneOf({ name: home, outcome }: NamespaceResult, { finishedAt }: RunResult): Scene {
  return { home, now: finishedAt, isOver: outcome === 'forced' };
}

function listedWords(cause: Cause, clauses: Words[], run: RunResult): Words {
  const [{ namespace, links }] = cause;
  const namespaces = namespacesOf(cause);
  const isMany = namespaces.length > 1;
  const ages = namespaces.flatMap((one) => terminatingFor(one, run) ?? []);
  const who = isMany ? counted(namespaces.length, 'namespace') : literal(namespace.name);
  const age =
    ages.length > 0 ? `, for ${isMany ? 'up to ' : ''}${formatDuration(Math.max(...ages))}` : '';
  const isLocal = links[0]?.subject.namespace === namespace.name;
  const example = isMany && isLocal ? `for example in ${literal(namespace.name)}, ` : '';
  return `${bold(`${who}${age}:`)} ${example}${clauses.join('; ')}.`;
}

function alsoHeldWords(cause: Cause): Words {
  const [{ namespace, links, circle }] = cause;
  const { kind, name } = links[0]?.subject ?? {};
  const subjectOf = (one: Finding): Words =>
    one.finalizer !== undefined && one.subject.name === name && one.subject.kind === kind
      ? `finalizer ${literal(one.finalizer)}`
      : findingSubject(one, namespace.name);
  const also = new Set(cause.flatMap(({ blockers }) => blockers).map(subjectOf));
  for (const link of [...links.slice(0, 1), ...circle]) also.delete(subjectOf(link));
  return also.size === 0 ? '' : `Also waiting for this: ${listWords([...also], MAX_NAMED)}.`;
}

function evidenceOf(finding: Finding, waits: Finding | undefined, { now }: Scene): Words[] {
  const { evidence, examples = [] } = finding;
  const subjects = [finding, ...(waits ? [waits] : [])].map(({ subject }) => subject);
  const lines = evidence.map((one) => diagnosed(withAges(one, now), [], subjects));
  if (examples.length > 1) lines.push(`among them ${listExact(examples.map(({ name }) => name))}`);
  return lines.slice(0, MAX_LINES);
}

function namespaceView(result: NamespaceResult, causes: readonly Cause[], run: RunResult) {
  const { diagnosis, name: home } = result;
  const scene = sceneOf(result, run);
  const [state, detail = ''] = stateOf(result, run);
  const roots = causes.flatMap((one) => one.find(({ namespace }) => namespace === result) ?? []);
  const [first] = roots;
  const notInspected = diagnosis?.notInspected ?? [];
  const [unread] = notInspectedSentences(notInspected, MAX_NAMED);
  const more = roots.length > 1 ? ` (and ${counted(roots.length - 1, 'more cause')})` : '';
  const notRead = unread === undefined ? '' : `could not read ${unread}`;
  const why = result.refusal === undefined ? notRead : literal(result.refusal);
  return {
    ...result,
    mark: outcomeSign(result.outcome, result.verdict),
    state,
    headline: `Namespace ${literal(home)} ${state}${detail}`,
    /** The cause as one sentence without a full stop; empty if it is unknown. */
    sentence: first === undefined ? why : `${chainClauses(first, scene).join('; ')}${more}`,
    root: diagnosis && findingsOf(diagnosis, diagnosis.rootCauses)[0],
    titles: listWords(
      roots.map(({ finding }) => titleWords(finding, home)),
      MAX_TITLES,
    ),
    /** The progress as a clause; empty if there is none or a cause describes it. */
    note: diagnosis !== undefined && isStillHeld(result) ? movementClause(diagnosis, run) : '',
    rows: diagnosis === undefined ? [] : rowsOf(diagnosis, scene),
    unread: notInspectedSentences(notInspected),
    steps: stepsOf(result),
  };
}

/** Unless a finding describes the progress. */
function movementClause({ movement, findings }: Diagnosis, run: RunResult): Words {
  if (findings.some(({ code }) => /^(content-deleting|pod-grace-period)$/.test(code))) return '';
  switch (movement.kind) {
    case 'shrinking':
      return `its content is still being deleted: ${formatCount(movement.before)} objects, then ${formatCount(movement.now)}`;
    case 'grace-period':
      return `a pod may take until ${diagnosed(withAges(movement.until, run.finishedAt))} to end`;
    case 'starting':
      return 'Kubernetes starts 5 s after the request, and has not started yet';
    case 'retrying':
      return 'the error that Kubernetes reported is fixed; it tries again within a minute';
    default:
      return '';
  }
}

/** A walk from the namespace on that unfolds every finding once, with its evidence, and the link that closes a circle. */
function rowsOf(diagnosis: Diagnosis, scene: Scene): Item[] {
  const byId = new Map(diagnosis.findings.map((finding) => [finding.id, finding]));
  const next = Map.groupBy(diagnosis.edges, ({ from }) => from);
  const rows: Item[] = [{ words: `Namespace ${literal(scene.home)}` }];
  const seen = new Set([NAMESPACE_NODE]);
  const wordsOf = (to: string, waits: Finding | undefined): Words => {
    const finding = byId.get(to);
    if (finding === undefined) return 'this waits for the namespace in turn';
    const label = linkWords(finding, scene.home, waits);
    if (seen.has(to)) return `${label} (see above)`;
    const root = diagnosis.rootCauses.includes(to) ? `${bold('Root cause:')} ` : '';
    const isSelf = needsNoSubject(finding, waits) || isAboutHome(finding, scene.home);
    if (isSelf) return `${root}${continuationWords(finding, scene)}`;
    return `${root}${label} ${messageWords(finding, scene, waits)}`;
  };
  const walk = (from: string, depth: number): void => {
    for (const { to } of next.get(from) ?? []) {
      const finding = byId.get(to);
      if (rows.length >= MAX_ROWS || (to !== NAMESPACE_NODE && !finding)) continue;
      const waits = byId.get(from);
      rows.push({ depth, words: wordsOf(to, waits) });
      if (finding === undefined || seen.has(to)) continue;
      seen.add(to);
      const below = Math.min(depth + 1, MAX_DEPTH);
      const lines = evidenceOf(finding, waits, scene);
      const isMinor = !diagnosis.rootCauses.includes(to);
      rows.push(...lines.map((words) => ({ depth: below, words, isMinor })));
      walk(to, below);
    }
  };
  walk(NAMESPACE_NODE, 1);
  // A cause repeats what its object shows, such as the writer of the finalizer.
  const ofCauses = new Set(rows.flatMap(({ isMinor, words }) => (isMinor === false ? words : [])));
  return rows.length > 1 ? rows.filter((one) => !one.isMinor || !ofCauses.has(one.words)) : [];
}

/** One sentence for missing permissions, and one per other reason. */
function notInspectedSentences(entries: readonly NotInspected[], most?: number): Words[] {
  const groups = groupsBy(entries, ({ reason, grant }) => (grant ? '' : `other ${reason}`));
  return groups.map((group) => {
    const [{ reason, grant }] = group;
    // Resource types have the names that kubectl takes; other entries are phrases.
    const names = group.map((one) => (one.grant ? literal(one.what) : diagnosed(one.what)));
    const list = listWords([...new Set(names)], most);
    return grant === undefined
      ? `${list}: ${diagnosed(reason)}`
      : `${list}: permissions are missing, for example ${literal(reason)}`;
  });
}

/** A line of YAML for each group and verbs. */
function rulesFor(entries: readonly NotInspected[]): string[] {
  const grants = entries.flatMap(({ grant }) => grant ?? []);
  const types = groupsBy(grants, ({ apiGroup, resource }) => `${apiGroup}/${resource}`).map(
    (group) => ({ ...group[0], verbs: [...new Set(group.map(({ verb }) => verb))] }),
  );
  const alike = groupsBy(types, ({ apiGroup, verbs }) => [apiGroup, ...verbs].join('\n'));
  return alike.flatMap((group) => {
    const [{ apiGroup, verbs }] = group;
    const rule = { apiGroups: [apiGroup], resources: group.map((one) => one.resource), verbs };
    return dump([rule], { flowLevel: 1, lineWidth: -1 }).trimEnd().split('\n');
  });
}
