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
  const isDebug = env['RUNNER_DEBUG'] === '1' || Boolean(env['DEBUG']);
  const line = (text: string): void => {
    stderr.write(`${logLine(redactor.redact(text))}\n`);
  };
  return {
    line,
    group: (title, lines) => {
      line(title);
      for (const part of lines) line(`  ${part}`);
    },
    notice: line,
    warning: (message) => line(`warning: ${message}`),
    error: (message) => line(`error: ${message}`),
    debug: (text) => {
      if (isDebug) line(text);
    },
  };
}
