import { uncleanedBy } from '../diagnose/catalogue.ts';
import { collectItems } from '../kubernetes/api.ts';
import { collectionPath } from '../kubernetes/paths.ts';
import { groupOf, objectFacts, typeName } from '../model/facts/metadata.ts';
import type { NotInspected } from '../model/finding.ts';
import type { ForceRecord } from '../model/result.ts';
import { CLUSTER_SOURCES } from '../model/sources.ts';
import { inParallel, readSource } from '../observe/collections.ts';
import { sweepableTypes } from '../observe/sweep.ts';
import {
  ALL_TYPES,
  heldText,
  manyTarget,
  namespaceTarget,
  orphanRefusal,
  remainsText,
} from './plan.ts';
import type { ForceRun } from './step.ts';
import { checkNamespace } from './steps.ts';

type Orphan = ForceRecord['orphans'][number];

/**
 * Objects that are still in the namespace, and types that could not be listed: their objects are unknown, not
 * absent.
 */
export interface Leftovers {
  /** The objects, with the names of their types. */
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
async function listLeftovers(
  { api, signal, plan: { namespace } }: ForceRun,
  createdBefore?: string,
): Promise<Leftovers> {
  const ready = await api.text('/readyz', { signal, maxBytes: MAX_READY_BYTES });
  const discovery = await api.discover({ signal });
  if (!discovery.ok) {
    return { objects: [], unread: [{ what: ALL_TYPES, reason: discovery.failure.message }] };
  }
  const { types, failedGroups } = discovery.value;
  const definitions = await readSource(CLUSTER_SOURCES.definitions, { api, signal });
  const found = new Map<string, Leftovers['objects'][number]>();
  const unread = [
    ...(definitions.unread ?? []),
    ...failedGroups.map(({ group, version, reason }) => ({ what: `${group}/${version}`, reason })),
  ];
  // Objects of types that a CRD defines and discovery does not list are unknown.
  const served = new Set(types.map(typeName));
  for (const { name: what } of definitions.value.ok ? definitions.value.value : []) {
    const reason = 'defined by a CRD, and not in discovery';
    if (!served.has(what)) unread.push({ what, reason });
  }
  const unready = ready.ok ? ready.value.trim() : ready.failure.message;
  if (!ready.ok || unready !== 'ok') {
    unread.push({ what: 'the API server', reason: `not ready: ${unready}` });
  }
  await inParallel(sweepableTypes(types), async (type) => {
    const begin = collectItems((item) => objectFacts(item, type));
    const path = collectionPath(type, namespace.name);
    const end = await api.list(path, begin, { signal, metadataOnly: true });
    if (!end.ok) unread.push({ what: typeName(type), reason: end.failure.message });
    for (const object of end.ok ? end.value.kept : []) {
      const { apiVersion, kind, name, uid, finalizers } = object;
      if (object.namespace !== namespace.name) continue;
      if (createdBefore !== undefined && (object.creationTimestamp ?? '') >= createdBefore)
        continue;
      // Two API groups may serve the same object.
      found.set(uid, [typeName(type), { apiVersion, kind, name, uid, finalizers }]);
    }
  });
  const keyOf = ([type, { name }]: Leftovers['objects'][number]): string => `${type}/${name}`;
  const objects = [...found.values()].sort((a, b) => keyOf(a).localeCompare(keyOf(b)));
  return { objects, unread };
}

/**
 * Lists all of the namespace's content right before its own entries are removed: there has to be
 * none, and nothing unread, or leaving it behind has to be accepted. Undefined: it may not be left.
 */
export async function listAcceptedLeftovers(run: ForceRun): Promise<Leftovers | undefined> {
  const left = await listLeftovers(run);
  const now = await checkNamespace(run);
  const names = left.objects.map(([type, one]) => `${type}/${one.name}${heldText(one)}`);
  const remains = remainsText(names, left.unread, now.ok ? now.value : undefined);
  if (remains === undefined) return left;
  if (run.plan.orphans === 'refuse') {
    run.journal.refuse(namespaceTarget(run.plan.namespace.name), orphanRefusal(remains));
    return undefined;
  }
  // The log has the orphans before the write that orphans them, in case this process ends now.
  const lines = left.objects.map(
    ([type, one]) => `${type}/${one.name} uid ${one.uid}${heldText(one)}`,
  );
  const cleanups = cleanupsOf(left.objects).map(
    ({ target, finalizer, result }) => `${target} ${finalizer}: ${result}`,
  );
  run.log.group(`May be left behind: ${left.objects.length} objects`, [
    ...lines,
    ...cleanups,
    remains,
  ]);
  return left;
}

/**
 * Returns the cleanups that may never happen, one for each type and finalizer: a controller that has cleaned up after
 * an orphan cannot remove its finalizer, and has no reason to begin if the orphan is not terminating.
 */
function cleanupsOf(objects: Leftovers['objects']) {
  const held = objects.flatMap(([type, orphan]) =>
    orphan.finalizers.map((finalizer) => ({ type, orphan, finalizer })),
  );
  const groups = Map.groupBy(held, ({ type, finalizer }) => `${type} ${finalizer}`).values();
  return Array.from(groups, (group) => {
    const { type, orphan, finalizer } = group[0] as (typeof held)[number];
    const on = { kind: orphan.kind, group: groupOf(orphan.apiVersion) };
    return {
      target: manyTarget(
        type,
        group.map((one) => one.orphan.name),
      ),
      finalizer,
      result: `not cleaned up; may be left behind: ${uncleanedBy(finalizer, on)}`,
    };
  });
}

/** The note about orphans, logged once per run: how they can still be handled. */
const RECOVERY =
  'objects that are left can be deleted but not changed: removing a finalizer returns 404 until a namespace of this name exists again; to clean up, create the namespace, remove the finalizers, and delete it';
/** The note if the namespace was created again already. */
const INHERITED =
  'objects that are left now belong to the new namespace of this name; a finalizer on them will hold that one, too';

/**
 * Returns the orphans of a deleted namespace: objects that still exist, and objects that were there before and
 * could not be read again.
 */
export async function recordOrphans(
  run: ForceRun,
  before: Leftovers,
  createdBefore: string | undefined,
): Promise<void> {
  const { journal } = run;
  const after = await listLeftovers(run, createdBefore);
  const seen = new Set(after.objects.map(([, { uid }]) => uid));
  const unread = new Set(after.unread.map(({ what }) => what));
  const unseen = before.objects.filter(
    ([type, { uid, apiVersion }]) =>
      !seen.has(uid) && [type, apiVersion, ALL_TYPES].some((what) => unread.has(what)),
  );
  const orphans = [...after.objects, ...unseen];
  journal.orphans = orphans.map(([, orphan]) => orphan);
  journal.unread.push(...after.unread);
  const count = journal.orphans.length;
  if (count > 0) {
    const are = count === 1 ? '1 object is' : `${count} objects are`;
    const rest = createdBefore === undefined ? RECOVERY : INHERITED;
    for (const { target, finalizer, result } of cleanupsOf(orphans)) {
      journal.note(target, result, finalizer);
    }
    journal.note(namespaceTarget(run.plan.namespace.name), `${are} left behind: ${rest}`);
  }
  for (const { what, reason } of after.unread) {
    journal.note(what, `not searched for what is left behind: ${reason}`);
  }
}
