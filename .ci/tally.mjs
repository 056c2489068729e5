// node .ci/tally.mjs REPORT: adds up a JSON report of vitest. Prints what failed and what was skipped,
// and as its last line "PASSED FAILED SKIPPED".
import { readFileSync } from 'node:fs';

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
  ...failed.map(({ fullName }) => `  failed: ${fullName}`),
  ...brokenFiles.map(({ name, message }) => `  failed: ${name}: ${message.trim()}`),
  // A skipped test says why in its title.
  ...skipped.map(({ fullName }) => `  skipped: ${fullName}`),
  `${passed.length} ${failed.length + brokenFiles.length} ${skipped.length}`,
];
process.stdout.write(`${lines.join('\n')}\n`);
