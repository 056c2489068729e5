import type { Remedy, Subject } from '../../model/finding.ts';
import type { ApiServiceFacts } from '../../model/snapshot.ts';
import { type Backend, backendOf, backendRemedies, backendTies, remediesOf } from '../backends.ts';
import { kubectl, lookRemedy, nameArgs, withRole } from '../commands.ts';
import {
  type Context,
  extensionApis,
  itemsIn,
  namespaceSubject,
  type RuleResult,
  serviceText,
  shortQuote,
  willBeDeleted,
} from '../context.ts';
import { type CallFailure, callFailure } from '../error-texts.ts';

/** Availability is checked every 30 s, and a failed pass over a namespace repeated within 60 s. */
const HEALS = 'waiting namespaces are then deleted within 90 s';

function apiServiceSubject(name: string): Subject {
  return { apiVersion: 'apiregistration.k8s.io/v1', kind: 'APIService', name };
}

type GroupVersion = Pick<ApiServiceFacts, 'group' | 'version'>;

export function isSameVersion(a: GroupVersion, b: GroupVersion): boolean {
  return a.group === b.group && a.version === b.version;
}

interface FailingGroup {
  group: string;
  version: string;
  /** The observations, one sentence per source. */
  reasons: string[];
}

/**
 * Returns group-versions that cannot be discovered now. The gate's own discovery decides; the namespace's condition,
 * up to a minute old, is added as evidence, and stands alone only when discovery could not be read.
 */
function failingGroups(context: Context): FailingGroup[] {
  const {
    now: { discovery },
    conditions,
  } = context;
  const said = conditions.discoveryFailures;
  const found: FailingGroup[] = discovery.ok
    ? discovery.value.failedGroups.map(({ group, version, reason }) => ({
        group,
        version,
        reasons: [`discovery of ${group}/${version}: ${reason}`],
      }))
    : said.map(({ group, version }) => ({ group, version, reasons: [] }));
  // In a forecast, a group whose backend is deleted with the namespace keeps every deletion from finishing.
  const going = extensionApis(context)
    .filter(({ service }) => willBeDeleted(context, service.namespace))
    .filter((one) => !found.some((other) => isSameVersion(one, other)))
    .map(({ group, version }) => ({ group, version, reasons: [] }));
  found.push(...going);
  for (const failing of found) {
    const named = said.find((one) => isSameVersion(one, failing));
    if (named !== undefined) {
      failing.reasons.push(
        `the namespace's condition NamespaceDeletionDiscoveryFailure: ${named.error}`,
      );
    }
  }
  return found;
}

/**
 * Finds API groups that do not respond. The namespace controller needs a complete discovery to finish, so one of
 * them holds every namespace (namespaced_resources_deleter.go, deleteAllContent). Available=False alone is
 * no proof: a group whose resources can still be discovered blocks nothing. Nor is Available=True: aggregated
 * discovery asks the backend for /apis, the availability check for /apis/<group>/<version>, and they can
 * differ (kube-aggregator handler_discovery.go and remote_available_controller.go).
 */
export function failingApis(context: Context): RuleResult[] {
  const services = context.now.cluster.apiServices;
  const failing = failingGroups(context).map((group) => {
    const service = itemsIn(services).find((one) => isSameVersion(one, group));
    const isDown =
      service?.available?.status !== 'True' || willBeDeleted(context, service.service?.namespace);
    return service !== undefined && isDown
      ? unavailableApiService(context, service, group)
      : undiscoveredGroup(context, service, group, services?.ok === true);
  });
  const raw = context.conditions.discoveryRaw;
  if (raw === undefined || failing.length > 0) return failing;
  return [
    {
      code: 'discovery-failed',
      subject: namespaceSubject(context.now.namespace.name),
      message: 'cannot be emptied: the namespace controller could not discover the resource types',
      evidence: [`NamespaceDeletionDiscoveryFailure: ${raw}`],
      scope: 'cluster',
      remedies: [],
      blocksNamespace: 'the namespace controller does not know which types exist',
    },
  ];
}

function unavailableApiService(
  context: Context,
  service: ApiServiceFacts,
  { group, version, reasons }: FailingGroup,
): RuleResult {
  const { available } = service;
  const failure = failureOf(service);
  const backend = service.service && backendOf(context, service.service, failure);
  const state =
    available === undefined
      ? 'the API server has never checked it'
      : `Available=${available.status} (${available.reason}): ${available.message}`;
  const isUnsaid = failure === 'other' && backend?.isDead !== true;
  const quote = isUnsaid && available ? shortQuote(available.message) : undefined;
  const where =
    backend === undefined
      ? 'it has no backend'
      : `its backend is ${serviceText(backend.service)}, ${backend.text}`;
  return {
    code: 'apiservice-unavailable',
    subject: apiServiceSubject(service.name),
    message: `${willBeDeleted(context, service.service?.namespace) ? 'will stop responding' : 'does not respond'}: ${where}${quote === undefined ? '' : `: ${quote}`}`,
    quote,
    evidence: [state, ...reasons],
    since: available?.since,
    scope: 'cluster',
    remedies: unavailableRemedies(context, service, backend, failure),
    blocksNamespace: `no namespace can be deleted until every API group responds, and ${group}/${version} does not`,
    ...backendTies(context, backend),
  };
}

/** Reads the reason of the Available condition (kube-aggregator remote_available_controller.go). */
function failureOf({ available }: ApiServiceFacts): CallFailure {
  switch (available?.reason) {
    case 'ServiceNotFound':
      return 'service-not-found';
    case 'EndpointsNotFound':
    case 'MissingEndpoints':
      return 'no-endpoints';
    default:
      return callFailure(available?.message ?? '');
  }
}

function unavailableRemedies(
  context: Context,
  service: ApiServiceFacts,
  backend: Backend | undefined,
  failure: CallFailure,
): Remedy[] {
  if (backend === undefined) return removeApiServiceRemedies(context, service, backend, []);
  const { name } = service;
  const command = kubectl('describe', 'apiservice', name);
  const see = lookRemedy(`See what the API server says about APIService ${name}`, command);
  return removeApiServiceRemedies(context, service, backend, [
    ...backendRemedies(backend, failure, HEALS),
    ...(backend.isDead ? [] : [see]),
  ]);
}

/** Known groups, and what stops working without them. */
const LOSSES: ReadonlyMap<string, string> = new Map([
  ['metrics.k8s.io', 'kubectl top and autoscaling on CPU and memory stop'],
  ['custom.metrics.k8s.io', 'autoscaling on its metrics stops'],
  ['external.metrics.k8s.io', 'autoscaling on its metrics stops'],
]);

function removeApiServiceRemedies(
  context: Context,
  { group, name, version }: ApiServiceFacts,
  backend: Backend | undefined,
  again: Remedy[],
): Remedy[] {
  const loss = LOSSES.get(group);
  const place = backend && serviceText(backend.service);
  const ways = {
    before: `delete APIService ${name} before its backend, or install the backend in a namespace that stays`,
    late: `Delete APIService ${name}: its backend, ${place}, is being deleted with the namespace; ${HEALS}`,
    gone: `If this software was removed for good, delete APIService ${name}; ${HEALS}`,
    command: kubectl('delete', ...nameArgs('apiservice', name)),
    risk: `the API ${group}/${version} disappears for the whole cluster${loss === undefined ? '' : `: ${loss}`}`,
  };
  return remediesOf(context, backend, ways, { again });
}

function undiscoveredGroup(
  context: Context,
  service: ApiServiceFacts | undefined,
  { group, version, reasons }: FailingGroup,
  couldRead: boolean,
): RuleResult {
  const backend = service?.service && backendOf(context, service.service);
  const where = backend === undefined ? '' : `; its backend is ${serviceText(backend.service)}`;
  const state =
    service !== undefined
      ? `Available=True (${service.available?.reason ?? ''}): ${service.available?.message ?? ''}`
      : couldRead
        ? 'there is no APIService for it'
        : 'its APIService could not be read';
  return {
    code: 'discovery-failed',
    subject: apiServiceSubject(service?.name ?? `${version}.${group}`),
    message: `cannot be discovered${service === undefined ? '' : ', although its APIService is reported as available'}${where}`,
    evidence: [...reasons, state],
    scope: 'cluster',
    remedies: discoveryRemedies(context, group, version, service, backend),
    blocksNamespace: `no namespace can be deleted until every API group can be discovered, and ${group}/${version} cannot`,
    ...backendTies(context, backend),
  };
}

function discoveryRemedies(
  context: Context,
  group: string,
  version: string,
  service: ApiServiceFacts | undefined,
  backend: Backend | undefined,
): Remedy[] {
  const path = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  const see = lookRemedy(
    `See what the API server answers for ${group === '' ? version : `${group}/${version}`}`,
    `${kubectl('get', '--raw', path)} || true`,
  );
  if (service === undefined || backend === undefined) {
    return [
      withRole('now', {
        text: 'If the control plane is being upgraded, wait: until that is done, its API servers serve different versions. Otherwise read the log of kube-apiserver',
      }),
      see,
    ];
  }
  const now = `Make the backend behind ${serviceText(backend.service)} answer /apis with 200 or 404 within 5 s; a restart of its pods often helps; ${HEALS}`;
  return removeApiServiceRemedies(context, service, backend, [withRole('now', { text: now }), see]);
}
