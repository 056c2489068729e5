import { arrayAt, at, type JsonObject, stringAt, stringsAt } from '../base/json.ts';
import type { Mutation } from '../kubernetes/api.ts';
import { namespacePath } from '../kubernetes/paths.ts';
import { finalizerWriters } from '../observe/parse.ts';
import { KUBERNETES_FINALIZER, type NamespaceAction, namespaceTarget } from './force-plan.ts';
import { checkNamespace } from './guard.ts';
import type { Journal } from './journal.ts';
import type { Run } from './run.ts';
import { type Reread, removalPatch, type Written, write } from './write.ts';

/**
 * Removes one entry of the namespace's own lists, on the very object that was found to be allowed.
 * Answers whether the namespace may still be there for a next entry.
 */
export async function removeOwnEntry(
  run: Run,
  action: NamespaceAction,
  journal: Journal,
): Promise<'go-on' | 'stop'> {
  const target = namespaceTarget(run.plan.namespace.name);
  const first = await readEntry(run, action);
  const written: Written =
    first.now === 'to-do'
      ? await write(run, first.state, {
          done: 'removed',
          request: (object) => requestFor(run, action, object),
          reread: () => readEntry(run, action),
        })
      : { wrote: false, reached: first.now === 'reached', result: first.result };
  if (written.wrote) journal.writes++;
  if (!written.wrote || !written.reached) {
    journal.act(target, action, false, written.result);
    return written.reached ? 'go-on' : 'stop';
  }
  // The answer to the write shows the namespace even when this very write has removed it.
  const after = await checkNamespace(run);
  if (after.ok && entriesOf(after.object, action).includes(action.finalizer)) {
    const by = managerOf(after.object, action) ?? 'unknown';
    journal.act(target, action, false, `removed, and added again by manager ${by}`);
    return 'stop';
  }
  journal.act(target, action, true, written.result);
  return after.ok ? 'go-on' : 'stop';
}

async function readEntry(run: Run, action: NamespaceAction): Promise<Reread<JsonObject>> {
  const standing = await checkNamespace(run);
  if (!standing.ok) {
    return standing.ended === 'gone'
      ? { now: 'reached', result: 'nothing to do: the namespace is gone' }
      : { now: 'stop', result: `not done: ${standing.reason}` };
  }
  const { object } = standing;
  if (!entriesOf(object, action).includes(action.finalizer)) {
    return { now: 'reached', result: 'nothing to do: it is not there any more' };
  }
  const others = otherEntries(object);
  if (isKubernetes(action) && others.length > 0) {
    return {
      now: 'stop',
      result: `not done: ${others.join(', ')} would still hold the namespace, and nobody would delete its content any more`,
    };
  }
  return { now: 'to-do', state: object };
}

function requestFor(run: Run, action: NamespaceAction, object: JsonObject): Mutation {
  const path = namespacePath(run.plan.namespace.name);
  if (action.step === 'namespace-finalizer') {
    return {
      method: 'PATCH',
      path,
      contentType: 'application/json-patch+json',
      body: [...labelTest(run), ...removalOf(object, action.finalizer)],
    };
  }
  return {
    method: 'PUT',
    path: `${path}/finalize`,
    body: withoutSpecEntry(object, action.finalizer),
  };
}

/** The same patch or body as a dry run of the real write sends. */
export function dryRunOf(run: Run, action: NamespaceAction, object: JsonObject): Mutation {
  return { ...requestFor(run, action, object), dryRun: true };
}

/** In the patch itself: there is no moment between asking for the label and writing. */
function labelTest({ plan: { label } }: Run): JsonObject[] {
  if (label === undefined) return [];
  const key = label.key.replaceAll('~', '~0').replaceAll('/', '~1');
  return [{ op: 'test', path: `/metadata/labels/${key}`, value: label.value }];
}

function removalOf(object: JsonObject, finalizer: string): JsonObject[] {
  const uid = stringAt(object, 'metadata', 'uid') ?? '';
  return removalPatch(uid, stringsAt(object, 'metadata', 'finalizers'), finalizer);
}

/**
 * Exactly what was read, UID and resourceVersion included, without this entry: labels, annotations
 * and metadata.finalizers of the body are applied as well (namespaceFinalizeStrategy), so a shorter
 * body would remove them unnoticed.
 */
function withoutSpecEntry(object: JsonObject, finalizer: string): JsonObject {
  const spec = at(object, 'spec');
  const finalizers = arrayAt(object, 'spec', 'finalizers').filter((entry) => entry !== finalizer);
  return { ...object, spec: { ...(typeof spec === 'object' ? spec : {}), finalizers } };
}

export function entriesOf(object: JsonObject, { step }: NamespaceAction): string[] {
  return step === 'namespace-finalizer'
    ? stringsAt(object, 'metadata', 'finalizers')
    : stringsAt(object, 'spec', 'finalizers');
}

function otherEntries(object: JsonObject): string[] {
  return [
    ...stringsAt(object, 'metadata', 'finalizers'),
    ...stringsAt(object, 'spec', 'finalizers').filter((entry) => entry !== KUBERNETES_FINALIZER),
  ];
}

function isKubernetes({ step, finalizer }: NamespaceAction): boolean {
  return step === 'namespace-spec-finalizer' && finalizer === KUBERNETES_FINALIZER;
}

/** spec.finalizers has one owner as a whole; metadata.finalizers one per entry. */
function managerOf(object: JsonObject, { step, finalizer }: NamespaceAction): string | undefined {
  if (step === 'namespace-finalizer') {
    return finalizerWriters(object).find((writer) => writer.finalizer === finalizer)?.manager;
  }
  return stringAt(
    arrayAt(object, 'metadata', 'managedFields').findLast(
      (entry) => at(entry, 'fieldsV1', 'f:spec', 'f:finalizers') !== undefined,
    ),
    'manager',
  );
}
