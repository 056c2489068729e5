import { ActionError } from '../base/errors.ts';
import { type Access, clusterSettings, nameOf } from './access.ts';
import { inClusterAccess, ownNamespace } from './in-cluster.ts';
import { type FoundKubeconfig, findKubeconfig } from './kubeconfig-files.ts';
import type { Kubeconfig } from './kubeconfig-merge.ts';

export interface AccessOptions {
  kubeconfig: string | undefined;
  context: string | undefined;
  env: Readonly<Record<string, string | undefined>>;
  homeDir: string;
  serviceAccountDir: string;
}

/** Never falls back to localhost:8080: an answer from there would be about another cluster. */
export function chooseAccess(options: AccessOptions): Access {
  const found = findKubeconfig({
    explicit: options.kubeconfig,
    env: options.env,
    homeDir: options.homeDir,
  });
  if (!isEmpty(found.config)) return fromKubeconfig(found, options);

  const wantsFile = (options.kubeconfig ?? '') !== '' || (options.context ?? '') !== '';
  const inCluster = wantsFile ? undefined : inClusterAccess(options.env, options.serviceAccountDir);
  if (inCluster !== undefined) return inCluster;
  const tried = [...found.tried, 'no service account of a pod was found'].join(', ');
  throw new ActionError('kube-config', `found no cluster to talk to: ${tried}`, {
    hint: 'Give the path of a kubeconfig (input "kubeconfig" or --kubeconfig), or set KUBECONFIG',
  });
}

function isEmpty(config: Kubeconfig): boolean {
  return config.clusters.size + config.users.size + config.contexts.size === 0;
}

function fromKubeconfig(found: FoundKubeconfig, options: AccessOptions): Access {
  const { config, source } = found;
  const known = listed([...config.contexts.keys()]);
  const asked = options.context ?? '';
  const context = asked === '' ? config.currentContext : asked;
  if (context === '') {
    throw new ActionError('kube-config', `${source} has no current-context; it has ${known}`, {
      hint: 'Name one with the input "context" (or --context)',
    });
  }
  const entry = config.contexts.get(context);
  if (entry === undefined) {
    throw new ActionError(
      'kube-config',
      `there is no context "${context}" in ${source}; it has ${known}`,
    );
  }
  const clusterName = nameOf(entry, 'cluster');
  const clusterEntry = config.clusters.get(clusterName);
  if (clusterEntry === undefined) {
    throw new ActionError(
      'kube-config',
      `context "${context}" names cluster "${clusterName}", which is not in ${source}`,
    );
  }
  const userName = nameOf(entry, 'user');
  const user = userName === '' ? {} : config.users.get(userName);
  if (user === undefined) {
    throw new ActionError(
      'kube-config',
      `context "${context}" names user "${userName}", which is not in ${source}`,
    );
  }
  const cluster = clusterSettings(clusterName, clusterEntry);
  const own = ownNamespace(cluster, options.env, options.serviceAccountDir);
  return { source, context, cluster, userName, user, ownNamespace: own };
}

function listed(contexts: readonly string[]): string {
  if (contexts.length === 0) return 'no contexts';
  const shown = contexts.slice(0, 20).map((name) => `"${name}"`);
  const rest = contexts.length - shown.length;
  return `the contexts ${shown.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}
