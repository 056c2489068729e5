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
import { type Read, readFailed, readOk } from '../model/read.ts';
import type { ObjectFacts } from '../model/snapshot.ts';
import type { Reading } from '../observe/collections.ts';
import { readNode } from '../observe/observe.ts';
import {
  type ForceAction,
  type ForcePlan,
  isLastEntry,
  isOnNamespace,
  nodeState,
  refusalsOf,
} from './plan.ts';

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
      // The label that permits it may be removed between read and write; the version changes with each status of the namespace.
      const { key = '', value } = plan.policy.label ?? {};
      const pointer = `/metadata/labels/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
      const tests = value === undefined ? [] : [{ op: 'test', path: pointer, value }];
      return { method: 'PATCH', path, body: [...tests, ...body] };
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

/** Returns why an object, as just read, must not be written to although the plan permits the action. */
export async function forbiddenBecause(
  run: Writing,
  action: ForceAction,
  target: Target,
): Promise<string | undefined> {
  const now = run.stopReason() === undefined ? await checkNamespace(run) : readOk(undefined);
  const stop = run.stopReason() ?? (now.ok ? undefined : now.failure.message);
  if (stop !== undefined) return stop;
  if (now.ok && now.value === undefined) return 'the namespace was deleted';
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
  return said === undefined || run.plan.policy.orphans === 'accept'
    ? undefined
    : `its condition ${said.type} says: ${said.message}; ${ORPHANS_STAY}`;
}

export const ORPHANS_STAY =
  'only force-orphans: accept would finalize the namespace and leave it behind';

/** Checks everything again that can have changed since the plan. */
export async function checkNamespace(run: Writing): Promise<Read<Target | undefined>> {
  const { api, plan, signal } = run;
  const { name, uid } = plan.namespace;
  const got = await api.get(namespacePath(name), { signal });
  if (!got.ok) {
    const message = `the namespace could not be read again: ${got.failure.message}`;
    return got.failure.kind === 'not-found'
      ? readOk(undefined)
      : readFailed({ kind: 'conflict', message });
  }
  const own = namespaceFacts(got.value);
  const [reason] = refusalsOf(own, plan, api.target.ownNamespace);
  if (reason !== undefined) {
    const kind = own.uid === uid ? 'conflict' : 'not-found';
    return readFailed({ kind, message: `the namespace may not be forced any more: ${reason}` });
  }
  return readOk({ ...objectFacts(got.value, NAMESPACE_TYPE), name, object: got.value });
}
