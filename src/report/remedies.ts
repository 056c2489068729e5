import { listWords } from '../base/text.ts';
import { formatDuration } from '../base/time.ts';
import type { FindingCode, RemedyRole } from '../model/finding.ts';
import type { NamespaceResult, RunResult } from '../model/result.ts';
import type { Cause } from './causes.ts';
import { findingText, subjectWords } from './sentences.ts';
import { diagnosed, joinWords, literal, type Words } from './words.ts';

const MAX_BLOCKERS_WITH_REMEDIES = 20;
const MAX_OTHERS = 4;

export interface Remedies {
  title: string;
  /** Whether all have to be done, in their order; otherwise each is enough. */
  isOrdered: boolean;
  actions: Action[];
}

export interface Action {
  text: Words;
  risk?: Words | undefined;
  /** Commands that do the same, one for each object. */
  commands: Set<string>;
}

interface RoleAction extends Action {
  role: RemedyRole;
  /** Its text without the object that waits. */
  template: string;
  /** Other objects with the same action, each with a command of its own. */
  others?: Set<Words>;
}

/** In place of a deletion that the steps of an ordered deletion have. Beside several namespaces, a short report has no steps. */
const IN_ORDER = { text: 'Delete the objects in the order of this report', command: undefined };
/** Findings whose own remedies advise to wait. */
const PATIENT: readonly FindingCode[] = ['content-deleting', 'pod-grace-period', 'owner-running'];

/** Those of the root cause first, with the commands for its first namespace. */
export function remediesOf(cause: Cause, run: RunResult): Remedies[] {
  const [{ namespace, finding: root }] = cause;
  const scene = { home: namespace.name, now: run.finishedAt };
  const { order = [] } = run.namespaces.length > 1 ? {} : namespace;
  /** "kubectl delete widgets.example.com". */
  const steps = order.map(({ command }) => command.split(' ', 3).join(' '));
  const actions: RoleAction[] = [];
  for (const { blockers, links } of cause.filter((one) => one.namespace === namespace)) {
    const subjects = links.map(({ subject }) => subject);
    const waiting = subjects.at(-2) ?? root.subject;
    const findings = [...links.toReversed(), ...blockers.slice(0, MAX_BLOCKERS_WITH_REMEDIES)];
    for (const finding of new Set(findings)) {
      const words = (text: string): Words => findingText(text, finding, scene, subjects);
      for (const remedy of finding.remedies) {
        const { command: usual = '', risk, role = 'now' } = remedy;
        const isStep = steps.some((one) => usual.startsWith(`${one} `));
        const { text, command } = isStep ? IN_ORDER : remedy;
        const told = words(text.replace(/[.:]$/, ''));
        // The same for another object that waits for this cause is no alternative: each has to be done.
        const template = text.replace(`${waiting.kind} ${waiting.name}`, '');
        const action = { role, template, text: told, commands: new Set<string>() };
        const known = actions.find((one) => one.role === role && one.template === template);
        // What has to be done is the same for all of them, unless a command names other objects.
        const isRepeated = role === 'now' && command === undefined && links !== cause[0].links;
        if (known === undefined && !isRepeated)
          actions.push({ ...action, risk: risk && words(risk) });
        if (command !== undefined && known !== undefined && known.text !== told) {
          known.others = (known.others ?? new Set()).add(subjectWords(waiting, scene.home));
          if (risk && !known.risk?.includes(words(risk)))
            known.risk = joinWords([known.risk ?? '', words(risk)], '; ');
        }
        if (command !== undefined) (known ?? action).commands.add(command);
      }
    }
  }
  if (namespace.outcome === 'progressing' && !PATIENT.includes(root.code)) {
    const now = run.timeoutMs > 0 ? ` (now ${formatDuration(run.timeoutMs)})` : '';
    const text = `Give the deletion more time${now}: raise the input ${literal('timeout')}`;
    // More time alone does not help against a cause.
    const role = root.code === 'unexplained' ? 'now' : 'or';
    actions.unshift({ role, template: text, text, commands: new Set() });
  }
  for (const one of actions) {
    if (one.others) one.text += `, and the same for ${listWords([...one.others], MAX_OTHERS)}`;
  }
  return grouped(actions, run.kind === 'forecast');
}

/** If no fix is known, actions that show more become "What to do". */
function grouped(actions: readonly RoleAction[], isForecast: boolean): Remedies[] {
  const { now = [], or = [], look = [], next = [] } = Object.groupBy(actions, ({ role }) => role);
  const duties = isForecast ? [...now, ...next] : now;
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
    .map(([title, actions]) => {
      return { title, isOrdered: actions === duties && actions.length > 1, actions };
    });
}

export function stepsOf({ name, order = [] }: NamespaceResult): Action[] {
  if (order.length === 0) return [];
  const steps = order.map(({ why, command, isByHand }) => {
    const yourself = isByHand ? ' yourself' : '';
    const text = `Delete these objects${yourself}, and wait until they are deleted, because ${diagnosed(why)}`;
    return { text, commands: new Set([command]) };
  });
  const but = order.some(({ isByHand }) => isByHand) ? ', except what you delete yourself' : '';
  const then = `Then delete the namespace (${literal('delete: ordered')} deletes in this order${but})`;
  return [...steps, { text: then, commands: new Set([`kubectl delete namespace ${name}`]) }];
}
