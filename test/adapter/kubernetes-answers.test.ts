import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { expectPairs } from '../stub/pairs.ts';
import { connectTo, failureIn, TestClock, valueIn } from './connect-to.ts';
import { failure, inTurn, json, namespace, text } from './servers/answers.ts';
import { startServer } from './servers/http-server.ts';

const PATH = '/api/v1/namespaces/demo';

describe('an unsuccessful answer', () => {
  test('is classified, and requested again if that may help', () =>
    expectPairs('answers.txt', async (line) => {
      const { status, reason, message, details, text: body, type, json: value } = JSON.parse(line);
      const server = await startServer(
        reason !== undefined
          ? failure(status, reason, message, details)
          : value !== undefined
            ? json(value, status)
            : text(status, body, type),
      );
      const api = await connectTo(server.url);
      const result = failureIn(await api.get(PATH));
      const told = result.message.replaceAll(server.url, 'SERVER');
      return [result.kind, told, `${server.requests.length} requests`];
    }));

  test('a redirect is reported, not followed, and its query is not shown', async () => {
    const login = 'https://login.example.com/start?state=abc123secret';
    const server = await startServer(text(302, '', 'text/html', { location: login }));
    const api = await connectTo(server.url, { user: { token: 'token-of-the-test' } });
    const result = failureIn(await api.get(PATH));
    expect(result.kind).toBe('unreadable');
    expect(result.message).toBe(
      `the server at ${server.url} did not answer like a Kubernetes API server (302, text/html, a redirect to login.example.com)`,
    );
    expect(server.requests).toHaveLength(1);
  });

  test('a secret in the answer is masked in the message, wherever the message is cut', async () => {
    const token = 'kube-token-0123456789abcdefghij';
    for (const before of [0, 440, 460, 480, 490]) {
      const server = await startServer(
        failure(
          403,
          'Forbidden',
          `${'x '.repeat(before / 2)}${token} is not allowed; Bearer ${token}`,
        ),
      );
      const api = await connectTo(server.url, { user: { token } });
      const { message } = failureIn(await api.get(PATH));
      expect(message).not.toContain(token.slice(0, 10));
    }
  });
});

describe('repeating a GET', () => {
  test('a server error that ends is invisible to the caller', async () => {
    const server = await startServer(
      inTurn(
        text(503, 'no'),
        failure(500, 'InternalError', 'etcd leader changed'),
        json(namespace('demo')),
      ),
    );
    const api = await connectTo(server.url);
    expect(valueIn(await api.get(PATH))).toEqual(namespace('demo'));
    expect(server.requests).toHaveLength(3);
  });

  test('Retry-After is honoured, in the header and in the Status', async () => {
    const clock = new TestClock();
    const server = await startServer(
      inTurn(
        text(429, 'later', 'text/plain', { 'retry-after': '7' }),
        failure(429, 'TooManyRequests', 'later', { retryAfterSeconds: 9 }),
        json(namespace('demo')),
      ),
    );
    const api = await connectTo(server.url, { options: { clock } });
    valueIn(await api.get(PATH));
    expect(clock.slept[0]).toBe(7_000);
    expect(clock.slept[1]).toBe(9_000);
  });

  test('a mutation is not sent again after a server error', async () => {
    const server = await startServer(text(503, 'no'));
    const api = await connectTo(server.url);
    const result = await api.send({ method: 'DELETE', path: PATH });
    expect(failureIn(result).kind).toBe('server-error');
    expect(server.requests).toHaveLength(1);
  });

  test('a mutation that was refused with 429 is sent again', async () => {
    const server = await startServer(
      inTurn(text(429, 'Too many requests'), json(namespace('demo'))),
    );
    const api = await connectTo(server.url);
    expect((await api.send({ method: 'DELETE', path: PATH })).ok).toBe(true);
    expect(server.requests).toHaveLength(2);
  });
});

describe('a mutation', () => {
  test('carries its body, type and dry run', async () => {
    const server = await startServer(json(namespace('demo')));
    const api = await connectTo(server.url);
    const body = [{ op: 'test', path: '/metadata/uid', value: 'uid-1' }];
    valueIn(await api.send({ method: 'PATCH', path: PATH, body, dryRun: true }));
    expect(server.requests[0]).toMatchObject({
      method: 'PATCH',
      url: `${PATH}?dryRun=All`,
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json-patch+json' },
    });
  });

  // Otherwise the API server, which reads the options of a DELETE from its body, would delete.
  test('has the dry run of a DELETE in its body', async () => {
    const server = await startServer(json(namespace('demo')));
    const api = await connectTo(server.url);
    const preconditions = { uid: 'uid-1' };
    const options = { method: 'DELETE', path: PATH, body: { preconditions } } as const;
    for (const dryRun of [true, false]) valueIn(await api.send({ ...options, dryRun }));
    const bodies = server.requests.map(({ body }) => JSON.parse(body));
    expect(bodies).toEqual([{ preconditions, dryRun: ['All'] }, { preconditions }]);
  });
});

test('compressed answers are read', async () => {
  const server = await startServer((request, response) => {
    expect(request.headers['accept-encoding']).toBe('gzip');
    response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
    response.end(gzipSync(JSON.stringify(namespace('demo'))));
  });
  expect(valueIn(await (await connectTo(server.url)).get(PATH))).toEqual(namespace('demo'));
});

test.each([
  ['plain', {}, 'x'.repeat(3_000), /larger than/],
  ['compressed', { 'content-encoding': 'gzip' }, gzipSync('x'.repeat(3_000)), /larger than/],
  ['cut off', { 'content-encoding': 'gzip' }, gzipSync('x'.repeat(900)).subarray(0, 20), /closed/],
  ['not what it says', { 'content-encoding': 'gzip' }, 'x'.repeat(900), /damaged/],
])('an answer that is too large or damaged is none: %s', async (_, headers, body, reason) => {
  const server = await startServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/plain', ...headers }).end(body);
  });
  const got = await (await connectTo(server.url)).text('/log', { maxBytes: 2_000 });
  expect(failureIn(got).message).toMatch(reason);
});

test('the clock of the server is known from its answers', async () => {
  const clock = new TestClock();
  const date = new Date(clock.now() - 90_000).toUTCString();
  // A proxy in between may add its own.
  const server = await startServer((_request, response) => {
    response.writeHead(200, ['content-type', 'application/json', 'date', date, 'date', date]);
    response.end(JSON.stringify(namespace('demo')));
  });
  const api = await connectTo(server.url, { options: { clock } });
  expect(api.clockOffsetMs()).toBe(0);
  await api.get(PATH);
  expect(api.clockOffsetMs()).toBeLessThan(-88_000);
  expect(api.clockOffsetMs()).toBeGreaterThan(-93_000);
});
