import { isWorkloadOf } from '../model/catalogue.ts';
import {
  FINALIZE,
  KUBERNETES_FINALIZER,
  NAMESPACE_TYPE,
  NODE_TYPE,
  POD_TYPE,
} from '../model/facts/metadata.ts';
import { isOverdue } from '../model/facts/workloads.ts';
import { protectedBecause } from '../model/outcome.ts';
import type {
  Forecast,
  ObjectFacts,
  PodFacts,
  ResourceType,
  Snapshot,
  Wanted,
} from '../model/snapshot.ts';
import { type Actor, actorsOf, isAlive, WORKLOAD_SOURCES } from './actors.ts';
import { collectSamples, wantedSamples } from './admission/foreseen.ts';
import {
  ADMISSION_SOURCES,
  closedWebhooks,
  guardsAsked,
  matchesRule,
  oneForEachGuard,
} from './admission/guards.ts';
import {
  type Context,
  contextOf,
  conversionsOf,
  countsOf,
  definitionsOf,
  extensionApis,
  isAggregated,
  isBuiltIn,
  itemsIn,
  snapshotsBehind,
  typeName,
  valueIn,
  webhooksOf,
} from './context.ts';
import { type ContentError, isAdmissionError } from './error-texts.ts';
import { placesOfServers } from './owner/clues.ts';
import { everythingHeld } from './owner/finalizers.ts';
import {
  controllerNames,
  definitionNames,
  type Held,
  isOftenProviderManaged,
  knownFinalizer,
} from './owner/held.ts';
import { logSources } from './owner/logs.ts';
import { hasProgramName } from './owner/names.ts';
import {
  findNamedObject,
  namedByOwner,
  objectsNamedBy,
  parametersFor,
  wantedInputs,
} from './owner/needs.ts';
import { findOwner, OWNER_SOURCES } from './owner/verdict.ts';
import { ableAccounts } from './rights.ts';
import { type GroupVersion, isSameVersion } from './rules/apis.ts';
import { guardsOfLastRequest, isUnexplainedByContent } from './rules/controller.ts';
import { terminatingPods, wantedNodeAgents } from './rules/pods.ts';
import { isInitializing } from './rules/types.ts';
import { namedOutside, namespacesAwaited, ownersOfPods } from './waits.ts';

/**
 * Returns the reads that the content and its conditions make necessary. A clean namespace costs no request; if
 * something is held, everything that could show its owner is read, since an unread source proves nothing.
 */
export function wantedFor(now: Snapshot, before?: Snapshot): Wanted {
  const wanted = wantedIn(now, before);
  for (const other of snapshotsBehind(now)) {
    const more = wantedIn(other);
    for (const key of Object.keys(more) as (keyof Wanted)[]) {
      if (Array.isArray(wanted[key])) (wanted[key] as unknown[]).push(...(more[key] as unknown[]));
    }
  }
  wanted.behind = wanted.behind
    .filter(({ name }) => name !== now.namespace.name)
    .slice(0, MAX_BEHIND);
  return wanted;
}

const MAX_BEHIND = 5;

function wantedIn(now: Snapshot, before?: Snapshot): Wanted {
  const context = contextOf(now, before);
  const wanted: Wanted = {
    cluster: [],
    places: [],
    nodes: terminatingPods(context)
      .filter((pod) => isOverdue(pod, context.nowMs) || hasLongGrace(pod))
      .flatMap(({ nodeName }) => nodeName ?? []),
    definitions: [],
    details: [],
    partners: [],
    behind: [],
    dependents: now.namespace.finalizers.includes('foregroundDeletion'),
    trials: [],
    logs: [],
    deletions: [],
  };
  // The kubelet's Events about these pods are in their namespace.
  if (wanted.nodes.length > 0) {
    wanted.places.push({ namespace: now.namespace.name, sources: ['events'] });
    const agents = wantedNodeAgents(context);
    wanted.cluster.push(...(agents?.cluster ?? []));
    wanted.places.push(...(agents?.places ?? []));
  }
  for (const name of wanted.nodes) {
    const node = valueIn(now.nodes[name]);
    if (node?.deletionTimestamp === undefined) continue;
    wanted.partners.push({ type: NODE_TYPE, namespace: undefined, name });
  }
  wantForApis(context, wanted);
  if (now.forecast !== undefined) wantForForecast(context, now.forecast, wanted);
  const held = everythingHeld(context);
  if (held.length > 0) wantForOwners(context, held, wanted);
  return wanted;
}

/** Reports whether the grace period is longer than the time in which a silent node is noticed. */
function hasLongGrace({ deletionGracePeriodSeconds: seconds = 0 }: PodFacts): boolean {
  return seconds > 60;
}

/** Sources that show which programs exist, and whether Kubernetes' own controllers work. */
const BASIS = ['namespaces', 'leases'] as const;
const RIGHTS = ['clusterRoles', 'clusterRoleBindings'] as const;

/** Reads the sources that show what would prevent deletions that were not requested yet. */
function wantForForecast(context: Context, forecast: Forecast, wanted: Wanted): void {
  const { now } = context;
  const own = now.namespace.name;
  wanted.cluster.push(...BASIS, 'apiServices', ...RIGHTS, 'conversions', ...ADMISSION_SOURCES);
  wanted.cluster.push(...WORKLOAD_SOURCES);
  wanted.places.push({ namespace: own, sources: ['services', 'roles', 'roleBindings'] });
  for (const { service } of conversionsOf(itemsIn(now.cluster.conversions))) {
    wanted.places.push(backendsIn(service.namespace));
  }
  wantEnd(context, wanted);
  wanted.nodes.push(...itemsIn(forecast.present.pods).flatMap(({ nodeName }) => nodeName ?? []));
  const samples = collectSamples(context);
  const held = everythingHeld(context);
  wanted.samples = [...Map.groupBy(samples, ({ type }) => type)].flatMap(([type, of]) =>
    type === NAMESPACE_TYPE || isAggregated(context, type)
      ? []
      : [...wantedInputs(context, held, type), ...wantedSamples(context, type, of)],
  );
  for (const { type, object, key } of samples) {
    wantServers(context, wanted, 'DELETE', type, object);
    // Only an aggregated server knows whether it honours dry runs.
    const isOurs = now.cluster.apiServices?.ok === true && !isAggregated(context, type);
    const isAsked = guardsAsked(context, 'DELETE', type, object)?.length !== 0;
    // The server never deletes some namespaces (apiserver pkg/admission/plugin/namespace/lifecycle), and says which.
    const isKept = type === NAMESPACE_TYPE && protectedBecause(own) !== undefined;
    if (isOurs && (isAsked || isKept)) wanted.deletions.push({ type, object, key });
  }
}

/** Reads the guards of the last request of the namespace controller. */
function wantEnd(context: Context, wanted: Wanted): void {
  const { namespace } = context.now;
  wantServers(context, wanted, 'UPDATE', FINALIZE, namespace);
  if (guardsOfLastRequest(context).length === 0) return;
  const object = { ...namespace, namespace: '' };
  wanted.trials.push({ type: FINALIZE, object, finalizer: KUBERNETES_FINALIZER });
}

/** Reads the backends of the webhooks that such a request needs. */
function wantServers(
  context: Context,
  wanted: Wanted,
  operation: 'UPDATE' | 'DELETE',
  type: ResourceType,
  { labels }: Pick<ObjectFacts, 'labels'>,
): void {
  for (const { service } of closedWebhooks(context, operation, type, labels)) {
    wanted.places.push(backendsIn(service.namespace));
  }
}

/** Errors that an extension API server may have caused. */
const OF_AN_API = /^(?:unexpected-items|other|forbidden|unavailable|timeout)$/;

/** Reads for groups that fail, for errors of the namespace controller, and for whether it works at all. */
function wantForApis(context: Context, wanted: Wanted): void {
  const { now, conditions } = context;
  const errors = conditions.contentFailure?.errors ?? [];
  const failedGroups = valueIn(now.discovery)?.failedGroups ?? [];
  const failing = [...failedGroups, ...conditions.discoveryFailures];
  const failsDiscovery = !now.discovery.ok || failing.length > 0;
  const failsLists = now.content.some(
    ({ read }) =>
      !read.ok && /^(?:server-error|throttled|unreadable|timeout)$/.test(read.failure.kind),
  );
  const isAlone = isUnexplainedByContent(context);
  if (!failsDiscovery && !failsLists && errors.length === 0 && !isAlone) return;
  wanted.cluster.push(...BASIS);
  if (isAlone) {
    wanted.cluster.push(...ADMISSION_SOURCES, ...WORKLOAD_SOURCES, ...RIGHTS);
    wanted.places.push({ namespace: now.namespace.name, sources: ['roles', 'roleBindings'] });
    wantEnd(context, wanted);
  }
  if (failsDiscovery || failsLists || errors.some(({ kind }) => OF_AN_API.test(kind))) {
    wanted.cluster.push('apiServices');
  }
  const isRefused = errors.some(isAdmissionError);
  if (isRefused) wanted.cluster.push(...ADMISSION_SOURCES);
  for (const { type, sample } of isRefused ? countsOf(now) : []) {
    if (sample !== undefined) wantServers(context, wanted, 'DELETE', type, sample);
  }
  if (errors.some(isInitializing)) {
    wanted.cluster.push('definitions');
    // Any CRD may be the cause: its metadata does not say whether a webhook converts it.
    wanted.definitions.push(...itemsIn(now.cluster.definitions).map(({ name }) => name));
  }
  for (const { type, read } of now.content) {
    if (!read.ok && !isBuiltIn(type.group)) wanted.definitions.push(typeName(type));
  }
  wantBackends(context, wanted, errors, failing);
}

/** Reads the Services that the API server calls, and the workloads behind them. */
function wantBackends(
  context: Context,
  wanted: Wanted,
  errors: readonly ContentError[],
  failing: readonly GroupVersion[],
): void {
  const named = errors.flatMap((error) => ('service' in error && error.service?.namespace) || []);
  const isFailing = (api: GroupVersion): boolean => failing.some((one) => isSameVersion(api, one));
  const apis = extensionApis(context).filter(isFailing);
  const calls = [...apis, ...conversionsOf(definitionsOf(context))];
  const namespaces = new Set([...named, ...calls.map(({ service }) => service.namespace)]);
  wanted.places.push(...[...namespaces].map(backendsIn));
  if (namespaces.size > 0) wanted.cluster.push('namespaces', ...WORKLOAD_SOURCES);
}

function backendsIn(namespace: string): Wanted['places'][number] {
  return { namespace, sources: ['services', 'pods'] };
}

/** The number of pods of a workload to read: all of them have the same problem. */
const FEW = 3;

/** Types without a status, whose content is never read. */
const WITHOUT_STATUS: ReadonlySet<string> = new Set(['configmaps', 'secrets']);

function wantForOwners(context: Context, held: readonly Held[], wanted: Wanted): void {
  const { now } = context;
  const own = now.namespace.name;
  wanted.cluster.push('namespaces', ...OWNER_SOURCES.cluster, ...ADMISSION_SOURCES);
  wanted.places.push({ namespace: own, sources: OWNER_SOURCES.here });
  const places = new Set<string>();
  for (const one of held) {
    if (isOftenProviderManaged(one)) wanted.cluster.push('providerNodes');
    wanted.definitions.push(...definitionNames(context, one));
    wantDetails(context, one, wanted);
    const homes = [...new Set(placesOfNamesakes(context, one))];
    const able = ableAccounts(context, one.type);
    const accounts = able.accounts.flatMap(({ namespace }) => namespace ?? []);
    // A namesake without permissions on the type is another installation.
    const controllers = homes.filter((home) => accounts.includes(home));
    wanted.partners.push(...namedOutside(context, one, controllers));
    if (now.forecast !== undefined) wantNeeds(context, one, wanted);
    else wanted.behind.push(...namespacesAwaited(context, one).map(({ namespace }) => namespace));
    wantTrial(context, one, wanted);
    if (able.everywhere) wanted.cluster.push('pods');
    const servers = placesOfServers(context, one);
    for (const place of [...accounts, ...able.namespaces, ...servers, ...homes]) places.add(place);
    for (const object of one.objects.slice(0, 1)) {
      wantServers(context, wanted, 'UPDATE', one.type, object);
    }
  }
  wantServersOfPods(context, wanted);
  if (now.forecast === undefined) wanted.partners.push(...ownersOfPods(context));
  if (now.forecast === undefined && isRead(context, wanted)) wantForSuspects(context, held, wanted);
  for (const { ready, pods } of actorsOf(context)) {
    const running = pods.filter(({ phase }) => ready === 0 && phase === 'Running').slice(0, FEW);
    wanted.nodes.push(...running.flatMap(({ nodeName }) => nodeName ?? []));
  }
  const existing = now.cluster.namespaces;
  // A deleted namespace cannot be read; bindings to its accounts are leftovers.
  const names = existing?.ok === true ? existing.value.map(({ name }) => name) : [...places];
  for (const namespace of places.intersection(new Set(names))) {
    wanted.places.push({ namespace, sources: OWNER_SOURCES.elsewhere });
  }
}

const MAX_SUSPECTS = 5;

/** Reports whether the sources of the cluster were read: without them no owner is known. */
function isRead({ now }: Context, { cluster }: Wanted): boolean {
  return cluster.every((key) => now.cluster[key] !== undefined);
}

/**
 * Reads other objects of a type if its owner depends on them, and the logs of the most likely owners. Their pods and
 * containers are known after the second round.
 */
function wantForSuspects(context: Context, held: readonly Held[], wanted: Wanted): void {
  if (context.now.logs === undefined) return;
  const found = held.map((one) => findOwner(context, one));
  const suspects = [...found.map(({ owner }) => owner), ...found.flatMap((one) => one.suspects)];
  const actors = new Set(suspects.flatMap((suspect) => suspect?.actor ?? []).filter(isAlive));
  for (const actor of [...actors].slice(0, MAX_SUSPECTS)) {
    wanted.logs.push(...logSources(context, actor));
  }
}

/** Returns workloads with the name of the writer or of the well-known product, in any namespace. */
function placesOfNamesakes(context: Context, held: Held): string[] {
  const known = knownFinalizer(held);
  const names = controllerNames(held);
  const isNamesake = (actor: Actor): boolean =>
    names.some((name) => hasProgramName(actor, name)) ||
    (known !== undefined && isWorkloadOf(known, actor.name));
  return actorsOf(context).flatMap((actor) => (isNamesake(actor) ? actor.namespace : []));
}

/** Reads webhooks where a controller has no pods: one that does not respond may refuse them. */
function wantServersOfPods(context: Context, wanted: Wanted): void {
  if (actorsOf(context).every(({ ready }) => ready > 0)) return;
  for (const { rules, service } of webhooksOf(context)) {
    const takesPods = rules.some((rule) => matchesRule(rule, 'CREATE', POD_TYPE, false));
    if (!takesPods || service === undefined) continue;
    wanted.places.push(backendsIn(service.namespace));
  }
}

function wantDetails({ now }: Context, { type, objects }: Held, wanted: Wanted): void {
  const hasStatus = !WITHOUT_STATUS.has(typeName(type));
  const inside = objects.filter(({ namespace }) => namespace === now.namespace.name);
  if (!hasStatus) return;
  const count = countsOf(now).find((one) => typeName(one.type) === typeName(type));
  const total = count?.total ?? inside.length;
  wanted.details.push(...inside.map((object) => ({ type, object, total })));
}

/** Reads the objects that a clean-up may need: those that a held object names, and those that these name. */
function wantNeeds(context: Context, held: Held, wanted: Wanted): void {
  const named = namedByOwner(context, held);
  const between = named.flatMap((one) => findNamedObject(context, one) ?? []);
  const further = [...objectsNamedBy(context, between), ...parametersFor(context, held)];
  wanted.partners.push(...named, ...further);
}

/** Tries one removal as a dry run for each group of objects and guard, if admission applies any guard. */
function wantTrial(context: Context, held: Held, wanted: Wanted): void {
  // Only the aggregated server itself knows whether it honours dry runs.
  if (context.now.cluster.apiServices?.ok !== true || isAggregated(context, held.type)) return;
  const { finalizer, objects, type } = held;
  for (const object of oneForEachGuard(context, type, objects)) {
    const asked = guardsAsked(context, 'UPDATE', type, object);
    const admission = asked && { admission: asked.map(({ text }) => text).join(' ') };
    wanted.trials.push({ type, object, finalizer, ...admission });
  }
}
