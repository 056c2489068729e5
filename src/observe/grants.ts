import { type JsonObject, stringAt } from '../base/json.ts';
import type { KubernetesApi } from '../kubernetes/api.ts';
import { type Read, read } from '../model/read.ts';
import type { Grant } from '../model/snapshot.ts';
import { all, many } from './collections.ts';
import { type GrantRule, grantRules, grantsOf } from './owner-facts.ts';

const RBAC = '/apis/rbac.authorization.k8s.io/v1';

type Roles = Map<string, GrantRule[]>;

/**
 * Which ServiceAccounts may watch or change which types: everywhere by ClusterRoleBindings, and by the
 * RoleBindings of this namespace, if one is named. Other authorizers than RBAC are not visible.
 */
export async function readGrants(
  api: KubernetesApi,
  signal: AbortSignal,
  namespace?: string,
): Promise<Read<Grant[]>> {
  const [roles, bindings] = await Promise.all([
    readRoles(api, signal, namespace),
    all([
      many(api, `${RBAC}/clusterrolebindings`, (binding) => [binding], signal),
      ...(namespace === undefined ? [] : [readRoleBindings(api, signal, namespace)]),
    ]),
  ]);
  return toGrants(roles, bindings);
}

/** All ClusterRoles, and the Roles of this namespace, if one is named. */
export async function readRoles(
  api: KubernetesApi,
  signal: AbortSignal,
  namespace?: string,
): Promise<Read<Roles>> {
  const roles = await all([
    many(api, `${RBAC}/clusterroles`, (role) => [roleEntry('ClusterRole', role)], signal),
    ...(namespace === undefined
      ? []
      : [many(api, inNamespace(namespace, 'roles'), (role) => [roleEntry('Role', role)], signal)]),
  ]);
  return roles.ok ? read(new Map(roles.value)) : roles;
}

export function readRoleBindings(
  api: KubernetesApi,
  signal: AbortSignal,
  namespace: string,
): Promise<Read<JsonObject[]>> {
  return many(api, inNamespace(namespace, 'rolebindings'), (binding) => [binding], signal);
}

function inNamespace(namespace: string, plural: string): string {
  return `${RBAC}/namespaces/${encodeURIComponent(namespace)}/${plural}`;
}

export function toGrants(roles: Read<Roles>, bindings: Read<JsonObject[]>): Read<Grant[]> {
  if (!roles.ok) return roles;
  if (!bindings.ok) return bindings;
  return read(
    bindings.value.flatMap((binding) =>
      grantsOf(
        binding,
        (kind, namespace, name) =>
          roles.value.get(roleKey(kind, kind === 'Role' ? namespace : undefined, name)) ?? [],
      ),
    ),
  );
}

function roleEntry(kind: string, role: JsonObject): [string, GrantRule[]] {
  const namespace = stringAt(role, 'metadata', 'namespace');
  const name = stringAt(role, 'metadata', 'name') ?? '';
  return [roleKey(kind, namespace, name), grantRules(role)];
}

function roleKey(kind: string, namespace: string | undefined, name: string): string {
  return `${kind} ${namespace ?? ''} ${name}`;
}
