import { type Draft, namespaceSubject, type View } from '../draft.ts';
import { namespaceControllerInactiveRemedies } from '../remedies/namespace.ts';

/** A leader renews its Lease every 2 s; after its duration anybody may take it (client-go, leader election). */
const LEASE_SECONDS = 15;
/** A backlog alone delays the first pass by minutes on a busy cluster; without a stale Lease, wait. */
const SILENCE_MS = 90_000;

export const CONTROLLER_LEASE = { namespace: 'kube-system', name: 'kube-controller-manager' };

/**
 * Nobody processes the namespace: no conditions were ever written, nothing in it has been asked to go.
 * A stale Lease proves that kube-controller-manager is not there; silence alone only suggests it.
 */
export function namespaceControllerInactive(view: View): Draft[] {
  if (!isUnprocessed(view)) return [];
  const { namespace, details } = view.now;
  const sinceMs = view.nowMs - Date.parse(namespace.deletionTimestamp ?? '');
  const leases = details?.leases[CONTROLLER_LEASE.namespace];
  const lease =
    leases?.ok === true
      ? leases.value.find(({ name }) => name === CONTROLLER_LEASE.name)
      : undefined;
  const leaseAgeMs =
    lease?.renewTime === undefined ? undefined : view.nowMs - Date.parse(lease.renewTime);
  const isStale =
    leaseAgeMs !== undefined && leaseAgeMs > 1_000 * (lease?.durationSeconds ?? LEASE_SECONDS);
  if (!isStale && (sinceMs < SILENCE_MS || mayBeHeldElsewhere(view))) return [];
  const couldRead = view.now.discovery.ok && view.now.content.every(({ read }) => read.ok);
  const seen = hasQueue(view) ? 'nothing in it has been asked to go' : 'nothing is left in it';
  return [
    {
      code: 'namespace-controller-inactive',
      subject: namespaceSubject(namespace.name),
      message: isStale
        ? 'has not been processed: kube-controller-manager, which empties namespaces, is not running'
        : 'has not been processed: the namespace controller has not written a condition yet',
      evidence: [
        `terminating since ${namespace.deletionTimestamp}, without any condition${couldRead ? `, and ${seen}` : ''}`,
        leaseAgeMs === undefined
          ? `Lease ${CONTROLLER_LEASE.namespace}/${CONTROLLER_LEASE.name} could not be seen; managed clusters hide it`
          : `Lease ${CONTROLLER_LEASE.namespace}/${CONTROLLER_LEASE.name} was last renewed at ${lease?.renewTime}, ${Math.round(leaseAgeMs / 1_000)} s ago`,
      ],
      ...(namespace.deletionTimestamp === undefined ? {} : { since: namespace.deletionTimestamp }),
      scope: 'cluster',
      remedies: namespaceControllerInactiveRemedies({ namespace }),
      blocksNamespace: 'only the namespace controller empties and finishes it',
    },
  ];
}

/** Servers before 1.16 write no conditions: an API that cannot be discovered holds such a namespace, too. */
function mayBeHeldElsewhere(view: View): boolean {
  const { discovery } = view.now;
  return !hasQueue(view) && (!discovery.ok || discovery.value.failedGroups.length > 0);
}

function hasQueue(view: View): boolean {
  return view.now.content.some(({ read }) => read.ok && read.value.queued > 0);
}

/** No conditions, and no object but what was asked to go by somebody before. */
export function isUnprocessed(view: View): boolean {
  const { namespace, content } = view.now;
  const isWaitingForController = namespace.specFinalizers.includes('kubernetes');
  const total = content.reduce((sum, { read }) => sum + (read.ok ? read.value.total : 0), 0);
  return isWaitingForController && !view.conditions.present && (total === 0 || hasQueue(view));
}
