import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { SHELLS } from '../../src/arguments.ts';
import { completionScript } from '../../src/completion.ts';

/** The scripts of `completion SHELL`, in the real shells. */

type Shell = (typeof SHELLS)[number];

const folder = mkdtempSync(join(tmpdir(), 'completion-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const script = (shell: Shell): string => join(folder, `script.${shell}`);
for (const shell of SHELLS) writeFileSync(script(shell), completionScript(shell));

/** Each returns what the shell offers at the end of a line, one word in a line. */
const OFFERS: Record<Shell, (line: string) => string> = {
  bash: (line) => {
    const words = line.split(/[ ]|(?<==)|(?==)/).map((word) => `'${word}'`);
    const ask = `COMP_WORDS=(${words.join(' ')}); COMP_CWORD=${words.length - 1}; _namespace_teardown_gate`;
    return run('bash', ['-c', `. ${script('bash')}; ${ask}; printf '%s\n' "\${COMPREPLY[@]}"`]);
  },
  // What zsh has registered for the program, called as on a tab key, with a list in the place of the menu.
  zsh: (line) => {
    const words = line.split(' ').map((word) => `'${word}'`);
    const menu =
      'compadd() { for word; do [[ $word = $words[CURRENT]* ]] && print -r -- $word; done }; _default() { return 1 }';
    const ask = `words=(${words.join(' ')}); CURRENT=${words.length}; eval "$_comps[namespace-teardown-gate]"`;
    return run('zsh', ['-f', '-c', `. ${script('zsh')}; ${menu}; ${ask}; true`]);
  },
  fish: (line) => {
    const offered = run('fish', [
      '-N',
      '-c',
      `. ${script('fish')}; complete -C ${JSON.stringify(line)}`,
    ]);
    return offered.replaceAll(/\t.*$/gm, '').replaceAll(/^--\S+=(?=.)/gm, '');
  },
};

function run(command: string, args: string[]): string {
  return execFileSync(command, args, { cwd: folder, encoding: 'utf8', timeout: 20_000 });
}

describe.each(SHELLS)('completion %s', (shell) => {
  const isThere = spawnSync(shell, ['--version']).status === 0;

  test.skipIf(!isThere).each([
    { line: 'fore', offers: ['forecast'], not: ['stats'] },
    { line: 'completion ', offers: [...SHELLS], not: ['forecast'] },
    { line: 'preview --report', offers: ['--report-dir'], not: ['--kubeconfig'] },
    {
      line: 'preview --force-fi',
      offers: ['--force-finalize', '--force-finalizers'],
      not: ['--comment'],
    },
    { line: 'preview --fail-on ', offers: ['not-deleted', 'stuck', 'never'], not: ['forecast'] },
    { line: 'stats report.json --format pro', offers: ['prometheus'], not: ['csv'] },
  ])(
    `offers $offers after "$line"${isThere ? '' : ` (skipped: there is no ${shell})`}`,
    ({ line, offers, not }) => {
      const offered = OFFERS[shell](`namespace-teardown-gate ${line}`).split('\n');
      expect(offered).toEqual(expect.arrayContaining(offers));
      expect(not.filter((word) => offered.includes(word))).toEqual([]);
    },
  );
});

test('bash offers the values of a flag only after "="', () => {
  const bash = (line: string) => OFFERS.bash(`namespace-teardown-gate ${line}`).trim().split('\n');
  expect(bash('preview --delete ')).toEqual(['']);
  expect(bash('preview --delete=')).toEqual(['true', 'false', 'ordered']);
  expect(bash('preview --format=js')).toEqual(['json']);
});
