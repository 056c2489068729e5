import { actorText } from '../diagnose/actors.ts';
import { collectSamples } from '../diagnose/admission/foreseen.ts';
import { guardsAsked } from '../diagnose/admission/guards.ts';
import { type Context, contextOf, countsOf, itemsIn } from '../diagnose/context.ts';
import { diagnose } from '../diagnose/diagnose.ts';
import { everythingHeld } from '../diagnose/owner/finalizers.ts';
import { type Held, isOfControllerManager, knownFinalizer } from '../diagnose/owner/held.ts';
import { isHolder } from '../diagnose/owner/leases.ts';
import { isOfTheCloud } from '../diagnose/owner/owner.ts';
import { unreadSettings } from '../diagnose/owner/running.ts';
import { findOwner } from '../diagnose/owner/verdict.ts';
import { controllerManager } from '../diagnose/rules/controller.ts';
import { type Diagnosis, findingsOf } from '../model/finding.ts';
import type { ForecastBasis } from '../model/result.ts';
import { type Snapshot, trialKey } from '../model/snapshot.ts';
import { predict } from './predict.ts';

type OwnerLife = ForecastBasis['owners'][number];

const MAX_FINALIZERS = 50;

/**
 * Returns the evidence of a forecast: finalizers, the owners that are expected to remove them, and dry runs.
 */
export function basisOf(now: Snapshot, foreseen: Diagnosis): ForecastBasis {
  const context = contextOf(predict(now));
  const guarded = countsOf(now).flatMap((count) => [...count.guarded, ...count.terminating]);
  const lives = everythingHeld(context).map((one) => ({
    ...expectedOwner(context, one),
    objects: Math.max(1, one.count),
  }));
  const owners = Map.groupBy(lives, ({ owner }) => owner).values();
  const finalizers = guarded.flatMap((group) => group.finalizers);
  const deletions = Object.values(now.forecast?.deletions ?? {});
  return {
    objectsWithFinalizers: guarded
      .filter(({ finalizers }) => finalizers.length > 0)
      .reduce((sum, { count }) => sum + count, 0),
    finalizers: [...new Set(finalizers)].slice(0, MAX_FINALIZERS),
    owners: Array.from(owners, oldest),
    dryRuns: {
      deletions: deletions.filter(({ answer }) => answer !== 'unknown').length,
      removals: Object.values(now.trials).filter(({ answer }) => answer !== 'unknown').length,
      webhooks: webhooksAsked(context),
    },
    notInspected: foreseen.notInspected.length,
    next: behindPods(now, foreseen),
  };
}

/**
 * Returns the number of webhooks that allowed a dry run. They saw the user of the gate, and may decide by objects that the
 * deletion of the namespace takes away.
 */
function webhooksAsked(context: Context): number {
  const { forecast, trials } = context.now;
  const deletions = collectSamples(context)
    .filter(({ key }) => forecast?.deletions[key]?.answer === 'accepted')
    .flatMap(({ type, object }) => guardsAsked(context, 'DELETE', type, object) ?? []);
  const removals = everythingHeld(context).flatMap(({ type, finalizer, objects }) =>
    objects
      .filter(({ uid }) => trials[trialKey(uid, finalizer)]?.answer === 'accepted')
      .flatMap((object) => guardsAsked(context, 'UPDATE', type, object) ?? []),
  );
  const asked = [...deletions, ...removals];
  return new Set(asked.filter(({ webhook }) => webhook).map(({ text }) => text)).size;
}

/**
 * Returns what would hold the namespace after its pods are deleted. Kubernetes 1.33 and later deletes pods
 * first.
 */
function behindPods(now: Snapshot, { rootCauses }: Diagnosis): string[] {
  const all = diagnose(predict(now));
  return findingsOf(all, all.rootCauses)
    .filter(({ id }) => rootCauses.length > 0 && !rootCauses.includes(id))
    .map(({ code, message, subject }) => `${code}: ${subject.kind} ${subject.name} ${message}`);
}

/** Returns the entry with the oldest sign of life, for an owner with several objects. */
function oldest(lives: readonly OwnerLife[]): OwnerLife {
  const objects = lives.reduce((sum, one) => sum + one.objects, 0);
  const [first] = lives.toSorted((a, b) => ((a.aliveAt ?? '') < (b.aliveAt ?? '') ? -1 : 1));
  return { ...(first as OwnerLife), objects };
}

/** Returns the controller that is expected to remove the finalizer, and its latest sign of life. */
function expectedOwner(context: Context, held: Held): Omit<OwnerLife, 'objects'> {
  if (isOfControllerManager(held)) {
    const { aliveAt, evidence } = controllerManager(context);
    return ownerLife('kube-controller-manager', evidence, aliveAt);
  }
  const { owner } = findOwner(context, held);
  const actor = owner?.actor;
  const written = held.objects
    .flatMap(({ statusWriters }) => statusWriters)
    .filter(({ manager }) => actor === undefined || actor.programs.includes(manager))
    .flatMap(({ time }) => time ?? [])
    .sort()
    .at(-1);
  const wrote = `the status of such an object was written at ${written}`;
  if (actor === undefined) {
    const known = isOfTheCloud(held) ? knownFinalizer(held) : undefined;
    return known === undefined
      ? ownerLife('unknown', `no workload could be named that removes ${held.finalizer}`)
      : ownerLife(known.owner, `not visible in the cluster; ${wrote}`, written);
  }
  const lease = itemsIn(context.now.cluster.leases).find((one) => isHolder(actor, one));
  const renewed = lease?.renewTime;
  const signs = [
    { at: renewed, sign: `its Lease ${lease?.namespace}/${lease?.name} was renewed at ${renewed}` },
    { at: written, sign: wrote },
  ];
  const [latest = { at: undefined, sign: 'no dated sign that it works on these objects' }] = signs
    .filter(({ at }) => at !== undefined)
    .sort((a, b) => ((a.at ?? '') > (b.at ?? '') ? -1 : 1));
  const evidence = [
    `${actor.ready} of ${actor.wanted} ready`,
    latest.sign,
    ...unreadSettings(actor),
  ];
  return ownerLife(actorText(actor), evidence.join('; '), latest.at);
}

function ownerLife(owner: string, evidence: string, aliveAt?: string): Omit<OwnerLife, 'objects'> {
  return { owner, evidence, ...(aliveAt === undefined ? {} : { aliveAt }) };
}
