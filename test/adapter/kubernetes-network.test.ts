import { describe, expect, test } from 'vitest';
import { connectTo, failureIn, valueIn } from './connect-to.ts';
import { json, namespace } from './servers/answers.ts';
import { startServer } from './servers/http-server.ts';
import { startRawServer } from './servers/raw-server.ts';

const PATH = '/api/v1/namespaces/demo';
const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n';

describe('a network that fails', () => {
  test('a single connection reset is invisible to the caller', async () => {
    const body = JSON.stringify(namespace('demo'));
    const server = await startRawServer((socket, _request, index) => {
      if (index === 0) socket.resetAndDestroy();
      else socket.end(`${HEAD}Content-Length: ${body.length}\r\n\r\n${body}`);
    });
    expect(valueIn(await (await connectTo(server.url)).get(PATH))).toEqual(namespace('demo'));
  });

  test.each([
    { how: 'Content-Length', end: 'Content-Length: 500\r\n\r\n{"kind":' },
    { how: 'chunks', end: 'Transfer-Encoding: chunked\r\n\r\n8\r\n{"kind":\r\n' },
  ])('closed in the middle of a body with $how', async ({ end }) => {
    const server = await startRawServer((socket) => socket.end(HEAD + end));
    const result = failureIn(await (await connectTo(server.url)).get(PATH));
    expect(result).toEqual({
      kind: 'network',
      message: 'the connection was closed before the answer was complete',
    });
  });

  test('a mutation that gets no answer is not repeated', async () => {
    const server = await startRawServer((socket) => socket.resetAndDestroy());
    const api = await connectTo(server.url);
    const result = await api.send({ method: 'POST', path: '/api/v1/namespaces', body: {} });
    expect(failureIn(result).kind).toBe('network');
    expect(server.connections).toBe(1);
  });
});

describe('time limits', () => {
  test('a server that never answers ends the call, which is not repeated', async () => {
    const server = await startRawServer(() => undefined);
    const api = await connectTo(server.url);
    expect(failureIn(await api.get(PATH, { timeoutMs: 60 }))).toEqual({
      kind: 'timeout',
      message: 'no answer within 0.06 s',
    });
    expect(server.connections).toBe(1);
  });

  test('the signal of the run ends a call', async () => {
    const stop = new AbortController();
    const server = await startRawServer(() => stop.abort());
    const api = await connectTo(server.url);
    expect(failureIn(await api.get(PATH, { signal: stop.signal })).kind).toBe('aborted');
  });

  test('nothing is sent if the signal has aborted before', async () => {
    const server = await startServer(json(namespace('demo')));
    const api = await connectTo(server.url);
    const result = await api.get(PATH, { signal: AbortSignal.abort() });
    expect(failureIn(result).kind).toBe('aborted');
    expect(server.requests).toHaveLength(0);
  });

  test('closing ends running requests', async () => {
    const server = await startRawServer(() => void api.close());
    const api = await connectTo(server.url);
    expect(failureIn(await api.get(PATH)).kind).toBe('aborted');
    expect(failureIn(await api.get(PATH)).kind).toBe('aborted');
  });
});

test('a call ends within its limit while its connection is still being opened', async () => {
  // A proxy that takes the connection and says nothing.
  const proxy = await startRawServer(() => undefined);
  const api = await connectTo('https://kubernetes.test', { cluster: { 'proxy-url': proxy.url } });
  expect(failureIn(await api.get(PATH, { timeoutMs: 60 })).kind).toBe('timeout');
  const stop = new AbortController();
  const call = api.get(PATH, { signal: stop.signal });
  stop.abort();
  expect(failureIn(await call).kind).toBe('aborted');
});

describe('connections', () => {
  test('sixty calls share eight of them', async () => {
    const server = await startServer((request, response) => {
      setTimeout(() => json(namespace('demo'))(request, response, 0), 5);
    });
    const api = await connectTo(server.url);
    const answers = await Promise.all(Array.from({ length: 60 }, () => api.get(PATH)));
    expect(answers.filter((answer) => answer.ok)).toHaveLength(60);
    expect(server.connections).toBe(8);
  });
});
