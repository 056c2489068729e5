/**
 * Replaces secrets in any text that leaves the process. The runner masks log lines, annotations and
 * the summary, but not comments, outputs and report files: those rely on this alone.
 */
export interface Redactor {
  /** Registers a secret value; shorter than 8 characters is ignored (it would mangle ordinary words). */
  add(value: string | undefined): void;
  /** Also replaces what has the shape of a secret: bearer tokens, JWTs, PEM blocks, URL passwords. */
  redact(text: string): string;
}
