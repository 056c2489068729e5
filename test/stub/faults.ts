import type { Json, JsonObject } from '../../src/base/json.ts';
import type { Answer, Fault, FaultExchange } from './fault-proxy.ts';
import { statusObject } from './status-object.ts';

/** Accepted and never answered. */
export const blackHole: Fault = () => undefined;

/** The request goes through, the answer does not come back. */
export const loseAnswer: Fault = async ({ ask, socket }) => {
  await ask();
  socket.resetAndDestroy();
};

export function reply(
  status: number,
  body: string,
  type = 'text/plain; charset=utf-8',
  headers: Record<string, string> = {},
): Fault {
  return ({ response }) => {
    // The server's clock is another one: it goes on from the time of the recording.
    response.sendDate = false;
    response.writeHead(status, { 'content-type': type, ...headers });
    response.end(body);
  };
}

export function replyJson(body: Json, status = 200, headers: Record<string, string> = {}): Fault {
  return reply(status, JSON.stringify(body), 'application/json', headers);
}

const LOGIN =
  '<!DOCTYPE html><html><head><title>Sign in</title></head><body><script>x()</script></body></html>';

/** What portals and gateways say in place of the API server. */
export const html = (status: number): Fault => reply(status, LOGIN, 'text/html');

/** As the API server words it. */
export function failure(
  code: number,
  reason: string,
  message: string,
  more: { details?: JsonObject; headers?: Record<string, string> } = {},
): Fault {
  return replyJson(statusObject(code, reason, message, more.details), code, more.headers);
}

export const unauthorized = failure(401, 'Unauthorized', 'Unauthorized');
export const tooManyRequests = (retryAfter?: string): Fault =>
  failure(
    429,
    'TooManyRequests',
    'Too many requests, please try again later.',
    retryAfter === undefined ? {} : { headers: { 'retry-after': retryAfter } },
  );
export const forbiddenNamespace = (name: string): Fault =>
  failure(
    403,
    'Forbidden',
    `namespaces "${name}" is forbidden: User "ci" cannot get resource "namespaces" in API group "" in the namespace "${name}"`,
    { details: { name, kind: 'namespaces' } },
  );
export const notFoundNamespace = (name: string): Fault =>
  failure(404, 'NotFound', `namespaces "${name}" not found`, {
    details: { name, kind: 'namespaces' },
  });
export const internalError = failure(500, 'InternalError', 'Internal error occurred: etcd is lost');

/** The real answer with something changed. */
export function edit(change: (body: JsonObject, answer: Answer) => void): Fault {
  return async ({ ask, response }) => {
    const answer = await ask();
    const body = JSON.parse(answer.body.toString('utf8')) as JsonObject;
    change(body, answer);
    send(response, { ...answer, body: Buffer.from(JSON.stringify(body)) });
  };
}

/** The server's clock goes wrong by `ms`. */
export function skewClock(ms: number): Fault {
  return async ({ ask, response }) => {
    const answer = await ask();
    const date = new Date(Date.parse(answer.headers['date'] ?? '') + ms).toUTCString();
    send(response, { ...answer, headers: { ...answer.headers, date } });
  };
}

/** A watch that is accepted, sends these events and then `ends` or is silent. */
export function watchSends(events: readonly JsonObject[] | string, ends = false): Fault {
  const text =
    typeof events === 'string'
      ? events
      : events.map((event) => `${JSON.stringify(event)}\n`).join('');
  return ({ response }) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    if (ends) response.end(text);
    else if (text !== '') response.write(text);
  };
}

export const watchIsSilent = watchSends([]);

function send(response: FaultExchange['response'], { status, headers, body }: Answer): void {
  const { 'content-length': _length, 'transfer-encoding': _encoding, ...rest } = headers;
  response.writeHead(status, { ...rest, 'content-length': body.length });
  response.end(body);
}
