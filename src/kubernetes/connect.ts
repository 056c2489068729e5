import { stringAt } from '../base/json.ts';
import { systemClock } from '../base/time.ts';
import type { KubernetesApi } from './api.ts';
import { chooseProxy } from './connections.ts';
import { keepCredentials } from './credentials.ts';
import { type ConnectOptions, findAccess, ownNamespace } from './kubeconfig.ts';
import { openTransport } from './transport.ts';

const CREDENTIAL = /^(?:token|client-certificate|exec$)/;

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
  const isAnonymous = !Object.entries(access.user.fields).some(
    ([field, value]) => CREDENTIAL.test(field) && value !== '',
  );
  const target = { server, context, ownNamespace: ownNamespace(options), isAnonymous };
  return { target, ...openTransport(session, credentials, proxy) };
}
