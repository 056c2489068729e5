import type { BindingFacts, ResourceType, RoleFacts, RuleFacts } from '../model/snapshot.ts';
import { type Context, isBuiltIn, itemsIn, typeName } from './context.ts';
import { remember } from './remember.ts';

// What RBAC lets accounts do. Other authorizers are not visible.

/** A ServiceAccount, or another user that RBAC names. */
export interface Account {
  /** Undefined if the user is no ServiceAccount. */
  namespace: string | undefined;
  name: string;
}

export function isSameAccount(a: Account | undefined, b: Account | undefined): boolean {
  return a !== undefined && a.namespace === b?.namespace && a.name === b?.name && a.name !== '';
}

/** The permissions of an account on objects of one type. */
export interface Rights {
  /** `named`: a rule names the type's group. `everything`: only a rule for all groups reaches it. */
  change: 'named' | 'everything' | undefined;
  /** The account can list and watch them, as a controller does. */
  watch: 'named' | 'everything' | undefined;
  /** The account may impersonate others, and then has their permissions. */
  impersonates: boolean;
  /** No rule for all namespaces or this one is for the account: its binding may be gone. */
  isBare: boolean;
  /** A rule is about the type's group, with any verbs on any of its types. */
  reachesGroup: boolean;
  /** A rule lets the account change another type of the group. */
  changesSibling: boolean;
  /** A rule names a type of another product: the account works on that. */
  worksElsewhere: boolean;
  /** Only bindings of the namespace itself let the account change them. */
  isLocal: boolean;
  /** Rules name the type and its status or finalizers, and let the account change both, as its controller does. */
  isMarked: boolean;
  /** A rule names the group, with all of its resources, and lets the account change them. */
  isOfGroup: boolean;
  /** Rules name the type and its status, and let the account watch the objects and change their status. */
  isHalfMarked: boolean;
  /** The rules that grant this, for the report. */
  because: string[];
}

export const NO_RIGHTS: Rights = {
  change: undefined,
  watch: undefined,
  impersonates: false,
  isBare: false,
  reachesGroup: false,
  changesSibling: false,
  worksElsewhere: false,
  isLocal: false,
  isMarked: false,
  isOfGroup: false,
  isHalfMarked: false,
  because: [],
};

interface Grant {
  subject: BindingFacts['subjects'][number];
  /** The namespace of the binding; undefined: all namespaces. */
  namespace: string | undefined;
  rule: RuleFacts;
  binding: string;
  because: string;
  /** By a default role, `admin` or `edit`, into which products aggregate rules for people. */
  isForPeople: boolean;
}

const CHANGING: readonly string[] = ['update', 'patch', '*'];
const EVERYBODY: readonly string[] = ['system:serviceaccounts', 'system:authenticated'];

const everyGrant = remember(({ now: { cluster, places, namespace } }: Context): Grant[] => {
  const place = places[namespace.name];
  return joinGrants(
    [...itemsIn(cluster.clusterRoles), ...itemsIn(place?.roles)],
    [...itemsIn(cluster.clusterRoleBindings), ...itemsIn(place?.roleBindings)],
  );
});

/** Grants but those of Kubernetes for itself: default roles `system:…` (RBAC, "Default roles and role bindings"). */
const grantsOf = remember((context: Context): Grant[] => {
  const own = itemsIn(context.now.cluster.clusterRoles).flatMap(({ name, labels }) =>
    name.startsWith('system:') && isDefault({ labels }) ? `ClusterRole ${name},` : [],
  );
  return everyGrant(context).filter(({ because }) => !own.some((role) => because.startsWith(role)));
});

function joinGrants(roles: readonly RoleFacts[], bindings: readonly BindingFacts[]): Grant[] {
  // A ClusterRole has no namespace.
  const keyOf = (namespace: string | undefined, name: string): string => `${namespace}/${name}`;
  const byKey = new Map(roles.map((role) => [keyOf(role.namespace, role.name), role]));
  return bindings.flatMap(({ name, namespace, role, subjects }) => {
    const bound = byKey.get(keyOf(role.kind === 'Role' ? namespace : undefined, role.name));
    const kind = namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding';
    const because = `${role.kind} ${role.name}, bound by ${kind} ${name}`;
    const isForPeople = isDefault(bound);
    return (bound?.rules ?? []).flatMap((rule) =>
      subjects.map((subject) => ({
        subject,
        namespace,
        rule,
        binding: name,
        because,
        isForPeople,
      })),
    );
  });
}

/** Reports whether all sources of permissions were read; otherwise the permissions of an account are not known. */
export function isRbacRead({ now }: Context): boolean {
  const place = now.places[now.namespace.name];
  return [
    now.cluster.clusterRoles,
    now.cluster.clusterRoleBindings,
    place?.roles,
    place?.roleBindings,
  ].every((list) => list?.ok === true);
}

export function rightsOf(
  context: Context,
  account: Account,
  type: ResourceType,
  names: readonly string[],
  subresource?: string,
): Rights {
  const changed =
    subresource === undefined
      ? [...waysToChange(type), '*']
      : [`${type.resource}/${subresource}`, `*/${subresource}`, '*'];
  const own = grantsOf(context).filter((grant) => isFor(grant, account));
  const ofGroup = own.filter(({ rule }) => hasOne(rule.apiGroups, type.group));
  const granted = ofGroup.flatMap(({ subject, namespace, rule, because, isForPeople }) => {
    const { apiGroups, resources, resourceNames } = rule;
    if (resourceNames.length > 0 && !names.some((name) => resourceNames.includes(name))) return [];
    // A permission of every account distinguishes none, nor does one for people on the types of all products.
    const isOfAnyone = EVERYBODY.includes(subject.name) || (isForPeople && !isBuiltIn(type.group));
    const isNamed = apiGroups.includes(type.group) && !isOfAnyone;
    const has = (part: string): boolean => resources.includes(type.resource + part);
    const rights = [
      ...(hasOne(resources, type.resource) ? rule.verbs : []),
      ...(canChange(rule)
        ? [
            ...(resources.some((name) => changed.includes(name)) ? ['change'] : []),
            ...(resources.includes('*') ? ['group'] : []),
            ...(has('') ? ['type'] : []),
            ...(has('/status') ? ['part', 'status'] : []),
            ...(has('/finalizers') ? ['part'] : []),
          ]
        : []),
    ];
    return rights.map((right) => ({ right, because, isNamed, isGlobal: namespace === undefined }));
  });
  const has = (...wanted: string[]): Rights['change'] => {
    const isGranted = (among: typeof granted): boolean =>
      wanted.every((one) =>
        among.some(({ right }) => right === one || (right === '*' && /^(?:list|watch)$/.test(one))),
      );
    if (isGranted(granted.filter((grant) => grant.isNamed))) return 'named';
    return isGranted(granted) ? 'everything' : undefined;
  };
  const changing = granted.filter(({ right }) => right === 'change');
  return {
    change: has('change'),
    watch: has('list', 'watch'),
    impersonates: own.some(({ rule }) => rule.verbs.includes('impersonate')),
    isBare: own.length === 0,
    reachesGroup: ofGroup.length > 0,
    changesSibling: ofGroup.some(
      ({ rule }) =>
        canChange(rule) && rule.resources.some((one) => one.split('/')[0] !== type.resource),
    ),
    worksElsewhere: own.some(({ rule }) =>
      rule.apiGroups.some((group) => group !== type.group && !isBuiltIn(group)),
    ),
    isLocal: changing.length > 0 && changing.every(({ isGlobal }) => !isGlobal),
    isMarked: has('type', 'part') === 'named',
    isOfGroup: has('group') === 'named',
    isHalfMarked: has('list', 'watch', 'status') === 'named',
    because: [...new Set(granted.map(({ because }) => because))],
  };
}

/** Reports whether the account may have lost its rights: its role is gone and the binding left, or the other way round. */
export function hadRights(context: Context, account: Account, type: ResourceType): boolean {
  const { clusterRoles, clusterRoleBindings } = context.now.cluster;
  const roles = new Set(itemsIn(clusterRoles).map(({ name }) => name));
  const isDangling = itemsIn(clusterRoleBindings).some(
    ({ role, subjects, namespace }) =>
      !roles.has(role.name) &&
      subjects.some((subject) => isSameAccount(accountOf({ subject, namespace }), account)),
  );
  return isDangling || rolesLost(context, account, type).length > 0;
}

/**
 * Returns the roles that the account may have lost: a copy of an operator for another namespace has them by a RoleBinding
 * there. Where that was not read, nothing shows that it lost any.
 */
export function rolesLost(
  context: Context,
  { namespace = '' }: Account,
  type: ResourceType,
): string[] {
  const home = context.now.places[namespace]?.roleBindings;
  const roles = unboundRoles(context, type);
  return home?.ok && home.value.every(({ role }) => !roles.includes(role.name)) ? roles : [];
}

/**
 * Reports whether no rule is left that lets the account do anything but lead, also in its own namespace, where a copy of an
 * operator works. Where that was not read, nothing shows it.
 */
export function hasNoRight(context: Context, account: Account): boolean {
  const { roles, roleBindings } = context.now.places[account.namespace ?? ''] ?? {};
  if (!roles?.ok || !roleBindings?.ok) return false;
  const atHome = [...itemsIn(context.now.cluster.clusterRoles), ...roles.value];
  const grants = [...grantsOf(context), ...joinGrants(atHome, roleBindings.value)];
  const ofAccount = grants.filter((grant) => isFor(grant, account));
  return ofAccount.every(({ rule }) => rule.resources.every((one) => LEADING.test(one)));
}

/** What a controller needs to lead, and to report that. */
const LEADING = /^(?:leases|configmaps|events|tokenreviews|subjectaccessreviews)(?:\/status)?$/;

/**
 * Returns the ClusterRoles that no ClusterRoleBinding binds to anybody, with the marks of the type's controller, or with a
 * right to change these `parts`.
 */
export function unboundRoles(
  { now: { cluster } }: Context,
  type: ResourceType,
  parts = ['*', `${type.resource}/status`, `${type.resource}/finalizers`],
): string[] {
  const bound = itemsIn(cluster.clusterRoleBindings).map(({ role }) => role.name);
  return itemsIn(cluster.clusterRoles).flatMap((role) => {
    const { name, rules } = role;
    if (isDefault(role) || isPartOfDefault(role)) return [];
    const isMarked = rules.some(
      (rule) =>
        rule.apiGroups.includes(type.group) &&
        canChange(rule) &&
        rule.resources.some((one) => parts.includes(one)),
    );
    return isMarked && !bound.includes(name) ? [name] : [];
  });
}

/** Recognizes the roles that every cluster has, such as `admin` and `edit`. */
function isDefault(role: Pick<RoleFacts, 'labels'> | undefined): boolean {
  return role?.labels?.['kubernetes.io/bootstrapping'] === 'rbac-defaults';
}

/** Recognizes the parts of `admin` and `edit` that products add for people. */
function isPartOfDefault({ labels = {} }: RoleFacts): boolean {
  return Object.keys(labels).some((key) =>
    key.startsWith('rbac.authorization.k8s.io/aggregate-to-'),
  );
}

/**
 * Returns the resources by which the metadata of an object can be changed. The library of cloud controllers patches
 * that of a Service through its status (k8s.io/cloud-provider/service/helpers, PatchService), and may have no other
 * permission.
 */
export function waysToChange(type: ResourceType): string[] {
  return typeName(type) === 'services' ? ['services', 'services/status'] : [type.resource];
}

function hasOne(list: readonly string[], name: string): boolean {
  return list.includes(name) || list.includes('*');
}

/** Reports whether a rule is about all objects of the type, with any verbs. */
function coversType({ apiGroups, resources }: RuleFacts, { group, resource }: ResourceType) {
  return hasOne(apiGroups, group) && hasOne(resources, resource);
}

function canChange({ verbs }: Pick<RuleFacts, 'verbs'>): boolean {
  return verbs.some((verb) => CHANGING.includes(verb));
}

/** Returns the account that a binding names, unless that is a group: a ServiceAccount is a user as well. */
function accountOf({
  subject: { kind, namespace, name },
  namespace: home,
}: Pick<Grant, 'subject' | 'namespace'>): Account {
  if (kind === 'ServiceAccount') return { namespace: namespace ?? home, name };
  const [, place, own = name] = /^system:serviceaccount:([^:]+):(.+)$/.exec(name) ?? [];
  return { namespace: place, name: own };
}

/** Compares with the user and the groups of a ServiceAccount (apiserver pkg/authentication/serviceaccount/util.go). */
function isFor(grant: Grant, account: Account): boolean {
  const { kind, name } = grant.subject;
  if (kind !== 'Group') return isSameAccount(accountOf(grant), account);
  const groups = [...EVERYBODY, `system:serviceaccounts:${account.namespace}`];
  return account.namespace !== undefined && groups.includes(name);
}

/**
 * The users of the namespace controller, with `--use-service-account-credentials`, as in most clusters, and
 * without.
 */
const NAMESPACE_CONTROLLERS: readonly Account[] = [
  { namespace: 'kube-system', name: 'namespace-controller' },
  { namespace: undefined, name: 'system:kube-controller-manager' },
];

/** The verbs with which it empties namespaces; afterwards it updates namespaces/finalize. */
const EMPTYING: readonly string[] = ['list', 'deletecollection'];

/** Reports whether the namespace controller may do this with the type; true if that is not known. */
export function mayController(context: Context, type: ResourceType, verbs = EMPTYING): boolean {
  // Some clusters grant Kubernetes' own controllers their permissions without RBAC.
  const roles = itemsIn(context.now.cluster.clusterRoles);
  const isByRoles = roles.some(({ name }) => name.startsWith('system:controller:'));
  if (!isByRoles || !isRbacRead(context)) return true;
  return NAMESPACE_CONTROLLERS.some((account) => {
    const granted = everyGrant(context)
      .filter((grant) => isFor(grant, account) && coversType(grant.rule, type))
      .flatMap(({ rule }) => rule.verbs);
    return verbs.every((verb) => hasOne(granted, verb));
  });
}

/** Returns ServiceAccounts that a rule lets watch or change the type; a group stands for whole namespaces. */
export function ableAccounts(
  context: Context,
  type: ResourceType,
): { accounts: Account[]; namespaces: string[]; everywhere: boolean } {
  const able = grantsOf(context).filter(({ rule }) => coversType(rule, type));
  const accounts = able.map(accountOf).filter(({ namespace }) => namespace !== undefined);
  const groups = able.map(({ subject }) => subject.name);
  return {
    accounts: [...new Map(accounts.map((one) => [`${one.namespace}/${one.name}`, one])).values()],
    namespaces: groups.flatMap((name) => /^system:serviceaccounts:(.+)$/.exec(name)?.[1] ?? []),
    everywhere: groups.some((name) => EVERYBODY.includes(name)),
  };
}

/** Administrators of every cluster, and groups of accounts: none of them is a program outside. */
const NOBODY_OUTSIDE =
  /^(?:system:(?:masters|authenticated|serviceaccounts?(?::.*)?)|kubeadm:cluster-admins)$/;

/**
 * Returns users and groups that a rule which names the type's group lets change it: a controller that runs outside of the
 * cluster may be among them. Of built-in types, which people change as well, the status or finalizers.
 */
export function writersOutsideCluster(context: Context, type: ResourceType): string[] {
  const parts = isBuiltIn(type.group) ? /\/(?:status|finalizers)$/ : /^/;
  const subjects = grantsOf(context).filter(
    ({ rule, subject, isForPeople }) =>
      subject.kind !== 'ServiceAccount' &&
      !isForPeople &&
      !NOBODY_OUTSIDE.test(subject.name) &&
      rule.apiGroups.includes(type.group) &&
      canChange(rule) &&
      rule.resources.some(
        (name) => hasOne([name.split('/')[0] ?? ''], type.resource) && parts.test(name),
      ),
  );
  return [
    ...new Set(subjects.map(({ subject: { kind, name } }) => `${kind.toLowerCase()} ${name}`)),
  ];
}

/**
 * Returns the binding that gave the account a permission here, and was deleted with the namespace. `type`: to change it;
 * `isNamed`: by a rule that names its group.
 */
export function departedGrant(
  { now }: Context,
  account: Account,
  type?: ResourceType,
  isNamed = false,
): string | undefined {
  const here = itemsIn(now.places[now.namespace.name]?.roleBindings).map(({ name }) => name);
  const departed = joinGrants(
    [...itemsIn(now.cluster.clusterRoles), ...itemsIn(now.baseline?.roles)],
    itemsIn(now.baseline?.roleBindings).filter(({ name }) => !here.includes(name)),
  );
  return departed.find(
    (grant) =>
      isFor(grant, account) &&
      (type === undefined ||
        (coversType(grant.rule, type) &&
          canChange(grant.rule) &&
          (!isNamed || grant.rule.apiGroups.includes(type.group)))),
  )?.binding;
}
