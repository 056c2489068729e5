import { InputError } from '../base/errors.ts';
import { deleteRequest, namespacePath } from '../kubernetes/paths.ts';
import { protectedBecause } from '../model/outcome.ts';
import { ADMISSION, valueIn } from '../model/read.ts';
import { inParallel } from '../observe/collections.ts';
import { readNamespace } from '../observe/namespaces.ts';
import { readBaselines } from '../observe/observe.ts';
import { ADMISSION_MS } from '../observe/trials.ts';
import { deleteInOrder } from './order.ts';
import type { Existing, Run, Target } from './run.ts';

export async function deleteAll(targets: readonly Target[], run: Run): Promise<Target[]> {
  const { api, inputs, log } = run;
  const asked = targets.filter(isDeletable);
  // A run that may not delete all of its namespaces deletes none.
  for (const { name } of asked) {
    const reason = protectedBecause(name, api.target.ownNamespace);
    if (reason) throw new InputError(`namespace "${name}" is never deleted: ${reason}`);
  }
  if (targets.every(({ first }) => first === undefined))
    log.notice('no namespace existed, so nothing was deleted: check the names, or the selector');
  // After the deletion, the workloads of the namespace can no longer be read.
  const names = asked.map(({ name }) => name);
  const baselines = await readBaselines(names, run);
  const known = asked.map((target) => ({ ...target, baseline: baselines.get(target.name) }));
  const ready = inputs.delete === 'ordered' ? await deleteContent(known, run) : known;
  const requested = await inParallel(ready, async (target) => {
    if (!isDeletable(target) || run.signal.aborted) return target;
    const result = await requestDeletion(target, run);
    if (result.refusal === undefined) log.line(`${target.name}: requested its deletion`);
    return result;
  });
  const byName = new Map(requested.map((target) => [target.name, target]));
  return targets.map((target) => byName.get(target.name) ?? target);
}

function isDeletable(target: Target): target is Existing {
  const { first, refusal } = target;
  return first !== undefined && first.deletionTimestamp === undefined && refusal === undefined;
}

/** Deletes in order inside the namespaces whose own deletion would be accepted: others would lose only their content. */
async function deleteContent(targets: readonly Existing[], run: Run): Promise<Target[]> {
  const tried = await inParallel(targets, (target) => requestDeletion(target, run, true));
  const done = await deleteInOrder(tried.filter(isDeletable), run);
  return [...tried.filter((target) => !isDeletable(target)), ...done];
}

const MAX_TRIES = 3;
const RETRY_MS = 2_000;
/** The request may have been processed, or may be accepted when it is sent again. */
const UNSURE = /^(?:server-error|timeout|network|throttled|unreadable)$/;

/** Of exactly the namespace that was read. A request whose effect is unknown is sent again; the wait decides the rest. */
async function requestDeletion(target: Existing, run: Run, dryRun = false): Promise<Target> {
  const { api, clock, inputs, log, signal, startedAt } = run;
  const { name, first } = target;
  // The UID suffices: the resourceVersion of a namespace may change several times a second.
  const preconditions = { uid: first.uid };
  const request = { ...deleteRequest(namespacePath(name), { preconditions }), dryRun };
  const why =
    'nothing inside was deleted, because the dry run of its own deletion was not accepted: ';
  for (let attempt = 1; ; attempt++) {
    if (!dryRun) log.line(`${name}: asking for its deletion (UID ${first.uid})`);
    const isEarly = clock.now() + ADMISSION_MS < startedAt + inputs.timeoutMs;
    const sent = await api.send(request, { signal, ...(isEarly && { timeoutMs: ADMISSION_MS }) });
    const now = await readNamespace(name, run);
    if (signal.aborted) return target;
    const isLast = attempt === MAX_TRIES || clock.now() >= startedAt + inputs.timeoutMs;
    // Unread, deleted or replaced: the follower, which expects the old UID, decides what became of it.
    if (now.ok ? now.value?.uid !== first.uid : sent.ok || (isLast && !dryRun))
      return { ...target, isAsked: !dryRun };
    const read = { ...target, first: valueIn(now) ?? first };
    // The answer may have been lost, or another client may have been faster.
    if (sent.ok || read.first.deletionTimestamp !== undefined) return read;
    const { kind, message } = sent.failure;
    const isUnsure = !now.ok || (UNSURE.test(kind) && !ADMISSION.test(message));
    const end = kind === 'timeout' && !dryRun ? '; the server may still accept it' : '';
    if (isLast || !isUnsure) return { ...read, refusal: `${dryRun ? why : ''}${message}${end}` };
    await clock.sleep(RETRY_MS, signal);
  }
}
