import { leakOf } from '../diagnose/catalogue.ts';
import { groupOf, isBuiltIn, itemsIn, listNames } from '../diagnose/context.ts';
import { isKubeletReporting } from '../diagnose/movement.ts';
import { CLAIM_PROTECTION, isOverdue } from '../diagnose/rules/pods.ts';
import {
  FINALIZE,
  KUBERNETES_FINALIZER,
  NAMESPACE_TYPE,
  POD_TYPE,
  typeName,
} from '../model/facts/metadata.ts';
import { hasPodEnded } from '../model/facts/workloads.ts';
import { type Diagnosis, type Finding, findingsOf, type NotInspected } from '../model/finding.ts';
import {
  type ActivePolicy,
  type ForceMode,
  movingReason,
  permissionFor,
  protectedBecause,
} from '../model/outcome.ts';
import type { Read } from '../model/read.ts';
import type { ForceRecord } from '../model/result.ts';
import {
  type NamespaceFacts,
  type NodeFacts,
  type ObjectGroup,
  type ResourceType,
  type Snapshot,
  trialKey,
} from '../model/snapshot.ts';

/**
 * The actions of forcing and its refusals, before any write. A plan names types and rules instead of single
 * objects: each object is read again right before its write, and ten thousand objects are one line.
 */
export interface ForcePlan {
  mode: ForceMode;
  namespace: { name: string; uid: string };
  /** The label that the live namespace must have before every write. */
  label: ActivePolicy['label'];
  orphans: ActivePolicy['orphans'];
  /** The actions in their order. Mode `plan` lists those of mode `namespace`. */
  actions: ForceAction[];
  refused: ForceRecord['refused'];
  /** With `force-orphans: accept`: what the namespace's own actions would leave behind at present. */
  wouldLeave: string | undefined;
}

/** A change to every terminating object of one type that needs it, or to the namespace itself. */
export interface ForceAction {
  /**
   * The removal of one finalizer; the deletion, with grace period 0, of the overdue pods of a node that cannot confirm
   * their end; or the removal of one entry of the namespace's own lists.
   */
  step: 'object-finalizer' | 'overdue-pods' | 'namespace-finalizer' | 'namespace-spec-finalizer';
  /** The object or type, written like an argument of kubectl. */
  target: string;
  /** Empty for pods that are deleted. */
  finalizer: string;
  /** Empty unless pods are deleted. */
  node: string;
  /** External resources that may be leaked; undefined if unknown. */
  leaves: string | undefined;
  /** Evidence about the owner, if only the exact name in force-finalizers permits the removal. */
  despite?: string | undefined;
  /** The permission that the action needs, in terms of RBAC. */
  verb: 'patch' | 'update' | 'delete';
  type: ResourceType;
  /** The mode that takes this action. */
  needs: Exclude<ForceMode, 'plan'>;
  text: string;
}

interface PlanInput {
  snapshot: Snapshot;
  diagnosis: Diagnosis;
  policy: ActivePolicy;
  /** UID of the namespace when the run began. */
  startUid: string;
  /** Namespace that the gate runs in. */
  ownNamespace: string | undefined;
  /** Why the namespace is part of the cluster's machinery, or may be. */
  machinery: string[];
}

/**
 * Plans the actions that free this namespace, in order, and the refusals with reasons. The mode only shortens the
 * list, so that mode `plan` and the real run differ by nothing but the writes.
 */
export function planForce(input: PlanInput): ForcePlan {
  const { policy, snapshot } = input;
  const plan: ForcePlan = {
    mode: policy.mode,
    namespace: { name: snapshot.namespace.name, uid: input.startUid },
    label: policy.label,
    orphans: policy.orphans,
    actions: [],
    refused: [],
    wouldLeave: undefined,
  };
  planFinalizers(input, plan);
  planPods(input, plan);
  refuseQueued(snapshot, plan);
  planNamespace(input, plan);
  const target = namespaceTarget(plan.namespace.name);
  const reasons = namespaceRefusals(input);
  if (reasons.length === 0) return plan;
  const refused = [...reasons.map((reason) => ({ target, reason })), ...plan.refused];
  return { ...plan, actions: [], refused, wouldLeave: undefined };
}

/** Returns the key of an action, which is the same in every plan of a run. */
export function actionKey({ step, type, node, finalizer }: ForceAction): string {
  return [step, typeName(type), node, finalizer].join(' ');
}

/** Reports whether the action removes the entry `kubernetes`, which ends the namespace whatever it contains. */
export function isLastEntry({ step, finalizer }: ForceAction): boolean {
  return step === 'namespace-spec-finalizer' && finalizer === KUBERNETES_FINALIZER;
}

export function namespaceTarget(name: string): string {
  return `namespaces/${name}`;
}

const MAX_NAMES = 10;

/** Writes `configmaps/a`, or "12 objects of configmaps (a, b, … and 2 more)". */
export function manyTarget(type: string, names: readonly string[], count = names.length): string {
  if (count === 1) return `${type}/${names[0] ?? ''}`;
  const more = count > MAX_NAMES ? ` and ${count - MAX_NAMES} more` : '';
  return `${count} objects of ${type} (${names.slice(0, MAX_NAMES).join(', ')}${more})`;
}

/**
 * Returns the reasons against forcing a namespace at all: first those that no input removes. All that apply are
 * reported, so that people have to try again only once.
 */
function namespaceRefusals(input: PlanInput): string[] {
  const { machinery, ownNamespace, startUid } = input;
  const { name, uid, deletionTimestamp, phase, labels } = input.snapshot.namespace;
  const { label, namespaces } = input.policy;
  const why = protectedBecause(name, ownNamespace);
  const isSame = uid === startUid && startUid !== '';
  const isTerminating = deletionTimestamp !== undefined && phase === 'Terminating';
  const matching = namespaces.filter((one) => permissionFor([one], name));
  const isForAll = label === undefined && matching.every((pattern) => /^\**$/.test(pattern));
  const reasons = [
    why && `it is protected: ${why}; no input overrides that`,
    !isSame && `it is not the namespace this run began with: its UID was ${startUid} and is ${uid}`,
    !isTerminating && 'its deletion was not requested: only a Terminating namespace is forced',
    ...machinery,
    matching.length === 0 &&
      `force-namespaces (${listNames(namespaces) || 'empty'}) does not match its name; name the namespaces that may be forced, for example preview-*`,
    matching.length > 0 &&
      isForAll &&
      'force-namespaces matches it only with *, which allows every namespace; name a part of the name (preview-*), or set force-label as well',
    label !== undefined &&
      labels[label.key] !== label.value &&
      `force-label asks for ${label.key}=${label.value}, and it has ${label.key}=${labels[label.key] ?? '(no such label)'}`,
  ];
  return reasons.filter((reason) => typeof reason === 'string');
}

/** Plans every finalizer of terminating objects, one action per type and finalizer, so that no object is missed. */
function planFinalizers(input: PlanInput, { actions, refused }: ForcePlan): void {
  for (const { type, read } of input.snapshot.content) {
    if (!read.ok) continue; // not inspected, so nothing of it is touched
    const { terminating } = read.value;
    for (const finalizer of new Set(terminating.flatMap(({ finalizers }) => finalizers))) {
      const groups = terminating.filter(({ finalizers }) => finalizers.includes(finalizer));
      const target = groupTarget(type, groups);
      const { reason, despite } = permissionToRemove(
        { step: 'object-finalizer', finalizer },
        ({ apiVersion, kind, namespace }) =>
          namespace === input.snapshot.namespace.name &&
          kind === type.kind &&
          groupOf(apiVersion) === type.group,
        input,
      );
      const because =
        reason ??
        usedByPods(input, groups, finalizer) ??
        unreachableReason(input.snapshot, type) ??
        refusedByAdmission(input, groups, finalizer);
      if (because !== undefined) {
        refused.push({ target, reason: because });
        continue;
      }
      actions.push({
        ...{ step: 'object-finalizer', needs: 'objects', verb: 'patch', type },
        ...{ target, finalizer, node: '', despite, leaves: leakOf(finalizer, type) },
        text: `remove finalizer ${finalizer} from ${target}, where terminating`,
      });
    }
  }
}

function groupTarget(type: ResourceType, groups: readonly ObjectGroup[]): string {
  const names = groups.flatMap(({ examples }) => examples.map(({ name }) => name));
  const total = groups.reduce((sum, { count }) => sum + count, 0);
  return manyTarget(typeName(type), names, total);
}

/**
 * Decides whether force-finalizers permits the removal of this finalizer from the objects that are meant. The
 * exact name is a person's decision and enough. A pattern reaches only finalizers whose owner the gate saw deleted
 * with the namespace.
 */
function permissionToRemove(
  { step, finalizer }: Pick<ForceAction, 'step' | 'finalizer'>,
  isMeant: (subject: Finding['subject']) => boolean,
  { policy, diagnosis }: PlanInput,
): { reason?: string; despite?: string } {
  const permission = permissionFor(policy.finalizers, finalizer);
  const held = diagnosis.findings.filter(
    (one) => one.code === step && one.finalizer === finalizer && isMeant(one.subject),
  );
  const causes = held.map(({ waitsFor }) => findingsOf(diagnosis, waitsFor));
  const owners = causes.map((found) => found.filter((one) => one.finalizer === finalizer));
  // A pattern needs this proof: no list of signs that an owner still exists is ever complete.
  const wasSeenDeleted = ({ code, certainty, wasDeletedWithNamespace }: Finding): boolean =>
    code === 'owner-missing' && certainty === 'proven' && wasDeletedWithNamespace === true;
  const isGone = owners.length > 0 && owners.every((found) => found.some(wasSeenDeleted));
  if (isGone && permission !== undefined) return {};
  const nameOf = ({ subject: { kind, namespace, name } }: Finding): string =>
    `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
  const inUse = diagnosis.findings.filter(
    ({ code, subject }) =>
      code === 'volume-in-use' && finalizer === CLAIM_PROTECTION && isMeant(subject),
  );
  const known = [...owners.flat(), ...inUse].map((one) => `${nameOf(one)} ${one.message}`);
  const awaited = causes.flat().map((one) => `it waits for ${nameOf(one)}`);
  const said = [...new Set(known.length > 0 ? known : awaited)];
  const about = said.length > 0 ? listNames(said, MAX_KNOWN) : 'the diagnosis found no owner of it';
  if (permission === 'exactly') return { despite: about };
  const rule =
    permission === 'by-pattern'
      ? 'a pattern reaches it only if the gate saw its owner deleted with this namespace, and nobody else may change its type'
      : 'force-finalizers does not allow it';
  return { reason: `${rule}; ${about}; to remove it, add to force-finalizers: ${finalizer}` };
}

const MAX_KNOWN = 2;

/** Returns why the protection of claims stays: a pod that has not ended may still write to the volume of one. */
function usedByPods(
  { snapshot: { pods } }: PlanInput,
  groups: readonly ObjectGroup[],
  finalizer: string,
): string | undefined {
  if (finalizer !== CLAIM_PROTECTION) return undefined;
  const claims = groups.flatMap(({ examples }) => examples.map(({ name }) => name));
  const users = itemsIn(pods).flatMap(({ name, nodeName, phase, claims: used }) =>
    nodeName !== undefined && !hasPodEnded({ phase })
      ? used.filter((claim) => claims.includes(claim)).map((claim) => ({ name, claim }))
      : [],
  );
  const [first] = users;
  return first && `claim ${first.claim} is still used by Pod ${first.name}, which has not ended`;
}

/** Returns why an aggregated API cannot handle a write: its server does not answer. */
function unreachableReason(
  { cluster }: Snapshot,
  { group, version }: ResourceType,
): string | undefined {
  if (isBuiltIn(group)) return undefined;
  const services = cluster.apiServices;
  if (services?.ok !== true) {
    return 'whether its API is served by an extension API server, and whether that answers, could not be read (APIServices)';
  }
  const own = services.value.find((one) => one.group === group && one.version === version);
  if (own?.service === undefined || own.available?.status === 'True') return undefined;
  return `its API is served by APIService ${own.name}, which is not available: bring its Service back, or delete the APIService`;
}

/**
 * Returns why admission refuses the removal: the examination tried one of each group as a dry run, and none was
 * accepted.
 */
function refusedByAdmission(
  { snapshot: { trials } }: PlanInput,
  groups: readonly ObjectGroup[],
  finalizer: string,
): string | undefined {
  const objects = groups.flatMap(({ examples }) => examples);
  const answers = objects.map(({ uid }) => trials[trialKey(uid, finalizer)]);
  if (answers.some((trial) => trial?.answer === 'accepted')) return undefined;
  const refusal = answers.find((one) => one?.answer === 'refused' || one?.answer === 'undone');
  if (refusal === undefined) return undefined;
  const why = refusal.answer === 'refused' ? refusal.message : 'admission adds it again';
  return `the API server does not remove ${finalizer}, tried as a dry run: ${why}; that has to be fixed first`;
}

/** Adds a refusal for queued objects, which explains why objects with a matching finalizer are not changed. */
function refuseQueued({ content }: Snapshot, { refused }: ForcePlan): void {
  const counts = content.flatMap(({ type, read }) =>
    read.ok && read.value.queued > 0 ? [`${read.value.queued} ${typeName(type)}`] : [],
  );
  const reason =
    'not terminating: finalizers are removed only from objects that have a deletionTimestamp';
  if (counts.length > 0) refused.push({ target: counts.join(', '), reason });
}

/** Plans overdue pods, by node: they may be deleted without their kubelet only if the node is lost. */
function planPods({ snapshot, policy }: PlanInput, { actions, refused }: ForcePlan): void {
  const nowMs = Date.parse(snapshot.takenAt);
  const overdue = itemsIn(snapshot.pods).filter(
    (pod) => pod.deletionTimestamp !== undefined && isOverdue(pod, nowMs),
  );
  for (const [node, pods] of Map.groupBy(overdue, ({ nodeName }) => nodeName ?? '')) {
    const names = pods.map(({ name }) => name);
    const target = manyTarget('pods', names);
    const { lost, text } = nodeState(snapshot.nodes[node], nowMs);
    if (!lost || !policy.pods) {
      const reason = lost
        ? `overdue, and node ${node} ${text}; force-pods: true would delete with grace period 0`
        : `overdue on node ${node}, but ${text}`;
      refused.push({ target, reason });
      continue;
    }
    actions.push({
      ...{ step: 'overdue-pods', needs: 'objects', verb: 'delete', type: POD_TYPE },
      ...{ target, finalizer: '', node },
      leaves: `containers that still run on node ${node}, and the volumes attached to it`,
      text: `delete ${target} with grace period 0: overdue, and node ${node} ${text}`,
    });
  }
}

const LOST_AFTER_MS = 5 * 60_000;
/** The taint that people set on machines that are off (KEP-2268). */
const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';

/**
 * Reports whether no kubelet will ever confirm the end of a pod. `Ready=False` is written by a kubelet that
 * runs, and `Unknown` for a while is a restart or a broken connection: both end their pods later.
 */
export function nodeState(
  node: Read<NodeFacts | undefined> | undefined,
  nowMs: number,
): { lost: boolean; text: string } {
  const alive = (text: string) => ({ lost: false, text });
  const lost = (text: string) => ({ lost: true, text });
  if (node === undefined) return alive('the node was not read');
  if (!node.ok) return alive(`the node could not be read: ${node.failure.message}`);
  if (node.value === undefined) return lost('does not exist');
  const { ready, readySince, readyReason, taints } = node.value;
  if (ready === 'True') return alive('the node is Ready, and its kubelet has to confirm the end');
  if (taints.includes(OUT_OF_SERVICE)) {
    return lost(`is not ready and has the taint ${OUT_OF_SERVICE}`);
  }
  if (isKubeletReporting(node.value)) {
    return alive(
      `its kubelet is running and reports Ready=False (${readyReason ?? 'no reason'}); if the machine is off, taint the node ${OUT_OF_SERVICE}`,
    );
  }
  if (ready !== 'Unknown') return alive('the node has no Ready condition');
  return nowMs - Date.parse(readySince ?? '') > LOST_AFTER_MS
    ? lost(`has not reported since ${readySince} (Ready=Unknown)`)
    : alive(
        `the node is Ready=Unknown only since ${readySince ?? 'an unknown time'}; it counts as lost after 5 minutes`,
      );
}

/**
 * Plans the namespace's own entries. Mode `namespace` is itself the permission for `kubernetes`, which holds
 * every namespace; all other entries have to be in force-finalizers. `kubernetes` comes last, and only
 * when nothing else would hold the namespace afterwards: it would still be there then, with content that
 * its controller no longer deletes.
 */
function planNamespace(input: PlanInput, plan: ForcePlan): void {
  const { policy, diagnosis, snapshot } = input;
  const { name, finalizers, specFinalizers } = snapshot.namespace;
  const target = namespaceTarget(name);
  const refuse = (reason: string): unknown => plan.refused.push({ target, reason });
  const base = { needs: 'namespace', target, node: '', leaves: undefined } as const;
  const all: ForceAction[] = [
    ...finalizers.map(
      (finalizer): ForceAction => ({
        ...{ ...base, step: 'namespace-finalizer', verb: 'patch', type: NAMESPACE_TYPE, finalizer },
        text: `if it is still there: remove ${finalizer} from the namespace's metadata.finalizers`,
      }),
    ),
    ...specFinalizers.map(
      (finalizer): ForceAction => ({
        ...{ ...base, step: 'namespace-spec-finalizer', verb: 'update', type: FINALIZE, finalizer },
        text: `if it is still there: remove ${finalizer} from the namespace's spec.finalizers, by PUT to /finalize`,
      }),
    ),
  ];
  const foreign = all.filter((action) => !isLastEntry(action));
  if (policy.mode === 'objects') {
    for (const { finalizer } of foreign) {
      refuse(
        `${finalizer} belongs to the namespace itself: only force-finalize: namespace removes it`,
      );
    }
    return;
  }
  const own: ForceAction[] = [];
  for (const action of foreign) {
    const isOwn = (subject: Finding['subject']): boolean => subject.name === name;
    const { reason, despite } = permissionToRemove(action, isOwn, input);
    if (reason !== undefined) refuse(reason);
    else {
      const leaves = leakOf(action.finalizer, { kind: 'Namespace', group: '' });
      own.push({ ...action, leaves, despite });
    }
  }
  const last = all.find(isLastEntry);
  if (last !== undefined) {
    const isExact = permissionFor(policy.finalizers, KUBERNETES_FINALIZER) === 'exactly';
    const moving = isExact ? undefined : movingReason(diagnosis);
    if (own.length < foreign.length) {
      refuse(
        `${KUBERNETES_FINALIZER} stays in spec.finalizers as long as other entries do: without it the namespace would still be there, and its content would never be deleted`,
      );
    } else if (moving !== undefined) {
      refuse(`${moving}: wait longer, or name ${KUBERNETES_FINALIZER} in force-finalizers`);
    } else {
      // The report lists every object that this leaves behind.
      own.push(last);
    }
  }
  const remains = own.length > 0 ? remainsAfter(snapshot, plan.actions) : undefined;
  if (remains !== undefined && policy.orphans === 'refuse') refuse(orphanRefusal(remains));
  else {
    plan.wouldLeave = remains;
    plan.actions.push(...own);
  }
}

/** Returns the refusal to finalize a namespace in which content remains. */
export function orphanRefusal(remains: string): string {
  return `${remains}; only force-orphans: accept would finalize the namespace and leave it behind`;
}

/**
 * Describes content that no earlier action of the plan removes. Queued objects count only if the plan has no other
 * action: behind a held pod they are deleted as soon as the pod is. Everything is read again before the gate writes to
 * the namespace itself.
 */
function remainsAfter(
  { discovery, content, namespace }: Snapshot,
  earlier: readonly ForceAction[],
): string | undefined {
  const isFreed = (type: ResourceType, { finalizers }: ObjectGroup): boolean => {
    const mine = earlier.filter((action) => typeName(action.type) === typeName(type));
    // An object without a finalizer is still there only if it is a pod, which waits for its kubelet.
    return finalizers.length === 0
      ? mine.some(({ step }) => step === 'overdue-pods')
      : finalizers.every((name) =>
          mine.some((action) => action.step === 'object-finalizer' && action.finalizer === name),
        );
  };
  const left: string[] = [];
  const unread: NotInspected[] = [];
  if (!discovery.ok) unread.push({ what: ALL_TYPES, reason: discovery.failure.message });
  for (const { group, version, reason } of discovery.ok ? discovery.value.failedGroups : []) {
    unread.push({ what: `${group}/${version}`, reason });
  }
  for (const { type, read } of content) {
    if (!read.ok) {
      unread.push({ what: typeName(type), reason: read.failure.message });
      continue;
    }
    const { terminating, queued } = read.value;
    for (const group of terminating.filter((one) => !isFreed(type, one))) {
      left.push(`${groupTarget(type, [group])}${heldText(group)}`);
    }
    if (queued > 0 && earlier.length === 0)
      left.push(`${typeName(type)} (${queued} not terminating)`);
  }
  // The conditions still count objects that the plan frees.
  return remainsText(left, unread, earlier.length === 0 ? namespace : undefined);
}

/** Writes the finalizers of an object, if any, for behind its name. */
export function heldText({ finalizers }: Pick<ObjectGroup, 'finalizers'>): string {
  return finalizers.length === 0 ? '' : ` (${finalizers.join(', ')})`;
}

export const ALL_TYPES = 'the list of resource types';

/**
 * Returns conditions by which the namespace controller reports remaining content, or that it could not list it.
 * Where nothing was found they contradict the lists, which may be incomplete: right after a start the server serves
 * an incomplete discovery.
 */
export function contentConditions({ conditions }: Pick<NamespaceFacts, 'conditions'>): string[] {
  return conditions
    .filter(({ type, status }) => type.startsWith('Namespace') && status === 'True')
    .map(({ type, message }) => `its condition ${type} says: ${message}`);
}

/** Describes the remaining content; undefined if everything was read and the namespace is empty. */
export function remainsText(
  content: readonly string[],
  unread: readonly NotInspected[],
  namespace: Pick<NamespaceFacts, 'conditions'> | undefined,
): string | undefined {
  const isEmpty = content.length === 0;
  const unknown = [
    ...unread.map(({ what, reason }) => `${what} (${reason})`),
    ...(isEmpty && namespace ? contentConditions(namespace) : []),
  ];
  const parts = [
    ...(isEmpty ? [] : [`content remains: ${listNames(content, MAX_NAMES)}`]),
    ...(unknown.length > 0
      ? [`not everything could be read: ${listNames(unknown, MAX_NAMES)}`]
      : []),
  ];
  return parts.length === 0 ? undefined : parts.join('; ');
}

/** Writes the plan for the log, before the first write: one line per action or refusal. */
export function renderPlan(plan: ForcePlan): string[] {
  const { name, uid } = plan.namespace;
  const lines = [`Force plan for namespace ${name} (UID ${uid}), force-finalize: ${plan.mode}`];
  if (plan.actions.length === 0) lines.push('  nothing will be changed');
  plan.actions.forEach(({ needs, text, despite, leaves }, index) => {
    const mode = plan.mode === 'plan' ? ` [force-finalize: ${needs}]` : '';
    lines.push(`  ${index + 1}. ${text}${mode}`);
    if (despite !== undefined) lines.push(`     although: ${despite}`);
    if (leaves !== undefined) lines.push(`     may be left behind: ${leaves}`);
  });
  if (plan.wouldLeave !== undefined) {
    lines.push(`  would be left behind, as it looks now: ${plan.wouldLeave}`);
  }
  if (plan.refused.length > 0) lines.push('  refused:');
  for (const { target, reason } of plan.refused) lines.push(`  - ${target}: ${reason}`);
  if (plan.mode === 'plan') lines.push('  This is the plan only; nothing is changed.');
  return lines;
}

/** Writes the plan for a report from before the first write. */
export function recordPlan(plan: ForcePlan): ForceRecord {
  const result = plan.mode === 'plan' ? 'would be done' : 'planned';
  return {
    mode: plan.mode,
    actions: plan.actions.map(({ target, finalizer }) => ({ target, finalizer, result })),
    orphans: [],
    refused: plan.refused,
  };
}
