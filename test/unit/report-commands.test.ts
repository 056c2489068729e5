import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { brokenCommand } from '../../src/report/markdown.ts';

/** The words that a shell makes of a command; JSON without the space between its parts. */
function wordsOf(command: string): string[] {
  const script = `kubectl() { printf '%s\\0' "$@" >&2; }; jq() { kubectl jq "$@"; }; ${command}`;
  const all = execFileSync('bash', ['-c', `exec 2>&1; ${script}`], { encoding: 'utf8' });
  // The parts of a pipe run at the same time.
  return all
    .split('\0')
    .sort()
    .map((word) => {
      try {
        return JSON.stringify(JSON.parse(word));
      } catch {
        return word;
      }
    });
}

const PATCH = `'[{"op":"test","path":"/metadata/uid","value":"a b"},{"op":"remove","path":"/metadata/finalizers/0"}]'`;

test.each([
  [`kubectl patch widgets.example.com db -n preview-pr-42 --type=json -p ${PATCH}`, 4],
  [`kubectl delete widgets.example.com --all -n preview-pr-42-with-a-long-name --wait`, 2],
  [
    `kubectl get crd widgets.example.com -o json | jq '.spec.versions += [.a | .b = "c d"]' | kubectl replace -f -`,
    3,
  ],
  [`kubectl annotate namespace preview-pr-42 "gate/look-again=$(printf %s 'x  y')" --overwrite`, 3],
  [`kubectl label namespace preview-pr-42 'it'\\''s  here=$(no)' "a \\"quoted\\" value"`, 2],
  ['kubectl get --raw /apis || true', 1],
])('a broken command is the same command: %s', (command, lines) => {
  const broken = brokenCommand(command);
  expect(broken).toHaveLength(lines);
  expect(wordsOf(broken.join('\n'))).toEqual(wordsOf(command));
});
