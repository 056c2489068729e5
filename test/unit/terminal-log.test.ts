import { WriteStream } from 'node:tty';
import { expect, test, vi } from 'vitest';
import { createTerminalLog } from '../../src/base/log.ts';
import { createRedactor } from '../../src/base/redact.ts';

test.each([
  { what: 'a terminal', env: { TERM: 'xterm' }, isTTY: true, has: true },
  { what: 'a terminal without colours', env: { TERM: 'dumb' }, isTTY: true, has: false },
  { what: 'NO_COLOR', env: { TERM: 'xterm', NO_COLOR: '1' }, isTTY: true, has: false },
  { what: 'a file', env: { TERM: 'xterm' }, isTTY: false, has: false },
])('an error has a colour with $what: $has', ({ env, isTTY, has }) => {
  // In a CI that it does not know, Node finds no colours.
  for (const name of ['FORCE_COLOR', 'NO_COLOR', 'NODE_DISABLE_COLORS', 'CI', 'TMUX'])
    vi.stubEnv(name, undefined);
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  const written: string[] = [];
  // The colours of a terminal are those of its environment, as Node reads it.
  const { getColorDepth, hasColors } = WriteStream.prototype;
  const write = (text: string): boolean => written.push(text) > 0;
  vi.stubGlobal('process', {
    env: process.env,
    stderr: isTTY ? { isTTY, write, getColorDepth, hasColors } : { isTTY, write },
  });
  createTerminalLog(createRedactor()).error('x');
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
  expect(written.join('').includes('\u001b[')).toBe(has);
});
