import type { Mutation } from '../kubernetes/api.ts';
import { objectPath } from '../kubernetes/paths.ts';
import type { ReadFailure } from '../model/read.ts';
import { listOverdue, podDeletion } from './delete-pods.ts';
import { dryRunOf, entriesOf } from './finalize-namespace.ts';
import { type ForceAction, isNamespaceAction, keyOf } from './force-plan.ts';
import { checkNamespace } from './guard.ts';
import { listHolders } from './holders.ts';
import { mayDo, type Right, rightFor } from './rights.ts';
import { inBatches, type Run } from './run.ts';
import { removalPatch } from './write.ts';

/** Admission may treat objects of one type differently; trying ten of them finds most of that. */
const DRY_RUNS_PER_ACTION = 10;

export interface Preflight {
  /** All rights that are missing, so that they can be granted in one go. */
  missing: Right[];
  /** Why an action will not work, by its key: the words of the admission or the API that refused. */
  refused: Map<string, string>;
}

/**
 * Asks for every right and tries every kind of write without storing it, before the first real one. A
 * webhook with side effects refuses dry runs; that says nothing about the real write.
 */
export async function preflight(run: Run, actions: readonly ForceAction[]): Promise<Preflight> {
  const found: Preflight = { missing: [], refused: new Map() };
  const namespace = run.plan.namespace.name;
  const rights = new Map(
    actions.map((action) => [
      JSON.stringify(rightFor(action, namespace)),
      rightFor(action, namespace),
    ]),
  );
  const denied = new Set<string>();
  await inBatches([...rights], async (batch) => {
    const answers = await Promise.all(
      batch.map(([, right]) => mayDo(run.api, right, namespace, run.signal)),
    );
    batch.forEach(([key, right], index) => {
      if (answers[index] !== 'no') return;
      denied.add(key);
      found.missing.push(right);
    });
    return 'go-on';
  });
  for (const action of actions) {
    const right = rightFor(action, namespace);
    if (run.signal.aborted || denied.has(JSON.stringify(right))) continue;
    const failure = await tryAction(run, action);
    if (failure === undefined) continue;
    if (isMissingRight(failure)) {
      denied.add(JSON.stringify(right));
      found.missing.push(right);
    } else {
      found.refused.set(keyOf(action), failure.message);
    }
  }
  return found;
}

/** The first failure that the real write would meet as well. */
async function tryAction(run: Run, action: ForceAction): Promise<ReadFailure | undefined> {
  const requests = await requestsOf(run, action);
  if (!Array.isArray(requests)) return requests;
  let found: ReadFailure | undefined;
  await inBatches(requests, async (batch) => {
    if (run.signal.aborted) return 'stop';
    const answers = await Promise.all(
      batch.map((request) => run.api.send({ ...request, dryRun: true }, { signal: run.signal })),
    );
    found = answers.flatMap((sent) => (sent.ok ? [] : tellingFailure(sent.failure)))[0];
    return found === undefined ? 'go-on' : 'stop';
  });
  return found;
}

async function requestsOf(run: Run, action: ForceAction): Promise<Mutation[] | ReadFailure> {
  const namespace = run.plan.namespace.name;
  if (isNamespaceAction(action)) {
    const standing = await checkNamespace(run);
    // What has moved, or is refused, meanwhile is told by the step itself.
    if (!standing.ok || !entriesOf(standing.object, action).includes(action.finalizer)) return [];
    return [dryRunOf(run, action, standing.object)];
  }
  if (action.step === 'overdue-pods') {
    const pods = await listOverdue(run, action);
    if (!pods.ok) return pods.failure;
    return pods.value.slice(0, DRY_RUNS_PER_ACTION).map((pod) => podDeletion(run, pod, true));
  }
  const holders = await listHolders(run, action);
  if (!holders.ok) return holders.failure;
  return holders.value
    .filter(({ isTerminating }) => isTerminating)
    .slice(0, DRY_RUNS_PER_ACTION)
    .map(({ name, uid, finalizers }) => ({
      method: 'PATCH',
      path: objectPath(action.type, namespace, name),
      contentType: 'application/json-patch+json',
      body: removalPatch(uid, finalizers, action.finalizer),
    }));
}

/** Failures that say nothing about the real write are none. */
function tellingFailure(failure: ReadFailure): ReadFailure[] {
  switch (failure.kind) {
    case 'not-found':
    case 'conflict':
    case 'throttled':
    case 'aborted':
      return [];
    case 'invalid': {
      // apiserver, plugin/webhook/errors: NewDryRunUnsupportedErr; and a JSON Patch test that failed.
      const says = /does not support dry run|rejected our request due to an error in our request/;
      return says.test(failure.message) ? [] : [failure];
    }
    case 'forbidden':
    case 'unauthorized':
    case 'server-error':
    case 'timeout':
    case 'network':
    case 'unreadable':
      return [failure];
  }
}

/** RBAC's refusal, as opposed to one by admission; both are 403. */
function isMissingRight({ kind, message }: ReadFailure): boolean {
  return kind === 'forbidden' && /User "[^"]*" cannot (patch|update|delete) resource/.test(message);
}
