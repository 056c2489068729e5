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

interface TerminalLogOptions {
  redactor: Redactor;
  write: (text: string) => void;
  /** Whether to use colours: only on a terminal, and not with NO_COLOR. */
  colour: boolean;
  debug: boolean;
}

/**
 * Creates the log of a terminal. It writes to standard error, so that standard output has only the report. In a
 * `run:` step the runner reads both streams for commands. It is a file of its own because a terminal must not
 * load the actions toolkit.
 */
export function createTerminalLog(options: TerminalLogOptions): Log {
  const line = (text: string, style?: 'red' | 'yellow' | 'dim'): void => {
    const safe = logLine(options.redactor.redact(text));
    const isPlain = style === undefined || !options.colour;
    options.write(`${isPlain ? safe : styleText(style, safe, { validateStream: false })}\n`);
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
      if (options.debug) line(text, 'dim');
    },
  };
}
