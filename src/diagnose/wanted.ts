import { isWorkloadOf } from '../model/catalogue.ts';
import {
  FINALIZE,
  KUBERNETES_FINALIZER,
  NAMESPACE_TYPE,
  POD_TYPE,
} from '../model/facts/metadata.ts';
import { isOverdue } from '../model/facts/workloads.ts';
import { protectedBecause } from '../model/outcome.ts';
import type { ObjectFacts, ResourceType, ServiceRef, Snapshot, Wanted } from '../model/snapshot.ts';
import { type Actor, actorsOf, isAlive, WORKLOAD_SOURCES } from './actors.ts';
import { foreseenDeletions } from './admission/foreseen.ts';
import { ADMISSION_SOURCES, closedWebhooks, guardsAsked, matchesRule } from './admission/guards.ts';
import {
  type Context,
  contextOf,
  conversionsOf,
  countsOf,
  definitionsOf,
  extensionApis,
  isAggregated,
  isBuiltIn,
  isInside,
  itemsIn,
  typeName,
  valueIn,
  webhooksOf,
  withService,
} from './context.ts';
import { placesOfRoles } from './owner/clues.ts';
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
import { namedByOwner, wantedInputs } from './owner/needs.ts';
import { findNamedObject, objectsNamedBy } from './owner/partners.ts';
import { findOwner, OWNER_SOURCES } from './owner/verdict.ts';
import { ableAccounts } from './rights.ts';
import { isSameVersion } from './rules/apis.ts';
import { guardsOfLastRequest, isUnexplainedByContent } from './rules/controller.ts';
import { terminatingPods, wantedNodeAgents } from './rules/pods.ts';
import { namedOutside } from './waits.ts';

/** What one question needs. */
type Part = Partial<Wanted>;

/** Sources that show which programs exist, and whether Kubernetes' own controllers work. */
const BASIS = ['namespaces', 'leases'] as const;
const RIGHTS = ['clusterRoles', 'clusterRoleBindings'] as const;

/**
 * Returns the reads that the content and its conditions make necessary. A clean namespace costs no request; if
 * something is held, everything that could show its owner is read, since an unread source proves nothing.
 */
export function wantedFor(now: Snapshot, before?: Snapshot): Wanted {
  const context = contextOf(now, before);
  const held = everythingHeld(context);
  const parts = [
    ...forOverduePods(context),
    ...forFailures(context),
    ...(now.forecast === undefined ? [] : forForecast(context, held)),
    ...(held.length === 0 ? [] : forOwners(context, held)),
  ];
  const all = <K extends keyof Part>(key: K): Required<Part>[K] =>
    parts.flatMap((part): unknown[] => part[key] ?? []) as Required<Part>[K];
  return {
    ...{ cluster: all('cluster'), places: all('places'), nodes: all('nodes') },
    ...{ definitions: all('definitions'), details: all('details'), partners: all('partners') },
    ...{ trials: all('trials'), deletions: all('deletions'), samples: all('samples') },
    logs: all('logs'),
  };
}

/** Reads why a kubelet does not end its pods: the node, its agents, and Events in the namespace of the pods. */
function forOverduePods(context: Context): Part[] {
  const { now, nowMs } = context;
  const nodes = terminatingPods(context)
    // A silent node is noticed within a minute.
    .filter((pod) => isOverdue(pod, nowMs) || (pod.deletionGracePeriodSeconds ?? 0) > 60)
    .flatMap(({ nodeName }) => nodeName ?? []);
  if (nodes.length === 0) return [];
  return [
    { nodes, places: [{ namespace: now.namespace.name, sources: ['events'] }] },
    wantedNodeAgents(context),
  ];
}

/** Reads for groups and types that fail, for errors of the namespace controller, and for whether it works at all. */
function forFailures(context: Context): Part[] {
  const { now, conditions, contentErrors: errors } = context;
  const failedGroups = valueIn(now.discovery)?.failedGroups ?? [];
  const failing = [...failedGroups, ...conditions.discoveryFailures];
  const unlisted = now.content.filter(
    ({ read }) =>
      !read.ok && /^(?:server-error|throttled|unreadable|timeout)$/.test(read.failure.kind),
  );
  const isAlone = isUnexplainedByContent(context);
  const fails = [failing, unlisted, errors].some((list) => list.length > 0);
  if (!fails && now.discovery.ok && !isAlone) return [];
  const apis = extensionApis(context).filter((api) =>
    failing.some((one) => isSameVersion(api, one)),
  );
  const called = [...apis, ...conversionsOf(definitionsOf(context))].map(({ service }) => service);
  const named = errors.flatMap((error) => ('service' in error && error.service) || []);
  return [
    { cluster: [...BASIS, ...WORKLOAD_SOURCES, ...RIGHTS, 'apiServices', ...ADMISSION_SOURCES] },
    { places: [{ namespace: now.namespace.name, sources: ['roles', 'roleBindings'] }] },
    { places: [...called, ...named].map(placeOf) },
    {
      definitions: unlisted.flatMap(({ type }) => (isBuiltIn(type.group) ? [] : typeName(type))),
    },
    isAlone ? forLastRequest(context) : {},
    ...countsOf(now).map(({ type, sample }) => ({
      places: sample === undefined ? [] : serversAsked(context, 'DELETE', type, sample),
    })),
  ];
}

/** Reads the sources that show what would prevent deletions that were not requested yet. */
function forForecast(context: Context, held: readonly Held[]): Part[] {
  const { cluster, forecast, namespace } = context.now;
  const isServedHere = cluster.apiServices?.ok === true;
  return [
    { cluster: [...BASIS, ...WORKLOAD_SOURCES, ...RIGHTS, 'apiServices', ...ADMISSION_SOURCES] },
    { cluster: ['conversions'] },
    { places: [{ namespace: namespace.name, sources: ['services', 'roles', 'roleBindings'] }] },
    { places: conversionsOf(itemsIn(cluster.conversions)).map(({ service }) => placeOf(service)) },
    { nodes: itemsIn(forecast?.present.pods).flatMap(({ nodeName }) => nodeName ?? []) },
    forLastRequest(context),
    ...foreseenDeletions(context).map(({ type, object }): Part => {
      const isOwn = type === NAMESPACE_TYPE;
      // Only an aggregated server knows whether it honours dry runs.
      const isElsewhere = isAggregated(context, type);
      const isAsked = guardsAsked(context, 'DELETE', type, object)?.length !== 0;
      // The server never deletes some namespaces (apiserver pkg/admission/plugin/namespace/lifecycle), and says which.
      const isKept = isOwn && protectedBecause(namespace.name) !== undefined;
      const isTried = isServedHere && !isElsewhere && (isAsked || isKept);
      return {
        samples: isOwn || isElsewhere ? [] : wantedInputs(context, held, type),
        places: serversAsked(context, 'DELETE', type, object),
        deletions: isTried ? [{ type, object, key: typeName(type) }] : [],
      };
    }),
  ];
}

/** Reads the guards of the last request of the namespace controller. */
function forLastRequest(context: Context): Part {
  const { namespace } = context.now;
  const object = { ...namespace, namespace: '' };
  const isGuarded = guardsOfLastRequest(context).length > 0;
  const trial = { type: FINALIZE, object, finalizer: KUBERNETES_FINALIZER };
  const places = serversAsked(context, 'UPDATE', FINALIZE, namespace);
  return { places, trials: isGuarded ? [trial] : [] };
}

/** Returns where the webhooks run that such a request needs. */
function serversAsked(
  context: Context,
  operation: 'UPDATE' | 'DELETE',
  type: ResourceType,
  { labels }: Pick<ObjectFacts, 'labels'>,
): Wanted['places'] {
  return closedWebhooks(context, operation, type, labels).map(({ service }) => placeOf(service));
}

function placeOf({ namespace }: ServiceRef): Wanted['places'][number] {
  return { namespace, sources: ['services', 'pods'] };
}

/** The number of pods of a workload to read: all of them have the same problem. */
const FEW = 3;
const MAX_SUSPECTS = 5;
/** Types without a status, whose content is never read. */
const WITHOUT_STATUS: ReadonlySet<string> = new Set(['configmaps', 'secrets']);

/** Reads who may have to remove the finalizers, and why they do not. */
function forOwners(context: Context, held: readonly Held[]): Part[] {
  const { cluster, forecast, namespace } = context.now;
  const sources = ['namespaces', ...OWNER_SOURCES.cluster, ...ADMISSION_SOURCES] as const;
  // Without the sources of the cluster no owner is known.
  const isRead = sources.every((key) => cluster[key] !== undefined);
  const candidates = held.map((one) => ({ one, ...placesOfCandidates(context, one) }));
  const places = new Set(candidates.flatMap((who) => who.places));
  // A deleted namespace cannot be read; bindings to its accounts are leftovers.
  const existing = cluster.namespaces?.ok === true && cluster.namespaces.value;
  const there = existing ? places.intersection(new Set(existing.map(({ name }) => name))) : places;
  const asleep = actorsOf(context).filter(({ ready }) => ready === 0);
  const stuck = asleep.flatMap(({ pods }) =>
    pods.filter(({ phase }) => phase === 'Running').slice(0, FEW),
  );
  // What creates the pods of a controller without pods: a webhook that does not respond may refuse them.
  const ofPods = withService(webhooksOf(context)).filter(({ rules }) =>
    rules.some((rule) => matchesRule(rule, 'CREATE', POD_TYPE, false)),
  );
  return [
    { cluster: [...sources], places: [{ namespace: namespace.name, sources: OWNER_SOURCES.here }] },
    { places: [...there].map((place) => ({ namespace: place, sources: OWNER_SOURCES.elsewhere })) },
    { cluster: held.some(isOftenProviderManaged) ? ['providerNodes'] : [] },
    { cluster: candidates.some(({ isAnywhere }) => isAnywhere) ? ['pods'] : [] },
    { nodes: stuck.flatMap(({ nodeName }) => nodeName ?? []) },
    { places: asleep.length === 0 ? [] : ofPods.map(({ service }) => placeOf(service)) },
    ...candidates.map(({ one }) => ({
      definitions: definitionNames(context, one),
      details: one.objects
        .filter(
          (object) =>
            isInside(context, object.namespace) && !WITHOUT_STATUS.has(typeName(one.type)),
        )
        .map((object) => ({ type: one.type, object })),
      partners: [
        ...namedOutside(context, one),
        ...(forecast === undefined ? [] : needsOf(context, one)),
      ],
      // A removal as a dry run. Only an aggregated server itself knows whether it honours dry runs.
      trials:
        cluster.apiServices?.ok !== true || isAggregated(context, one.type)
          ? []
          : one.objects.slice(0, 1).map((object) => ({ ...one, object })),
      places: [
        ...placesOfRoles(context, one),
        ...one.objects
          .slice(0, 1)
          .flatMap((object) => serversAsked(context, 'UPDATE', one.type, object)),
      ],
    })),
    { logs: isRead && forecast === undefined ? logsOfSuspects(context, held) : [] },
  ];
}

/** Returns where those run that may change the type, or that have the name of the writer or product. */
function placesOfCandidates(context: Context, held: Held) {
  const known = knownFinalizer(held);
  const names = controllerNames(held);
  const isNamesake = (actor: Actor): boolean =>
    names.some((name) => hasProgramName(actor, name)) ||
    (known !== undefined && isWorkloadOf(known, actor.name));
  const homes = actorsOf(context)
    .filter(isNamesake)
    .map(({ namespace }) => namespace);
  const able = ableAccounts(context, held.type);
  const accounts = able.accounts.flatMap(({ namespace }) => namespace ?? []);
  return {
    places: [...accounts, ...able.namespaces, ...homes],
    isAnywhere: able.everywhere,
  };
}

/** Returns the logs of the most likely owners. Their pods and containers are known after the second round. */
function logsOfSuspects(context: Context, held: readonly Held[]): Wanted['logs'] {
  if (context.now.logs === undefined) return [];
  const found = held.map((one) => findOwner(context, one));
  const suspects = [...found.map(({ owner }) => owner), ...found.flatMap((one) => one.suspects)];
  const actors = new Set(suspects.flatMap((suspect) => suspect?.actor ?? []).filter(isAlive));
  return [...actors].slice(0, MAX_SUSPECTS).flatMap((actor) => logSources(context, actor));
}

/** Returns the objects that a clean-up may need: those that a held object names, and those that these name. */
function needsOf(context: Context, held: Held): Wanted['partners'] {
  const named = namedByOwner(context, held);
  const between = named.flatMap((one) => findNamedObject(context, one) ?? []);
  return [...named, ...objectsNamedBy(context, between)];
}
