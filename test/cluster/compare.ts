import type { Finding } from '../../src/model/finding.ts';
import type { ReportNamespace } from '../../src/model/result.ts';
import type { Ref } from './client.ts';
import type { Expectation, Link } from './scenario.ts';

/** Every way in which the report differs from what the scenario expects; empty when it agrees. */
export function differences(expected: Expectation, seen: ReportNamespace): string[] {
  return [
    ...sameText('outcome', expected.outcome, seen.outcome),
    ...findingDifferences(expected, seen),
    ...chainDifferences(expected, seen),
    ...sameText('deadlock', String(expected.deadlock ?? false), String(seen.deadlocks.length > 0)),
    ...queueDifferences(expected, seen),
    ...notInspectedDifferences(expected, seen),
    ...wordDifferences(expected, seen),
  ];
}

/** One finding per thing that is blamed, and nothing else is blamed. */
function findingDifferences(expected: Expectation, seen: ReportNamespace): string[] {
  const links = uniqueLinks(expected);
  const allowed = [...links, ...(expected.contributing ?? [])];
  const missing = links.filter((link) => !seen.findings.some((finding) => isIt(link, finding)));
  const other = seen.findings.filter((finding) => !allowed.some((link) => isIt(link, finding)));
  return [
    ...missing.map((link) => `missing finding: ${linkText(link)}`),
    ...other.map((finding) => `finding that nobody expects: ${findingText(finding)}`),
  ];
}

function chainDifferences(expected: Expectation, seen: ReportNamespace): string[] {
  const chains = expected.chains ?? [];
  const heads = chains.flatMap((chain) => chain.slice(0, 1));
  const roots = expected.rootCauses ?? chains.flatMap((chain) => chain.slice(-1));
  const wanted = new Set(
    chains.flatMap((chain) => chain.slice(1).map((link, index) => edge(chain[index], link))),
  );
  const byId = new Map(seen.findings.map((finding) => [finding.id, finding]));
  const found = seen.findings.flatMap((from) =>
    from.waitsFor.map((id) => [from, byId.get(id)] as const),
  );
  const absent = [...wanted].filter(
    (text) => !found.some(([from, to]) => to !== undefined && edge(from, to) === text),
  );
  // A deadlock closes a circle: where its last edge points is for the gate to choose.
  const extra = found.filter(
    ([from, to]) => to !== undefined && !wanted.has(edge(from, to)) && !expected.deadlock,
  );
  return [
    ...sameSet('blockers', heads, pick(seen, seen.blockers)),
    ...sameSet('rootCauses', roots, pick(seen, seen.rootCauses)),
    ...absent.map((text) => `missing edge: ${text}`),
    ...extra.map(([from, to]) => `edge that nobody expects: ${edge(from, to)}`),
    ...found
      .filter(([, to]) => to === undefined)
      .map(([from]) => `${from.id} waits for no finding`),
    ...scopeDifferences(expected, pick(seen, seen.rootCauses)),
  ];
}

function scopeDifferences(expected: Expectation, roots: Finding[]): string[] {
  const { scope } = expected;
  return roots
    .filter((root) => scope !== undefined && root.scope !== scope)
    .map((root) => `scope of ${findingText(root)} is ${root.scope}, expected ${scope}`);
}

function queueDifferences(expected: Expectation, seen: ReportNamespace): string[] {
  if (!expected.queued) return [];
  const { kinds, exactly } = expected.queued;
  const found = seen.queued.map(({ kind }) => kind);
  return [
    ...kinds.filter((kind) => !found.includes(kind)).map((kind) => `${kind} is not in queued`),
    ...(exactly ? found.filter((kind) => !kinds.includes(kind)) : []).map(
      (kind) => `${kind} is in queued`,
    ),
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
function wordDifferences(expected: Expectation, seen: ReportNamespace): string[] {
  return uniqueLinks(expected).flatMap((link) => {
    const finding = seen.findings.find((candidate) => isIt(link, candidate));
    if (!finding) return [];
    const said = [finding.message, ...finding.evidence].join('\n');
    const advised = finding.remedies.map(({ text, command }) => `${text}\n${command}`).join('\n');
    const count = finding.count ?? 1;
    return [
      ...(link.count === undefined || link.count === count
        ? []
        : [`count of ${findingText(finding)} is ${count}, expected ${link.count}`]),
      ...unsaid(link.says, said).map((words) => `${findingText(finding)} does not say ${words}`),
      ...unsaid(link.advises, advised).map(
        (words) => `remedies of ${findingText(finding)} do not say ${words}`,
      ),
    ];
  });
}

function unsaid(patterns: readonly RegExp[] = [], text: string): string[] {
  return patterns.filter((pattern) => !pattern.test(text)).map(String);
}

function uniqueLinks(expected: Expectation): Link[] {
  const all = [...(expected.chains ?? []).flat(), ...(expected.rootCauses ?? [])];
  return all.filter(
    (link, index) => all.findIndex((other) => linkText(other) === linkText(link)) === index,
  );
}

function pick(seen: ReportNamespace, ids: readonly string[]): Finding[] {
  return seen.findings.filter(({ id }) => ids.includes(id));
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

function isIt(link: Link, finding: Finding): boolean {
  return (
    link.code === finding.code &&
    refText(link.subject) === refText(finding.subject) &&
    (link.finalizer === undefined || link.finalizer === finding.finalizer)
  );
}

function edge(from: Named | undefined, to: Named | undefined): string {
  return `${nameOf(from)} → ${nameOf(to)}`;
}

type Named = Pick<Link, 'code' | 'subject'>;

function nameOf(named: Named | undefined): string {
  return named ? `${named.code} ${refText(named.subject)}` : '?';
}

function linkText(link: Link): string {
  return link.finalizer === undefined ? nameOf(link) : `${nameOf(link)} (${link.finalizer})`;
}

export function findingText(finding: Finding): string {
  return linkText(finding);
}

function refText({ apiVersion, kind, namespace, name }: Ref): string {
  return [apiVersion, kind, namespace, name].filter((part) => part !== undefined).join('/');
}

function sameText(what: string, wanted: string, found: string): string[] {
  return wanted === found ? [] : [`${what} is ${found}, expected ${wanted}`];
}
