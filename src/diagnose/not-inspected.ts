import type { ReadFailure } from '../read.ts';
import type { NotInspected } from './diagnosis.ts';
import { typeName } from './display.ts';
import type { View } from './draft.ts';

/** What could not be read, and why: never the same as empty, and never the ground of a verdict. */
export function notInspected(view: View): NotInspected[] {
  const { now } = view;
  const list: NotInspected[] = [];
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
  if (now.apiServices?.ok === false) {
    list.push({
      what: 'APIServices',
      reason: now.apiServices.failure.message,
      ...grantFor(now.apiServices.failure, 'apiregistration.k8s.io', 'apiservices', 'list'),
    });
  }
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

function grantFor(
  failure: ReadFailure,
  apiGroup: string,
  resource: string,
  verb: string,
): Pick<NotInspected, 'grant'> {
  return failure.kind === 'forbidden' ? { grant: { apiGroup, resource, verb } } : {};
}
