import type {
  Diagnosis,
  FindingCode,
  HeldNamespace,
  Movement,
  QueuedContent,
} from '../model/finding.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { viewOf } from './ask.ts';
import { contradictionsOf } from './contradictions.ts';
import type { Draft, Rule, View } from './draft.ts';
import { buildGraph } from './graph.ts';
import { healing, movementOf } from './movement.ts';
import { notInspected } from './not-inspected.ts';
import { apiserviceUnavailable } from './rules/apiservice-unavailable.ts';
import { contentDeleting } from './rules/content-deleting.ts';
import { contentFailure } from './rules/content-failure.ts';
import { crdTerminating } from './rules/crd-terminating.ts';
import { discoveryFailed } from './rules/discovery-failed.ts';
import { namespaceControllerInactive } from './rules/namespace-controller-inactive.ts';
import { namespaceFinalizer } from './rules/namespace-finalizer.ts';
import { namespaceSpecFinalizer } from './rules/namespace-spec-finalizer.ts';
import { objectFinalizer } from './rules/object-finalizer.ts';
import { podGracePeriod } from './rules/pod-grace-period.ts';
import { podOverdue } from './rules/pod-overdue.ts';
import { unexplained } from './rules/unexplained.ts';
import { volumeInUse } from './rules/volume-in-use.ts';

/** Every rule is asked; the order only decides what is read first among equals. */
const RULES: readonly Rule[] = [
  namespaceFinalizer,
  namespaceSpecFinalizer,
  apiserviceUnavailable,
  discoveryFailed,
  podGracePeriod,
  podOverdue,
  contentFailure,
  namespaceControllerInactive,
  objectFinalizer,
  volumeInUse,
  crdTerminating,
  contentDeleting,
];

/**
 * From what was read to why the namespace is still there. Pure: the same snapshots give the same
 * diagnosis. `before` is an earlier look during the same wait; without it, slow and stuck cannot be
 * told apart.
 */
export function diagnose(now: Snapshot, before?: Snapshot): Diagnosis {
  const view = viewOf(now, before);
  const unread = notInspected(view);
  const moving = movementOf(view);
  const drafts = RULES.flatMap((rule) => rule(view));
  const blocking = drafts.filter(({ blocksNamespace }) => blocksNamespace !== undefined);
  const trying = unread.length > 0 ? undefined : keepsTrying(view, blocking, moving);
  const movement = trying ?? moving;
  const isStill = movement.kind === 'none' || movement.kind === 'unknown';
  if (blocking.length === 0 && unread.length === 0 && isStill) drafts.push(unexplained(view));
  const graph = buildGraph(drafts);
  return {
    ...graph,
    queued: queuedOf(now),
    notInspected: unread,
    conditions: now.namespace.conditions,
    contradictions: contradictionsOf(view),
    alsoHeld: alsoHeld(view, graph),
    reservations: {},
    movement,
    inspectedTypes: now.content.filter(({ read }) => read.ok).length,
  };
}

/** Nothing is in the way of the namespace controller: it has not begun, tries again, or is slow. */
function keepsTrying(
  view: View,
  blocking: readonly Draft[],
  moving: Movement,
): Movement | undefined {
  if (blocking.length === 0) return healing(view);
  const isSlow = blocking.every(({ code }) => code === 'content-deleting');
  // A second look would have told how fast it goes.
  return isSlow && moving.kind === 'unknown' ? { kind: 'retrying' } : undefined;
}

function queuedOf(now: Snapshot): QueuedContent[] {
  return now.content
    .flatMap(({ type, read }) =>
      read.ok && read.value.queued > 0
        ? [
            {
              apiVersion: type.group === '' ? type.version : `${type.group}/${type.version}`,
              kind: type.kind,
              count: read.value.queued,
            },
          ]
        : [],
    )
    .sort((a, b) => b.count - a.count || a.kind.localeCompare(b.kind));
}

/** These hold every namespace that is Terminating, whatever is in it. */
const HOLDS_ALL: ReadonlySet<FindingCode> = new Set<FindingCode>([
  'apiservice-unavailable',
  'discovery-failed',
  'conversion-webhook-failing',
  'namespace-controller-inactive',
]);

function alsoHeld(view: View, graph: Pick<Diagnosis, 'findings' | 'rootCauses'>): HeldNamespace[] {
  const others = view.now.details?.otherTerminating;
  const holdsAll = graph.findings.some(
    ({ id, code }) => HOLDS_ALL.has(code) && graph.rootCauses.includes(id),
  );
  return holdsAll && others?.ok === true
    ? [...others.value].sort().map((name) => ({ name, since: '' }))
    : [];
}
