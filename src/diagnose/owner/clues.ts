import { escapeForRegExp, matchesGlob } from '../../base/text.ts';
import {
  domainOf,
  entriesOfWorkload,
  isExactWorkloadName,
  isWorkloadOf,
  productsOf,
} from '../../model/catalogue.ts';
import type { ResourceType, ServiceRef, WebhookFacts } from '../../model/snapshot.ts';
import { type Actor, accountText, actorText, isEndingNamespace } from '../actors.ts';
import { actorsBehind } from '../backends.ts';
import {
  type Context,
  conversionsOf,
  definitionsOf,
  eventsAbout,
  extensionApis,
  isBuiltIn,
  isForeseen,
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
  writersOutsideCluster,
} from '../rights.ts';
import {
  type FinalizerDomain,
  finalizerDomain,
  type Held,
  identifiesController,
  isControllerOfType,
  isNamedAfterType,
  isOftenProviderManaged,
  isSetByHand,
  knownFinalizer,
  lateWriters,
  specificFieldManager,
  statusManagers,
  typesOfDomain,
  writerOf,
} from './held.ts';
import { holderOf, isLeftOver, isRenewed, leasesOfGroups, leasesOfProgram } from './leases.ts';
import { logLinesNaming } from './logs.ts';
import {
  GITOPS_TOOLS,
  HARMLESS_WRITERS,
  hasProgramName,
  hasWorkloadName,
  identifiesProgram,
  isExactProduct,
  isFrameworkName,
  isGeneralTool,
  isKubernetesComponent,
  isOfOneProject,
  isSameName,
  isTaskName,
  matchesReporter,
  workloadsOfPod,
  workloadsOfProgram,
} from './names.ts';
import type { OwnerQuestion, Pointer } from './suspects.ts';

/** One kind of evidence about who owns a finalizer. */
export interface ClueRow {
  kind: string;
  /**
   * `object`: about this finalizer or this object, so it is direct. `type`: about the type. `anyone`: about controllers
   * that may act on the object; it identifies no owner, and while it points to one, no owner is called missing.
   */
  about: 'object' | 'type' | 'anyone';
  /** The sentence that the report shows about the suspect. */
  text: string;
  /**
   * `proven`: about one program alone, so the first such clue decides if it points to one suspect. `likely`: names the
   * owner if no other suspect has such a clue; a clue about the type does so only together with `permission`. Other
   * clues only order the suspects.
   */
  names?: 'proven' | 'likely';
  pointsTo: (question: OwnerQuestion) => Pointer[];
}

/** Begins the sentences about those that no workload in the cluster shows. */
export const RUNS_OUTSIDE_TEXT = 'it may run outside of the cluster';

/**
 * Every clue, in the order in which they count. No rule about who the owner is exists outside of this table,
 * EXCLUSIONS and DOUBTS.
 */
export const CLUES = [
  {
    kind: 'log',
    about: 'object',
    names: 'proven',
    text: 'its log names the object',
    pointsTo: ({ context, held, actors }) =>
      actors.flatMap((actor) =>
        logLinesNaming(context, held, actor)
          .slice(0, 1)
          .flatMap(({ pod, text }) => pointers([actor], `log of ${pod}: ${shortQuote(text)}`)),
      ),
  },
  {
    kind: 'writer',
    about: 'object',
    names: 'proven',
    text: 'it has the name of the writer of this finalizer (managedFields)',
    pointsTo: finalizerWriter,
  },
  {
    kind: 'catalogue',
    about: 'object',
    names: 'proven',
    text: 'the finalizer is well known, and this is its workload',
    pointsTo: knownWorkloads,
  },
  {
    kind: 'status',
    about: 'object',
    names: 'likely', // a status may have several writers
    text: 'it writes the status of the object (managedFields)',
    pointsTo: statusWriters,
  },
  {
    kind: 'marks',
    about: 'type',
    names: 'likely',
    text: 'RBAC rules that name the type and its status or finalizers let it change both, as its controller does',
    pointsTo: marked,
  },
  {
    kind: 'installation',
    about: 'type',
    names: 'likely',
    text: 'it has the OLM package or the app.kubernetes.io labels of the CRD',
    pointsTo: installedWithType,
  },
  {
    kind: 'lease',
    about: 'type',
    names: 'likely',
    text: 'it leads by a Lease named after the API group',
    pointsTo: leaders,
  },
  {
    kind: 'author',
    about: 'type',
    names: 'likely',
    text: 'it runs a program named like the writer of this finalizer',
    pointsTo: authors,
  },
  {
    kind: 'product',
    about: 'type',
    names: 'likely',
    text: 'the finalizer is well known, and workloads of this product have such names',
    pointsTo: ({ held, actors }) => {
      const known = knownFinalizer(held);
      const patterns = known?.anyController ? known.workload : [];
      return patterns.flatMap(({ name: pattern }) =>
        pointers(
          actors.filter(({ name }) => matchesGlob(pattern, name)),
          pattern,
        ),
      );
    },
  },
  {
    kind: 'event',
    about: 'object', // and anybody may write Events
    text: "it reported an Event about the object, under the name of the finalizer's writer",
    pointsTo: reporters,
  },
  {
    kind: 'quoted',
    about: 'object',
    text: 'the object, or an Event about it, quotes the refusal of a request of its ServiceAccount',
    pointsTo: quotedAccounts,
  },
  {
    kind: 'called',
    about: 'type',
    text: 'its name fits',
    pointsTo: namedAlike,
  },
  {
    kind: 'serves',
    about: 'type',
    text: 'it serves the type',
    pointsTo: servers,
  },
  {
    kind: 'active',
    about: 'object',
    text: 'it has written to the object since the deletion began',
    pointsTo: lateWritersHere,
  },
  {
    kind: 'permission',
    about: 'type',
    text: 'an RBAC rule that names the type lets it read and change the objects',
    pointsTo: permitted,
  },
  {
    kind: 'able',
    about: 'anyone',
    text: 'RBAC lets it change the objects',
    pointsTo: (question) =>
      pointers(
        question.actors.filter((actor) => !actor.isGone && isSuspectByRight(question, actor)),
      ),
  },
  {
    kind: 'outside',
    about: 'anyone',
    text: RUNS_OUTSIDE_TEXT,
    pointsTo: outsidePrograms,
  },
] as const satisfies readonly ClueRow[];

export type ClueKind = (typeof CLUES)[number]['kind'];

function pointers(actors: readonly Actor[], detail = ''): Pointer[] {
  return actors.map((actor) => ({ actor, account: actor.account, detail }));
}

/**
 * Reports whether a permission makes it a suspect. Tools that the catalogue knows for other products (Argo CD, Velero,
 * OLM, cert-manager) may change everything, or built-in types, and remove no finalizer of others.
 */
function isSuspectByRight({ context, held, rightsOf }: OwnerQuestion, actor: Actor): boolean {
  const { account, name } = actor;
  const { change } = rightsOf(account);
  if (change === undefined) return false;
  if (change === 'everything' && isGeneralTool(actor)) return false;
  if (change === 'named' && !isBuiltIn(held.type.group)) return true;
  // Operators for one database share names: only a product whose API is served can be meant.
  const domains = entriesOfWorkload(name, isFrameworkName)
    .map(({ match }) => domainOf(match))
    .filter((domain) => isServed(context, domain));
  const own = [domainOf(held.finalizer), held.type.group];
  const isOwn = domains.some((domain) => own.some((one) => isOfOneProject(one, domain)));
  return domains.length === 0 || isOwn;
}

/** Reports whether an API of the company or community of this domain is served. Unless discovery was read, it may be. */
function isServed({ now: { discovery } }: Context, domain: string): boolean {
  if (!discovery.ok || isOfOneProject('kubernetes.io', domain)) return true;
  const { types, failedGroups } = discovery.value;
  const parent = domain.split('.').slice(-2).join('.');
  return [...types, ...failedGroups].some(({ group }) => isOfOneProject(group, parent));
}

/** Returns the workloads that run the program of this field manager. */
function programsOf({ actors }: OwnerQuestion, manager: string): Pointer[] {
  return pointers(workloadsOfProgram(actors, manager), `field manager "${manager}"`);
}

/** Reports whether a finalizer contains a name as a whole part: `api` is no part of `capi.example.com/hold`. */
function hasPart(finalizer: string, name: string): boolean {
  return new RegExp(`(?:^|[./_-])${escapeForRegExp(name)}(?:[./_-]|$)`).test(finalizer);
}

/** Returns the workload that wrote the finalizer, or the program of that name if no workload has the name. */
function finalizerWriter(question: OwnerQuestion): Pointer[] {
  const { held } = question;
  const manager = specificFieldManager(held);
  if (manager === '' || isSetForAnother(held, manager)) return [];
  const detail = `field manager "${manager}"`;
  const accounts = departedAccounts(question)
    .filter(({ name }) => isSameName(name, manager))
    .map((account) => ({ actor: undefined, account, detail }));
  const named = [...pointers(workloadsNamed(question, manager), detail), ...accounts];
  if (named.length > 0) return named;
  const programs = programsOf(question, manager);
  if (programs.length === 0) {
    // The writer's own refused requests name its account, and the catalogue names its workload.
    const others = [...quotedAccounts(question), ...knownWorkloads(question)];
    const isPart = isControllerOfType(held, manager);
    if (isPart || others.some(({ actor }) => actor !== undefined)) return [];
    return [{ actor: undefined, account: undefined, program: manager, detail }];
  }
  return isNamedAfterType(held, manager) && !GITOPS_TOOLS.test(manager)
    ? pointers(
        question.actors.filter((actor) => hasProgramName(actor, manager)),
        detail,
      )
    : [];
}

/**
 * Returns the workloads of this name, or else those whose ServiceAccount has it. A container or command of this
 * name may be a framework (`kopf run handlers.py`). A GitOps tool is meant only where RBAC names the type for it,
 * or no type of another product.
 */
function workloadsNamed({ actors, rightsOf }: OwnerQuestion, manager: string): Actor[] {
  const able = actors.filter(({ account }) => {
    const { change, worksElsewhere } = rightsOf(account);
    return !GITOPS_TOOLS.test(manager) || change === 'named' || !worksElsewhere;
  });
  const byName = able.filter((actor) => hasWorkloadName(actor, manager));
  if (byName.length > 0) return byName;
  return able.filter((actor) => isSameName(actor.account.name, manager));
}

/** Returns the ServiceAccounts with permissions on the type that no workload uses. */
function unusedAccounts({ context, held, actors }: OwnerQuestion): Account[] {
  return ableAccounts(context, held.type).accounts.filter(
    (account) =>
      account.namespace !== undefined &&
      !actors.some(({ account: used }) => isSameAccount(used, account)),
  );
}

/** Returns those of terminating namespaces: what ran as them was deleted with these. */
function departedAccounts(question: OwnerQuestion): Account[] {
  return unusedAccounts(question).filter(({ namespace }) =>
    isEndingNamespace(question.context, namespace),
  );
}

/**
 * Returns the types of which the marks name the owner: the object's own, where the finalizer's domain is that of its group,
 * none, or a framework's; those of another group whose domain it is. Several controllers put finalizers of their own
 * domains on a shared type.
 */
function typesToMark({ context, held, domain }: OwnerQuestion): ResourceType[] {
  if (domain.relation === 'unclear' && !isOfNoDomain(held)) return [];
  // The domain of a company is above the groups of several products.
  const isAbove = (group: string): boolean =>
    group !== held.type.group && group.endsWith(`.${domainOf(held.finalizer)}`);
  return typesOfDomain(context, held, domain).filter(
    ({ group }) => !isBuiltIn(group) && !isAbove(group),
  );
}

/** Reports whether the finalizer belongs to no project and no person, or to any controller of a framework or product. */
export function isOfNoDomain(held: Held): boolean {
  const isAnyones = knownFinalizer(held)?.anyController === true;
  const isBare = !domainOf(held.finalizer).includes('.') && !isSetByHand(held);
  return !isBuiltIn(held.type.group) && (isAnyones || isBare);
}

/** Returns those with the marks of the controller. A ServiceAccount that no workload uses stands for one that is gone. */
function marked(question: OwnerQuestion): Pointer[] {
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
    const isMarked = all.every((rights) => rights.isMarked && !rights.isOfKubernetes);
    const because = all.flatMap((rights) => rights.because);
    return isMarked && all.length > 0
      ? [{ ...one, detail: [...new Set(because)].slice(0, 3).join('; ') }]
      : [];
  });
}

/** Reports whether something was written or renewed under the account's name of late, or under one that any program may have. */
function isActive({ context, held }: OwnerQuestion, { name }: Account): boolean {
  return (
    leasesOfProgram(context, name).some((lease) => isRenewed(context, lease)) ||
    (!isForeseen(context, held) &&
      lateWrites(context, held).some(
        ({ manager }) => isSameName(manager, name) || isFrameworkName(manager),
      ))
  );
}

/**
 * Returns other programs of the product: one may set what another removes (snapshot-controller and
 * csi-snapshotter).
 */
export function isSetForAnother(held: Held, manager: string): boolean {
  const known = knownFinalizer(held);
  return (
    known !== undefined &&
    known.workload.length > 0 &&
    known.workload.every(({ name }) => name !== manager) &&
    productsOf(manager).some(({ match }) => domainOf(match) === domainOf(known.match))
  );
}

/**
 * Returns workloads whose name is a part of the finalizer, or is that of the well-known owner, and those with a
 * container or command of the writer's name, such as `manager`.
 */
function namedAlike({ held, actors, domain }: OwnerQuestion): Pointer[] {
  const { manager = '' } = writerOf(held) ?? {};
  const known = knownFinalizer(held);
  const contained = actors.filter(({ programs }) =>
    programs.some((name) => identifiesProgram(name) && hasPart(held.finalizer, name)),
  );
  const isFramework = isFrameworkName(manager) && domain.relation !== 'unclear';
  return [
    ...pointers(contained, 'the finalizer contains it'),
    ...pointers(
      actors.filter(({ name }) => known !== undefined && isWorkloadOf(known, name)),
      `${known?.owner}`,
    ),
    ...pointers(
      actors.filter(({ programs }) => isFramework && programs.includes(manager)),
      `field manager "${manager}"`,
    ),
  ];
}

/** Returns workloads that run a program of the writer's name. The author of an object may have copied the finalizer. */
function authors(question: OwnerQuestion): Pointer[] {
  const { held } = question;
  const { manager = '' } = writerOf(held) ?? {};
  if (!identifiesController(held, manager) || isSetForAnother(held, manager)) return [];
  return programsOf(question, manager);
}

/**
 * Returns the writers of the status. A program writes under one name, so a writer of the status under another name than
 * the finalizer's writer did not write the finalizer, unless that is the name of a task.
 */
function statusWriters(question: OwnerQuestion): Pointer[] {
  const { held, domain } = question;
  if (domain.relation !== 'own') return [];
  const writer = writerOf(held)?.manager;
  const managers = statusManagers(held).filter(
    (manager) => writer === undefined || isTaskName(writer) || isSameName(manager, writer),
  );
  return managers.flatMap((manager) => programsOf(question, manager));
}

function lateWritersHere(question: OwnerQuestion): Pointer[] {
  const { context, held } = question;
  if (isForeseen(context, held)) return [];
  return lateWrites(context, held).flatMap(({ manager }) => programsOf(question, manager));
}

/** Returns the writes to these objects since the deletion began, of their status or anything else. */
function lateWrites(context: Context, held: Held) {
  const others = held.objects.flatMap((object) =>
    (object.lateWriters ?? []).map((writer) => ({ object, ...writer })),
  );
  return [...lateWriters(context, held), ...others];
}

/** Returns accounts that the object or an Event names: they tried, even if RBAC no longer grants them anything. */
function quotedAccounts({ context, held, actors, rightsOf }: OwnerQuestion): Pointer[] {
  const manager = specificFieldManager(held);
  const said = [
    ...held.objects.flatMap((object) =>
      textsAbout(context, object).map((text) => ({
        text,
        by: object.statusWriters.map((writer) => writer.manager),
      })),
    ),
    ...eventsAbout(context, held).map(({ message, component }) => ({
      text: message,
      by: [component],
    })),
  ];
  return said.flatMap(({ text, by }) => {
    const speakers = by.filter(identifiesProgram);
    // A program other than the finalizer's writer may have tried something of its own.
    const isByWriter = speakers.some((name) => isSameName(name, manager));
    if (speakers.length > 0 && manager !== '' && !isByWriter) return [];
    const known = actors.filter((actor) =>
      speakers.some((speaker) => hasProgramName(actor, speaker)),
    );
    return accountsIn(text).flatMap((account): Pointer[] => {
      const detail = `${account.namespace}/${account.name}`;
      const ofAccount = (all: readonly Actor[]): Actor[] =>
        all.filter((actor) => isSameAccount(actor.account, account));
      // A reporter whose workload is known may have impersonated the account of another one.
      if (known.length > 0) return pointers(ofAccount(known), detail);
      // A workload without permissions on the type may only have been impersonated.
      const own = rightsOf(account).because.length > 0 ? ofAccount(actors) : [];
      return own.length > 0
        ? pointers(own, detail)
        : [{ actor: undefined, account: undefined, program: detail, detail }];
    });
  });
}

/** Returns the accounts that the API server has refused something. Any other mention of an account proves nothing. */
function accountsIn(text: string): { namespace: string; name: string }[] {
  const refused = /"system:serviceaccount:([a-z0-9-]+):([a-z0-9.-]+[a-z0-9])\\*" cannot /g;
  return [...text.matchAll(refused)].map(([, namespace = '', name = '']) => ({ namespace, name }));
}

function knownWorkloads(question: OwnerQuestion): Pointer[] {
  const known = knownFinalizer(question.held);
  if (known === undefined) return [];
  const accounts = departedAccounts(question).filter(({ name }) =>
    isExactWorkloadName(known, name),
  );
  return [
    ...pointers(
      question.actors.filter((actor) => isExactProduct(known, actor)),
      known.owner,
    ),
    ...accounts.map((account) => ({ actor: undefined, account, detail: known.owner })),
  ];
}

/**
 * Returns the reporters of Events about the object that have the name of the finalizer's writer. Policy engines and
 * exporters report about everything, and their Events may name the finalizer.
 */
function reporters({ context, held, actors }: OwnerQuestion): Pointer[] {
  return eventsAbout(context, held)
    .filter(({ component }) => isSameName(specificFieldManager(held), component))
    .flatMap(({ component, instance }) =>
      pointers(workloadsOfPod(actors, instance, component), `${component}, instance ${instance}`),
    );
}

function leaders({ context, domain }: OwnerQuestion): Pointer[] {
  // A name behind a hash ends with the domain of a company, whose operators may use each other's types.
  return leasesOfGroups(context, domain)
    .filter(({ name }) => domain.groups.some((group) => name.includes(group)))
    .flatMap((lease) => {
      const holder = holderOf(context, lease);
      if (holder === undefined) return [];
      const renewed = isRenewed(context, lease) ? 'renewed' : 'no longer renewed';
      return pointers([holder], `${lease.namespace}/${lease.name}, ${renewed} by ${lease.holder}`);
    });
}

/**
 * The labels of a CRD that name its program, or the project that the program has its name from. Several programs may be parts
 * of one project, and Argo CD writes `instance` on all that an Application deploys.
 */
const NAME_LABEL = 'app.kubernetes.io/name';
const CRD_LABELS = [NAME_LABEL, 'app.kubernetes.io/part-of'];

/** A workload that shares its account shows the installation, not the controller. */
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
  const labelled = itemsIn(context.now.cluster.definitions).flatMap(({ name, labels }) =>
    types.includes(name) ? CRD_LABELS.flatMap((key) => labels[key] || []) : [],
  );
  const alike = actors.filter(({ labels }) => labelled.includes(labels[NAME_LABEL] ?? ''));
  return [...packages, ...pointers(alike.filter((actor) => !sharesAccount(actors, actor)))];
}

/** Returns Services that convert, serve or guard types of the domain's groups. */
function servicesOf(
  context: Context,
  { groups }: FinalizerDomain,
): { service: ServiceRef; detail: string }[] {
  const isMeant = ({ group }: { group: string }): boolean => groups.includes(group);
  return [
    ...conversionsOf(definitionsOf(context))
      .filter(isMeant)
      .map(({ name, service }) => ({ service, detail: `conversion of ${name}` })),
    ...extensionApis(context)
      .filter(isMeant)
      .map(({ name, service }) => ({ service, detail: `APIService ${name}` })),
    ...withService(webhooksOf(context))
      .filter((webhook) => isWebhookOfGroups(context, webhook, groups))
      .map(({ configuration, service }) => ({
        service,
        detail: `webhook of this API group, ${configuration.name}`,
      })),
  ].map(({ service, detail }) => ({ service, detail: `${detail}, ${serviceText(service)}` }));
}

/** Reports whether a configuration names only this group: policy engines and gateways list groups of others. */
function isWebhookOfGroups(
  context: Context,
  { configuration }: WebhookFacts,
  groups: readonly string[],
): boolean {
  const all = webhooksOf(context)
    .filter((other) => other.configuration.uid === configuration.uid)
    .flatMap(({ rules }) => rules.flatMap(({ apiGroups }) => apiGroups));
  return all.every((group) => groups.includes(group));
}

/**
 * Returns the workloads behind those Services. A workload that shares its account shows the installation, not the
 * controller.
 */
function servers({ context, domain, actors }: OwnerQuestion): Pointer[] {
  return servicesOf(context, domain).flatMap(({ service, detail }) =>
    pointers(
      actorsBehind(context, service).filter((actor) => !sharesAccount(actors, actor)),
      detail,
    ),
  );
}

function sharesAccount(actors: readonly Actor[], actor: Actor): boolean {
  return actors.some(
    (other) => actorText(other) !== actorText(actor) && isSameAccount(other.account, actor.account),
  );
}

/** Returns the namespaces of Services that serve the type: their pods have to be read. */
export function placesOfServers(context: Context, held: Held): string[] {
  return servicesOf(context, finalizerDomain(context, held)).map(
    ({ service }) => service.namespace,
  );
}

/** Returns workloads, and accounts without a workload, that may watch and change the type by a rule that names it. */
function permitted(question: OwnerQuestion): Pointer[] {
  const { context, held, actors, rightsOf } = question;
  const departed = actors.flatMap((actor) => {
    const by = actor.isGone ? departedGrant(context, actor.account, held.type, true) : undefined;
    return by === undefined ? [] : pointers([actor], `RoleBinding ${by}, deleted with it`);
  });
  // A task lists the objects, and does not watch them.
  const isReconciler = ({ actor, account }: { actor?: Actor; account: Account }): boolean => {
    const { change, watch } = rightsOf(account);
    return (
      change === 'named' &&
      (watch !== undefined || /Job$/.test(`${actor?.kind}`)) &&
      (actor === undefined || isSuspectByRight(question, actor))
    );
  };
  const unused = departedAccounts(question);
  const because = (account: Account): string => rightsOf(account).because.slice(0, 3).join('; ');
  const able = [
    ...actors.map((actor) => ({ actor, account: actor.account })),
    ...unused.map((account) => ({ account })),
  ];
  return [
    ...able
      .filter(isReconciler)
      .map((one) => ({ actor: undefined, ...one, detail: because(one.account) })),
    ...departed,
  ];
}

/**
 * Returns programs that may act although no workload in the cluster shows them: holders of renewed Leases, users and
 * groups with permissions on the type, a cloud provider, late writers of the object, and late reporters.
 */
function outsidePrograms(question: OwnerQuestion): Pointer[] {
  const { context, held, domain, actors, rightsOf } = question;
  const namespaces = itemsIn(context.now.cluster.namespaces);
  const outside = (program: string, detail: string): Pointer => {
    return { actor: undefined, account: undefined, program, detail };
  };
  const leases = [
    ...leasesOfGroups(context, domain),
    ...leasesOfProgram(context, specificFieldManager(held)),
  ].filter(
    (lease) =>
      isRenewed(context, lease) &&
      holderOf(context, lease) === undefined &&
      !isLeftOver(context, lease),
  );
  // Any controller may write under a common word, such as `controller`, or under its API group, `example.com/widgets`,
  // which no workload can have as its name: it is outside only if none here may change it.
  const isOf = (actor: Actor, manager: string): boolean =>
    hasProgramName(actor, manager) ||
    (rightsOf(actor.account).reachesGroup && actor.programs.includes(manager)) ||
    (rightsOf(actor.account).change !== undefined &&
      (isFrameworkName(manager) ||
        manager.includes('/') ||
        isControllerOfType(held, manager) ||
        workloadsOfProgram(actors, manager).includes(actor)));
  const departed = marked(question).flatMap(({ actor, account }) => (actor ? [] : account));
  const writers = lateWrites(context, held).filter(
    ({ manager }) =>
      !HARMLESS_WRITERS.test(manager) &&
      !(isFrameworkName(manager) && departed.length > 0) &&
      !actors.some((actor) => isOf(actor, manager)),
  );
  const late = eventsAbout(context, held).filter(
    ({ component, instance }) =>
      !isKubernetesComponent(component) &&
      !actors.some((actor) => matchesReporter(actor, component, instance)),
  );
  // The deleted workload used the account with the writer's name, or with the marks.
  const idle = unusedAccounts(question).filter(
    (account) =>
      !isSameName(account.name, writerOf(held)?.manager ?? '') &&
      !departed.some((one) => isSameAccount(one, account)) &&
      rightsOf(account).change === 'named' &&
      !rightsOf(account).isOfKubernetes &&
      namespaces.some(({ name }) => name === account.namespace) &&
      !isEndingNamespace(context, account.namespace),
  );
  return [
    ...leases.map(({ namespace, name, holder = '' }) =>
      outside(holder, `${holder} renews Lease ${namespace}/${name}`),
    ),
    ...idle.map((account) =>
      outside(
        accountText(account),
        `no workload uses ${accountText(account)}, which may change the type`,
      ),
    ),
    ...writersOutsideCluster(context, held.type).map((who) =>
      outside(who, `${who} may change the type`),
    ),
    ...late.map(({ component }) =>
      outside(component, `"${component}" reported an Event about the object`),
    ),
    ...writers.map(({ object: { kind, name }, manager }) =>
      outside(manager, `"${manager}" writes ${kind} ${name}`),
    ),
    ...cloudProvider(context, held).map((detail) => outside('a cloud provider', detail)),
  ];
}

function cloudProvider({ now }: Context, held: Held): string[] {
  if (!isOftenProviderManaged(held)) return [];
  const nodes = now.cluster.providerNodes;
  if (nodes?.ok !== true) return ['whether the nodes belong to a cloud provider could not be read'];
  const providers = nodes.value.flatMap(
    ({ providerId }) => /^(?!kind:|k3s:)\w+/.exec(providerId)?.[0] ?? [],
  );
  return providers.slice(0, 1).map((name) => `the nodes belong to the provider "${name}"`);
}
