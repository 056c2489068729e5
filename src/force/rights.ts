import { at } from '../base/json.ts';
import type { KubernetesApi } from '../kubernetes/api.ts';
import type { ForceAction } from './force-plan.ts';

/** One right that a write needs, in RBAC's words. */
export interface Right {
  verb: 'patch' | 'update' | 'delete';
  group: string;
  resource: string;
  subresource?: string;
  /** Set where the write is to one known object. */
  name?: string;
}

export function rightFor(action: ForceAction, namespace: string): Right {
  switch (action.step) {
    case 'object-finalizer':
      return { verb: 'patch', group: action.type.group, resource: action.type.resource };
    case 'overdue-pods':
      return { verb: 'delete', group: '', resource: 'pods' };
    case 'namespace-finalizer':
      return { verb: 'patch', group: '', resource: 'namespaces', name: namespace };
    case 'namespace-spec-finalizer':
      return {
        verb: 'update',
        group: '',
        resource: 'namespaces',
        subresource: 'finalize',
        name: namespace,
      };
  }
}

export function isSameRight(a: Right, b: Right): boolean {
  return describeRight(a) === describeRight(b);
}

function resourceName({ resource, subresource }: Right): string {
  return subresource === undefined ? resource : `${resource}/${subresource}`;
}

export function describeRight(right: Right): string {
  const group = right.group === '' ? '' : `.${right.group}`;
  const sub = right.subresource === undefined ? '' : `/${right.subresource}`;
  return `${right.verb} ${right.resource}${group}${sub}`;
}

/**
 * Asks the API server whether we may. Requests below a namespace, and those for a namespace itself, are
 * authorized in it. `unknown` when the question itself was not answered: the dry run decides then.
 */
export async function mayDo(
  api: KubernetesApi,
  right: Right,
  namespace: string,
  signal: AbortSignal,
): Promise<'yes' | 'no' | 'unknown'> {
  const { group, resource, subresource, verb, name } = right;
  const sent = await api.send(
    {
      method: 'POST',
      path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
      body: {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SelfSubjectAccessReview',
        spec: {
          resourceAttributes: {
            namespace,
            verb,
            group,
            resource,
            ...(subresource === undefined ? {} : { subresource }),
            ...(name === undefined ? {} : { name }),
          },
        },
      },
    },
    { signal },
  );
  if (!sent.ok) return 'unknown';
  const allowed = at(sent.value, 'status', 'allowed');
  return typeof allowed === 'boolean' ? (allowed ? 'yes' : 'no') : 'unknown';
}

/** The RBAC rules that grant just these, each one line of YAML in flow style. */
export function grantRules(rights: readonly Right[]): string[] {
  const alike = Map.groupBy(rights, ({ group, verb }) => `${group} ${verb}`).values();
  return Array.from(alike, (same) => {
    const { group, verb } = same[0] as Right;
    const resources = [...new Set(same.map(resourceName))].map((name) => JSON.stringify(name));
    return `{apiGroups: ["${group}"], resources: [${resources.join(', ')}], verbs: ["${verb}"]}`;
  });
}

/** The same as a manifest to apply; it still has to be bound to the gate's identity. */
export function grantManifest(rights: readonly Right[]): string[] {
  return [
    'apiVersion: rbac.authorization.k8s.io/v1',
    'kind: ClusterRole',
    'metadata:',
    '  name: namespace-teardown-gate-force-extra',
    'rules:',
    ...grantRules(rights).map((rule) => `  - ${rule}`),
  ];
}
