import { valueAt } from '../base/json.ts';
import type { Log } from '../base/log.ts';
import type { TimelineEntry } from '../base/time.ts';
import { typeName } from '../model/facts.ts';
import type { NotInspected } from '../model/finding.ts';
import type { Outcome } from '../model/outcome.ts';
import type { ForceRecord } from '../model/result.ts';
import { readNamespace } from '../observe/namespaces.ts';
import { type Leftovers, listAcceptedLeftovers, recordOrphans } from './leftovers.ts';
import {
  actionKey,
  type ForceAction,
  type ForcePlan,
  isNamespaceAction,
  isObjectAction,
  namespaceTarget,
  renderPlan,
} from './plan.ts';
import { atMostEvery, type ForceRun, Journal } from './step.ts';
import { checkNamespace, GUARD_MS, performAction } from './steps.ts';

/** The time after which no write begins, so that the result can still be verified. */
export const LAST_WRITE_MS = 105_000;
/** The time after which the gate no longer waits if it may have to write to the namespace itself. */
const LAST_WAIT_MS = 80_000;
/** The greatest age of facts about owners when an action begins; older facts are read again first. */
export const FRESH_MS = 30_000;
/** The time after which the gate checks whether other objects have begun to terminate. */
const EXAMINE_AGAIN_MS = 10_000;
/**
 * The time to wait after a change: most namespaces are then deleted; the controller may be in a back-off of up to
 * 60 s.
 */
const SETTLE_MS = 70_000;

/** A plan, and the observation on which it is based. */
export interface PlanAndObservation {
  plan: ForcePlan;
  /** The time at which its facts were read, in ms since the epoch. */
  at: number;
  /** Whether no content is being deleted and the cause is known, so that waiting does not help. */
  isStuck: boolean;
}

interface CarryOutDeps extends Pick<ForceRun, 'api' | 'clock' | 'signal' | 'stopReason'> {
  log: Log;
  /** When forcing began, in ms since the epoch. */
  startedAt: number;
  /**
   * Reads, diagnoses and plans again; undefined if the namespace was deleted or cannot be read. `compare`: compares with
   * the observation before. Not after writes of the gate: their effects would look like the work of a controller.
   */
  planAgain(compare: boolean): Promise<PlanAndObservation | undefined>;
  /** Waits without writing, and reports whether the namespace was deleted by this time (ms since the epoch). */
  isDeletedBy(untilMs: number): Promise<boolean>;
}

/** A plan that is being carried out; later observations replace it. */
interface Enforcement
  extends ForceRun,
    Pick<CarryOutDeps, 'startedAt' | 'planAgain' | 'isDeletedBy'> {
  seen: PlanAndObservation;
  /** Keys of the actions whose result was logged. */
  logged: Set<string>;
  /** Keys of the actions that a later plan need not try again. */
  finished: Set<string>;
}

/** The result of forcing. Without an outcome, the outcome of the diagnosis remains. */
interface Enforced {
  outcome: Outcome | undefined;
  forced: ForceRecord;
  timeline: TimelineEntry[];
  /** Types that could not be searched for orphans. */
  unread: NotInspected[];
}

/**
 * Carries out the plan in its order, and reports the results. The plan must have been logged
 * before. Mode `plan` takes the same steps up to the first write, and stops there.
 */
export async function carryOut(first: PlanAndObservation, deps: CarryOutDeps): Promise<Enforced> {
  const run = beginEnforcement(first, deps);
  let outcome: Outcome | undefined;
  if (first.plan.mode === 'plan') {
    const lacking = await lackingRights(run);
    for (const action of openActions(run)) {
      const right = rightText(rightFor(action));
      const missing = lacking.includes(right) ? `, but permissions are missing: ${right}` : '';
      recordResult(run, action, `would be done${missing}`);
    }
  } else {
    const left = (await freeObjects(run)) ? undefined : await freeNamespace(run);
    recordAll(run, `not done: ${run.stopReason() ?? 'it was not reached'}`);
    outcome = await verify(run, left);
    // A finalizer that was removed must not be reported as the cause.
    const isOutdated = outcome === undefined && run.journal.changedAt > run.seen.at;
    if (isOutdated && (await run.planAgain(false)) === undefined) outcome = await verify(run, left);
  }
  const { actions, orphans, refused, timeline, unread } = run.journal;
  const { mode } = first.plan;
  // The last plan counts: an earlier refusal may no longer apply.
  const forced = { mode, actions, orphans, refused: [...run.plan.refused, ...refused] };
  return { outcome, forced, timeline, unread };
}

function beginEnforcement(
  first: PlanAndObservation,
  { log: runLog, ...deps }: CarryOutDeps,
): Enforcement {
  const { name } = first.plan.namespace;
  // Several namespaces are forced side by side.
  const log: ForceRun['log'] = {
    line: (text) => runLog.line(`${name}: ${text}`),
    group: (title, lines) => runLog.group(`${name}: ${title}`, lines),
  };
  const run: Enforcement = {
    ...deps,
    log,
    journal: new Journal({ ...deps, log }),
    seen: first,
    logged: new Set(),
    finished: new Set(),
    get plan() {
      return this.seen.plan;
    },
    guard: async () => {
      const now = run.stopReason() === undefined ? await check() : undefined;
      if (now?.ok === false) return run.stopReason() ?? now.failure.message;
      return (
        run.stopReason() ??
        (now && now.value === undefined ? 'the namespace was deleted' : undefined)
      );
    },
  };
  const readAgain = () => checkNamespace(run);
  // The removal of the label stops all later writes; without a label, writes of one moment share one answer.
  const check =
    first.plan.label === undefined ? atMostEvery(GUARD_MS, run.clock, readAgain) : readAgain;
  return run;
}

function openActions({ plan, finished }: Enforcement): ForceAction[] {
  return plan.actions.filter((action) => !finished.has(actionKey(action)));
}

function recordResult(
  { journal, finished, logged }: Enforcement,
  action: ForceAction,
  result: string,
): void {
  finished.add(actionKey(action));
  if (logged.has(actionKey(action))) return;
  logged.add(actionKey(action));
  journal.note(action.target, result, action.finalizer);
}

function recordAll(run: Enforcement, result: string): void {
  for (const action of openActions(run)) recordResult(run, action, result);
}

/**
 * Returns the permissions that the open actions lack. Records a refusal that names them and the RBAC rules that grant
 * them.
 */
async function lackingRights(run: Enforcement): Promise<string[]> {
  const missing = await missingRights(run, openActions(run));
  const lacking = missing.map(rightText);
  if (lacking.length > 0) {
    const reason = `permissions are missing: ${lacking.join(', ')}; these rules grant only these: ${grantRules(missing)}`;
    run.journal.refuse(namespaceTarget(run.plan.namespace.name), reason);
  }
  return lacking;
}

async function updatePlan(run: Enforcement, compare: boolean): Promise<boolean> {
  const next = await run.planAgain(compare);
  if (next === undefined) return false;
  const known = new Set(run.plan.actions.map(actionKey));
  const isNew = next.plan.actions.some((action) => !known.has(actionKey(action)));
  run.seen = next;
  if (isNew) run.log.group('Examined again: the plan has changed', renderPlan(next.plan));
  return true;
}

/** Returns the actions that remain, planned from a fresh snapshot and with sufficient permissions. */
async function dueActions(run: Enforcement): Promise<ForceAction[]> {
  if (run.stopReason() !== undefined || openActions(run).length === 0) return [];
  if (run.clock.now() - run.seen.at > FRESH_MS && !(await updatePlan(run, true))) {
    const now = await checkNamespace(run);
    const why = now.ok ? 'its owner could not be determined again' : now.failure.message;
    recordAll(run, `not done: ${why}`);
    return [];
  }
  // All or nothing: half of a forced teardown does not help, since the other permissions are needed anyway.
  const lacking = await lackingRights(run);
  if (lacking.length > 0)
    recordAll(run, `not done: permissions are missing: ${lacking.join(', ')}`);
  return openActions(run);
}

/**
 * Waits for Kubernetes to finish the deletion, and reports whether it did. Stops early if a new plan has further
 * objects to free.
 */
async function isDeletedByItself(run: Enforcement): Promise<boolean> {
  const { clock, stopReason, startedAt } = run;
  const latest = startedAt + (run.plan.mode === 'namespace' ? LAST_WAIT_MS : LAST_WRITE_MS);
  const until = Math.min(latest, clock.now() + SETTLE_MS);
  for (let compare = false; stopReason() === undefined && clock.now() < until; ) {
    if (await run.isDeletedBy(Math.min(until, clock.now() + EXAMINE_AGAIN_MS))) return true;
    if (stopReason() !== undefined || !(await updatePlan(run, compare))) continue;
    if (openActions(run).some(isObjectAction) || run.seen.isStuck) return false;
    compare = true;
  }
  return false;
}

/**
 * Frees the objects, and reports whether that was enough. Objects come first: those queued behind a pod, or held by
 * another object, terminate only after it.
 */
async function freeObjects(run: Enforcement): Promise<boolean> {
  for (;;) {
    const actions = (await dueActions(run)).filter(isObjectAction);
    if (actions.length === 0) return false;
    const before = run.journal.changes;
    for (const action of actions) {
      if (run.stopReason() !== undefined) return false;
      run.logged.add(actionKey(action));
      if ((await performAction(run, action)) === 'finished') run.finished.add(actionKey(action));
    }
    if (run.journal.changes > before && (await isDeletedByItself(run))) return true;
  }
}

/** Removes the namespace's own entries, and returns the content of the namespace right before. */
async function freeNamespace(run: Enforcement): Promise<Leftovers | undefined> {
  const actions = (await dueActions(run)).filter(isNamespaceAction);
  if (actions.length === 0) return undefined;
  const left = await listAcceptedLeftovers(run);
  for (const action of actions) {
    if (run.stopReason() !== undefined) return left;
    if (left === undefined) {
      recordResult(run, action, 'not done: content remains or could not be read');
      continue;
    }
    run.finished.add(actionKey(action));
    await performAction(run, action);
  }
  if (left !== undefined) await run.isDeletedBy(run.clock.now() + EXAMINE_AGAIN_MS);
  return left;
}

/**
 * Verifies the deletion: only a 404 for the name, or another UID, proves it. Then lists all objects that still exist.
 * Returns undefined if forcing did not change the outcome.
 */
async function verify(run: Enforcement, left: Leftovers | undefined): Promise<Outcome | undefined> {
  const { name, uid } = run.plan.namespace;
  const now = await readNamespace(name, run);
  if (!now.ok || now.value?.uid === uid) return undefined;
  if (run.journal.writes === 0) return now.value === undefined ? 'deleted' : 'recreated';
  if (left !== undefined) await recordOrphans(run, left, now.value?.creationTimestamp);
  return 'forced';
}

/** A permission that a write needs, in terms of RBAC. */
interface Right {
  verb: 'patch' | 'update' | 'delete';
  group: string;
  /** With its subresource, if any: `namespaces/finalize`. */
  resource: string;
}

function rightFor(action: ForceAction): Right {
  switch (action.step) {
    case 'object-finalizer':
      return { verb: 'patch', group: action.type.group, resource: action.type.resource };
    case 'overdue-pods':
      return { verb: 'delete', group: '', resource: 'pods' };
    case 'namespace-finalizer':
      return { verb: 'patch', group: '', resource: 'namespaces' };
    case 'namespace-spec-finalizer':
      return { verb: 'update', group: '', resource: 'namespaces/finalize' };
  }
}

/** Writes a permission as "patch widgets.example.com". */
function rightText({ verb, group, resource }: Right): string {
  const [type = '', ...subresource] = resource.split('/');
  return `${verb} ${[typeName({ group, resource: type }), ...subresource].join('/')}`;
}

/**
 * Returns the permissions that are missing according to the API server. Requests below a namespace, and those for
 * a namespace itself, are authorized in it. If the question is not answered, the write itself shows it.
 */
async function missingRights(
  { api, signal, plan: { namespace } }: ForceRun,
  actions: readonly ForceAction[],
): Promise<Right[]> {
  const rights = [...new Map(actions.map(rightFor).map((one) => [rightText(one), one])).values()];
  const isAllowed = async ({ verb, group, resource: path }: Right): Promise<boolean> => {
    const [resource, subresource] = path.split('/');
    const resourceAttributes = {
      ...{ namespace: namespace.name, verb, group, resource },
      ...(resource === 'namespaces' ? { name: namespace.name } : {}),
      ...(subresource === undefined ? {} : { subresource }),
    };
    const answer = await api.send(
      {
        method: 'POST',
        path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
        body: {
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SelfSubjectAccessReview',
          spec: { resourceAttributes },
        },
      },
      { signal },
    );
    return !answer.ok || valueAt(answer.value, 'status', 'allowed') !== false;
  };
  const allowed = await Promise.all(rights.map(isAllowed));
  return rights.filter((_, index) => !allowed[index]);
}

/** Returns the RBAC rules that grant only these permissions, in YAML's flow style. */
function grantRules(rights: readonly Right[]): string {
  const alike = Map.groupBy(rights, ({ group, verb }) => `${group} ${verb}`).values();
  const rules = Array.from(alike, (same) => {
    const { group, verb } = same[0] as Right;
    const resources = same.map(({ resource }) => JSON.stringify(resource));
    return `{apiGroups: ["${group}"], resources: [${resources.join(', ')}], verbs: ["${verb}"]}`;
  });
  return `[${rules.join(', ')}]`;
}
