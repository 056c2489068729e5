export type ErrorCode =
  | 'invalid-input'
  | 'kube-config'
  | 'kube-unreachable'
  | 'kube-unauthorized'
  | 'kube-forbidden'
  | 'kube-timeout'
  | 'internal';

/**
 * An error that ends the run: the gate could not work. The message says what was tried, on what, and what came
 * back; the hint says what to do. Outcomes of a namespace are values, never errors.
 */
export class ActionError extends Error {
  readonly code: ErrorCode;
  readonly hint: string | undefined;

  constructor(code: ErrorCode, message: string, hint?: string) {
    super(message);
    this.name = 'ActionError';
    this.code = code;
    this.hint = hint;
  }
}

/** Returns the error and its causes, the outermost first. Node reports all addresses of a host as one AggregateError. */
export function causeChain(error: unknown): unknown[] {
  const chain: unknown[] = [];
  for (let current = error; chain.length < 8 && current != null; ) {
    chain.push(current);
    const first = current instanceof AggregateError ? current.errors[0] : undefined;
    current = current instanceof Error ? (current.cause ?? first) : undefined;
  }
  return chain;
}

/** Describes any thrown value in one sentence. The innermost cause is the one that says what happened. */
export function describeError(error: unknown): string {
  const texts = new Set(causeChain(error).map(textOf));
  return [...texts].filter((text) => text !== '').join(': ') || 'unknown error';
}

/** Returns the message of a thrown value. Other fields are left out because they may contain a token. */
function textOf(value: unknown): string {
  if (!(value instanceof Error)) return typeof value === 'string' ? value : '';
  const code = errorCode(value);
  const message = value.message === '' ? value.name : value.message;
  return code === '' || message.includes(code) ? message : `${message} (${code})`;
}

export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** Describes an error that ends the run. */
export function describeFailure(error: unknown) {
  if (!(error instanceof ActionError)) return { ...describeInternalError(error), hint: undefined };
  return { message: error.message, hint: error.hint, frames: [] };
}

/**
 * Describes a mistake of this program. Its message may quote any value, a secret among them, so only the kind of
 * the error is named; `frames` are the lines of its stack behind the message, which V8 writes first.
 */
export function describeInternalError(error: unknown): { message: string; frames: string[] } {
  const name = error instanceof Error ? error.constructor.name : typeof error;
  const kind = /^[A-Za-z]{1,40}$/.test(name) ? name : 'Error';
  const { name: given, message, stack = '' } = error instanceof Error ? error : new Error('none');
  const heading = message === '' ? given : `${given}: ${message}`;
  const isShown = error instanceof Error && typeof stack === 'string' && stack.startsWith(heading);
  const lines = isShown ? stack.slice(heading.length).split('\n') : [];
  return {
    message: `internal error (${kind}): this is a mistake of the gate, please report it`,
    frames: lines.filter((line) => /^ +at /.test(line)),
  };
}
