import { listNames, matchesGlob } from '../base/text.ts';
import { lookUpFinalizer } from '../model/catalogue.ts';
import {
  CLAIM_PROTECTION,
  KUBERNETES_FINALIZER,
  NAMESPACE_TYPE,
  POD_TYPE,
  typeName,
} from '../model/facts/metadata.ts';
import { hasPodEnded, isOverdue } from '../model/facts/workloads.ts';
import { type Diagnosis, findingsOf } from '../model/finding.ts';
import { type ActivePolicy, movingReason, protectedBecause } from '../model/outcome.ts';
import { itemsIn, type Read } from '../model/read.ts';
import type { ForceRecord } from '../model/result.ts';
import type { NamespaceFacts, NodeFacts, ResourceType, Snapshot } from '../model/snapshot.ts';

/** A plan names types instead of single objects: each object is read again right before its write. */
export interface ForcePlan {
  policy: ActivePolicy;
  namespace: { name: string; uid: string };
  /** In their order. Mode `plan` lists those of mode `namespace`. */
  actions: ForceAction[];
  refused: ForceRecord['refused'];
}

/** A change to every terminating object of one type that needs it, or to the namespace itself. */
export interface ForceAction {
  step: 'object-finalizer' | 'overdue-pods' | 'namespace-finalizer' | 'namespace-spec-finalizer';
  type: ResourceType;
  /** The object or type, written like an argument of kubectl. */
  target: string;
  /** Empty for pods, whose `node` counts. */
  finalizer: string;
  node: string;
  /** What the diagnosis says about the owner of the finalizer, or the state of the node. */
  known?: string;
  leaves?: string | undefined;
}

type Candidate = ForceAction & { reason?: string | undefined };

interface PlanInput {
  snapshot: Snapshot;
  diagnosis: Diagnosis;
  policy: ActivePolicy;
  startUid: string;
  ownNamespace: string | undefined;
}

/** The mode only shortens the list, so that mode `plan` and the real run differ by nothing but the writes. */
export function planForce(input: PlanInput): ForcePlan {
  const { ownNamespace, policy, snapshot, startUid } = input;
  const { name } = snapshot.namespace;
  const plan = { policy, namespace: { name, uid: startUid } };
  const all = [...finalizerCandidates(input), ...podCandidates(input), ...ownCandidates(input)];
  const reasons = refusalsOf(snapshot.namespace, plan, ownNamespace);
  const rule = 'is a pattern, which allows nothing: write each finalizer out in full';
  const patterns = policy.finalizers
    .filter((entry) => entry.includes('*'))
    .map((one) => `${one} in force-finalizers ${rule}`);
  const target = namespaceTarget(name);
  const refused = [
    ...[...reasons, ...patterns].map((reason) => ({ target, reason })),
    ...all.flatMap(({ reason, target }) => (reason ? [{ target, reason }] : [])),
  ];
  return {
    ...plan,
    actions: reasons.length > 0 ? [] : all.filter(({ reason }) => reason === undefined),
    refused,
  };
}

export function isOnNamespace({ step }: Pick<ForceAction, 'step'>): boolean {
  return step === 'namespace-finalizer' || step === 'namespace-spec-finalizer';
}

/** The entry `kubernetes`: its removal ends the namespace whatever it contains. */
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
 * The reasons against forcing a namespace, as just read: all of them, because people have to try again only once. The plan
 * and every single write ask. A person who removes the label stops the gate.
 */
export function refusalsOf(
  { name, uid, deletionTimestamp, phase, labels }: NamespaceFacts,
  { namespace, policy }: Pick<ForcePlan, 'namespace' | 'policy'>,
  ownNamespace: string | undefined,
): string[] {
  const { label, namespaces } = policy;
  const why = protectedBecause(name, ownNamespace);
  const matching = namespaces.filter((pattern) => matchesGlob(pattern, name));
  const isForAll = !label && matching.length > 0 && matching.every((one) => /^\**$/.test(one));
  const rules = [
    why !== undefined && `it is protected: ${why}; no input overrides that`,
    (uid !== namespace.uid || uid === '') &&
      `it is not the namespace this run began with: its UID was ${namespace.uid} and is ${uid || 'unknown'}`,
    (deletionTimestamp === undefined || phase !== 'Terminating') &&
      'its deletion was not requested: only a Terminating namespace is forced',
    matching.length === 0 &&
      `force-namespaces (${listNames(namespaces) || 'empty'}) does not match its name; name the namespaces that may be forced, for example preview-*`,
    isForAll &&
      'force-namespaces matches it only with *, which allows every namespace; name a part of the name (preview-*), or set force-label as well',
    label !== undefined &&
      labels[label.key] !== label.value &&
      `force-label asks for ${label.key}=${label.value}, and in the namespace it is ${labels[label.key] ?? 'not set'}`,
  ];
  return rules.filter((reason) => reason !== false);
}

/** One action per type and finalizer. Objects that are queued behind others (`guarded`) are freed when they terminate. */
function finalizerCandidates(input: PlanInput): Candidate[] {
  const { policy, snapshot } = input;
  return snapshot.content.flatMap(({ type, read }) => {
    const { terminating = [], guarded = [] } = read.ok ? read.value : {};
    const isNamed = (finalizer: string): boolean => policy.finalizers.includes(finalizer);
    const all = [
      ...terminating.flatMap(({ finalizers }) => finalizers),
      ...guarded.flatMap(({ finalizers }) => finalizers.filter(isNamed)),
    ];
    return [...new Set(all)].map((finalizer): Candidate => {
      const held = [...terminating, ...guarded].filter((one) => one.finalizers.includes(finalizer));
      const names = held.flatMap(({ examples }) => examples.map(({ name }) => name));
      const count = held.reduce((sum, group) => sum + group.count, 0);
      const target = manyTarget(typeName(type), names, count);
      const known = knownAbout(input, finalizer);
      return {
        ...{ step: 'object-finalizer', type, target, finalizer, node: '', known },
        leaves: lookUpFinalizer(finalizer, type)?.leakIfRemoved,
        reason: notNamed(input, finalizer, known) ?? usedByPod(input, finalizer),
      };
    });
  });
}

/** Returns why the protection of claims stays: a pod that has not ended may still write to the volume of one. */
function usedByPod({ snapshot: { pods } }: PlanInput, finalizer: string): string | undefined {
  if (finalizer !== CLAIM_PROTECTION) return undefined;
  if (!pods.ok)
    return `whether a pod still uses a claim could not be read: ${pods.failure.message}`;
  const user = pods.value.find((pod) => pod.nodeName && pod.claims.length > 0 && !hasPodEnded(pod));
  return user && `claim ${user.claims[0]} is still used by Pod ${user.name}, which has not ended`;
}

function knownAbout({ diagnosis }: PlanInput, finalizer: string): string {
  const held = diagnosis.findings.filter((one) => one.finalizer === finalizer);
  const causes = findingsOf(diagnosis, [...new Set(held.flatMap(({ waitsFor }) => waitsFor))]);
  const said = causes.map(({ continuation, subject: { kind, namespace, name }, message }) => {
    return continuation ?? [kind, [namespace, name].filter(Boolean).join('/'), message].join(' ');
  });
  return listNames([...new Set(said)], 2) || 'the diagnosis found no reason';
}

/** Only a person's decision removes a finalizer: its name, written out in full. */
function notNamed({ policy }: PlanInput, finalizer: string, known: string): string | undefined {
  if (policy.finalizers.includes(finalizer)) return undefined;
  return `force-finalizers does not allow it (why it stays: ${known}); to remove it, add to force-finalizers: ${finalizer}`;
}

/** By node: overdue pods may be deleted without their kubelet only if the node is lost. */
function podCandidates({ snapshot, policy }: PlanInput): Candidate[] {
  const nowMs = Date.parse(snapshot.takenAt);
  const overdue = itemsIn(snapshot.pods).filter(
    (pod) => pod.deletionTimestamp !== undefined && isOverdue(pod, nowMs),
  );
  return [...Map.groupBy(overdue, ({ nodeName }) => nodeName ?? '')].map(([node, pods]) => {
    const names = pods.map(({ name }) => name);
    const { lost, text } = nodeState(snapshot.nodes[node], nowMs);
    const known = `node ${node}, which ${text}`;
    const unasked = `overdue, and wait for ${known}; force-pods: true would delete with grace period 0`;
    return {
      ...{ step: 'overdue-pods', type: POD_TYPE, finalizer: '', node, known },
      target: manyTarget('pods', names),
      leaves: `containers that still run on node ${node}, and the volumes attached to it`,
      reason: lost ? (policy.pods ? undefined : unasked) : `overdue, but node ${node} ${text}`,
    };
  });
}

const LOST_AFTER_MS = 5 * 60_000;

/** `Ready=False` is written by a kubelet that runs, and `Unknown` for a while is a restart: both end their pods later. */
export function nodeState(
  node: Read<NodeFacts | undefined> | undefined,
  nowMs: number,
): { lost: boolean; text: string } {
  if (node?.ok !== true) {
    const reason = node?.failure.message ?? 'no time was left';
    return { lost: false, text: `could not be read: ${reason}` };
  }
  if (node.value === undefined) return { lost: true, text: 'does not exist' };
  const { ready, readySince, readyReason } = node.value;
  const lost = ready === 'Unknown' && nowMs - Date.parse(readySince ?? '') > LOST_AFTER_MS;
  const rule = lost ? '' : '; it counts as lost after 5 minutes of Ready=Unknown';
  const since = `since ${readySince ?? 'an unknown time'} (${readyReason ?? 'no reason'})`;
  return { lost, text: `is Ready=${ready ?? 'unset'} ${since}${rule}` };
}

/**
 * Mode `namespace` is itself the permission for `kubernetes`; each other entry has to be named. `kubernetes` comes last, and
 * only when nothing else holds the namespace: it would still be there, with content that its controller no longer deletes.
 */
function ownCandidates(input: PlanInput): Candidate[] {
  const { policy, diagnosis, snapshot } = input;
  const { name, finalizers, specFinalizers } = snapshot.namespace;
  const isNamed = policy.finalizers.includes(KUBERNETES_FINALIZER);
  const entry = (finalizer: string, step: ForceAction['step']): Candidate => {
    const own = { step, finalizer, node: '', type: NAMESPACE_TYPE, target: namespaceTarget(name) };
    if (isLastEntry(own)) return own;
    const known = knownAbout(input, finalizer);
    const leaves = lookUpFinalizer(finalizer, NAMESPACE_TYPE)?.leakIfRemoved;
    const reason =
      policy.mode === 'objects'
        ? `${finalizer} belongs to the namespace itself: only force-finalize: namespace removes it`
        : notNamed(input, finalizer, known);
    return { ...own, known, leaves, reason };
  };
  const all = [
    ...finalizers.map((one) => entry(one, 'namespace-finalizer')),
    ...specFinalizers.map((one) => entry(one, 'namespace-spec-finalizer')),
  ];
  const foreign = all.filter((one) => !isLastEntry(one));
  if (policy.mode === 'objects') return foreign;
  const moving = isNamed ? undefined : movingReason(diagnosis);
  const reason = foreign.every((one) => one.reason === undefined)
    ? moving && `${moving}: wait longer, or name ${KUBERNETES_FINALIZER} in force-finalizers`
    : `${KUBERNETES_FINALIZER} stays in spec.finalizers as long as other entries do: without it the namespace would still be there, and its content would never be deleted`;
  return [...foreign, ...all.filter(isLastEntry).map((one) => ({ ...one, reason }))];
}

/** For the log, before the first write: one line per action or refusal. */
export function renderPlan({ actions, policy, namespace, refused }: ForcePlan): string[] {
  const { mode } = policy;
  const { name, uid } = namespace;
  const lines = actions.flatMap((action, index) => {
    const { finalizer, known, leaves, target } = action;
    const needs = isOnNamespace(action) ? 'namespace' : 'objects';
    const removal = `remove finalizer ${finalizer} from ${target}`;
    const text = finalizer === '' ? `delete ${target} with grace period 0` : removal;
    return [
      `  ${index + 1}. ${text}${mode === 'plan' ? ` [force-finalize: ${needs}]` : ''}`,
      ...(known ? [`     why it stays: ${known}`] : []),
      ...(leaves ? [`     may be left behind: ${leaves}`] : []),
    ];
  });
  return [
    `Force plan for namespace ${name} (UID ${uid}), force-finalize: ${mode}`,
    ...(actions.length > 0 ? lines : ['  nothing will be changed']),
    ...refused.map(({ target, reason }) => `  refused: ${target}: ${reason}`),
  ];
}

/** For a report: all that mode `plan` says, and that of another mode before its first write. */
export function recordPlan({ policy, actions, refused }: ForcePlan): ForceRecord {
  const { mode, orphans } = policy;
  const rows = actions.map(({ target, finalizer, step }) => {
    const isIf = orphans === 'refuse' && isOnNamespace({ step }) ? ' if nothing is left in it' : '';
    return { target, finalizer, result: mode === 'plan' ? `would be done${isIf}` : 'planned' };
  });
  return { mode, actions: rows, orphans: [], refused };
}
