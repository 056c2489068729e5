import { upperFirst } from '../base/text.ts';
import { OUT_OF_MEMORY } from '../model/facts/workloads.ts';
import type { Remedy, Subject } from '../model/finding.ts';
import type { ServiceRef } from '../model/snapshot.ts';
import { type Actor, actorsOf, actorText, isEndingNamespace, WORKLOAD_SOURCES } from './actors.ts';
import {
  kubectl,
  lookRemedy,
  objectArgs,
  preventionRemedies,
  showObjectRemedy,
  withRole,
} from './commands.ts';
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
import { identifiesProgram } from './owner/names.ts';

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
  /** Its namespace does not exist: what names the Service was left behind. */
  isLeftOver?: boolean;
}

/** Finds the Service, the workload that its selector selects, and the state of that workload. */
export function backendOf(context: Context, service: ServiceRef, said?: CallFailure): Backend {
  const { namespace } = service;
  const state = stateOf(context, service, said);
  const isHere = isInside(context, namespace);
  const isEnding = !isHere && isEndingNamespace(context, namespace) && state.isDead !== false;
  return {
    ...{ service, actor: undefined, failure: state.isDead === false ? 'other' : 'no-endpoints' },
    ...state,
    ...(said && { failure: said }),
    text: isEnding ? `${state.text}, and whose namespace is being deleted` : state.text,
    isLost: isHere || isEnding || willBeDeleted(context, namespace),
  };
}

function stateOf(
  context: Context,
  service: ServiceRef,
  said: CallFailure = 'other',
): Pick<Backend, 'isDead' | 'text'> & Partial<Backend> {
  const { now } = context;
  const { namespace } = service;
  const unread = { isDead: undefined, text: `which ${SAYS[said]}` };
  if (willBeDeleted(context, namespace)) {
    return { isDead: true, text: `which ${fateText(context, namespace)}` };
  }
  if (now.places[namespace]?.services?.ok !== true) return unread;
  const selector = selectorOf(context, service);
  if (selector === undefined) {
    const gone = { isDead: true, failure: 'service-not-found' } as const;
    const all = now.cluster.namespaces;
    const isLeftOver = all?.ok === true && all.value.every(({ name }) => name !== namespace);
    return isLeftOver
      ? { ...gone, text: 'whose namespace does not exist', isLeftOver }
      : { ...gone, text: `which ${SAYS[gone.failure]}` };
  }
  if (Object.keys(selector).length === 0) return unread;
  const actors = actorsBehind(context, service);
  if (actors.some(({ ready }) => ready > 0)) return { ...unread, isDead: false };
  if (now.places[namespace]?.pods?.ok !== true) return unread;
  const actor = actors.find(({ isGone }) => !isGone);
  if (actor === undefined) {
    const isKnown = WORKLOAD_SOURCES.every(
      (key) => now.cluster[key]?.ok ?? key === 'otherWorkloads',
    );
    const none = isKnown ? ', and no workload creates the pods that it selects' : '';
    return { isDead: true, text: `which has no ready endpoints${none}` };
  }
  const [trouble] = actor.pods.flatMap(({ troubles }) => troubles);
  const why = trouble === undefined ? '' : ` (${shortQuote(trouble)})`;
  const state =
    actor.wanted === 0 ? 'is scaled to zero' : `has 0 of ${actor.wanted} replicas ready${why}`;
  return { isDead: true, text: `whose ${actorText(actor)} ${state}`, actor };
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

/** What the fault of a call shows about the server. */
const SAYS: Record<CallFailure, string> = {
  'service-not-found': 'does not exist',
  'no-endpoints': 'has no ready endpoints',
  refused: 'refuses the connection',
  timeout: 'does not respond in time',
  certificate: 'has a certificate that no CA of the caBundle has signed',
  'certificate-expired': 'has a certificate that has expired or is not yet valid',
  'certificate-name': 'has a certificate for other names than the one that the API server calls',
  'no-tls': 'does not use TLS on the port that the API server calls',
  'not-served': 'responds, but does not serve what the API server asks for',
  'error-status': 'responds with an error',
  other: 'does not respond as expected',
};

/** The object that tells the API server which server to call. */
export interface Endpoint {
  object: Pick<Subject, 'kind' | 'name'>;
  /** The field with the CA: "spec.caBundle of APIService v1.a". */
  caBundle: string;
  /** The annotation by which cert-manager's cainjector writes that field, as `KEY=VALUE`. */
  caInjection?: string | undefined;
}

/** A call of the API server to a server of somebody else: an extension API, a conversion, a webhook. */
interface Call {
  /** Undefined: a server at a URL, or none. */
  service: ServiceRef | undefined;
  failure?: CallFailure | undefined;
  endpoint: Endpoint;
  /** Writes the message of the finding. */
  says: (server: string) => string;
  /** Ends the calls: next time `before` the namespace is deleted, `late` in this deletion, or at any time. */
  stop: {
    before: string;
    late: string;
    end: string;
    command: string;
    risk: string;
    /** The command changes how stored objects are read. Software that was lost is then better installed again. */
    changesObjects?: true;
  };
  /** Replaces the advice to make the backend answer. */
  fix?: Remedy[];
  /** Further ways, if the backend cannot be made to answer. */
  or?: Remedy[];
}

/**
 * Returns the finding that a server does not answer the API server. It is tied to the namespace of the backend, which
 * stays until the backend answers, and to the workload that would serve it.
 */
export function unansweredCall(
  context: Context,
  call: Call & Omit<RuleResult, 'message' | 'remedies'>,
): RuleResult {
  const { service, failure, endpoint, says, stop, fix, or, ...finding } = call;
  const backend = service === undefined ? undefined : backendOf(context, service, failure);
  const server =
    backend === undefined
      ? `a server that ${SAYS[failure ?? 'other']}`
      : `${serviceText(backend.service)}, ${backend.text}`;
  const isHere = backend?.isLost === true && isInside(context, backend.service.namespace);
  return {
    ...finding,
    message: says(server),
    servedBy: backend?.actor && actorText(backend.actor),
    waitsForNamespace: isHere,
    remedies: remediesOf(context, call, backend),
  };
}

/**
 * A backend inside the namespace cannot be restored, nor one in another namespace that is being deleted or does not exist:
 * the calls have to end.
 */
function remediesOf(
  context: Context,
  { failure, endpoint, stop, fix, or = [] }: Call,
  backend: Backend | undefined,
): Remedy[] {
  const { before, late, end, changesObjects = false, ...how } = stop;
  if (backend?.isLost === true) {
    const now = withRole('now', { text: late, ...how });
    return preventionRemedies(context, before, how, [now, ...or]);
  }
  if (backend?.isLeftOver === true && !changesObjects) {
    const install = withRole('or', { text: 'If this software is still needed, install it again' });
    return [withRole('now', { text: upperFirst(end), ...how }), ...or, install];
  }
  return [
    ...(fix ?? backendRemedies(context, backend, endpoint, failure)),
    ...or,
    withRole('or', { text: `If this software was removed for good, ${end}`, ...how }),
  ];
}

/** Returns who may undo a change of the replicas: the controller of the workload, or the program that has set them. */
export function undoneText({ owner, scaledBy }: Actor): string {
  const manager = scaledBy?.manager ?? '';
  const scaler = owner
    ? `${owner.kind} ${owner.name} controls it`
    : manager !== '' &&
      identifiesProgram(manager) &&
      `field manager "${manager}" has set its replicas`;
  return scaler
    ? `. ${upperFirst(scaler)} and may set that back: then change the replicas there, for example in Git`
    : '';
}

/** Returns the remedies that make the backend of a Service (or, without a Service, of a URL) answer again. */
export function backendRemedies(
  context: Context,
  backend: Backend | undefined,
  endpoint: Endpoint,
  failure: CallFailure = backend?.failure ?? 'other',
): Remedy[] {
  const { actor, isDead, isLeftOver, service } = backend ?? {};
  const place = service && serviceText(service);
  if (actor !== undefined) return startRemedies(actor, `, which is behind ${place}`);
  if (service !== undefined && isDead) {
    const see = kubectl('get', 'all', '-n', service.namespace);
    const look = lookRemedy(`See what is left in namespace ${service.namespace}`, see);
    const install = `Install the software behind ${place} again; ${HEALS}`;
    return [withRole('now', { text: install }), ...(isLeftOver ? [] : [look])];
  }
  const { caBundle, caInjection } = endpoint;
  const injector = actorsOf(context).find(
    ({ isGone, ready, programs }) =>
      !isGone && ready === 0 && programs.some((name) => CA_INJECTOR.test(name)),
  );
  if (failure === 'certificate' && caInjection !== undefined && injector !== undefined) {
    const writes = `annotation ${caInjection} makes it write the CA into ${caBundle}`;
    return startRemedies(injector, `: ${writes}`);
  }
  const server = place === undefined ? 'that server' : `the backend of ${place}`;
  const { kind, name } = endpoint.object;
  if (failure === 'certificate') {
    const write =
      caInjection === undefined
        ? `Put the CA that signed the certificate of ${server} into ${caBundle}`
        : `Find out why cert-manager's cainjector has not written the right CA into ${caBundle}, which annotation ${caInjection} asks for`;
    return [
      withRole('now', { text: `${write}; ${HEALS}` }),
      showObjectRemedy(`See the caBundle in ${kind} ${name}`, endpoint.object),
    ];
  }
  const fixes: Partial<Record<CallFailure, string>> = {
    'certificate-expired': `Renew the certificate of ${server}`,
    timeout: `Let ${server} answer in time, and let the API server reach it: a NetworkPolicy or a firewall may drop the connection`,
  };
  const text = `${fixes[failure] ?? `Let ${server} respond as the API server expects`}; ${HEALS}`;
  if (service === undefined) return [withRole('now', { text })];
  const see = kubectl('describe', ...objectArgs({ kind: 'Service', ...service }));
  return [withRole('now', { text }), lookRemedy(`See the ports and endpoints of ${place}`, see)];
}

const CA_INJECTOR = /^(?:[\w-]+-)?cainjector$/;

/** Returns what makes a workload run again; `why` follows its name. */
function startRemedies(actor: Actor, why: string): Remedy[] {
  const who = actorText(actor);
  if (actor.wanted === 0 && isScalable(actor)) {
    const text = `Scale ${who} up${why}; ${HEALS}${undoneText(actor)}`;
    return [
      withRole('now', { text, command: kubectl('scale', ...objectArgs(actor), '--replicas=1') }),
    ];
  }
  const fix = memoryFix(actor, who) ?? `Make ${who} ready`;
  const see = kubectl('describe', ...objectArgs(actor));
  return [
    withRole('now', { text: `${fix}${why}; ${HEALS}` }),
    lookRemedy(`See what keeps ${who} from being ready`, see),
  ];
}

/** Returns the fix for a workload whose containers exceed their memory limit; undefined if none did. */
export function memoryFix({ pods }: Pick<Actor, 'pods'>, who: string): string | undefined {
  const troubles = pods.flatMap((pod) => pod.troubles);
  const isKilled = troubles.some((trouble) => trouble.includes(OUT_OF_MEMORY));
  return isKilled ? `Raise the memory limit of ${who}` : undefined;
}

function isScalable({ kind }: Actor): boolean {
  return ['Deployment', 'StatefulSet', 'ReplicaSet'].includes(kind);
}
