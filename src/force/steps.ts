import { arrayAt, type JsonObject, stringAt, valueAt } from '../base/json.ts';
import { serverTime } from '../base/time.ts';
import { isOverdue } from '../diagnose/rules/pods.ts';
import { collectItems, type Mutation } from '../kubernetes/api.ts';
import {
  collectionPath,
  deleteRequest,
  isPathSegment,
  namespacePath,
  objectPath,
} from '../kubernetes/paths.ts';
import {
  KUBERNETES_FINALIZER,
  type NamespaceFacts,
  namespaceFacts,
  type ObjectFacts,
  objectFacts,
  POD_TYPE,
  removalPatch,
  type TypeRef,
  typeName,
} from '../model/facts/metadata.ts';
import { type PodFacts, podFacts } from '../model/facts/workloads.ts';
import { protectedBecause } from '../model/outcome.ts';
import { type Read, type ReadFailure, readFailed, readOk } from '../model/read.ts';
import { readNode } from '../observe/observe.ts';
import {
  contentConditions,
  type ForceAction,
  isLastEntry,
  nodeState,
  orphanRefusal,
} from './plan.ts';
import { atMostEvery, type ForceRun, runStep, type Step } from './step.ts';

/** The greatest age of facts about the namespace and the node, which many writes share. */
export const GUARD_MS = 1_000;

/** Carries out an action of the plan on each of its objects. */
export function performAction(run: ForceRun, action: ForceAction): Promise<'again' | 'finished'> {
  switch (action.step) {
    case 'object-finalizer':
      return runStep(run, finalizerStep(run, action));
    case 'overdue-pods':
      return runStep(run, podStep(run, action));
    case 'namespace-finalizer':
    case 'namespace-spec-finalizer':
      return runStep(run, removeEntryStep(run, action));
  }
}

/**
 * Lists objects of the type in the namespace; reads one object by a field selector, so that `list` is the only
 * permission.
 */
async function readObjects<T extends ObjectFacts>(
  { api, signal, plan: { namespace } }: ForceRun,
  type: TypeRef,
  parse: (item: JsonObject) => T,
  metadataOnly: boolean,
  name?: string,
): Promise<Read<T[]>> {
  const listed = await api.list(collectionPath(type, namespace.name), collectItems(parse), {
    signal,
    metadataOnly,
    ...(name === undefined ? {} : { fieldSelector: `metadata.name=${name}` }),
  });
  if (!listed.ok) {
    const message = `${typeName(type)} could not be listed again: ${listed.failure.message}`;
    return readFailed({ ...listed.failure, message });
  }
  // An extension API server may ignore the namespace and the selector, or list what no path can name.
  const isMeant = (object: T): boolean =>
    object.namespace === namespace.name &&
    object.uid !== '' &&
    isPathSegment(object.name) &&
    (name === undefined ? object.deletionTimestamp !== undefined : object.name === name);
  return readOk(listed.value.kept.filter(isMeant));
}

/** Removes the finalizer from every terminating object of the type, with one JSON Patch per object. */
function finalizerStep(run: ForceRun, action: ForceAction): Step<ObjectFacts> {
  const { type, finalizer } = action;
  const wants = ({ deletionTimestamp, finalizers }: ObjectFacts): boolean =>
    deletionTimestamp !== undefined && finalizers.includes(finalizer);
  return {
    action,
    type: typeName(type),
    read: (name) => readObjects(run, type, (item) => objectFacts(item, type), true, name),
    wants,
    request: (object) => ({
      method: 'PATCH',
      path: objectPath(type, run.plan.namespace.name, object.name),
      body: removalPatch(object, [finalizer]),
    }),
    doing: `removing ${finalizer} from`,
    done: 'removed',
    afterwards: (object) => {
      if (!wants(object)) return undefined;
      const writer = object.writers.find((one) => one.finalizer === finalizer);
      return `removed, and added again by ${writer === undefined ? 'an unknown manager' : `manager ${writer.manager}`}`;
    },
    stop: run.guard,
  };
}

/** Deletes the overdue pods of one node with grace period 0, while the node is still lost. */
function podStep(run: ForceRun, action: ForceAction): Step<PodFacts> {
  const { api, clock, signal } = run;
  const isNodeBack = atMostEvery(GUARD_MS, clock, async () => {
    const { value: node } = await readNode(action.node, { api, signal });
    const { lost, text } = nodeState(node, serverTime(run));
    return lost ? undefined : text;
  });
  const done = 'deleted with grace period 0';
  return {
    action,
    type: 'pods',
    read: (name) => readObjects(run, POD_TYPE, podFacts, false, name),
    wants: (pod) =>
      pod.deletionTimestamp !== undefined &&
      pod.nodeName === action.node &&
      isOverdue(pod, serverTime(run)),
    request: ({ name, uid, resourceVersion }) =>
      deleteRequest(objectPath(POD_TYPE, run.plan.namespace.name, name), {
        gracePeriodSeconds: 0,
        preconditions: { uid, resourceVersion },
      }),
    doing: 'deleting with grace period 0:',
    done,
    // A pod with finalizers still exists after its deletion, whatever the grace period.
    afterwards: ({ finalizers }) =>
      `${done}; still there${finalizers.length === 0 ? '' : `, held by ${finalizers.join(', ')}`}`,
    stop: async () => (await run.guard()) ?? (await isNodeBack()),
  };
}

/** The namespace that is forced, as just read. */
interface Own extends NamespaceFacts {
  object: JsonObject;
}

/**
 * Reads the namespace and checks everything again that can have changed since the plan. Returns the namespace,
 * undefined if it was deleted, or why it may not be written to. A person who removes the label
 * stops the gate.
 */
export async function checkNamespace({
  plan: { namespace, label },
  api,
  signal,
}: ForceRun): Promise<Read<Own | undefined>> {
  const refuse = (message: string, kind: ReadFailure['kind'] = 'conflict') =>
    readFailed({ kind, message });
  const why = protectedBecause(namespace.name, api.target.ownNamespace);
  if (why !== undefined) return refuse(`the namespace is protected: ${why}`);
  const got = await api.get(namespacePath(namespace.name), { signal });
  if (!got.ok) {
    return got.failure.kind === 'not-found'
      ? readOk(undefined)
      : refuse(`the namespace could not be read again: ${got.failure.message}`);
  }
  const own = { ...namespaceFacts(got.value), name: namespace.name, object: got.value };
  const { uid, deletionTimestamp, labels, phase } = own;
  if (uid !== namespace.uid) {
    return refuse(`another namespace has the name now (UID ${uid || 'unknown'})`, 'not-found');
  }
  if (deletionTimestamp === undefined || phase !== 'Terminating') {
    return refuse('the namespace is not Terminating');
  }
  if (label !== undefined && labels[label.key] !== label.value) {
    return refuse(`the namespace no longer has the label ${label.key}=${label.value}`);
  }
  return readOk(own);
}

/** Removes one entry of the namespace's own lists, with the checked object as precondition. */
function removeEntryStep(run: ForceRun, action: ForceAction): Step<Own> {
  const { step, finalizer } = action;
  const isInSpec = step === 'namespace-spec-finalizer';
  const wants = ({ finalizers, specFinalizers }: Own): boolean =>
    (isInSpec ? specFinalizers : finalizers).includes(finalizer);
  return {
    action,
    type: 'namespaces',
    read: async () => {
      const now = await checkNamespace(run);
      // Another namespace has the name: the intended one was deleted.
      if (!now.ok) return now.failure.kind === 'not-found' ? readOk([]) : now;
      return readOk(now.value === undefined ? [] : [now.value]);
    },
    wants,
    request: (own) =>
      isInSpec ? finalizeRequest(own, finalizer) : patchRequest(run, own, finalizer),
    doing: `removing ${finalizer} from the ${isInSpec ? 'spec' : 'metadata'}.finalizers of`,
    done: 'removed',
    afterwards: (own) => {
      if (!wants(own)) return undefined;
      // The whole list in the spec has one field manager; each entry in the metadata has its own.
      const entry = arrayAt(own.object, 'metadata', 'managedFields').findLast(
        (one) => valueAt(one, 'fieldsV1', 'f:spec', 'f:finalizers') !== undefined,
      );
      const manager = isInSpec
        ? stringAt(entry, 'manager')
        : own.writers.find((writer) => writer.finalizer === finalizer)?.manager;
      return `removed, and added again by manager ${manager ?? 'unknown'}`;
    },
    stop: async () => run.stopReason(),
    veto: (own) => {
      if (!isLastEntry(action)) return undefined;
      const others = [...own.finalizers, ...own.specFinalizers].filter(
        (entry) => entry !== KUBERNETES_FINALIZER,
      );
      if (others.length > 0)
        return `${others.join(', ')} would still hold the namespace, and its content would never be deleted`;
      // The write is pinned to the version with these conditions.
      const [said] = run.plan.orphans === 'refuse' ? contentConditions(own) : [];
      return said && orphanRefusal(said);
    },
  };
}

function patchRequest({ plan: { label } }: ForceRun, own: Own, finalizer: string): Mutation {
  const key = label?.key.replaceAll('~', '~0').replaceAll('/', '~1');
  // The patch itself tests the label, so that no time passes between test and write.
  const test = label && { op: 'test', path: `/metadata/labels/${key}`, value: label.value };
  const body = [...(test ? [test] : []), ...removalPatch(own, [finalizer])];
  return { method: 'PATCH', path: namespacePath(own.name), body };
}

/**
 * The body is the object as read, with UID and resourceVersion, without this entry: labels, annotations and
 * metadata.finalizers of the body are applied as well (namespaceFinalizeStrategy), so a shorter body
 * would remove them unnoticed.
 */
function finalizeRequest({ name, object }: Own, finalizer: string): Mutation {
  const spec = valueAt(object, 'spec') as JsonObject;
  const finalizers = arrayAt(spec, 'finalizers').filter((entry) => entry !== finalizer);
  const body = { ...object, spec: { ...spec, finalizers } };
  return { method: 'PUT', path: `${namespacePath(name)}/finalize`, body };
}
