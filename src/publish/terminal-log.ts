import type { Log } from '../base/log.ts';
import type { Redactor } from '../base/redact.ts';
import { plainText } from '../base/text.ts';

const COLOURS = { red: 31, yellow: 33, dim: 2 } as const;

export interface TerminalLogOptions {
  redactor: Redactor;
  write: (text: string) => void;
  /** Colours only on a terminal, and not where NO_COLOR asks for none. */
  colour: boolean;
  debug: boolean;
}

/** Progress for a person, on standard error, so that standard output is the report alone. */
export function createTerminalLog(options: TerminalLogOptions): Log {
  const safe = (text: string): string => plainText(options.redactor.redact(text));
  const line = (text: string, colour?: keyof typeof COLOURS): void => {
    const isPlain = colour === undefined || !options.colour;
    options.write(isPlain ? `${text}\n` : `\u001b[${COLOURS[colour]}m${text}\u001b[0m\n`);
  };
  return {
    line: (text) => {
      for (const part of text.split('\n')) line(safe(part));
    },
    group: (title, lines) => {
      line(safe(title));
      for (const part of lines) line(`  ${safe(part)}`);
    },
    notice: (message) => line(safe(message)),
    warning: (message) => line(`warning: ${safe(message)}`, 'yellow'),
    error: (message) => line(`error: ${safe(message)}`, 'red'),
    debug: (text) => {
      if (options.debug) line(safe(text), 'dim');
    },
  };
}
