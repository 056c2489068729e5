import { plainText, shorten } from './base/text.ts';
import { type Finding, findingsOf } from './model/finding.ts';
import type { NamespaceResult } from './model/result.ts';
import { rootCauseSentence, summaryText } from './report/plain-text.ts';
import type { View } from './report/view.ts';

/** Every output with its description; action.yml and the table of the README are written from it. */
export const OUTPUTS = {
  outcome: 'The worst outcome of all namespaces, or error when the gate could not work',
  outcomes: 'JSON object, namespace name to outcome',
  'elapsed-seconds': 'How long the gate took, in whole seconds',
  'root-cause':
    'One sentence that follows the chain to its end; empty when there is nothing to explain',
  'summary-text': 'One line for chat',
  blockers: 'JSON array of what the namespaces wait for, at most 50 KB',
  'blocking-finalizer': 'The first finalizer that blocks, or empty',
  'blocking-resource': 'The first object that blocks, as kind/name, or empty',
  'blocking-apiservice': 'The first APIService that blocks, or empty',
  'left-behind':
    'JSON array of what outside of the namespaces still points into one that went (in a forecast: would), at most 50 KB',
  'report-json': 'Path of report.json',
  'report-markdown': 'Path of report.md',
  'comment-url': 'Address of the pull request comment that was written, or empty',
  forced: 'Whether the gate force-finalized a namespace: true or false',
} as const;

type OutputName = keyof typeof OUTPUTS;

/** Outputs of a job are limited to 1 MB, all together; the whole list is in report.json. */
const MAX_LIST_BYTES = 50_000;
const MAX_OUTCOMES_BYTES = 100_000;
const MAX_NAME_CHARS = 1_000;
const MAX_MESSAGE_CHARS = 1_000;

/**
 * Every output of action.yml, always all of them, so that `steps.x.outputs.y` never depends on the path
 * taken. Without a result the gate could not work: the outcome is then `error`.
 */
export function outputsOf(
  view: View | undefined,
  files: { reportJsonPath: string; reportMarkdownPath: string },
  elapsedMs: number,
): Record<OutputName, string> {
  const result = view?.run;
  const blocking = blockersOf(result?.namespaces ?? []);
  const subjects = blocking.map(({ subject }) => subject);
  // One that somebody could look at: not a registration, a type, or the namespace itself.
  const object = subjects.find(
    ({ kind }) => !['APIService', 'APIResource', 'Namespace'].includes(kind),
  );
  return {
    outcome: result?.outcome ?? 'error',
    outcomes: outcomesJson(result?.namespaces ?? []),
    'elapsed-seconds': String(Math.round(elapsedMs / 1_000)),
    'root-cause': view === undefined ? '' : rootCauseSentence(view),
    'summary-text':
      view === undefined ? 'the teardown gate could not work; see the step log' : summaryText(view),
    blockers: boundedJson(blocking.map(blockerEntry), MAX_LIST_BYTES),
    'blocking-finalizer': one(blocking.find(({ finalizer }) => finalizer !== undefined)?.finalizer),
    'blocking-resource': one(object && `${object.kind}/${object.name}`),
    'blocking-apiservice': one(subjects.find(({ kind }) => kind === 'APIService')?.name),
    'left-behind': boundedJson((view?.leftBehind ?? []).map(leftBehindEntry), MAX_LIST_BYTES),
    'report-json': files.reportJsonPath,
    'report-markdown': files.reportMarkdownPath,
    // Set once it is written: a host that does not answer may take time.
    'comment-url': '',
    forced: String(result?.namespaces.some(({ outcome }) => outcome === 'forced') ?? false),
  };
}

interface Blocking extends Finding {
  home: string;
  isRootCause: boolean;
}

/** What the namespaces wait for themselves, in the order of the diagnosis. */
function blockersOf(namespaces: readonly NamespaceResult[]): Blocking[] {
  return namespaces.flatMap(({ name: home, diagnosis }) => {
    if (diagnosis === undefined) return [];
    const roots = new Set(diagnosis.rootCauses);
    const blockers = findingsOf(diagnosis, diagnosis.blockers);
    return blockers.map((one) => ({ ...one, home, isRootCause: roots.has(one.id) }));
  });
}

function blockerEntry({ home, code, subject, finalizer, message, count, isRootCause }: Blocking) {
  return {
    namespace: home,
    code,
    subject,
    ...(finalizer === undefined ? {} : { finalizer }),
    message: shorten(message, MAX_MESSAGE_CHARS),
    count: count ?? 1,
    rootCause: isRootCause,
  };
}

function leftBehindEntry({ namespace, entry }: View['leftBehind'][number]): object {
  const { apiVersion, kind, name, why } = entry;
  return { namespace, apiVersion, kind, name, why: shorten(why, MAX_MESSAGE_CHARS) };
}

/** Whole entries only, so that the text stays JSON however much has to be left out. */
function boundedJson(entries: readonly object[], maxBytes: number): string {
  const kept: string[] = [];
  let bytes = 2;
  for (const entry of entries) {
    const text = JSON.stringify(entry);
    bytes += Buffer.byteLength(text) + 1;
    if (bytes > maxBytes) break;
    kept.push(text);
  }
  return `[${kept.join(',')}]`;
}

function outcomesJson(namespaces: readonly NamespaceResult[]): string {
  const all = Object.fromEntries(namespaces.map(({ name, outcome }) => [name, outcome]));
  const text = JSON.stringify(all);
  if (Buffer.byteLength(text) <= MAX_OUTCOMES_BYTES) return text;
  const failed = namespaces.filter(({ verdict }) => verdict === 'fail').slice(0, 1_000);
  return JSON.stringify(Object.fromEntries(failed.map(({ name, outcome }) => [name, outcome])));
}

function one(text: string | undefined): string {
  return shorten(plainText(text ?? ''), MAX_NAME_CHARS);
}
