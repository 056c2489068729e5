import type { WorkloadFacts } from '../observe/details.ts';
import type { Subject } from './diagnosis.ts';
import { subjectText } from './display.ts';
import { type Draft, findingId, type View } from './draft.ts';
import { type Candidate, candidatesFor } from './ownership/candidates.ts';
import {
  crdName,
  groupsOf,
  type Held,
  isOfControllerManager,
  knownOwner,
  writerOf,
} from './ownership/held.ts';
import { refusalsFor } from './ownership/refusals.ts';
import type { HeldObject } from './remedies/object.ts';
import {
  ownerFailingRemedies,
  ownerMissingRemedies,
  ownerNotReadyRemedies,
  ownerRunningRemedies,
  ownerScaledToZeroRemedies,
  ownerUnknownRemedies,
} from './remedies/owners.ts';
import { refusingDrafts } from './rules/refusals.ts';

/**
 * The controller that should remove a finalizer, and in what state it is. The first draft is the
 * owner's; others may follow, for what the owner waits for.
 */
export function ownerDrafts(view: View, held: Held): [Draft, ...Draft[]] {
  if (isOfControllerManager(held))
    return alive(view, held, CONTROLLER_MANAGER, [
      `${held.finalizer} is removed by the ${knownOwner(held)?.owner ?? 'kube-controller-manager'}`,
    ]);
  const best = candidatesFor(view, held)[0];
  if (best === undefined) return [withoutCandidate(view, held)];
  if (best.workload === undefined) return [missing(view, held, best)];
  return ofWorkload(view, held, best, best.workload);
}

/** The id of the finding that a held object waits for. */
export function ownerLink(draft: Draft): { id: string; because: string } {
  return {
    id: findingId(draft.code, draft.subject, draft.finalizer),
    because: 'only its owner removes the finalizer',
  };
}

const CONTROLLER_MANAGER: Subject = {
  apiVersion: 'v1',
  kind: 'Pod',
  namespace: 'kube-system',
  name: 'kube-controller-manager',
};

function ofWorkload(
  view: View,
  held: Held,
  candidate: Candidate,
  workload: WorkloadFacts,
): [Draft, ...Draft[]] {
  const subject = workloadSubject(workload);
  const common = { subject, finalizer: held.finalizer, scope: scopeOf(view, workload.namespace) };
  const state = `${workload.ready} of ${workload.wanted} replicas are ready`;
  const evidence = [...candidate.evidence, state];
  const target = { kind: workload.kind, namespace: workload.namespace, name: workload.name };
  if (workload.wanted === 0) {
    return [
      {
        ...common,
        code: 'owner-scaled-to-zero',
        message: `should remove ${held.finalizer}, but is scaled to zero`,
        evidence,
        remedies: ownerScaledToZeroRemedies({ workload: target, held: asObject(held) }),
      },
    ];
  }
  if (workload.ready === 0) {
    const why = workload.conditions.find(
      ({ status, message }) => status !== 'True' && message !== '',
    );
    return [
      {
        ...common,
        code: 'owner-not-ready',
        message: `should remove ${held.finalizer}, but none of its ${workload.wanted} replicas is ready`,
        evidence: [
          ...evidence,
          ...(why === undefined ? [] : [`${why.type}=${why.status}: ${why.message}`]),
        ],
        remedies: ownerNotReadyRemedies({ workload: target, held: asObject(held) }),
      },
    ];
  }
  return alive(view, held, subject, evidence, candidate.serviceAccount);
}

/** It runs: is what it must do refused, or is it only slow? */
function alive(
  view: View,
  held: Held,
  subject: Subject,
  evidence: string[],
  serviceAccount?: { namespace: string; name: string },
): [Draft, ...Draft[]] {
  const workload =
    subject === CONTROLLER_MANAGER
      ? undefined
      : { kind: subject.kind, namespace: subject.namespace ?? '', name: subject.name };
  const common = {
    subject,
    finalizer: held.finalizer,
    scope: scopeOf(view, subject.namespace ?? ''),
  };
  const refusals = refusalsFor(view, held);
  const first = refusals[0];
  const causes = refusingDrafts(view, held, refusals);
  if (first === undefined && causes.length === 0) {
    return [
      {
        ...common,
        code: 'owner-running',
        message: `runs and should remove ${held.finalizer}; nothing shows that it fails, so it may be slow or in back-off`,
        evidence,
        remedies:
          workload === undefined
            ? [{ text: 'Give it more time: raise the timeout' }]
            : ownerRunningRemedies({ workload }),
      },
    ];
  }
  const said = first?.error.text ?? causes[0]?.message ?? '';
  return [
    {
      ...common,
      code: 'owner-failing',
      message: `runs, but what it must do to remove ${held.finalizer} is refused: ${said}`,
      evidence: [...evidence, ...refusals.map(({ source, error }) => `${source}: ${error.text}`)],
      remedies: ownerFailingRemedies({
        workload,
        error: first?.error ?? { kind: 'other' },
        serviceAccount,
      }),
      waitsFor: causes.map((cause) => ({
        id: findingId(cause.code, cause.subject, cause.finalizer),
        because: 'it refuses the update that removes the finalizer',
      })),
    },
    ...causes,
  ];
}

/** Its ServiceAccount and its rights are known, and nothing runs with them. */
function missing(view: View, held: Held, candidate: Candidate): Draft {
  const { namespace, name } = candidate.serviceAccount;
  const inside = namespace === view.now.namespace.name;
  const known = knownOwner(held);
  const owner = known?.owner ?? `the controller of ServiceAccount ${namespace}/${name}`;
  return {
    code: 'owner-missing',
    subject: definitionOf(view, held),
    finalizer: held.finalizer,
    message: `has no controller any more: ${inside ? `it ran as ServiceAccount ${name} in this namespace and was deleted with it` : `nothing runs as ServiceAccount ${namespace}/${name}, which may remove ${held.finalizer}`}`,
    evidence: [
      ...candidate.evidence,
      `no Deployment, StatefulSet or DaemonSet in the cluster runs as ServiceAccount ${namespace}/${name}`,
      ...leaseEvidence(view, namespace),
    ],
    scope: inside ? 'namespace' : 'cluster',
    remedies: ownerMissingRemedies({
      finalizer: held.finalizer,
      owner,
      known,
      insideNamespace: inside,
      held: asObject(held),
    }),
    ...(inside
      ? {
          waitsForNamespace: `its controller was in this namespace, and nothing can be created in it before it is gone`,
        }
      : {}),
  };
}

/** Nothing points to a workload. Missing needs a place where the owner would have to be. */
function withoutCandidate(view: View, held: Held): Draft {
  const details = view.now.details;
  const known = knownOwner(held);
  const evidence = lookedAt(view, held);
  const hasLooked = details?.workloads?.ok === true && details.grants?.ok === true;
  const crd = details?.crds[crdName(held) ?? ''];
  const isCustom = crd?.ok === true && crd.value !== undefined;
  const hasDefaultPlace = known !== undefined && known.workload.length > 0;
  const isOutOfSight =
    known?.workload.some(({ namespace }) => namespace === 'kube-system') === true &&
    (details?.isOnProvider?.ok !== true || details.isOnProvider.value);
  if (hasLooked && (isCustom || hasDefaultPlace) && !isOutOfSight) {
    const owner =
      known?.owner ??
      `the controller of ${crd?.ok === true ? (crd.value?.kind ?? '') : held.object.kind}`;
    return {
      code: 'owner-missing',
      subject: definitionOf(view, held),
      finalizer: held.finalizer,
      message: `has no controller in the cluster that would remove ${held.finalizer}${known === undefined ? '' : `, a finalizer of ${known.owner}`}`,
      evidence,
      scope: 'cluster',
      remedies: ownerMissingRemedies({
        finalizer: held.finalizer,
        owner,
        known,
        insideNamespace: false,
        held: asObject(held),
      }),
    };
  }
  return {
    code: 'owner-unknown',
    subject: held.object,
    finalizer: held.finalizer,
    message:
      known === undefined
        ? `has finalizer ${held.finalizer}, and nothing in the cluster shows who should remove it`
        : `has finalizer ${held.finalizer}, which belongs to ${known.owner}; where that runs could not be seen`,
    evidence,
    scope: 'namespace',
    remedies: ownerUnknownRemedies({
      finalizer: held.finalizer,
      object: held.object,
      known,
      held: asObject(held),
    }),
  };
}

/** What a sceptic asks: where did you look? */
function lookedAt(view: View, held: Held): string[] {
  const details = view.now.details;
  const writer = writerOf(held);
  const groups = groupsOf(view, held);
  const known = knownOwner(held);
  const crd = crdName(held);
  const crdRead = crd === undefined ? undefined : details?.crds[crd];
  return [
    writer === undefined
      ? 'managedFields name no writer of the finalizer'
      : `managedFields: written by "${writer.manager}"${isPerson(writer.manager) ? ', a tool that people use, not a controller' : ''}${writer.time === undefined ? '' : ` at ${writer.time}`}`,
    groups.length === 0
      ? 'no API group in the cluster fits its name'
      : `API groups that fit: ${groups.join(', ')}`,
    ...(crd === undefined || crdRead === undefined
      ? []
      : [
          crdRead.ok
            ? crdRead.value === undefined
              ? `there is no CRD ${crd}`
              : `CRD ${crd} is there`
            : `CRD ${crd} could not be read: ${crdRead.failure.message}`,
        ]),
    details?.workloads === undefined
      ? 'workloads were not read'
      : details.workloads.ok
        ? details.grants?.ok === true
          ? `${details.workloads.value.length} Deployments, StatefulSets and DaemonSets and the RBAC grants of all ServiceAccounts were read: none is tied to it`
          : `RBAC could not be read: ${details.grants?.ok === false ? details.grants.failure.message : 'not asked'}`
        : `workloads could not be read: ${details.workloads.failure.message}`,
    known === undefined
      ? 'it is not a well-known finalizer'
      : `well-known finalizer of ${known.owner}${known.workload.length === 0 ? '' : ` (by default ${known.workload.map(({ namespace, name }) => `${namespace}/${name}`).join(', ')})`}`,
    ...attachmentEvidence(view, held),
  ];
}

/** Field managers of people and of deployment tools: the author of a manifest put the finalizer there. */
function isPerson(manager: string): boolean {
  return /^(?:kubectl(?:-.*)?|helm|argocd-controller|kustomize-controller|Terraform.*)$/.test(
    manager,
  );
}

/** "The workload that is known to be gone; else the object's CRD; else the object itself." */
function definitionOf(view: View, held: Held): Subject {
  const name = crdName(held);
  const crd = name === undefined ? undefined : view.now.details?.crds[name];
  if (name === undefined || crd?.ok !== true || crd.value === undefined) return held.object;
  return { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', name };
}

function leaseEvidence(view: View, namespace: string): string[] {
  const leases = view.now.details?.leases[namespace];
  if (leases?.ok !== true) return [];
  return leases.value.flatMap(({ name, holder, renewTime, durationSeconds }) => {
    if (renewTime === undefined) return [];
    const ageMs = view.nowMs - Date.parse(renewTime);
    const isStale = ageMs > 3_000 * (durationSeconds ?? 15);
    return isStale
      ? [
          `Lease ${namespace}/${name} was last renewed at ${renewTime}${holder === undefined ? '' : ` by ${holder}`}`,
        ]
      : [];
  });
}

function attachmentEvidence(view: View, held: Held): string[] {
  const details = view.now.details;
  const status = details?.statuses[held.facts?.uid ?? ''];
  const volume = status?.ok === true ? status.value.volumeName : undefined;
  if (held.object.kind !== 'PersistentVolumeClaim' || volume === undefined) return [];
  if (details?.attachments?.ok !== true) return [`bound to PersistentVolume ${volume}`];
  return details.attachments.value
    .filter((attachment) => attachment.volume === volume)
    .map(
      ({ name, attacher, node, attached, error }) =>
        `VolumeAttachment ${name}: attacher ${attacher}, node ${node}, attached=${attached}${error === undefined ? '' : `, ${error}`}`,
    );
}

function workloadSubject({ kind, namespace, name }: WorkloadFacts): Subject {
  return { apiVersion: 'apps/v1', kind, namespace, name };
}

function scopeOf(view: View, namespace: string): 'namespace' | 'cluster' {
  return namespace === view.now.namespace.name ? 'namespace' : 'cluster';
}

function asObject(held: Held): HeldObject | undefined {
  if (held.type === undefined || held.facts === undefined) return undefined;
  return {
    object: held.facts,
    type: held.type,
    finalizer: held.finalizer,
    index: held.facts.finalizers.indexOf(held.finalizer),
    count: held.count,
  };
}

export { subjectText };
