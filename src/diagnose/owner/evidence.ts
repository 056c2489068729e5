import { escapeForRegExp } from '../../base/text.ts';
import type { EventFacts, LeaseFacts, ServiceRef, WebhookFacts } from '../../model/snapshot.ts';
import { type Actor, accountText, actorsOf, actorText } from '../actors.ts';
import { actorsBehind } from '../backends.ts';
import { domainOf, productsOf } from '../catalogue.ts';
import {
  type Context,
  calling,
  conversionsOf,
  definitionsOf,
  eventsAbout,
  isBuiltIn,
  listed,
  serversOf,
  serviceText,
  webhooksOf,
  wordsOf,
} from '../context.ts';
import { type Account, isSameAccount, rightsOf } from '../rights.ts';
import {
  catalogued,
  type Held,
  isCalledAfterType,
  type Meant,
  meantBy,
  meantTypes,
  statusManagers,
  tellingWriter,
  tellsOf,
  writerOf,
} from './held.ts';
import {
  GITOPS,
  goesBy,
  isOfProduct,
  isOnlyByProgram,
  isProductItself,
  isSameProgram,
  isTelling,
  namesOf,
  ofInstance,
  speaksAs,
} from './names.ts';

/**
 * What points to somebody as the owner. `direct` evidence is about this finalizer or this object;
 * `identity` says who made the type or works on it; `shared` evidence says the same of all of an install or
 * a company, and counts for those whose rights name the type; a `hint` alone decides nothing.
 */
export interface Evidence {
  strength: 'direct' | 'identity' | 'shared' | 'hint';
  /** Two of a kind count once. */
  kind:
    | 'event'
    | 'writer'
    | 'refusal'
    | 'status'
    | 'package'
    | 'release'
    | 'conversion'
    | 'webhook'
    | 'server'
    | 'catalogue'
    /** Called after the product, and nothing more. */
    | 'name'
    | 'lease'
    | 'labels';
  text: string;
}

/** To whom it points: somebody who was seen, or an account that nobody uses. */
export interface OwnerEvidence {
  actor: Actor | undefined;
  account: Account | undefined;
  evidence: Evidence;
}

/** Everything that points to anybody as the owner of the finalizer. Rights are no evidence of identity. */
export function ownerEvidence(context: Context, held: Held): OwnerEvidence[] {
  const meant = meantBy(context, held);
  // Who works on the object's own type says nothing about a finalizer that belongs to another one.
  const isForeign = meant.relation === 'other';
  return [
    ...fromWriter(context, held),
    ...fromEvents(context, held, isForeign),
    ...fromRefusals(context, held),
    ...(isForeign ? [] : fromStatusWriters(context, held)),
    ...fromCatalogue(context, held),
    ...fromLeases(context, meant),
    ...fromInstallers(context, held, meant),
    ...fromBackends(context, meant),
  ];
}

/** Who is called as a GitOps tool and has rules for kinds of its own is that tool, and looks after those. */
function isCalledSo(context: Context, held: Held, actor: Actor, manager: string): boolean {
  if (!goesBy(actor, manager)) return false;
  const { change, worksElsewhere } = rightsOf(context, actor.account, held.type, []);
  return !GITOPS.test(manager) || change === 'named' || !worksElsewhere;
}

function fromWriter(context: Context, held: Held): OwnerEvidence[] {
  const writer = writerOf(held);
  if (writer === undefined || !tellsOf(held)(writer.manager)) return [];
  const text = `it wrote the finalizer: field manager "${writer.manager}" has its name (managedFields)`;
  const known = catalogued(held);
  // One program of a product may set what another one removes, as snapshot-controller and csi-snapshotter do.
  const isSetter = (actor: Actor): boolean =>
    known !== undefined &&
    known.workload.length > 0 &&
    productsOf(writer.manager).some(({ match }) => domainOf(match) === domainOf(known.match)) &&
    !isOfProduct(known, actor);
  const exact = actorsOf(context).filter((actor) =>
    isCalledSo(context, held, actor, writer.manager),
  );
  // A program of many controllers writes as `cert-manager-acmechallenges`.
  const whole = actorsOf(context).filter((actor) =>
    namesOf(actor).some((name) => name.includes('-') && writer.manager.startsWith(`${name}-`)),
  );
  const found = exact.length > 0 ? exact : whole;
  const mayChange = ({ account }: Actor): boolean =>
    rightsOf(context, account, held.type, []).change !== undefined;
  const strengthOf = (actor: Actor): Evidence['strength'] => {
    if (isSetter(actor)) return 'hint';
    const isSure =
      (!writer.isAuthor && !isOnlyByProgram(actor, writer.manager)) ||
      (isCalledAfterType(held, writer.manager) && mayChange(actor));
    return found === exact && isSure ? 'direct' : 'shared';
  };
  return pointing(found, (actor) => ({ strength: strengthOf(actor), kind: 'writer', text }));
}

function fromStatusWriters(context: Context, held: Held): OwnerEvidence[] {
  return statusManagers(held)
    .filter(tellsOf(held))
    .flatMap((manager) =>
      pointing(
        actorsOf(context).filter((actor) => isCalledSo(context, held, actor, manager)),
        {
          strength: 'identity',
          kind: 'status',
          text: `it updates the status of the object: field manager "${manager}" has its name (managedFields)`,
        },
      ),
    );
}

/**
 * Who reports about the object works on it, if its component is tied to the type or the finalizer: policy
 * engines, schedulers and the garbage collector write about everything.
 */
function fromEvents(context: Context, held: Held, isForeign: boolean): OwnerEvidence[] {
  const managers = [
    tellingWriter(held),
    ...(isForeign ? [] : statusManagers(held).filter(tellsOf(held))),
  ].filter(Boolean);
  const [domain = '', task = ''] = held.finalizer.split('/');
  const isOwnType = !isForeign && !isBuiltIn(held.type.group);
  const words = [held.type.kind, held.type.resource].map((word) => word.toLowerCase());
  const names = task
    .toLowerCase()
    .split(/[^a-z]+/)
    .filter((word) => !ANY_TASK.test(word));
  const strengthOf = ({ component }: EventFacts): Evidence['strength'] | undefined => {
    const name = component.toLowerCase();
    const isOfDomain = domain.includes('.') && name.includes(domain);
    const isOfType = isOwnType && words.some((word) => word.length > 3 && name.includes(word));
    const isOfTask = names.some((word) => word.length > 3 && name.includes(word));
    if (isOfDomain || isOfTask || managers.some((manager) => isSameProgram(manager, component))) {
      return 'direct';
    }
    // Many that are called after a type report about its objects.
    return isOfType ? 'identity' : undefined;
  };
  return eventsAbout(context, held).flatMap((event) => {
    const { component, instance } = event;
    const strength = strengthOf(event);
    if (strength === undefined) return [];
    return pointing(ofInstance(actorsOf(context), instance), {
      strength,
      kind: 'event',
      text: `it reports about the object: Event of ${component}, instance ${instance}`,
    });
  });
}

/** What any finalizer may be called after its slash. */
const ANY_TASK = /finali[sz]|clean|delet|remov|purge|protect|teardown|hold|operator|controller/;

/**
 * A refusal that names an account: it tried, also when nobody grants it anything any more. Where somebody else is
 * called as the writer or the product, that one may have acted as this account.
 */
function fromRefusals(context: Context, held: Held): OwnerEvidence[] {
  const known = catalogued(held);
  const manager = tellingWriter(held);
  const isMeant = (actor: Actor): boolean =>
    (manager !== '' && goesBy(actor, manager)) ||
    (known !== undefined && isOfProduct(known, actor));
  const isMeantElsewhere = actorsOf(context).some((actor) => !actor.isGone && isMeant(actor));
  // Another program than the one that wrote the finalizer may have tried something of its own.
  const isAnother = (name: string): boolean =>
    isTelling(name) || actorsOf(context).some((actor) => speaksAs(actor, name));
  const isByWriter = (...names: string[]): boolean =>
    manager === '' || names.some((name) => isSameProgram(name, manager)) || !names.some(isAnother);
  const said = held.objects.flatMap((object) => {
    const by = object.statusWriters.map(({ manager }) => manager);
    return wordsOf(context, object).map((text) => ({ text, by }));
  });
  const reported = eventsAbout(context, held).map(({ message, component }) => ({
    text: message,
    by: [component],
  }));
  const named = [...said, ...reported]
    .filter(({ by }) => isByWriter(...by))
    .flatMap(({ text, by }) =>
      [...text.matchAll(/system:serviceaccount:([a-z0-9-]+):([a-z0-9.-]+[a-z0-9])/g)].map(
        ([, namespace, name]) => ({ key: `${namespace}/${name}`, by }),
      ),
    );
  // Who says it is there under another account, as which it may have acted.
  const isSaidByOthers = (actor: Actor, by: readonly string[]): boolean =>
    by.length > 0 &&
    by.every(
      (name) =>
        !speaksAs(actor, name) &&
        actorsOf(context).some((one) => !one.isGone && speaksAs(one, name)),
    );
  return [...Map.groupBy(named, ({ key }) => key)].flatMap(([key, sayings]): OwnerEvidence[] => {
    const [namespace = '', name = ''] = key.split('/');
    const evidence: Evidence = {
      strength: 'direct',
      kind: 'refusal',
      text: `what it tried was refused: ServiceAccount ${key} is named in what the object or an Event says`,
    };
    const actors = actorsOf(context).filter(({ account }) =>
      isSameAccount(account, { namespace, name }),
    );
    return actors.length > 0
      ? pointing(actors, (actor) =>
          (isMeantElsewhere && !isMeant(actor)) ||
          sayings.every(({ by }) => isSaidByOthers(actor, by))
            ? { ...evidence, strength: 'hint' }
            : evidence,
        )
      : [{ actor: undefined, account: { namespace, name }, evidence }];
  });
}

function fromCatalogue(context: Context, held: Held): OwnerEvidence[] {
  const known = catalogued(held);
  if (known === undefined) return [];
  const text = `${held.finalizer} is a well-known finalizer of ${known.owner}, whose workload has this name`;
  const products = actorsOf(context).filter((actor) => isOfProduct(known, actor));
  return pointing(products, (actor) =>
    isProductItself(known, actor)
      ? { strength: 'identity', kind: 'catalogue', text }
      : { strength: 'shared', kind: 'name', text },
  );
}

/** A leader renews every few seconds; after its duration anybody may take over (client-go, leader election). */
export function isFresh({ nowMs }: Context, lease: LeaseFacts): boolean {
  const ageMs = nowMs - Date.parse(lease.renewTime ?? '');
  return ageMs <= 1_000 * (lease.durationSeconds ?? 15) + 5_000;
}

/**
 * Who leads gives up when it could not renew for two thirds of the duration, as all defaults have it (client-go,
 * RenewDeadline): what is older shows nobody alive.
 */
export function isRenewed({ nowMs }: Context, lease: LeaseFacts): boolean {
  const ageMs = nowMs - Date.parse(lease.renewTime ?? '');
  return ageMs <= (1_000 * (lease.durationSeconds ?? 15) * 2) / 3 + 2_000;
}

/** Leases of the groups that are meant: operators call them after their domain or their project. */
export function leasesOf({ now }: Context, { groups }: Meant): LeaseFacts[] {
  return listed(now.cluster.leases).filter(({ name }) =>
    groups.some((group) => {
      const parent = group.split('.').slice(1).join('.');
      return (
        name.includes(group) ||
        (parent.includes('.') &&
          new RegExp(`^[a-f0-9]{6,}\\.${escapeForRegExp(parent)}$`).test(name))
      );
    }),
  );
}

/** Leases that go by the name of what wrote the finalizer, by any of these names of theirs. */
export function leasesOfWriter(
  { now }: Context,
  held: Held,
  namesOf: (lease: LeaseFacts) => readonly string[],
): LeaseFacts[] {
  const manager = tellingWriter(held);
  if (manager === '') return [];
  return listed(now.cluster.leases).filter((lease) =>
    namesOf(lease).some((name) => isSameProgram(name, manager)),
  );
}

export function writersOf({ writers = [] }: LeaseFacts): readonly string[] {
  return writers;
}

/** Who was seen and holds it: `<pod>_<uuid>`, as client-go makes it. */
export function holderOf(context: Context, { namespace, holder }: LeaseFacts): Actor | undefined {
  const pod = (holder ?? '').replace(/_[^_]*$/, '');
  const there = actorsOf(context).filter((actor) => actor.namespace === namespace);
  return ofInstance(there, pod)[0];
}

function fromLeases(context: Context, meant: Meant): OwnerEvidence[] {
  return leasesOf(context, meant).flatMap((lease) => {
    const holder = holderOf(context, lease);
    if (holder === undefined) return [];
    const { namespace, name } = lease;
    return pointing([holder], {
      // The domain that stands behind a hash is often that of a company with many operators.
      strength: meant.groups.some((group) => name.includes(group)) ? 'identity' : 'shared',
      kind: 'lease',
      text: `Lease ${namespace}/${name} is ${isFresh(context, lease) ? '' : 'no longer '}renewed by ${lease.holder}`,
    });
  });
}

/** OLM, Helm and the recommended labels: what was installed together with the type. */
function fromInstallers(context: Context, held: Held, meant: Meant): OwnerEvidence[] {
  const { now } = context;
  const types = meantTypes(context, held, meant);
  const definitions = listed(now.cluster.definitions).filter(({ name }) => types.includes(name));
  const actors = actorsOf(context);
  const packages = listed(now.cluster.clusterServiceVersions)
    .filter(({ owned }) => owned.some((name) => types.includes(name)))
    .flatMap((version) =>
      pointing(
        actors.filter(
          ({ namespace, name }) =>
            namespace === version.namespace && version.deployments.includes(name),
        ),
        {
          strength: 'identity',
          kind: 'package',
          text: `ClusterServiceVersion ${version.namespace}/${version.name} owns the type and runs it`,
        },
      ),
    );
  const others = definitions.flatMap(({ name, annotations, labels }) => {
    const release = releaseOf(annotations);
    const together =
      release === undefined
        ? []
        : actors.filter((actor) => releaseOf(actor.annotations) === release);
    const labelled = actors.filter((actor) => isLabelledAlike(labels, actor.labels));
    return [
      ...pointing(together, {
        strength: 'shared',
        kind: 'release',
        text: `Helm release ${release} has installed both it and CRD ${name}`,
      }),
      ...pointing(labelled, {
        strength: 'hint',
        kind: 'labels',
        text: `it has the same app.kubernetes.io labels as CRD ${name}`,
      }),
    ];
  });
  return [...packages, ...others];
}

function releaseOf(annotations: Record<string, string>): string | undefined {
  const name = annotations['meta.helm.sh/release-name'];
  const namespace = annotations['meta.helm.sh/release-namespace'];
  return name === undefined || namespace === undefined ? undefined : `${namespace}/${name}`;
}

const LABELS = ['name', 'instance', 'part-of'].map((key) => `app.kubernetes.io/${key}`);

function isLabelledAlike(a: Record<string, string>, b: Record<string, string>): boolean {
  const values = (labels: Record<string, string>): string[] =>
    LABELS.flatMap((key) => labels[key] ?? []);
  return values(a).some((value) => values(b).includes(value));
}

/** Services that convert, serve or guard types of these groups, and what that says of who is behind them. */
function backendsOf(
  context: Context,
  { groups }: Meant,
): { service: ServiceRef; evidence: Evidence }[] {
  const isMeant = ({ group }: { group: string }): boolean => groups.includes(group);
  const conversions = conversionsOf(definitionsOf(context)).filter(isMeant);
  const servers = serversOf(context).filter(isMeant);
  const by = (service: ServiceRef, kind: Evidence['kind'], text: string) => ({
    service,
    evidence: { strength: 'identity' as const, kind, text: `${text} ${serviceText(service)}` },
  });
  return [
    ...conversions.map(({ name, service }) => by(service, 'conversion', `it converts ${name}:`)),
    ...servers.map(({ name, service }) =>
      by(service, 'server', `it serves the type: APIService ${name},`),
    ),
    ...calling(webhooksOf(context)).flatMap((webhook) => {
      const strength = whoseWebhook(context, webhook, groups);
      const text = `it serves a webhook of just this API group: ${webhook.configuration.name},`;
      const { service, evidence } = by(webhook.service, 'webhook', text);
      return strength === undefined ? [] : [{ service, evidence: { ...evidence, strength } }];
    }),
  ];
}

/** Workloads behind them; only where that is all they do. */
function fromBackends(context: Context, meant: Meant): OwnerEvidence[] {
  return backendsOf(context, meant).flatMap(({ service, evidence }) =>
    pointing(actorsBehind(context, service), (actor) =>
      sharesAccount(context, actor) ? { ...evidence, strength: 'hint' } : evidence,
    ),
  );
}

/** The namespaces in which somebody may be found who is meant, beyond those that RBAC names. */
export function placesOfBackends(context: Context, held: Held): string[] {
  return backendsOf(context, meantBy(context, held)).map(({ service }) => service.namespace);
}

/** It serves what another program with the same rights may reconcile: it shows the install, not who acts. */
export function sharesAccount(context: Context, actor: Actor): boolean {
  return actorsOf(context).some(
    ({ kind, namespace, name, account }) =>
      isSameAccount(account, actor.account) &&
      ['Deployment', 'StatefulSet', 'DaemonSet'].includes(kind) &&
      !(namespace === actor.namespace && kind === actor.kind && name === actor.name),
  );
}

/**
 * Policy engines and gateways list foreign types; a configuration that names no other group is its own. Groups
 * that are only siblings may be those of a company.
 */
function whoseWebhook(
  context: Context,
  { configuration }: WebhookFacts,
  groups: readonly string[],
): 'identity' | 'shared' | undefined {
  const all = webhooksOf(context)
    .filter((other) => other.configuration.uid === configuration.uid)
    .flatMap(({ rules }) => rules.flatMap(({ apiGroups }) => apiGroups));
  if (!all.some((group) => groups.includes(group))) return undefined;
  const isEach = (fits: (group: string, own: string) => boolean): boolean =>
    all.every((group) => groups.some((own) => group === own || fits(group, own)));
  if (isEach((group, own) => group.endsWith(`.${own}`) || own.endsWith(`.${group}`))) {
    return 'identity';
  }
  return isEach((group, own) => parentOf(group) === parentOf(own)) ? 'shared' : undefined;
}

function parentOf(group: string): string {
  const labels = group.split('.');
  return labels.length > 2 ? labels.slice(1).join('.') : group;
}

function pointing(
  actors: readonly Actor[],
  evidence: Evidence | ((actor: Actor) => Evidence),
): OwnerEvidence[] {
  return actors.map((actor) => ({
    actor,
    account: actor.account,
    evidence: typeof evidence === 'function' ? evidence(actor) : evidence,
  }));
}

/** "Deployment ops/widget-operator", or the account that nobody uses. */
export function pointerText({ actor, account }: Omit<OwnerEvidence, 'evidence'>): string {
  return actor === undefined
    ? account === undefined
      ? 'somebody'
      : accountText(account)
    : actorText(actor);
}
