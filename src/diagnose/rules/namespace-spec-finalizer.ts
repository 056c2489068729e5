import { type Draft, namespaceSubject, type View } from '../draft.ts';
import { ownerDrafts, ownerLink } from '../owners.ts';
import { namespaceSpecFinalizerRemedies } from '../remedies/namespace.ts';

/** Belongs to the namespace controller, which drops it when everything inside is gone. */
const OF_THE_CONTROLLER = 'kubernetes';

/**
 * Entries of spec.finalizers besides `kubernetes`. Only PUT …/finalize can change them; any other
 * write keeps the stored list without an error (kubernetes/pkg/registry/core/namespace/strategy.go).
 */
export function namespaceSpecFinalizer(view: View): Draft[] {
  const { namespace } = view.now;
  const subject = namespaceSubject(namespace.name);
  return namespace.specFinalizers
    .filter((finalizer) => finalizer !== OF_THE_CONTROLLER)
    .flatMap((finalizer) => {
      const owners = ownerDrafts(view, {
        finalizer,
        object: subject,
        writers: [],
        count: 1,
        isInSpec: true,
      });
      return [
        {
          code: 'namespace-spec-finalizer',
          subject,
          finalizer,
          message: `is held by the entry ${finalizer} of its spec.finalizers`,
          evidence: [
            `spec.finalizers: ${namespace.specFinalizers.join(', ')}`,
            'the namespace controller removes only its own entry, "kubernetes"',
          ],
          ...(namespace.deletionTimestamp === undefined
            ? {}
            : { since: namespace.deletionTimestamp }),
          scope: 'namespace',
          remedies: namespaceSpecFinalizerRemedies({ namespace, finalizer }),
          blocksNamespace: `spec.finalizers has the entry ${finalizer}`,
          waitsFor: [ownerLink(owners[0])],
        } satisfies Draft,
        ...owners,
      ];
    });
}
