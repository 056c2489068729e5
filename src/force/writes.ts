import { arrayAt, type JsonObject, valueAt } from '../base/json.ts';
import type { Log } from '../base/log.ts';
import { type Clock, serverTime } from '../base/time.ts';
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
  NAMESPACE_TYPE,
  namespaceFacts,
  objectFacts,
  removalPatch,
  typeName,
} from '../model/facts/metadata.ts';
import { isOverdue, podFacts } from '../model/facts/workloads.ts';
import { protectedBecause } from '../model/outcome.ts';
import { type Read, type ReadFailure, readFailed, readOk } from '../model/read.ts';
import type { ObjectFacts } from '../model/snapshot.ts';
import type { Reading } from '../observe/collections.ts';
import { readNode } from '../observe/observe.ts';
import { type ForceAction, type ForcePlan, isLastEntry, isOnNamespace, nodeState } from './plan.ts';

export interface Writing extends Reading {
  clock: Clock;
  log: Log;
  plan: ForcePlan;
  /** Why no further write may begin: the run was cancelled, or the time for forcing is over. */
  stopReason(): string | undefined;
}

export interface Target extends ObjectFacts {
  object: JsonObject;
}

/** Reads the objects that still need the action; with a name, only that one. */
export async function readTargets(
  run: Writing,
  action: ForceAction,
  name?: string,
): Promise<Read<Target[]>> {
  const { api, signal, plan } = run;
  const { type, step } = action;
  if (isOnNamespace(action)) {
    const now = await checkNamespace(run);
    // Another namespace has the name: the intended one was deleted.
    if (!now.ok) return now.failure.kind === 'not-found' ? readOk([]) : now;
    return readOk([now.value ?? []].flat().filter((one) => needsWrite(run, action, one)));
  }
  const place = plan.namespace.name;
  const parse = (object: JsonObject): Target => ({ ...objectFacts(object, type), object });
  // A field selector reads one object, so that `list` is the only permission.
  const listed = await api.list(collectionPath(type, place), collectItems(parse), {
    ...{ signal, metadataOnly: step === 'object-finalizer' },
    ...(name === undefined ? {} : { fieldSelector: `metadata.name=${name}` }),
  });
  if (!listed.ok) {
    const message = `${typeName(type)} could not be listed again: ${listed.failure.message}`;
    return readFailed({ ...listed.failure, message });
  }
  // An extension API server may ignore the namespace and the selector, or list what no path can name.
  const isReal = (one: Target): boolean =>
    one.namespace === place && one.uid !== '' && isPathSegment(one.name);
  const meant = listed.value.kept.filter((one) => isReal(one) && (name ?? one.name) === one.name);
  return readOk(meant.filter((one) => needsWrite(run, action, one)));
}

function needsWrite(run: Writing, { step, finalizer, node }: ForceAction, target: Target): boolean {
  if (target.deletionTimestamp === undefined) return false;
  if (step === 'namespace-spec-finalizer') return specFinalizers(target).includes(finalizer);
  if (step !== 'overdue-pods') return target.finalizers.includes(finalizer);
  const pod = podFacts(target.object);
  return pod.nodeName === node && isOverdue(pod, serverTime(run));
}

function specFinalizers({ object }: Target): unknown[] {
  return arrayAt(object, 'spec', 'finalizers');
}

export function writeOf({ plan }: Writing, action: ForceAction, target: Target): Mutation {
  const { type, step, finalizer } = action;
  const { name, uid, resourceVersion, object } = target;
  const path = isOnNamespace(action)
    ? namespacePath(name)
    : objectPath(type, plan.namespace.name, name);
  const body = removalPatch(target, [finalizer]);
  switch (step) {
    case 'object-finalizer':
      return { method: 'PATCH', path, body };
    case 'overdue-pods': {
      const preconditions = { uid, resourceVersion };
      return deleteRequest(path, { gracePeriodSeconds: 0, preconditions });
    }
    case 'namespace-finalizer': {
      // The patch itself tests the label, so that no time passes between test and write.
      const key = plan.label?.key.replaceAll('~', '~0').replaceAll('/', '~1');
      const test = { op: 'test', path: `/metadata/labels/${key}`, value: plan.label?.value ?? '' };
      return { method: 'PATCH', path, body: key === undefined ? body : [test, ...body] };
    }
    case 'namespace-spec-finalizer': {
      // The object as read, with UID and resourceVersion: labels, annotations and metadata.finalizers of the body are
      // applied as well (namespaceFinalizeStrategy), so a shorter body would remove them unnoticed.
      const finalizers = arrayAt(object, 'spec', 'finalizers').filter((one) => one !== finalizer);
      const spec = { ...(valueAt(object, 'spec') as JsonObject), finalizers };
      return { method: 'PUT', path: `${path}/finalize`, body: { ...object, spec } };
    }
  }
}

/** Returns why an object, as just read, must not be written to although the action is permitted. */
export async function forbiddenBecause(
  run: Writing,
  action: ForceAction,
  target: Target,
): Promise<string | undefined> {
  if (action.step === 'overdue-pods') {
    const { value } = await readNode(action.node, run);
    const { lost, text } = nodeState(value, serverTime(run));
    return lost ? undefined : `node ${action.node} ${text}`;
  }
  if (!isLastEntry(action)) return undefined;
  const all = [...target.finalizers, ...specFinalizers(target)];
  const others = all.filter((entry) => entry !== KUBERNETES_FINALIZER);
  if (others.length > 0)
    return `${others.join(', ')} would still hold the namespace, and its content would never be deleted`;
  // A condition that reports content contradicts the lists, which were empty and may be incomplete. The write is pinned to
  // the version with these conditions.
  const said = namespaceFacts(target.object).conditions.find(
    ({ type, status }) => type.startsWith('Namespace') && status === 'True',
  );
  return said === undefined || run.plan.orphans === 'accept'
    ? undefined
    : orphanRefusal(`its condition ${said.type} says: ${said.message}`);
}

export function orphanRefusal(remains: string): string {
  return `${remains}; only force-orphans: accept would finalize the namespace and leave it behind`;
}

/** Checks everything again that can have changed since the plan. A person who removes the label stops the gate. */
export async function checkNamespace(run: Writing): Promise<Read<Target | undefined>> {
  const { api, plan, signal } = run;
  const { label } = plan;
  const { name, uid } = plan.namespace;
  const refuse = (message: string, kind: ReadFailure['kind'] = 'conflict') =>
    readFailed({ kind, message });
  const why = protectedBecause(name, api.target.ownNamespace);
  if (why !== undefined) return refuse(`the namespace is protected: ${why}`);
  const got = await api.get(namespacePath(name), { signal });
  if (!got.ok) {
    return got.failure.kind === 'not-found'
      ? readOk(undefined)
      : refuse(`the namespace could not be read again: ${got.failure.message}`);
  }
  const own = namespaceFacts(got.value);
  if (own.uid !== uid)
    return refuse(`another namespace has the name now (UID ${own.uid || 'unknown'})`, 'not-found');
  if (own.deletionTimestamp === undefined || own.phase !== 'Terminating')
    return refuse('the namespace is not Terminating');
  if (label !== undefined && own.labels[label.key] !== label.value)
    return refuse(`the namespace no longer has the label ${label.key}=${label.value}`);
  return readOk({ ...objectFacts(got.value, NAMESPACE_TYPE), name, object: got.value });
}
