import { type Actor, actorText, isAlive } from '../actors.ts';
import { departedGrant, mayOthersChange, outsiders } from '../rights.ts';
import { type Excluded, isOperandOf, watchesNamespace } from './exclusions.ts';
import { isOftenManaged, lateWriters, specificFieldManager, writerOf } from './held.ts';
import { holderOf, isRenewed, leasesOfGroups, leasesOfProgram } from './leases.ts';
import { identifiesProgram, matchesName, SHARED_STATUS_WRITERS } from './names.ts';
import { mayRun, type OwnerQuestion, type Suspect, suspectText } from './suspects.ts';

/**
 * Returns who may remove the finalizer, or was active, although no clue singles anybody out. Anyone who may act counts
 * as alive: while there is one, nothing is called missing. `ranHere`: a suspect is known that ran in this namespace,
 * so that wide permissions and namesakes elsewhere say nothing.
 */
export function whoElseMayAct(
  question: OwnerQuestion,
  excluded: readonly Excluded[],
  ranHere: boolean,
): string[] {
  const { context, held, domain } = question;
  const leases = [
    ...leasesOfGroups(context, domain),
    ...leasesOfProgram(context, specificFieldManager(held), true),
  ].filter((lease) => isRenewed(context, lease) && holderOf(context, lease) === undefined);
  return [
    ...new Set([
      ...ableWorkloads(question, ranHere),
      ...excluded
        .filter(({ suspect }) => mayHaveLostPermission(question, suspect, ranHere))
        .map(({ suspect, reason }) => `${suspectText(suspect)} exists, but ${reason}`),
      ...leases.map(
        ({ namespace, name, holder }) => `Lease ${namespace}/${name} is renewed by ${holder}`,
      ),
      ...outsiders(context, held.type).map(
        (who) => `${who} may change it, from outside of the cluster`,
      ),
      ...hiddenByProvider(question),
      ...lateWrites(question),
    ]),
  ];
}

/**
 * Returns a sentence if RBAC names the type for another user, group or ServiceAccount: a token of it may be used anywhere.
 * That is no sign that anybody acts, and enough to rule out proof.
 */
export function permissionOfOthers({ context, held }: OwnerQuestion, suspect: Suspect): string[] {
  return suspect.account !== undefined && mayOthersChange(context, held.type, suspect.account)
    ? ['RBAC lets another user, group or ServiceAccount change objects of this type']
    : [];
}

function isActiveHere(actor: Actor, question: OwnerQuestion): boolean {
  return !actor.isGone && watchesNamespace(actor, question) && !isOperandOf(actor, question);
}

function ableWorkloads(question: OwnerQuestion, ranHere: boolean): string[] {
  return question.actors
    .filter((actor) => {
      const { change, watch } = question.rightsOf(actor.account);
      const isWide = change === 'everything' && watch !== undefined && !ranHere;
      return (change === 'named' || isWide) && isActiveHere(actor, question);
    })
    .map((actor) => `${actorText(actor)} ${stateText(actor)} and may change objects of this type`);
}

function stateText(actor: Actor): string {
  if (isAlive(actor)) return 'runs';
  return mayRun(actor) ? 'exists' : 'is scaled to zero';
}

/** A permission that RBAC does not show any more: it may have been deleted, with this namespace or before. */
function mayHaveLostPermission(
  question: OwnerQuestion,
  { actor, account, clues, rights }: Suspect,
  ranHere: boolean,
): boolean {
  if (actor === undefined || !isActiveHere(actor, question)) return false;
  if (account && departedGrant(question.context, account) !== undefined) return true;
  // A program that is named like the writer of the object counts, whether or not it wrote the finalizer itself.
  const { manager = '' } = writerOf(question.held) ?? {};
  const isNamed = identifiesProgram(manager) && matchesName(actor, manager);
  const isMeant = clues.some(({ about }) => about === 'object') || isNamed;
  return !ranHere && (isMeant || rights.watch === 'named' || !rights.worksElsewhere);
}

function hiddenByProvider({ context: { now }, held }: OwnerQuestion): string[] {
  if (!isOftenManaged(held)) return [];
  const nodes = now.cluster.providerNodes;
  if (nodes?.ok !== true) return ['whether a cloud provider runs it could not be read'];
  const isProvider = nodes.value.some(
    ({ providerId }) => providerId !== '' && !/^(?:kind|k3s):\/\//.test(providerId),
  );
  return isProvider
    ? ['the nodes belong to a cloud provider, which may run it where this cluster does not show it']
    : [];
}

/** Writes to the status since the deletion, by programs that no workload in the cluster explains. */
function lateWrites({ held, actors }: OwnerQuestion): string[] {
  const isKnown = (manager: string): boolean =>
    actors.some((actor) =>
      identifiesProgram(manager)
        ? matchesName(actor, manager)
        : actor.isGone && actor.programs.includes(manager),
    );
  return lateWriters(held)
    .filter(({ manager }) => !SHARED_STATUS_WRITERS.test(manager) && !isKnown(manager))
    .map(
      ({ object: { kind, name }, manager }) =>
        `"${manager}" has updated the status of ${kind} ${name} since the deletion began`,
    );
}
