import { describe, expect, test } from 'vitest';
import { type Command, parseArguments } from '../../src/arguments.ts';
import { ActionError } from '../../src/base/errors.ts';
import { readInputs } from '../../src/inputs.ts';

function gate(inputs: Record<string, string>, more: Partial<Command> = {}): Command {
  return { run: 'gate', inputs, format: 'text', now: false, ...more } as Command;
}

function refusal(args: string[]): ActionError {
  try {
    parseArguments(args);
  } catch (error) {
    if (error instanceof ActionError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

describe('parseArguments', () => {
  test.each<{ line: string; command: Command }>([
    { line: 'a', command: gate({ namespace: 'a' }) },
    { line: 'a b', command: gate({ namespace: 'a,b' }) },
    { line: 'a --namespace b,c', command: gate({ namespace: 'a,b,c' }) },
    { line: '--timeout 5m a', command: gate({ timeout: '5m', namespace: 'a' }) },
    { line: 'a --timeout=5m', command: gate({ timeout: '5m', namespace: 'a' }) },
    { line: 'a --delete', command: gate({ delete: 'true', namespace: 'a' }) },
    { line: '--delete a', command: gate({ delete: 'true', namespace: 'a' }) },
    { line: 'a --delete true', command: gate({ delete: 'true', namespace: 'a' }) },
    { line: 'a --delete false b', command: gate({ delete: 'false', namespace: 'a,b' }) },
    { line: 'a --delete ordered', command: gate({ delete: 'ordered', namespace: 'a' }) },
    {
      line: 'a --force-pods ordered',
      command: gate({ 'force-pods': 'true', namespace: 'a,ordered' }),
    },
    { line: 'forecast a', command: gate({ forecast: 'true', namespace: 'a' }) },
    { line: 'a --delete=false', command: gate({ delete: 'false', namespace: 'a' }) },
    { line: 'a --delete=yes', command: gate({ delete: 'yes', namespace: 'a' }) },
    { line: 'a --fail-fast', command: gate({ 'fail-fast': 'true', namespace: 'a' }) },
    { line: 'a --now', command: gate({ namespace: 'a' }, { now: true } as Partial<Command>) },
    {
      line: 'a --now=false',
      command: gate({ namespace: 'a' }, { now: false } as Partial<Command>),
    },
    {
      line: 'a --format json',
      command: gate({ namespace: 'a' }, { format: 'json' } as Partial<Command>),
    },
    {
      line: 'a --force-finalize plan --force-pods --force-namespaces preview-*',
      command: gate({
        'force-finalize': 'plan',
        'force-pods': 'true',
        'force-namespaces': 'preview-*',
        namespace: 'a',
      }),
    },
    { line: '-- --odd', command: gate({ namespace: '--odd' }) },
    { line: '', command: { run: 'help', isMistake: true } },
    { line: '--help', command: { run: 'help', isMistake: false } },
    { line: '-h', command: { run: 'help', isMistake: false } },
    { line: 'a --timeout 5m --help', command: { run: 'help', isMistake: false } },
    { line: '--version', command: { run: 'version' } },
    {
      line: 'stats one.json two.json',
      command: { run: 'stats', files: ['one.json', 'two.json'], format: 'text' },
    },
    {
      line: 'stats one.json --format csv',
      command: { run: 'stats', files: ['one.json'], format: 'csv' },
    },
  ])('reads "$line" as a value', ({ line, command }) => {
    expect(parseArguments(line.split(' ').filter((word) => word !== ''))).toEqual(command);
  });

  test.each<{ args: string[]; message: string | RegExp }>([
    { args: ['stats'], message: '"stats" needs at least one report.json file' },
    {
      args: ['stats', 'a.json', '--format', 'json'],
      message: 'option --format is "json"; use one of: text, markdown, csv',
    },
    {
      args: ['a', '--format', 'yaml'],
      message: 'option --format is "yaml"; use one of: text, markdown, json',
    },
    {
      args: ['a', '--format', ''],
      message: 'option --format is ""; use one of: text, markdown, json',
    },
    { args: ['a', '--timeout', ''], message: 'option --timeout needs a value' },
    { args: ['a', '--timeout'], message: /--timeout/ },
    { args: ['a', '--timeuot', '5m'], message: "Unknown option '--timeuot'" },
    { args: ['a', '-x'], message: "Unknown option '-x'" },
    { args: ['a', '--no-delete'], message: "Unknown option '--no-delete'" },
    { args: ['a', '--now=yes'], message: 'option --now is "yes"; use one of: true, false' },
    { args: ['a', '--help=yes'], message: 'option --help is "yes"; use one of: true, false' },
    { args: ['--version='], message: 'option --version is ""; use one of: true, false' },
    {
      args: ['--namespace', 'a', '--namespace', 'b'],
      message: 'option --namespace is given more than once',
    },
    {
      args: ['a', '--timeout', '1h', '--timeout=5m'],
      message: 'option --timeout is given more than once',
    },
    ...['comment', 'github-token', 'pr-number', 'comment-key'].map((name) => ({
      args: ['a', `--${name}`, 'x'],
      message: `option --${name} exists only in the action: a terminal has no pull request`,
    })),
  ])('refuses $args with one sentence', ({ args, message }) => {
    const error = refusal(args);
    expect(error.code).toBe('invalid-input');
    expect(error.message).toMatch(message);
    expect(error.message).not.toContain('\n');
    expect(error.hint).toContain('--help');
  });

  test('an empty word in the place of a name is no name', () => {
    const command = parseArguments(['']);
    expect(() =>
      readInputs((name) => (command.run === 'gate' ? command.inputs[name] : '') ?? ''),
    ).toThrow('both empty');
  });

  test('a name, a pattern of words that begin with --, is judged as a name', () => {
    const command = parseArguments(['--', '--delete']);
    expect(command).toEqual(gate({ namespace: '--delete' }));
  });
});
