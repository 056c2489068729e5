import { listNames, listWords, lowerFirst, shellQuote, shortQuote } from '../../base/text.ts';
import { typeName } from '../../model/facts/metadata.ts';
import type { Remedy } from '../../model/finding.ts';
import { itemsIn } from '../../model/read.ts';
import { accountText, actorText, isAlive, isEndingNamespace } from '../actors.ts';
import { startRemedies, withoutPeriod, withRole } from '../commands.ts';
import { type Context, fateText, isInside, willBeDeleted } from '../context.ts';
import { definitionSubject, nameOf, type RuleResult, subjectOf } from '../results.ts';
import { departedGrant, hasNoRight, NOBODY } from '../rights.ts';
import {
  evidenceFor,
  exclusionEvidence,
  isDecided,
  isMoreThanAble,
  MAY_NOT_CHANGE,
  type Suspect,
  suspectText,
  unreadEvidence,
  workloadExists,
} from './clues.ts';
import { type Held, isSetByHand, knownFinalizer, specificFieldManager, writerOf } from './held.ts';
import { quotedLines } from './logs.ts';
import { productName } from './names.ts';
import {
  installRemedy,
  knownRemedies,
  logRemedies,
  orderRemedies,
  removalAsFirstStep,
  resumeRemedy,
  sayingRemedy,
} from './remedies.ts';
import { pausedBy, reachesOut } from './settings.ts';
import { refusalsFor, statusEvidence, statusTexts } from './statements.ts';
import { stateText } from './states.ts';
import { type Ownership, RUNS_OUTSIDE_TEXT } from './verdict.ts';

// The findings that no controller was found, and that several could be the owner.

const SEARCHED =
  'searched: Deployments and all other built-in workloads, pods of accounts with permission on the type, RBAC, Leases, webhooks and CRDs; a controller outside of the cluster would not be visible';
const MAX_SUSPECTS = 5;
/** A cause has at most 30 words; evidence has all suspects. */
const MAX_LISTED = 2;

/** Returns the finding that no controller was found: about the deleted workload, else the CRD, else the object itself. */
export function missingOwner(
  context: Context,
  held: Held,
  { certainty, excluded, others, owner }: Ownership,
  removal: Remedy[],
): RuleResult {
  const { finalizer, subject, type } = held;
  const { actor: gone, account, program } = owner ?? {};
  const place = gone?.namespace ?? account?.namespace;
  const isHere = isInside(context, place);
  const isForecast = willBeDeleted(context, gone?.namespace);
  const isLost = isHere || isForecast;
  const isEnding = isEndingNamespace(context, place);
  const who = account && (isHere ? account.name : accountText(account));
  const trace =
    traceOf(held, owner) ??
    'at most general tools and controllers of other products may change objects of its type';
  const nobody = isHere
    ? `its controller most likely ran in this namespace, as ServiceAccount ${who}, and was deleted with it`
    : `no controller that removes it was found: ${trace}`;
  const known = knownFinalizer(held);
  // One product, and no family of them, may be gone under the names of its program and of its account.
  const isOne = known?.workload.some(({ name }) => !name.includes('*'));
  const isReaching = reachesOut(context, held);
  const { definitions } = context.now.cluster;
  const isDefined = itemsIn(definitions).some(({ name }) => name === typeName(type));
  // What is likely about a workload that was deleted is that it was the controller.
  const role = certainty === 'proven' ? '' : 'most likely was its controller; it ';
  const about = gone
    ? {
        subject: subjectOf(gone),
        message: `${role}${isLost ? fateText(context, place) : 'was deleted'}`,
      }
    : {
        subject: isDefined ? definitionSubject(typeName(type)) : subject,
        cause:
          (isOne ? undefined : who) ?? known?.owner ?? program ?? `${finalizer} of ${type.group}`,
        message: `has ${isDefined ? 'objects held by ' : ''}finalizer ${finalizer}, and ${nobody}`,
        continuation: nobody,
      };
  const isBound = account && departedGrant(context, account, type);
  const where = `${isEnding ? ' in another namespace' : ''}${isBound ? ', with a ClusterRoleBinding: a terminating namespace accepts no RoleBinding' : ''}`;
  const workload = gone && actorText(gone);
  return {
    ...about,
    ...{ code: 'owner-missing', finalizer, certainty, waitsForNamespace: isHere },
    evidence: [
      // Of a program the held object shows the same.
      ...(owner === undefined || program ? [] : evidenceFor(owner)),
      ...purposeOf(held),
      ...exclusionEvidence(excluded),
      ...others,
      ...(isForecast ? [] : [SEARCHED, ...statusEvidence(context, held)]),
    ],
    scope: isLost ? 'namespace' : 'cluster',
    remedies: [
      ...(isReaching ? removalAsFirstStep(removal) : []),
      ...(isLost ? orderRemedies(context, held, workload ?? 'their controller') : []),
      ...(isForecast
        ? []
        : [installRemedy(context, held, workload, where), ...knownRemedies(context, held, true)]),
      ...(isReaching ? [] : removal),
    ],
  };
}

/** Returns the finding that several controllers could be the owner, or that none is likely enough. */
export function unknownOwner(
  context: Context,
  held: Held,
  ownership: Ownership,
  removal: Remedy[],
): RuleResult {
  const { finalizer, subject } = held;
  const { excluded, others, owner, unread } = ownership;
  const known = knownFinalizer(held);
  // People also set finalizers of products, as that of an Argo CD Application.
  const byHand = known === undefined && isSetByHand(held);
  const suspects = ownership.suspects.slice(0, MAX_SUSPECTS);
  const ruledOut = excluded
    .filter(workloadExists)
    // Its own Role, which was read where it may be a copy for another namespace, is about other types.
    .filter((one) =>
      one.restriction
        ? !hasNoRight(context, one.account ?? NOBODY, held.type)
        : isMoreThanAble(one),
    )
    .slice(0, MAX_SUSPECTS - suspects.length);
  const withState = (one: Suspect) => `${suspectText(one)} (${stateOf(context, held, one).state})`;
  // Who is gone and left a clue that decides explains more than those that may act, and a permission alone the least.
  const gone = owner ? [owner] : [];
  const first = [...gone.filter(isDecided), ...[...suspects, ...ruledOut].filter(isMoreThanAble)];
  const all = [...new Set([...first, ...suspects, ...gone, ...ruledOut])];
  const isHere = all.some(workloadExists) && !byHand;
  const listed = isHere ? all.map(withState) : [];
  const outside = others.find((text) => text.startsWith(RUNS_OUTSIDE_TEXT));
  const trace = unreadEvidence(unread)[0] ?? traceOf(held, owner);
  // Who has but a permission, and does not lead by it, is called nobody's controller.
  const isTied = all.some(isMoreThanAble);
  const names = (isTied ? listNames : listWords)(listed, MAX_LISTED);
  const may = all.some(({ lost }) => lost) ? 'may be it' : 'may change it';
  const only = isTied ? `the only candidate here is ${names}` : `${names} ${may}`;
  const rest = names ? only : ((trace && outside ? RUNS_OUTSIDE_TEXT : outside) ?? []);
  const byWhom = `it was set by hand or by a script, with "${writerOf(held)?.manager}"`;
  const why = byHand ? byWhom : [trace ?? [], rest].flat().join('; ');
  const reason =
    listed.length > 1 && isTied
      ? `its controller is one of: ${names}`
      : `its controller is not known: ${why || others[0] || 'no clue points to a controller'}`;
  const [said] = [
    ...statusTexts(context, held),
    ...refusalsFor(context, held).map(({ error, source }) => ({ text: error.text, source })),
  ];
  const quote = said && shortQuote(said.text);
  const told = said ? `${reason}; ${said.source} says: ${quote}` : reason;
  const actors = suspects.flatMap(({ actor }) => actor ?? []);
  const { evidence, ownerLog } = quotedLines(context, held, actors);
  const paused = pausedBy(context, held);
  // Facts that the object itself shows do not depend on its owner.
  const facing = [
    ...(paused ? [resumeRemedy(held.type, paused)] : []),
    ...(said ? [sayingRemedy(said.source)] : []),
  ];
  const find = byHand
    ? removalAsFirstStep(removal)
    : findRemedies(context, held, isHere ? all : []);
  return {
    ...{ code: 'owner-unknown', subject, finalizer, quote },
    cause: suspects[0] ? undefined : known?.owner || specificFieldManager(held) || undefined,
    message: `has finalizer ${finalizer}, and ${told}`,
    continuation: told,
    evidence: [
      writerText(held),
      ...purposeOf(held),
      ...unreadEvidence(unread),
      ...suspects.map((one) => `suspect ${withState(one)}: ${evidenceFor(one).join('; ')}`),
      ...exclusionEvidence(excluded),
      ...evidence,
      ...others.filter((text) => !all.some((one) => text.startsWith(suspectText(one)))),
      ...statusEvidence(context, held),
    ],
    scope: 'namespace',
    certainty: 'unknown',
    ownerLog,
    remedies: [
      ...facing,
      ...find.map((one) => (facing[0] && one.role === 'now' ? withRole('or', one) : one)),
      ...knownRemedies(context, held),
      ...(byHand ? [] : removal),
    ],
  };
}

/** Returns what is left of a controller that is gone, or its usual name. */
function traceOf(held: Held, { account, program }: Partial<Suspect> = {}): string | undefined {
  const known = knownFinalizer(held);
  const who = account && accountText(account);
  if (program) return `"${program}" set it, and nothing of that name runs here`;
  if (who) return `it most likely ran as ${who}, which no workload uses any more`;
  return known && `usually it is ${productName(known) ?? known.owner}`;
}

/** Returns what lets each suspect act that is down or gone, and the logs of those that run, which would tell. */
function findRemedies(context: Context, held: Held, suspects: readonly Suspect[]): Remedy[] {
  // A permission alone is no reason to start with it; beside more, who is gone may have been replaced.
  const isTied = suspects.some((one) => workloadExists(one) && isMoreThanAble(one));
  const fixes = suspects.flatMap((one) => {
    const { fix } = isTied && !workloadExists(one) ? {} : stateOf(context, held, one);
    const who = suspectText(one);
    const text = `If it ${one.actor || one.program ? 'is' : 'ran as'} ${who}: ${lowerFirst(fix?.text.replace(who, 'it') ?? '')}`;
    return fix ? [withRole('now', { ...fix, text })] : [];
  });
  const find = installRemedy(context, held);
  const isOpen = !isTied && !fixes[0];
  if (isOpen && knownFinalizer(held)) fixes.push(find);
  const looks = suspects.flatMap((one) => {
    const { actor, against } = one;
    const text = `Find out whether ${suspectText(one)} removes ${held.finalizer}: look for ${nameOf(held.subject)} in its log`;
    const logs = actor && !against ? logRemedies(context, actor) : [];
    return logs.map(({ command = '' }) => ({
      ...withRole(fixes[0] ? 'look' : 'now', { text }),
      command: command.replace(/\d+$/, `-1 | grep -F ${shellQuote(held.subject.name)}`),
    }));
  });
  const all = [...fixes, ...looks].slice(0, MAX_SUSPECTS);
  return (isOpen || all.length === 0) && !all.includes(find) ? [...all, find] : all;
}

/** Returns the state of a suspect, and what would let it act. */
function stateOf(context: Context, held: Held, suspect: Suspect): { state: string; fix?: Remedy } {
  const { actor, against, lost, restriction } = suspect;
  const then = `it then removes ${held.finalizer}`;
  const fixed = (state: string, text: string) => ({ state, fix: { text } });
  const out = `change what leaves ${nameOf(held.subject)} out`;
  if (restriction) return fixed(restriction.slice(3), out);
  const back = `give it back its right to change ${typeName(held.type)} (restore its binding, or install it again)`;
  if (against === MAY_NOT_CHANGE || lost) return fixed('may not change it', `${back}; ${then}`);
  if (against) return { state: 'made by such an object' };
  if (actor === undefined || actor.isGone)
    return isDecided(suspect) ? fixed('gone', `install it again; ${then}`) : { state: 'gone' };
  const state = stateText(context, actor);
  if (actor.wanted === 0) return { state, fix: startRemedies(context, actor, then)[0] };
  return isAlive(actor) ? { state } : fixed(state, `make it ready (${state}); ${then}`);
}

export function writerText(held: Held): string {
  const { manager, time } = writerOf(held) ?? {};
  return manager === undefined
    ? 'managedFields name no writer of the finalizer'
    : `field manager "${manager}" wrote the finalizer${time === undefined ? '' : ` at ${time}`} (managedFields)`;
}

function purposeOf(held: Held): string[] {
  const known = knownFinalizer(held);
  return known ? [`${held.finalizer} protects: ${withoutPeriod(known.protects)}`] : [];
}
