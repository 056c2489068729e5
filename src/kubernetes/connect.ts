import type { Redactor } from '../base/redact.ts';
import { type Clock, systemClock } from '../base/time.ts';
import type { KubernetesApi } from './api.ts';
import { chooseAccess } from './choose-access.ts';
import { Client } from './client.ts';
import { Connection } from './connection.ts';
import { credentialSource } from './credential-source.ts';
import { chooseProxy } from './dispatchers.ts';
import { Exchange } from './exchange.ts';
import { SERVICE_ACCOUNT_DIR } from './in-cluster.ts';
import { Secrets } from './secrets.ts';

export interface ConnectOptions {
  /** Path of a kubeconfig; otherwise KUBECONFIG, ~/.kube/config, in-cluster, in kubectl's order. */
  kubeconfig?: string;
  context?: string;
  env: Readonly<Record<string, string | undefined>>;
  redactor: Redactor;
  /** Hears every secret value, for the runner's masking. */
  onSecret?: (value: string) => void;
  debug?: (line: string) => void;
  userAgent: string;
  homeDir: string;
  /** Ends a credential plugin that runs while we connect. */
  signal?: AbortSignal;

  /** For tests. */
  clock?: Clock;
  random?: () => number;
  pluginTimeoutMs?: number;
  serviceAccountDir?: string;
}

const PLUGIN_TIMEOUT_MS = 30_000;

/**
 * Chooses cluster and user and gets the first credentials; nothing is sent to the cluster yet. Throws
 * an `ActionError` that says what was looked at.
 */
export async function connect(options: ConnectOptions): Promise<KubernetesApi> {
  const { env, redactor, clock = systemClock, debug = () => undefined } = options;
  const secrets = new Secrets(redactor, options.onSecret);
  const access = chooseAccess({
    kubeconfig: options.kubeconfig,
    context: options.context,
    env,
    homeDir: options.homeDir,
    serviceAccountDir: options.serviceAccountDir ?? SERVICE_ACCOUNT_DIR,
  });
  const source = credentialSource({
    access,
    env,
    clock,
    secrets,
    redactor,
    pluginTimeoutMs: options.pluginTimeoutMs ?? PLUGIN_TIMEOUT_MS,
  });
  const proxy = chooseProxy(access.cluster, env);
  secrets.add(decodeURIComponent(proxy?.password ?? ''));
  const via = proxy === undefined ? '' : ` (through the proxy ${proxy.protocol}//${proxy.host})`;

  const { userAgent } = options;
  const connection = new Connection({ access, source, proxy, clock, userAgent });
  const stop = (): void => source.close();
  options.signal?.addEventListener('abort', stop, { once: true });
  await connection.prepare().finally(() => options.signal?.removeEventListener('abort', stop));
  debug(
    redactor.redact(
      `context ${access.context} from ${access.source}: ${access.cluster.server}${via}`,
    ),
  );
  return new Client({
    target: {
      server: access.cluster.server,
      context: access.context,
      ownNamespace: access.ownNamespace,
    },
    connection,
    exchange: new Exchange({ connection, clock, redactor, via, debug }),
    clock,
    random: options.random ?? Math.random,
  });
}
