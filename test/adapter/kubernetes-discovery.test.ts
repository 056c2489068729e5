import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import type { Read } from '../../src/model/read.ts';
import type { Discovery } from '../../src/model/snapshot.ts';
import { statusObject } from '../stub/status-object.ts';
import { connectTo, failureIn, valueIn } from './connect-to.ts';
import { failure, sendJson } from './servers/answers.ts';
import { type Answer, type FakeServer, startServer } from './servers/http-server.ts';

const VERBS = ['delete', 'list'];

function aggregatedResource(resource: string, kind: string, more: JsonObject = {}): JsonObject {
  return {
    resource,
    responseKind: { group: '', version: '', kind },
    scope: 'Namespaced',
    singularResource: kind.toLowerCase(),
    verbs: VERBS,
    ...more,
  };
}

function aggregated(...items: JsonObject[]): JsonObject {
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: 'apidiscovery.k8s.io/v2',
    metadata: {},
    items,
  };
}

function group(name: string, ...versions: JsonObject[]): JsonObject {
  return { metadata: { name, creationTimestamp: null }, versions };
}

/** Answers by path; what is not there is a 404 as kube-apiserver writes it. */
function serving(documents: Record<string, JsonObject | Answer>): Answer {
  return (request, response, index) => {
    const found = documents[request.url];
    if (typeof found === 'function') return found(request, response, index);
    if (found !== undefined) return sendJson(response, found);
    sendJson(response, statusObject(404, 'NotFound', `no ${request.url}`), 404);
  };
}

async function discover(answer: Answer): Promise<{ read: Read<Discovery>; server: FakeServer }> {
  const server = await startServer(answer);
  const api = await connectTo(server.url);
  return { read: await api.discover(), server };
}

const names = (discovery: Discovery): string[] =>
  discovery.types.map((type) => `${type.resource}.${type.version}.${type.group}`);

describe('the aggregated documents', () => {
  const core = aggregated(
    group('', {
      version: 'v1',
      freshness: 'Current',
      resources: [
        aggregatedResource('namespaces', 'Namespace', { scope: 'Cluster' }),
        aggregatedResource('pods', 'Pod', {
          subresources: [{ subresource: 'status', responseKind: { kind: 'Pod' }, verbs: ['get'] }],
        }),
      ],
    }),
  );

  test('take two requests, with the types in their preferred version and no subresources', async () => {
    const { read, server } = await discover(
      serving({
        '/api': core,
        '/apis': aggregated(
          group(
            'ledger.example.com',
            { version: 'v2', resources: [aggregatedResource('entries', 'Entry')] },
            {
              version: 'v1',
              resources: [
                aggregatedResource('entries', 'Entry'),
                aggregatedResource('pages', 'Page'),
              ],
            },
          ),
        ),
      }),
    );
    const ledger = { group: 'ledger.example.com', namespaced: true };
    expect(valueIn(read)).toEqual({
      failedGroups: [],
      types: [
        { group: '', version: 'v1', resource: 'namespaces', kind: 'Namespace', namespaced: false },
        { group: '', version: 'v1', resource: 'pods', kind: 'Pod', namespaced: true },
        { ...ledger, version: 'v2', resource: 'entries', kind: 'Entry' },
        { ...ledger, version: 'v1', resource: 'pages', kind: 'Page' },
      ].map((type) => ({ ...type, verbs: VERBS })),
    });
    expect(server.requests.map(({ url }) => url).sort()).toEqual(['/api', '/apis']);
    expect(server.requests[0]?.headers.accept).toBe(
      'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,' +
        'application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json',
    );
  });

  test('name stale versions as failed, and the next version is preferred', async () => {
    const entries = [aggregatedResource('entries', 'Entry')];
    const { read } = await discover(
      serving({
        '/api': core,
        '/apis': aggregated(
          group(
            'ledger.example.com',
            { version: 'v2', freshness: 'Stale', resources: entries },
            { version: 'v1', freshness: 'Current', resources: entries },
          ),
          group('metrics.k8s.io', { version: 'v1beta1', freshness: 'Stale' }),
        ),
      }),
    );
    const discovery = valueIn(read);
    expect(discovery.failedGroups).toEqual([
      {
        group: 'ledger.example.com',
        version: 'v2',
        reason: 'the API server has only an old list of its types (freshness: Stale)',
      },
      {
        group: 'metrics.k8s.io',
        version: 'v1beta1',
        reason: 'the API server has only an old list of its types (freshness: Stale)',
      },
    ]);
    expect(names(discovery)).toContain('entries.v1.ledger.example.com');
  });

  test('omit resources without a kind, as client-go does', async () => {
    const { read } = await discover(
      serving({
        '/api': core,
        '/apis': aggregated(
          group('odd.example.com', {
            version: 'v1',
            resources: [{ resource: 'parents', scope: 'Namespaced', verbs: [] }],
          }),
        ),
      }),
    );
    expect(names(valueIn(read))).toEqual(['namespaces.v1.', 'pods.v1.']);
  });

  test.each(['/api', '/apis'])('%s that fails makes the discovery fail', async (path) => {
    const documents = { '/api': core, '/apis': aggregated() };
    const { read } = await discover(
      serving({ ...documents, [path]: failure(403, 'Forbidden', 'forbidden: User "x"') }),
    );
    expect(failureIn(read).kind).toBe('forbidden');
  });
});

describe('a server without aggregated documents', () => {
  const resources = (groupVersion: string, ...list: JsonObject[]): JsonObject => ({
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion,
    resources: list,
  });
  const resource = (name: string, kind: string, namespaced = true): JsonObject => ({
    name,
    singularName: '',
    namespaced,
    kind,
    verbs: VERBS,
  });
  const documents: Record<string, JsonObject | Answer> = {
    '/api': { kind: 'APIVersions', versions: ['v1'] },
    '/api/v1': resources(
      'v1',
      resource('namespaces', 'Namespace', false),
      resource('pods', 'Pod'),
      resource('pods/status', 'Pod'),
    ),
    '/apis': {
      kind: 'APIGroupList',
      apiVersion: 'v1',
      groups: [
        {
          name: 'ledger.example.com',
          versions: [
            { groupVersion: 'ledger.example.com/v1', version: 'v1' },
            { groupVersion: 'ledger.example.com/v2', version: 'v2' },
          ],
          preferredVersion: { groupVersion: 'ledger.example.com/v2', version: 'v2' },
        },
      ],
    },
    '/apis/ledger.example.com/v1': resources(
      'ledger.example.com/v1',
      resource('entries', 'Entry'),
      resource('pages', 'Page'),
    ),
    '/apis/ledger.example.com/v2': resources('ledger.example.com/v2', resource('entries', 'Entry')),
  };

  test('is asked for each group-version', async () => {
    const { read } = await discover(serving(documents));
    const discovery = valueIn(read);
    expect(discovery.failedGroups).toEqual([]);
    expect(names(discovery)).toEqual([
      'namespaces.v1.',
      'pods.v1.',
      'entries.v2.ledger.example.com',
      'pages.v1.ledger.example.com',
    ]);
    expect(discovery.types[0]?.namespaced).toBe(false);
  });

  test('names the group-versions that fail, with the error of the server', async () => {
    const { read } = await discover(
      serving({
        ...documents,
        '/apis/ledger.example.com/v2': (_request, response) => {
          response.writeHead(503, { 'content-type': 'text/plain' });
          response.end('service unavailable\n');
        },
      }),
    );
    const discovery = valueIn(read);
    expect(discovery.failedGroups).toEqual([
      {
        group: 'ledger.example.com',
        version: 'v2',
        reason: '503 Service Unavailable: service unavailable',
      },
    ]);
    // What can be read is still there, in the version that can be read.
    expect(names(discovery)).toContain('entries.v1.ledger.example.com');
  });

  test('a document of another kind is a failed group, not an empty one', async () => {
    const { read } = await discover(
      serving({ ...documents, '/apis/ledger.example.com/v1': { kind: 'Whatever' } }),
    );
    expect(valueIn(read).failedGroups).toMatchObject([{ version: 'v1' }]);
  });
});
