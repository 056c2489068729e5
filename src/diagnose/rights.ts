import { TOKENS } from '../model/facts/cluster.ts';
import type { BindingFacts, ResourceType, RoleFacts, RuleFacts } from '../model/snapshot.ts';
import { type Context, isBuiltIn, itemsIn, typeName } from './context.ts';
import { remember } from './remember.ts';

/** A ServiceAccount, or another user that RBAC names. */
export interface Account {
  /** Undefined if the user is no ServiceAccount. */
  namespace: string | undefined;
  name: string;
}

export function isSameAccount(a: Account | undefined, b: Account | undefined): boolean {
  return a !== undefined && a.namespace === b?.namespace && a.name === b?.name && a.name !== '';
}

/** The permissions that RBAC grants an account on objects of one type. Other authorizers are not visible. */
export interface Rights {
  /** `named`: a rule names the type's group. `everything`: only a rule for all groups reaches it. */
  change: 'named' | 'everything' | undefined;
  /** The account can list and watch them, as a controller does. */
  watch: 'named' | 'everything' | undefined;
  /** The account may impersonate others, and then has their permissions. */
  impersonates: boolean;
  /** A rule is about the type's group, with any verbs on any of its types. */
  reachesGroup: boolean;
  /** A rule names a type of another product: the account works on that. */
  worksElsewhere: boolean;
  /** Only bindings of the namespace itself let the account change them. */
  isLocal: boolean;
  /** Only roles of Kubernetes for itself grant this. */
  isOfKubernetes: boolean;
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
  reachesGroup: false,
  worksElsewhere: false,
  isLocal: false,
  isOfKubernetes: false,
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
  /** The role is one of Kubernetes for itself: a default role `system:…` (RBAC, "Default roles and role bindings"). */
  isSystem: boolean;
  binding: string;
  because: string;
}

const CHANGING: readonly string[] = ['update', 'patch', '*'];

const grantsOf = remember(({ now: { cluster, places, namespace } }: Context): Grant[] => {
  const place = places[namespace.name];
  return joinGrants(
    [...itemsIn(cluster.clusterRoles), ...itemsIn(place?.roles)],
    [...itemsIn(cluster.clusterRoleBindings), ...itemsIn(place?.roleBindings)],
  );
});

function joinGrants(roles: readonly RoleFacts[], bindings: readonly BindingFacts[]): Grant[] {
  // A ClusterRole has no namespace.
  const keyOf = (namespace: string | undefined, name: string): string => `${namespace}/${name}`;
  const byKey = new Map(roles.map((role) => [keyOf(role.namespace, role.name), role]));
  return bindings.flatMap(({ name, namespace, role, subjects }) => {
    const { rules = [], labels } =
      byKey.get(keyOf(role.kind === 'Role' ? namespace : undefined, role.name)) ?? {};
    const isSystem =
      role.name.startsWith('system:') &&
      labels?.['kubernetes.io/bootstrapping'] === 'rbac-defaults';
    const kind = namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding';
    const because = `${role.kind} ${role.name}, bound by ${kind} ${name}`;
    return rules.flatMap((rule) =>
      subjects.map((subject) => ({ subject, namespace, rule, isSystem, binding: name, because })),
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
  const ofGroup = own.filter(({ rule }) => isAboutGroup(rule, type));
  const granted = ofGroup.flatMap(({ subject, namespace, rule, isSystem, because }) => {
    const { apiGroups, resources, resourceNames } = rule;
    // A permission of every account distinguishes none.
    const isNamed = apiGroups.includes(type.group) && !EVERYBODY.includes(subject.name);
    const isAboutThem =
      resourceNames.length === 0 || names.some((name) => resourceNames.includes(name));
    if (!isAboutThem) return [];
    const verbs = rule.verbs.flatMap((verb) => (verb === '*' ? ['update', 'list', 'watch'] : verb));
    const isSeen = [type.resource, '*'].some((name) => resources.includes(name));
    const changes = resources.some((name) => changed.includes(name)) && canChange({ verbs });
    const marks =
      isNamed && canChange({ verbs }) ? resources.flatMap((name) => markOf(type, name)) : [];
    return [...(isSeen ? verbs : []), ...(changes ? ['change'] : []), ...marks].map((right) => ({
      ...{ right, because, isSystem, isNamed },
      isGlobal: namespace === undefined,
    }));
  });
  const has = (...wanted: string[]): Rights['change'] => {
    const isGranted = (among: typeof granted): boolean =>
      wanted.every((one) => among.some(({ right }) => right === one));
    if (isGranted(granted.filter((grant) => grant.isNamed))) return 'named';
    return isGranted(granted) ? 'everything' : undefined;
  };
  const changing = granted.filter(({ right }) => right === 'change');
  return {
    change: has('change'),
    watch: has('list', 'watch'),
    impersonates: own.some(({ rule }) => rule.verbs.includes('impersonate')),
    reachesGroup: ofGroup.length > 0,
    worksElsewhere: own.some(({ rule }) =>
      rule.apiGroups.some((group) => group !== type.group && !isBuiltIn(group)),
    ),
    isLocal: changing.length > 0 && changing.every(({ isGlobal }) => !isGlobal),
    isOfKubernetes: granted.length > 0 && granted.every(({ isSystem }) => isSystem),
    isHalfMarked: has('list', 'watch', 'status') === 'named',
    isOfGroup: granted.some(({ right }) => right === 'group'),
    isMarked: ['type', 'part'].every((mark) => granted.some(({ right }) => right === mark)),
    because: [...new Set(granted.map(({ because }) => because))],
  };
}

/** Returns the mark of a controller in a rule's resource; of a group that is named, all are none for one of several. */
function markOf({ resource }: ResourceType, name: string): string[] {
  if (name === '*') return ['group'];
  if (name === resource) return ['type'];
  if (name === `${resource}/status`) return ['part', 'status'];
  return name === `${resource}/finalizers` ? ['part'] : [];
}

/**
 * Reports whether RBAC shows that the account may have lost its permissions: its role is gone and the binding left, or a
 * role with the marks of the type's controller is bound to nobody.
 */
export function hadRights(context: Context, account: Account, type: ResourceType): boolean {
  const { clusterRoles, clusterRoleBindings } = context.now.cluster;
  const isDangling = itemsIn(clusterRoleBindings).some(
    ({ role, subjects, namespace }) =>
      itemsIn(clusterRoles).every(({ name }) => name !== role.name) &&
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

/** Returns the ClusterRoles with the marks of the type's controller that no ClusterRoleBinding binds to anybody. */
export function unboundRoles({ now: { cluster } }: Context, type: ResourceType): string[] {
  const bound = itemsIn(cluster.clusterRoleBindings).map(({ role }) => role.name);
  return itemsIn(cluster.clusterRoles).flatMap(({ name, rules }) => {
    const isMarked = rules.some(
      (rule) =>
        rule.apiGroups.includes(type.group) &&
        canChange(rule) &&
        rule.resources.some((one) => markOf(type, one).some((mark) => mark !== 'type')),
    );
    return isMarked && !bound.includes(name) ? [name] : [];
  });
}

/**
 * Returns the resources by which the metadata of an object can be changed. The library of cloud controllers patches
 * that of a Service through its status (k8s.io/cloud-provider/service/helpers, PatchService), and may have no other
 * permission.
 */
export function waysToChange(type: ResourceType): string[] {
  return typeName(type) === 'services' ? ['services', 'services/status'] : [type.resource];
}

function isAboutGroup({ apiGroups }: RuleFacts, { group }: ResourceType): boolean {
  return apiGroups.includes(group) || apiGroups.includes('*');
}

/** Reports whether a rule is about all objects of the type, with any verbs. */
function coversType(rule: RuleFacts, type: ResourceType): boolean {
  const { resources } = rule;
  return isAboutGroup(rule, type) && [type.resource, '*'].some((name) => resources.includes(name));
}

function canChange({ verbs }: Pick<RuleFacts, 'verbs'>): boolean {
  return verbs.some((verb) => CHANGING.includes(verb));
}

const EVERYBODY: readonly string[] = ['system:serviceaccounts', 'system:authenticated'];

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
export const NAMESPACE_CONTROLLERS: readonly Account[] = [
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
    const granted = grantsOf(context)
      .filter((grant) => isFor(grant, account) && coversType(grant.rule, type))
      .flatMap(({ rule }) => (rule.verbs.includes('*') ? verbs : rule.verbs));
    return verbs.every((verb) => granted.includes(verb));
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

/**
 * Returns users and groups, other than ServiceAccounts, that a rule which names the type's group lets change it: a
 * controller that runs outside of the cluster may be among them. Many people may change built-in types, of which controllers
 * write the status or finalizers.
 */
export function writersOutsideCluster(context: Context, type: ResourceType): string[] {
  const isController = ({ resources }: RuleFacts): boolean =>
    !isBuiltIn(type.group) || resources.some((name) => /\/(?:status|finalizers)$/.test(name));
  const subjects = grantsOf(context)
    .filter(
      ({ rule }) =>
        rule.apiGroups.includes(type.group) && changesType(rule, type) && isController(rule),
    )
    .filter((grant) => grant.subject.kind !== 'ServiceAccount' && !isForKubernetes(grant))
    .map(({ subject }) => subject)
    .filter(({ name }) => !/^system:(?:serviceaccounts?(?::|$)|authenticated$)/.test(name));
  return [...new Set(subjects.map(({ kind, name }) => `${kind.toLowerCase()} ${name}`))];
}

/** Reports whether a rule is about changes of the type. The status of a built-in type carries its metadata as well. */
function changesType(rule: RuleFacts, type: ResourceType): boolean {
  const types = rule.resources.map((name) => name.split('/')[0]);
  const isAboutIt = types.includes('*') || types.includes(type.resource);
  return isAboutGroup(rule, type) && isAboutIt && canChange(rule);
}

/** Reports whether RBAC lets the account create Pods, or Jobs, which create them. */
export function mayCreatePods(context: Context, account: Account): boolean {
  const creates = ({ apiGroups, resources, verbs }: RuleFacts, group: string, name: string) =>
    [group, '*'].some((one) => apiGroups.includes(one)) &&
    [name, '*'].some((one) => resources.includes(one)) &&
    ['create', '*'].some((one) => verbs.includes(one));
  return grantsOf(context).some(
    (grant) =>
      isFor(grant, account) &&
      (creates(grant.rule, '', 'pods') || creates(grant.rule, 'batch', 'jobs')),
  );
}

/** Reports whether RBAC lets the account act as ServiceAccounts: by their tokens, or by impersonation. */
export function mayActAs(context: Context, account: Account): boolean {
  return grantsOf(context).some((grant) => isFor(grant, account) && actsAsAccounts(grant.rule));
}

function actsAsAccounts({ apiGroups, resources, verbs }: RuleFacts): boolean {
  const impersonates =
    ['impersonate', '*'].some((verb) => verbs.includes(verb)) &&
    ['serviceaccounts', '*'].some((name) => resources.includes(name));
  const makesTokens =
    ['create', '*'].some((verb) => verbs.includes(verb)) &&
    resources.some((name) => TOKENS.test(name));
  return ['', '*'].some((group) => apiGroups.includes(group)) && (impersonates || makesTokens);
}

/**
 * Users and groups of Kubernetes itself, which every cluster has. Other programs have names with this prefix too: agents of
 * Open Cluster Management register as `system:open-cluster-management:…`.
 */
const OF_KUBERNETES =
  /^system:(?:masters|nodes?|node:.*|node-proxier|node-problem-detector|bootstrappers.*|bootstrap:.*|monitoring|unauthenticated|anonymous|apiserver|kube-[a-z-]+)$/;

const ADMINISTRATORS = /^(?:system:masters|kubeadm:cluster-admins)$/;

/**
 * Reports whether a grant is for Kubernetes itself: a role of its own for its users, groups and accounts in kube-system, or
 * everything for its administrators. Other roles are for other programs: agents on nodes act as `system:nodes`, cloud
 * controllers by a role `system:cloud-controller-manager`.
 */
function isForKubernetes({ subject, namespace, isSystem, because }: Grant): boolean {
  const account = accountOf({ subject, namespace });
  return subject.kind === 'Group' || account.namespace === undefined
    ? (isSystem && OF_KUBERNETES.test(subject.name)) ||
        (ADMINISTRATORS.test(subject.name) && because.startsWith('ClusterRole cluster-admin,'))
    : isSystem && account.namespace === 'kube-system';
}

/** Returns the grants of the namespace's own bindings that were deleted with it. */
function departedGrants({ now }: Context): Grant[] {
  const here = itemsIn(now.places[now.namespace.name]?.roleBindings);
  return joinGrants(
    [...itemsIn(now.cluster.clusterRoles), ...itemsIn(now.baseline?.roles)],
    itemsIn(now.baseline?.roleBindings).filter(({ name }) =>
      here.every((binding) => binding.name !== name),
    ),
  );
}

/**
 * Returns the binding that gave the account a permission here, and was deleted with the namespace. `type`: to change it;
 * `isNamed`: by a rule that names its group.
 */
export function departedGrant(
  context: Context,
  account: Account,
  type?: ResourceType,
  isNamed = false,
): string | undefined {
  const letsChange = ({ rule }: Grant): boolean =>
    type === undefined ||
    (coversType(rule, type) &&
      (!isNamed || rule.apiGroups.includes(type.group)) &&
      canChange(rule));
  return departedGrants(context).find((grant) => isFor(grant, account) && letsChange(grant))
    ?.binding;
}
