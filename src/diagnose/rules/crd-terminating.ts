import type { Draft, View } from '../draft.ts';
import { crdTerminatingRemedies } from '../remedies/general.ts';

/**
 * A type that is being deleted itself. The CRD waits for its objects, not they for it, so this
 * contributes and is never the cause (apiextensions-apiserver pkg/controller/finalizer).
 */
export function crdTerminating(view: View): Draft[] {
  return Object.values(view.now.details?.crds ?? {}).flatMap((read): Draft[] => {
    const crd = read.ok ? read.value : undefined;
    if (crd?.deletionTimestamp === undefined) return [];
    const condition = crd.conditions.find(({ type }) => type === 'Terminating');
    return [
      {
        code: 'crd-terminating',
        subject: {
          apiVersion: 'apiextensions.k8s.io/v1',
          kind: 'CustomResourceDefinition',
          name: crd.name,
        },
        message: 'is itself being deleted and waits for its last objects',
        evidence: [
          `deletionTimestamp ${crd.deletionTimestamp}`,
          ...(condition === undefined
            ? []
            : [`Terminating=${condition.status} (${condition.reason}): ${condition.message}`]),
        ],
        since: crd.deletionTimestamp,
        scope: 'cluster',
        remedies: crdTerminatingRemedies({ crd: crd.name }),
      },
    ];
  });
}
