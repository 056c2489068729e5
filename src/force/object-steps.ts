import type { JsonObject } from '../base/json.ts';
import { serverTime } from '../base/time.ts';
import { isOverdue } from '../diagnose/rules/pods.ts';
import { keeping } from '../kubernetes/api.ts';
import { collectionPath, deletion, isPathSegment, objectPath } from '../kubernetes/paths.ts';
import {
  type ObjectFacts,
  objectFacts,
  POD_TYPE,
  type PodFacts,
  podFacts,
  removalPatch,
  type TypeRef,
  typeName,
} from '../model/facts.ts';
import { failed, type Read, read } from '../model/read.ts';
import { readNode } from '../observe/observe.ts';
import { type FinalizerAction, nodeState, type ObjectAction, type PodAction } from './plan.ts';
import { atMostEvery, type ForceRun, runStep, type Step } from './step.ts';

/** Facts about the namespace and the node that many writes share may be this old. */
export const GUARD_MS = 1_000;

export function freeObjectsOf(run: ForceRun, action: ObjectAction): Promise<'again' | 'finished'> {
  return action.step === 'object-finalizer'
    ? runStep(run, finalizerStep(run, action))
    : runStep(run, podStep(run, action));
}

/** Objects of the type in the namespace; by a field selector also one, so that `list` is all it needs. */
async function readObjects<T extends ObjectFacts>(
  { api, signal, plan: { namespace } }: ForceRun,
  type: TypeRef,
  parse: (item: JsonObject) => T,
  metadataOnly: boolean,
  name?: string,
): Promise<Read<T[]>> {
  const listed = await api.list(collectionPath(type, namespace.name), keeping(parse), {
    signal,
    metadataOnly,
    ...(name === undefined ? {} : { fieldSelector: `metadata.name=${name}` }),
  });
  if (!listed.ok) {
    const message = `${typeName(type)} could not be listed again: ${listed.failure.message}`;
    return failed({ ...listed.failure, message });
  }
  // An extension API server may ignore the namespace and the selector, or list what no path can name.
  const isMeant = (object: T): boolean =>
    object.namespace === namespace.name &&
    object.uid !== '' &&
    isPathSegment(object.name) &&
    (name === undefined ? object.deletionTimestamp !== undefined : object.name === name);
  return read(listed.value.kept.filter(isMeant));
}

/** Takes the finalizer off every terminating object of the type, one JSON Patch per object. */
function finalizerStep(run: ForceRun, action: FinalizerAction): Step<ObjectFacts> {
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
function podStep(run: ForceRun, action: PodAction): Step<PodFacts> {
  const { api, clock, signal } = run;
  const isNodeBack = atMostEvery(GUARD_MS, clock, async () => {
    const { value: node } = await readNode(action.node, { api, signal });
    const { lost, text } = nodeState(node, serverTime(run));
    return lost ? undefined : text;
  });
  const done = 'deleted with grace period 0';
  return {
    action,
    type: typeName(POD_TYPE),
    read: (name) => readObjects(run, POD_TYPE, podFacts, false, name),
    wants: (pod) =>
      pod.deletionTimestamp !== undefined &&
      pod.nodeName === action.node &&
      isOverdue(pod, serverTime(run)),
    request: ({ name, uid, resourceVersion }) =>
      deletion(objectPath(POD_TYPE, run.plan.namespace.name, name), {
        gracePeriodSeconds: 0,
        preconditions: { uid, resourceVersion },
      }),
    doing: 'deleting with grace period 0:',
    done,
    // A pod with finalizers outlives its deletion, whatever the grace period.
    afterwards: ({ finalizers }) =>
      `${done}; still there${finalizers.length === 0 ? '' : `, held by ${finalizers.join(', ')}`}`,
    stop: async () => (await run.guard()) ?? (await isNodeBack()),
  };
}
