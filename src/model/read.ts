/** The result of a read. A failure is evidence ("not inspected"), never an empty list. */
export type Read<T, F = ReadFailure> = { ok: true; value: T } | { ok: false; failure: F };

export type FailureKind =
  | 'forbidden' // 403
  | 'unauthorized' // 401, after one refresh of the credentials
  | 'not-found' // 404 with a Kubernetes Status: the server says that it does not exist
  | 'conflict' // 409
  | 'invalid' // 400, 405, 415, 422
  | 'throttled' // 429, after retries
  | 'server-error' // 5xx, after retries
  | 'timeout' // no answer within the call's limit
  | 'network' // refused, reset, DNS, TLS
  | 'unreadable' // an answer that no Kubernetes API server gives: HTML, garbage, a 404 without Status
  | 'aborted'; // our own signal

export function failureKindOf(status: number): FailureKind {
  const other = status >= 400 ? 'invalid' : 'unreadable';
  return KINDS[status] ?? (status >= 500 ? 'server-error' : other);
}

const KINDS: Record<number, FailureKind | undefined> = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not-found',
  409: 'conflict',
  429: 'throttled',
};

export interface ReadFailure {
  kind: FailureKind;
  status?: number;
  /** A clause without secrets, in the words of the server or the network. */
  message: string;
}

/** Recognizes the message of a request that a webhook or a policy refused, or that a webhook did not answer. */
export const ADMISSION =
  /failed calling webhook |admission webhook .* (?:denied the request|attempted to modify)|olicy '.*' denied request|forbidden: expression '/s;

/** Recognizes a refusal by the authorizer, which repeating the request does not change. */
export function lacksPermission({ kind, message }: ReadFailure): boolean {
  return kind === 'forbidden' && !ADMISSION.test(message);
}

export const readOk = <T>(value: T): Read<T> => ({ ok: true, value });
export const readFailed = <F extends ReadFailure>(failure: F) => ({ ok: false as const, failure });

export function valueIn<T>(read: Read<T> | undefined): T | undefined {
  return read?.ok === true ? read.value : undefined;
}

/** Returns the list that was read, or an empty one. Code that must tell unread from empty uses the read itself. */
export function itemsIn<T>(read: Read<T[]> | undefined): T[] {
  return valueIn(read) ?? [];
}
