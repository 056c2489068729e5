import { ActionError } from '../base/errors.ts';
import type { Mutation } from '../kubernetes/api.ts';
import { deleteRequest, namespacePath } from '../kubernetes/paths.ts';
import { namespaceFacts } from '../model/facts/metadata.ts';
import { protectedBecause } from '../model/outcome.ts';
import { ADMISSION } from '../model/read.ts';
import type { NamespaceFacts } from '../model/snapshot.ts';
import { inParallel } from '../observe/collections.ts';
import { readNamespace } from '../observe/namespaces.ts';
import { readBaselines } from '../observe/observe.ts';
import { deleteInOrder } from './order.ts';
import type { Existing, Run, Target } from './run.ts';

/** Requests the deletion of all namespaces that are not terminating yet. Returns the targets with the results. */
export async function deleteAll(targets: readonly Target[], run: Run): Promise<Target[]> {
  const { api, inputs, log } = run;
  const asked = targets.filter(isDeletable);
  // A run that may not delete all of its namespaces deletes none.
  for (const { name } of asked) {
    const reason = protectedBecause(name, api.target.ownNamespace);
    if (reason === undefined) continue;
    throw new ActionError('invalid-input', `namespace "${name}" is never deleted: ${reason}`);
  }
  if (targets.every(({ first }) => first === undefined)) {
    log.notice('no namespace existed, so nothing was deleted: check the names, or the selector');
  }
  const names = asked.map(({ name }) => name);
  // After the deletion, the workloads of the namespace can no longer be read.
  const baselines = await readBaselines(names, run);
  const all = new Map(targets.map((target) => [target.name, target]));
  const update = (changed: readonly Target[]): void => {
    for (const target of changed) all.set(target.name, target);
  };
  // All deletions are tried before the first one. If one is refused, the others continue.
  const tried = await inParallel(asked, async (target) => {
    const baseline = baselines.get(target.name);
    return { ...target, baseline, ...(await tryDeletion(target, run)) };
  });
  update(tried.map(({ isAccepted: _, ...target }) => target));
  if (inputs.delete === 'ordered') {
    update(
      await deleteInOrder(
        tried.filter(({ isAccepted }) => isAccepted),
        run,
      ),
    );
  }
  // Deletions inside the namespace do not change the Namespace object itself.
  const open = [...all.values()].filter(isDeletable);
  update(await inParallel(open, (target) => requestDeletion(target, run)));
  return [...all.values()];
}

/** Reports whether the namespace exists, is not terminating, and its deletion is not refused. */
function isDeletable(target: Target): target is Existing {
  const { first, refusal } = target;
  return first !== undefined && first.deletionTimestamp === undefined && refusal === undefined;
}

/**
 * Builds the deletion. The UID suffices as a precondition: the resourceVersion of a namespace may change several
 * times a second.
 */
function deletionOf({ name, uid }: NamespaceFacts): Mutation {
  return deleteRequest(namespacePath(name), { preconditions: { uid } });
}

/**
 * Sends the deletion of the namespace as a dry run. An answer that the real request would get too is a refusal. Before
 * an ordered deletion an unclear answer is a refusal as well: otherwise the namespace might remain without its content.
 */
async function tryDeletion(
  { first }: Existing,
  { api, clock, inputs, signal }: Run,
): Promise<{ isAccepted: boolean; refusal?: string }> {
  for (let attempt = 1; ; attempt++) {
    const sent = await api.send({ ...deletionOf(first), dryRun: true }, { signal, retries: 0 });
    if (sent.ok) return { isAccepted: true };
    const { kind, message } = sent.failure;
    // The namespace was deleted or replaced. The real request will report that.
    if (signal.aborted || kind === 'not-found' || kind === 'conflict') return { isAccepted: false };
    // A webhook with side effects refuses every dry run, which proves nothing about the real request.
    const isUntried = message.includes('does not support dry run');
    const isRefused = !isUntried && (kind === 'forbidden' || ADMISSION.test(message));
    if (isRefused) return { isAccepted: false, refusal: message };
    if (inputs.delete !== 'ordered') return { isAccepted: false };
    if (attempt === MAX_DELETE_TRIES || isUntried) {
      const refusal = `nothing inside was deleted, because the dry run of its own deletion was not accepted: ${message}`;
      return { isAccepted: false, refusal };
    }
    await clock.sleep(RETRY_MS, signal);
  }
}

const MAX_DELETE_TRIES = 3;
const RETRY_MS = 2_000;
/**
 * Failures after which the request may have been processed or not. Sending it again with the same precondition
 * does no harm.
 */
const UNSURE = /^(?:server-error|timeout|network)$/;

/**
 * Requests the deletion of exactly the namespace that was read. The answer to the DELETE does not mean that the
 * namespace is deleted: the wait decides that.
 */
async function requestDeletion(target: Existing, run: Run): Promise<Target> {
  const { api, clock, inputs, log, signal, startedAt } = run;
  const { name, first } = target;
  if (signal.aborted) return target;
  const said = (event: string, result: Target): Target => {
    log.line(`${name}: ${event}`);
    return result;
  };
  const requested = 'requested its deletion';
  for (let attempt = 1; ; attempt++) {
    log.line(`${name}: asking for its deletion (UID ${first.uid})`);
    const sent = await api.send(deletionOf(first), { signal });
    // The answer may have been lost, the namespace replaced, or (before 1.20) the 409 means "is being deleted
    // already".
    const now = await readNamespace(name, { api, signal });
    if (signal.aborted) return said(requested, target);
    if (now.ok) {
      // The namespace was deleted or replaced. The follower, which expects the old UID, decides which.
      if (now.value?.uid !== first.uid) return said(requested, { ...target, isAsked: true });
      const read = { ...target, first: now.value };
      if (sent.ok) return said(requested, read);
      const { kind, message } = sent.failure;
      if (now.value.deletionTimestamp !== undefined) {
        const isOthers = kind === 'conflict';
        return said(isOthers ? 'another client has requested its deletion' : requested, read);
      }
      const isLate = attempt >= MAX_DELETE_TRIES || clock.now() >= startedAt + inputs.timeoutMs;
      if (isLate || !UNSURE.test(kind) || ADMISSION.test(message))
        return { ...read, refusal: message };
    } else {
      const answered = sent.ok ? namespaceFacts(sent.value) : undefined;
      if (answered?.uid === first.uid && answered.deletionTimestamp !== undefined)
        return said(requested, { ...target, first: answered });
      // A second DELETE has the same precondition as the first, so it does no harm.
      if (attempt === MAX_DELETE_TRIES) {
        const event = `asked for its deletion, and it could not be read since: ${now.failure.message}`;
        return said(event, { ...target, isAsked: true });
      }
    }
    await clock.sleep(RETRY_MS, signal);
  }
}
