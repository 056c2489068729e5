import { formatDuration } from '../base/time.ts';
import type { Finding, FindingCode, Remedy, RemedyRole } from '../model/finding.ts';
import type { NamespaceResult, RunResult } from '../model/result.ts';
import type { Cause, Root } from './causes.ts';
import { findingText } from './sentences.ts';
import { diagnosed, literal, type Words } from './words.ts';

const MAX_INSTANCES = 100;
const MAX_BLOCKERS_WITH_REMEDIES = 20;

export interface Remedies {
  title: string;
  /** Whether all have to be done, in their order; otherwise each is enough. */
  isOrdered: boolean;
  /** Whether they only show more about the cause: most readers do not need them. */
  isExtra: boolean;
  actions: Action[];
}

export interface Action {
  text: Words;
  risk?: Words | undefined;
  command?: string | undefined;
  /** Commands that do the same in other places. */
  others: string[];
}

/** An action of one role. `deed`: what makes it the same action in another place. */
interface RoleAction extends Action {
  role: RemedyRole;
  deed: string;
}

/** Findings whose own remedies advise to wait. */
const PATIENT: readonly FindingCode[] = ['content-deleting', 'pod-grace-period', 'owner-running'];

/**
 * Returns the remedies of a cause in groups, those of the root cause first. Equal causes have one action, with the commands
 * for every place.
 */
export function remediesOf(cause: Cause, run: RunResult): Remedies[] {
  const [{ namespace, finding: root }] = cause;
  // The steps of an ordered deletion have these commands.
  const steps = new Set((namespace.order ?? []).map(({ command }) => typeIn(command)));
  const actions: RoleAction[] = [];
  for (const [at, one] of cause.slice(0, 1 + MAX_INSTANCES).entries()) {
    const used = new Set<RoleAction>();
    for (const [finding, remedy] of remediesIn(one)) {
      const { command, role = 'now' } = remedy;
      if (command !== undefined && steps.has(typeIn(command))) continue;
      const action = actionOf(finding, remedy, one, run);
      // Equal causes may differ in the number of their remedies: a command belongs to the first that does the same.
      const isSame = (other: RoleAction): boolean =>
        at === 0
          ? other.text === action.text && other.risk === action.risk
          : other.deed === action.deed && (other.text === action.text || !used.has(other));
      const known = actions.find((other) => other.role === role && isSame(other));
      if (known === undefined) {
        if (at === 0) actions.push(action);
        continue;
      }
      used.add(known);
      const isNew = command !== undefined && ![known.command, ...known.others].includes(command);
      if (isNew) known.others.push(command);
    }
  }
  if (namespace.outcome === 'progressing' && !PATIENT.includes(root.code)) {
    const now = run.timeoutMs > 0 ? ` (now ${formatDuration(run.timeoutMs)})` : '';
    const text = `Give the deletion more time${now}: raise the input ${literal('timeout')}`;
    // More time alone does not help against a cause.
    const role = root.code === 'unexplained' ? 'now' : 'or';
    actions.unshift({ role, deed: '', text, others: [] });
  }
  return grouped(actions, run.kind === 'forecast');
}

function remediesIn({ blockers, links }: Root): [Finding, Remedy][] {
  const findings = [...links.toReversed(), ...blockers.slice(0, MAX_BLOCKERS_WITH_REMEDIES)];
  return [...new Set(findings)].flatMap((finding) =>
    finding.remedies.map((remedy): [Finding, Remedy] => [finding, remedy]),
  );
}

function actionOf(
  finding: Finding,
  { text, command, risk, role = 'now' }: Remedy,
  { links, namespace }: Root,
  run: RunResult,
): RoleAction {
  const scene = { home: namespace.name, now: run.finishedAt };
  const subjects = links.map(({ subject }) => subject);
  return {
    role,
    // The program and the verb: "kubectl patch".
    deed: `${finding.code} ${command?.split(' ', 2).join(' ')}`,
    text: findingText(text.replace(/[.:]$/, ''), finding, scene, subjects),
    command,
    risk: risk === undefined ? undefined : findingText(risk, finding, scene, subjects),
    others: [],
  };
}

/** Returns the beginning of a command: "kubectl delete widgets.example.com". */
function typeIn(command: string): string {
  return command.split(' ', 3).join(' ');
}

/** Groups actions under titles; no group is empty. If no fix is known, those that show more become "What to do". */
function grouped(actions: readonly RoleAction[], isForecast: boolean): Remedies[] {
  const { now = [], or = [], look = [], next = [] } = Object.groupBy(actions, ({ role }) => role);
  const duties = isForecast ? [...next, ...now] : now;
  const isBlind = duties.length === 0;
  const group = (title: string, some: Action[], isExtra = false): Remedies => ({
    title,
    isOrdered: some === duties && some.length > 1,
    isExtra,
    actions: some,
  });
  const instead = or.length === 1 ? 'Alternative' : 'Alternatives';
  // A fix without a command begins with a look at what is wrong.
  const isFirstStep = !isBlind && duties.every(({ command }) => command === undefined);
  const closer = group('Look closer', isBlind ? [] : look, !isFirstStep);
  return [
    isBlind ? group('What to do', look) : group('Fix', duties),
    ...(isFirstStep ? [closer] : []),
    group(isBlind && look.length === 0 ? 'Fix' : instead, or),
    group('Prevent it next time', isForecast ? [] : next),
    ...(isFirstStep ? [] : [closer]),
  ].filter(({ actions: some }) => some.length > 0);
}

/** Returns the steps in which a namespace can be deleted without a hang; none if the order does not matter. */
export function stepsOf({ name, order = [] }: NamespaceResult): Action[] {
  if (order.length === 0) return [];
  const left = order.filter(({ isByHand }) => isByHand).length;
  const others = left < order.length ? 'does the other steps' : 'does not delete them';
  const then = `Then delete the namespace. ${literal('delete: ordered')} ${left === 0 ? 'does these steps' : others}`;
  const steps = order.map(({ why, command, isByHand }) => ({
    text: isByHand
      ? `Delete these objects yourself, and wait until they are deleted; ${diagnosed(why)}`
      : `Delete these objects, and wait until they are deleted, because ${diagnosed(why)}`,
    command,
    others: [],
  }));
  return [...steps, { text: then, command: `kubectl delete namespace ${name}`, others: [] }];
}
