import { formatDuration } from '../base/time.ts';
import type { FindingCode, RemedyRole } from '../model/finding.ts';
import type { NamespaceResult, RunResult } from '../model/result.ts';
import type { Cause } from './causes.ts';
import { findingText } from './sentences.ts';
import { diagnosed, literal, type Words } from './words.ts';

/** Limits for what equal causes and many objects add to the commands of one action. */
const MAX_INSTANCES = 100;
const MAX_BLOCKERS_WITH_REMEDIES = 20;

export interface Remedies {
  title: string;
  /** Whether all have to be done, in their order; otherwise each is enough. */
  isOrdered: boolean;
  actions: Action[];
}

export interface Action {
  text: Words;
  risk?: Words | undefined;
  /** Commands that do the same, one for each place. */
  commands: string[];
}

/** An action of one role. `deed`: what makes it the same action in another place. */
type RoleAction = Action & { role: RemedyRole; deed: string };

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
  for (const [at, { blockers, links, namespace: place }] of cause
    .slice(0, 1 + MAX_INSTANCES)
    .entries()) {
    const scene = { home: place.name, now: run.finishedAt };
    const subjects = links.map(({ subject }) => subject);
    const used = new Set<RoleAction>();
    const findings = [...links.toReversed(), ...blockers.slice(0, MAX_BLOCKERS_WITH_REMEDIES)];
    for (const finding of new Set(findings)) {
      const words = (text: string): Words => findingText(text, finding, scene, subjects);
      for (const { text, command, risk, role = 'now' } of finding.remedies) {
        if (command !== undefined && steps.has(typeIn(command))) continue;
        const action: RoleAction = {
          role,
          // The program and the verb: "kubectl patch".
          deed: `${finding.code} ${command?.split(' ', 2).join(' ')}`,
          text: words(text.replace(/[.:]$/, '')),
          risk: risk === undefined ? undefined : words(risk),
          commands: command === undefined ? [] : [command],
        };
        const same = actions.filter((one) => one.role === role);
        // Equal causes may differ in the number of their remedies: a command belongs to the first that does the same.
        const known =
          same.find((one) => one.text === action.text) ??
          same.find((one) => at > 0 && one.deed === action.deed && !used.has(one));
        if (known === undefined && at === 0) actions.push(action);
        if (known === undefined) continue;
        used.add(known);
        known.commands = [...new Set([...known.commands, ...action.commands])];
      }
    }
  }
  if (namespace.outcome === 'progressing' && !PATIENT.includes(root.code)) {
    const now = run.timeoutMs > 0 ? ` (now ${formatDuration(run.timeoutMs)})` : '';
    const text = `Give the deletion more time${now}: raise the input ${literal('timeout')}`;
    // More time alone does not help against a cause.
    const role = root.code === 'unexplained' ? 'now' : 'or';
    actions.unshift({ role, deed: '', text, commands: [] });
  }
  return grouped(actions, run.kind === 'forecast');
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
  const groups: [string, Action[]][] = [
    ['Fix', duties],
    ['What to do', isBlind ? look : []],
    [isBlind && look.length === 0 ? 'Fix' : or.length === 1 ? 'Alternative' : 'Alternatives', or],
    ['Prevent it next time', isForecast ? [] : next],
    ['Look closer', isBlind ? [] : look],
  ];
  return groups
    .filter(([, some]) => some.length > 0)
    .map(([title, some]) => ({
      title,
      isOrdered: some === duties && some.length > 1,
      actions: some,
    }));
}

/** Returns the steps in which a namespace can be deleted without a hang; none if the order does not matter. */
export function stepsOf({ name, order = [] }: NamespaceResult): Action[] {
  if (order.length === 0) return [];
  const does = order.some(({ isByHand }) => isByHand)
    ? 'does the steps that are not yours'
    : 'does these steps';
  const steps = order.map(({ why, command, isByHand }) => {
    const who = isByHand ? 'Delete these objects yourself' : 'Delete these objects';
    return {
      text: `${who}, and wait until they are deleted (${diagnosed(why)})`,
      commands: [command],
    };
  });
  const then = `Then delete the namespace. ${literal('delete: ordered')} ${does}`;
  return [...steps, { text: then, commands: [`kubectl delete namespace ${name}`] }];
}
