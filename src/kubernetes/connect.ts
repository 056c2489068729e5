import { systemClock } from '../base/time.ts';
import type { KubernetesApi } from './api.ts';
import { type ConnectOptions, chooseProxy } from './connections.ts';
import { openHttp } from './http.ts';
import { findAccess, ownNamespace } from './kubeconfig.ts';
import { keepCredentials } from './login.ts';

/** Chooses cluster and user and gets the first credentials, without a request to the cluster. */
export async function connect(options: ConnectOptions): Promise<KubernetesApi> {
  const { signal, redactor, env } = options;
  const access = findAccess(options);
  const { server, context, user } = access;
  const closing = new AbortController();
  const defaults = { clock: systemClock, random: Math.random, pluginTimeoutMs: 30_000 };
  const session = { debug: () => undefined, ...defaults, ...options, access, closing };
  const credentials = keepCredentials(session);
  const proxy = chooseProxy(new URL(server), env, access.proxyUrl);
  redactor.add(decodeURIComponent(proxy?.password ?? ''));

  const stop = (): void => closing.abort();
  signal?.addEventListener('abort', stop, { once: true });
  await credentials.current().finally(() => signal?.removeEventListener('abort', stop));
  const { token, authProvider, certData, certFile, exec } = user;
  const isAnonymous = !(token || authProvider || certData || certFile || exec);
  const target = { server, context, ownNamespace: ownNamespace(options), isAnonymous };
  return { target, ...openHttp(session, credentials, proxy) };
}
