import { at, stringAt } from '../base/json.ts';
import type { TimelineEntry } from '../base/time.ts';
import { namespacePath } from '../kubernetes/paths.ts';
import type { NotInspected } from '../model/finding.ts';
import type { ForceRecord } from '../model/result.ts';
import {
  checkNamespace,
  entryStep,
  inventory,
  type Leftovers,
  recordOrphans,
} from './namespace.ts';
import { freeObjects, GUARD_MS } from './objects.ts';
import {
  type ForceAction,
  type ForcePlan,
  isNamespaceAction,
  isObjectAction,
  keyOf,
  namespaceTarget,
  renderPlan,
} from './plan.ts';
import { atMostEvery, Journal, type Run, runStep } from './step.ts';

/** Facts about owners may be this old when an action begins; older ones are read again first. */
export const FRESH_MS = 30_000;
/** How long to wait before looking whether something new has begun to terminate. */
const LOOK_AGAIN_MS = 10_000;
/** After a write most namespaces go by themselves; the controller may be in a back-off of up to 60 s. */
const SETTLE_MS = 70_000;

/** A plan, and what it was made from. */
export interface Look {
  plan: ForcePlan;
  /** When its facts had been read, in ms since the epoch. */
  at: number;
  /** Nothing moves, and what holds the namespace is known: waiting achieves nothing. */
  isStuck: boolean;
}

interface ForceDeps extends Omit<Run, 'plan'> {
  /** Waits without writing until the namespace is gone or this time (ms since the epoch) has come. */
  waitGone(untilMs: number): Promise<'gone' | 'still-there'>;
  /**
   * Reads, diagnoses and plans again. `compare`: with the look before; not after our own writes, since
   * what they set in motion is not somebody at work. Undefined: the namespace is gone or cannot be read.
   */
  look(compare: boolean): Promise<Look | undefined>;
  /** No waiting after this time, so that what comes after it still has time. */
  settleUntil: number;
}

interface ForceResult {
  record: ForceRecord;
  /** What became of the namespace, where forcing settled it; otherwise the diagnosed outcome stands. */
  outcome: 'forced' | 'deleted' | 'recreated' | undefined;
  /** Types in which nobody could look for orphans. */
  unread: NotInspected[];
  timeline: TimelineEntry[];
}

/**
 * Does what the plan allows, in its order, and tells what became of it. The plan must have been shown
 * before. Mode `plan` goes the same way up to the first write, and stops there.
 */
export async function applyForce(first: Look, deps: ForceDeps): Promise<ForceResult> {
  const { api, clock, log, signal, over, settleUntil, waitGone } = deps;
  const run: Run = { api, clock, log, signal, over, plan: first.plan };
  const journal = new Journal(run);
  let seen = first;
  /** By their keys: actions that were told of, and those that a later plan need not try again. */
  const told = new Set<string>();
  const spent = new Set<string>();
  /** What was in the namespace right before its own entries were touched. */
  let left: Leftovers | undefined;

  const askStanding = atMostEvery(GUARD_MS, clock, () => checkNamespace(run));
  const guard = async (): Promise<string | undefined> => {
    const standing = over() === undefined ? await askStanding() : undefined;
    return over() ?? (standing?.ok === false ? standing.reason : undefined);
  };

  const open = (): ForceAction[] => seen.plan.actions.filter((action) => !spent.has(keyOf(action)));

  const tell = (action: ForceAction, result: string): void => {
    spent.add(keyOf(action));
    if (told.has(keyOf(action))) return;
    told.add(keyOf(action));
    journal.note(action.target, result, action.finalizer);
  };

  const lackingRights = async (): Promise<string[]> => {
    const missing = await missingRights(run, open());
    const lacking = missing.map(rightText);
    if (lacking.length > 0) {
      journal.refuse(
        namespaceTarget(run.plan.namespace.name),
        `rights are missing: ${lacking.join(', ')}; these rules grant just them: ${grantRules(missing)}`,
      );
    }
    return lacking;
  };

  const lookAgain = async (compare: boolean): Promise<boolean> => {
    const next = await deps.look(compare);
    if (next === undefined) return false;
    const known = new Set(seen.plan.actions.map(keyOf));
    const isNew = next.plan.actions.some((action) => !known.has(keyOf(action)));
    seen = next;
    if (isNew) log.group('Looked again: the plan has changed', renderPlan(next.plan));
    return true;
  };

  /** Whether there is something to do, with facts that are fresh and rights that suffice. */
  const mayAct = async (): Promise<boolean> => {
    if (over() !== undefined || open().length === 0) return false;
    if (clock.now() - seen.at > FRESH_MS && !(await lookAgain(true))) {
      const standing = await checkNamespace(run);
      const why = standing.ok ? 'its owner could not be looked for again' : standing.reason;
      for (const action of open()) tell(action, `not done: ${why}`);
      return false;
    }
    // All or nothing: half of a forced teardown helps nobody who has to grant the rest anyway.
    const lacking = await lackingRights();
    const why = `not done: rights are missing: ${lacking.join(', ')}`;
    for (const action of lacking.length > 0 ? open() : []) tell(action, why);
    return open().length > 0;
  };

  /** Waits for the namespace to go by itself, or for a new plan to have something more to do. */
  const settle = async (): Promise<'gone' | 'go-on'> => {
    const until = Math.min(settleUntil, clock.now() + SETTLE_MS);
    for (let compare = false; over() === undefined && clock.now() < until; ) {
      const step = Math.min(until, clock.now() + LOOK_AGAIN_MS);
      if ((await waitGone(step)) === 'gone') return 'gone';
      if (over() !== undefined || !(await lookAgain(compare))) continue;
      if (open().some(isObjectAction) || seen.isStuck) return 'go-on';
      compare = true;
    }
    return 'go-on';
  };

  /** Objects first: what was queued behind a pod, or held by another object, terminates only after it. */
  const freeAllObjects = async (): Promise<'gone' | 'go-on'> => {
    while (await mayAct()) {
      const before = journal.writes;
      const actions = open().filter(isObjectAction);
      if (actions.length === 0) return 'go-on';
      for (const action of actions) {
        if (over() !== undefined) return 'go-on';
        told.add(keyOf(action));
        const worth = await freeObjects(run, action, seen.plan.takenAt, guard, journal);
        if (worth === 'finished') spent.add(keyOf(action));
      }
      if (journal.writes > before && (await settle()) === 'gone') return 'gone';
    }
    return 'go-on';
  };

  const freeNamespace = async (): Promise<void> => {
    if (!(await mayAct())) return;
    const actions = open().filter(isNamespaceAction);
    if (actions.length === 0) return;
    left = await inventory(run, journal);
    for (const action of actions) {
      if (over() !== undefined) return;
      if (left === undefined) {
        tell(action, 'not done: content remains or could not be read');
        continue;
      }
      spent.add(keyOf(action));
      await runStep(run, entryStep(run, action), journal);
    }
    if (left !== undefined) await waitGone(clock.now() + LOOK_AGAIN_MS);
  };

  /** Nothing but a 404 for the name, or another UID, is "gone"; then everything that still answers is listed. */
  const verify = async (): Promise<ForceResult['outcome']> => {
    const { name, uid } = run.plan.namespace;
    const got = await api.get(namespacePath(name), { signal });
    const found = got.ok ? stringAt(got.value, 'metadata', 'uid') : undefined;
    const isGone = !got.ok && got.failure.kind === 'not-found';
    if (!isGone && (found === undefined || found === uid)) return undefined;
    if (journal.writes === 0) return isGone ? 'deleted' : 'recreated';
    const created = got.ok ? stringAt(got.value, 'metadata', 'creationTimestamp') : undefined;
    if (left !== undefined) await recordOrphans(run, left, created, journal);
    return 'forced';
  };

  const act = async (): Promise<ForceResult['outcome']> => {
    if ((await freeAllObjects()) === 'go-on') await freeNamespace();
    const why = over() ?? 'it was not reached';
    for (const action of open()) tell(action, `not done: ${why}`);
    return verify();
  };

  const tellPlan = async (): Promise<undefined> => {
    const lacking = await lackingRights();
    for (const action of open()) {
      const right = rightText(rightFor(action));
      const missing = lacking.includes(right) ? `, but rights are missing: ${right}` : '';
      tell(action, `would be done${missing}`);
    }
  };

  const { mode } = first.plan;
  const outcome = mode === 'plan' ? await tellPlan() : await act();
  const { actions, orphans, unread, timeline } = journal;
  // Of several plans, the last one: what an earlier one refused may have settled itself.
  const refused = [...seen.plan.refused, ...journal.refused];
  return { record: { mode, actions, orphans, refused }, outcome, unread, timeline };
}

/** One right that a write needs, in RBAC's words. */
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

/** "patch widgets.example.com" */
function rightText({ verb, group, resource }: Right): string {
  const [type, subresource] = resource.split('/');
  return `${verb} ${type}${group === '' ? '' : `.${group}`}${subresource === undefined ? '' : `/${subresource}`}`;
}

/**
 * Those that the API server says we lack. Requests below a namespace, and those for a namespace itself,
 * are authorized in it. Where the question is not answered, the write itself will be.
 */
async function missingRights(
  { api, signal, plan: { namespace } }: Run,
  actions: readonly ForceAction[],
): Promise<Right[]> {
  const rights = [...new Map(actions.map(rightFor).map((one) => [rightText(one), one])).values()];
  const answers = await Promise.all(
    rights.map(({ verb, group, resource: path }) => {
      const [resource, subresource] = path.split('/');
      const ofNamespace = resource === 'namespaces' ? { name: namespace.name } : {};
      const where = { namespace: namespace.name, verb, group, resource, ...ofNamespace };
      const resourceAttributes = subresource === undefined ? where : { ...where, subresource };
      return api.send(
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
    }),
  );
  return rights.filter((_, index) => {
    const answer = answers[index];
    return answer?.ok === true && at(answer.value, 'status', 'allowed') === false;
  });
}

/** The RBAC rules that grant just these, in YAML's flow style. */
function grantRules(rights: readonly Right[]): string {
  const alike = Map.groupBy(rights, ({ group, verb }) => `${group} ${verb}`).values();
  const rules = Array.from(alike, (same) => {
    const { group, verb } = same[0] as Right;
    const resources = same.map(({ resource }) => JSON.stringify(resource));
    return `{apiGroups: ["${group}"], resources: [${resources.join(', ')}], verbs: ["${verb}"]}`;
  });
  return `[${rules.join(', ')}]`;
}
