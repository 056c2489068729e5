import { escapeForRegExp } from '../../src/base/text.ts';
import type { Finding } from '../../src/model/finding.ts';
import type { ReportNamespace } from '../../src/report/report-json.ts';
import type { Root, Truth } from './product.ts';

/** Every way in which the report is not the truth; empty when it is. */
export function untruths(
  truth: Truth,
  seen: ReportNamespace,
  /** Workloads that have nothing to do with it. */
  innocents: readonly string[],
): string[] {
  const { outcome, roots = [], deadlock = false } = truth;
  const isTrue = seen.outcome === outcome || (outcome === 'deleted' && isGone(seen));
  const found = seen.findings.filter(({ id }) => seen.rootCauses.includes(id));
  return [
    ...(isTrue ? [] : [`outcome is ${seen.outcome}, true is ${outcome}`]),
    ...(deadlock === 'either' || seen.deadlocks.length > 0 === deadlock
      ? []
      : [`deadlock is ${!deadlock}`]),
    ...roots
      .filter((root) => !found.some((finding) => isRoot(root, finding)))
      .map((root) => `no root cause is ${rootText(root)}`),
    ...found
      .filter((finding) => !roots.some((root) => isRoot(root, finding)))
      .map((finding) => `untrue root cause: ${findingText(finding)}`),
    ...seen.findings.flatMap((finding) => blamedIn(finding, innocents)),
    ...seen.notInspected.map(({ what, reason }) => `not inspected: ${what}: ${reason}`),
  ];
}

/** An environment with nothing that holds it may be gone before the gate looks. */
export function isGone({ outcome }: ReportNamespace): boolean {
  return outcome === 'deleted' || outcome === 'not-found';
}

/** In one line, for people. */
export function findingText({ code, subject, certainty, finalizer, message }: Finding): string {
  const name = [subject.kind, subject.namespace, subject.name].filter(Boolean).join('/');
  const sure = certainty === undefined ? '' : ` [${certainty}]`;
  return `${code} ${name}${finalizer === undefined ? '' : ` (${finalizer})`}${sure}: ${message}`;
}

function isRoot({ code, subject = {}, says = [] }: Root, finding: Finding): boolean {
  const said = [finding.message, ...finding.evidence].join('\n');
  return (
    code.includes(finding.code) &&
    Object.entries(subject).every(
      ([key, value]) => finding.subject[key as keyof Finding['subject']] === value,
    ) &&
    says.every((words) => words.test(said))
  );
}

function rootText({ code, subject = {}, says = [] }: Root): string {
  return [code.join(' or '), Object.values(subject).join('/'), ...says].join(' ');
}

/**
 * Named as the subject, in the sentence, or in what people are told to do. A sentence about an unknown owner lists
 * every controller that could remove the finalizer, and says that nothing shows that it should; so does the search for it.
 */
function blamedIn(finding: Finding, innocents: readonly string[]): string[] {
  const isUnknown = finding.code === 'owner-unknown';
  const told = finding.remedies.filter(
    ({ role, text }) => !(isUnknown && (role === 'look' || text.startsWith('Find out whether'))),
  );
  const texts = [
    finding.subject.name,
    ...(isUnknown ? [] : [finding.message]),
    ...told.flatMap(({ text, command = '' }) => [text, command]),
  ];
  return innocents
    .filter((name) =>
      texts.some((text) => new RegExp(`(?<![\\w-])${escapeForRegExp(name)}(?![\\w-])`).test(text)),
    )
    .map((name) => `${name} has nothing to do with it: ${findingText(finding)}`);
}
