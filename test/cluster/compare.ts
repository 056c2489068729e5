import { escapeForRegExp } from '../../src/base/text.ts';
import type { Finding } from '../../src/model/finding.ts';
import type { ReportNamespace } from '../../src/report/report-json.ts';
import type { Ref } from './client.ts';
import type { Expectation, Innocent, Link } from './scenario.ts';

/** Every way in which the report differs from what the scenario expects; empty when it agrees. */
export function differences(expected: Expectation, seen: ReportNamespace): string[] {
  const { anyOf = [{}], ...base } = expected;
  const [closest = []] = anyOf
    .map((answer) => differencesFrom({ ...base, ...answer }, seen))
    .sort((one, other) => one.length - other.length);
  if (closest.length === 0 || anyOf.length === 1) return closest;
  return [`none of ${anyOf.length} answers that would be right; from the closest:`, ...closest];
}

function differencesFrom(expected: Expectation, seen: ReportNamespace): string[] {
  const isDeadlock = String(expected.deadlock ?? false);
  return [
    ...sameText('outcome', expected.outcome, seen.outcome),
    ...(expected.chains === 'any' ? [] : chainDifferences(expected, seen)),
    ...sameText('deadlock', isDeadlock, String(seen.deadlocks.length > 0)),
    ...queueDifferences(expected, seen),
    ...notInspectedDifferences(expected, seen),
    ...linksOf(expected).flatMap((link) => wordDifferences(link, seen)),
    ...(expected.never ?? []).flatMap((innocent) => blameOf(innocent, expected, seen)),
  ];
}

/** One finding per thing that is blamed, and nothing else is blamed: every finding, every edge, both ends. */
function chainDifferences(expected: Expectation, seen: ReportNamespace): string[] {
  const { chains = [], contributing = [] } = expected as {
    chains?: readonly Link[][];
  } & Expectation;
  const links = linksOf(expected);
  const allowed = [...links, ...contributing];
  const pick = (ids: readonly string[]) => seen.findings.filter(({ id }) => ids.includes(id));
  const wanted = chains.flatMap((chain) =>
    chain.slice(1).map((to, index) => ({ from: chain[index] as Link, to })),
  );
  const found = seen.findings.flatMap((from) => pick(from.waitsFor).map((to) => ({ from, to })));
  type Wanted = (typeof wanted)[number];
  type Found = (typeof found)[number];
  const isEdge = (one: Wanted, edge: Found): boolean =>
    isIt(one.from, edge.from) && isIt(one.to, edge.to);
  // A deadlock closes a circle: where its last edge points is for the gate to choose.
  const extra = expected.deadlock
    ? []
    : found.filter((edge) => !wanted.some((one) => isEdge(one, edge)));
  return [
    ...links
      .filter((link) => !seen.findings.some((finding) => isIt(link, finding)))
      .map((link) => `missing finding: ${linkText(link)}`),
    ...seen.findings
      .filter((finding) => !allowed.some((link) => isIt(link, finding)))
      .map((finding) => `finding that nobody expects: ${findingText(finding)}`),
    ...sameSet(
      'blockers',
      chains.flatMap((chain) => chain.slice(0, 1)),
      pick(seen.blockers),
    ),
    ...sameSet(
      'rootCauses',
      chains.flatMap((chain) => chain.slice(-1)),
      pick(seen.rootCauses),
    ),
    ...wanted
      .filter((one) => !found.some((edge) => isEdge(one, edge)))
      .map(({ from, to }) => `missing edge: ${linkText(from)} → ${linkText(to)}`),
    ...extra.map(
      ({ from, to }) => `edge that nobody expects: ${findingText(from)} → ${findingText(to)}`,
    ),
  ];
}

/** Where the innocent is blamed, named as an owner, or in a command that a person would run. */
function blameOf(innocent: Innocent, expected: Expectation, seen: ReportNamespace): string[] {
  const { code, ...subject } = innocent;
  const blamed = new Set([...seen.rootCauses, ...seen.blockers]);
  return seen.findings.flatMap((finding) => {
    if (code !== undefined && code !== finding.code) return [];
    const isOwner = finding.code.startsWith('owner-') && finding.code !== 'owner-unknown';
    const isSubject = Object.entries(subject).every(
      ([key, value]) => finding.subject[key as keyof Ref] === value,
    );
    if (isSubject && (code !== undefined || isOwner || blamed.has(finding.id))) {
      return [`${findingText(finding)} blames an innocent`];
    }
    if (code !== undefined || finding.code === 'owner-unknown') return [];
    const commands = finding.remedies.map(({ command }) => command ?? '');
    return [isOwner ? finding.message : '', ...commands]
      .filter((text) => names(innocent, expected, text))
      .map((text) => `${findingText(finding)} names an innocent: ${text}`);
  });
}

/** As a word of its own; with its namespace where somebody who is expected has the same name. */
function names({ namespace, name }: Innocent, expected: Expectation, text: string): boolean {
  if (name === undefined) return false;
  const isShared = linksOf(expected).some(
    ({ subject }) => subject !== 'any' && subject.name === name,
  );
  const word = escapeForRegExp(isShared ? `${namespace}/${name}` : name);
  return new RegExp(`(?<![\\w.-])${word}(?![\\w-])`).test(text);
}

function queueDifferences({ queued }: Expectation, seen: ReportNamespace): string[] {
  if (!queued) return [];
  const { kinds, exactly } = queued;
  const found = seen.queued.map(({ kind }) => kind);
  const extra = exactly ? found.filter((kind) => !kinds.includes(kind)) : [];
  return [
    ...kinds.filter((kind) => !found.includes(kind)).map((kind) => `${kind} is not in queued`),
    ...extra.map((kind) => `${kind} is in queued`),
  ];
}

function notInspectedDifferences(expected: Expectation, seen: ReportNamespace): string[] {
  const wanted = expected.notInspected ?? [];
  const entries = seen.notInspected.map(({ what, reason }) => `${what}: ${reason}`);
  const covers = (word: string | RegExp, entry: string): boolean =>
    typeof word === 'string' ? entry.includes(word) : word.test(entry);
  return [
    ...wanted
      .filter((word) => !entries.some((entry) => covers(word, entry)))
      .map((word) => `nothing in notInspected about ${word}`),
    ...entries
      .filter((entry) => !wanted.some((word) => covers(word, entry)))
      .map((entry) => `notInspected that nobody expects: ${entry}`),
  ];
}

/** What a finding must say beyond its code and subject. */
function wordDifferences(link: Link, seen: ReportNamespace): string[] {
  const finding = seen.findings.find((candidate) => isIt(link, candidate));
  if (!finding) return [];
  const said = [finding.message, ...finding.evidence].join('\n');
  const advised = finding.remedies.map(({ text, command }) => `${text}\n${command}`).join('\n');
  const { certainty = 'not given' } = finding;
  const unsaid = (patterns: readonly RegExp[] = [], text: string) =>
    patterns.filter((pattern) => !pattern.test(text));
  return [
    ...(link.certainty === undefined || link.certainty.some((one) => one === certainty)
      ? []
      : [`certainty of ${findingText(finding)} is ${certainty}, expected ${link.certainty}`]),
    ...unsaid(link.says, said).map((words) => `${findingText(finding)} does not say ${words}`),
    ...unsaid(link.advises, advised).map(
      (words) => `remedies of ${findingText(finding)} do not say ${words}`,
    ),
  ];
}

/** Each once. */
function linksOf({ chains = [] }: Expectation): Link[] {
  const all = chains === 'any' ? [] : chains.flat();
  return [...new Map(all.map((link) => [linkText(link), link])).values()];
}

function sameSet(what: string, wanted: readonly Link[], found: readonly Finding[]): string[] {
  return [
    ...wanted
      .filter((link) => !found.some((finding) => isIt(link, finding)))
      .map((link) => `${what} lacks ${linkText(link)}`),
    ...found
      .filter((finding) => !wanted.some((link) => isIt(link, finding)))
      .map((finding) => `${what} has ${findingText(finding)}`),
  ];
}

/** Is it one of those that the scenario expects, in whichever of its answers? */
export function isExpected(finding: Finding, { anyOf = [], ...base }: Expectation): boolean {
  return [base, ...anyOf.map((answer) => ({ ...base, ...answer }))]
    .flatMap((expected) => [...linksOf(expected), ...(expected.contributing ?? [])])
    .some((link) => isIt(link, finding));
}

function isIt(link: Link, finding: Finding): boolean {
  return (
    [link.code].flat().includes(finding.code) &&
    (link.subject === 'any' || refText(link.subject) === refText(finding.subject)) &&
    (link.finalizer === undefined || link.finalizer === finding.finalizer)
  );
}

function linkText({ code, subject, finalizer }: Pick<Link, 'code' | 'subject' | 'finalizer'>) {
  const of = subject === 'any' ? 'of anything' : refText(subject);
  const by = finalizer === undefined ? '' : ` (${finalizer})`;
  return `${[code].flat().join(' or ')} ${of}${by}`;
}

export function findingText({ code, subject, finalizer }: Finding): string {
  return linkText({ code, subject, ...(finalizer === undefined ? {} : { finalizer }) });
}

function refText({ apiVersion, kind, namespace, name }: Ref): string {
  return [apiVersion, kind, namespace, name].filter((part) => part !== undefined).join('/');
}

function sameText(what: string, wanted: string, found: string): string[] {
  return wanted === found ? [] : [`${what} is ${found}, expected ${wanted}`];
}
