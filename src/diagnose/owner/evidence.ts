import type { EventFacts, LeaseFacts, ServiceRef, WebhookFacts } from '../../model/snapshot.ts';
import { type Actor, accountText, actorsOf, actorText, behindService } from '../actors.ts';
import { type CatalogueEntry, isWorkloadOf, productsOf } from '../catalogue.ts';
import {
  type Context,
  eventsAbout,
  isBuiltIn,
  listed,
  serviceText,
  webhooksOf,
  wordsOf,
} from '../context.ts';
import { type Account, rightsOf } from '../rights.ts';
import {
  catalogued,
  type Held,
  isCalledAfterType,
  type Meant,
  meantBy,
  meantTypes,
  statusManagers,
  writerOf,
} from './held.ts';

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

/** Names that frameworks give to any controller. */
const ANY_CONTROLLER = /^(?:manager|controller|controller-manager|operator|main|app|server)$/i;

/** Tools of people, and client libraries. */
const ANYBODY =
  /^(?:kubectl.*|helm|node|python.*|java|unknown|curl|Mozilla|OpenAPI-Generator|Go-http-client|kube-apiserver|kube-controller-manager|before-first-apply|terraform.*|pulumi.*|ansible.*|rancher|oc|k9s|lens.*|dashboard|client|okhttp|fabric8.*|axios.*|node-fetch|undici)$/i;

/** They apply what others have written, and look after objects of their own kinds only. */
const GITOPS =
  /^(?:argocd.*|gitops.*|gotk-.*|flux.*|kustomize-controller|helm-controller|fleet.*)$/i;

/** Whether a program's name says which one it is. */
export function isTelling(name: string): boolean {
  return name !== '' && !ANYBODY.test(name) && !isOfAnyController(name);
}

/** Whether the name of a field manager says who looks after the object. */
export function tellsOf(held: Held): (manager: string) => boolean {
  return (manager) =>
    isTelling(manager) && (!GITOPS.test(manager) || isCalledAfterType(held, manager));
}

/**
 * What wrote the finalizer, where its name says who it is. Who made the object as a whole, and is not called after
 * its type, may have found the finalizer in a manifest or a backup.
 */
export function tellingWriter(held: Held): string {
  const writer = writerOf(held);
  const manager = writer?.manager ?? '';
  const mayBeCopied = writer?.isAuthor === true && !isCalledAfterType(held, manager);
  return !mayBeCopied && tellsOf(held)(manager) ? manager : '';
}

/** Whether the name is one that says only that a controller wrote. */
export function isOfAnyController(manager: string): boolean {
  return ANY_CONTROLLER.test(manager);
}

/** Without the hash of a revision (`provider-aws-s3-dc4dc9c3f5b1`) and the mark of Flux's toolkit (`gotk-…`). */
function programOf(name: string): string {
  return name.replace(/-(?=[a-f]*\d)[a-f0-9]{8,}$/, '').replace(/^gotk-/, '');
}

/** Of what a chart makes, the name of the release is no part of its own; what is left is the chart's name. */
export function namesOf({ programs, account, annotations, labels }: Actor): string[] {
  const releases = [annotations['meta.helm.sh/release-name'], labels['app.kubernetes.io/instance']];
  const names = [...programs, account.name];
  const chart = labels['app.kubernetes.io/name'];
  const bare = releases
    .flatMap((release) =>
      names
        .filter((name) => name.startsWith(`${release}-`))
        .map((name) => name.slice(`${release}-`.length)),
    )
    .filter((name) => chart === undefined || chart === name);
  return [...names, ...bare].filter(isTelling).map(programOf);
}

/** `PrometheusOperator` is what a program may call itself that is installed as `prometheus-operator`. */
export function isSameProgram(a: string, b: string): boolean {
  const [one, other] = [a, b].map((name) =>
    programOf(name)
      .toLowerCase()
      .replace(/[-_. ]/g, ''),
  );
  return one === other;
}

export function goesBy(actor: Actor, name: string): boolean {
  return namesOf(actor).some((own) => isSameProgram(own, name));
}

/** Whether these are words of its: by the name that it writes and reports by, or that of its pod. */
export function speaksAs(actor: Actor, name: string, instance = ''): boolean {
  const isItsOwn =
    !isOfAnyController(name) &&
    [actor.name, actor.account.name].some((own) => isSameProgram(own, name));
  return isItsOwn || goesBy(actor, name) || ofInstance([actor], instance).length > 0;
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
  const text = `it wrote the finalizer, by its name: field manager "${writer.manager}" (managedFields)`;
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
  return found.flatMap((actor) =>
    pointing([actor], { strength: strengthOf(actor), kind: 'writer', text }),
  );
}

function domainOf(finalizer: string): string {
  return finalizer.split('/')[0] as string;
}

/** Neither it nor its account is called so, only what it runs: that may be a framework (`kopf run handlers.py`). */
function isOnlyByProgram({ name, account }: Actor, manager: string): boolean {
  const program = programOf(manager);
  return ![name, account.name].some(
    (own) => own.includes(program) || program.includes(own) || isSameProgram(own, manager),
  );
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
          text: `it writes the status of the object, by its name: field manager "${manager}" (managedFields)`,
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
 * Whose pod it is: controller-runtime reports `<controller>-<hostname>`, client-go the bare hostname, which is the
 * pod's name. Where the pod is gone, those whose pods are called so.
 */
function ofInstance(actors: readonly Actor[], instance: string): Actor[] {
  if (instance === '') return [];
  const seen = actors.filter(({ pods }) =>
    pods.some(({ name }) => instance === name || instance.endsWith(`-${name}`)),
  );
  return seen.length > 0 ? seen : actors.filter((actor) => isPodNameOf(actor, instance));
}

/** `widget-operator-7c9f8d6b5-x2x4z` of a pod that is gone: the workload's name and generated parts. */
function isPodNameOf({ kind, name }: Actor, podName: string): boolean {
  if (kind === 'Pod') return podName === name;
  const rest = podName.startsWith(`${name}-`) ? podName.slice(name.length + 1) : '';
  return /^(?:[a-z0-9]{1,10}-)?[a-z0-9]{1,10}$/.test(rest);
}

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
    const actors = actorsOf(context).filter(
      ({ account }) => account.namespace === namespace && account.name === name,
    );
    return actors.length > 0
      ? actors.flatMap((actor) =>
          pointing(
            [actor],
            (isMeantElsewhere && !isMeant(actor)) ||
              sayings.every(({ by }) => isSaidByOthers(actor, by))
              ? { ...evidence, strength: 'hint' }
              : evidence,
          ),
        )
      : [{ actor: undefined, account: { namespace, name }, evidence }];
  });
}

function fromCatalogue(context: Context, held: Held): OwnerEvidence[] {
  const known = catalogued(held);
  if (known === undefined) return [];
  return actorsOf(context)
    .filter((actor) => isOfProduct(known, actor))
    .flatMap((actor) =>
      pointing([actor], {
        ...(isProductItself(known, actor)
          ? { strength: 'identity', kind: 'catalogue' }
          : { strength: 'shared', kind: 'name' }),
        text: `${held.finalizer} is a well-known finalizer of ${known.owner}, whose workload is called so`,
      }),
    );
}

export function isOfProduct(known: CatalogueEntry, { name, programs }: Actor): boolean {
  return isWorkloadOf(known, name) || programs.some((program) => isExactly(known, program));
}

/**
 * The name of a release in front of the product's is seen beside it, or the product is at home:
 * `console-cert-manager` may be a console for it.
 */
function isProductItself(known: CatalogueEntry, actor: Actor): boolean {
  const { namespace, name, programs, annotations, labels } = actor;
  const releases = [annotations['meta.helm.sh/release-name'], labels['app.kubernetes.io/instance']];
  return (
    programs.some((program) => isExactly(known, program)) ||
    known.workload.some(
      (one) =>
        isWorkloadOf({ ...known, workload: [one] }, name) &&
        (one.name.includes('*') ||
          [one.name, ...releases.map((release) => `${release}-${one.name}`)].includes(name) ||
          namespace === one.namespace),
    )
  );
}

function isExactly({ workload }: CatalogueEntry, program: string): boolean {
  return workload.some(({ name }) => name.includes('-') && name === program);
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
        (parent.includes('.') && new RegExp(`^[a-f0-9]{6,}\\.${RegExp.escape(parent)}$`).test(name))
      );
    }),
  );
}

/** Leases that are called as what wrote the finalizer, wherever that runs. */
export function leasesOfWriters({ now }: Context, held: Held): LeaseFacts[] {
  const manager = tellingWriter(held);
  if (manager === '') return [];
  return listed(now.cluster.leases).filter(({ name }) => isSameProgram(name, manager));
}

/** Leases that were written by what wrote the finalizer, whatever they are called. */
export function leasesWritten({ now }: Context, held: Held): LeaseFacts[] {
  const manager = tellingWriter(held);
  if (manager === '') return [];
  return listed(now.cluster.leases).filter(({ writers = [] }) =>
    writers.some((one) => isSameProgram(one, manager)),
  );
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

/** Workloads behind the Services that convert, serve or guard the type; only where that is all they do. */
function fromBackends(context: Context, { groups }: Meant): OwnerEvidence[] {
  const { now } = context;
  const found: { service: ServiceRef; evidence: Evidence }[] = [];
  for (const definition of Object.values(now.definitions)) {
    const crd = definition.ok ? definition.value : undefined;
    if (crd?.conversionService === undefined || !groups.includes(crd.group)) continue;
    const text = `it converts ${crd.name}: ${serviceText(crd.conversionService)}`;
    found.push({
      service: crd.conversionService,
      evidence: { strength: 'identity', kind: 'conversion', text },
    });
  }
  for (const { name, group, service } of listed(now.cluster.apiServices)) {
    if (service === undefined || !groups.includes(group)) continue;
    const text = `it serves the type: APIService ${name}, ${serviceText(service)}`;
    found.push({ service, evidence: { strength: 'identity', kind: 'server', text } });
  }
  for (const webhook of webhooksOf(context)) {
    const owners = webhook.service && whoseWebhook(context, webhook, groups);
    if (webhook.service === undefined || owners === undefined) continue;
    const text = `it serves a webhook of just this API group: ${webhook.configuration.name}, ${serviceText(webhook.service)}`;
    found.push({
      service: webhook.service,
      evidence: { strength: owners, kind: 'webhook', text },
    });
  }
  return found.flatMap(({ service, evidence }) => {
    const selector = serviceAt(context, service)?.selector ?? {};
    return behindService(context, service.namespace, selector).flatMap((actor) =>
      pointing(
        [actor],
        sharesAccount(context, actor) ? { ...evidence, strength: 'hint' } : evidence,
      ),
    );
  });
}

/** It serves what another program with the same rights may reconcile: it shows the install, not who acts. */
export function sharesAccount(context: Context, actor: Actor): boolean {
  return actorsOf(context).some(
    ({ kind, namespace, name, account }) =>
      namespace === actor.namespace &&
      account.name === actor.account.name &&
      ['Deployment', 'StatefulSet', 'DaemonSet'].includes(kind) &&
      !(kind === actor.kind && name === actor.name),
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

export function serviceAt({ now }: Context, { namespace, name }: ServiceRef) {
  return listed(now.places[namespace]?.services).find((service) => service.name === name);
}

function pointing(actors: readonly Actor[], evidence: Evidence): OwnerEvidence[] {
  return actors.map((actor) => ({ actor, account: actor.account, evidence }));
}

/** "Deployment ops/widget-operator", or the account that nobody uses. */
export function pointerText({ actor, account }: Omit<OwnerEvidence, 'evidence'>): string {
  return actor === undefined
    ? account === undefined
      ? 'somebody'
      : accountText(account)
    : actorText(actor);
}

/** The namespaces in which somebody may be found who is meant, beyond those that RBAC names. */
export function placesOfBackends(context: Context, held: Held): string[] {
  const { groups } = meantBy(context, held);
  const { now } = context;
  return [
    ...Object.values(now.definitions).flatMap((crd) =>
      crd.ok ? (crd.value?.conversionService?.namespace ?? []) : [],
    ),
    ...listed(now.cluster.apiServices).flatMap(({ group, service }) =>
      groups.includes(group) ? (service?.namespace ?? []) : [],
    ),
    ...webhooksOf(context).flatMap((webhook) =>
      whoseWebhook(context, webhook, groups) ? (webhook.service?.namespace ?? []) : [],
    ),
  ];
}
