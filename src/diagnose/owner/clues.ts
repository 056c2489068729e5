import {
  domainOf,
  entriesOfWorkload,
  isExactWorkloadName,
  isWorkloadOf,
} from '../../model/catalogue.ts';
import type { ResourceType, ServiceRef, Wanted } from '../../model/snapshot.ts';
import { type Actor, actorText } from '../actors.ts';
import { actorsBehind } from '../backends.ts';
import {
  type Context,
  conversionsOf,
  definitionsOf,
  eventsAbout,
  extensionApis,
  isBuiltIn,
  itemsIn,
  serviceText,
  shortQuote,
  textsAbout,
  typeName,
  webhooksOf,
  withService,
} from '../context.ts';
import {
  type Account,
  ableAccounts,
  departedGrant,
  isSameAccount,
  rightsOf,
  rolesLost,
  unboundRoles,
} from '../rights.ts';
import {
  type FinalizerDomain,
  finalizerDomain,
  type Held,
  identifiesController,
  isControllerOfType,
  isKnownWorkload,
  isOfNoDomain,
  isSetByHand,
  knownFinalizer,
  lateWrites,
  specificFieldManager,
  statusManagers,
  typesOfDomain,
  writerOf,
} from './held.ts';
import { holderOf, isRenewed, leasesOfGroups, leasesOfProgram } from './leases.ts';
import { logLinesNaming } from './logs.ts';
import {
  FRAMEWORKS,
  hasProgramName,
  hasWorkloadName,
  isCopyOf,
  isExactProduct,
  isFrameworkName,
  isGeneralTool,
  isSameName,
  isTaskName,
  matchesReporter,
  workloadsOfProgram,
} from './names.ts';
import {
  type ClueRow,
  type OwnerQuestion,
  type Pointer,
  questionAbout,
  rightsOfSuspect,
  type Suspect,
} from './suspects.ts';

/** Every clue, in the order in which suspects are listed. Reasons for a suspect to stand back are EXCLUSIONS. */
export const CLUES = [
  {
    kind: 'log',
    weight: 'decides',
    text: 'its log names the object',
    pointsTo: namedInLogs,
  },
  {
    kind: 'writer',
    weight: 'decides',
    text: 'it has the name of the writer of this finalizer (managedFields)',
    pointsTo: finalizerWriters,
  },
  {
    kind: 'catalogue',
    weight: 'decides',
    text: 'the finalizer is well known, and this is its workload',
    pointsTo: knownWorkloads,
  },
  {
    kind: 'marks',
    weight: 'marks',
    text: 'RBAC rules that name the type and its status or finalizers let it change both, as its controller does',
    pointsTo: marked,
  },
  {
    kind: 'status',
    weight: 'supports',
    text: 'it writes the status of the object (managedFields)',
    pointsTo: statusWriters,
  },
  {
    kind: 'installation',
    weight: 'supports',
    text: 'it has the OLM package, the Helm release or the app.kubernetes.io labels of the CRD',
    pointsTo: installedWithType,
  },
  {
    kind: 'lease',
    weight: 'supports',
    text: 'it leads by a Lease named after the API group',
    pointsTo: leaders,
  },
  {
    kind: 'author',
    weight: 'supports',
    text: 'it has a name like that of the writer of the finalizer, who may have copied it',
    pointsTo: authors,
  },
  {
    kind: 'product',
    weight: 'supports',
    text: 'the finalizer is well known, and workloads of this product have such names',
    pointsTo: productWorkloads,
  },
  {
    kind: 'serves',
    weight: 'supports',
    text: 'it serves the type',
    pointsTo: servers,
  },
  {
    kind: 'said', // anybody may write a status or an Event
    weight: 'supports',
    text: 'an Event about the object comes from it, or a text quotes its ServiceAccount',
    pointsTo: heard,
  },
  {
    kind: 'container',
    weight: 'supports',
    text: 'it runs a container or command with the name of the writer of the finalizer',
    pointsTo: namesakes,
  },
  {
    kind: 'part',
    weight: 'supports',
    text: 'it has lost its rights: only a part of those of a controller is left, or a role of its name with them is bound to nobody',
    pointsTo: halfMarked,
  },
  {
    kind: 'permission',
    weight: 'supports',
    text: 'an RBAC rule that names the type lets it change the objects',
    pointsTo: permitted,
  },
] as const satisfies readonly ClueRow[];

type ClueKind = (typeof CLUES)[number]['kind'];

/** Returns all suspects to which a clue points, with their clues, best first. */
export function suspectsFor(question: OwnerQuestion): Suspect[] {
  const found = new Map<string, Suspect>();
  for (const { pointsTo, ...row } of CLUES) {
    for (const { actor, account, program, detail } of pointsTo(question)) {
      const key = actor
        ? `${actorText(actor)} ${actor.isGone}`
        : JSON.stringify([account, program]);
      const suspect = found.get(key) ?? {
        ...{ actor, account, program },
        clues: [],
        rights: rightsOfSuspect(question, actor, account),
      };
      found.set(key, suspect);
      if (hasClue(suspect, row.kind)) continue;
      suspect.clues.push({ ...row, text: detail === '' ? row.text : `${row.text}: ${detail}` });
    }
  }
  return [...found.values()].toSorted(compareSuspects);
}

/** Orders suspects by the first clue, in the order of the table, that one has and the other has not. */
function compareSuspects(a: Suspect, b: Suspect): number {
  const row = CLUES.find(({ kind }) => hasClue(a, kind) !== hasClue(b, kind));
  return row === undefined ? 0 : hasClue(a, row.kind) ? -1 : 1;
}

export function hasClue({ clues }: Suspect, ...kinds: ClueKind[]): boolean {
  return clues.some(({ kind }) => kinds.some((one) => one === kind));
}

function pointers(actors: readonly Actor[], detail = ''): Pointer[] {
  return actors.map((actor) => ({ actor, account: actor.account, detail }));
}

/** General tools apply and restore what belongs to others. They are meant only where RBAC names the type for them. */
function withoutTools({ rightsOf }: OwnerQuestion, actors: readonly Actor[]): Actor[] {
  return actors.filter((one) => {
    const { change, worksElsewhere } = rightsOf(one.account);
    return !isGeneralTool(one) || change === 'named' || !worksElsewhere;
  });
}

function namedInLogs(question: OwnerQuestion): Pointer[] {
  const { context, held, actors } = question;
  return withoutTools(question, actors).flatMap((actor) =>
    logLinesNaming(context, held, actor)
      .slice(0, 1)
      .flatMap(({ pod, text }) => pointers([actor], `log of ${pod}: ${shortQuote(text)}`)),
  );
}

/** Returns who has the name of the finalizer's writer, or the program of that name if nobody has it. */
function finalizerWriters(question: OwnerQuestion): Pointer[] {
  const { held, actors } = question;
  const manager = specificFieldManager(held);
  if (manager === '') return [];
  const detail = `field manager "${manager}"`;
  // Where the catalogue knows the workload of this name, another one with its image is not meant.
  const isKnown = isKnownWorkload(held, manager);
  const named = actors.filter((actor) =>
    isKnown
      ? hasWorkloadName(actor, manager) || isCopyOf(actor.name, manager)
      : hasProgramName(actor, manager),
  );
  const found = pointers(withoutTools(question, named), detail);
  const isAble = ({ account }: Actor): boolean => question.rightsOf(account).change !== undefined;
  if (named.some(isAble) || (named.length > 0 && found.length === 0)) return found;
  const accounts = unusedAccounts(question)
    .filter(({ name }) => isSameName(name, manager))
    .map((account) => ({ actor: undefined, account, detail }));
  if (found.length + accounts.length > 0) return [...found, ...accounts];
  const isPart =
    isControllerOfType(held, manager) ||
    (!isKnown && authors(question).length + knownWorkloads(question).length > 0);
  return isPart ? [] : [{ actor: undefined, account: undefined, program: manager, detail }];
}

/** Returns the ServiceAccounts with permissions on the type that no workload uses. */
export function unusedAccounts({ context, held, actors }: OwnerQuestion): Account[] {
  return ableAccounts(context, held.type).accounts.filter(
    (account) =>
      account.namespace !== undefined &&
      !actors.some(({ account: used }) => isSameAccount(used, account)),
  );
}

function knownWorkloads(question: OwnerQuestion): Pointer[] {
  const known = knownFinalizer(question.held);
  if (known === undefined) return [];
  const exact = question.actors.filter((actor) => isExactProduct(known, actor));
  if (exact.length > 0) return pointers(exact, known.owner);
  return unusedAccounts(question)
    .filter(({ name }) => isExactWorkloadName(known, name))
    .map((account) => ({ actor: undefined, account, detail: known.owner }));
}

/**
 * Returns the types of which the marks name the owner: the object's own, where the finalizer's domain is that of its group,
 * none, or a framework's; those of another group whose domain it is. Several controllers put finalizers of their own
 * domains on a shared type, and the domain of a company is above the groups of several products.
 */
function typesToMark({ context, held, domain }: OwnerQuestion): ResourceType[] {
  if (domain.relation === 'unclear' && !isOfNoDomain(held)) return [];
  const isAbove = (group: string): boolean =>
    group !== held.type.group && group.endsWith(`.${domainOf(held.finalizer)}`);
  return typesOfDomain(context, held, domain).filter(
    ({ group }) => !isBuiltIn(group) && !isAbove(group),
  );
}

/** Returns those with the marks of the controller. A ServiceAccount that no workload uses stands for one that is gone. */
export function marked(question: OwnerQuestion): Pointer[] {
  const { context, held, actors } = question;
  const types = typesToMark(question);
  const idle = unusedAccounts(question).filter((account) => !isActive(question, account));
  return [
    ...actors.map((actor) => ({ actor, account: actor.account })),
    ...idle.map((account) => ({ actor: undefined, account })),
  ].flatMap((one) => {
    const own = question.rightsOf(one.account);
    if (own.change === undefined) return [];
    const all = types.map((type) =>
      type === held.type ? own : rightsOf(context, one.account, type, []),
    );
    // A group of which it has some types only is shared by several products.
    const isMarked = all.every(
      ({ isMarked, isOfGroup, isOfKubernetes }) =>
        !isOfKubernetes && (isMarked || (isOfGroup && one.actor === undefined)),
    );
    const because = all.flatMap((rights) => rights.because);
    return isMarked && all.length > 0
      ? [{ ...one, detail: [...new Set(because)].slice(0, 3).join('; ') }]
      : [];
  });
}

/**
 * Reports whether the catalogue names other workloads for this finalizer, and this one for another: Crossplane may change
 * the managed resources of its providers, which remove the finalizer.
 */
export function isKnownForAnother(held: Held, { name }: Actor): boolean {
  const known = knownFinalizer(held);
  return (
    known !== undefined &&
    known.workload.length > 0 &&
    !isWorkloadOf(known, name) &&
    entriesOfWorkload(name, isFrameworkName).length > 0
  );
}

/** Returns those that have lost the marks, or a part of them. Many write the status of built-in types. */
function halfMarked(question: OwnerQuestion): Pointer[] {
  const { context, held, actors } = question;
  if (isSetByHand(held) || !typesToMark(question).includes(held.type)) return [];
  return actors.flatMap((actor) => {
    const { change, isHalfMarked } = question.rightsOf(actor.account);
    if (change !== undefined) return [];
    const role = rolesLost(context, actor.account, held.type).find((name) => isRoleOf(name, actor));
    if (role !== undefined) return pointers([actor], `ClusterRole ${role}`);
    return isHalfMarked ? pointers([actor]) : [];
  });
}

/** Returns the RoleBindings that show whether such workloads have lost a role, or work on their own namespace. */
export function placesOfRoles(context: Context, held: Held): Wanted['places'] {
  const roles = unboundRoles(context, held.type);
  if (roles.length === 0) return [];
  const question = questionAbout(context, held);
  const alike = [finalizerWriters, knownWorkloads, namesakes].flatMap((of) => of(question));
  return question.actors
    .filter(
      (actor) =>
        alike.some((one) => one.actor === actor) || roles.some((name) => isRoleOf(name, actor)),
    )
    .map(({ namespace }) => ({ namespace, sources: ['roleBindings'] }));
}

/** Recognizes the role `widget-operator-manager-role` of `widget-operator-controller-manager`. */
function isRoleOf(role: string, { namespace, name, account }: Actor): boolean {
  const stem = role.replace(/(?:-manager)?(?:-cluster)?-?role$/i, '');
  return [name, `${namespace}-${name}`, account.name].some(
    (own) => stem.includes('-') && `${own}-`.startsWith(`${stem}-`),
  );
}

/** Reports whether something was written or renewed under the account's name of late, or under one that any program may have. */
function isActive({ context, held }: OwnerQuestion, { name }: Account): boolean {
  return (
    leasesOfProgram(context, name).some((lease) => isRenewed(context, lease)) ||
    lateWrites(held).some(({ manager }) => isSameName(manager, name) || isFrameworkName(manager))
  );
}

/**
 * Returns the writers of the status. A program writes under one name, so a writer of the status under another name than
 * the finalizer's writer did not write the finalizer, unless that is the name of a task.
 */
function statusWriters({ held, domain, actors }: OwnerQuestion): Pointer[] {
  if (domain.relation !== 'own' && !isOfNoDomain(held)) return [];
  const writer = writerOf(held)?.manager;
  return statusManagers(held)
    .filter((own) => writer === undefined || isTaskName(writer) || isSameName(own, writer))
    .flatMap((own) => pointers(workloadsOfProgram(actors, own), `field manager "${own}"`));
}

const NAME_LABEL = 'app.kubernetes.io/name';
/** Several programs may be parts of one project, and Argo CD writes `instance` on all that an Application deploys. */
const CRD_LABELS = [NAME_LABEL, 'app.kubernetes.io/part-of'];

function installedWithType({ context, held, domain, actors }: OwnerQuestion): Pointer[] {
  const types = typesOfDomain(context, held, domain).map(typeName);
  const packages = itemsIn(context.now.cluster.clusterServiceVersions)
    .filter(({ owned }) => owned.some((name) => types.includes(name)))
    .flatMap(({ namespace, name, deployments }) =>
      pointers(
        actors.filter((actor) => deployments.includes(actor.name)),
        `ClusterServiceVersion ${namespace}/${name}`,
      ),
    );
  if (domain.relation !== 'own') return packages;
  const definitions = itemsIn(context.now.cluster.definitions).filter(({ name }) =>
    types.includes(name),
  );
  const labelled = definitions.flatMap(({ labels }) =>
    CRD_LABELS.flatMap((key) => labels[key] || []),
  );
  const releases = definitions.flatMap((definition) => releaseOf(definition) ?? []);
  const alike = actors.filter(
    (actor) =>
      labelled.includes(actor.labels[NAME_LABEL] ?? '') ||
      (releases.includes(releaseOf(actor) ?? '') && !isGeneralTool(actor)),
  );
  return [...packages, ...pointers(withOwnAccount(actors, alike))];
}

/** Returns what Helm writes on everything that it installs. */
function releaseOf({ annotations }: Pick<Actor, 'annotations'>): string | undefined {
  const [namespace, name] = ['release-namespace', 'release-name'].map(
    (key) => annotations[`meta.helm.sh/${key}`],
  );
  return name && `${namespace}/${name}`;
}

/** A workload that shares its account shows the installation, not the controller. */
function withOwnAccount(all: readonly Actor[], some: readonly Actor[]): Actor[] {
  return some.filter((actor) =>
    all.every((other) => other === actor || !isSameAccount(other.account, actor.account)),
  );
}

function leaders({ context, domain }: OwnerQuestion): Pointer[] {
  // A name behind a hash ends with the domain of a company, whose operators may use each other's types.
  return leasesOfGroups(context, domain)
    .filter(({ name }) => domain.groups.some((group) => name.includes(group)))
    .flatMap((lease) => {
      const holder = holderOf(context, lease);
      return holder === undefined
        ? []
        : pointers([holder], `${lease.namespace}/${lease.name}, by ${lease.holder}`);
    });
}

function authors(question: OwnerQuestion): Pointer[] {
  const { held, actors } = question;
  const { manager = '' } = writerOf(held) ?? {};
  if (!identifiesController(held, manager)) return [];
  const alike = workloadsOfProgram(actors, manager);
  return pointers(withoutTools(question, alike), `field manager "${manager}"`);
}

function productWorkloads({ held, actors }: OwnerQuestion): Pointer[] {
  const known = knownFinalizer(held);
  return (known?.workload ?? []).flatMap(({ name: pattern }) =>
    pointers(
      actors.filter(({ name }) =>
        isWorkloadOf({ workload: [{ namespace: '', name: pattern }] }, name),
      ),
      pattern,
    ),
  );
}

/** Returns Services that convert, serve or guard types of the domain's groups. */
function servicesOf(
  context: Context,
  { groups }: FinalizerDomain,
): { service: ServiceRef; detail: string }[] {
  const isMeant = ({ group }: { group: string }): boolean => groups.includes(group);
  const webhooks = webhooksOf(context);
  // Policy engines and gateways list groups of others.
  const guards = withService(webhooks).filter(({ configuration: { uid } }) =>
    webhooks
      .filter((other) => other.configuration.uid === uid)
      .flatMap(({ rules }) => rules.flatMap(({ apiGroups }) => apiGroups))
      .every((group) => groups.includes(group)),
  );
  return [
    ...conversionsOf(definitionsOf(context))
      .filter(isMeant)
      .map(({ name, service }) => ({ service, detail: `conversion of ${name}` })),
    ...extensionApis(context)
      .filter(isMeant)
      .map(({ name, service }) => ({ service, detail: `APIService ${name}` })),
    ...guards.map(({ configuration, service }) => ({
      service,
      detail: `webhook of this API group, ${configuration.name}`,
    })),
  ].map(({ service, detail }) => ({ service, detail: `${detail}, ${serviceText(service)}` }));
}

function servers({ context, domain, actors }: OwnerQuestion): Pointer[] {
  return servicesOf(context, domain).flatMap(({ service, detail }) =>
    pointers(withOwnAccount(actors, actorsBehind(context, service)), detail),
  );
}

/** Returns the namespaces of Services that serve the type: their pods have to be read. */
export function placesOfServers(context: Context, held: Held): string[] {
  return servicesOf(context, finalizerDomain(context, held)).map(
    ({ service }) => service.namespace,
  );
}

/**
 * Returns the reporters of Events about the object that have the name of the finalizer's writer, and the accounts that the
 * API server has refused something, by a text about the object. Policy engines and exporters report about everything.
 */
function heard({ context, held, actors }: OwnerQuestion): Pointer[] {
  const events = eventsAbout(context, held);
  const reporters = events
    .filter(({ component }) => isSameName(specificFieldManager(held), component))
    .flatMap(({ component, instance }) =>
      pointers(
        actors.filter((actor) => matchesReporter(actor, component, instance)),
        `${component}, instance ${instance}`,
      ),
    );
  const texts = [
    ...held.objects.flatMap((object) => textsAbout(context, object)),
    ...events.map(({ message }) => message),
  ];
  return [
    ...reporters,
    ...accountsIn(texts.join('\n')).flatMap((account) =>
      pointers(
        actors.filter((actor) => isSameAccount(actor.account, account)),
        `${account.namespace}/${account.name}`,
      ),
    ),
  ];
}

/** Returns the accounts that the API server has refused something. Any other mention of an account proves nothing. */
function accountsIn(text: string): { namespace: string; name: string }[] {
  const refused = /"system:serviceaccount:([a-z0-9-]+):([a-z0-9.-]+[a-z0-9])\\*" cannot /g;
  return [...text.matchAll(refused)].map(([, namespace = '', name = '']) => ({ namespace, name }));
}

/**
 * Returns workloads with a container or command of the name of the finalizer's writer, which many programs have: a framework
 * (`kopf run handlers.py`), or `manager` if it writes the status and its permissions are for nothing else.
 */
function namesakes({ held, actors, rightsOf }: OwnerQuestion): Pointer[] {
  const { manager = '' } = writerOf(held) ?? {};
  if (!isFrameworkName(manager)) return [];
  const isWriter = held.objects.some(({ statusWriters }) =>
    statusWriters.some((one) => one.manager === manager),
  );
  const alike = actors.filter(
    ({ programs, account }) =>
      programs.includes(manager) &&
      (FRAMEWORKS.test(manager) || (isWriter && !rightsOf(account).worksElsewhere)),
  );
  return pointers(alike, `field manager "${manager}"`);
}

/** Returns workloads that may change the objects by a rule that names the type, and those that could and are gone. */
function permitted(question: OwnerQuestion): Pointer[] {
  const { context, held, actors } = question;
  return actors.flatMap((actor) => {
    const { change, because } = question.rightsOf(actor.account);
    const by = actor.isGone ? departedGrant(context, actor.account, held.type, true) : undefined;
    if (by !== undefined) return pointers([actor], `RoleBinding ${by}, deleted with it`);
    return change === 'named' ? pointers([actor], because.slice(0, 3).join('; ')) : [];
  });
}
