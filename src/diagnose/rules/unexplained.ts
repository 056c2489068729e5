import { type Draft, namespaceSubject, type View } from '../draft.ts';
import { unexplainedRemedies } from '../remedies/general.ts';

/** Everything could be read and no rule explains the hang: say what was looked at, and guess nothing. */
export function unexplained(view: View): Draft {
  const { now } = view;
  const objects = now.content.reduce(
    (total, { read }) => total + (read.ok ? read.value.total : 0),
    0,
  );
  return {
    code: 'unexplained',
    subject: namespaceSubject(now.namespace.name),
    message: 'is not gone, and nothing that could be read explains why',
    evidence: [
      `looked at ${now.content.length} resource types: ${objects} objects, none terminating with a finalizer`,
      `metadata.finalizers: ${now.namespace.finalizers.join(', ') || 'none'}; spec.finalizers: ${now.namespace.specFinalizers.join(', ') || 'none'}`,
      now.discovery.ok && now.discovery.value.failedGroups.length === 0
        ? 'every API group could be discovered'
        : 'not every API group could be discovered',
      ...now.namespace.conditions.map(
        (condition) => `${condition.type}=${condition.status}: ${condition.message}`,
      ),
    ],
    scope: 'namespace',
    remedies: unexplainedRemedies({ namespace: now.namespace }),
    blocksNamespace: 'it is still there',
  };
}
