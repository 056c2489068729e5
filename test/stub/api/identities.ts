import { isObject, type Json, type JsonObject, stringAt } from '../../../src/base/json.ts';
import type { Route } from './routes.ts';
import { forbidden } from './status.ts';

/** Who a token is and what RBAC would allow. */
export interface Identity {
  username: string;
  groups?: string[];
  /** Everything is allowed when there are no rules. */
  rules?: Rule[];
}

/** A PolicyRule, with the namespaces of the RoleBindings; without them it is a ClusterRoleBinding's. */
export interface Rule {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
  resourceNames?: string[];
  namespaces?: string[];
}

/** A request to authorize; `resource` includes the subresource, for example `pods/log`. */
export interface Access {
  verb: string;
  group: string;
  resource: string;
  namespace: string;
  name: string;
}

/** The name comes from the path or a field selector, as in RequestInfo of the API server. */
export function accessOf(verb: string, route: Route, query: URLSearchParams): Access {
  const selected = /(?:^|,)metadata\.name==?([^,]+)/.exec(query.get('fieldSelector') ?? '')?.[1];
  const name = route.name ?? selected ?? '';
  const { resource, group } = route.type;
  const isNamespace = resource === 'namespaces' && group === '' && route.name !== undefined;
  return {
    verb,
    group,
    resource: route.subresource === undefined ? resource : `${resource}/${route.subresource}`,
    namespace: isNamespace ? name : route.namespace,
    name,
  };
}

export function isAllowed(identity: Identity, access: Access): boolean {
  if (identity.rules === undefined) return true;
  return identity.rules.some(
    (rule) =>
      covers(rule.apiGroups, access.group) &&
      covers(rule.resources, access.resource) &&
      covers(rule.verbs, access.verb) &&
      (rule.resourceNames === undefined || rule.resourceNames.includes(access.name)) &&
      (rule.namespaces === undefined || rule.namespaces.includes(access.namespace)),
  );
}

export function refuseUnlessAllowed(identity: Identity, access: Access): void {
  if (isAllowed(identity, access)) return;
  const { verb, group, resource, namespace, name } = access;
  const where = namespace === '' ? 'at the cluster scope' : `in the namespace "${namespace}"`;
  const target = {
    group,
    resource: resource.split('/')[0] ?? '',
    ...(name === '' ? {} : { name }),
  };
  throw forbidden(
    target,
    `User "${identity.username}" cannot ${verb} resource "${resource}" in API group "${group}" ${where}`,
  );
}

/** SelfSubjectAccessReview: may I? */
export function reviewAccess(identity: Identity, body: Json): JsonObject {
  const asked = isObject(body) && isObject(body['spec']) ? body['spec']['resourceAttributes'] : {};
  const attribute = (name: string): string => stringAt(asked, name) ?? '';
  const subresource = attribute('subresource');
  const allowed = isAllowed(identity, {
    verb: attribute('verb'),
    group: attribute('group'),
    resource: attribute('resource') + (subresource === '' ? '' : `/${subresource}`),
    namespace: attribute('namespace'),
    name: attribute('name'),
  });
  return {
    kind: 'SelfSubjectAccessReview',
    apiVersion: 'authorization.k8s.io/v1',
    metadata: {},
    spec: { resourceAttributes: asked },
    status: { allowed },
  };
}

/** SelfSubjectReview: who am I? */
export function reviewSelf(identity: Identity, now: Date): JsonObject {
  const groups = [...(identity.groups ?? []), 'system:authenticated'];
  return {
    kind: 'SelfSubjectReview',
    apiVersion: 'authentication.k8s.io/v1',
    metadata: { creationTimestamp: now.toISOString().replace(/\.\d+Z$/, 'Z') },
    status: { userInfo: { username: identity.username, groups } },
  };
}

function covers(list: readonly string[], value: string): boolean {
  return list.includes('*') || list.includes(value);
}
