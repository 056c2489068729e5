import type { RunResult } from '../model/result.ts';

/** Members with words of our own: a secret that happens to be "progressing" must not break the report. */
const VOCABULARY = new Set(['outcome', 'verdict', 'code', 'scope', 'mode', 'movement']);

/**
 * The result with every text passed through `redact`. It has to happen before rendering: once a text is
 * escaped, cut or encoded, a secret in it no longer looks like itself.
 */
export function redactResult(result: RunResult, redact: (text: string) => string): RunResult {
  return redactDeep(result, redact) as RunResult;
}

function redactDeep(value: unknown, redact: (text: string) => string): unknown {
  if (typeof value === 'string') return redact(value);
  if (Array.isArray(value)) return value.map((item) => redactDeep(item, redact));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      VOCABULARY.has(key) ? item : redactDeep(item, redact),
    ]),
  );
}
