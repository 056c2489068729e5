/** The gate could not work: this ends the run. Outcomes of a namespace are values, never errors. */
export class ActionError extends Error {
  readonly hint: string | undefined;

  constructor(message: string, hint?: string) {
    super(message);
    this.name = 'ActionError';
    this.hint = hint;
  }
}

/** Something else has to be given to the gate: inputs, options. A terminal has an exit code of its own for it. */
export class InputError extends ActionError {}

/** The outermost first. Node reports all addresses of a host as one AggregateError. */
export function causeChain(error: unknown): unknown[] {
  const chain: unknown[] = [];
  for (let current = error; chain.length < 8 && current != null; ) {
    chain.push(current);
    const first = current instanceof AggregateError ? current.errors[0] : undefined;
    current = current instanceof Error ? (current.cause ?? first) : undefined;
  }
  return chain;
}

export function describeError(error: unknown): string {
  const texts = new Set(causeChain(error).map(textOf));
  return [...texts].filter((text) => text !== '').join(': ') || 'unknown error';
}

/** Other fields are left out because they may contain a token. */
function textOf(value: unknown): string {
  if (!(value instanceof Error)) return typeof value === 'string' ? value : '';
  const code = errorCode(value);
  const message = value.message || value.name;
  return code === '' || message.includes(code) ? message : `${message} (${code})`;
}

export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

export function describeFailure(error: unknown) {
  return error instanceof ActionError
    ? { message: error.message, hint: error.hint, frames: [] }
    : { ...describeInternalError(error), hint: undefined };
}

/** The message of a mistake may quote any value, a secret among them: only its kind and the frames behind it are shown. */
export function describeInternalError(error: unknown): { message: string; frames: string[] } {
  const isError = error instanceof Error;
  const type = isError ? error.constructor.name : typeof error;
  const kind = /^[A-Za-z]{1,40}$/.test(type) ? type : 'Error';
  const { name, message, stack } = isError ? error : { name: '', message: '', stack: '' };
  // V8 writes the message first.
  const heading = message === '' ? name : `${name}: ${message}`;
  const lines = String(stack).startsWith(heading) ? String(stack).slice(heading.length) : '';
  return {
    message: `internal error (${kind}): this is a mistake of the gate, please report it`,
    frames: lines.split('\n').filter((line) => /^ +at /.test(line)),
  };
}
