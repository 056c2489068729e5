import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { WatchEvent, WatchOptions } from '../../src/kubernetes/api.ts';
import { statusObject } from '../stub/status-object.ts';
import { connectTo, failureIn, valueIn } from './connect-to.ts';
import { failure, namespace, text } from './servers/answers.ts';
import { type Answer, startServer } from './servers/http-server.ts';

const PATH = '/api/v1/namespaces';

function event(type: string, object: unknown = namespace('demo')): string {
  return `${JSON.stringify({ type, object })}\n`;
}

function accept(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.flushHeaders();
}

/** Sends these and ends the watch. */
function sending(...parts: (string | Buffer)[]): Answer {
  return (_request, response) => {
    accept(response);
    for (const part of parts) response.write(part);
    response.end();
  };
}

async function watch(answer: Answer, options: Partial<WatchOptions> = {}) {
  const server = await startServer(answer);
  const api = await connectTo(server.url);
  const events: WatchEvent[] = [];
  let opened = 0;
  const end = await api.watch(PATH, {
    ...options,
    onOpen: () => {
      opened++;
      options.onOpen?.();
    },
    onEvent: (received) => {
      events.push(received);
      options.onEvent?.(received);
    },
  });
  return { end, events, opened, server };
}

test('a stream that somebody compressed on the way is opened, although nobody asked for it', async () => {
  const { end, opened } = await watch((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
    response.end(gzipSync(event('DELETED')));
  });
  expect(opened).toBe(1);
  expect(end.ok ? 'closed' : end.failure.kind).toMatch(/closed|unreadable/);
});

test('passes on events until the server closes the watch', async () => {
  const { end, events, opened, server } = await watch(
    sending(event('MODIFIED'), event('BOOKMARK'), event('DELETED')),
    { fieldSelector: 'metadata.name=demo' },
  );
  expect(valueIn(end)).toBeUndefined();
  expect(opened).toBe(1);
  expect(events.map(({ type }) => type)).toEqual(['MODIFIED', 'BOOKMARK', 'DELETED']);
  expect(events[0]?.object).toEqual(namespace('demo'));
  expect(server.requests[0]?.url).toBe(
    `${PATH}?watch=1&allowWatchBookmarks=true&timeoutSeconds=240&fieldSelector=metadata.name%3Ddemo`,
  );
});

test('an event may arrive in parts that split a character', async () => {
  const bytes = Buffer.from(event('ADDED', namespace('größe')));
  const middle = bytes.indexOf('ö') + 1;
  const { events } = await watch((_request, response) => {
    accept(response);
    response.write(bytes.subarray(0, middle));
    setTimeout(() => response.end(bytes.subarray(middle)), 30);
  });
  expect(events[0]?.object).toEqual(namespace('größe'));
});

describe('silence', () => {
  test('is normal: the watch is open with the headers and stays open', async () => {
    const stop = new AbortController();
    const { end, opened, events } = await watch((_request, response) => accept(response), {
      // Far beyond this limit, which is for the headers alone.
      timeoutMs: 400,
      signal: stop.signal,
      onOpen: () => setTimeout(() => stop.abort(), 700),
    });
    expect(valueIn(end)).toBeUndefined();
    expect(opened).toBe(1);
    expect(events).toEqual([]);
  });

  test('before the headers is a timeout', async () => {
    const { end, opened } = await watch(() => undefined, { timeoutMs: 60 });
    expect(failureIn(end).kind).toBe('timeout');
    expect(opened).toBe(0);
  });
});

test('an error event ends the watch', async () => {
  const status = statusObject(500, 'InternalError', 'etcd event received with PrevKv=nil');
  const { end, events } = await watch(sending(event('ERROR', status), event('ADDED')));
  expect(valueIn(end)).toBeUndefined();
  expect(events.map(({ type }) => type)).toEqual(['ERROR']);
});

test.each<{ what: string; answer: Answer; kind: string }>([
  { what: '403', answer: failure(403, 'Forbidden', 'cannot watch'), kind: 'forbidden' },
  { what: '401', answer: failure(401, 'Unauthorized', 'Unauthorized'), kind: 'unauthorized' },
  { what: '429', answer: text(429, 'storage is (re)initializing'), kind: 'throttled' },
  { what: 'HTML', answer: text(200, '<html>', 'text/html'), kind: 'unreadable' },
  { what: 'lines that are no events', answer: sending('hello\n'), kind: 'unreadable' },
  { what: 'an event without an object', answer: sending('{"type":"ADDED"}\n'), kind: 'unreadable' },
])('$what is a failure, and is not repeated', async ({ answer, kind }) => {
  const { end, server } = await watch(answer);
  expect(failureIn(end).kind).toBe(kind);
  expect(server.requests).toHaveLength(1);
});

test('a connection that breaks closes the watch', async () => {
  const { end, events } = await watch((_request, response) => {
    accept(response);
    response.write(event('ADDED') + event('MODIFIED').slice(0, 20), () => response.destroy());
  });
  expect(valueIn(end)).toBeUndefined();
  expect(events).toHaveLength(1);
});

test('no event is passed on after the signal aborted', async () => {
  const stop = new AbortController();
  const { end, events } = await watch(sending(event('ADDED') + event('MODIFIED')), {
    signal: stop.signal,
    onEvent: () => stop.abort(),
  });
  expect(valueIn(end)).toBeUndefined();
  expect(events).toHaveLength(1);
});
