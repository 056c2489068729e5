import { shortQuote, upperFirst } from '../base/text.ts';
import type { Remedy } from '../model/finding.ts';
import type { ServiceRef } from '../model/snapshot.ts';
import { type Actor, actorsOf, actorText, isEndingNamespace } from './actors.ts';
import { fixRemedy, podRemedies, startRemedies, withRole } from './commands.ts';
import { type Context, fateText, isInside, willBeDeleted } from './context.ts';
import type { CallFailure } from './error-texts.ts';
import { type RuleResult, serviceText } from './results.ts';

/** Finds the workload behind a Service that the API server calls for a webhook, a conversion or an extension API. `said`: how a call fails. */
export function backendOf(context: Context, service: ServiceRef, said: CallFailure = 'other') {
  const { cluster, places } = context.now;
  const { namespace } = service;
  const isGoing = willBeDeleted(context, namespace);
  const isHere = isInside(context, namespace) || isGoing;
  const isEnding = !isHere && isEndingNamespace(context, namespace);
  const all = cluster.namespaces;
  /** The namespace can be created again: what names the Service was left behind. */
  const isLeftOver = all?.ok === true && !all.value.some(({ name }) => name === namespace);
  // No pod of it is created any more.
  const isLost = isHere || isEnding || isLeftOver;
  /** `text`: "which does not exist", "whose Deployment ops/x is scaled to zero". `isDead`: undefined if that was not read. */
  const found = (isDead: boolean | undefined, text: string, actor?: Actor) => {
    const more = isEnding ? ', and whose namespace is being deleted' : '';
    return { isDead, text: text + more, actor, isLost, isLeftOver };
  };
  if (isGoing) return found(true, `which ${fateText(context, namespace)}`);
  const unread = found(undefined, `which ${SAYS[said]}`);
  const { services, pods } = places[namespace] ?? {};
  if (services?.ok !== true) return unread;
  const selector = services.value.find(({ name }) => name === service.name)?.selector;
  const absent = isLeftOver ? 'whose namespace does not exist' : 'which does not exist';
  if (selector === undefined) return found(true, absent);
  const labels = Object.entries(selector);
  if (labels.length === 0) return unread;
  const actors = actorsOf(context).filter(
    (one) =>
      one.namespace === namespace && labels.every(([key, value]) => one.podLabels[key] === value),
  );
  if (actors.some(({ ready }) => ready > 0)) return { ...unread, isDead: false, isLost: isHere };
  if (pods?.ok !== true) return unread;
  const actor = actors.find(({ isGone }) => !isGone);
  if (actor === undefined) return found(true, `which ${SAYS['no-endpoints']}`);
  const [trouble] = actor.pods.flatMap(({ troubles }) => troubles);
  const why = trouble === undefined ? '' : ` (${shortQuote(trouble)})`;
  const state =
    actor.wanted === 0 ? 'is scaled to zero' : `has 0 of ${actor.wanted} replicas ready${why}`;
  return found(true, `whose ${actorText(actor)} ${state}`, actor);
}

/** Availability is checked every 30 s, and a failed pass over a namespace repeated within 60 s. */
const HEALS = 'waiting namespaces are then deleted within 90 s';

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
  'error-status': 'responds with an error',
  other: 'does not respond as expected',
};

/** The fix, where "respond as the API server expects" says too little. */
const FIXES: Partial<Record<CallFailure, string>> = {
  certificate: 'have a certificate that a CA of the caBundle signed, or add its CA to the caBundle',
  'certificate-expired': 'have a certificate that is valid now',
  timeout:
    'answer in time, and let the API server reach it: a NetworkPolicy or a firewall may drop the connection',
};

/** A call of the API server to a server of somebody else: an extension API, a conversion, a webhook. */
interface Call extends Omit<RuleResult, 'message' | 'remedies'> {
  /** Undefined: a server at a URL, or none. */
  service: ServiceRef | undefined;
  failure?: CallFailure | undefined;
  /** Writes the message of the finding. */
  says: (server: string) => string;
  /** Ends the calls; `text` begins in lower case. */
  stop: { text: string; command: string; risk: string; losesData?: true };
  /** Further ways, if the backend cannot be made to answer. */
  or?: Remedy[];
}

/** Returns the finding that a server does not answer. One in a namespace that is being deleted cannot be restored: the calls have to end. */
export function unansweredCall(context: Context, call: Call): RuleResult {
  const { service, failure = 'other', says, stop, or = [], ...finding } = call;
  const { text, losesData = false, ...how } = stop;
  const backend = service && backendOf(context, service, failure);
  const server = backend
    ? `${serviceText(service)}, ${backend.text}`
    : `a server that ${SAYS[failure]}`;
  const end = withRole('now', { text: upperFirst(text), ...how });
  const earlier = { text: upperFirst(`${text} before you delete the namespace that serves it`) };
  const lesson = context.now.forecast === undefined ? [withRole('next', earlier)] : [];
  const canReturn = !backend?.isLost || (losesData && backend.isLeftOver);
  const gone = withRole('or', { text: `If this software was removed for good, ${text}`, ...how });
  const remedies = canReturn
    ? [...backendRemedies(context, failure, service), ...or, gone]
    : [end, ...or, ...lesson];
  return {
    ...finding,
    message: says(server),
    servedBy: backend?.actor && actorText(backend.actor),
    waitsForNamespace: isInside(context, service?.namespace),
    remedies,
  };
}

/** Returns the remedies that make the backend of a Service (or, without a Service, of a URL) answer again. */
export function backendRemedies(context: Context, said: CallFailure, service?: ServiceRef) {
  const fix = FIXES[said] ?? 'respond as the API server expects';
  if (service === undefined) return [fixRemedy(`Let that server ${fix}; ${HEALS}`)];
  const { actor, isDead } = backendOf(context, service, said);
  const who = serviceText(service);
  const then = `it is the backend of ${who}, and ${HEALS}`;
  if (actor?.wanted === 0) return startRemedies(context, actor, then);
  if (actor) return podRemedies(actor, then);
  const again = `Install the software behind ${who} again`;
  return [fixRemedy(`${isDead ? again : `Let the backend of ${who} ${fix}`}; ${HEALS}`)];
}
