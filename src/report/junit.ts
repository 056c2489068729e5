import { plainText, shorten } from '../base/text.ts';
import { causeText } from './plain-text.ts';
import type { View } from './view.ts';
import { joinWords, toPlain } from './words.ts';

/** Characters of explanation in the whole file, and in one test case: CI servers refuse files of many megabytes. */
const MAX_TEXT_CHARS = 4_000_000;
const MAX_CASE_CHARS = 10_000;

/**
 * Renders report.xml, the JUnit file that GitLab, Jenkins and Azure Pipelines show: one suite for the run, one test case
 * for each namespace. An outcome that does not fail the run passes here as well; `inconclusive` is skipped.
 */
export function renderJunit({ run, namespaces, causes, headline }: View): string {
  const maxChars = Math.min(MAX_CASE_CHARS, Math.ceil(MAX_TEXT_CHARS / (namespaces.length || 1)));
  const counts = { failure: 0, skipped: 0, 'system-out': 0 };
  const testCase = (
    name: string,
    ms: number,
    { verdict, outcome: status }: { verdict: string; outcome: string },
    text: string,
    type = status,
  ): string => {
    const isSkipped = status === 'inconclusive' || status === 'not inspected';
    const element = isSkipped ? 'skipped' : verdict === 'fail' ? 'failure' : 'system-out';
    counts[element]++;
    const message = { type, message: shorten(text.split('\n', 1).join(), 1_000) };
    const start = { classname: 'namespace-teardown-gate', name, time: seconds(ms), status };
    const content = `<${element}${element === 'failure' ? attributes(message) : ''}>${xmlText(text)}</${element}>`;
    const hasContent = element !== 'system-out' || text.includes('\n');
    return `<testcase${attributes(start)}>${hasContent ? content : ''}</testcase>`;
  };
  const cases = namespaces.map((namespace) => {
    const { name, sentence, notes, leftBehind = [] } = namespace;
    const own = causes.filter((cause) => cause.namespaces.includes(name));
    const text = [
      ...[joinWords([namespace.headline, sentence], ': '), ...notes].map(toPlain),
      ...leftBehind.map((one) => `Left behind: ${one.kind} ${one.name}: ${one.why}`),
      ...own.flatMap((cause) => ['', ...causeText(cause)]),
    ].join('\n');
    return testCase(
      name,
      namespace.elapsedMs,
      namespace,
      shorten(text, maxChars),
      namespace.root?.code,
    );
  });
  // A server that finds no test case in a file reports an error of its own.
  if (cases.length === 0)
    cases.push(testCase('namespaces of the run', run.elapsedMs, run, toPlain(headline)));
  for (const { what, reason } of run.leftOut ?? [])
    cases.push(testCase(what, 0, { verdict: 'pass', outcome: 'not inspected' }, reason));
  const totals = {
    name: run.kind === 'forecast' ? 'Namespace teardown forecast' : 'Namespace teardown',
    ...{ tests: String(cases.length), failures: String(counts.failure), errors: '0' },
    time: seconds(run.elapsedMs),
  };
  const suite = { skipped: String(counts.skipped), timestamp: run.finishedAt.slice(0, 19) };
  const head = `<testsuites${attributes(totals)}>\n<testsuite${attributes({ ...totals, ...suite })}>`;
  const body = [head, ...cases, '</testsuite>\n</testsuites>\n'].join('\n');
  return `<?xml version="1.0" encoding="UTF-8"?>\n${body}`;
}

function attributes(values: Record<string, string>): string {
  const each = Object.entries(values).map(([name, value]) => ` ${name}="${xmlText(value)}"`);
  return each.join('');
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Escapes text for XML 1.0, which cannot express control characters, lone surrogates, U+FFFE and U+FFFF. */
function xmlText(text: string): string {
  return text
    .toWellFormed()
    .replace(/[^\n]+/g, plainText)
    .replace(/[\ufffe\uffff]/g, ' ')
    .replace(/[&<>"]/g, (char) => ENTITIES[char] ?? char);
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(3);
}
