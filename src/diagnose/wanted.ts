import { namespaceConditions } from '../model/conditions.ts';
import { isBuiltIn, NAMESPACE_TYPE, POD_TYPE, typeName } from '../model/facts/metadata.ts';
import { protectedBecause } from '../model/outcome.ts';
import { itemsIn, valueIn } from '../model/read.ts';
import type { NamespaceFacts, ServiceRef, Snapshot, Wanted } from '../model/snapshot.ts';
import { actorsOf, isAlive } from './actors.ts';
import type { AdmissionRequest } from './admission/expressions.ts';
import { ADMISSION_SOURCES, closedWebhooks, guardsOf, realRequest } from './admission/guards.ts';
import { deletionSteps, lastStep } from './admission/judge.ts';
import { neededToStart } from './commands.ts';
import { conversionsOf, definitionsOf, extensionApis, isAggregated } from './content.ts';
import { type Context, contextOf, isInside } from './context.ts';
import { objectDetail } from './detail.ts';
import { placesOfRoles } from './owner/clues.ts';
import { everythingHeld } from './owner/finalizers.ts';
import { definitionNames, type Held, isOftenProviderManaged } from './owner/held.ts';
import { logSources } from './owner/logs.ts';
import { placesOfInputs, wantedInputs } from './owner/needs.ts';
import { findOwner, OWNER_SOURCES } from './owner/verdict.ts';
import { ableAccounts } from './rights.ts';
import { isUnexplainedByContent } from './rules/controller.ts';
import { wantedForPods } from './rules/pods.ts';
import { isSameVersion } from './rules/types.ts';
import { namedOutside, PROTECTION } from './waits.ts';

type Part = Partial<Omit<Wanted, 'parseDetail'>>;

/** Sources that show which programs exist, whether Kubernetes' own controllers work, and what refuses their requests. */
const FOR_OWNERS = ['namespaces', ...OWNER_SOURCES.cluster, ...ADMISSION_SOURCES] as const;
const BASIS = FOR_OWNERS.filter((key) => key !== 'definitions');
const FOR_FORECAST = [...BASIS, 'conversions' as const];

/** Returns the necessary reads. A clean namespace costs no request; of what is held, all is read that could show its owner: an unread source proves nothing. */
export function wantedFor(now: Snapshot, before?: Snapshot): Wanted {
  const context = contextOf(now, before);
  const held = everythingHeld(context);
  return gather([
    wantedForPods(context),
    ...forFailures(context),
    ...(now.forecast === undefined ? [] : forForecast(context, held)),
    ...(held.length === 0 ? [] : forOwners(context, held)),
  ]);
}

/** Returns what is needed whatever the content is, so that it can be read at the same time. */
export function wantedAnyway(namespace: NamespaceFacts, isForecast: boolean, before?: Snapshot) {
  const { finalizersRemaining } = namespaceConditions(namespace.conditions);
  const others = finalizersRemaining.filter(({ finalizer }) => !PROTECTION.test(finalizer));
  const here = { namespace: namespace.name, sources: OWNER_SOURCES.here };
  return gather([
    isForecast ? { cluster: FOR_FORECAST } : {},
    // Beside an earlier snapshot they may turn out to be deleted one by one: then no owner is looked for.
    before || others.length === 0 ? {} : { cluster: [...FOR_OWNERS], places: [here] },
  ]);
}

function gather(parts: readonly Part[]): Wanted {
  const all = <K extends keyof Part>(key: K): Required<Part>[K] =>
    parts.flatMap((part): unknown[] => part[key] ?? []) as Required<Part>[K];
  return {
    ...{ cluster: all('cluster'), places: all('places'), nodes: all('nodes') },
    ...{ definitions: all('definitions'), details: all('details'), partners: all('partners') },
    ...{ trials: all('trials'), deletions: all('deletions'), samples: all('samples') },
    ...{ logs: all('logs'), parseDetail: objectDetail },
  };
}

/** Reads for groups and types that fail, for errors of the namespace controller, and for whether it works at all. */
function forFailures(context: Context): Part[] {
  const { now, conditions, contentErrors: errors } = context;
  const failedGroups = valueIn(now.discovery)?.failedGroups ?? [];
  const failing = [...failedGroups, ...conditions.discoveryFailures];
  const unlisted = now.content.flatMap(({ read, type }) => {
    const isFault = /^(?:server-error|throttled|unreadable|timeout)$/;
    return !read.ok && isFault.test(read.failure.kind) ? type : [];
  });
  const isAlone = isUnexplainedByContent(context);
  const fails = [failing, unlisted, errors].some((list) => list.length > 0);
  if (!fails && now.discovery.ok && !isAlone) return [];
  const apis = extensionApis(context).filter((api) =>
    failing.some((one) => isSameVersion(api, one)),
  );
  const called = [...apis, ...conversionsOf(definitionsOf(context))].map(({ service }) => service);
  const named = errors.flatMap((error) => ('service' in error && error.service) || []);
  return [
    {
      cluster: BASIS,
      places: [
        { namespace: now.namespace.name, sources: ['roles', 'roleBindings'] },
        ...[...called, ...named].map(placeOf),
        ...deletionSteps(context).flatMap(({ request }) => serversAsked(context, request)),
      ],
      definitions: unlisted.filter(({ group }) => !isBuiltIn(group)).map(typeName),
    },
    isAlone ? forLastRequest(context) : {},
  ];
}

/** Reads the sources that show what would prevent deletions that were not requested yet. */
function forForecast(context: Context, held: readonly Held[]): Part[] {
  const { cluster, forecast, namespace } = context.now;
  const isServedHere = cluster.apiServices?.ok === true;
  const isRead = ADMISSION_SOURCES.every((key) => cluster[key]?.ok === true);
  return [
    {
      cluster: FOR_FORECAST,
      places: [
        { namespace: namespace.name, sources: ['services', 'roles', 'roleBindings'] },
        ...conversionsOf(itemsIn(cluster.conversions)).map(({ service }) => placeOf(service)),
      ],
      nodes: itemsIn(forecast?.present.pods).flatMap(({ nodeName }) => nodeName ?? []),
    },
    forLastRequest(context),
    ...deletionSteps(context).map(({ type, object, request }): Part => {
      const isOwn = type === NAMESPACE_TYPE;
      const isAsked = !isRead || guardsOf(context, request).length > 0;
      // The server never deletes some namespaces (apiserver pkg/admission/plugin/namespace/lifecycle), and says which.
      const isKept = isOwn && protectedBecause(namespace.name) !== undefined;
      const isTried = isServedHere && (isAsked || isKept);
      return {
        samples: isOwn ? [] : wantedInputs(context, held, type),
        places: serversAsked(context, request),
        deletions: isTried ? [{ type, object, key: typeName(type) }] : [],
      };
    }),
  ];
}

function forLastRequest(context: Context): Part {
  const { request, ...step } = lastStep(context);
  const isGuarded = guardsOf(context, request).length > 0;
  return { places: serversAsked(context, request), trials: isGuarded ? [step] : [] };
}

function serversAsked(context: Context, request: AdmissionRequest): Wanted['places'] {
  return closedWebhooks(context, request).map(({ service }) => placeOf(service));
}

function placeOf({ namespace }: ServiceRef): Wanted['places'][number] {
  return { namespace, sources: ['services', 'pods'] };
}

const MAX_SUSPECTS = 5;

/** Reads who may have to remove the finalizers, and why they do not. */
function forOwners(context: Context, held: readonly Held[]): Part[] {
  const { cluster, forecast, logs, namespace } = context.now;
  const found = held.map((one) => findOwner(context, one));
  const likely = [
    ...found.flatMap(({ owner }) => owner ?? []),
    ...found.flatMap((one) => one.suspects),
  ];
  const pointedAt = [...likely, ...found.flatMap(({ excluded }) => excluded)];
  const able = held.map((one) => ableAccounts(context, one.type));
  const homes = new Set([
    ...pointedAt.flatMap(({ actor }) => actor?.namespace ?? []),
    ...able.flatMap(({ namespaces }) => namespaces),
  ]);
  // A deleted namespace cannot be read; bindings to its accounts are leftovers.
  const existing = new Set(itemsIn(cluster.namespaces).map(({ name }) => name));
  const there = cluster.namespaces?.ok ? homes.intersection(existing) : homes;
  const asleep = actorsOf(context).filter(({ ready }) => ready === 0);
  // All pods of a workload have the same problem.
  const stuck = asleep.map(({ pods }) => pods.filter(({ phase }) => phase === 'Running'));
  // A webhook that does not respond may refuse the pods of a controller without pods.
  const idle = new Set(pointedAt.flatMap(({ actor }) => (actor?.ready === 0 ? actor : [])));
  const created = [...idle].map(({ namespace: home, podLabels: labels }) =>
    realRequest(context, 'CREATE', POD_TYPE, { namespace: home, labels }),
  );
  // Without the sources of the cluster no owner is known. Pods and containers are known after the second round.
  const isRead = FOR_OWNERS.every((key) => cluster[key] !== undefined);
  const areLogsRead = isRead && logs !== undefined && forecast === undefined;
  const alive = new Set(likely.flatMap(({ actor }) => (actor && isAlive(actor) ? actor : [])));
  const logged = areLogsRead ? [...alive].slice(0, MAX_SUSPECTS) : [];
  return [
    {
      cluster: [
        ...FOR_OWNERS,
        ...(held.some(isOftenProviderManaged) ? (['providerNodes'] as const) : []),
        ...(able.some(({ everywhere }) => everywhere) ? (['pods'] as const) : []),
      ],
      places: [
        { namespace: namespace.name, sources: OWNER_SOURCES.here },
        ...[...there].map((place) => ({ namespace: place, sources: OWNER_SOURCES.elsewhere })),
        ...created.flatMap((request) => serversAsked(context, request)),
      ],
      nodes: stuck.flatMap((pods) => pods.slice(0, 3).flatMap(({ nodeName }) => nodeName ?? [])),
      logs: logged.flatMap((actor) => logSources(context, actor)),
    },
    ...held.map((one) => forHeld(context, one)),
  ];
}

function forHeld(context: Context, held: Held): Part {
  const { cluster, forecast } = context.now;
  const { objects, type } = held;
  const first = objects.slice(0, 1);
  // Only an aggregated server itself knows whether it honours dry runs.
  const isTried = cluster.apiServices?.ok === true && !isAggregated(context, type);
  const { owner, suspects } = findOwner(context, held);
  // What is unread of another candidate must not open the question whether a living owner will act.
  const named = owner ? [owner] : suspects;
  const asleep = named.flatMap(({ actor }) => (actor?.wanted === 0 ? actor : []));
  // They have none, and their content is never read.
  const hasStatus = !['configmaps', 'secrets'].includes(typeName(type));
  const inside = objects.filter((object) => isInside(context, object.namespace));
  return {
    definitions: definitionNames(context, held),
    details: hasStatus ? inside.map((object) => ({ type, object })) : [],
    partners: [
      ...namedOutside(context, held),
      ...asleep.flatMap((actor) => neededToStart(context, actor)),
      ...(forecast ? placesOfInputs(context, held) : []),
    ],
    trials: isTried ? first.map((object) => ({ ...held, object })) : [],
    places: [
      ...placesOfRoles(context, held),
      ...first.flatMap((one) => serversAsked(context, realRequest(context, 'UPDATE', type, one))),
    ],
  };
}
