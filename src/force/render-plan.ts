import type { ForceRecord } from '../model/result.ts';
import {
  type ForceAction,
  type ForcePlan,
  listNames,
  modeOf,
  namespaceTarget,
  plural,
  typeName,
} from './force-plan.ts';

/** The plan for people, before anything is changed. One action or refusal a line. */
export function renderPlan(plan: ForcePlan): string[] {
  const { name, uid } = plan.namespace;
  const lines = [`Force plan for namespace ${name} (UID ${uid}), force-finalize: ${plan.mode}`];
  if (plan.actions.length === 0) lines.push('  nothing will be changed');
  plan.actions.forEach((action, index) => {
    const mode = plan.mode === 'plan' ? ` [force-finalize: ${modeOf(action)}]` : '';
    lines.push(`  ${index + 1}. ${describeAction(action, plan)}${mode}`);
    const leak = leakText(action);
    if (leak !== undefined) lines.push(`     may be left behind: ${leak}`);
  });
  if (plan.forecast !== undefined)
    lines.push(`  would be left behind, as it looks now: ${plan.forecast}`);
  if (plan.refused.length > 0) lines.push('  refused:');
  for (const { target, reason } of plan.refused) lines.push(`  - ${target}: ${reason}`);
  if (plan.mode === 'plan') lines.push('  This is the plan only; nothing is changed.');
  return lines;
}

/** The same plan as it stands in a report that is written before anything is changed. */
export function recordPlan(plan: ForcePlan): ForceRecord {
  const result = plan.mode === 'plan' ? 'would be done' : 'planned';
  return {
    mode: plan.mode,
    actions: plan.actions.map((action) => ({
      target: describeTarget(action, plan),
      finalizer: finalizerOf(action),
      result,
    })),
    orphans: [],
    refused: plan.refused.map(({ target, reason }) => ({ target, reason })),
  };
}

export function describeAction(action: ForceAction, plan: Pick<ForcePlan, 'namespace'>): string {
  switch (action.step) {
    case 'object-finalizer':
      return `remove finalizer ${action.finalizer} from ${describeTarget(action, plan)}, where terminating`;
    case 'overdue-pods':
      return `delete ${describeTarget(action, plan)} with grace period 0: overdue, and node ${action.node} ${action.nodeState}`;
    case 'namespace-finalizer':
      return `if it is still there: remove ${action.finalizer} from the namespace's metadata.finalizers`;
    case 'namespace-spec-finalizer':
      return `if it is still there: remove ${action.finalizer} from the namespace's spec.finalizers, by PUT to /finalize`;
  }
}

export function describeTarget(action: ForceAction, plan: Pick<ForcePlan, 'namespace'>): string {
  switch (action.step) {
    case 'object-finalizer':
      return describeMany(typeName(action.type), action.count, action.examples);
    case 'overdue-pods':
      return describeMany('pods', action.count, action.examples);
    case 'namespace-finalizer':
    case 'namespace-spec-finalizer':
      return namespaceTarget(plan.namespace.name);
  }
}

export function describeMany(type: string, count: number, names: readonly string[]): string {
  return count === 1
    ? `${type}/${names[0] ?? ''}`
    : `${plural(count, 'object')} of ${type} (${listNames(names, count)})`;
}

export function finalizerOf(action: ForceAction): string {
  return action.step === 'overdue-pods' ? '' : action.finalizer;
}

/** What forcing may leave behind outside of the namespace. */
export function leakText(action: ForceAction): string | undefined {
  if (action.step !== 'overdue-pods') return action.leak;
  return `containers that still run on node ${action.node}, and what they hold`;
}
