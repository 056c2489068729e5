import type { Remedy } from '../model/finding.ts';
import type { ServiceRef } from '../model/snapshot.ts';
import { type Actor, actorsOf, actorText, isEndingNamespace, WORKLOAD_SOURCES } from './actors.ts';
import { kubectl, lookRemedy, objectArgs, preventionRemedies, withRole } from './commands.ts';
import {
  type Context,
  fateText,
  isInside,
  itemsIn,
  type RuleResult,
  serviceText,
  shortQuote,
  willBeDeleted,
} from './context.ts';
import type { CallFailure } from './error-texts.ts';

/** The backend of a Service that the API server calls: for a webhook, a conversion or an extension API. */
export interface Backend {
  service: ServiceRef;
  /** The backend cannot answer: it has no Service, or no ready pod. Undefined: these were not read. */
  isDead: boolean | undefined;
  /** The way in which a call fails, if an error or the objects that were read show it. */
  failure: CallFailure;
  /** "which does not exist", "whose Deployment ops/x is scaled to zero". */
  text: string;
  actor: Actor | undefined;
  /** No pod of it is created any more: its namespace, which may be this one, is or would be deleted. */
  isLost: boolean;
}

/** Finds the Service, the workload that its selector selects, and the state of that workload. */
export function backendOf(context: Context, service: ServiceRef, failure?: CallFailure): Backend {
  const { namespace } = service;
  const place = context.now.places[namespace];
  const said = failure === undefined ? '' : `which ${CALL_FAILURE_TEXTS[failure]}`;
  const inside = isInside(context, namespace);
  const isEnding = !inside && isEndingNamespace(context, namespace);
  const backend = (isDead: boolean | undefined, text = said, actor?: Actor): Backend => {
    const isStopped = isEnding && isDead !== false;
    return {
      service,
      isDead,
      failure: failure ?? 'no-endpoints',
      text: isStopped ? `${text}, and whose namespace is being deleted` : text,
      actor,
      isLost: inside || isStopped || willBeDeleted(context, namespace),
    };
  };
  if (willBeDeleted(context, namespace))
    return backend(true, `which ${fateText(context, namespace)}`);
  if (place?.services?.ok !== true) return backend(undefined);
  const selector = selectorOf(context, service);
  if (selector === undefined) {
    const gone = 'service-not-found';
    return { ...backend(true, `which ${CALL_FAILURE_TEXTS[gone]}`), failure: failure ?? gone };
  }
  if (Object.keys(selector).length === 0) return backend(undefined);
  const actors = actorsBehind(context, service);
  if (actors.some(({ ready }) => ready > 0)) return backend(false);
  if (place.pods?.ok !== true)
    return backend(undefined, `which ${CALL_FAILURE_TEXTS[failure ?? 'other']}`);
  const actor = actors.find(({ isGone }) => !isGone);
  if (actor === undefined) {
    const { cluster } = context.now;
    const isKnown = WORKLOAD_SOURCES.every((key) => cluster[key]?.ok ?? key === 'otherWorkloads');
    const none = isKnown ? ', and no workload creates the pods that it selects' : '';
    return backend(true, `which has no ready endpoints${none}`);
  }
  const [trouble] = actor.pods.flatMap(({ troubles }) => troubles);
  const why = trouble === undefined ? '' : ` (${shortQuote(trouble)})`;
  const state =
    actor.wanted === 0 ? 'is scaled to zero' : `has 0 of ${actor.wanted} replicas ready${why}`;
  return backend(true, `whose ${actorText(actor)} ${state}`, actor);
}

function selectorOf({ now }: Context, { namespace, name }: ServiceRef) {
  return itemsIn(now.places[namespace]?.services).find((one) => one.name === name)?.selector;
}

/** Returns the workloads whose pods a Service selects. */
export function actorsBehind(context: Context, service: ServiceRef): Actor[] {
  const wanted = Object.entries(selectorOf(context, service) ?? {});
  if (wanted.length === 0) return [];
  return actorsOf(context).filter(
    ({ namespace, podLabels }) =>
      namespace === service.namespace && wanted.every(([key, value]) => podLabels[key] === value),
  );
}

/** Availability is checked every 30 s, and a failed pass over a namespace repeated within 60 s. */
export const HEALS = 'waiting namespaces are then deleted within 90 s';

/** Describes the backend that does not answer. */
const CALL_FAILURE_TEXTS: Record<CallFailure, string> = {
  'service-not-found': 'does not exist',
  'no-endpoints': 'has no ready endpoints',
  refused: 'refuses the connection',
  certificate: 'has a certificate that the API server does not accept by its caBundle',
  timeout: 'does not respond in time',
  other: 'does not respond as expected',
};

/** A call of the API server to a server of somebody else: an extension API, a conversion, a webhook. */
interface Call {
  /** Undefined: a server at a URL, or none. */
  service: ServiceRef | undefined;
  failure?: CallFailure | undefined;
  /** Writes the message of the finding. */
  says: (server: string) => string;
  /** Ends the calls: next time `before` the namespace is deleted, `late` in this deletion, or if the software is `gone`. */
  stop: { before: string; late: string; gone: string; command: string; risk: string };
  /** Replaces the advice to make the backend answer. */
  fix?: Remedy[];
  /** Further ways, if the backend cannot be made to answer. */
  or?: Remedy[];
}

/**
 * Returns the finding that a server does not answer the API server. It is tied to the namespace of the backend, which
 * stays until the backend answers, and to the workload that would serve it. A backend inside the namespace cannot be
 * restored, nor one in another namespace that is being deleted: the calls have to end.
 */
export function unansweredCall(
  context: Context,
  {
    service,
    failure,
    says,
    stop,
    fix,
    or = [],
    ...finding
  }: Call & Omit<RuleResult, 'message' | 'remedies'>,
): RuleResult {
  const backend = service === undefined ? undefined : backendOf(context, service, failure);
  const server =
    backend === undefined
      ? `a server that ${CALL_FAILURE_TEXTS[failure ?? 'other']}`
      : `${serviceText(backend.service)}, ${backend.text}`;
  const { before, late, gone, ...how } = stop;
  const again = fix ?? backendRemedies(backend);
  return {
    ...finding,
    message: says(server),
    servedBy: backend?.actor && actorText(backend.actor),
    ...(backend?.isLost === true
      ? {
          ...(isInside(context, backend.service.namespace) && {
            waitsForNamespace: `${serviceText(backend.service)} ${fateText(context)}`,
          }),
          remedies: preventionRemedies(context, before, how, [
            withRole('now', { text: late, ...how }),
            ...or,
          ]),
        }
      : { remedies: [...again, ...or, withRole('or', { text: gone, ...how })] }),
  };
}

/** Returns the remedies that make the backend of a Service (or, without a Service, of a URL) answer again. */
export function backendRemedies(backend: Backend | undefined): Remedy[] {
  const makeAnswer = (text: string, see: string, ...words: string[]): Remedy[] => [
    withRole('now', { text: `${text}; ${HEALS}` }),
    lookRemedy(see, kubectl(...words)),
  ];
  if (backend === undefined) {
    return [withRole('now', { text: `Make that server answer; ${HEALS}` })];
  }
  const { service, actor } = backend;
  const { namespace, name } = service;
  const place = serviceText(service);
  if (actor?.wanted === 0 && ['Deployment', 'StatefulSet', 'ReplicaSet'].includes(actor.kind)) {
    const text = `Scale ${actorText(actor)} up, which is behind ${place}; ${HEALS}`;
    const command = kubectl('scale', ...objectArgs(actor), '--replicas=1');
    return [withRole('now', { text, command })];
  }
  if (actor !== undefined) {
    const text = `Make ${actorText(actor)} ready, which is behind ${place}`;
    const see = `See what keeps ${actorText(actor)} from being ready`;
    return makeAnswer(text, see, 'describe', ...objectArgs(actor));
  }
  if (backend.isDead) {
    const see = `See what is left in namespace ${namespace}`;
    return makeAnswer(
      `Install the software behind ${place} again`,
      see,
      'get',
      'all',
      '-n',
      namespace,
    );
  }
  const slices = ['-n', namespace, '-l', `kubernetes.io/service-name=${name}`];
  const text = `Make the backend of ${place} answer`;
  return makeAnswer(text, `See the endpoints of ${place}`, 'get', 'endpointslices', ...slices);
}
