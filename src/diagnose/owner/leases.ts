import { escapeForRegExp } from '../../base/text.ts';
import type { LeaseFacts } from '../../model/snapshot.ts';
import { type Actor, actorsOf } from '../actors.ts';
import { type Context, isInside, itemsIn } from '../context.ts';
import { type FinalizerDomain, finalizerDomain, type Held } from './held.ts';
import { containsName, hasProgramName, programNames, workloadsOfPod } from './names.ts';

/** Decides everything about Leases of leader election: whose they are, who holds them, whether they are renewed. */

/** Reports whether the holder still leads: after the Lease's duration any other replica may take over (client-go). */
export function isRenewed({ nowMs }: Context, { renewTime, durationSeconds }: LeaseFacts): boolean {
  return nowMs - Date.parse(renewTime ?? '') <= 1_000 * (durationSeconds ?? 15) + 5_000;
}

/** Returns the Leases named after the groups of a domain, or after a hash in front of their parent domain. */
export function leasesOfGroups({ now }: Context, { groups }: FinalizerDomain): LeaseFacts[] {
  return itemsIn(now.cluster.leases).filter(({ name }) =>
    groups.some((group) => {
      const parent = group.split('.').slice(1).join('.');
      return (
        name.includes(group) || new RegExp(`^[a-f0-9]{6,}\\.${escapeForRegExp(parent)}$`).test(name)
      );
    }),
  );
}

/** Returns the Leases that a program has written, and those that are named after it. */
export function leasesOfProgram({ now }: Context, program: string): LeaseFacts[] {
  return itemsIn(now.cluster.leases).filter(({ name, writers = [] }) =>
    [name, ...writers].some((one) => containsName(one, program)),
  );
}

/** Returns the workload whose pod holds the Lease; client-go makes the holder `<pod>_<uuid>`. */
export function holderOf(context: Context, { namespace, holder }: LeaseFacts): Actor | undefined {
  const pod = (holder ?? '').replace(/_[^_]*$/, '');
  const near = actorsOf(context).filter((actor) => actor.namespace === namespace);
  return workloadsOfPod(near, pod)[0];
}

/** Reports whether the holder has the name of a pod of a Deployment, and the Lease's namespace has no such pod. */
export function isLeftOver({ now }: Context, { namespace, holder = '' }: LeaseFacts): boolean {
  const [, pod = ''] = /^(.+-[a-z0-9]{5,10}-[a-z0-9]{5})_/.exec(holder) ?? [];
  const pods = now.cluster.pods ?? now.places[namespace]?.pods;
  return pod !== '' && pods?.ok === true && pods.value.every(({ name }) => name !== pod);
}

/**
 * Reports whether one of the workload's pods holds the Lease: client-go adds `_` and an ID to the name, cert-manager
 * `-external-` and the name of its controller.
 * Pods of a StatefulSet and static pods have the names of those before them: a Lease last renewed before is not theirs.
 */
export function isHolder({ kind, pods }: Actor, { holder = '', renewTime }: LeaseFacts): boolean {
  return pods.some(
    ({ name, creationTimestamp }) =>
      new RegExp(`^${escapeForRegExp(name)}(?:_|-external-|$)`).test(holder) &&
      !(
        /^(?:StatefulSet|Pod)$/.test(kind) &&
        Date.parse(renewTime ?? '') < Date.parse(creationTimestamp ?? '')
      ),
  );
}

/** Reports whether one of its pods may hold the Lease under the name of its node, as a pod with the node's network does. */
function mayHoldByNode({ pods }: Actor, { holder = '' }: LeaseFacts): boolean {
  const [host] = holder.replace(/_[^_]*$/, '').split('.');
  return host !== '' && pods.some(({ nodeName = '' }) => nodeName.split('.')[0] === host);
}

/** Reports whether one of its pods leads now: the others then handle no objects. */
export function hasLeader(context: Context, actor: Actor): boolean {
  // Pods of StatefulSets have the same names in every namespace.
  return itemsIn(context.now.cluster.leases).some(
    (lease) =>
      lease.namespace === actor.namespace && isHolder(actor, lease) && isRenewed(context, lease),
  );
}

/** Returns the Lease in this namespace by which a workload elsewhere leads: it is deleted with the namespace. */
export function leaseHere(context: Context, actor: Actor): LeaseFacts | undefined {
  return itemsIn(context.now.cluster.leases).find(
    (lease) =>
      lease.namespace !== actor.namespace &&
      isInside(context, lease.namespace) &&
      isHolder(actor, lease),
  );
}

/**
 * Returns a Lease which shows that the workload does not lead: another process holds it, or held it last, or the
 * workload's own pod holds it and does not renew it. A Lease belongs to the workload whose name fits it best. One that is
 * named after the API group, and that no pod of the cluster renews, belongs to the controller of this group.
 */
export function lostLease(context: Context, held: Held, actor: Actor): LeaseFacts | undefined {
  const ofGroup = leasesOfGroups(context, finalizerDomain(context, held));
  const others = actorsOf(context).filter(({ namespace }) => namespace === actor.namespace);
  // Controllers that run somewhere else lead by Leases in kube-system (cert-manager, cloud controllers).
  const places = [actor.namespace, 'kube-system'];
  const own = itemsIn(context.now.cluster.leases).filter((lease) => {
    if (!places.includes(lease.namespace)) return false;
    // Another installation may lead by a Lease of the same name elsewhere.
    const holders = actorsOf(context).filter((one) => isHolder(one, lease));
    if (lease.namespace !== actor.namespace && holders.some((one) => one !== actor)) return false;
    const mayHold = (one: Actor): boolean => isHolder(one, lease) || mayHoldByNode(one, lease);
    if (ofGroup.includes(lease) && isRenewed(context, lease) && !actorsOf(context).some(mayHold)) {
      return true;
    }
    const fit = nameMatchLength(actor, lease);
    // `widget-operator-webhook` belongs to another workload, if there is one of this name.
    return fit > 0 && others.every((other) => nameMatchLength(other, lease) <= fit);
  });
  const isLed = (lease: LeaseFacts): boolean =>
    isRenewed(context, lease) && (isHolder(actor, lease) || mayHoldByNode(actor, lease));
  if (own.some(isLed)) return undefined;
  // An upgrade may change the name of the Lease, and leaves the old one.
  const lost = hasLeader(context, actor) ? [] : own;
  return (
    own.find((lease) => isHolder(actor, lease)) ?? lost.find(({ holder }) => holder !== undefined)
  );
}

/** Returns what shows that the workload may not lead. */
export function leadText(context: Context, held: Held, actor: Actor): string | undefined {
  const lease = lostLease(context, held, actor);
  return (
    lease &&
    `Lease ${lease.namespace}/${lease.name} was last renewed at ${lease.renewTime}, by ${lease.holder}`
  );
}

/** A Lease's writer says more than any name: a storage sidecar's Lease is named after the driver. */
const WRITTEN = 1_000;

/** Returns how many letters of the Lease's name are a name of the workload. */
function nameMatchLength(actor: Actor, lease: LeaseFacts): number {
  const names = programNames(actor).filter((name) => name.includes('-'));
  const shared = names.map((name) =>
    lease.name.includes(name)
      ? name.length
      : name.endsWith(`-${lease.name}`)
        ? lease.name.length
        : 0,
  );
  const isWriter = lease.writers?.some((writer) => hasProgramName(actor, writer));
  return Math.max(0, ...shared) + (isWriter ? WRITTEN : 0);
}
