import type { ResourceType } from '../kubernetes/api.ts';
import type { FinalizerWriter, ObjectFacts } from '../observe/snapshot.ts';
import { lookUpFinalizer } from './catalogue.ts';
import type { Subject } from './diagnosis.ts';
import type { Draft, View } from './draft.ts';
import { ownerUnknownRemedies } from './remedies/owners.ts';

export interface HeldBy {
  finalizer: string;
  object: Subject;
  writers: readonly FinalizerWriter[];
  /** Absent for the namespace's own finalizers. */
  type?: ResourceType;
  facts?: ObjectFacts;
}

/** The controller that should remove a finalizer, and in what state it is. */
export function ownerDraft(_view: View, held: HeldBy): Draft {
  const group = held.type?.group ?? '';
  const known = lookUpFinalizer(held.finalizer, { kind: held.object.kind, group });
  const writer = held.writers.find((entry) => entry.finalizer === held.finalizer);
  return {
    code: 'owner-unknown',
    subject: held.object,
    finalizer: held.finalizer,
    message:
      known === undefined
        ? `nothing in the cluster shows who should remove ${held.finalizer}`
        : `${held.finalizer} belongs to ${known.owner}, which was not found in this cluster`,
    evidence: [
      writer === undefined
        ? 'managedFields name no writer of the finalizer'
        : `managedFields: written by "${writer.manager}" (${writer.operation})`,
      known === undefined
        ? 'it is not among the well-known finalizers'
        : `well-known finalizer of ${known.owner}`,
    ],
    scope: 'namespace',
    remedies: ownerUnknownRemedies({ finalizer: held.finalizer, object: held.object, known }),
  };
}
