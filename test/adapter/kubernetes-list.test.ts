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
  end: Read<Pick<ListResult<unknown>, 'complete'>>;
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

/** A page of the object `a` that names a next page. */
const first = json(page(['a'], { continue: 't' }));
const selectors = 'labelSelector=app%20in%20(a%2Cb)&fieldSelector=metadata.name%3Dx';

test.each<{
  what: string;
  answers: Answer[];
  options?: Partial<ListOptions>;
  /** What is returned beside the items; a kind of failure, or its status. */
  end: { complete: boolean } | { kind: string } | { status: number };
  names: string[];
  queries?: string[];
  restarts?: number;
}>([
  {
    what: 'reads all pages, 500 objects each',
    answers: [
      json(page(['a', 'b'], { continue: 'token 1/+' })),
      json(page([], { continue: 't2' })),
      json(page(['c'])),
    ],
    end: { complete: true },
    names: ['a', 'b', 'c'],
    queries: ['?limit=500', '?limit=500&continue=token%201%2F%2B', '?limit=500&continue=t2'],
  },
  {
    what: 'sends its selectors with every page',
    answers: [first, json(page([]))],
    options: { labelSelector: 'app in (a,b)', fieldSelector: 'metadata.name=x', limit: 1 },
    end: { complete: true },
    names: ['a'],
    queries: [`?limit=1&${selectors}`, `?limit=1&continue=t&${selectors}`],
  },
  {
    what: 'accepts an empty list that Go wrote as null',
    answers: [json({ ...page([]), items: null })],
    end: { complete: true },
    names: [],
  },
  {
    what: 'stops after maxItems',
    answers: [json(page(['a', 'b', 'c'], { continue: 't' }))],
    options: { maxItems: 2 },
    end: { complete: false },
    names: ['a', 'b'],
    queries: ['?limit=2'],
  },
  {
    what: 'is complete with exactly maxItems objects',
    answers: [json(page(['a', 'b']))],
    options: { maxItems: 2 },
    end: { complete: true },
    names: ['a', 'b'],
  },
  {
    what: 'is not complete if the server ignores the limit',
    answers: [json(page(['a', 'b', 'c']))],
    options: { maxItems: 1 },
    end: { complete: false },
    names: ['a'],
  },
  {
    what: 'starts again once if the continue token has expired',
    answers: [
      json(page(['old'], { continue: 't1' })),
      expired,
      json(page(['a'], { continue: 't2' })),
      json(page(['b'])),
    ],
    end: { complete: true },
    names: ['a', 'b'],
    restarts: 1,
  },
  {
    what: 'fails if the continue token expires a second time',
    answers: [first, expired, first, expired, first],
    end: { status: 410 },
    names: ['a'],
    restarts: 1,
  },
  {
    what: 'fails if a page fails',
    answers: [first, failure(403, 'Forbidden', 'no more')],
    end: { kind: 'forbidden' },
    names: ['a'],
  },
  {
    what: 'requests a page again after a server error',
    answers: [first, text(503, 'no'), json(page(['b']))],
    end: { complete: true },
    names: ['a', 'b'],
  },
  {
    what: 'fails if the server sends the same page again and again',
    answers: [json(page(['a'], { continue: 'same' }))],
    end: { kind: 'unreadable' },
    names: ['a', 'a'],
  },
])('a list $what', async ({ answers, options, end, names, queries: asked, restarts = 0 }) => {
  const seen = await list(inTurn(...answers), options);
  if ('complete' in end) expect(valueIn(seen.end)).toEqual(end);
  else expect(failureIn(seen.end)).toMatchObject(end);
  expect(seen.names).toEqual(names);
  expect(seen.restarts).toBe(restarts);
  if (asked !== undefined) expect(queries(seen.server)).toEqual(asked);
});

test('a list of metadata accepts full objects', async () => {
  const { names, server } = await list(json(page(['a'])), { metadataOnly: true });
  expect(names).toEqual(['a']);
  expect(server.requests[0]?.headers.accept).toBe(
    'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json',
  );
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
