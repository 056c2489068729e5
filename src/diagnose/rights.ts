import { isBuiltIn, typeName } from '../model/facts/metadata.ts';
import { itemsIn } from '../model/read.ts';
import type { BindingFacts, ResourceType, RoleFacts, RuleFacts } from '../model/snapshot.ts';
import { type Context, remember } from './context.ts';

// What RBAC lets accounts do. Other authorizers are not visible.

/** A ServiceAccount, or another user that RBAC names. */
export interface Account {
  /** Undefined if the user is no ServiceAccount. */
  namespace: string | undefined;
  name: string;
}

/** Of a program that is not there, or acts by other credentials than RBAC shows. */
export const NOBODY: Account = { namespace: undefined, name: '' };

type Subject = BindingFacts['subjects'][number];

function isSameAccount(a: Account, b: Account): boolean {
  return a.namespace === b.namespace && a.name === b.name;
}

/** The permissions of an account on objects of one type. */
export type Rights = ReturnType<typeof rightsOf>;

type Grant = ReturnType<typeof joinGrants>[number];

const EVERYBODY: readonly string[] = ['system:serviceaccounts', 'system:authenticated'];

const everyGrant = remember(({ now: { cluster, places, namespace } }: Context): Grant[] => {
  const { roles, roleBindings } = places[namespace.name] ?? {};
  const bindings = [cluster.clusterRoleBindings, roleBindings].flatMap(itemsIn);
  return joinGrants([cluster.clusterRoles, roles].flatMap(itemsIn), bindings);
});

const grantsOf = remember((context: Context): Grant[] =>
  everyGrant(context).filter(({ by }) => by !== 'kubernetes'),
);

/** Returns what bindings give to each of their subjects, rule by rule. A binding without a namespace is about all. */
function joinGrants(roles: readonly RoleFacts[], bindings: readonly BindingFacts[]) {
  // A ClusterRole has no namespace.
  const keyOf = (namespace: string | undefined, name: string): string => `${namespace}/${name}`;
  const byKey = new Map(roles.map((role) => [keyOf(role.namespace, role.name), role]));
  return bindings.flatMap(({ name: binding, namespace, role, subjects }) => {
    const bound = byKey.get(keyOf(role.kind === 'Role' ? namespace : undefined, role.name));
    const kind = namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding';
    const because = `${role.kind} ${role.name}, bound by ${kind} ${binding}`;
    const isOwn = role.name.startsWith('system:');
    // Into the default roles `admin` and `edit` products aggregate rules for people; the others are of Kubernetes itself.
    const by = isDefault(bound) ? (isOwn ? 'kubernetes' : 'people') : undefined;
    return subjects.flatMap((subject) => {
      const account = accountOf(subject, namespace);
      const common = { account, subject, namespace, binding, because, by } as const;
      return (bound?.rules ?? []).map((rule) => ({ ...common, rule }));
    });
  });
}

/** Reports whether all sources of permissions were read; otherwise the permissions of an account are not known. */
export function isRbacRead({ now: { cluster, places, namespace } }: Context): boolean {
  const { roles, roleBindings } = places[namespace.name] ?? {};
  return [cluster.clusterRoles, cluster.clusterRoleBindings, roles, roleBindings].every(
    (list) => list?.ok === true,
  );
}

export function rightsOf(
  context: Context,
  account: Account,
  type: ResourceType,
  names: readonly string[],
  subresource?: string,
) {
  const { group, resource } = type;
  const changed = subresource
    ? [`${resource}/${subresource}`, `*/${subresource}`, '*']
    : [...waysToChange(type), '*'];
  const own = grantsOf(context).filter((grant) => isFor(grant, account));
  const writes = own.flatMap(({ rule }) => (canChange(rule) ? rule : []));
  const ofGroup = own.filter(({ rule }) => hasOne(rule.apiGroups, group));
  const about = ofGroup.filter(
    ({ rule: { resourceNames } }) =>
      resourceNames.length === 0 || names.some((name) => resourceNames.includes(name)),
  );
  const onType = about.filter(({ rule }) => hasOne(rule.resources, resource));
  const changing = (...resources: string[]): Grant[] =>
    about.filter(
      ({ rule }) => canChange(rule) && resources.some((one) => rule.resources.includes(one)),
    );
  // A permission of every account distinguishes none, nor does one for people on the types of all products.
  const isNamed = ({ rule, subject, by }: Grant): boolean =>
    (rule.apiGroups.includes(group) || (isBuiltIn(group) && rule.resources.includes(resource))) &&
    !EVERYBODY.includes(subject.name) &&
    !(by === 'people' && !isBuiltIn(group));
  // `everything`: only a rule for all types of all groups reaches it.
  const reach = (grants: readonly Grant[]) =>
    grants.some(isNamed) ? 'named' : grants.length > 0 ? 'everything' : undefined;
  const change = changing(...changed);
  const watch = reach(
    onType.filter(({ rule }) => ['list', 'watch'].every((verb) => hasOne(rule.verbs, verb))),
  );
  const status = changing(`${resource}/status`);
  const parts = [...status, ...changing(`${resource}/finalizers`)];
  const isOfAnother = (one: string): boolean =>
    change.length === 0 ||
    one === '*' ||
    (!isBuiltIn(group) && /\/(?:status|finalizers)$/.test(one));
  return {
    change: reach(change),
    /** It can list and watch them, as a controller does. */
    watch,
    /** It may impersonate others, and then has their permissions. */
    impersonates: own.some(({ rule }) => rule.verbs.includes('impersonate')),
    /** Only bindings of the namespace itself let the account change them. */
    isLocal: change.length > 0 && change.every(({ namespace }) => namespace !== undefined),
    /** Rules name the type and its status or finalizers, or (`isOnGroup`) all types of its group, and let it change these, as its controller does. */
    isMarked: [changing(resource), parts].every((grants) => grants.some(isNamed)),
    isOnGroup: changing('*').some(isNamed),
    /** Rules name the type, and let it watch the objects and change their status. */
    isHalfMarked: watch === 'named' && status.some(isNamed),
    /** A rule lets it create such objects, as tools of people do. */
    creates: onType.some(({ rule }) => hasOne(rule.verbs, 'create')),
    /** A rule is about the type's group, with any verbs on any of its types. */
    reachesGroup: ofGroup.length > 0,
    /** It may change all types, or the status or finalizers of another type of the group and not of this one, which it uses. */
    isUser:
      ![...parts, ...changing('*')].some(isNamed) &&
      ofGroup.some(({ rule }) => canChange(rule) && rule.resources.some(isOfAnother)),
    /** A rule names a type of another product and lets it change that: the account works on it. */
    worksElsewhere: writes.some(({ apiGroups }) =>
      apiGroups.some((one) => ![group, 'kopf.dev'].includes(one) && !isBuiltIn(one)),
    ),
    /** A rule is about the peerings by which operators that are written with kopf know each other. */
    isOfKopf: own.some(({ rule }) => rule.apiGroups.includes('kopf.dev')),
    /** A rule lets it change the status of a built-in type: the account works on that. */
    worksOnBuiltIn: writes.some(
      ({ apiGroups, resources }) =>
        apiGroups.some(isBuiltIn) && resources.some((one) => one.endsWith('/status')),
    ),
    /** The rules that grant this, for the report. */
    because: [...new Set([...onType, ...change, ...parts].map(({ because }) => because))],
  };
}

/** Returns the ClusterRoles that bindings of the account name and that do not exist. */
export function rolesGone({ now: { cluster } }: Context, account: Account): string[] {
  if (!cluster.clusterRoles?.ok) return [];
  const roles = cluster.clusterRoles.value.map(({ name }) => name);
  return itemsIn(cluster.clusterRoleBindings).flatMap(({ role: { name }, subjects, namespace }) =>
    !roles.includes(name) &&
    subjects.some((subject) => isSameAccount(accountOf(subject, namespace), account))
      ? name
      : [],
  );
}

/** Reports whether no rule, also of its own namespace, lets the account do anything but lead, or, of one type, anything with it; false if that was not read. */
export function hasNoRight(context: Context, account: Account, type?: ResourceType): boolean {
  const { roles, roleBindings } = context.now.places[account.namespace ?? ''] ?? {};
  if (!roles?.ok || !roleBindings?.ok) return false;
  const atHome = [...itemsIn(context.now.cluster.clusterRoles), ...roles.value];
  const all = [...grantsOf(context), ...joinGrants(atHome, roleBindings.value)];
  const own = all.filter((grant) => isFor(grant, account));
  return own.every(({ rule }) =>
    type ? !coversType(rule, type) : rule.resources.every((one) => LEADING.test(one)),
  );
}

/** What a controller needs to lead, and to report that. */
const LEADING = /^(?:leases|configmaps|events|tokenreviews|subjectaccessreviews)(?:\/status)?$/;

/** Returns the ClusterRoles that no binding which was read gives to anybody, and that may change the type; `isMarked`: its status or finalizers, which roles of people and of kopf operators do not name. */
export function unboundRoles(
  { now: { cluster, places } }: Context,
  { group, resource }: ResourceType,
  isMarked = false,
): string[] {
  const parts = isMarked ? [`${resource}/status`, `${resource}/finalizers`] : [resource];
  const lists = Object.values(places).map(({ roleBindings }) => roleBindings);
  // A Role may have the name of the ClusterRole beside it.
  const bound = [cluster.clusterRoleBindings, ...lists].flatMap((list) =>
    itemsIn(list).flatMap(({ role: { kind, name } }) => (kind === 'ClusterRole' ? name : [])),
  );
  const canChangePart = (rule: RuleFacts): boolean =>
    rule.apiGroups.includes(group) &&
    canChange(rule) &&
    ['*', ...parts].some((one) => rule.resources.includes(one));
  return itemsIn(cluster.clusterRoleBindings?.ok ? cluster.clusterRoles : undefined)
    .filter((role) => !isDefault(role) && !isPartOfDefault(role) && !bound.includes(role.name))
    .flatMap(({ name, rules }) => (rules.some(canChangePart) ? name : []));
}

/** Recognizes the roles that every cluster has, such as `admin` and `edit`. */
function isDefault(role: Pick<RoleFacts, 'labels'> | undefined): boolean {
  return role?.labels?.['kubernetes.io/bootstrapping'] === 'rbac-defaults';
}

/** Recognizes the parts of `admin` and `edit` that products add for people. */
function isPartOfDefault({ labels = {} }: RoleFacts): boolean {
  const aggregate = 'rbac.authorization.k8s.io/aggregate-to-';
  return Object.keys(labels).some((key) => key.startsWith(aggregate));
}

/** Returns the resources by which metadata can be changed; cloud controllers patch that of a Service through its status (k8s.io/cloud-provider/service/helpers). */
export function waysToChange(type: ResourceType): string[] {
  return typeName(type) === 'services' ? ['services', 'services/status'] : [type.resource];
}

export function hasOne(list: readonly string[], name: string): boolean {
  return list.includes(name) || list.includes('*');
}

/** Reports whether a rule is about all objects of the type, with any verbs. */
function coversType({ apiGroups, resources }: RuleFacts, { group, resource }: ResourceType) {
  return hasOne(apiGroups, group) && hasOne(resources, resource);
}

function canChange({ verbs }: Pick<RuleFacts, 'verbs'>): boolean {
  return verbs.some((verb) => /^(?:update|patch|\*)$/.test(verb));
}

/** Returns the account that a binding names: a ServiceAccount is a user as well. */
function accountOf({ kind, namespace, name }: Subject, home: string | undefined): Account {
  if (kind === 'ServiceAccount') return { namespace: namespace ?? home, name };
  const [, place, own = name] = /^system:serviceaccount:([^:]+):(.+)$/.exec(name) ?? [];
  return { namespace: place, name: own };
}

/** Compares with the user and the groups of a ServiceAccount (apiserver pkg/authentication/serviceaccount/util.go). */
function isFor({ account: one, subject: { kind, name } }: Grant, account: Account): boolean {
  if (kind !== 'Group') return isSameAccount(one, account);
  const groups = [...EVERYBODY, `system:serviceaccounts:${account.namespace}`];
  return account.namespace !== undefined && groups.includes(name);
}

/** The user of the namespace controller, with `--use-service-account-credentials`, as in most clusters. */
export const NAMESPACE_CONTROLLER = { namespace: 'kube-system', name: 'namespace-controller' };
/** The same without. */
const CONTROLLER_MANAGER = { namespace: undefined, name: 'system:kube-controller-manager' };

/** Reports whether the namespace controller may do this with the type; true if that is not known. */
export function mayController(context: Context, type: ResourceType, ...verbs: string[]): boolean {
  // Some clusters grant Kubernetes' own controllers their permissions without RBAC.
  const roles = itemsIn(context.now.cluster.clusterRoles);
  const isByRoles = roles.some(({ name }) => name.startsWith('system:controller:'));
  if (!isByRoles || !isRbacRead(context)) return true;
  return [NAMESPACE_CONTROLLER, CONTROLLER_MANAGER].some((account) => {
    const granted = everyGrant(context)
      .filter((grant) => isFor(grant, account) && coversType(grant.rule, type))
      .flatMap(({ rule }) => rule.verbs);
    return verbs.every((verb) => hasOne(granted, verb));
  });
}

/** Returns ServiceAccounts that a rule lets watch or change the type, and the namespaces of these and of groups of them. */
export function ableAccounts(context: Context, type: ResourceType) {
  const able = grantsOf(context).filter(({ rule }) => coversType(rule, type));
  const accounts = able.flatMap(({ account }) => (account.namespace ? account : []));
  const groups = able.map(({ subject }) => subject.name);
  const ofGroups = groups.map((name) => /^system:serviceaccounts:(.+)$/.exec(name)?.[1]);
  return {
    accounts: [...new Map(accounts.map((one) => [`${one.namespace}/${one.name}`, one])).values()],
    namespaces: [...accounts.map((one) => one.namespace), ...ofGroups].flatMap((one) => one ?? []),
    everywhere: groups.some((name) => EVERYBODY.includes(name)),
  };
}

/** Administrators of every cluster, and groups of accounts: none of them is a program outside. */
const NOBODY_OUTSIDE =
  /^(?:system:(?:masters|authenticated|serviceaccounts?(?::.*)?)|kubeadm:cluster-admins)$/;

/**
 * Returns users and groups that a rule which names the type's group lets change it, as a controller outside of the cluster.
 * Groups of people change all types of it, and people built-in ones, of which the status or finalizers tell.
 */
export function writersOutsideCluster(context: Context, type: ResourceType): string[] {
  const { group, resource } = type;
  const parts = [`${resource}/status`, `${resource}/finalizers`];
  const names = isBuiltIn(group) ? parts : [resource, ...parts];
  const found = grantsOf(context).filter(
    ({ rule, subject, by }) =>
      subject.kind !== 'ServiceAccount' &&
      by !== 'people' &&
      !NOBODY_OUTSIDE.test(subject.name) &&
      rule.apiGroups.includes(group) &&
      canChange(rule) &&
      (rule.resources.some((name) => names.includes(name)) ||
        (subject.kind === 'User' && !isBuiltIn(group) && rule.resources.includes('*'))),
  );
  return [...new Set(found.map(({ subject: { kind, name } }) => `${kind.toLowerCase()} ${name}`))];
}

const departedGrants = remember(({ now }: Context): Grant[] => {
  const here = itemsIn(now.places[now.namespace.name]?.roleBindings).map(({ name }) => name);
  const gone = itemsIn(now.baseline?.roleBindings).filter(({ name }) => !here.includes(name));
  return joinGrants([...itemsIn(now.cluster.clusterRoles), ...itemsIn(now.baseline?.roles)], gone);
});

/** Returns the binding, deleted with the namespace, that let the account change the type here; `isNamed`: by a rule that names its group. */
export function departedGrant(
  context: Context,
  account: Account,
  type: ResourceType,
  isNamed = false,
): string | undefined {
  const isMeant = ({ rule }: Grant): boolean =>
    coversType(rule, type) && canChange(rule) && (!isNamed || rule.apiGroups.includes(type.group));
  return departedGrants(context).find((one) => isFor(one, account) && isMeant(one))?.binding;
}
