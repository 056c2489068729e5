import { logLine, printableJson, shorten } from './base/text.ts';
import { findingsOf } from './model/finding.ts';
import type { NamespaceResult } from './model/result.ts';
import { rootCauseSentence, summaryText } from './report/plain-text.ts';
import type { View } from './report/view.ts';

/** `npm run docs` generates action.yml and the table of the README from this table. */
export const OUTPUTS = {
  outcome: 'The worst outcome of all namespaces, or error when the gate could not work',
  outcomes: 'JSON object, namespace name to outcome',
  'elapsed-seconds': 'How long the gate took, in whole seconds',
  'root-cause': 'The root cause in one sentence; empty when there is nothing to explain',
  'summary-text': 'One line for chat',
  blockers: 'JSON array of the findings that block the namespaces, at most 50 KB',
  'blocking-finalizer': 'The first finalizer that blocks, or empty',
  'blocking-resource': 'The first object that blocks, as kind/name, or empty',
  'blocking-apiservice': 'The first APIService that blocks, or empty',
  'left-behind':
    'JSON array of objects outside that still point into a deleted namespace, at most 50 KB',
  'report-json': 'Path of report.json',
  'report-markdown': 'Path of report.md',
  'comment-url': 'Address of the pull request comment that was written, or empty',
  forced: 'Whether the gate force-finalized a namespace: true or false',
} as const;

type OutputName = keyof typeof OUTPUTS;

/** All outputs of a job together are limited to 1 MB; report.json has the whole list. */
const MAX_LIST_BYTES = 50_000;
const MAX_CHARS = 1_000;
const COULD_NOT_WORK = 'the teardown gate could not work; see the step log';

/** Always all of them, so that `steps.x.outputs.y` never depends on the path taken. */
export function outputsOf(
  view: View | undefined,
  files: Record<string, string>,
  elapsedMs: number,
): Record<OutputName, string> {
  const { namespaces = [], outcome = 'error' } = view?.run ?? {};
  const blockers = namespaces.flatMap(blockersOf);
  const subjects = blockers.map(({ subject }) => subject);
  // The first subject that a person can inspect: not a registration, a type, or the namespace itself.
  const object = subjects.find(
    ({ kind }) => !['APIService', 'APIResource', 'Namespace'].includes(kind),
  );
  const leftBehind = (view?.leftBehind ?? []).map(({ namespace, apiVersion, kind, name, why }) => {
    return { namespace, apiVersion, kind, name, why: shorten(why, MAX_CHARS) };
  });
  return {
    outcome,
    // At most 1,000 entries, so less than 100 KB.
    outcomes: printableJson(Object.fromEntries(namespaces.map((one) => [one.name, one.outcome]))),
    'elapsed-seconds': String(Math.round(elapsedMs / 1_000)),
    'root-cause': view ? logLine(rootCauseSentence(view)) : '',
    'summary-text': view ? logLine(summaryText(view)) : COULD_NOT_WORK,
    blockers: boundedJson(blockers),
    'blocking-finalizer': shortOutput(blockers.find((one) => one.finalizer)?.finalizer),
    'blocking-resource': shortOutput(object && `${object.kind}/${object.name}`),
    'blocking-apiservice': shortOutput(subjects.find(({ kind }) => kind === 'APIService')?.name),
    'left-behind': boundedJson(leftBehind),
    'report-json': files['report.json'] ?? '',
    'report-markdown': files['report.md'] ?? '',
    // This output is set after the comment was written, because the host may be slow.
    'comment-url': '',
    forced: String(namespaces.some((namespace) => namespace.outcome === 'forced')),
  };
}

function blockersOf({ name, diagnosis }: NamespaceResult) {
  if (diagnosis === undefined) return [];
  return findingsOf(diagnosis, diagnosis.blockers).map(
    ({ id, code, subject, finalizer, message, count = 1 }) => ({
      namespace: name,
      code,
      subject,
      ...(finalizer === undefined ? {} : { finalizer }),
      message: shorten(message, MAX_CHARS),
      count,
      rootCause: diagnosis.rootCauses.includes(id),
    }),
  );
}

/** Only whole entries, so that the JSON remains valid. */
function boundedJson(entries: readonly object[]): string {
  const kept: string[] = [];
  let bytes = 2;
  for (const entry of entries) {
    const text = printableJson(entry);
    bytes += Buffer.byteLength(text) + 1;
    if (bytes > MAX_LIST_BYTES) break;
    kept.push(text);
  }
  return `[${kept.join(',')}]`;
}

function shortOutput(text: string | undefined): string {
  return shorten(logLine(text ?? ''), MAX_CHARS);
}
