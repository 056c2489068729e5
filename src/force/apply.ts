import { serverTimestamp, type TimelineEntry } from '../base/time.ts';
import { typeName } from '../model/facts/metadata.ts';
import type { NotInspected } from '../model/finding.ts';
import type { Outcome } from '../model/outcome.ts';
import { lacksPermission, type Read } from '../model/read.ts';
import type { ForceRecord } from '../model/result.ts';
import type { NamespaceFacts } from '../model/snapshot.ts';
import { inParallel } from '../observe/collections.ts';
import { readNamespace } from '../observe/namespaces.ts';
import { type Leftovers, listLeftovers, refusedBecause } from './leftovers.ts';
import {
  type ForceAction,
  type ForcePlan,
  isOnNamespace,
  manyTarget,
  namespaceTarget,
  recordPlan,
} from './plan.ts';
import { forbiddenBecause, readTargets, type Target, type Writing, writeOf } from './writes.ts';

/** After it no write begins, so that the result can still be verified. */
export const LAST_WRITE_MS = 105_000;
/** After it the gate no longer waits if it may have to write to the namespace itself. */
const LAST_WAIT_MS = 80_000;
/** Then the gate looks whether other objects have begun to terminate. */
const ROUND_MS = 10_000;
/** After a change: the namespace controller may be in a back-off of up to 60 s. */
const SETTLE_MS = 70_000;
const PAUSE_MS = 1_000;

interface ForceDeps extends Omit<Writing, 'plan'> {
  startedAt: number;
  /** Waits without writing, and reports whether the namespace was deleted by then. */
  isDeletedBy(untilMs: number): Promise<boolean>;
  /** Reads it once more after it seemed deleted or replaced: from the cluster that was asked at the start. */
  confirmEnd(): Promise<Read<NamespaceFacts | undefined>>;
}

interface ForceRun extends ForceDeps {
  plan: ForcePlan;
  forced: ForceRecord;
  unread: NotInspected[];
  timeline: TimelineEntry[];
  /** Actions that have results, and UIDs of the objects that each action wrote to: nothing is tried twice. */
  tried: Map<ForceAction, Set<string>>;
  hasWritten: boolean;
}

/** The plan must be fresh, and must have been logged before. Without an outcome, the namespace is still there. */
export async function carryOut(plan: ForcePlan, deps: ForceDeps) {
  const { name } = plan.namespace;
  // Several namespaces are forced side by side.
  const log: ForceDeps['log'] = {
    ...deps.log,
    line: (text) => deps.log.line(`${name}: ${text}`),
    group: (title, lines) => deps.log.group(`${name}: ${title}`, lines),
  };
  const run: ForceRun = {
    ...{ ...deps, log, plan, forced: recordPlan(plan), unread: [], timeline: [] },
    ...{ tried: new Map(), hasWritten: false },
  };
  const outcome = plan.policy.mode === 'plan' ? undefined : await force(run);
  return { ...run, outcome };
}

function note(run: ForceRun, target: string, result: string, finalizer = ''): void {
  run.forced.actions.push({ target, finalizer, result });
  const event = `${target}${finalizer === '' ? '' : ` ${finalizer}`}: ${result}`;
  run.timeline.push({ at: serverTimestamp(run), event });
  run.log.line(event);
}

async function force(run: ForceRun): Promise<Outcome | undefined> {
  const { plan } = run;
  run.forced.actions = [];
  const left = (await freeObjects(run)) ? undefined : await freeNamespace(run);
  const stop = run.stopReason();
  const rest = stop ? `not done: ${stop}` : 'nothing to do: nothing terminating has it';
  for (const action of plan.actions)
    if (!run.tried.has(action)) note(run, action.target, rest, action.finalizer);
  return outcomeOf(run, left);
}

/** Objects queued behind a pod, or held by another one, terminate only after it: after each change they are listed again. */
async function freeObjects(run: ForceRun): Promise<boolean> {
  const { clock, plan, startedAt } = run;
  const latest = startedAt + (plan.policy.mode === 'namespace' ? LAST_WAIT_MS : LAST_WRITE_MS);
  for (let until = 0; ; ) {
    for (const action of plan.actions.filter((one) => !isOnNamespace(one))) {
      if (run.stopReason() !== undefined) return false;
      if (await perform(run, action)) until = Math.min(latest, clock.now() + SETTLE_MS);
    }
    if (clock.now() >= until) return false;
    if (await run.isDeletedBy(Math.min(until, clock.now() + ROUND_MS))) return true;
  }
}

/** Returns the content of the namespace right before. */
async function freeNamespace(run: ForceRun): Promise<Leftovers | undefined> {
  const own = run.plan.actions.filter(isOnNamespace);
  if (own.length === 0 || run.stopReason() !== undefined) return undefined;
  const left = await listLeftovers(run);
  const reason = refusedBecause(run, left);
  if (reason !== undefined) {
    const target = namespaceTarget(run.plan.namespace.name);
    run.forced.refused = [...run.forced.refused, { target, reason }];
    run.log.line(`refused: ${target}: ${reason}`);
    for (const action of own) {
      run.tried.set(action, new Set());
      note(run, target, 'not done: content remains or could not be read', action.finalizer);
    }
    return undefined;
  }
  for (const action of own) if (run.stopReason() === undefined) await perform(run, action);
  await run.isDeletedBy(run.clock.now() + ROUND_MS);
  return left;
}

/** Only a 404 for the name, or another UID, proves the deletion. Records all objects that still exist. */
async function outcomeOf(run: ForceRun, left: Leftovers | undefined): Promise<Outcome | undefined> {
  const { name, uid } = run.plan.namespace;
  const seen = await readNamespace(name, run);
  if (!seen.ok || seen.value?.uid === uid) return undefined;
  const now = await run.confirmEnd();
  if (!now.ok || now.value?.uid === uid) return undefined;
  if (!run.hasWritten) return now.value === undefined ? 'deleted' : 'recreated';
  if (left === undefined) return 'forced';
  const after = await listLeftovers(run, now.value?.creationTimestamp);
  run.unread = after.unread;
  // While something cannot be read again, the objects that were there before count as well.
  const known = [...(after.unread.length > 0 ? left.objects : []), ...after.objects];
  const orphans = [...new Map(known.map((one) => [one.uid, one])).values()];
  run.forced.orphans = orphans;
  const recovery = 'only a new namespace of this name, which takes them over, lets them be changed';
  if (orphans.length > 0)
    note(run, namespaceTarget(name), `objects left behind: ${orphans.length}; ${recovery}`);
  for (const { what, reason } of after.unread)
    note(run, what, `not searched for what is left behind: ${reason}`);
  return 'forced';
}

/** The result for one object; `reached`: it now has the intended state. */
interface Done {
  name: string;
  uid: string;
  reached?: true;
  result: string;
}

/** Reads the objects of an action, writes to each of them once, and reads them again. Returns whether anything was changed. */
async function perform(run: ForceRun, action: ForceAction): Promise<boolean> {
  const { target, finalizer, leaves } = action;
  const listed = await readTargets(run, action);
  const tried = run.tried.get(action) ?? new Set();
  if (!listed.ok && !run.tried.has(action))
    note(run, target, `not done: ${listed.failure.message}`, finalizer);
  const todo = listed.ok ? listed.value.filter(({ uid }) => !tried.has(uid)) : [];
  if (!listed.ok || todo.length > 0) run.tried.set(action, tried);
  if (todo.length === 0) return false;
  for (const { uid } of todo) tried.add(uid);
  const done = await inParallel(todo, (object) => write(run, action, object));
  const hasChanged = done.some(({ reached }) => reached);
  const again = hasChanged ? await readTargets(run, action) : listed;
  const leak = leaves === undefined ? '' : `; may be left behind: ${leaves}`;
  const resultOf = ({ uid, reached, result }: Done): string => {
    if (!reached) return result;
    if (!again.ok) return `${result}; not read back: ${again.failure.message}${leak}`;
    const now = again.value.find((other) => other.uid === uid);
    if (now === undefined) return `${result}${leak}`;
    const writer = now.writers.find((one) => one.finalizer === finalizer)?.manager;
    return `${result}, and added again by ${writer ? `manager ${writer}` : 'an unknown manager'}`;
  };
  // An answer names its object, and says the same of all others.
  const keyOf = (one: Done): string => resultOf(one).replaceAll(`"${one.name}"`, '');
  for (const group of Map.groupBy(done, keyOf).values()) {
    const names = group.map(({ name }) => name);
    note(run, manyTarget(typeName(action.type), names), resultOf(group[0] as Done), finalizer);
  }
  return hasChanged;
}

/** Failures after which the write may have been made. */
const UNCLEAR = /^(?:server-error|timeout|network|unreadable|aborted)$/;

/**
 * Sends one write, and once more if it fails, unless a permission is missing. After any answer but success the object is
 * read again: proxies repeat requests, and servers answer 409 after a success, so a change that is there after a request
 * counts as made by it.
 */
async function write(run: ForceRun, action: ForceAction, first: Target): Promise<Done> {
  const { api, clock, log, signal } = run;
  const { name, uid } = first;
  const isPod = action.step === 'overdue-pods';
  const doing = isPod ? 'deleting with grace period 0:' : `removing ${action.finalizer} from`;
  const done = isPod ? 'deleted with grace period 0' : 'removed';
  const reached = (result: string): Done => {
    run.hasWritten = true;
    return { name, uid, reached: true, result };
  };
  const notDone = (why: string): Done => ({ name, uid, result: `not done: ${why}` });
  let object = first;
  for (let tries = 1; ; tries++) {
    const reason = await forbiddenBecause(run, action, object);
    if (reason !== undefined) return notDone(reason);
    // The log has the write before it is sent, in case this process is killed now.
    log.line(`${doing} ${typeName(action.type)}/${name} (UID ${uid})`);
    // Only a busy server, which has not begun the write, is asked again without another look.
    const sent = await api.send(writeOf(run, action, object), { signal });
    if (sent.ok) return reached(done);
    const { kind, message } = sent.failure;
    run.hasWritten ||= UNCLEAR.test(kind);
    if (kind === 'aborted')
      return notDone('interrupted while it was being sent: it may have been done');
    const isFinal = tries > 1 || lacksPermission(sent.failure);
    if (!isFinal) await clock.sleep(PAUSE_MS, signal);
    const listed = await readTargets(run, action, name);
    if (!listed.ok) return notDone(`${message}; ${listed.failure.message}`);
    const now = listed.value.find((one) => one.uid === uid);
    if (now === undefined)
      return reached(`${done}; perhaps by another client, since the answer was: ${message}`);
    if (isFinal) return notDone(tries > 1 ? `${message} (tried twice)` : message);
    object = now;
  }
}
