import type { Json, JsonObject } from '../../src/base/json.ts';
import { ADMIN_TOKEN, type ApiServer } from './api-server.ts';

export interface Answer {
  status: number;
  headers: Headers;
  /** An empty object if the body is not JSON. */
  body: JsonObject;
  text: string;
}

interface Asking {
  body?: Json;
  contentType?: string;
  accept?: string;
  token?: string;
}

/** Sends one request without any client of the gate: here the stub itself is under test. */
export async function ask(
  server: ApiServer,
  method: string,
  path: string,
  options: Asking = {},
): Promise<Answer> {
  const response = await fetch(server.url + path, {
    method,
    headers: {
      Authorization: `Bearer ${options.token ?? ADMIN_TOKEN}`,
      Accept: options.accept ?? 'application/json',
      'Content-Type': options.contentType ?? 'application/json',
    },
    ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get('Content-Type')?.startsWith('application/json') ?? false;
  const body = isJson ? (JSON.parse(text) as JsonObject) : {};
  return { status: response.status, headers: response.headers, body, text };
}

/** Opens a watch and returns its events one by one; `undefined` when it has ended. */
export async function watch(
  server: ApiServer,
  path: string,
): Promise<() => Promise<JsonObject | undefined>> {
  const headers = { Authorization: `Bearer ${ADMIN_TOKEN}` };
  const response = await fetch(server.url + path, { headers });
  const lines: string[] = [];
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  return async () => {
    while (lines.length === 0) {
      const chunk = await reader?.read();
      if (chunk?.value === undefined) return undefined;
      const parts = (rest + chunk.value).split('\n');
      rest = parts.pop() ?? '';
      lines.push(...parts);
    }
    return JSON.parse(lines.shift() ?? '') as JsonObject;
  };
}
