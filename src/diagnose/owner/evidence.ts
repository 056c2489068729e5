import type { View } from '../draft.ts';
import { crdName, groupsOf, type Held, knownOwner, writerOf } from './held.ts';

/** What a sceptic asks: where did you look? */
export function lookedAt(view: View, held: Held): string[] {
  const details = view.now.details;
  const writer = writerOf(held);
  const groups = groupsOf(view, held);
  const known = knownOwner(held);
  const crd = crdName(view, held);
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
      ? 'nothing in its name or its writer points to a controller, so there is no workload to look for'
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

export function leaseEvidence(view: View, namespace: string): string[] {
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
