import { styleText } from 'node:util';
import type { Redactor } from './redact.ts';
import { logLine } from './text.ts';

/**
 * Where lines for people go: the step log, or a terminal's standard error. Implementations pass every
 * text through `redact` and `logLine`; callers hand over plain data. One text is one line, whatever line
 * breaks somebody has put into it.
 */
export interface Log {
  line(text: string): void;
  /** Lines that are there for whoever unfolds them. Groups do not nest. */
  group(title: string, lines: readonly string[]): void;
  notice(message: string, title?: string): void;
  warning(message: string, title?: string): void;
  error(message: string, title?: string): void;
  /** Shown with step debugging only. */
  debug(text: string): void;
}

interface TerminalLogOptions {
  redactor: Redactor;
  write: (text: string) => void;
  /** Colours only on a terminal, and not where NO_COLOR asks for none. */
  colour: boolean;
  debug: boolean;
}

/**
 * Progress for a person, on standard error, so that standard output is the report alone. In a `run:` step
 * the runner reads both for commands. Not beside the step log: a terminal loads nothing of the toolkit.
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
