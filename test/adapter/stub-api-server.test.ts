import { describe, expect, test } from 'vitest';
import { arrayAt, type Json, type JsonObject, numberAt, stringAt } from '../../src/base/json.ts';
import type { ApiServer, ApiServerOptions } from '../stub/api-server.ts';
import { ask } from '../stub/ask.ts';
import type { Recording } from '../stub/recording.ts';
import { readRecording, recordedAt } from '../stub/recordings.ts';
import { serveCluster } from '../stub/serve.ts';

const NAMESPACE = '/api/v1/namespaces/preview-pr-42';
const WIDGET = '/apis/example.com/v1/namespaces/preview-pr-42/widgets/db';
const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
const METADATA =
  'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json';

const recording = readRecording('S4-queued');
const serve = (options: Partial<ApiServerOptions> = {}): Promise<ApiServer> =>
  serveCluster({ recording, ...options });

const uidOf = (object: Json | undefined): string | undefined => stringAt(object, 'metadata', 'uid');
const nameOf = (object: Json | undefined): string | undefined =>
  stringAt(object, 'metadata', 'name');

describe('reading', () => {
  test('answers discovery word for word as recorded', async () => {
    const server = await serve();
    const { aggregated, legacy } = recording.discovery;

    const apis = await ask(server, 'GET', '/apis', { accept: `${AGGREGATED},application/json` });

    expect(apis.headers.get('Content-Type')).toBe(AGGREGATED);
    expect(apis.body).toEqual(aggregated['/apis']?.body);
    for (const path of ['/api', '/apis', '/api/v1', '/apis/apps/v1']) {
      expect((await ask(server, 'GET', path)).body).toEqual(legacy[path]?.body);
    }
    expect((await ask(server, 'GET', '/version')).body).toEqual(recording.version);
  });

  test('knows only the plain form of discovery when it plays an old server', async () => {
    const server = await serve({ plainDiscovery: true });

    const apis = await ask(server, 'GET', '/apis', { accept: `${AGGREGATED},application/json` });

    expect(apis.body['kind']).toBe('APIGroupList');
    expect((await ask(server, 'GET', '/apis', { accept: AGGREGATED })).status).toBe(406);
  });

  test('serves an object as recorded, with its type, by the clock of the recording', async () => {
    const server = await serve();

    const widget = await ask(server, 'GET', WIDGET);

    const recorded = recording.collections.find(({ kind }) => kind === 'Widget')?.objects[0];
    expect(widget.body).toEqual({ apiVersion: 'example.com/v1', kind: 'Widget', ...recorded });
    const behindMs =
      Date.parse(widget.headers.get('Date') ?? '') - Date.parse(recording.recordedAt);
    expect(Math.abs(behindMs)).toBeLessThan(10_000);
  });

  test('serves the same cluster at another time, every age as it was', () => {
    const later = new Date(Date.parse(recording.recordedAt) + 86_400_000);
    const moved = recordedAt(recording, later);
    const widget = (from: Recording): JsonObject | undefined =>
      from.collections.find(({ kind }) => kind === 'Widget')?.objects[0];
    const deletedAt = (from: Recording): number =>
      Date.parse(stringAt(widget(from), 'metadata', 'deletionTimestamp') ?? '');

    expect(deletedAt(moved) - deletedAt(recording)).toBe(86_400_000);
    expect(uidOf(widget(moved))).toBe(uidOf(widget(recording)));
    expect(moved.discovery).toEqual(recording.discovery);
  });

  test('says in the words of the server that something does not exist', async () => {
    const server = await serve();

    expect((await ask(server, 'GET', '/api/v1/namespaces/nope')).body).toMatchObject({
      kind: 'Status',
      message: 'namespaces "nope" not found',
      reason: 'NotFound',
      details: { name: 'nope', kind: 'namespaces' },
      code: 404,
    });
    expect((await ask(server, 'GET', `${WIDGET}x`)).body).toMatchObject({
      message: 'widgets.example.com "dbx" not found',
      details: { name: 'dbx', group: 'example.com', kind: 'widgets' },
    });
    expect((await ask(server, 'GET', '/api/v1/nopes')).body).toMatchObject({
      message: 'the server could not find the requested resource',
    });
    const group = await ask(server, 'GET', '/apis/nope.io/v1/things');
    expect([group.status, group.text]).toEqual([404, '404 page not found\n']);
  });

  test('cuts a list into pages of the state at its beginning', async () => {
    const server = await serve();
    const all = await ask(server, 'GET', '/api/v1/configmaps', { accept: METADATA });
    const names: (string | undefined)[] = [];
    let next = '';
    for (;;) {
      const path = `/api/v1/configmaps?limit=2&continue=${next}`;
      const { body } = await ask(server, 'GET', path, { accept: METADATA });
      names.push(...arrayAt(body, 'items').map(nameOf));
      next = stringAt(body, 'metadata', 'continue') ?? '';
      const left = arrayAt(all.body, 'items').length - names.length;
      expect(numberAt(body, 'metadata', 'remainingItemCount') ?? 0).toBe(left);
      if (next === '') break;
      server.mutate((cluster) => cluster.removeNamespace('preview-pr-42'));
    }

    expect(all.body).toMatchObject({ kind: 'PartialObjectMetadataList' });
    expect(names.length).toBeGreaterThan(4);
    expect(names).toEqual(arrayAt(all.body, 'items').map(nameOf));
  });

  test('answers 410 to a continue token after compaction, and goes on from the one it offers', async () => {
    const server = await serve();
    const first = await ask(server, 'GET', '/api/v1/namespaces?limit=1');
    server.mutate((cluster) => cluster.lists.expireTokens());

    const token = stringAt(first.body, 'metadata', 'continue');
    const expired = await ask(server, 'GET', `/api/v1/namespaces?limit=1&continue=${token}`);
    const fresh = stringAt(expired.body, 'metadata', 'continue');
    const rest = await ask(server, 'GET', `/api/v1/namespaces?continue=${fresh}`);

    expect(expired.body).toMatchObject({ code: 410, reason: 'Expired' });
    const all = await ask(server, 'GET', '/api/v1/namespaces');
    expect(arrayAt(rest.body, 'items')).toEqual(arrayAt(all.body, 'items').slice(1));
  });

  test.each([
    { selector: 'fieldSelector=metadata.name%3Dpreview-pr-42', names: ['preview-pr-42'] },
    { selector: 'labelSelector=kubernetes.io/metadata.name%3Ddefault', names: ['default'] },
    {
      selector: 'labelSelector=kubernetes.io/metadata.name+in+(default,kube-public),!x',
      names: ['default', 'kube-public'],
    },
    { selector: 'labelSelector=nobody+has+this', status: 400 },
    { selector: 'fieldSelector=spec.x%3D1', status: 400 },
  ])('selects namespaces by $selector', async ({ selector, names, status = 200 }) => {
    const server = await serve();

    const answer = await ask(server, 'GET', `/api/v1/namespaces?${selector}`);

    expect(answer.status).toBe(status);
    if (names !== undefined) expect(arrayAt(answer.body, 'items').map(nameOf)).toEqual(names);
  });

  test('serves an API group as dead as recorded, until its APIService is removed', async () => {
    const server = await serve({ recording: readRecording('S7') });
    const [prefix = ''] = server.mutate(({ catalogue }) => catalogue.faults());

    const dead = await ask(server, 'GET', `${prefix}/things`);
    expect([dead.status, dead.text]).toEqual([503, 'service unavailable\n']);

    const [, , group, version] = prefix.split('/');
    server.mutate((cluster) => cluster.removeApiService(`${version}.${group}`));
    expect((await ask(server, 'GET', prefix)).status).toBe(404);
    const apis = await ask(server, 'GET', '/apis', { accept: AGGREGATED });
    expect(arrayAt(apis.body, 'items').map(nameOf)).not.toContain(group);
  });
});

describe('who may do what', () => {
  const tokens = {
    reader: {
      username: 'system:serviceaccount:ci:reader',
      rules: [{ apiGroups: [''], resources: ['namespaces'], verbs: ['get'] }],
    },
  };

  test('refuses an unknown token with 401', async () => {
    const answer = await ask(await serve(), 'GET', NAMESPACE, { token: 'wrong' });

    expect(answer.status).toBe(401);
    expect(answer.body).toMatchObject({ message: 'Unauthorized', reason: 'Unauthorized' });
  });

  test.each([
    {
      path: '/apis/example.com/v1/namespaces/preview-pr-42/widgets',
      message:
        'widgets.example.com is forbidden: User "system:serviceaccount:ci:reader" cannot list resource "widgets" in API group "example.com" in the namespace "preview-pr-42"',
    },
    {
      path: '/api/v1/namespaces?watch=1&fieldSelector=metadata.name%3Dx',
      message:
        'namespaces "x" is forbidden: User "system:serviceaccount:ci:reader" cannot watch resource "namespaces" in API group "" at the cluster scope',
    },
  ])('refuses $path with 403', async ({ path, message }) => {
    const answer = await ask(await serve({ tokens }), 'GET', path, { token: 'reader' });

    expect(answer.body).toMatchObject({ message, reason: 'Forbidden', code: 403 });
  });

  test('reviews the access of the one who asks', async () => {
    const server = await serve({ tokens });
    const review = async (verb: string, resource: string): Promise<Json | undefined> => {
      const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
      const body = { spec: { resourceAttributes: { verb, resource } } };
      return (await ask(server, 'POST', path, { token: 'reader', body })).body['status'];
    };

    expect(await review('get', 'namespaces')).toEqual({ allowed: true });
    expect(await review('list', 'pods')).toEqual({ allowed: false });
  });
});
