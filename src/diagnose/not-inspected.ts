import type { NotInspected } from '../model/finding.ts';
import type { Read, ReadFailure } from '../model/read.ts';
import type { Details, Snapshot } from '../model/snapshot.ts';
import { typeName } from './display.ts';
import type { View } from './draft.ts';

/** What could not be read, and why: never the same as empty, and never the ground of a verdict. */
export function notInspected(view: View): NotInspected[] {
  const { now } = view;
  const list: NotInspected[] = [];
  if (now.trouble !== undefined) {
    list.push({
      what: `namespace ${now.namespace.name}`,
      reason: now.trouble.message,
      ...grantFor(now.trouble, '', 'namespaces', 'get'),
    });
  }
  if (!now.discovery.ok) {
    list.push({
      what: 'all resource types (API discovery)',
      reason: now.discovery.failure.message,
    });
  } else {
    for (const { group, version, reason } of now.discovery.value.failedGroups) {
      list.push({ what: `API group ${group}/${version}`, reason });
    }
  }
  for (const { type, read } of now.content) {
    if (read.ok) continue;
    list.push({
      what: typeName(type),
      reason: read.failure.message,
      ...grantFor(read.failure, type.group, type.resource, 'list'),
    });
  }
  list.push(...unreadStatuses(now), ...unreadDetails(now.details));
  for (const [name, node] of Object.entries(now.nodes ?? {})) {
    if (node.ok) continue;
    list.push({
      what: `node ${name}`,
      reason: node.failure.message,
      ...grantFor(node.failure, '', 'nodes', 'get'),
    });
  }
  return list;
}

/** Why a held object is held may stand in its status. One that went meanwhile is no gap. */
function unreadStatuses({ content, details }: Snapshot): NotInspected[] {
  const statuses = details?.statuses ?? {};
  return content.flatMap(({ type, read }) =>
    (read.ok ? read.value.terminating : [])
      .flatMap(({ examples }) => examples)
      .flatMap(({ uid, kind, name }): NotInspected[] => {
        const status = Object.hasOwn(statuses, uid) ? statuses[uid] : undefined;
        if (status === undefined || status.ok || status.failure.kind === 'not-found') return [];
        return [
          {
            what: `status of ${kind} ${name}`,
            reason: status.failure.message,
            ...grantFor(status.failure, type.group, type.resource, 'get'),
          },
        ];
      }),
  );
}

/** What was read because a finding asked for it, and could not be. */
function unreadDetails(details: Details | undefined): NotInspected[] {
  if (details === undefined) return [];
  const list: NotInspected[] = [];
  const add = (
    what: string,
    source: Read<unknown> | undefined,
    apiGroup: string,
    resource: string,
    verb: string,
  ): void => {
    if (source === undefined || source.ok) return;
    const { failure } = source;
    list.push({ what, reason: failure.message, ...grantFor(failure, apiGroup, resource, verb) });
  };
  const { apiServices, workloads, grants, webhooks, attachments, isOnProvider } = details;
  add('APIServices', apiServices, 'apiregistration.k8s.io', 'apiservices', 'list');
  add('workloads of the cluster', workloads, 'apps', 'deployments', 'list');
  add('RBAC of the cluster', grants, 'rbac.authorization.k8s.io', 'clusterroles', 'list');
  add(
    'webhook configurations',
    webhooks,
    'admissionregistration.k8s.io',
    'validatingwebhookconfigurations',
    'list',
  );
  add('VolumeAttachments', attachments, 'storage.k8s.io', 'volumeattachments', 'list');
  add('nodes', isOnProvider, '', 'nodes', 'list');
  add('CRDs', details.conversions, 'apiextensions.k8s.io', 'customresourcedefinitions', 'list');
  for (const [name, crd] of Object.entries(details.crds)) {
    add(`CRD ${name}`, crd, 'apiextensions.k8s.io', 'customresourcedefinitions', 'get');
  }
  for (const [key, service] of Object.entries(details.services)) {
    add(`Service ${key}`, service, '', 'services', 'get');
  }
  for (const [namespace, events] of Object.entries(details.events)) {
    add(`events in namespace ${namespace}`, events, '', 'events', 'list');
  }
  for (const [namespace, leases] of Object.entries(details.leases)) {
    add(`Leases in namespace ${namespace}`, leases, 'coordination.k8s.io', 'leases', 'list');
  }
  return list;
}

function grantFor(
  failure: ReadFailure,
  apiGroup: string,
  resource: string,
  verb: string,
): Pick<NotInspected, 'grant'> {
  return failure.kind === 'forbidden' ? { grant: { apiGroup, resource, verb } } : {};
}
