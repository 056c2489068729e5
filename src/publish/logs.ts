import { styleText } from 'node:util';
import * as core from '@actions/core';
import type { Log } from '../base/log.ts';
import type { Redactor } from '../base/redact.ts';
import { logLine, shorten } from '../base/text.ts';

/** GitHub cuts an annotation at 4,096 characters; nobody reads that far in one. */
const MAX_ANNOTATION_CHARS = 500;

/** The step log. The toolkit escapes line ends in commands, but lets `##[command]` through: we do not. */
export function createActionLog(redactor: Redactor): Log {
  const safe = (text: string): string => logLine(redactor.redact(text));
  const annotation = (text: string): string => shorten(safe(text), MAX_ANNOTATION_CHARS);
  const properties = (title: string | undefined): core.AnnotationProperties =>
    title === undefined ? {} : { title: safe(title) };
  return {
    line: (text) => core.info(safe(text)),
    group: (title, lines) => {
      core.startGroup(safe(title));
      for (const line of lines) core.info(safe(line));
      core.endGroup();
    },
    notice: (message, title) => core.notice(annotation(message), properties(title)),
    warning: (message, title) => core.warning(annotation(message), properties(title)),
    error: (message, title) => core.error(annotation(message), properties(title)),
    debug: (text) => core.debug(safe(text)),
  };
}

export interface TerminalLogOptions {
  redactor: Redactor;
  write: (text: string) => void;
  /** Colours only on a terminal, and not where NO_COLOR asks for none. */
  colour: boolean;
  debug: boolean;
}

/**
 * Progress for a person, on standard error, so that standard output is the report alone. In a `run:` step
 * the runner reads both for commands.
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
