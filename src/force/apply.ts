import { at } from '../base/json.ts';
import type { TimelineEntry } from '../base/time.ts';
import { namespacePath } from '../kubernetes/paths.ts';
import { namespaceFacts, typeName } from '../model/facts.ts';
import type { NotInspected } from '../model/finding.ts';
import type { ForceRecord } from '../model/result.ts';
import {
  checkNamespace,
  entryStep,
  inventory,
  type Leftovers,
  recordOrphans,
} from './namespace.ts';
import { freeObjectsOf, GUARD_MS } from './objects.ts';
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

interface ForceDeps extends Omit<Run, 'plan' | 'journal' | 'guard'> {
  /** Waits without writing; whether the namespace is gone by this time (ms since the epoch). */
  isGoneBy(untilMs: number): Promise<boolean>;
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
  const { api, clock, log, signal, over } = deps;
  const { mode, namespace } = first.plan;
  const target = namespaceTarget(namespace.name);
  const askAgain = atMostEvery(GUARD_MS, clock, () => checkNamespace(run));
  const guard = async (): Promise<string | undefined> => {
    const now = over() === undefined ? await askAgain() : undefined;
    return over() ?? (now?.ok === false ? now.failure.message : undefined);
  };
  const journal = new Journal(deps);
  const run: Run = { ...deps, plan: first.plan, journal, guard };
  let seen = first;
  /** By their keys: actions that were told of, and those that a later plan need not try again. */
  const told = new Set<string>();
  const spent = new Set<string>();
  /** What was in the namespace right before its own entries were touched. */
  let left: Leftovers | undefined;

  const open = (): ForceAction[] => run.plan.actions.filter((action) => !spent.has(keyOf(action)));

  const tell = (action: ForceAction, result: string): void => {
    spent.add(keyOf(action));
    if (told.has(keyOf(action))) return;
    told.add(keyOf(action));
    journal.note(action.target, result, action.finalizer);
  };
  const tellAll = (result: string): void => {
    for (const action of open()) tell(action, result);
  };

  const lackingRights = async (): Promise<string[]> => {
    const missing = await missingRights(run, open());
    const lacking = missing.map(rightText);
    if (lacking.length > 0) {
      const rules = grantRules(missing);
      const reason = `rights are missing: ${lacking.join(', ')}; these rules grant just them: ${rules}`;
      journal.refuse(target, reason);
    }
    return lacking;
  };

  const lookAgain = async (compare: boolean): Promise<boolean> => {
    const next = await deps.look(compare);
    if (next === undefined) return false;
    const known = new Set(run.plan.actions.map(keyOf));
    const isNew = next.plan.actions.some((action) => !known.has(keyOf(action)));
    seen = next;
    run.plan = next.plan;
    if (isNew) log.group('Looked again: the plan has changed', renderPlan(next.plan));
    return true;
  };

  /** What is still to be done, with facts that are fresh and rights that suffice. */
  const due = async (): Promise<ForceAction[]> => {
    if (over() !== undefined || open().length === 0) return [];
    if (clock.now() - seen.at > FRESH_MS && !(await lookAgain(true))) {
      const now = await checkNamespace(run);
      const why = now.ok ? 'its owner could not be looked for again' : now.failure.message;
      tellAll(`not done: ${why}`);
      return [];
    }
    // All or nothing: half of a forced teardown helps nobody who has to grant the rest anyway.
    const lacking = await lackingRights();
    if (lacking.length > 0) tellAll(`not done: rights are missing: ${lacking.join(', ')}`);
    return open();
  };

  /** Whether the namespace goes by itself before a new plan has something more to do. */
  const settles = async (): Promise<boolean> => {
    const until = Math.min(deps.settleUntil, clock.now() + SETTLE_MS);
    for (let compare = false; over() === undefined && clock.now() < until; ) {
      if (await deps.isGoneBy(Math.min(until, clock.now() + LOOK_AGAIN_MS))) return true;
      if (over() !== undefined || !(await lookAgain(compare))) continue;
      if (open().some(isObjectAction) || seen.isStuck) return false;
      compare = true;
    }
    return false;
  };

  /**
   * Objects first: what was queued behind a pod, or held by another object, terminates only after it. Whether
   * that was enough.
   */
  const freeObjects = async (): Promise<boolean> => {
    for (;;) {
      const actions = (await due()).filter(isObjectAction);
      if (actions.length === 0) return false;
      const before = journal.writes;
      for (const action of actions) {
        if (over() !== undefined) return false;
        told.add(keyOf(action));
        const worth = await freeObjectsOf(run, action);
        if (worth === 'finished') spent.add(keyOf(action));
      }
      if (journal.writes > before && (await settles())) return true;
    }
  };

  const freeNamespace = async (): Promise<void> => {
    const actions = (await due()).filter(isNamespaceAction);
    if (actions.length === 0) return;
    left = await inventory(run);
    for (const action of actions) {
      if (over() !== undefined) return;
      if (left === undefined) {
        tell(action, 'not done: content remains or could not be read');
        continue;
      }
      spent.add(keyOf(action));
      await runStep(run, entryStep(run, action));
    }
    if (left !== undefined) await deps.isGoneBy(clock.now() + LOOK_AGAIN_MS);
  };

  /** Nothing but a 404 for the name, or another UID, is "gone"; then everything that still answers is listed. */
  const verify = async (): Promise<ForceResult['outcome']> => {
    const got = await api.get(namespacePath(namespace.name), { signal });
    const found = got.ok ? namespaceFacts(got.value) : undefined;
    const isGone = !got.ok && got.failure.kind === 'not-found';
    if (!isGone && (found === undefined || ['', namespace.uid].includes(found.uid)))
      return undefined;
    if (journal.writes === 0) return isGone ? 'deleted' : 'recreated';
    if (left !== undefined) await recordOrphans(run, left, found?.creationTimestamp);
    return 'forced';
  };

  let outcome: ForceResult['outcome'];
  if (mode === 'plan') {
    const lacking = await lackingRights();
    for (const action of open()) {
      const right = rightText(rightFor(action));
      const missing = lacking.includes(right) ? `, but rights are missing: ${right}` : '';
      tell(action, `would be done${missing}`);
    }
  } else {
    if (!(await freeObjects())) await freeNamespace();
    tellAll(`not done: ${over() ?? 'it was not reached'}`);
    outcome = await verify();
  }
  const { actions, orphans, unread, timeline } = journal;
  // Of several plans, the last one: what an earlier one refused may have settled itself.
  const refused = [...run.plan.refused, ...journal.refused];
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
  const [type = '', ...subresource] = resource.split('/');
  return `${verb} ${[typeName({ group, resource: type }), ...subresource].join('/')}`;
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
    return !answer.ok || at(answer.value, 'status', 'allowed') !== false;
  };
  const allowed = await Promise.all(rights.map(isAllowed));
  return rights.filter((_, index) => !allowed[index]);
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
