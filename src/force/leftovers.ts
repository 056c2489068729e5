import { listNames } from '../base/text.ts';
import { collectItems } from '../kubernetes/api.ts';
import { collectionPath } from '../kubernetes/paths.ts';
import { objectFacts, typeName } from '../model/facts/metadata.ts';
import type { NotInspected } from '../model/finding.ts';
import type { ForceRecord } from '../model/result.ts';
import { CLUSTER_SOURCES } from '../model/sources.ts';
import { inParallel, readSource } from '../observe/collections.ts';
import { sweepableTypes } from '../observe/sweep.ts';
import { ORPHANS_STAY, type Writing } from './writes.ts';

/** Objects that are still in the namespace, and what could not be listed: its objects are unknown, not absent. */
export interface Leftovers {
  objects: ForceRecord['orphans'];
  unread: NotInspected[];
}

const MAX_NAMES = 10;

/** This also works, and matters most, after the namespace was deleted. `createdBefore` excludes objects of a new one of its name. */
export async function listLeftovers(
  { api, signal, plan: { namespace } }: Writing,
  createdBefore = '',
): Promise<Leftovers> {
  const ready = await api.text('/readyz', { signal, maxBytes: 4_096 });
  const discovery = await api.discover({ signal });
  if (!discovery.ok) {
    const reason = discovery.failure.message;
    return { objects: [], unread: [{ what: 'the list of resource types', reason }] };
  }
  const { types, failedGroups } = discovery.value;
  const definitions = await readSource(CLUSTER_SOURCES.definitions, { api, signal });
  const unread: NotInspected[] = [...(definitions.unread ?? [])];
  for (const { group, version, reason } of failedGroups)
    unread.push({ what: `${group}/${version}`, reason });
  // Right after its start a server serves an incomplete list of types: objects of the others are unknown.
  const served = new Set(types.map(typeName));
  for (const { name: what } of definitions.value.ok ? definitions.value.value : []) {
    const reason = 'defined by a CRD, and not in discovery';
    if (!served.has(what)) unread.push({ what, reason });
  }
  const unready = ready.ok ? ready.value.trim() : ready.failure.message;
  if (unready !== 'ok') unread.push({ what: 'the API server', reason: `not ready: ${unready}` });
  // Two API groups may serve the same object.
  const found = new Map<string, Leftovers['objects'][number]>();
  await inParallel(sweepableTypes(types), async (type) => {
    const begin = collectItems((item) => objectFacts(item, type));
    const path = collectionPath(type, namespace.name);
    const end = await api.list(path, begin, { signal, metadataOnly: true });
    if (!end.ok) unread.push({ what: typeName(type), reason: end.failure.message });
    for (const one of end.ok ? end.value.kept : []) {
      const { apiVersion, kind, name, uid, finalizers, creationTimestamp = '' } = one;
      const isNew = createdBefore !== '' && creationTimestamp >= createdBefore;
      // Some extension API servers omit the namespace.
      if ((one.namespace || namespace.name) === namespace.name && !isNew)
        found.set(uid, { apiVersion, kind, name, uid, finalizers });
    }
  });
  const keyOf = ({ kind, name }: Leftovers['objects'][number]): string => `${kind} ${name}`;
  const objects = [...found.values()].sort((a, b) => keyOf(a).localeCompare(keyOf(b)));
  return { objects, unread };
}

/**
 * Returns why the namespace's own entries must stay: content is left, or something could not be read. If leaving it
 * behind is accepted, the log has it before the write that orphans it, in case this process ends now.
 */
export function refusedBecause({ log, plan }: Writing, left: Leftovers): string | undefined {
  const names = left.objects.map(({ kind, name, finalizers }) => {
    return `${kind} ${name}${finalizers.length > 0 ? ` (${finalizers.join(', ')})` : ''}`;
  });
  const unread = left.unread.map(({ what, reason }) => `${what} (${reason})`);
  const remains = [
    ...(names.length > 0 ? [`content remains: ${listNames(names, MAX_NAMES)}`] : []),
    ...(unread.length > 0 ? [`not everything could be read: ${listNames(unread, MAX_NAMES)}`] : []),
  ].join('; ');
  if (remains === '') return undefined;
  if (plan.policy.orphans === 'refuse') return `${remains}; ${ORPHANS_STAY}`;
  const lines = left.objects.map(({ uid }, index) => `${names[index]} uid ${uid}`);
  log.group(`May be left behind: ${names.length} objects`, [...lines, remains]);
  return undefined;
}
