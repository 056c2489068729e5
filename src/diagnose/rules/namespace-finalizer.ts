import { type Draft, namespaceSubject, type View } from '../draft.ts';
import { ownerDrafts, ownerLink } from '../owners.ts';
import { namespaceFinalizerRemedies } from '../remedies/namespace.ts';

/**
 * Entries of the namespace's own metadata.finalizers. No condition covers them: the five are all
 * False while such an entry holds the namespace. It goes when both lists are empty
 * (kubernetes/pkg/registry/core/namespace/storage/storage.go, ShouldDeleteNamespaceDuringUpdate).
 */
export function namespaceFinalizer(view: View): Draft[] {
  const { namespace } = view.now;
  const subject = namespaceSubject(namespace.name);
  return namespace.finalizers.flatMap((finalizer, index) => {
    const owners = ownerDrafts(view, {
      finalizer,
      object: subject,
      writers: namespace.writers,
      count: 1,
    });
    const done =
      namespace.specFinalizers.length === 0
        ? 'spec.finalizers is empty: the namespace controller has finished and only this entry is left'
        : 'the namespace goes only when metadata.finalizers and spec.finalizers are both empty';
    return [
      {
        code: 'namespace-finalizer',
        subject,
        finalizer,
        message: `is held by the entry ${finalizer} of its own metadata.finalizers`,
        evidence: [`metadata.finalizers: ${namespace.finalizers.join(', ')}`, done],
        ...(namespace.deletionTimestamp === undefined
          ? {}
          : { since: namespace.deletionTimestamp }),
        scope: 'namespace',
        remedies: namespaceFinalizerRemedies({ namespace, finalizer, index }),
        blocksNamespace: `metadata.finalizers has the entry ${finalizer}`,
        waitsFor: [ownerLink(owners[0])],
      } satisfies Draft,
      ...owners,
    ];
  });
}
