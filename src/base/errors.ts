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

/**
 * What was thrown and its causes, the outermost first. Node reports "connection refused" on all of a host's
 * addresses as one AggregateError.
 */
export function causeChain(error: unknown): unknown[] {
  const chain: unknown[] = [];
  for (let current = error; chain.length < 8 && current != null; ) {
    chain.push(current);
    const first = current instanceof AggregateError ? current.errors[0] : undefined;
    current = current instanceof Error ? (current.cause ?? first) : undefined;
  }
  return chain;
}

/** Always a sentence, whatever was thrown; the innermost cause is the one that tells something. */
export function describeError(error: unknown): string {
  const texts = new Set(causeChain(error).map(textOf));
  return [...texts].filter((text) => text !== '').join(': ') || 'unknown error';
}

/** Only a message: whatever else an object holds may be anything, a token too. */
function textOf(value: unknown): string {
  if (value instanceof Error) {
    const code = 'code' in value && typeof value.code === 'string' ? value.code : '';
    const message = value.message === '' ? value.name : value.message;
    return code === '' || message.includes(code) ? message : `${message} (${code})`;
  }
  if (typeof value === 'function') return '';
  if (typeof value !== 'object' || value === null) return String(value);
  return 'message' in value && typeof value.message === 'string' ? value.message : '';
}
