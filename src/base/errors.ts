export type ErrorCode =
  | 'invalid-input'
  | 'kube-config'
  | 'kube-unreachable'
  | 'kube-unauthorized'
  | 'kube-forbidden'
  | 'kube-timeout'
  | 'internal';

/**
 * The gate could not work at all. The message says what was tried, on what, and what came back; the
 * hint says what to do. Outcomes of a namespace are values, never errors.
 */
export class ActionError extends Error {
  readonly code: ErrorCode;
  readonly hint: string | undefined;

  constructor(code: ErrorCode, message: string, options: { hint?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.name = 'ActionError';
    this.code = code;
    this.hint = options.hint;
  }
}

/** Always a sentence, whatever was thrown; the innermost cause is the one that tells something. */
export function describeError(error: unknown): string {
  const parts: string[] = [];
  let current: unknown = error;
  for (let depth = 0; depth < 8 && current !== undefined && current !== null; depth++) {
    const text = textOf(current);
    if (text !== '' && !parts.includes(text)) parts.push(text);
    current = current instanceof Error ? (current.cause ?? firstOf(current)) : undefined;
  }
  return parts.length === 0 ? 'unknown error' : parts.join(': ');
}

function textOf(value: unknown): string {
  if (!(value instanceof Error)) return textOfOther(value);
  const code = 'code' in value && typeof value.code === 'string' ? value.code : '';
  const message = value.message === '' ? value.name : value.message;
  return code === '' || message.includes(code) ? message : `${message} (${code})`;
}

/** Only a message: whatever else an object holds may be anything, a token too. */
function textOfOther(value: unknown): string {
  if (typeof value === 'function') return '';
  if (typeof value !== 'object' || value === null) return String(value);
  return 'message' in value && typeof value.message === 'string' ? value.message : '';
}

/** Node reports "connection refused" on all of a host's addresses as one AggregateError. */
function firstOf(error: Error): unknown {
  return error instanceof AggregateError ? error.errors[0] : undefined;
}
