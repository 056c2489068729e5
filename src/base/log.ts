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
