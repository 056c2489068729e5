import { plainText, shorten } from '../base/text.ts';
import { causeText } from './plain-text.ts';
import type { View } from './view.ts';
import { joinWords, toPlain } from './words.ts';

/** Characters of explanation in one of at most 1,000 test cases: CI servers refuse files of many megabytes. */
const MAX_CASE_CHARS = 4_000;

/**
 * Renders report.xml, the JUnit file that GitLab, Jenkins and Azure Pipelines show: one suite for the run, one test case
 * for each namespace. An outcome that does not fail the run passes here as well; `inconclusive` is skipped.
 */
export function renderJunit({ run, namespaces, causes, headline }: View): string {
  const cases = namespaces.map((one) => {
    const own = causes.filter((cause) => cause.namespaces.includes(one.name));
    const lines = [
      ...[joinWords([one.headline, one.sentence], ': '), one.note].filter(Boolean).map(toPlain),
      ...(one.leftBehind ?? []).map(
        ({ kind, name, why }) => `Left behind: ${kind} ${name}: ${why}`,
      ),
      ...own.flatMap((cause) => ['', ...causeText(cause)]),
    ];
    const text = shorten(lines.join('\n'), MAX_CASE_CHARS);
    return { ...one, text, type: one.root?.code ?? one.outcome };
  });
  // A server that finds no test case in a file reports an error of its own.
  const whole = { ...run, name: 'namespaces of the run', text: toPlain(headline) };
  const counts = { failure: 0, skipped: 0, 'system-out': 0 };
  const lines = cases.length === 0 ? [{ ...whole, type: run.outcome }] : cases;
  const elements = lines.map(({ name, elapsedMs, outcome, verdict, text, type }) => {
    const isFailure = verdict === 'fail' && outcome !== 'inconclusive';
    const element = outcome === 'inconclusive' ? 'skipped' : isFailure ? 'failure' : 'system-out';
    counts[element]++;
    const message = { type, message: shorten(text.split('\n', 1).join(), 1_000) };
    const start = { name, time: seconds(elapsedMs), status: outcome };
    const open = `<testcase${attributes({ classname: 'namespace-teardown-gate', ...start })}>`;
    return `${open}<${element}${isFailure ? attributes(message) : ''}>${xmlText(text)}</${element}></testcase>`;
  });
  const totals = {
    name: run.kind === 'forecast' ? 'Namespace teardown forecast' : 'Namespace teardown',
    ...{ tests: String(elements.length), failures: String(counts.failure), errors: '0' },
    time: seconds(run.elapsedMs),
  };
  const suite = { skipped: String(counts.skipped), timestamp: run.finishedAt.slice(0, 19) };
  const head = `<testsuites${attributes(totals)}>\n<testsuite${attributes({ ...totals, ...suite })}>`;
  const body = [head, ...elements, '</testsuite>\n</testsuites>\n'].join('\n');
  return `<?xml version="1.0" encoding="UTF-8"?>\n${body}`;
}

function attributes(values: Record<string, string>): string {
  return Object.entries(values)
    .map(([name, value]) => ` ${name}="${xmlText(value)}"`)
    .join('');
}

/** Escapes text for XML 1.0, which cannot express control characters, lone surrogates, U+FFFE and U+FFFF. */
function xmlText(text: string): string {
  return text
    .toWellFormed()
    .replace(/[^\n]+/g, plainText)
    .replace(/[\ufffe\uffff]/g, ' ')
    .replace(/[&<>"]/g, (char) => `&#${char.charCodeAt(0)};`);
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(3);
}
