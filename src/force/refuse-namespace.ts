import { matchesGlob } from '../base/text.ts';
import { type ActivePolicy, protectedBecause, saysNothing } from '../model/policy.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { HostedBackends } from './backends.ts';
import { listNames, namespaceTarget, type Refusal } from './force-plan.ts';

export interface NamespaceQuestion {
  snapshot: Snapshot;
  policy: ActivePolicy;
  /** UID of the namespace when the run began. */
  startUid: string;
  ownNamespace: string | undefined;
  backends: HostedBackends;
}

export interface NamespaceRefusals {
  /** No input lifts these. */
  final: Refusal[];
  /** These say which input would. */
  liftable: Refusal[];
}

/** Everything that speaks against forcing this namespace at all, so that people mend it in one go. */
export function refuseNamespace(question: NamespaceQuestion): NamespaceRefusals {
  const target = namespaceTarget(question.snapshot.namespace.name);
  const toRefusals = (reasons: string[]): Refusal[] =>
    reasons.map((reason) => ({ target, reason }));
  return {
    final: toRefusals(finalReasons(question)),
    liftable: toRefusals(liftableReasons(question)),
  };
}

function finalReasons({
  snapshot: { namespace },
  startUid,
  ownNamespace,
  backends,
}: NamespaceQuestion): string[] {
  const reasons: string[] = [];
  const why = protectedBecause(namespace.name, ownNamespace);
  if (why !== undefined) reasons.push(`it is protected: ${why}; no input lifts that`);
  if (namespace.uid !== startUid || namespace.uid === '') {
    reasons.push(
      `it is not the namespace this run began with: its UID was ${startUid} and is ${namespace.uid}`,
    );
  }
  if (namespace.deletionTimestamp === undefined || namespace.phase !== 'Terminating') {
    reasons.push('nobody has asked for its deletion: only a Terminating namespace is forced');
  }
  if (backends.usedElsewhere.length > 0) {
    reasons.push(
      `it holds the Service of ${listNames(backends.usedElsewhere.map(({ what, evidence }) => `${what} (${evidence})`))}; remove that registration first`,
    );
  }
  if (backends.unread.length > 0) {
    // Not knowing is no "no": a namespace of the cluster's infrastructure cannot be put back.
    const unread = backends.unread.map(({ what, reason }) => `${what}: ${reason}`);
    reasons.push(
      `whether it holds the Service of a webhook, APIService or CRD conversion could not be read (${listNames(unread)})`,
    );
  }
  return reasons;
}

function liftableReasons({ snapshot: { namespace }, policy }: NamespaceQuestion): string[] {
  const reasons: string[] = [];
  const { label } = policy;
  const matching = policy.namespaces.filter((pattern) => matchesGlob(pattern, namespace.name));
  if (policy.namespaces.length === 0) {
    reasons.push(
      'force-namespaces is empty; name the namespaces that may be forced, for example preview-*',
    );
  } else if (matching.length === 0) {
    reasons.push(`force-namespaces (${listNames(policy.namespaces)}) does not match its name`);
  } else if (label === undefined && matching.every(saysNothing)) {
    reasons.push(
      'force-namespaces matches it only with *, which allows every namespace; name a part of the name (preview-*), or set force-label as well',
    );
  }
  if (label !== undefined && namespace.labels[label.key] !== label.value) {
    const has = namespace.labels[label.key];
    reasons.push(
      `force-label asks for ${label.key}=${label.value}, and it ${has === undefined ? 'has no such label' : `has ${label.key}=${has}`}`,
    );
  }
  return reasons;
}
