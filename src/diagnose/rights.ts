import { TOKENS } from '../model/facts.ts';
import type { BindingFacts, ResourceType, RoleFacts, RuleFacts } from '../model/snapshot.ts';
import { accountText, actorsOf } from './actors.ts';
import { type Context, isBuiltIn, itemsIn, typeName } from './context.ts';

/** A ServiceAccount, or another user that RBAC names. */
export interface Account {
  /** Undefined if the user is no ServiceAccount. */
  namespace: string | undefined;
  name: string;
}

export function isSameAccount(a: Account | undefined, b: Account | undefined): boolean {
  return a?.namespace === b?.namespace && a?.name === b?.name;
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
  because: [],
};

interface Grant {
  subject: BindingFacts['subjects'][number];
  /** The namespace of the binding; undefined: all namespaces. */
  namespace: string | undefined;
  rule: RuleFacts;
  binding: string;
  because: string;
}

const CHANGING: readonly string[] = ['update', 'patch', '*'];

const GRANTS = new WeakMap<Context, Grant[]>();

function grantsOf(context: Context): Grant[] {
  const { cluster, places, namespace } = context.now;
  const place = places[namespace.name];
  const grants =
    GRANTS.get(context) ??
    joinGrants(
      [...itemsIn(cluster.clusterRoles), ...itemsIn(place?.roles)],
      [...itemsIn(cluster.clusterRoleBindings), ...itemsIn(place?.roleBindings)],
    );
  GRANTS.set(context, grants);
  return grants;
}

function joinGrants(roles: readonly RoleFacts[], bindings: readonly BindingFacts[]): Grant[] {
  const keyOf = (kind: string, namespace: string | undefined, name: string): string =>
    `${kind} ${kind === 'Role' ? namespace : ''} ${name}`;
  const rules = new Map(
    roles.map(({ namespace, name, rules: own }) => [
      keyOf(namespace === undefined ? 'ClusterRole' : 'Role', namespace, name),
      own,
    ]),
  );
  return bindings.flatMap(({ name, namespace, role, subjects }) =>
    (rules.get(keyOf(role.kind, namespace, role.name)) ?? []).flatMap((rule) =>
      subjects.map((subject) => ({
        subject,
        namespace,
        rule,
        binding: name,
        because: `${role.kind} ${role.name}, bound by ${namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding'} ${name}`,
      })),
    ),
  );
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
  const rights: Rights = { ...NO_RIGHTS, because: [] };
  const changed =
    subresource === undefined
      ? [...waysToChange(type), '*']
      : [`${type.resource}/${subresource}`, `*/${subresource}`, '*'];
  const granted: { right: string; isNamed: boolean; isGlobal: boolean; because: string }[] = [];
  for (const { subject, namespace, rule, because } of grantsOf(context)) {
    if (!isFor(subject, namespace, account)) continue;
    rights.impersonates ||= rule.verbs.includes('impersonate');
    rights.worksElsewhere ||= rule.apiGroups.some(
      (group) => group !== type.group && !isBuiltIn(group),
    );
    const namesGroup = rule.apiGroups.includes(type.group);
    if (!namesGroup && !rule.apiGroups.includes('*')) continue;
    // What every account may do distinguishes none.
    const isNamed = namesGroup && !EVERYBODY.includes(subject.name);
    rights.reachesGroup = true;
    const isAboutThem =
      rule.resourceNames.length === 0 || names.some((name) => rule.resourceNames.includes(name));
    if (!isAboutThem) continue;
    const isChanged = rule.resources.some((name) => changed.includes(name));
    const isSeen = [type.resource, '*'].some((name) => rule.resources.includes(name));
    const verbs = rule.verbs.flatMap((verb) => (verb === '*' ? ['update', 'list', 'watch'] : verb));
    const changes = isChanged ? verbs.filter((verb) => CHANGING.includes(verb)) : [];
    for (const right of [...(isSeen ? verbs : []), ...changes.map(() => 'change')]) {
      granted.push({ right, isNamed, isGlobal: namespace === undefined, because });
    }
  }
  rights.because = [...new Set(granted.map((grant) => grant.because))];
  const has = (...wanted: string[]): Rights['change'] => {
    const isGranted = (among: typeof granted): boolean =>
      wanted.every((one) => among.some(({ right }) => right === one));
    if (isGranted(granted.filter((grant) => grant.isNamed))) return 'named';
    return isGranted(granted) ? 'everything' : undefined;
  };
  rights.change = has('change');
  rights.watch = has('list', 'watch');
  const changing = granted.filter(({ right }) => right === 'change');
  rights.isLocal = rights.change !== undefined && changing.every(({ isGlobal }) => !isGlobal);
  return rights;
}

/**
 * Returns the resources by which the metadata of an object can be changed. The library of cloud controllers patches
 * that of a Service through its status (k8s.io/cloud-provider/service/helpers, PatchService), and may have no other
 * permission.
 */
export function waysToChange(type: ResourceType): string[] {
  return typeName(type) === 'services' ? ['services', 'services/status'] : [type.resource];
}

/** Reports whether a rule is about all objects of the type, with any verbs. */
function coversType({ apiGroups, resources }: RuleFacts, type: ResourceType): boolean {
  return (
    [type.group, '*'].some((group) => apiGroups.includes(group)) &&
    [type.resource, '*'].some((resource) => resources.includes(resource))
  );
}

const EVERYBODY: readonly string[] = ['system:serviceaccounts', 'system:authenticated'];

/** Returns the account that a binding names, unless that is a group: a ServiceAccount is a user as well. */
function accountOf({ kind, namespace, name }: Grant['subject'], home: string | undefined): Account {
  if (kind === 'ServiceAccount') return { namespace: namespace ?? home, name };
  const [, place, own = name] = /^system:serviceaccount:([^:]+):(.+)$/.exec(name) ?? [];
  return { namespace: place, name: own };
}

/** Compares with the user and the groups of a ServiceAccount (apiserver pkg/authentication/serviceaccount/util.go). */
function isFor(
  subject: Grant['subject'],
  bindingNamespace: string | undefined,
  account: Account,
): boolean {
  if (subject.kind !== 'Group') {
    return isSameAccount(accountOf(subject, bindingNamespace), account);
  }
  const groups = [...EVERYBODY, `system:serviceaccounts:${account.namespace}`];
  return account.namespace !== undefined && groups.includes(subject.name);
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
      .filter(
        (grant) => isFor(grant.subject, grant.namespace, account) && coversType(grant.rule, type),
      )
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
  const accounts = able
    .map(({ subject, namespace }) => accountOf(subject, namespace))
    .filter(({ namespace }) => namespace !== undefined);
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
    .map(({ subject }) => subject)
    .filter(({ kind, name }) => kind !== 'ServiceAccount' && !name.startsWith('system:'));
  return [...new Set(subjects.map(({ kind, name }) => `${kind.toLowerCase()} ${name}`))];
}

/**
 * Returns everybody but this account whom RBAC lets change objects of the type, in words: directly, as somebody else, or
 * after granting it to themselves; also by a binding that was deleted with the namespace. Kubernetes itself and the gate
 * do not count, nor do ServiceAccounts of a namespace that is being deleted with their tokens.
 */
export function othersWhoMayChange(context: Context, type: ResourceType, own: Account): string[] {
  const { cluster, namespace, self } = context.now;
  const homes = itemsIn(cluster.namespaces).map(({ name }) => name);
  const gate = self?.ok === true ? accountOf({ kind: 'User', name: self.value }, undefined) : own;
  // A workload that stays may run as the gate's account; the gate itself runs in a Job, or outside.
  const isShared = actorsOf(context).some(
    ({ account, kind }) => isSameAccount(account, gate) && !/^(?:Job|CronJob|Pod)$/.test(kind),
  );
  const isOther = (account: Account, because: string): boolean => {
    if (isSameAccount(account, own) || (isSameAccount(account, gate) && !isShared)) return false;
    if (account.namespace === undefined) return !account.name.startsWith('system:');
    if (account.namespace === namespace.name || !homes.includes(account.namespace)) return false;
    return account.namespace !== 'kube-system' || !because.startsWith('ClusterRole system:');
  };
  const found = [...grantsOf(context), ...departedGrants(context)].flatMap(
    ({ subject, namespace: home, rule, because }) => {
      if (!changesType(rule, type) && !borrowsRights(rule)) return [];
      if (subject.kind === 'Group') {
        return ADMINISTRATORS.test(subject.name) ? [] : [`group ${subject.name}`];
      }
      const account = accountOf(subject, home);
      return isOther(account, because) ? [accountText(account)] : [];
    },
  );
  return [...new Set(found)];
}

/** Reports whether a rule is about changes of the type. The status of a built-in type carries its metadata as well. */
function changesType({ apiGroups, resources, verbs }: RuleFacts, type: ResourceType): boolean {
  return (
    [type.group, '*'].some((group) => apiGroups.includes(group)) &&
    resources.some((name) => ['*', type.resource].includes(name.split('/')[0] ?? '')) &&
    verbs.some((verb) => CHANGING.includes(verb))
  );
}

/** Reports whether a rule lets its holder act as somebody else, or give itself further permissions. */
function borrowsRights({ apiGroups, resources, verbs }: RuleFacts): boolean {
  return (
    verbs.some((verb) => ['impersonate', 'bind', 'escalate'].includes(verb)) ||
    (['', '*'].some((group) => apiGroups.includes(group)) &&
      resources.some((name) => TOKENS.test(name)) &&
      ['create', '*'].some((verb) => verbs.includes(verb)))
  );
}

/** Groups of Kubernetes itself and of kubeadm's administrators, which every cluster has; not those of all accounts. */
const ADMINISTRATORS = /^(?:system:(?!serviceaccounts|authenticated)|kubeadm:cluster-admins$)/;

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
  const own = departedGrants(context).filter(({ subject, namespace }) =>
    isFor(subject, namespace, account),
  );
  const letsChange = ({ rule }: Grant): boolean =>
    type === undefined ||
    (coversType(rule, type) &&
      (!isNamed || rule.apiGroups.includes(type.group)) &&
      rule.verbs.some((verb) => CHANGING.includes(verb)));
  return own.find(letsChange)?.binding;
}
