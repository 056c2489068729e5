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
export function backendOf(context: Context, service: ServiceRef, failure?: CallFailure): Backend {
  const { namespace } = service;
  const place = context.now.places[namespace];
  const said = failure === undefined ? '' : `which ${FAULTS[failure].says}`;
  const inside = isInside(context, namespace);
  const isEnding = !inside && isEndingNamespace(context, namespace);
  const backend = (isDead: boolean | undefined, text = said, actor?: Actor): Backend => {
    const isStopped = isEnding && isDead !== false;
    return {
      service,
      isDead,
      failure: failure ?? (isDead === false ? 'other' : 'no-endpoints'),
      text: isStopped ? `${text}, and whose namespace is being deleted` : text,
      actor,
      isLost: inside || isStopped || willBeDeleted(context, namespace),
    };
  };
  if (willBeDeleted(context, namespace))
    return backend(true, `which ${fateText(context, namespace)}`);
  if (place?.services?.ok !== true) return backend(undefined);
  const selector = selectorOf(context, service);
  if (selector === undefined && isMissing(context, namespace)) {
    const text = 'whose namespace does not exist';
    return { ...backend(true, text), failure: failure ?? 'service-not-found', isLeftOver: true };
  }
  if (selector === undefined) {
    const gone = 'service-not-found';
    return { ...backend(true, `which ${FAULTS[gone].says}`), failure: failure ?? gone };
  }
  if (Object.keys(selector).length === 0) return backend(undefined);
  const actors = actorsBehind(context, service);
  if (actors.some(({ ready }) => ready > 0)) return backend(false);
  if (place.pods?.ok !== true)
    return backend(undefined, `which ${FAULTS[failure ?? 'other'].says}`);
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

/** Reports whether a namespace is not among those of the cluster, which were all read. */
function isMissing({ now }: Context, namespace: string): boolean {
  const all = now.cluster.namespaces;
  return all?.ok === true && all.value.every(({ name }) => name !== namespace);
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

/** A fault of a call: what it shows about the server, and what ends it if the server runs. */
interface Fault {
  /** A predicate about the server: "does not exist". */
  says: string;
  /** `server`: "the backend of Service a/b", "that server". */
  fix: (server: string, endpoint: Endpoint, host: string) => string;
  /** The object that shows more: the Service, the object that names the endpoint, or the log. */
  look: 'endpoints' | 'service' | 'endpoint' | 'log';
}

const FAULTS: Record<CallFailure, Fault> = {
  'service-not-found': {
    says: 'does not exist',
    fix: (server) => `Make ${server} answer`,
    look: 'endpoints',
  },
  'no-endpoints': {
    says: 'has no ready endpoints',
    fix: (server) => `Make ${server} answer`,
    look: 'endpoints',
  },
  refused: {
    says: 'refuses the connection',
    fix: (server, { address }) =>
      `Let ${server} listen on the port that is called, or correct ${address}`,
    look: 'service',
  },
  timeout: {
    says: 'does not respond in time',
    fix: (server) =>
      `Let ${server} answer in time, and let the API server reach it: a NetworkPolicy or a firewall may drop the connection`,
    look: 'endpoints',
  },
  certificate: {
    says: 'has a certificate that no CA of the caBundle has signed',
    fix: (server, { caBundle }) =>
      `Put the CA that signed the certificate of ${server} into ${caBundle}`,
    look: 'endpoint',
  },
  'certificate-expired': {
    says: 'has a certificate that has expired or is not yet valid',
    fix: (server) => `Renew the certificate of ${server}`,
    look: 'log',
  },
  'certificate-name': {
    says: 'has a certificate for other names than the one that the API server calls',
    fix: (server, _, host) => `Give ${server} a certificate for ${host}`,
    look: 'log',
  },
  'no-tls': {
    says: 'does not use TLS on the port that the API server calls',
    fix: (server, { address }) => `Let ${server} use TLS on that port, or correct ${address}`,
    look: 'service',
  },
  'not-served': {
    says: 'responds, but does not serve what the API server asks for',
    fix: (server, { address }) =>
      `Correct ${address}, or install a version of the software that serves it: ${server} responds, but not to this request`,
    look: 'service',
  },
  'error-status': {
    says: 'responds with an error',
    fix: (server) => `Fix the error with which ${server} responds`,
    look: 'log',
  },
  other: {
    says: 'does not respond as expected',
    fix: (server) => `Let ${server} respond as the API server expects`,
    look: 'endpoints',
  },
};

/** The object that tells the API server which server to call. */
export interface Endpoint {
  object: Pick<Subject, 'kind' | 'name'>;
  /** The fields that decide what is called: "the port, group or version in APIService v1.a". */
  address: string;
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
 * stays until the backend answers, and to the workload that would serve it. A backend inside the namespace cannot be
 * restored, nor one in another namespace that is being deleted or does not exist: the calls have to end.
 */
export function unansweredCall(
  context: Context,
  {
    service,
    failure,
    endpoint,
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
      ? `a server that ${FAULTS[failure ?? 'other'].says}`
      : `${serviceText(backend.service)}, ${backend.text}`;
  const { before, late, end, changesObjects = false, ...how } = stop;
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
      : backend?.isLeftOver === true && !changesObjects
        ? { remedies: [withRole('now', { text: upperFirst(end), ...how }), ...or, INSTALL] }
        : {
            remedies: [
              ...(fix ?? backendRemedies(context, backend, endpoint, failure)),
              ...or,
              withRole('or', { text: `If this software was removed for good, ${end}`, ...how }),
            ],
          }),
  };
}

const INSTALL = withRole('or', { text: 'If this software is still needed, install it again' });

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
  const makeAnswer = (text: string, see: string, ...words: string[]): Remedy[] => [
    withRole('now', { text: `${text}; ${HEALS}` }),
    lookRemedy(see, kubectl(...words)),
  ];
  if (backend?.actor !== undefined) {
    const { actor } = backend;
    const place = serviceText(backend.service);
    if (actor.wanted === 0 && isScalable(actor)) {
      return [scaleUp(actor, `Scale ${actorText(actor)} up, which is behind ${place}`)];
    }
    const fix = memoryFix(actor, actorText(actor)) ?? `Make ${actorText(actor)} ready`;
    const text = `${fix}, which is behind ${place}`;
    const see = `See what keeps ${actorText(actor)} from being ready`;
    return makeAnswer(text, see, 'describe', ...objectArgs(actor));
  }
  if (backend?.isDead) {
    const { namespace } = backend.service;
    const see = `See what is left in namespace ${namespace}`;
    const text = `Install the software behind ${serviceText(backend.service)} again`;
    if (backend.isLeftOver) return [withRole('now', { text: `${text}; ${HEALS}` })];
    return makeAnswer(text, see, 'get', 'all', '-n', namespace);
  }
  return faultRemedies(context, backend?.service, endpoint, failure);
}

/** Returns the remedies against the fault of a server that runs, or whose pods were not read. */
function faultRemedies(
  context: Context,
  service: ServiceRef | undefined,
  endpoint: Endpoint,
  failure: CallFailure,
): Remedy[] {
  if (failure === 'certificate' && endpoint.caInjection !== undefined) {
    return injectionRemedies(context, endpoint, endpoint.caInjection);
  }
  const { fix, look } = FAULTS[failure];
  const server = service === undefined ? 'that server' : `the backend of ${serviceText(service)}`;
  const host = service === undefined ? 'its host name' : `${service.name}.${service.namespace}.svc`;
  return [
    withRole('now', { text: `${fix(server, endpoint, host)}; ${HEALS}` }),
    ...faultLooks(context, service, endpoint, look),
  ];
}

function faultLooks(
  context: Context,
  service: ServiceRef | undefined,
  { object }: Endpoint,
  look: Fault['look'],
): Remedy[] {
  if (look === 'endpoint') {
    return [showObjectRemedy(`See the caBundle in ${object.kind} ${object.name}`, object)];
  }
  if (service === undefined) return [];
  const { namespace, name } = service;
  const place = serviceText(service);
  switch (look) {
    case 'endpoints': {
      const slices = ['-n', namespace, '-l', `kubernetes.io/service-name=${name}`];
      return [
        lookRemedy(`See the endpoints of ${place}`, kubectl('get', 'endpointslices', ...slices)),
      ];
    }
    case 'service': {
      const words = objectArgs({ kind: 'Service', namespace, name });
      return [lookRemedy(`See the ports and endpoints of ${place}`, kubectl('describe', ...words))];
    }
    case 'log':
      return actorsBehind(context, service).filter(isScalable).slice(0, 1).map(logOf);
  }
}

/** Returns the remedies for a caBundle that cert-manager's cainjector should have written. */
function injectionRemedies(context: Context, { caBundle }: Endpoint, annotation: string): Remedy[] {
  const [injector] = actorsOf(context).filter(
    ({ isGone, programs }) => !isGone && programs.some((name) => CA_INJECTOR.test(name)),
  );
  const asked = `annotation ${annotation} makes it write the CA into ${caBundle}`;
  if (injector === undefined || injector.ready > 0) {
    const text = `Find out why cert-manager's cainjector has not written the right CA into ${caBundle}, which annotation ${annotation} asks for; ${HEALS}`;
    return [
      withRole('now', { text }),
      ...(injector !== undefined && isScalable(injector) ? [logOf(injector)] : []),
    ];
  }
  const who = actorText(injector);
  if (injector.wanted === 0 && isScalable(injector)) {
    return [scaleUp(injector, `Scale ${who} up: ${asked}`)];
  }
  return [
    withRole('now', { text: `Make ${who} ready: ${asked}; ${HEALS}` }),
    lookRemedy(
      `See what keeps ${who} from being ready`,
      kubectl('describe', ...objectArgs(injector)),
    ),
  ];
}

const CA_INJECTOR = /^(?:[\w-]+-)?cainjector$/;

/** Returns the fix for a workload whose containers exceed their memory limit; undefined if none did. */
export function memoryFix({ pods }: Pick<Actor, 'pods'>, who: string): string | undefined {
  const isKilled = pods.some(({ troubles }) =>
    troubles.some((trouble) => trouble.includes(OUT_OF_MEMORY)),
  );
  return isKilled ? `Raise the memory limit of ${who}` : undefined;
}

function isScalable({ kind }: Actor): boolean {
  return ['Deployment', 'StatefulSet', 'ReplicaSet'].includes(kind);
}

function scaleUp(actor: Actor, text: string): Remedy {
  return withRole('now', {
    text: `${text}; ${HEALS}${undoneText(actor)}`,
    command: kubectl('scale', ...objectArgs(actor), '--replicas=1'),
  });
}

function logOf(actor: Actor): Remedy {
  const { kind, namespace, name } = actor;
  return lookRemedy(
    `Read the log of ${actorText(actor)}`,
    kubectl('logs', `${kind.toLowerCase()}/${name}`, '-n', namespace, '--tail=50'),
  );
}
