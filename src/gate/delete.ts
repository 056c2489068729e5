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
  // After the deletion, the workloads of the namespace can no longer be read.
  const baselines = await readBaselines(
    asked.map(({ name }) => name),
    run,
  );
  const known = asked.map((target) => ({ ...target, baseline: baselines.get(target.name) }));
  const ready = inputs.delete === 'ordered' ? await deleteContent(known, run) : known;
  // If one deletion is refused, the others continue.
  const requested = await inParallel(ready, (target) =>
    isDeletable(target) ? requestDeletion(target, run) : Promise.resolve(target),
  );
  const byName = new Map(requested.map((target) => [target.name, target]));
  return targets.map((target) => byName.get(target.name) ?? target);
}

/** Reports whether the namespace exists, is not terminating, and its deletion is not refused. */
function isDeletable(target: Target): target is Existing {
  const { first, refusal } = target;
  return first !== undefined && first.deletionTimestamp === undefined && refusal === undefined;
}

/**
 * Deletes the objects that need a running controller, in those namespaces whose own deletion would be accepted:
 * otherwise a namespace might remain without its content.
 */
async function deleteContent(targets: readonly Existing[], run: Run): Promise<Target[]> {
  const tried = await inParallel(targets, async (target) => {
    const refusal = await tryDeletion(target, run);
    return refusal === undefined ? target : { ...target, refusal };
  });
  const done = await deleteInOrder(tried.filter(isDeletable), run);
  return [...tried.filter((target) => !isDeletable(target)), ...done];
}

/**
 * Builds the deletion. The UID suffices as a precondition: the resourceVersion of a namespace may change several
 * times a second.
 */
function deletionOf({ name, uid }: NamespaceFacts): Mutation {
  return deleteRequest(namespacePath(name), { preconditions: { uid } });
}

const MAX_TRIES = 3;
const RETRY_MS = 2_000;

/** Sends the deletion of the namespace as a dry run, and returns why it was not accepted. */
async function tryDeletion(
  { first }: Existing,
  { api, clock, signal }: Run,
): Promise<string | undefined> {
  for (let attempt = 1; ; attempt++) {
    const sent = await api.send({ ...deletionOf(first), dryRun: true }, { signal, retries: 0 });
    if (sent.ok || signal.aborted) return undefined;
    const { kind, message } = sent.failure;
    // The namespace was deleted or replaced, which the steps inside and the real request find out.
    if (kind === 'not-found' || kind === 'conflict') return undefined;
    // The real request would be refused as well. After another error, and by a webhook with side effects, which
    // refuses every dry run, this is not known.
    const isUntried = message.includes('does not support dry run');
    if (!isUntried && (kind === 'forbidden' || ADMISSION.test(message))) return message;
    if (isUntried || attempt === MAX_TRIES)
      return `nothing inside was deleted, because the dry run of its own deletion was not accepted: ${message}`;
    await clock.sleep(RETRY_MS, signal);
  }
}

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
    // The answer may have been lost, the namespace replaced, or another client may have been faster.
    const now = await readNamespace(name, { api, signal });
    if (signal.aborted) return said(requested, target);
    if (now.ok) {
      // The namespace was deleted or replaced. The follower, which expects the old UID, decides which.
      if (now.value?.uid !== first.uid) return said(requested, { ...target, isAsked: true });
      const read = { ...target, first: now.value };
      if (sent.ok || now.value.deletionTimestamp !== undefined) return said(requested, read);
      const { kind, message } = sent.failure;
      const isLate = attempt === MAX_TRIES || clock.now() >= startedAt + inputs.timeoutMs;
      if (isLate || !UNSURE.test(kind) || ADMISSION.test(message))
        return { ...read, refusal: message };
    } else {
      const answered = sent.ok ? namespaceFacts(sent.value) : undefined;
      if (answered?.uid === first.uid && answered.deletionTimestamp !== undefined)
        return said(requested, { ...target, first: answered });
      if (attempt === MAX_TRIES) {
        const event = `asked for its deletion, and it could not be read since: ${now.failure.message}`;
        return said(event, { ...target, isAsked: true });
      }
    }
    await clock.sleep(RETRY_MS, signal);
  }
}
