import { describe, expect, test } from 'vitest';
import { type Json, stringAt } from '../../src/base/json.ts';
import type { ApiServer, ApiServerOptions } from '../stub/api-server.ts';
import { type Answer, ask, watch } from '../stub/ask.ts';
import { readRecording } from '../stub/recordings.ts';
import { serveCluster } from '../stub/serve.ts';

const NAMESPACE = '/api/v1/namespaces/preview-pr-42';
const WIDGET = '/apis/example.com/v1/namespaces/preview-pr-42/widgets/db';
const JSON_PATCH = 'application/json-patch+json';

const recording = readRecording('S4-queued');
const serve = (options: Partial<ApiServerOptions> = {}): Promise<ApiServer> =>
  serveCluster({ recording, ...options });

const uidOf = (object: Json): string => stringAt(object, 'metadata', 'uid') ?? '';

describe('watching', () => {
  const path = '/api/v1/namespaces?watch=1&fieldSelector=metadata.name%3Dpreview-pr-42';

  test('tells what there is, what changes and what goes', async () => {
    const server = await serve();
    const next = await watch(server, path);
    expect(await next()).toMatchObject({ type: 'ADDED', object: { kind: 'Namespace' } });

    server.mutate((cluster) => {
      cluster.change(NAMESPACE, (namespace) => {
        namespace['status'] = { phase: 'Terminating', conditions: [] };
      });
      cluster.change('/api/v1/namespaces/default', () => undefined);
      cluster.removeNamespace('preview-pr-42');
    });

    expect(await next()).toMatchObject({
      type: 'MODIFIED',
      object: { status: { conditions: [] } },
    });
    expect(await next()).toMatchObject({ type: 'DELETED' });
  });

  test('goes on from a resourceVersion and ends with a bookmark', async () => {
    const server = await serve();
    const list = await ask(server, 'GET', '/api/v1/namespaces');
    const from = stringAt(list.body, 'metadata', 'resourceVersion');
    server.mutate((cluster) => cluster.remove(NAMESPACE));

    const next = await watch(
      server,
      `${path}&resourceVersion=${from}&allowWatchBookmarks=true&timeoutSeconds=1`,
    );

    expect(await next()).toMatchObject({ type: 'DELETED' });
    expect(await next()).toMatchObject({ type: 'BOOKMARK', object: { kind: 'Namespace' } });
    expect(await next()).toBeUndefined();
  });

  test('says 410 in the stream when the resourceVersion is too old', async () => {
    const next = await watch(await serve(), `${path}&resourceVersion=1`);

    expect(await next()).toMatchObject({ type: 'ERROR', object: { code: 410, reason: 'Expired' } });
    expect(await next()).toBeUndefined();
  });
});

describe('changing', () => {
  const patch = (uid: string): Json => [
    { op: 'test', path: '/metadata/uid', value: uid },
    { op: 'remove', path: '/metadata/finalizers/0' },
  ];

  test('refuses a JSON Patch whose test fails, and changes nothing', async () => {
    const server = await serve();

    const answer = await ask(server, 'PATCH', WIDGET, {
      body: patch('x'),
      contentType: JSON_PATCH,
    });

    expect(answer.body).toMatchObject({
      code: 422,
      message: 'the server rejected our request due to an error in our request',
    });
    expect(server.mutate((cluster) => cluster.read(WIDGET))).toHaveProperty('metadata.finalizers');
  });

  test('lets an object go whose last finalizer is removed, but not in a dry run', async () => {
    const server = await serve();
    const uid = uidOf((await ask(server, 'GET', WIDGET)).body);
    const options = { body: patch(uid), contentType: JSON_PATCH };

    const dry = await ask(server, 'PATCH', `${WIDGET}?dryRun=All`, options);
    expect(dry.body).not.toHaveProperty('metadata.finalizers.0');
    expect((await ask(server, 'GET', WIDGET)).status).toBe(200);

    expect((await ask(server, 'PATCH', WIDGET, options)).status).toBe(200);
    expect((await ask(server, 'GET', WIDGET)).status).toBe(404);
  });

  test('takes no new finalizer on what is being deleted', async () => {
    const body = [{ op: 'add', path: '/metadata/finalizers/-', value: 'new.example.com/x' }];

    const answer = await ask(await serve(), 'PATCH', WIDGET, { body, contentType: JSON_PATCH });

    expect(answer.body['message']).toBe(
      'Widget.example.com "db" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"new.example.com/x"}',
    );
  });

  test('finalizes the namespace with this UID only; its leftovers can then only be deleted', async () => {
    const server = await serve();
    const namespace = (await ask(server, 'GET', NAMESPACE)).body;
    const finalize = (uid: string): Promise<Answer> => {
      const body = { metadata: { name: 'preview-pr-42', uid }, spec: { finalizers: [] } };
      return ask(server, 'PUT', `${NAMESPACE}/finalize`, { body });
    };

    const refused = await finalize('x');
    expect(refused.body['message']).toContain(
      `Precondition failed: UID in precondition: x, UID in object meta: ${uidOf(namespace)}`,
    );
    expect((await finalize(uidOf(namespace))).status).toBe(200);
    expect((await ask(server, 'GET', NAMESPACE)).status).toBe(404);
    const late = await ask(server, 'PATCH', WIDGET, { body: [], contentType: JSON_PATCH });
    expect(late.body['message']).toBe('namespaces "preview-pr-42" not found');
    expect((await ask(server, 'DELETE', WIDGET)).status).toBe(200);
  });

  test('deletes by precondition, and never the three namespaces of the system', async () => {
    const server = await serve();
    const body = { preconditions: { uid: 'x' } };

    const namespace = await ask(server, 'DELETE', NAMESPACE, { body });
    expect(namespace.body['message']).toContain('Precondition failed: UID in precondition: x');
    const widget = await ask(server, 'DELETE', WIDGET, { body });
    expect(widget.body['message']).toContain('the UID in the precondition (x) does not match');
    expect((await ask(server, 'DELETE', '/api/v1/namespaces/kube-system')).body['message']).toBe(
      'namespaces "kube-system" is forbidden: this namespace may not be deleted',
    );
    expect((await ask(server, 'DELETE', '/api/v1/namespaces/kube-node-lease')).body).toMatchObject({
      status: { phase: 'Terminating' },
    });
  });
});

describe('honesty', () => {
  test('answers 501 to what it does not do, and notes it', async () => {
    const server = await serve();

    const answer = await ask(server, 'DELETE', '/api/v1/namespaces/preview-pr-42/configmaps');

    expect(answer.status).toBe(501);
    expect(answer.text).toMatch(/^not supported by the recorded API server: /);
    expect(server.requests.at(-1)).toMatchObject({
      method: 'DELETE',
      status: 501,
      notSupported: expect.stringContaining('deletecollection'),
    });
  });

  test('runs a script beside the requests', async () => {
    const server = await serve({
      script: [
        {
          when: { request: /^GET \/api\/v1\/namespaces\/preview-pr-42$/, occurrence: 2 },
          change: (cluster) => cluster.removeNamespace('preview-pr-42'),
        },
      ],
    });

    expect((await ask(server, 'GET', NAMESPACE)).status).toBe(200);
    expect((await ask(server, 'GET', NAMESPACE)).status).toBe(404);
  });
});
