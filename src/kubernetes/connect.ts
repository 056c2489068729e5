import { type JsonObject, stringAt } from '../base/json.ts';
import { systemClock } from '../base/time.ts';
import { readFailed } from '../model/read.ts';
import type { CallOptions, KubernetesApi } from './api.ts';
import { chooseProxy } from './connections.ts';
import { keepCredentials } from './credentials.ts';
import { discoverTypes } from './discovery.ts';
import { type ConnectOptions, findAccess, ownNamespace } from './kubeconfig.ts';
import { listPages, PLAIN_JSON, readEvents, watchPath } from './list-and-watch.ts';
import { objectNameIn, withQuery } from './paths.ts';
import { openTransport } from './transport.ts';

/**
 * Chooses cluster and user and gets the first credentials, without a request to the cluster. Throws an
 * `ActionError` that lists what was tried.
 */
export async function connect(options: ConnectOptions): Promise<KubernetesApi> {
  const { signal, redactor, env, clock = systemClock, random = Math.random } = options;
  const access = findAccess(options);
  const { server, context, cluster } = access;
  const closing = new AbortController();
  const defaults = { debug: () => undefined, pluginTimeoutMs: 30_000 };
  const session = { ...defaults, ...options, access, clock, random, closing };
  const credentials = keepCredentials(session);
  const proxy = chooseProxy(new URL(server), env, stringAt(cluster.fields, 'proxy-url'));
  redactor.add(decodeURIComponent(proxy?.password ?? ''));

  const stop = (): void => closing.abort();
  signal?.addEventListener('abort', stop, { once: true });
  await credentials.current().finally(() => signal?.removeEventListener('abort', stop));
  const target = { server, context, ownNamespace: ownNamespace(options) };
  const transport = openTransport(session, credentials, proxy);
  const getJson = (path: string, accept: string, options: CallOptions) =>
    transport.json({ method: 'GET', path, accept }, options);

  return {
    target,
    clockOffsetMs: transport.clockOffsetMs,
    requestsSent: transport.requestsSent,
    close: transport.close,
    async get(path, options = {}) {
      const answer = await getJson(path, PLAIN_JSON, options);
      if (!answer.ok || isRequestedObject(answer.value, path)) return answer;
      const message = `the server at ${target.server} did not answer with the object that ${path} names`;
      return readFailed({ kind: 'unreadable', message });
    },
    list: (path, begin, options = {}) =>
      listPages(path, begin, options, (page, accept) => getJson(page, accept, options)),
    async watch(path, options) {
      const opened = await transport.watch(watchPath(path, options), PLAIN_JSON, options);
      return opened.ok ? readEvents(opened.value, options) : opened;
    },
    discover: (options = {}) => discoverTypes((path, accept) => getJson(path, accept, options)),
    text: transport.text,
    send({ method, path, body, dryRun }, options = {}) {
      const asked = withQuery(path, { dryRun: dryRun === true ? 'All' : undefined });
      // A DELETE with a body ignores `?dryRun=All` (apiserver, handlers/delete.go).
      const isInBody = method === 'DELETE' && dryRun === true;
      const sent = isInBody ? { ...body, dryRun: ['All'] } : body;
      return transport.json({ method, path: asked, accept: PLAIN_JSON, body: sent }, options);
    },
  };
}

/**
 * Reports whether an answer is the requested object. JSON alone is no proof: portals and gateways send it too,
 * and a namespace without UID would look like a new one.
 */
function isRequestedObject(answer: JsonObject, path: string): boolean {
  const [, version] = /^\/apis?\/(v\d+\w*|[^/]+\/[^/]+)/.exec(path) ?? [];
  if (version === undefined) return true;
  const name = objectNameIn(path);
  return (
    stringAt(answer, 'kind') !== undefined &&
    stringAt(answer, 'apiVersion') === version &&
    (name === undefined || stringAt(answer, 'metadata', 'name') === name)
  );
}
