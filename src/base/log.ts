import { styleText } from 'node:util';
import type { Redactor } from './redact.ts';
import { logLine } from './text.ts';

/**
 * Log for people: the step log, or the standard error of a terminal. Implementations pass every text through
 * `redact` and `logLine`; callers pass plain data. One text is one line: line breaks in it are removed.
 */
export interface Log {
  line(text: string): void;
  /** Writes lines into a collapsed group. GitHub does not support nested groups. */
  group(title: string, lines: readonly string[]): void;
  notice(message: string, title?: string): void;
  warning(message: string, title?: string): void;
  error(message: string, title?: string): void;
  /** Writes a line that is shown only with step debugging. */
  debug(text: string): void;
}

/**
 * Creates the log of a terminal. It writes to standard error, so that standard output has only the report. In a
 * `run:` step the runner reads both streams for commands. It is a file of its own because a terminal must not
 * load the actions toolkit.
 */
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
