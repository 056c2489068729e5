import { afterEach, describe, expect, test, vi } from 'vitest';
import type { Log } from '../../src/base/log.ts';
import { createTerminalLog } from '../../src/base/log.ts';
import { createRedactor } from '../../src/base/redact.ts';
import { logJson, logLines } from '../../src/base/text.ts';
import { createActionLog } from '../../src/publish/publish.ts';
import { NASTY_TEXTS } from '../stub/nasty.ts';
import { commandsIn } from '../stub/runner-commands.ts';

const TEXTS = [...NASTY_TEXTS, ...NASTY_TEXTS.map((text) => `it said:\n${text}\r${text}`)];

/** Every way into a log, and the commands of our own that it takes. */
const WAYS: { name: string; say: (log: Log, text: string) => void; own: string[] }[] = [
  { name: 'line', say: (log, text) => log.line(text), own: [] },
  { name: 'group', say: (log, text) => log.group(text, [text]), own: ['group', 'endgroup'] },
  { name: 'notice', say: (log, text) => log.notice(text, text), own: ['notice'] },
  { name: 'warning', say: (log, text) => log.warning(text, text), own: ['warning'] },
  { name: 'error', say: (log, text) => log.error(text, text), own: ['error'] },
  { name: 'debug', say: (log, text) => log.debug(text), own: ['debug'] },
];

function lines(output: string): number {
  return output.split(/\r\n|[\r\n\u2028\u2029\u0085]/).length - 1;
}

describe.each(WAYS)('$name', ({ say, own }) => {
  afterEach(() => {
    vi.restoreAllMocks();
  });

  test('in the step log is as many lines as we say, and no command but ours', () => {
    let output = '';
    vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
      output += String(text);
      return true;
    });
    const log = createActionLog(createRedactor());
    for (const text of TEXTS) {
      output = '';
      say(log, text);
      expect(commandsIn(output), text).toEqual(own);
      expect(lines(output), text).toBe(Math.max(1, own.length + (own[0] === 'group' ? 1 : 0)));
    }
  });

  test.each([{ colour: false }, { colour: true }])('in the terminal too, $colour', ({ colour }) => {
    let output = '';
    const write = (text: string): void => {
      output += text;
    };
    const log = createTerminalLog({ redactor: createRedactor(), write, colour, debug: true });
    for (const text of TEXTS) {
      output = '';
      say(log, text);
      expect(commandsIn(output), text).toEqual([]);
      expect(lines(output), text).toBe(own[0] === 'group' ? 2 : 1);
    }
  });
});

test('a report for the terminal keeps its lines, and holds no command', () => {
  const report = TEXTS.join('\n');
  expect(commandsIn(logLines(report))).toEqual([]);
  expect(logLines('a\r\nb,"c"\r\n')).toBe('a\r\nb,"c"\r\n');
});

test('a report as JSON stays the same value, and holds no command', () => {
  const json = JSON.stringify(TEXTS, null, 2);
  expect(commandsIn(logJson(json))).toEqual([]);
  expect(JSON.parse(logJson(json))).toEqual(JSON.parse(json));
});
