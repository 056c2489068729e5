import { describe, expect, test } from 'vitest';
import { parseFileCommands } from '../stub/file-commands.ts';
import { type LogLine, parseLog } from '../stub/step-log.ts';

describe('parseLog reads a line as the runner does', () => {
  test.each<{ line: string; means: LogLine }>([
    { line: 'plain', means: { kind: 'text', text: 'plain' } },
    { line: '::group::Types', means: { kind: 'group', text: 'Types' } },
    { line: '::endgroup::', means: { kind: 'endgroup' } },
    {
      line: '  ::error title=a%3Ab%2Cc,line=1::x%0Ay%25',
      means: { kind: 'error', title: 'a:b,c', text: 'x\ny%' },
    },
    { line: '::warning::a::b', means: { kind: 'warning', title: undefined, text: 'a::b' } },
    { line: 'see ##[add-mask]a', means: { kind: 'command', command: 'add-mask', text: 'a' } },
    { line: '::unknown::x', means: { kind: 'text', text: '::unknown::x' } },
    { line: 'a ::error::x', means: { kind: 'text', text: 'a ::error::x' } },
  ])('$line', ({ line, means }) => {
    expect(parseLog(`${line}\n`)).toEqual([means]);
  });

  test('a lone carriage return ends a line', () => {
    expect(parseLog('a\r::debug::x')).toEqual([
      { kind: 'text', text: 'a' },
      { kind: 'debug', text: 'x' },
    ]);
  });
});

describe('parseFileCommands', () => {
  test('reads lines and blocks', () => {
    const text = 'a=b=c\nlist<<EOF_1\none\ntwo=2\nEOF_1\nempty=\n';
    expect(parseFileCommands(text)).toEqual({ a: 'b=c', list: 'one\ntwo=2', empty: '' });
  });

  test.each(['x<<EOF\nnever closed\n', 'neither\n'])('refuses %j', (text) => {
    expect(() => parseFileCommands(text)).toThrow();
  });
});
