import { collectItems } from '../kubernetes/api.ts';
import { collectionPath } from '../kubernetes/paths.ts';
import { namespaceFacts, objectFacts, typeName } from '../model/facts/metadata.ts';
import type { NotInspected } from '../model/finding.ts';
import type { ForceRecord } from '../model/result.ts';
import { CLUSTER_SOURCES } from '../model/sources.ts';
import { inParallel, readSource } from '../observe/collections.ts';
import { sweepableTypes } from '../observe/sweep.ts';
import { ALL_TYPES, heldText, orphanRefusal, remainsText } from './plan.ts';
import { checkNamespace, type Writing } from './writes.ts';

type Orphan = ForceRecord['orphans'][number];

/**
 * Objects that are still in the namespace, with the names of their types, and what could not be listed: its objects
 * are unknown, not absent.
 */
export interface Leftovers {
  objects: (readonly [type: string, Orphan])[];
  unread: NotInspected[];
}

/** The limit for the answer of readyz: "ok", or an error that names the failed checks. */
const MAX_READY_BYTES = 4_096;

/**
 * Lists every object of the namespace, over all types. Objects are stored by type, name and namespace name, so
 * this also works, and matters most, after the namespace itself was deleted. `createdBefore` excludes objects that
 * belong to a new namespace of the same name.
 */
export async function listLeftovers(
  { api, signal, plan: { namespace } }: Writing,
  createdBefore = '',
): Promise<Leftovers> {
  const ready = await api.text('/readyz', { signal, maxBytes: MAX_READY_BYTES });
  const discovery = await api.discover({ signal });
  if (!discovery.ok) {
    return { objects: [], unread: [{ what: ALL_TYPES, reason: discovery.failure.message }] };
  }
  const { types, failedGroups } = discovery.value;
  const definitions = await readSource(CLUSTER_SOURCES.definitions, { api, signal });
  const found = new Map<string, Leftovers['objects'][number]>();
  const unread = [...(definitions.unread ?? [])];
  for (const { group, version, reason } of failedGroups) {
    unread.push({ what: `${group}/${version}`, reason });
  }
  // Objects of types that a CRD defines and discovery does not list are unknown.
  const served = new Set(types.map(typeName));
  for (const { name: what } of definitions.value.ok ? definitions.value.value : []) {
    const reason = 'defined by a CRD, and not in discovery';
    if (!served.has(what)) unread.push({ what, reason });
  }
  const unready = ready.ok ? ready.value.trim() : ready.failure.message;
  if (unready !== 'ok') unread.push({ what: 'the API server', reason: `not ready: ${unready}` });
  await inParallel(sweepableTypes(types), async (type) => {
    const begin = collectItems((item) => objectFacts(item, type));
    const path = collectionPath(type, namespace.name);
    const end = await api.list(path, begin, { signal, metadataOnly: true });
    if (!end.ok) unread.push({ what: typeName(type), reason: end.failure.message });
    for (const { namespace: place, creationTimestamp = '', ...one } of end.ok
      ? end.value.kept
      : []) {
      const isNew = createdBefore !== '' && creationTimestamp >= createdBefore;
      const { apiVersion, kind, name, uid, finalizers } = one;
      // Two API groups may serve the same object.
      if (place === namespace.name && !isNew)
        found.set(uid, [typeName(type), { apiVersion, kind, name, uid, finalizers }]);
    }
  });
  const keyOf = ([type, { name }]: Leftovers['objects'][number]): string => `${type}/${name}`;
  const objects = [...found.values()].sort((a, b) => keyOf(a).localeCompare(keyOf(b)));
  return { objects, unread };
}

/**
 * Lists all of the namespace's content right before its own entries are removed: there has to be none, and nothing
 * unread, or leaving it behind has to be accepted. Otherwise `refusal` says why it may not be left.
 */
export async function listAcceptedLeftovers(
  run: Writing,
): Promise<{ left: Leftovers; refusal?: string }> {
  const left = await listLeftovers(run);
  const now = await checkNamespace(run);
  const names = left.objects.map(([type, one]) => `${type}/${one.name}${heldText(one)}`);
  const facts = now.ok && now.value ? namespaceFacts(now.value.object) : undefined;
  const remains = remainsText(names, left.unread, facts);
  if (remains === undefined) return { left };
  if (run.plan.orphans === 'refuse') return { left, refusal: orphanRefusal(remains) };
  // The log has the orphans before the write that orphans them, in case this process ends now.
  const lines = left.objects.map(([, { uid }], index) => `${names[index]} uid ${uid}`);
  run.log.group(`May be left behind: ${left.objects.length} objects`, [...lines, remains]);
  return { left };
}

/**
 * Returns the orphans of a deleted namespace: objects that still exist, and objects that were there before and
 * could not be read again.
 */
export async function listOrphans(
  run: Writing,
  before: Leftovers,
  createdBefore: string | undefined,
): Promise<{ orphans: Orphan[]; unread: NotInspected[] }> {
  const after = await listLeftovers(run, createdBefore);
  const seen = new Set(after.objects.map(([, { uid }]) => uid));
  const unread = new Set(after.unread.map(({ what }) => what));
  const unseen = before.objects.filter(
    ([type, { uid, apiVersion }]) =>
      !seen.has(uid) && [type, apiVersion, ALL_TYPES].some((what) => unread.has(what)),
  );
  return { orphans: [...after.objects, ...unseen].map(([, one]) => one), unread: after.unread };
}
