import type { Redactor } from '../base/redact.ts';
import { type Clock, systemClock } from '../base/time.ts';
import type { KubernetesApi } from './api.ts';
import { Client } from './client.ts';
import { announcer, Credentials } from './credentials.ts';
import { findAccess, ownNamespace, type Search } from './kubeconfig.ts';
import { chooseProxy } from './proxy.ts';
import { Transport } from './transport.ts';

export interface ConnectOptions extends Search {
  redactor: Redactor;
  /** Hears every secret value, for the runner's masking. */
  onSecret?: (value: string) => void;
  debug?: (line: string) => void;
  userAgent: string;
  /** Ends a credential plugin that runs while we connect. */
  signal?: AbortSignal;

  /** For tests. */
  clock?: Clock;
  random?: () => number;
  pluginTimeoutMs?: number;
}

const PLUGIN_TIMEOUT_MS = 30_000;

/**
 * Chooses cluster and user and gets the first credentials; nothing is sent to the cluster yet. Throws
 * an `ActionError` that says what was looked at.
 */
export async function connect(options: ConnectOptions): Promise<KubernetesApi> {
  const { signal, redactor, userAgent, clock = systemClock, debug = () => undefined } = options;
  const { env, random = Math.random, pluginTimeoutMs = PLUGIN_TIMEOUT_MS } = options;
  const announce = announcer(redactor, options.onSecret);
  const access = findAccess(options);
  const session = { access, env, clock, redactor, announce, debug, userAgent, pluginTimeoutMs };
  const credentials = new Credentials(session);
  const { server, proxyUrl } = access.cluster;
  const proxy = chooseProxy(server, proxyUrl, env);
  announce(decodeURIComponent(proxy?.password ?? ''));
  const transport = new Transport(session, credentials, proxy);

  const stop = (): void => credentials.close();
  signal?.addEventListener('abort', stop, { once: true });
  const login = await transport.prepare().finally(() => signal?.removeEventListener('abort', stop));
  const target = {
    server,
    context: access.context,
    ownNamespace: ownNamespace(server, login.ca, options),
  };
  return new Client(target, transport, clock, random);
}
