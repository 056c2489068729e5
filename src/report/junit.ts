import { plainText, shorten } from '../base/text.ts';
import { causeText } from './plain-text.ts';
import type { CauseView, NamespaceView, View } from './view.ts';
import { joinWords, toPlain } from './words.ts';

/** Characters of explanation in the whole file, and in one test case: CI servers refuse files of many megabytes. */
const MAX_TEXT_CHARS = 4_000_000;
const MAX_CASE_CHARS = 10_000;
const MAX_MESSAGE_CHARS = 1_000;

/**
 * Renders report.xml, the JUnit file that GitLab, Jenkins and Azure Pipelines show: one suite for the run, one test case
 * for each namespace. An outcome that does not fail the run passes here as well; `inconclusive` is skipped.
 */
export function renderJunit(view: View): string {
  const { run, namespaces } = view;
  const causes = Map.groupBy(
    view.causes.flatMap((cause) => cause.namespaces.map((name) => ({ name, cause }))),
    ({ name }) => name,
  );
  const maxChars = Math.min(MAX_CASE_CHARS, Math.ceil(MAX_TEXT_CHARS / (namespaces.length || 1)));
  const cases = namespaces.map((namespace) => {
    const own = (causes.get(namespace.name) ?? []).map(({ cause }) => cause);
    return namespaceCase(namespace, own, maxChars);
  });
  if (cases.length === 0) {
    // A server that finds no test case in a file reports an error of its own.
    const text = toPlain(view.headline);
    const result = run.verdict === 'fail' ? 'failed' : 'passed';
    const status = run.outcome;
    cases.push({ name: 'namespaces of the run', ms: run.elapsedMs, status, result, text });
  }
  for (const { what, reason } of run.leftOut ?? []) {
    cases.push({ name: what, ms: 0, status: 'not inspected', result: 'skipped', text: reason });
  }
  const count = (result: TestCase['result']): number =>
    cases.filter((one) => one.result === result).length;
  const name = run.kind === 'forecast' ? 'Namespace teardown forecast' : 'Namespace teardown';
  const totals = {
    name,
    tests: String(cases.length),
    failures: String(count('failed')),
    errors: '0',
    time: seconds(run.elapsedMs),
  };
  const timestamp = run.finishedAt.slice(0, 19);
  const suite = { ...totals, skipped: String(count('skipped')), timestamp };
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites${attributes(totals)}>`,
    `<testsuite${attributes(suite)}>`,
    ...cases.map(caseElement),
    '</testsuite>',
    '</testsuites>\n',
  ].join('\n');
}

interface TestCase {
  name: string;
  ms: number;
  /** The outcome. */
  status: string;
  result: 'passed' | 'failed' | 'skipped';
  /** The first line is the message of a failure. */
  text: string;
  /** The code of the first root cause; the outcome where there is none. */
  type?: string;
}

function namespaceCase(
  namespace: NamespaceView,
  causes: readonly CauseView[],
  maxChars: number,
): TestCase {
  const { name, outcome, elapsedMs, verdict, root, headline, sentence, notes } = namespace;
  const { leftBehind = [] } = namespace;
  const type = root?.code ?? outcome;
  const lines = [joinWords([headline, sentence], ': '), ...notes];
  const text = [
    ...lines.map(toPlain),
    ...leftBehind.map(({ kind, name: object, why }) => `Left behind: ${kind} ${object}: ${why}`),
    ...causes.flatMap((cause) => ['', ...causeText(cause)]),
  ].join('\n');
  const result = outcome === 'inconclusive' ? 'skipped' : verdict === 'fail' ? 'failed' : 'passed';
  const hasMore = result !== 'passed' || causes.length + leftBehind.length > 0;
  const explanation = hasMore ? shorten(text, maxChars) : '';
  return { name, ms: elapsedMs, status: outcome, result, text: explanation, type };
}

function caseElement({ name, ms, status, result, text, type = status }: TestCase): string {
  const start = `<testcase${attributes({ classname: 'namespace-teardown-gate', name, time: seconds(ms), status })}>`;
  const content = xmlText(text);
  const [first = ''] = text.split('\n');
  const failure = attributes({ type, message: shorten(first, MAX_MESSAGE_CHARS) });
  const element = {
    failed: `<failure${failure}>${content}</failure>`,
    skipped: `<skipped>${content}</skipped>`,
    passed: text === '' ? '' : `<system-out>${content}</system-out>`,
  };
  return `${start}${element[result]}</testcase>`;
}

function attributes(values: Record<string, string>): string {
  return Object.entries(values)
    .map(([name, value]) => ` ${name}="${xmlText(value)}"`)
    .join('');
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/**
 * Escapes text for an element or an attribute. XML 1.0 has no way to write control characters, lone surrogates, U+FFFE and
 * U+FFFF; because `>` is escaped, `]]>` cannot occur.
 */
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
