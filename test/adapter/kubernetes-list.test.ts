import { expect, test } from 'vitest';
import { stringAt } from '../../src/base/json.ts';
import type { Fold, ListOptions, ListResult } from '../../src/kubernetes/api.ts';
import { type Read, readOk } from '../../src/model/read.ts';
import { statusObject } from '../stub/status-object.ts';
import { connectTo, failureIn, valueIn } from './connect-to.ts';
import { failure, inTurn, json, page, text } from './servers/answers.ts';
import { type Answer, type FakeServer, startServer } from './servers/http-server.ts';

const PATH = '/api/v1/namespaces/demo/configmaps';
const expired = failure(410, 'Expired', 'The provided continue parameter is too old');

async function list(
  answer: Answer,
  options: Partial<ListOptions> = {},
): Promise<{
  end: Read<Pick<ListResult<unknown>, 'complete' | 'remaining'>>;
  names: string[];
  server: FakeServer;
  restarts: number;
}> {
  const server = await startServer(answer);
  const api = await connectTo(server.url);
  let names: string[] = [];
  let restarts = -1;
  const begin = (): Fold<string[]> => {
    restarts++;
    names = [];
    return { add: (item) => names.push(stringAt(item, 'metadata', 'name') ?? '?'), kept: names };
  };
  const end = await api.list(PATH, begin, options);
  if (!end.ok) return { end, names, server, restarts };
  const { kept, ...rest } = end.value;
  expect(kept).toBe(names);
  return { end: readOk(rest), names, server, restarts };
}

function queries(server: FakeServer): string[] {
  return server.requests.map((request) => request.url.replace(PATH, ''));
}

test('follows the pages to the end and asks for 500 at a time', async () => {
  const { end, names, server } = await list(
    inTurn(
      json(page(['a', 'b'], { continue: 'token 1/+' })),
      json(page([], { continue: 't2' })),
      json(page(['c'])),
    ),
  );
  expect(valueIn(end)).toEqual({ complete: true });
  expect(names).toEqual(['a', 'b', 'c']);
  expect(queries(server)).toEqual([
    '?limit=500',
    '?limit=500&continue=token%201%2F%2B',
    '?limit=500&continue=t2',
  ]);
});

test('sends its selectors with every page', async () => {
  const { server } = await list(inTurn(json(page(['a'], { continue: 't' })), json(page([]))), {
    labelSelector: 'app in (a,b)',
    fieldSelector: 'metadata.name=x',
    limit: 1,
  });
  const selectors = 'labelSelector=app%20in%20(a%2Cb)&fieldSelector=metadata.name%3Dx';
  expect(queries(server)).toEqual([`?limit=1&${selectors}`, `?limit=1&continue=t&${selectors}`]);
});

test('an empty list is complete, also when Go wrote it as null', async () => {
  const answer = json({ ...page([]), items: null });
  const { end, names } = await list(answer);
  expect(valueIn(end).complete).toBe(true);
  expect(names).toEqual([]);
});

test('stops after the wanted items, and says how many remain', async () => {
  const answer = json(page(['a', 'b', 'c'], { continue: 't', remainingItemCount: 17 }));
  const { end, names, server } = await list(answer, { maxItems: 2 });
  expect(valueIn(end)).toEqual({ complete: false, remaining: 18 });
  expect(names).toEqual(['a', 'b']);
  expect(queries(server)).toEqual(['?limit=2']);
});

test('is complete when there are exactly as many as wanted', async () => {
  const { end } = await list(json(page(['a', 'b'])), { maxItems: 2 });
  expect(valueIn(end)).toEqual({ complete: true });
});

test('counts without handing anything over', async () => {
  const { end, names, server } = await list(
    json(page(['a'], { continue: 't', remainingItemCount: 6_999 })),
    { maxItems: 0 },
  );
  expect(valueIn(end)).toEqual({ complete: false, remaining: 7_000 });
  expect(names).toEqual([]);
  expect(queries(server)).toEqual(['?limit=1']);
});

test('counts items beyond the limit from a server without pages', async () => {
  const { end } = await list(json(page(['a', 'b', 'c'])), { maxItems: 1 });
  expect(valueIn(end)).toEqual({ complete: false, remaining: 2 });
});

test.each([0, 1])(
  'says nothing about the rest where the server does not know (%i)',
  async (maxItems) => {
    const { end } = await list(json(page(['a'], { continue: 't' })), { maxItems });
    expect(valueIn(end)).toEqual({ complete: false });
  },
);

test('starts again once when the continue token has expired', async () => {
  const { end, names, restarts } = await list(
    inTurn(
      json(page(['old'], { continue: 't1' })),
      expired,
      json(page(['a'], { continue: 't2' })),
      json(page(['b'])),
    ),
  );
  expect(valueIn(end).complete).toBe(true);
  expect(names).toEqual(['a', 'b']);
  expect(restarts).toBe(1);
});

test('gives up when it expires a second time', async () => {
  const first = json(page(['a'], { continue: 't' }));
  const { end, restarts } = await list(inTurn(first, expired, first, expired, first));
  expect(failureIn(end)).toMatchObject({ status: 410 });
  expect(restarts).toBe(1);
});

test('a page that fails makes the list fail, not end', async () => {
  const { end, names } = await list(
    inTurn(json(page(['a'], { continue: 't' })), failure(403, 'Forbidden', 'no more')),
  );
  expect(failureIn(end).kind).toBe('forbidden');
  expect(names).toEqual(['a']);
});

test('a page that fails for a moment is asked for again', async () => {
  const { end, names } = await list(
    inTurn(json(page(['a'], { continue: 't' })), text(503, 'no'), json(page(['b']))),
  );
  expect(end.ok).toBe(true);
  expect(names).toEqual(['a', 'b']);
});

test('asks for metadata only, and takes full objects as well', async () => {
  const { names, server } = await list(json(page(['a'])), { metadataOnly: true });
  expect(names).toEqual(['a']);
  expect(server.requests[0]?.headers.accept).toBe(
    'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json',
  );
});

test('falls back to full objects where metadata only is not acceptable', async () => {
  const { end, server } = await list(
    inTurn(
      failure(406, 'NotAcceptable', 'only the following media types are accepted'),
      json(page(['a'], { continue: 't' })),
      json(page(['b'])),
    ),
    { metadataOnly: true },
  );
  expect(end.ok).toBe(true);
  expect(server.requests.map((request) => request.headers.accept?.length)).toEqual([81, 16, 16]);
});

test.each([
  { what: 'a Status', body: { ...statusObject(200, '', ''), status: 'Success' } },
  { what: 'an object', body: { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'a' } } },
  { what: 'a list whose items are none', body: { ...page([]), items: 'none' } },
  { what: 'a list without items', body: { kind: 'ConfigMapList', apiVersion: 'v1', metadata: {} } },
  { what: 'an array', body: [] },
])('$what is not a list', async ({ body }) => {
  expect(failureIn((await list(json(body))).end).kind).toBe('unreadable');
});

test('a server that repeats the same page is not followed for ever', async () => {
  const { end } = await list(json(page(['a'], { continue: 'same' })));
  expect(failureIn(end).kind).toBe('unreadable');
});
