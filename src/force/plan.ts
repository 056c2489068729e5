import type { Diagnosis } from '../model/finding.ts';
import { type ActivePolicy, permissionFor } from '../model/policy.ts';
import { MAX_EXAMPLES, type Snapshot } from '../model/snapshot.ts';
import type { HostedBackends } from './backends.ts';
import {
  type FinalizerAction,
  type ForceAction,
  type ForcePlan,
  KUBERNETES_FINALIZER,
  type NamespaceAction,
  namespaceTarget,
  plural,
  type Refusal,
  typeName,
} from './force-plan.ts';
import { refuseFinalizer } from './live-owners.ts';
import { planPods } from './plan-pods.ts';
import { refuseNamespace } from './refuse-namespace.ts';
import { describeRemains, isEmpty, remainsAfter } from './remains.ts';
import { describeTarget } from './render-plan.ts';

export interface PlanInput {
  snapshot: Snapshot;
  diagnosis: Diagnosis;
  policy: ActivePolicy;
  /** UID of the namespace when the run began. */
  startUid: string;
  ownNamespace: string | undefined;
  backends: HostedBackends;
  /** What the catalogue says is lost when this finalizer comes off unattended. */
  leakOf: (finalizer: string, on: { kind: string; group: string }) => string | undefined;
}

const NAMESPACE_TYPE = { kind: 'Namespace', group: '' };

interface Part {
  actions: ForceAction[];
  refused: Refusal[];
}

/**
 * What may be done to free this namespace, in order, and what is refused, with reasons. The mode only
 * cuts the list short, so that mode `plan` and the real run differ by nothing but the writes.
 */
export function planForce(input: PlanInput): ForcePlan {
  const { policy, snapshot } = input;
  const objects = planFinalizers(input);
  const pods = planPods(snapshot, policy);
  const earlier = [...objects.actions, ...pods.actions];
  const own = planNamespace(input, earlier);
  const notTerminating = refuseQueued(snapshot);
  const plan: ForcePlan = {
    mode: policy.mode,
    namespace: { name: snapshot.namespace.name, uid: input.startUid },
    label: policy.label,
    orphans: policy.orphans,
    actions: [...earlier, ...own.actions],
    refused: [...objects.refused, ...pods.refused, ...notTerminating, ...own.refused],
    forecast: own.forecast,
    controllerAtWork: snapshot.namespace.specFinalizers.includes(KUBERNETES_FINALIZER),
  };
  const { final, liftable } = refuseNamespace(input);
  if (final.length > 0) {
    return { ...plan, actions: [], refused: [...final, ...liftable], forecast: undefined };
  }
  if (liftable.length === 0) return plan;
  const waiting = plan.actions.map((action) => ({
    target: describeTarget(action, plan),
    reason: 'would be done if the namespace itself were allowed',
  }));
  return { ...plan, actions: [], refused: [...liftable, ...waiting, ...plan.refused] };
}

/** Every finalizer of terminating objects, folded by type: the ten thousandth is reached as well. */
function planFinalizers({ snapshot, policy, diagnosis, leakOf }: PlanInput): Part {
  const found = new Map<string, FinalizerAction>();
  for (const { type, read } of snapshot.content) {
    for (const group of read.ok ? read.value.terminating : []) {
      for (const finalizer of group.finalizers) {
        const key = `${typeName(type)} ${finalizer}`;
        const action: FinalizerAction = found.get(key) ?? {
          step: 'object-finalizer',
          type,
          finalizer,
          count: 0,
          examples: [],
          leak: leakOf(finalizer, type),
        };
        action.count += group.count;
        const names = group.examples.map(({ name }) => name);
        action.examples = [...action.examples, ...names].slice(0, MAX_EXAMPLES);
        found.set(key, action);
      }
    }
  }
  const part: Part = { actions: [], refused: [] };
  for (const action of found.values()) {
    const reason = refuseFinalizer(action.finalizer, policy, diagnosis, action);
    if (reason === undefined) part.actions.push(action);
    else part.refused.push({ target: describeObjects(action), reason });
  }
  return part;
}

/** They are named once, so that nobody wonders why an object with a matching finalizer was left alone. */
function refuseQueued(snapshot: Snapshot): Refusal[] {
  const counts = snapshot.content.flatMap(({ type, read }) =>
    read.ok && read.value.queued > 0 ? [`${read.value.queued} ${typeName(type)}`] : [],
  );
  if (counts.length === 0) return [];
  return [
    {
      target: counts.join(', '),
      reason:
        'not terminating: finalizers are taken only from objects that have a deletionTimestamp',
    },
  ];
}

interface NamespacePart extends Part {
  forecast: string | undefined;
}

/**
 * The namespace's own entries. Mode `namespace` is itself the permission for `kubernetes`, which holds
 * every namespace; all other entries have to be in force-finalizers. `kubernetes` comes last, and only
 * when nothing else would hold the namespace afterwards: it would still be there then, with content that
 * its controller no longer looks at.
 */
function planNamespace(input: PlanInput, earlier: readonly ForceAction[]): NamespacePart {
  const { policy, diagnosis, snapshot, leakOf } = input;
  const { namespace } = snapshot;
  const target = namespaceTarget(namespace.name);
  const foreign = [
    ...namespace.finalizers.map((finalizer) => ({
      step: 'namespace-finalizer' as const,
      finalizer,
    })),
    ...namespace.specFinalizers
      .filter((finalizer) => finalizer !== KUBERNETES_FINALIZER)
      .map((finalizer) => ({ step: 'namespace-spec-finalizer' as const, finalizer })),
  ];
  if (policy.mode === 'objects') {
    return {
      actions: [],
      refused: foreign.map(({ finalizer }) => ({
        target,
        reason: `${finalizer} belongs to the namespace itself: only force-finalize: namespace removes it`,
      })),
      forecast: undefined,
    };
  }
  const part: NamespacePart = { actions: [], refused: [], forecast: undefined };
  for (const entry of foreign) {
    const reason = refuseFinalizer(entry.finalizer, policy, diagnosis, 'Namespace');
    if (reason !== undefined) part.refused.push({ target, reason });
    else part.actions.push({ ...entry, leak: leakOf(entry.finalizer, NAMESPACE_TYPE) });
  }
  if (namespace.specFinalizers.includes(KUBERNETES_FINALIZER)) {
    const reason =
      part.refused.length > 0
        ? `${KUBERNETES_FINALIZER} stays in spec.finalizers as long as other entries do: without it the namespace would still be there, and its content would never be deleted`
        : refuseWhileMoving(policy, diagnosis);
    const last: NamespaceAction = {
      step: 'namespace-spec-finalizer',
      finalizer: KUBERNETES_FINALIZER,
      // What it leaves behind is listed, object by object.
      leak: undefined,
    };
    if (reason !== undefined) part.refused.push({ target, reason });
    else part.actions.push(last);
  }
  const remains = remainsAfter(snapshot, earlier);
  if (part.actions.length === 0 || isEmpty(remains)) return part;
  const text = describeRemains(remains);
  if (policy.orphans === 'accept') return { ...part, forecast: text };
  const reason = `${text}; only force-orphans: accept would finalize the namespace and leave it behind`;
  return { ...part, actions: [], refused: [...part.refused, { target, reason }] };
}

/** The owner of `kubernetes` is the namespace controller; while content goes away, it is at work. */
function refuseWhileMoving(policy: ActivePolicy, { movement }: Diagnosis): string | undefined {
  if (permissionFor(policy.finalizers, KUBERNETES_FINALIZER) === 'exactly') return undefined;
  switch (movement.kind) {
    case 'none':
    case 'unknown':
      return undefined;
    case 'starting':
    case 'retrying':
      return `Kubernetes is about to work on it: wait longer, or name ${KUBERNETES_FINALIZER} in force-finalizers`;
    case 'shrinking':
      return `content still goes away (${movement.before} objects, then ${movement.now}): wait longer, or name ${KUBERNETES_FINALIZER} in force-finalizers`;
    case 'grace-period':
      return `the grace period of a pod runs until ${movement.until}: wait longer, or name ${KUBERNETES_FINALIZER} in force-finalizers`;
  }
}

function describeObjects({ type, count, examples }: FinalizerAction): string {
  return count === 1
    ? `${typeName(type)}/${examples[0] ?? ''}`
    : `${plural(count, 'object')} of ${typeName(type)}`;
}
