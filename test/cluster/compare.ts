import type { Finding } from '../../src/model/finding.ts';
import type { ReportNamespace } from '../../src/report/report-json.ts';
import type { Ref } from './client.ts';
import type { Expectation, Innocent, Link } from './scenario.ts';

/** Every way in which the report differs from what the scenario expects; empty when it agrees. */
export function differences(expected: Expectation, seen: ReportNamespace): string[] {
  const { anyOf, ...base } = expected;
  if (anyOf === undefined) return differencesFrom(base, seen);
  const [closest = []] = anyOf
    .map((answer) => differencesFrom({ ...base, ...answer }, seen))
    .sort((one, other) => one.length - other.length);
  if (closest.length === 0) return [];
  return [`none of ${anyOf.length} answers that would be right; from the closest:`, ...closest];
}

function differencesFrom(expected: Expectation, seen: ReportNamespace): string[] {
  return [
    ...sameText('outcome', expected.outcome, seen.outcome),
    ...findingDifferences(expected, seen),
    ...chainDifferences(expected, seen),
    ...sameText('deadlock', String(expected.deadlock ?? false), String(seen.deadlocks.length > 0)),
    ...queueDifferences(expected, seen),
    ...notInspectedDifferences(expected, seen),
    ...wordDifferences(expected, seen),
    ...(expected.never ?? []).flatMap((innocent) => blameOf(innocent, expected, seen)),
  ];
}

/** One finding per thing that is blamed, and nothing else is blamed. */
function findingDifferences(expected: Expectation, seen: ReportNamespace): string[] {
  const links = uniqueLinks(expected);
  const missing = links.filter((link) => !seen.findings.some((finding) => isIt(link, finding)));
  const allowed = [...links, ...(expected.contributing ?? [])];
  const other = seen.findings.filter(
    (finding) => expected.chains !== 'any' && !allowed.some((link) => isIt(link, finding)),
  );
  return [
    ...missing.map((link) => `missing finding: ${linkText(link)}`),
    ...other.map((finding) => `finding that nobody expects: ${findingText(finding)}`),
  ];
}

function chainDifferences(expected: Expectation, seen: ReportNamespace): string[] {
  const { chains = [], rootCauses } = expected;
  const seenRoots = pick(seen, seen.rootCauses);
  if (chains === 'any') {
    return [
      ...(rootCauses === undefined ? [] : sameSet('rootCauses', rootCauses, seenRoots)),
      ...scopeDifferences(expected, seenRoots),
    ];
  }
  const heads = chains.flatMap((chain) => chain.slice(0, 1));
  const roots = rootCauses ?? chains.flatMap((chain) => chain.slice(-1));
  const wanted = chains.flatMap((chain) =>
    chain.slice(1).map((to, index) => ({ from: chain[index] as Link, to })),
  );
  const byId = new Map(seen.findings.map((finding) => [finding.id, finding]));
  const waits = seen.findings.flatMap((from) =>
    from.waitsFor.map((id) => ({ from, to: byId.get(id) })),
  );
  const found = waits.flatMap(({ from, to }) => (to === undefined ? [] : [{ from, to }]));
  const absent = wanted.filter(
    ({ from, to }) => !found.some((edge) => isIt(from, edge.from) && isIt(to, edge.to)),
  );
  // A deadlock closes a circle: where its last edge points is for the gate to choose.
  const extra = expected.deadlock
    ? []
    : found.filter(
        (edge) => !wanted.some(({ from, to }) => isIt(from, edge.from) && isIt(to, edge.to)),
      );
  return [
    ...sameSet('blockers', heads, pick(seen, seen.blockers)),
    ...sameSet('rootCauses', roots, seenRoots),
    ...absent.map(({ from, to }) => `missing edge: ${nameOf(from)} → ${nameOf(to)}`),
    ...extra.map(({ from, to }) => `edge that nobody expects: ${nameOf(from)} → ${nameOf(to)}`),
    ...waits
      .filter(({ to }) => to === undefined)
      .map(({ from }) => `${from.id} waits for no finding`),
    ...scopeDifferences(expected, seenRoots),
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
    const said = [isOwner ? finding.message : '', ...commands].filter((text) =>
      names(innocent, expected, text),
    );
    return said.map((text) => `${findingText(finding)} names an innocent: ${text}`);
  });
}

/** As a word of its own; with its namespace where somebody who is expected has the same name. */
function names({ namespace, name }: Innocent, expected: Expectation, text: string): boolean {
  if (name === undefined) return false;
  const isShared = uniqueLinks(expected).some(
    ({ subject }) => subject !== 'any' && subject.name === name,
  );
  const words = isShared ? [`${namespace}/${name}`] : [name];
  const escaped = words.map((word) => word.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`(?<![\\w.-])(?:${escaped.join('|')})(?![\\w-])`).test(text);
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
    const { certainty = 'not given' } = finding;
    return [
      ...(link.certainty === undefined || link.certainty.some((one) => one === certainty)
        ? []
        : [`certainty of ${findingText(finding)} is ${certainty}, expected ${link.certainty}`]),
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

function uniqueLinks({ chains = [], rootCauses = [] }: Expectation): Link[] {
  const all = [...(chains === 'any' ? [] : chains.flat()), ...rootCauses];
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

/** Is it one of those that the scenario expects, in whichever of its answers? */
export function isExpected(finding: Finding, { anyOf = [], ...base }: Expectation): boolean {
  return [base, ...anyOf.map((answer) => ({ ...base, ...answer }))]
    .flatMap((expected) => [...uniqueLinks(expected), ...(expected.contributing ?? [])])
    .some((link) => isIt(link, finding));
}

function isIt(link: Link, finding: Finding): boolean {
  return (
    [link.code].flat().includes(finding.code) &&
    (link.subject === 'any' || refText(link.subject) === refText(finding.subject)) &&
    (link.finalizer === undefined || link.finalizer === finding.finalizer)
  );
}

type Named = Pick<Link, 'code' | 'subject'>;

function nameOf({ code, subject }: Named): string {
  return `${[code].flat().join(' or ')} ${subject === 'any' ? 'of anything' : refText(subject)}`;
}

function linkText(link: Link): string {
  return link.finalizer === undefined ? nameOf(link) : `${nameOf(link)} (${link.finalizer})`;
}

export function findingText(finding: Finding): string {
  return linkText({
    code: finding.code,
    subject: finding.subject,
    ...(finding.finalizer === undefined ? {} : { finalizer: finding.finalizer }),
  });
}

function refText({ apiVersion, kind, namespace, name }: Ref): string {
  return [apiVersion, kind, namespace, name].filter((part) => part !== undefined).join('/');
}

function sameText(what: string, wanted: string, found: string): string[] {
  return wanted === found ? [] : [`${what} is ${found}, expected ${wanted}`];
}
