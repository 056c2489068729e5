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
              // No path can name the last one.
              resources: ['entries', 'pages', '..'].map((one) => aggregatedResource(one, 'Page')),
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

  test.each(['/api', '/apis'])('%s that fails makes the discovery fail', async (path) => {
    const documents = { '/api': core, '/apis': aggregated() };
    const { read } = await discover(
      serving({ ...documents, [path]: failure(403, 'Forbidden', 'forbidden: User "x"') }),
    );
    expect(failureIn(read).kind).toBe('forbidden');
  });
});

test('a server older than Kubernetes 1.26 is refused with a sentence', async () => {
  const { read, server } = await discover(
    serving({
      '/api': { kind: 'APIVersions', versions: ['v1'] },
      '/apis': { kind: 'APIGroupList', apiVersion: 'v1', groups: [] },
    }),
  );
  expect(failureIn(read)).toEqual({
    kind: 'unreadable',
    message: expect.stringContaining('Kubernetes 1.26 or later is needed'),
  });
  expect(server.requests).toHaveLength(2);
});
