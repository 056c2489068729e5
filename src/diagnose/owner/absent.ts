import type { Remedy, Subject } from '../../model/finding.ts';
import type { WorkloadFacts } from '../../model/snapshot.ts';
import { typeName } from '../display.ts';
import type { Draft, View } from '../draft.ts';
import {
  namespaceFinalizerRemedies,
  namespaceSpecFinalizerRemedies,
} from '../remedies/namespace.ts';
import type { HeldObject } from '../remedies/object.ts';
import { ownerMissingRemedies, ownerUnknownRemedies } from '../remedies/owners.ts';
import type { Candidate } from './candidates.ts';
import { leaseEvidence, lookedAt } from './evidence.ts';
import { crdName, type Held, knownOwner } from './held.ts';
import { powerful } from './rights.ts';

/** Its ServiceAccount and its rights are known, and nothing runs with them. */
export function missing(view: View, held: Held, candidate: Candidate): Draft {
  const { namespace, name } = candidate.serviceAccount;
  const isInside = namespace === view.now.namespace.name;
  const known = knownOwner(held);
  const { gone } = candidate;
  const draft = missingDraft(view, held, {
    owner:
      gone !== undefined
        ? `${gone.kind} ${gone.name}`
        : (known?.owner ?? `the controller of ServiceAccount ${namespace}/${name}`),
    subject: gone === undefined ? definitionOf(view, held) : workloadSubject(gone),
    message: missingMessage(held, candidate, isInside),
    evidence: [
      ...candidate.evidence,
      `no Deployment, StatefulSet or DaemonSet in the cluster runs as ServiceAccount ${namespace}/${name}`,
      ...leaseEvidence(view, namespace),
    ],
    isInside,
  });
  if (!isInside) return draft;
  return {
    ...draft,
    waitsForNamespace:
      'it was in this namespace, and nothing can be created in it before it is gone',
  };
}

function missingMessage(
  held: Held,
  { gone, serviceAccount }: Candidate,
  isInside: boolean,
): string {
  const { namespace, name } = serviceAccount;
  const owner = knownOwner(held)?.owner ?? 'it';
  if (gone !== undefined) {
    return `was ${isInside ? 'in this namespace and was deleted with it' : 'deleted'}, so nobody is left to remove ${held.finalizer}`;
  }
  return isInside
    ? `has no controller any more: ${owner} ran as ServiceAccount ${name} in this namespace and was deleted with it`
    : `has no controller any more: nothing runs as ServiceAccount ${namespace}/${name}, which may remove ${held.finalizer}`;
}

interface Missing {
  /** For people: "Deployment widget-operator", "Rancher". */
  owner: string;
  subject: Subject;
  message: string;
  evidence: string[];
  isInside: boolean;
}

function missingDraft(view: View, held: Held, absent: Missing): Draft {
  const { owner, subject, message, evidence, isInside } = absent;
  const { finalizer } = held;
  const remedies = ownerMissingRemedies({
    finalizer,
    owner,
    known: knownOwner(held),
    insideNamespace: isInside,
    held: asObject(held),
  });
  return {
    code: 'owner-missing',
    subject,
    finalizer,
    message,
    evidence,
    scope: isInside ? 'namespace' : 'cluster',
    remedies: [...remedies, ...ofNamespace(view, held)],
  };
}

/** Nothing points to a workload. Missing needs a place where the owner would have to be. */
export function withoutCandidate(view: View, held: Held): Draft {
  const details = view.now.details;
  const known = knownOwner(held);
  const evidence = lookedAt(view, held);
  const hasLooked = details?.workloads?.ok === true && details.grants?.ok === true;
  const crd = details?.crds[crdName(view, held) ?? ''];
  const definition = crd?.ok === true ? crd.value : undefined;
  const hasDefaultPlace = known !== undefined && known.workload.length > 0;
  // A cloud provider runs what belongs into kube-system where nobody can see it.
  const isOutOfSight =
    known?.workload.some(({ namespace }) => namespace === 'kube-system') === true &&
    (details?.isOnProvider?.ok !== true || details.isOnProvider.value);
  // Who may change everything may be the owner, and nothing would show it.
  const bystanders =
    details === undefined || known !== undefined ? [] : powerful(view, held, details);
  const couldBe = bystanders.map(
    ({ kind, namespace, name }) =>
      `${kind} ${namespace}/${name} runs and may change every type; nothing ties it to this one, but it could be the owner`,
  );
  const isKnowable = bystanders.length === 0 && !isOutOfSight;
  if (hasLooked && (definition !== undefined || hasDefaultPlace) && isKnowable) {
    return missingDraft(view, held, {
      owner: known?.owner ?? `the controller of ${definition?.kind ?? held.object.kind}`,
      subject: definitionOf(view, held),
      message: `has no controller in the cluster that would remove ${held.finalizer}${known === undefined ? '' : `, a finalizer of ${known.owner}`}`,
      evidence,
      isInside: false,
    });
  }
  return {
    code: 'owner-unknown',
    subject: held.object,
    finalizer: held.finalizer,
    continuation:
      known === undefined
        ? 'nothing in the cluster shows who should remove it'
        : `that finalizer belongs to ${known.owner}; where that runs could not be seen`,
    message:
      known === undefined
        ? `has finalizer ${held.finalizer}, and nothing in the cluster shows who should remove it`
        : `has finalizer ${held.finalizer}, which belongs to ${known.owner}; where that runs could not be seen`,
    evidence: [...evidence, ...couldBe],
    scope: 'namespace',
    remedies: [
      ...ownerUnknownRemedies({
        finalizer: held.finalizer,
        object: held.object,
        known,
        held: asObject(held),
      }),
      ...ofNamespace(view, held),
    ],
  };
}

/** "The workload that is known to be gone; else the object's CRD; else the object itself." */
function definitionOf(view: View, held: Held): Subject {
  const name = held.type === undefined ? undefined : typeName(held.type);
  const crd = name === undefined ? undefined : view.now.details?.crds[name];
  if (name === undefined || crd?.ok !== true || crd.value === undefined) return held.object;
  return { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', name };
}

export function workloadSubject({ kind, namespace, name }: WorkloadFacts): Subject {
  return { apiVersion: 'apps/v1', kind, namespace, name };
}

export function asObject(held: Held): HeldObject | undefined {
  if (held.type === undefined || held.facts === undefined) return undefined;
  return {
    object: held.facts,
    type: held.type,
    finalizer: held.finalizer,
    index: held.facts.finalizers.indexOf(held.finalizer),
    count: held.count,
  };
}

/** The last resort for an entry of the namespace's own lists, without what was said already. */
function ofNamespace(view: View, held: Held): Remedy[] {
  if (held.type !== undefined) return [];
  const { namespace } = view.now;
  const { finalizer } = held;
  const remedies =
    held.isInSpec === true
      ? namespaceSpecFinalizerRemedies({ namespace, finalizer })
      : namespaceFinalizerRemedies({
          namespace,
          finalizer,
          index: namespace.finalizers.indexOf(finalizer),
        });
  return remedies.filter(({ command }) => command !== undefined);
}
