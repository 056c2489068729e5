// node .ci/tally.mjs REPORT: adds up a JSON report of vitest. Prints what failed, how, also what passed only when it
// was tried again, and what was skipped, and as its last line "PASSED FAILED SKIPPED".
import { readFileSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';

const LINES_OF_A_FAILURE = 12;

const { testResults } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
// A file that could not be loaded, or a set-up that failed, has no failed test of its own.
const brokenFiles = testResults.filter(
  ({ status, assertionResults }) =>
    status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
);
const passed = tests.filter(({ status }) => status === 'passed');
const failed = tests.filter(({ status }) => status === 'failed');
const skipped = tests.filter(({ status }) => status !== 'passed' && status !== 'failed');

const lines = [
  ...failed.flatMap((test) => told('failed', test.fullName, test.failureMessages.join('\n'))),
  ...brokenFiles.flatMap(({ name, message }) => told('failed', name, message)),
  ...passed
    .filter(({ failureMessages }) => failureMessages.length > 0)
    .flatMap((test) => told('only the second try passed', test.fullName, test.failureMessages[0])),
  // A skipped test says why in its title.
  ...skipped.map(({ fullName }) => `  skipped: ${fullName}`),
  `${passed.length} ${failed.length + brokenFiles.length} ${skipped.length}`,
];
process.stdout.write(`${lines.join('\n')}\n`);

function told(what, name, how) {
  const lines = stripVTControlCharacters(how).trim().split('\n').slice(0, LINES_OF_A_FAILURE);
  return [`  ${what}: ${name}`, ...lines.map((line) => `    ${line}`)];
}
