import { STATUS_CODES } from 'node:http';
import { isObject, type Json, type JsonObject, numberAt, stringAt } from '../base/json.ts';
import { plainText, shorten } from '../base/text.ts';
import type { FailureKind, ReadFailure } from '../model/read.ts';
import { objectNameIn } from './paths.ts';

/** An HTTP answer that is no success, as far as it is needed to say what went wrong. */
export interface BadAnswer {
  status: number;
  contentType: string;
  text: string;
  /** Host that a redirect points to. */
  redirectHost?: string | undefined;
}

export interface Asked {
  server: string;
  path: string;
}

const MAX_MESSAGE_CHARS = 500;
/** Far beyond what is shown, so that cutting here cannot halve a secret that would be seen. */
const MAX_READ_CHARS = 8_000;

/** The message is raw and not cut yet: that is `clause`, after secrets were replaced. */
export function failureOf(answer: BadAnswer, asked: Asked): ReadFailure {
  const status = statusObject(answer);
  const words = `${answer.status} ${STATUS_CODES[answer.status] ?? 'Unknown'}`;
  if (status !== undefined) {
    const message = stringAt(status, 'message') || stringAt(status, 'reason') || '';
    const said = message.slice(0, MAX_READ_CHARS);
    const reason = stringAt(status, 'reason');
    const isOther = answer.status === 404 && !isAbout(status, asked.path);
    return {
      kind: isOther ? 'unreadable' : kindOf(answer.status),
      status: answer.status,
      ...(reason === undefined ? {} : { statusReason: reason }),
      message: said === '' ? words : `${words}: ${said}`,
    };
  }
  const text = isPlain(answer) ? answer.text.slice(0, MAX_READ_CHARS).trim() : '';
  if (isPlain(answer) && SPEAKS_PLAIN.has(answer.status)) {
    return {
      kind: kindOf(answer.status),
      status: answer.status,
      message: text === '' ? words : `${words}: ${text}`,
    };
  }
  if (isUnknownGroup(answer, asked)) {
    // No kind of its own: gateways written in Go answer with the same words.
    const message = `the server could not find the requested resource (${text})`;
    return { kind: 'unreadable', status: answer.status, message };
  }
  return {
    kind: 'unreadable',
    status: answer.status,
    message: `${notKubernetes(answer, asked)}${text === '' ? '' : `: ${text}`}`,
  };
}

/** What a login page, a proxy or a load balancer answers. */
export function notKubernetes(answer: BadAnswer, asked: Asked): string {
  const type = answer.contentType.split(';')[0] || 'no content type';
  const to = answer.redirectHost === undefined ? '' : `, a redirect to ${answer.redirectHost}`;
  return `the server at ${asked.server} did not answer like a Kubernetes API server (${answer.status}, ${type}${to})`;
}

/** One bounded line. */
export function clause(text: string): string {
  return shorten(plainText(text).replace(/\s+/g, ' ').trim(), MAX_MESSAGE_CHARS);
}

/** How an API server answers for an API group or version that it does not know (Go, net/http.NotFound). */
function isUnknownGroup(answer: BadAnswer, { path }: Asked): boolean {
  const isGoNotFound = answer.status === 404 && answer.text.trim() === '404 page not found';
  return isGoNotFound && isPlain(answer) && path.startsWith('/apis/');
}

/** Overload protection and the aggregator answer in plain text, and so do old authorizers. */
const SPEAKS_PLAIN = new Set([401, 403, 429, 500, 502, 503, 504]);

function isPlain(answer: BadAnswer): boolean {
  return answer.text.trim() === '' || answer.contentType.startsWith('text/plain');
}

function statusObject(answer: BadAnswer): JsonObject | undefined {
  let body: Json;
  try {
    body = JSON.parse(answer.text) as Json;
  } catch {
    return undefined;
  }
  return isObject(body) && body['kind'] === 'Status' ? body : undefined;
}

/**
 * Gateways in front of clusters answer with Status objects of their own ("cluster not found"). Only one
 * that names the object asked for says that this object does not exist.
 */
function isAbout(status: JsonObject, path: string): boolean {
  if (stringAt(status, 'reason') !== 'NotFound') return false;
  const name = objectNameIn(path);
  return name === undefined || stringAt(status, 'details', 'name') === name;
}

export function kindOf(status: number): FailureKind {
  if (status === 401) return 'unauthorized';
  if (status === 403) return 'forbidden';
  if (status === 404) return 'not-found';
  if (status === 409) return 'conflict';
  if (status === 429) return 'throttled';
  if (status >= 500) return 'server-error';
  if (status >= 400) return 'invalid';
  return 'unreadable';
}

/** What the server wants us to wait: the header (seconds or a date), else the Status object. */
export function retryAfterMs(
  header: string | undefined,
  text: string,
  nowMs: number,
): number | undefined {
  if (header !== undefined) {
    if (/^\d+$/.test(header)) return Number(header) * 1_000;
    const date = Date.parse(header);
    if (!Number.isNaN(date)) return Math.max(0, date - nowMs);
  }
  const status = statusObject({ status: 0, contentType: '', text });
  const seconds = numberAt(status, 'details', 'retryAfterSeconds');
  return seconds === undefined ? undefined : seconds * 1_000;
}
