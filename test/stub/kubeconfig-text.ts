import type { JsonObject } from '../../src/base/json.ts';

export interface Access {
  server: string;
  /** More of the cluster entry. */
  cluster?: JsonObject;
  user?: JsonObject;
  /** Of the one context, cluster and user. */
  name?: string;
  namespace?: string;
}

/** A kubeconfig with one context, for `kubectl` as well as for the gate. JSON is YAML. */
export function kubeconfigText(access: Access): string {
  const { server, cluster = {}, user = {}, name = 'recorded', namespace } = access;
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': name,
    clusters: [{ name, cluster: { server, ...cluster } }],
    users: [{ name, user }],
    contexts: [{ name, context: { cluster: name, user: name, ...(namespace && { namespace }) } }],
  });
}
