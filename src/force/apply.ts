import { stringAt, valueAt } from '../base/json.ts';
import { serverTimestamp, type TimelineEntry } from '../base/time.ts';
import { lastWrite, typeName } from '../model/facts/metadata.ts';
import type { NotInspected } from '../model/finding.ts';
import type { Outcome } from '../model/outcome.ts';
import type { ForceRecord } from '../model/result.ts';
import { inParallel } from '../observe/collections.ts';
import { readNamespace } from '../observe/namespaces.ts';
import { type Leftovers, listAcceptedLeftovers, listLeftovers, listOrphans } from './leftovers.ts';
import {
  actionKey,
  type ForceAction,
  type ForcePlan,
  isOnNamespace,
  manyTarget,
  namespaceTarget,
} from './plan.ts';
import {
  checkNamespace,
  forbiddenBecause,
  readTargets,
  type Target,
  VERBS,
  type Writing,
  writeOf,
} from './writes.ts';

/** The time after which no write begins, so that the result can still be verified. */
export const LAST_WRITE_MS = 105_000;
/** The time after which the gate no longer waits if it may have to write to the namespace itself. */
const LAST_WAIT_MS = 80_000;
/** The time after which the gate looks whether other objects have begun to terminate. */
const ROUND_MS = 10_000;
/**
 * The time to wait after a change: most namespaces are then deleted; the controller may be in a back-off of up to
 * 60 s.
 */
const SETTLE_MS = 70_000;
/** The greatest age of facts about the namespace, which many writes share. */
const GUARD_MS = 1_000;
/** Pauses before a write is repeated. */
const PAUSE_MS = { first: 1_000, most: 8_000 };
/** The most objects with the same result that are named one by one; more are one row. */
const ONE_BY_ONE = 10;

interface ForceDeps extends Omit<Writing, 'plan'> {
  /** The time at which forcing began, in ms since the epoch. */
  startedAt: number;
  /** Waits without writing, and reports whether the namespace was deleted by this time (ms since the epoch). */
  isDeletedBy(untilMs: number): Promise<boolean>;
}

/** The change of one namespace, and what was done as it happens. */
interface ForceRun extends ForceDeps {
  plan: ForcePlan;
  record: Pick<ForceRecord, 'actions' | 'refused' | 'orphans'>;
  unread: NotInspected[];
  timeline: TimelineEntry[];
  /** Actions that have results, and each object that was written to, by action and UID: nothing is tried twice. */
  tried: Set<string>;
  /** Whether this run has, or may have, changed the cluster. */
  hasWritten: boolean;
  /** Returns why no write to the namespace may begin now. */
  guard(): Promise<string | undefined>;
}

/**
 * Carries out the plan in its order, and reports the results; without an outcome, the namespace is still there. The plan
 * must be fresh, and must have been logged before. Mode `plan` takes the same steps up to the first write, and stops
 * there.
 */
export async function carryOut(plan: ForcePlan, deps: ForceDeps) {
  const run = beginForcing(plan, deps);
  const outcome = await (plan.mode === 'plan' ? foretell(run) : force(run));
  const { hasWritten, record, timeline, unread } = run;
  const refused = [...plan.refused, ...record.refused];
  return { outcome, hasWritten, forced: { mode: plan.mode, ...record, refused }, timeline, unread };
}

function beginForcing(plan: ForcePlan, deps: ForceDeps): ForceRun {
  const { name } = plan.namespace;
  // Several namespaces are forced side by side.
  const log: ForceDeps['log'] = {
    ...deps.log,
    line: (text) => deps.log.line(`${name}: ${text}`),
    group: (title, lines) => deps.log.group(`${name}: ${title}`, lines),
  };
  let last: { at: number; answer: ReturnType<typeof checkNamespace> } | undefined;
  const guard = async (): Promise<string | undefined> => {
    const at = run.clock.now();
    // The removal of the label stops all later writes; without a label, writes of one moment share one answer.
    if (last === undefined || plan.label !== undefined || at - last.at >= GUARD_MS) {
      last = { at, answer: checkNamespace(run) };
    }
    const now = await last.answer;
    const deleted = now.ok && now.value === undefined ? 'the namespace was deleted' : undefined;
    return run.stopReason() ?? (now.ok ? deleted : now.failure.message);
  };
  const run: ForceRun = {
    ...{ ...deps, log, plan, guard, unread: [], timeline: [], tried: new Set() },
    ...{ record: { actions: [], orphans: [], refused: [] }, hasWritten: false },
  };
  return run;
}

function note(run: ForceRun, target: string, result: string, finalizer = ''): void {
  run.record.actions.push({ target, finalizer, result });
  const event = `${target}${finalizer === '' ? '' : ` ${finalizer}`}: ${result}`;
  run.timeline.push({ at: serverTimestamp(run), event });
  run.log.line(event);
}

function refuse(run: ForceRun, reason: string): void {
  const target = namespaceTarget(run.plan.namespace.name);
  run.record.refused.push({ target, reason });
  run.log.line(`refused: ${target}: ${reason}`);
}

function isOpen({ tried }: ForceRun, action: ForceAction): boolean {
  return !tried.has(actionKey(action));
}

/** Records the result of all actions that were not tried. */
function giveUp(run: ForceRun, result: string): void {
  for (const action of run.plan.actions) {
    if (isOpen(run, action)) note(run, action.target, result, action.finalizer);
    run.tried.add(actionKey(action));
  }
}

async function foretell(run: ForceRun): Promise<undefined> {
  const lacking = await lackingRights(run);
  for (const action of run.plan.actions) {
    const right = rightOf(action);
    const when = action.isQueued ? ' once it is terminating' : '';
    const but = lacking.includes(right) ? `, but a permission is missing: ${right}` : '';
    note(run, action.target, `would be done${when}${but}`, action.finalizer);
  }
}

async function force(run: ForceRun): Promise<Outcome | undefined> {
  let left: Leftovers | undefined;
  // All or nothing: half of a forced teardown does not help, since the other permissions are needed anyway.
  const lacking = run.stopReason() === undefined ? await lackingRights(run) : [];
  if (lacking.length > 0) {
    const reason = `permissions are missing: ${lacking.join(', ')}`;
    refuse(run, reason);
    giveUp(run, `not done: ${reason}`);
  } else if (!(await freeObjects(run))) left = await freeNamespace(run);
  const stop = run.stopReason();
  giveUp(
    run,
    stop === undefined ? 'nothing to do: nothing terminating has it' : `not done: ${stop}`,
  );
  return outcomeOf(run, left);
}

/**
 * Frees the objects, and reports whether that was enough. Objects come first: those queued behind a pod, or held by
 * another object, terminate only after it. So after each change the gate waits, and lists them again.
 */
async function freeObjects(run: ForceRun): Promise<boolean> {
  const { clock, plan, startedAt } = run;
  const latest = startedAt + (plan.mode === 'namespace' ? LAST_WAIT_MS : LAST_WRITE_MS);
  for (let until = 0; ; ) {
    for (const action of plan.actions.filter((one) => !isOnNamespace(one))) {
      if (run.stopReason() !== undefined) return false;
      if (await perform(run, action)) until = Math.min(latest, clock.now() + SETTLE_MS);
    }
    if (clock.now() >= until) return false;
    if (await run.isDeletedBy(Math.min(until, clock.now() + ROUND_MS))) return true;
  }
}

/** Removes the namespace's own entries, and returns the content of the namespace right before. */
async function freeNamespace(run: ForceRun): Promise<Leftovers | undefined> {
  const own = run.plan.actions.filter(isOnNamespace);
  if (own.length === 0 || run.stopReason() !== undefined) return undefined;
  const { left, refusal } = await listAcceptedLeftovers(run);
  const reason = refusal ?? ((await isShrinking(run, left)) ? SHRINKING : undefined);
  if (reason !== undefined) {
    refuse(run, reason);
    giveUp(run, 'not done: content remains or could not be read');
    return undefined;
  }
  for (const action of own) if (run.stopReason() === undefined) await perform(run, action);
  await run.isDeletedBy(run.clock.now() + ROUND_MS);
  return left;
}

const SHRINKING =
  'its deletion makes progress again, and its content would be left behind: run it later';

/** Reports whether content is being deleted since objects were freed. It must not be left behind. */
async function isShrinking(run: ForceRun, { objects }: Leftovers): Promise<boolean> {
  if (!run.hasWritten || objects.length === 0) return false;
  if (await run.isDeletedBy(run.clock.now() + ROUND_MS)) return false;
  const left = await listLeftovers(run);
  const uids = new Set(left.objects.map(([, { uid }]) => uid));
  return objects.some(([, { uid }]) => !uids.has(uid));
}

/**
 * Returns the permissions that the actions lack according to the API server, as "patch widgets.example.com".
 * Requests below a namespace, and those for a namespace itself, are authorized in it. If the question is not answered,
 * the write itself shows it.
 */
async function lackingRights({ api, plan, signal }: ForceRun): Promise<string[]> {
  const namespace = plan.namespace.name;
  const rights = new Map(plan.actions.map((action) => [rightOf(action), action]));
  const lacking = await inParallel([...rights], async ([right, { step, type }]) => {
    const [resource, subresource] = type.resource.split('/');
    const name = resource === 'namespaces' ? namespace : undefined;
    const place = { namespace, group: type.group, resource, name, subresource };
    const body = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: { ...place, verb: VERBS[step] } },
    };
    const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
    const answer = await api.send({ method: 'POST', path, body }, { signal });
    return answer.ok && valueAt(answer.value, 'status', 'allowed') === false ? [right] : [];
  });
  return lacking.flat();
}

function rightOf({ step, type }: ForceAction): string {
  return `${VERBS[step]} ${typeName(type)}`;
}

/**
 * Returns the outcome: only a 404 for the name, or another UID, proves the deletion. Undefined if forcing did not
 * change it. Records all objects that still exist.
 */
async function outcomeOf(run: ForceRun, left: Leftovers | undefined): Promise<Outcome | undefined> {
  const { name, uid } = run.plan.namespace;
  const now = await readNamespace(name, run);
  if (!now.ok || now.value?.uid === uid) return undefined;
  if (!run.hasWritten) return now.value === undefined ? 'deleted' : 'recreated';
  if (left === undefined) return 'forced';
  const { orphans, unread } = await listOrphans(run, left, now.value?.creationTimestamp);
  run.record.orphans = orphans;
  run.unread.push(...unread);
  const rest = now.value === undefined ? RECOVERY : INHERITED;
  if (orphans.length > 0)
    note(run, namespaceTarget(name), `objects left behind: ${orphans.length}; ${rest}`);
  for (const { what, reason } of unread)
    note(run, what, `not searched for what is left behind: ${reason}`);
  return 'forced';
}

/** How orphans can still be handled, also if the namespace was created again already. */
const RECOVERY =
  'they can be deleted but not changed: removing a finalizer returns 404 until a namespace of this name exists again; to clean up, create the namespace, remove the finalizers, and delete it';
const INHERITED =
  'they now belong to the new namespace of this name; a finalizer on them will hold that one, too';

/** The result for one object. */
interface Done {
  name: string;
  uid: string;
  /** Whether this run changed the cluster, or may have, and whether the object now has the intended state. */
  wrote: boolean;
  reached: boolean;
  result: string;
}

/**
 * Carries out an action: reads its objects, writes to each of them once, in parallel, and reads them again to see the
 * results. Returns whether anything has changed since the plan, or since the last time.
 */
async function perform(run: ForceRun, action: ForceAction): Promise<boolean> {
  const { tried } = run;
  const { target, finalizer } = action;
  const key = actionKey(action);
  const listed = await readTargets(run, action);
  if (!listed.ok) {
    if (isOpen(run, action)) note(run, target, `not done: ${listed.failure.message}`, finalizer);
    tried.add(key);
    return false;
  }
  const todo = listed.value.filter(({ uid }) => !tried.has(`${key} ${uid}`));
  if (todo.length === 0) {
    const isNews = isOpen(run, action) && !action.isQueued;
    if (isNews) note(run, target, 'nothing to do: it no longer exists', finalizer);
    if (isNews) tried.add(key);
    return isNews;
  }
  tried.add(key);
  const done = await inParallel(todo, async (object) => {
    tried.add(`${key} ${object.uid}`);
    const one = await write(run, action, object);
    run.hasWritten ||= one.wrote;
    return one;
  });
  const told = await readBack(run, action, done);
  for (const [result, group] of Map.groupBy(told, (one) => one.result)) {
    const names = group.map(({ name }) => name);
    const rows = group.length > ONE_BY_ONE ? [names] : names.map((name) => [name]);
    for (const row of rows) note(run, manyTarget(kindOf(action), row), result, finalizer);
  }
  return done.some(({ wrote, reached }) => wrote || reached);
}

function kindOf(action: ForceAction): string {
  return isOnNamespace(action) ? 'namespaces' : typeName(action.type);
}

/** Reads the objects again, and adds to each result what was found: an owner may have put the finalizer back. */
async function readBack(
  run: ForceRun,
  action: ForceAction,
  done: readonly Done[],
): Promise<Pick<Done, 'name' | 'result'>[]> {
  const isMine = ({ wrote, reached }: Done): boolean => wrote && reached;
  if (!done.some(isMine)) return [...done];
  const again = await readTargets(run, action);
  return done.map((one) => {
    const { name, result, uid } = one;
    if (!isMine(one)) return one;
    const leaves = action.leaves === undefined ? '' : `; may be left behind: ${action.leaves}`;
    if (!again.ok)
      return { name, result: `${result}; not read back: ${again.failure.message}${leaves}` };
    const now = again.value.find((other) => other.uid === uid);
    if (now === undefined) return { name, result: `${result}${leaves}` };
    // The whole list in the spec has one field manager; each entry in the metadata has its own.
    const writer =
      action.step === 'namespace-spec-finalizer'
        ? stringAt(lastWrite(now.object, 'f:spec', 'f:finalizers'), 'manager')
        : now.writers.find(({ finalizer }) => finalizer === action.finalizer)?.manager;
    const by = writer === undefined ? 'an unknown manager' : `manager ${writer}`;
    return { name, result: `${result}, and added again by ${by}` };
  });
}

/** Failures after which the write may have been made. */
const UNCLEAR = /^(?:server-error|timeout|network|unreadable)$/;

/**
 * Announces and sends one write, and once more if it fails. After any answer but success the object is read again, and
 * what is there decides. An error may be the answer to a repetition: proxies repeat requests, and servers answer 409
 * after a success. So a change that is there after a request was sent counts as made by it.
 */
async function write(run: ForceRun, action: ForceAction, first: Target): Promise<Done> {
  const { api, clock, log, signal } = run;
  const { name, uid } = first;
  const isPod = action.step === 'overdue-pods';
  const doing = isPod ? 'deleting with grace period 0:' : `removing ${action.finalizer} from`;
  const done = isPod ? 'deleted with grace period 0' : 'removed';
  let object = first;
  let wrote = false;
  let until = '';
  const notDone = (reason: string): Done => {
    return { name, uid, wrote, reached: false, result: `not done: ${reason}` };
  };
  for (let tries = 1, pause = PAUSE_MS.first; ; pause = Math.min(2 * pause, PAUSE_MS.most)) {
    const reason = (await run.guard()) ?? (await forbiddenBecause(run, action, object));
    if (reason !== undefined) return notDone(`${reason}${until}`);
    // The log has the write before it is sent, in case this process is killed now.
    log.line(`${doing} ${kindOf(action)}/${name} (UID ${uid})`);
    // No retry here: before a repetition, everything is read again.
    const sent = await api.send(writeOf(run, action, object), { signal, retries: 0 });
    if (sent.ok) return { name, uid, wrote: true, reached: true, result: done };
    const { kind, message } = sent.failure;
    if (kind === 'aborted') {
      wrote = true;
      return notDone('interrupted while it was being sent: it may have been done');
    }
    wrote ||= UNCLEAR.test(kind);
    await clock.sleep(pause, signal);
    const listed = await readTargets(run, action, name);
    if (!listed.ok) return notDone(`${message}; ${listed.failure.message}`);
    const now = listed.value.find((one) => one.uid === uid);
    if (now === undefined) {
      const result = `${done}; perhaps by another client, since the answer was: ${message}`;
      return { name, uid, wrote: true, reached: true, result };
    }
    // A busy server has not begun the write: only the time limit of forcing ends these repetitions.
    if (kind !== 'throttled' && tries++ > 1) return notDone(`${message} (tried twice)`);
    until = `; until then: ${message}`;
    object = now;
  }
}
