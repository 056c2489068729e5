import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { brokenCommand } from '../../src/report/markdown.ts';
import { JUDGES } from '../stub/rendered.ts';

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
    5,
  ],
  [`kubectl annotate namespace preview-pr-42 "gate/look-again=$(printf %s 'x  y')" --overwrite`, 3],
  [`kubectl label namespace preview-pr-42 'it'\\''s  here=$(no)' "a \\"quoted\\" value"`, 3],
  ['kubectl get --raw /apis || true', 1],
  ['kubectl create clusterrole a --verb=get && kubectl delete clusterrole b', 2],
])('a broken command is the same command: %s', (command, lines) => {
  const broken = brokenCommand(command);
  expect(broken).toHaveLength(lines);
  expect(wordsOf(broken.join('\n'))).toEqual(wordsOf(command));
});

test('the first line of a command is not cut on a phone', () => {
  const [first] = brokenCommand('kubectl delete widgets.example.com --all -n preview-pr-42 --wait');
  expect(first).toBe('kubectl delete widgets.example.com --all \\');
});

const GOLDEN = join(import.meta.dirname, 'golden');

describe.each(JUDGES)('$name', ({ missing, toHtml }) => {
  test.for(globSync('*.md', { cwd: GOLDEN }))(
    'shows each fence of %s as a block',
    (file, { skip }) => {
      if (missing !== undefined) skip(missing);
      const markdown = readFileSync(join(GOLDEN, file), 'utf8');
      // Some renderers, as in apps for phones, need the blank line that CommonMark does not ask for.
      expect(markdown).not.toMatch(/\S\n *```(?:sh|yaml|mermaid)$/m);
      const fences = markdown.match(/^ *```\w+$/gm) ?? [];
      const html = toHtml(markdown);
      expect(html.match(/<pre\b/g) ?? []).toHaveLength(fences.length);
      expect(html).not.toContain('```');
    },
  );
});
