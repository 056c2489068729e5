import type { ApiServiceFacts } from '../../model/snapshot.ts';
import { type Draft, namespaceSubject, type View } from '../draft.ts';
import { discoveryRemedies } from '../remedies/api.ts';
import { apiServiceSubject } from './apiservice-unavailable.ts';
import { failingGroups } from './failing-groups.ts';

/**
 * A group-version that cannot be discovered although its APIService looks fine: aggregated discovery
 * asks the backend for /apis, the availability check for /apis/<group>/<version>, and they can differ
 * (kube-aggregator handler_discovery.go and remote_available_controller.go).
 */
export function discoveryFailed(view: View): Draft[] {
  const services = view.now.details?.apiServices;
  const failing = failingGroups(view).flatMap(({ group, version, reasons }): Draft[] => {
    const service =
      services?.ok === true
        ? services.value.find((entry) => entry.group === group && entry.version === version)
        : undefined;
    if (service !== undefined && service.available?.status !== 'True') return []; // another rule's
    const backend = service?.service;
    const inside = backend?.namespace === view.now.namespace.name;
    const where =
      backend === undefined ? '' : `; its backend is Service ${backend.namespace}/${backend.name}`;
    return [
      {
        code: 'discovery-failed',
        subject: apiServiceSubject(service?.name ?? `${version}.${group}`),
        message: `${service === undefined ? 'does not answer: its resources' : 'looks available, yet its resources'} cannot be discovered${where}`,
        evidence: [...reasons, stateOf(service, services?.ok === true)],
        scope: 'cluster',
        remedies: discoveryRemedies({ group, version, service }),
        blocksNamespace: `no namespace is finished before every API group can be discovered, and ${group}/${version} cannot`,
        ...(inside && backend !== undefined
          ? {
              waitsForNamespace: `Service ${backend.namespace}/${backend.name} was in this namespace and has been deleted with it`,
            }
          : {}),
      },
    ];
  });
  const raw = view.conditions.discoveryRaw;
  if (raw === undefined || failing.length > 0) return failing;
  return [
    {
      code: 'discovery-failed',
      subject: namespaceSubject(view.now.namespace.name),
      message: 'cannot be emptied: the namespace controller could not discover the resource types',
      evidence: [`NamespaceDeletionDiscoveryFailure: ${raw}`],
      scope: 'cluster',
      remedies: [],
      blocksNamespace: 'the controller does not know what to delete',
    },
  ];
}

/** Only an APIService that was seen can be said to look fine. */
function stateOf(service: ApiServiceFacts | undefined, couldRead: boolean): string {
  if (service !== undefined) {
    return `Available=True (${service.available?.reason ?? ''}): ${service.available?.message ?? ''}`;
  }
  return couldRead ? 'there is no APIService for it' : 'its APIService could not be read';
}
