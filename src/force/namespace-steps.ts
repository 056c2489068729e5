import { arrayAt, type JsonObject, stringAt, stringsAt, valueAt } from '../base/json.ts';
import { keeping, type Mutation } from '../kubernetes/api.ts';
import { collectionPath, namespacePath } from '../kubernetes/paths.ts';
import {
  finalizerWriters,
  KUBERNETES_FINALIZER,
  namespaceFacts,
  objectFacts,
  removalPatch,
  typeName,
} from '../model/facts.ts';
import type { NotInspected } from '../model/finding.ts';
import { protectedBecause } from '../model/outcome.ts';
import { failed, type Read, type ReadFailure, read } from '../model/read.ts';
import type { ForceRecord } from '../model/result.ts';
import type { ResourceType } from '../model/snapshot.ts';
import { CLUSTER } from '../model/sources.ts';
import { inParallel, readSource } from '../observe/collections.ts';
import { sweepableTypes } from '../observe/sweep.ts';
import {
  contentConditions,
  type NamespaceAction,
  namespaceTarget,
  remainsText,
  strandsText,
} from './plan.ts';
import type { ForceRun, Step } from './step.ts';

/**
 * Reads the namespace and asks everything again that can have changed since the plan was made: the object,
 * undefined when it is gone, or why it may not be written to. A label that somebody takes off is a way to
 * say "stop".
 */
export async function checkNamespace({
  plan: { namespace, label },
  api,
  signal,
}: ForceRun): Promise<Read<JsonObject | undefined>> {
  const refuse = (message: string, kind: ReadFailure['kind'] = 'conflict') =>
    failed({ kind, message });
  const why = protectedBecause(namespace.name, api.target.ownNamespace);
  if (why !== undefined) return refuse(`the namespace is protected: ${why}`);
  const got = await api.get(namespacePath(namespace.name), { signal });
  if (!got.ok) {
    return got.failure.kind === 'not-found'
      ? read(undefined)
      : refuse(`the namespace could not be read again: ${got.failure.message}`);
  }
  const { uid, deletionTimestamp, labels, phase } = namespaceFacts(got.value);
  if (uid !== namespace.uid) {
    return refuse(`another namespace has the name now (UID ${uid || 'unknown'})`, 'not-found');
  }
  if (deletionTimestamp === undefined || phase !== 'Terminating') {
    return refuse('the namespace is not Terminating');
  }
  if (label !== undefined && labels[label.key] !== label.value) {
    return refuse(`the namespace no longer has the label ${label.key}=${label.value}`);
  }
  return got;
}

interface Own {
  name: string;
  uid: string;
  object: JsonObject;
}

/** Removes one entry of the namespace's own lists, on the very object that was found to be allowed. */
export function entryStep(run: ForceRun, action: NamespaceAction): Step<Own> {
  const { name, uid } = run.plan.namespace;
  const { step, finalizer } = action;
  const wants = ({ object }: Own): boolean => entriesOf(object, step).includes(finalizer);
  return {
    action,
    type: 'namespaces',
    read: async () => {
      const now = await checkNamespace(run);
      // Another namespace has the name: the one that was meant is gone.
      if (!now.ok) return now.failure.kind === 'not-found' ? read([]) : now;
      return read(now.value === undefined ? [] : [{ name, uid, object: now.value }]);
    },
    wants,
    request: ({ object }) => requestFor(run, action, object),
    doing: `removing ${finalizer} from the ${step === 'namespace-finalizer' ? 'metadata' : 'spec'}.finalizers of`,
    done: 'removed',
    afterwards: (own) =>
      wants(own)
        ? `removed, and added again by manager ${managerOf(own.object, action) ?? 'unknown'}`
        : undefined,
    stop: async () => run.over(),
    veto: ({ object }) => {
      if (step !== 'namespace-spec-finalizer' || finalizer !== KUBERNETES_FINALIZER)
        return undefined;
      const others = [...entriesOf(object, 'namespace-finalizer'), ...entriesOf(object, step)]
        .filter((entry) => entry !== KUBERNETES_FINALIZER)
        .join(', ');
      if (others !== '')
        return `${others} would still hold the namespace, and its content would never be deleted`;
      // The write is pinned to the version with these conditions.
      const [said] = run.plan.orphans === 'refuse' ? contentConditions(namespaceFacts(object)) : [];
      return said && strandsText(said);
    },
  };
}

function requestFor(
  { plan: { namespace, label } }: ForceRun,
  { step, finalizer }: NamespaceAction,
  object: JsonObject,
): Mutation {
  const path = namespacePath(namespace.name);
  if (step === 'namespace-finalizer') {
    const key = label?.key.replaceAll('~', '~0').replaceAll('/', '~1');
    // In the patch itself: there is no moment between asking for the label and writing.
    const test =
      label === undefined
        ? []
        : [{ op: 'test', path: `/metadata/labels/${key}`, value: label.value }];
    const own = { uid: namespace.uid, finalizers: entriesOf(object, step) };
    const removal = removalPatch(own, [finalizer]);
    return { method: 'PATCH', path, body: [...test, ...removal] };
  }
  // Exactly what was read, UID and resourceVersion included, without this entry: labels, annotations and
  // metadata.finalizers of the body are applied as well (namespaceFinalizeStrategy), so a shorter body
  // would remove them unnoticed.
  const spec = valueAt(object, 'spec') as JsonObject;
  const finalizers = arrayAt(object, 'spec', 'finalizers').filter((entry) => entry !== finalizer);
  return {
    method: 'PUT',
    path: `${path}/finalize`,
    body: { ...object, spec: { ...spec, finalizers } },
  };
}

function entriesOf(object: JsonObject, step: NamespaceAction['step']): string[] {
  return stringsAt(object, step === 'namespace-finalizer' ? 'metadata' : 'spec', 'finalizers');
}

/** spec.finalizers has one owner as a whole; metadata.finalizers one per entry. */
function managerOf(object: JsonObject, { step, finalizer }: NamespaceAction): string | undefined {
  if (step === 'namespace-finalizer') {
    return finalizerWriters(object).find((writer) => writer.finalizer === finalizer)?.manager;
  }
  const entry = arrayAt(object, 'metadata', 'managedFields').findLast(
    (one) => valueAt(one, 'fieldsV1', 'f:spec', 'f:finalizers') !== undefined,
  );
  return stringAt(entry, 'manager');
}

type Orphan = ForceRecord['orphans'][number];

/** Objects that are still in the namespace, and types that could not be listed: their objects are unknown, not absent. */
export interface Leftovers {
  /** With the names of their types. */
  objects: (readonly [type: string, Orphan])[];
  unread: NotInspected[];
}

const ALL_TYPES = 'the list of resource types';
/** "ok", or an error that names the failed checks. */
const MAX_READY_BYTES = 4_096;

/**
 * Every object of the namespace, over all types. Objects are stored by type, name and namespace name, so
 * this also works, and matters most, when the namespace itself is gone. `createdBefore` leaves out what
 * belongs to a new namespace of the same name.
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
  const definitions = await readSource(CLUSTER.definitions, { api, signal });
  const found = new Map<string, Leftovers['objects'][number]>();
  const unread = [
    ...(definitions.unread ?? []),
    ...failedGroups.map(({ group, version, reason }) => ({ what: `${group}/${version}`, reason })),
    ...missingTypes(definitions.value.ok ? definitions.value.value : [], types),
  ];
  const unready = ready.ok ? ready.value.trim() : ready.failure.message;
  if (!ready.ok || unready !== 'ok') {
    unread.push({ what: 'the API server', reason: `not ready: ${unready}` });
  }
  await inParallel(sweepableTypes(types), async (type) => {
    const begin = keeping((item) => objectFacts(item, type));
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

/** Types that a CRD defines and discovery does not have: nothing can be said about their objects. */
function missingTypes(
  definitions: readonly { name: string }[],
  types: readonly ResourceType[],
): NotInspected[] {
  const served = new Set(types.map(typeName));
  return definitions
    .filter(({ name }) => !served.has(name))
    .map(({ name: what }) => ({ what, reason: 'defined by a CRD, and not in discovery' }));
}

/**
 * Looks at all of the namespace's content right before its own entries are touched: there has to be
 * none, and nothing unread, or leaving it behind has to be accepted. Undefined: it may not be left.
 */
export async function inventory(run: ForceRun): Promise<Leftovers | undefined> {
  const left = await listLeftovers(run);
  const now = await checkNamespace(run);
  const conditions = now.ok && now.value ? contentConditions(namespaceFacts(now.value)) : [];
  const namesWith = (more: (orphan: Orphan) => string): string[] =>
    left.objects.map(([type, orphan]) => {
      const held = orphan.finalizers.length === 0 ? '' : ` (${orphan.finalizers.join(', ')})`;
      return `${type}/${orphan.name}${more(orphan)}${held}`;
    });
  const remains = remainsText(
    namesWith(() => ''),
    [
      ...left.unread.map(({ what, reason }) => `${what} (${reason})`),
      ...(left.objects.length === 0 ? conditions : []),
    ],
  );
  if (remains === undefined) return left;
  if (run.plan.orphans === 'refuse') {
    run.journal.refuse(namespaceTarget(run.plan.namespace.name), strandsText(remains));
    return undefined;
  }
  // Before the write that strands them: should this process die now, the log still has the list.
  const lines = [...namesWith(({ uid }) => ` uid ${uid}`), remains];
  run.log.group(`May be left behind: ${left.objects.length} objects`, lines);
  return left;
}

/** Said once per run, where there are orphans: what can still be done about them, and how. */
const RECOVERY =
  'objects that are left can be deleted but not changed: removing a finalizer returns 404 until a namespace of this name exists again; to clean up, create the namespace, remove the finalizers, and delete it';
/** The same if the namespace was created again already. */
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
  journal.orphans = [...after.objects, ...unseen].map(([, orphan]) => orphan);
  journal.unread.push(...after.unread);
  const count = journal.orphans.length;
  if (count > 0) {
    const are = count === 1 ? '1 object is' : `${count} objects are`;
    const rest = createdBefore === undefined ? RECOVERY : INHERITED;
    journal.note(namespaceTarget(run.plan.namespace.name), `${are} left behind: ${rest}`);
  }
  for (const { what, reason } of after.unread) {
    journal.note(what, `not searched for what is left behind: ${reason}`);
  }
}
