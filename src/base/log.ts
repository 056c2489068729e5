import { styleText } from 'node:util';
import type { Redactor } from './redact.ts';
import { logLine } from './text.ts';

/** Log for people. Implementations pass every text through `redact` and `logLine`; line breaks in it are removed. */
export interface Log {
  line(text: string): void;
  /** GitHub does not support nested groups. */
  group(title: string, lines: readonly string[]): void;
  notice(message: string, title?: string): void;
  warning(message: string, title?: string): void;
  error(message: string, title?: string): void;
  debug(text: string): void;
}

/** Writes to standard error, so that standard output has only the report. A runner reads both streams for commands. */
export function createTerminalLog(redactor: Redactor): Log {
  const { stderr, env } = process;
  // Node knows NO_COLOR and terminals without colours, such as TERM=dumb. Only a terminal has the function.
  const hasColours = stderr.isTTY === true && stderr.hasColors();
  const isDebug = env['RUNNER_DEBUG'] === '1' || Boolean(env['DEBUG']);
  const line = (text: string, style?: 'red' | 'yellow' | 'dim'): void => {
    const safe = logLine(redactor.redact(text));
    const isPlain = style === undefined || !hasColours;
    stderr.write(`${isPlain ? safe : styleText(style, safe, { validateStream: false })}\n`);
  };
  return {
    line: (text) => line(text),
    group: (title, lines) => {
      line(title);
      for (const part of lines) line(`  ${part}`);
    },
    notice: (message) => line(message),
    warning: (message) => line(`warning: ${message}`, 'yellow'),
    error: (message) => line(`error: ${message}`, 'red'),
    debug: (text) => {
      if (isDebug) line(text, 'dim');
    },
  };
}
