import type { Subject } from '../../model/finding.ts';
import type { ApiServiceFacts } from '../../model/snapshot.ts';
import type { Draft, View } from '../draft.ts';
import { apiServiceRemedies } from '../remedies/api.ts';
import { failingGroups } from './failing-groups.ts';

export function apiServiceSubject(name: string): Subject {
  return { apiVersion: 'apiregistration.k8s.io/v1', kind: 'APIService', name };
}

/**
 * APIServices whose backend does not answer and whose group cannot be discovered. The namespace
 * controller needs a complete discovery to finish, so one of them holds every namespace
 * (namespaced_resources_deleter.go, deleteAllContent). Available=False alone is no proof: a group whose
 * resources can still be discovered blocks nothing.
 */
export function apiserviceUnavailable(view: View): Draft[] {
  const services = view.now.details?.apiServices;
  if (services === undefined || !services.ok) return []; // not inspected, which is not "all fine"
  return failingGroups(view).flatMap((failing) => {
    const service = services.value.find(
      ({ group, version }) => group === failing.group && version === failing.version,
    );
    if (service === undefined || service.available?.status === 'True') return [];
    return [toDraft(view, service, failing.reasons)];
  });
}

function toDraft(view: View, service: ApiServiceFacts, reasons: string[]): Draft {
  const inside = service.service?.namespace === view.now.namespace.name;
  const backend =
    service.service === undefined
      ? 'no Service'
      : `Service ${service.service.namespace}/${service.service.name}`;
  const state =
    service.available === undefined
      ? 'the API server has never checked it'
      : `Available=${service.available.status} (${service.available.reason}): ${service.available.message}`;
  return {
    code: 'apiservice-unavailable',
    subject: apiServiceSubject(service.name),
    message: `does not answer: its backend is ${backend}, ${explainReason(service)}`,
    evidence: [state, ...reasons],
    ...(service.available?.since === undefined ? {} : { since: service.available.since }),
    scope: 'cluster',
    remedies: apiServiceRemedies({ service, insideNamespace: inside }),
    blocksNamespace: `no namespace is finished before every API group answers, and ${service.group}/${service.version} does not`,
    ...(inside
      ? { waitsForNamespace: `${backend} was in this namespace and has been deleted with it` }
      : {}),
  };
}

/** Reasons of the Available condition, kube-aggregator remote_available_controller.go. */
function explainReason(service: ApiServiceFacts): string {
  switch (service.available?.reason) {
    case 'ServiceNotFound':
      return 'which does not exist';
    case 'ServicePortError':
      return 'which does not listen on the port that the APIService names';
    case 'EndpointsNotFound':
    case 'MissingEndpoints':
      return 'which has no ready endpoints';
    case 'FailedDiscoveryCheck':
      return 'which does not answer as it should';
    case undefined:
      return 'which was never found available';
    default:
      return 'which is not available';
  }
}
