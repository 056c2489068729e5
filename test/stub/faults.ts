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
export const notFoundNamespace = (name: string): Fault =>
  failure(404, 'NotFound', `namespaces "${name}" not found`, {
    details: { name, kind: 'namespaces' },
  });
/** The real answer with something changed. */
export function edit(change: (body: JsonObject, answer: Answer) => void): Fault {
  return async ({ ask, response }) => {
    const answer = await ask();
    const body = JSON.parse(answer.body.toString('utf8')) as JsonObject;
    change(body, answer);
    send(response, { ...answer, body: Buffer.from(JSON.stringify(body)) });
  };
}

/** A watch that is accepted and silent. */
export const watchIsSilent: Fault = ({ response }) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.flushHeaders();
};

function send(response: FaultExchange['response'], { status, headers, body }: Answer): void {
  const { 'content-length': _length, 'transfer-encoding': _encoding, ...rest } = headers;
  response.writeHead(status, { ...rest, 'content-length': body.length });
  response.end(body);
}
