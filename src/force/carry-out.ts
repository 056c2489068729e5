import { valueAt } from '../base/json.ts';
import { typeName } from '../model/facts/metadata.ts';
import type { Outcome } from '../model/outcome.ts';
import { readNamespace } from '../observe/namespaces.ts';
import { type Leftovers, listAcceptedLeftovers, recordOrphans } from './leftovers.ts';
import { actionKey, type ForceAction, namespaceTarget, renderPlan } from './plan.ts';
import { atMostEvery, type CurrentPlan, type ForceDeps, type ForceRun, Journal } from './step.ts';
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

/**
 * Carries out the plan in its order, and reports the results; without an outcome, the outcome of the diagnosis
 * remains. The plan must have been logged before. Mode `plan` takes the same steps up to the first write, and stops
 * there.
 */
export async function carryOut(plan: CurrentPlan, deps: ForceDeps) {
  const run = beginForcing(plan, deps);
  let outcome: Outcome | undefined;
  if (plan.mode === 'plan') {
    const lacking = await lackingRights(run);
    for (const action of openActions(run)) {
      const right = rightText(action);
      const missing = lacking.includes(right) ? `, but permissions are missing: ${right}` : '';
      recordResult(run, action, `would be done${missing}`);
    }
  } else {
    const left = (await freeObjects(run)) ? undefined : await freeNamespace(run);
    recordAll(run, `not done: ${run.stopReason() ?? 'it was not reached'}`);
    outcome = await verify(run, left);
    // A finalizer that was removed must not be reported as the cause.
    const isOutdated = outcome === undefined && run.journal.changedAt > run.plan.readAt;
    if (isOutdated && (await run.planAgain(false)) === undefined) outcome = await verify(run, left);
  }
  const { actions, orphans, refused, timeline, unread } = run.journal;
  // The last plan counts: an earlier refusal may no longer apply.
  const allRefused = [...run.plan.refused, ...refused];
  const forced = { mode: plan.mode, actions, orphans, refused: allRefused };
  return { outcome, forced, timeline, unread };
}

function beginForcing(plan: CurrentPlan, deps: ForceDeps): ForceRun {
  const { name } = plan.namespace;
  // Several namespaces are forced side by side.
  const log: ForceDeps['log'] = {
    line: (text) => deps.log.line(`${name}: ${text}`),
    group: (title, lines) => deps.log.group(`${name}: ${title}`, lines),
  };
  const readAgain = () => checkNamespace(run);
  // The removal of the label stops all later writes; without a label, writes of one moment share one answer.
  const check = plan.label === undefined ? atMostEvery(GUARD_MS, deps.clock, readAgain) : readAgain;
  const guard = async (): Promise<string | undefined> => {
    if (run.stopReason() !== undefined) return run.stopReason();
    const now = await check();
    const deleted = now.ok && now.value === undefined ? 'the namespace was deleted' : undefined;
    return run.stopReason() ?? (now.ok ? deleted : now.failure.message);
  };
  const run: ForceRun = { ...deps, log, plan, guard, journal: new Journal({ ...deps, log }) };
  return run;
}

function openActions({ plan, journal }: ForceRun): ForceAction[] {
  return plan.actions.filter((action) => journal.tried.get(actionKey(action)) !== 'finished');
}

/** Records the result of an action that was not carried out; one that was tried before has its results already. */
function recordResult({ journal }: ForceRun, action: ForceAction, result: string): void {
  const key = actionKey(action);
  if (!journal.tried.has(key)) journal.note(action.target, result, action.finalizer);
  journal.tried.set(key, 'finished');
}

function recordAll(run: ForceRun, result: string): void {
  for (const action of openActions(run)) recordResult(run, action, result);
}

async function updatePlan(run: ForceRun, compare: boolean): Promise<boolean> {
  const next = await run.planAgain(compare);
  if (next === undefined) return false;
  const known = new Set(run.plan.actions.map(actionKey));
  const isNew = next.actions.some((action) => !known.has(actionKey(action)));
  run.plan = next;
  if (isNew) run.log.group('Examined again: the plan has changed', renderPlan(next));
  return true;
}

/** Returns the actions of one level that remain, planned from a fresh snapshot and with sufficient permissions. */
async function dueActions(run: ForceRun, level: ForceAction['needs']): Promise<ForceAction[]> {
  if (run.stopReason() !== undefined || openActions(run).length === 0) return [];
  if (run.clock.now() - run.plan.readAt > FRESH_MS && !(await updatePlan(run, true))) {
    const now = await checkNamespace(run);
    const why = now.ok ? 'its owner could not be determined again' : now.failure.message;
    recordAll(run, `not done: ${why}`);
    return [];
  }
  // All or nothing: half of a forced teardown does not help, since the other permissions are needed anyway.
  const lacking = await lackingRights(run);
  if (lacking.length > 0)
    recordAll(run, `not done: permissions are missing: ${lacking.join(', ')}`);
  return openActions(run).filter(({ needs }) => needs === level);
}

/**
 * Waits for Kubernetes to finish the deletion, and reports whether it did. Stops early if a new plan has further
 * objects to free.
 */
async function isDeletedByItself(run: ForceRun): Promise<boolean> {
  const { clock, stopReason, startedAt } = run;
  const latest = startedAt + (run.plan.mode === 'namespace' ? LAST_WAIT_MS : LAST_WRITE_MS);
  const until = Math.min(latest, clock.now() + SETTLE_MS);
  for (let compare = false; stopReason() === undefined && clock.now() < until; ) {
    if (await run.isDeletedBy(Math.min(until, clock.now() + EXAMINE_AGAIN_MS))) return true;
    if (stopReason() !== undefined || !(await updatePlan(run, compare))) continue;
    if (openActions(run).some(({ needs }) => needs === 'objects') || run.plan.isStuck) return false;
    compare = true;
  }
  return false;
}

/**
 * Frees the objects, and reports whether that was enough. Objects come first: those queued behind a pod, or held by
 * another object, terminate only after it.
 */
async function freeObjects(run: ForceRun): Promise<boolean> {
  const { journal } = run;
  for (;;) {
    const actions = await dueActions(run, 'objects');
    if (actions.length === 0) return false;
    const before = journal.changes;
    for (const action of actions) {
      if (run.stopReason() !== undefined) return false;
      journal.tried.set(actionKey(action), await performAction(run, action));
    }
    if (journal.changes > before && (await isDeletedByItself(run))) return true;
  }
}

/** Removes the namespace's own entries, and returns the content of the namespace right before. */
async function freeNamespace(run: ForceRun): Promise<Leftovers | undefined> {
  const actions = await dueActions(run, 'namespace');
  if (actions.length === 0) return undefined;
  const left = await listAcceptedLeftovers(run);
  for (const action of actions) {
    if (run.stopReason() !== undefined) return left;
    if (left === undefined) {
      recordResult(run, action, 'not done: content remains or could not be read');
      continue;
    }
    run.journal.tried.set(actionKey(action), await performAction(run, action));
  }
  if (left !== undefined) await run.isDeletedBy(run.clock.now() + EXAMINE_AGAIN_MS);
  return left;
}

/**
 * Verifies the deletion: only a 404 for the name, or another UID, proves it. Then lists all objects that still exist.
 * Returns undefined if forcing did not change the outcome.
 */
async function verify(run: ForceRun, left: Leftovers | undefined): Promise<Outcome | undefined> {
  const { name, uid } = run.plan.namespace;
  const now = await readNamespace(name, run);
  if (!now.ok || now.value?.uid === uid) return undefined;
  if (run.journal.writes === 0) return now.value === undefined ? 'deleted' : 'recreated';
  if (left !== undefined) await recordOrphans(run, left, now.value?.creationTimestamp);
  return 'forced';
}

/** A permission that a write needs, in terms of RBAC. */
type Right = Pick<ForceAction, 'verb' | 'type'>;

/** Writes a permission as "patch widgets.example.com". */
function rightText({ verb, type }: Right): string {
  return `${verb} ${typeName(type)}`;
}

/**
 * Returns the permissions that the open actions lack according to the API server. Requests below a namespace, and
 * those for a namespace itself, are authorized in it. If the question is not answered, the write itself shows it.
 * Records a refusal that names them and the RBAC rules that grant them.
 */
async function lackingRights(run: ForceRun): Promise<string[]> {
  const { api, signal, journal, plan } = run;
  const namespace = plan.namespace.name;
  const rights = new Map(openActions(run).map((action) => [rightText(action), action])).values();
  const isAllowed = async ({ verb, type }: Right): Promise<boolean> => {
    const [resource, subresource] = type.resource.split('/');
    const name = resource === 'namespaces' ? namespace : undefined;
    const resourceAttributes = { namespace, verb, group: type.group, resource, name, subresource };
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
  const answers = rights.map(async (right) => ((await isAllowed(right)) ? [] : [right]));
  const missing = (await Promise.all(answers)).flat();
  const lacking = missing.map(rightText);
  if (lacking.length > 0) {
    const reason = `permissions are missing: ${lacking.join(', ')}; these rules grant only these: ${grantRules(missing)}`;
    journal.refuse(namespaceTarget(namespace), reason);
  }
  return lacking;
}

/** Returns the RBAC rules that grant only these permissions, in YAML's flow style. */
function grantRules(rights: readonly Right[]): string {
  const alike = Map.groupBy(rights, ({ verb, type }) => `${type.group} ${verb}`).values();
  const rules = alike.map((same) => {
    const { verb, type } = same[0] as Right;
    const resources = same.map((right) => JSON.stringify(right.type.resource));
    return `{apiGroups: ["${type.group}"], resources: [${resources.join(', ')}], verbs: ["${verb}"]}`;
  });
  return `[${[...rules].join(', ')}]`;
}
