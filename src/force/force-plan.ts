import type { ActivePolicy, ForceMode } from '../model/policy.ts';
import type { TypeContent } from '../model/snapshot.ts';

/**
 * What forcing would do and what it refuses, before anything was done. A plan names types and rules,
 * not every object: whoever applies it reads each object again anyway, and ten thousand objects are
 * one line.
 */
export interface ForcePlan {
  mode: ForceMode;
  namespace: { name: string; uid: string };
  /** Asked again of the namespace before every write. */
  label: ActivePolicy['label'];
  orphans: ActivePolicy['orphans'];
  /** In the order in which they are done. Mode `plan` lists what `namespace` would do. */
  actions: ForceAction[];
  refused: Refusal[];
  /** With `force-orphans: accept`: what the namespace's own actions would leave behind, as it looks now. */
  forecast: string | undefined;
  /** False once `kubernetes` has left spec.finalizers: waiting for the namespace controller is over. */
  controllerAtWork: boolean;
}

export type ForceType = TypeContent['type'];

export type ObjectAction = FinalizerAction | PodAction;
export type ForceAction = ObjectAction | NamespaceAction;

/** Take one finalizer off every terminating object of one type that has it. */
export interface FinalizerAction {
  step: 'object-finalizer';
  type: ForceType;
  finalizer: string;
  /** As counted when the plan was made. */
  count: number;
  /** Names of up to ten of them. */
  examples: string[];
  /** What stays behind outside of the namespace when its owner does not do it. */
  leak: string | undefined;
}

/** Delete overdue pods of a node that cannot confirm their end, with grace period 0. */
export interface PodAction {
  step: 'overdue-pods';
  node: string;
  nodeState: string;
  count: number;
  examples: string[];
}

/** Remove one entry of the namespace's own lists. */
export interface NamespaceAction {
  step: 'namespace-finalizer' | 'namespace-spec-finalizer';
  finalizer: string;
  leak: string | undefined;
}

/** `target` is worded like a kubectl argument where it is one object or type. */
export interface Refusal {
  target: string;
  reason: string;
}

/** The entry of spec.finalizers that belongs to Kubernetes' own namespace controller. */
export const KUBERNETES_FINALIZER = 'kubernetes';

/** A pod's deletionTimestamp is the end of its grace period; the kubelet may take a moment more. */
export const OVERDUE_AFTER_MS = 5_000;

export function modeOf(action: ForceAction): 'objects' | 'namespace' {
  switch (action.step) {
    case 'object-finalizer':
    case 'overdue-pods':
      return 'objects';
    case 'namespace-finalizer':
    case 'namespace-spec-finalizer':
      return 'namespace';
  }
}

/** The same action has the same key in every plan of a run. */
export function keyOf(action: ForceAction): string {
  switch (action.step) {
    case 'object-finalizer':
      return `${action.step} ${typeName(action.type)} ${action.finalizer}`;
    case 'overdue-pods':
      return `${action.step} ${action.node}`;
    case 'namespace-finalizer':
    case 'namespace-spec-finalizer':
      return `${action.step} ${action.finalizer}`;
  }
}

export function isNamespaceAction(action: ForceAction): action is NamespaceAction {
  return modeOf(action) === 'namespace';
}

export function isObjectAction(action: ForceAction): action is ObjectAction {
  return modeOf(action) === 'objects';
}

/** As kubectl takes it: `configmaps`, `widgets.example.com`. */
export function typeName(type: Pick<ForceType, 'resource' | 'group'>): string {
  return type.group === '' ? type.resource : `${type.resource}.${type.group}`;
}

export function namespaceTarget(name: string): string {
  return `namespaces/${name}`;
}

/** "a, b, c and 497 more". */
export function listNames(names: readonly string[], count = names.length, most = 10): string {
  const shown = names.slice(0, most);
  const more = count - shown.length;
  return more > 0 ? `${shown.join(', ')} and ${more} more` : shown.join(', ');
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
