import type { ServerResponse } from 'node:http';
import type { JsonObject } from '../../../src/base/json.ts';
import { statusObject } from '../../stub/status-object.ts';
import type { Answer } from './http-server.ts';

export function json(body: unknown, status = 200, headers: Record<string, string> = {}): Answer {
  return (_request, response) => sendJson(response, body, status, headers);
}

export function sendJson(
  response: ServerResponse,
  body: unknown,
  status = 200,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

export function text(
  status: number,
  body: string,
  type = 'text/plain; charset=utf-8',
  headers: Record<string, string> = {},
): Answer {
  return (_request, response) => {
    response.writeHead(status, { 'content-type': type, ...headers });
    response.end(body);
  };
}

export function failure(
  code: number,
  reason: string,
  message: string,
  details?: JsonObject,
  headers: Record<string, string> = {},
): Answer {
  return json(statusObject(code, reason, message, details), code, headers);
}

export const unauthorized = failure(401, 'Unauthorized', 'Unauthorized');

/** Lets only this token in. */
export function accepting(token: string): Answer {
  return (request, response, index) => {
    const isKnown = request.headers.authorization === `Bearer ${token}`;
    const reply = isKnown ? json(namespace('demo')) : unauthorized;
    return reply(request, response, index);
  };
}

/** The first request gets the first answer, and so on; the last answer is then repeated. */
export function inTurn(...answers: Answer[]): Answer {
  return (request, response, index) =>
    answers[Math.min(index, answers.length - 1)]?.(request, response, index);
}

export function namespace(name: string, uid = 'uid-1'): JsonObject {
  return { kind: 'Namespace', apiVersion: 'v1', metadata: { name, uid, resourceVersion: '7' } };
}

export function page(
  names: readonly string[],
  metadata: JsonObject = {},
  kind = 'ConfigMapList',
): JsonObject {
  return {
    kind,
    apiVersion: 'v1',
    metadata: { resourceVersion: '42', ...metadata },
    items: names.map((name) => ({ metadata: { name } })),
  };
}
