import { escapeForRegExp, upperFirst } from '../../base/text.ts';
import type { Certainty, Remedy } from '../../model/finding.ts';
import { type EventFacts, partnerKey, type Snapshot } from '../../model/snapshot.ts';
import { type Actor, actorText, isEnding } from '../actors.ts';
import { linksInside, linksNamedIn, namedInTexts, namespacesBehind, waitTexts } from '../chains.ts';
import { kubectl, lookRemedy, objectArgs, showObjectRemedy, withRole } from '../commands.ts';
import {
  type Context,
  definitionsOf,
  detailOf,
  isForeseen,
  isInside,
  itemsIn,
  linksTo,
  listNames,
  type RuleResult,
  resultId,
  servedType,
  shortQuote,
  typeName,
  valueIn,
} from '../context.ts';
import { isAdmissionError } from '../error-texts.ts';
import { departedGrant, isRbacRead } from '../rights.ts';
import { admissionResult } from '../rules/admission.ts';
import { isNodeLost } from '../rules/pods.ts';
import { type Held, lateWriters } from './held.ts';
import { hasLeader, isHolder, isRenewed, lostLease } from './leases.ts';
import { hasWord, isLogRead, logLinesAbout } from './logs.ts';
import {
  absentObjects,
  goneNeeds,
  type Need,
  namedInNamespace,
  neededCreations,
  needsOfOwner,
} from './needs.ts';
import { partnerLinks } from './partners.ts';
import {
  cureRemedies,
  endSyncRemedy,
  installRemedy,
  logRemedy,
  orderRemedies,
  removalAsFirstStep,
  restartRemedies,
  resumeRemedy,
  statusRemedy,
} from './remedies.ts';
import { untriedAdmission } from './removal.ts';
import {
  deadLeader,
  failureOf,
  kindOfResource,
  lastComplaint,
  lostAgent,
  lostDefinition,
  PROGRESS,
  pausedBy,
  type Refusal,
  refusalsFor,
  statusTexts,
} from './state.ts';
import type { Suspect } from './suspects.ts';
import { waitingSync } from './syncs.ts';

/** An owner that exists, and the parts that all findings about it share. */
export interface OwnerCase {
  context: Context;
  held: Held;
  candidate: Suspect;
  actor: Actor;
  removal: Remedy[];
  /** The guards that refuse the update that removes the finalizer. */
  obstacles: RuleResult[];
  /** The open questions about that. */
  questions: string[];
  common: Pick<RuleResult, 'subject' | 'finalizer' | 'scope' | 'evidence'> &
    Partial<RuleResult> & { certainty: Certainty };
  /** "should remove x", with the certainty. */
  duty: string;
}

/** Returns a finding about the owner: what it should do, and in `words` why it is not done. */
export function findingAbout(
  { common, duty }: Pick<OwnerCase, 'common' | 'duty'>,
  code: RuleResult['code'],
  words: string,
  remedies: Remedy[],
  more: Partial<RuleResult> = {},
): RuleResult {
  const evidence = [...common.evidence, ...(more.evidence ?? [])];
  return { ...common, ...more, code, message: duty + words, evidence, remedies };
}

/** The removal of the finalizer is refused: the finding about what refuses it is linked by this sentence. */
export const REFUSED = 'it refuses the update that removes the finalizer';

/** An owner that runs, and what it was seen to do. */
interface RunningOwner extends OwnerCase {
  /** Its current errors about the objects. */
  refusals: Refusal[];
  /** Why RBAC does not let it remove the finalizer. */
  lack: string | undefined;
  /** Texts of the objects since the deletion that report no error. */
  statements: ReturnType<typeof statusTexts>;
  /** Nothing shows that it has noticed the deletion, and it waits for no other object. */
  isSilent: boolean;
}

/** Returns the findings about one reason, if there is evidence for it. */
type Reason = (owner: RunningOwner) => RuleResult[] | undefined;

/** Why an owner that runs has not removed the finalizer. The first reason with evidence is reported. */
const REASONS: readonly Reason[] = [
  // A controller that reports an error has tried: it is neither paused nor without its definition.
  reportsErrors,
  // The controller will not act.
  isPaused,
  lostItsDefinition,
  waitsForSync,
  // The controller cannot act.
  isRefused,
  isBeingDeleted,
  // A part of the controller is down.
  doesNotLead,
  followsEndedPod,
  lacksAgent,
  // The controller waits for an object that has failed.
  waitsForFailure,
  runsBySchedule,
];
/** Further reasons in a forecast: what the deletion of the namespace takes away. */
const IN_FORECASTS: readonly Reason[] = [losesItsPermission, willLackNeeds];
/** Further reasons if nothing shows that the owner has noticed the deletion: it may lack what it needs. */
const OF_SILENCE: readonly Reason[] = [mayLackNeeds, stoppedWatching];

/** Explains why a running owner has not removed the finalizer. In a forecast, nothing may stand against it. */
export function runningOwner(ownerCase: OwnerCase): RuleResult[] {
  const { actor, candidate, context, held } = ownerCase;
  const { change, impersonates } = candidate.rights;
  const lacksRight = change === undefined && !impersonates && isRbacRead(context);
  const statements = statusTexts(context, held, actor);
  const isLeading = lostLease(context, actor) === undefined;
  const owner: RunningOwner = {
    ...ownerCase,
    // A text that names an object which holds this one back reports a wait, which has a finding of its own. Without
    // the lead, an error from before the deletion is no reason.
    refusals: refusalsFor(context, held, actor).filter(
      ({ error: { kind, text }, at }) =>
        (isLeading || at >= held.since) &&
        (kind !== 'other' || linksNamedIn(context, held, text).length === 0),
    ),
    lack: lacksRight ? `RBAC lets it neither update nor patch ${typeName(held.type)}` : undefined,
    statements,
    isSilent:
      statements.length === 0 &&
      lateWriters(context, held).length === 0 &&
      logLinesAbout(context, held, actor).length === 0 &&
      partnerLinks(context, held).length + linksInside(context, held, actor).length === 0,
  };
  const further = isForeseen(context, held)
    ? IN_FORECASTS
    : [...(owner.isSilent ? OF_SILENCE : []), showsNoReason];
  for (const reason of [...REASONS, ...further]) {
    const results = reason(owner);
    if (results !== undefined) return results;
  }
  return [];
}

function reportsErrors(owner: RunningOwner): RuleResult[] | undefined {
  return owner.refusals.length === 0 ? undefined : failingOwner(owner);
}

function isRefused(owner: RunningOwner): RuleResult[] | undefined {
  return owner.obstacles.length === 0 && owner.lack === undefined ? undefined : failingOwner(owner);
}

function isPaused(owner: RunningOwner): RuleResult[] | undefined {
  const { actor, common, context, held } = owner;
  const paused = pausedBy(context, held);
  if (paused === undefined) return undefined;
  const { object, by } = paused;
  const what = `${object.kind} ${object.name}`;
  // A field may stop the work that the object describes, and not the controller that deletes it.
  const isUnclear = !by.startsWith('annotation ');
  const words = ` and runs, but ${isUnclear ? 'may be' : 'is'} configured to ignore ${what}: ${by}`;
  const resume = resumeRemedy(servedType(context, object) ?? held.type, object, by);
  return [
    findingAbout(owner, 'owner-not-acting', words, [resume, logRemedy(context, actor)], {
      evidence: [`${what}: ${by}`],
      certainty: isUnclear ? 'likely' : common.certainty,
    }),
  ];
}

/** Finds a definition that was deleted: its product stops the controller of the type. */
function lostItsDefinition(owner: RunningOwner): RuleResult[] | undefined {
  const { actor, common, context, held, isSilent, removal } = owner;
  const lost = lostDefinition(context, held);
  if (lost === undefined) return undefined;
  const { since, field } = lost;
  // A definition that is terminating may still have its controller.
  if (since !== undefined && !isSilent) return undefined;
  const what = `${lost.type.kind} ${lost.name}`;
  const fate = since === undefined ? 'no longer exists' : `has been terminating since ${since}`;
  const words = ` and runs, but may no longer serve ${held.type.kind}: ${what}, which defines it, ${fate}`;
  const text = `Create ${what} again, as it was: ${actorText(actor)} then serves ${held.type.kind} and removes the finalizer`;
  const remedies = [
    ...(since === undefined ? [withRole('now', { text })] : []),
    ...removal,
    logRemedy(context, actor),
  ];
  return [
    findingAbout(owner, 'owner-not-acting', words, remedies, {
      evidence: [`${field} names ${what}, which ${fate}`],
      certainty: since === undefined ? common.certainty : 'likely',
    }),
  ];
}

function waitsForSync(owner: RunningOwner): RuleResult[] | undefined {
  const { actor, context, held, removal } = owner;
  const waiting = waitingSync(context, held, actor.namespace);
  if (waiting === undefined) return undefined;
  const { sync, hook, text } = waiting;
  const what = `Application ${sync.namespace}/${sync.name}`;
  const words = ` and runs, but waits until ${hook.kind} ${hook.name} completes, which the running sync of ${what} started; it cannot complete while it is being deleted`;
  const remedies = [endSyncRemedy(sync), ...removal, logRemedy(context, actor)];
  const more = { quote: shortQuote(text), evidence: [`status of ${what}: ${text}`] };
  return [findingAbout(owner, 'owner-not-acting', words, remedies, more)];
}

/** Explains that requests of the owner fail: by its own words, by what refuses them, or by its permissions. */
function failingOwner(owner: RunningOwner): RuleResult[] {
  const { actor, candidate, context, held, lack, obstacles, refusals, removal } = owner;
  const fateOf = (refusal: Refusal): string | undefined =>
    deletedWithNamespaceText(context, held, candidate, refusal);
  // An error that does not end by waiting decides over the others.
  const first = refusals.find((refusal) => fateOf(refusal) !== undefined) ?? refusals[0];
  const circle = first && fateOf(first);
  const admission = refusals.flatMap(({ error }) =>
    isAdmissionError(error)
      ? [admissionResult(context, error, `UPDATE of ${typeName(held.type)}`)]
      : [],
  );
  const causes = [
    ...new Map([...admission, ...obstacles].map((cause) => [resultId(cause), cause])).values(),
  ];
  const quote = first && shortQuote(first.error.text);
  // A permission can be granted from outside; an object of this namespace cannot be created again.
  const isHopeless = circle !== undefined && first?.error.kind !== 'forbidden';
  const why = quote ?? lack ?? 'the removal is refused, at least to this gate';
  // A text that quotes no answer of the API server need not be about a request.
  const fails = first?.error.kind === 'other' ? `${first.source} says` : 'its requests fail';
  const words = isHopeless
    ? ` and runs, but cannot succeed however long it tries, because ${circle}: ${why}`
    : ` and runs, but ${fails}: ${why}`;
  const cures = isHopeless
    ? removalAsFirstStep(removal)
    : cureRemedies(owner, first?.error, lack !== undefined);
  const remedies = [
    ...cures,
    ...(circle === undefined
      ? []
      : orderRemedies(context, held, 'the objects that their controller needs')),
    ...(isEnding(context, actor) ? [withRole('or', installRemedy(held, actorText(actor)))] : []),
    logRemedy(context, actor),
  ];
  const said = refusals
    .filter(({ source }) => !source.startsWith('the log of '))
    .map(({ error, source }) => `${source}: ${error.text}`);
  const failing = findingAbout(owner, 'owner-failing', words, remedies, {
    quote,
    evidence: [...said.slice(0, 10), ...(lack === undefined ? [] : [lack])],
    waitsFor: linksTo(causes, REFUSED),
    waitsForNamespace: circle,
  });
  return [failing, ...causes];
}

/**
 * Finds what the owner needs and was deleted with this namespace: a Secret that the object names, the
 * RoleBinding that let it act here. Nothing can be created in a terminating namespace, so it is a circle.
 */
function deletedWithNamespaceText(
  context: Context,
  held: Held,
  { account }: Suspect,
  { error, object }: Refusal,
): string | undefined {
  const { name } = context.now.namespace;
  // A text that it does not exist does not show that it ever did.
  const isAbsent = (what: string): string =>
    `${what} does not exist, and a terminating namespace accepts no new objects`;
  switch (error.kind) {
    case 'namespace-terminating':
      return error.namespace === name
        ? `it must create ${error.resource ?? 'an object'} here, and a terminating namespace accepts no new objects`
        : undefined;
    case 'forbidden': {
      const binding = account === undefined ? undefined : departedGrant(context, account);
      return (
        binding &&
        `RoleBinding ${binding}, which gave it permissions here, was deleted with this namespace`
      );
    }
    case 'not-found': {
      // The API server names no namespace; a controller that passes the text on mostly names that of its object.
      const references = detailOf(context, object)?.references ?? [];
      const place = references.find((one) => one.name === error.name)?.namespace ?? name;
      // Operators name what they make after the object that it is for: `rabbit-default-user` of RabbitmqCluster rabbit.
      const isNamed = namedInNamespace(context, held).some((one) =>
        `${error.name}-`.startsWith(`${one.name}-`),
      );
      return isInside(context, place) && isNamed
        ? isAbsent(`${kindOfResource(context, error)} ${error.name}`)
        : undefined;
    }
    case 'other': {
      const gone = ABSENT.test(error.text)
        ? namedInNamespace(context, held).find((one) => hasWord(error.text, one.name))
        : undefined;
      const what = gone
        ? `${gone.type.kind} ${gone.name} (${gone.by})`
        : absentName(name, error.text, held);
      return what && isAbsent(what);
    }
    default:
      return undefined;
  }
}

const ABSENT =
  /not found|notfound|not exist|missing|no such|(?:cannot|can't|could not|couldn't|unable to) (?:be )?(?:find|found|get|read)/i;

/** Returns the object that the text calls missing with its namespace: `credential "team-1/login" was not found`. */
function absentName(namespace: string, text: string, { objects }: Held): string | undefined {
  const object = `(?<![\\w./-])${escapeForRegExp(namespace)}/([a-z0-9][a-z0-9.-]*[a-z0-9])`;
  const isAbsent =
    '["\'`)]* (?:(?:was|is|does|could|has) )?(?:been )?(?:not (?:be )?(?:found|exist)|missing)';
  const name = new RegExp(`${object}${isAbsent}`, 'i').exec(text)?.[1];
  return name && objects.every((one) => one.name !== name) ? `${namespace}/${name}` : undefined;
}

function losesItsPermission(owner: RunningOwner): RuleResult[] | undefined {
  const { candidate, context, held } = owner;
  const { because, isLocal } = candidate.rights;
  if (!isLocal) return undefined;
  const words = ` and runs, but may do so only by ${because[0]}, which is deleted with this namespace`;
  const waitsForNamespace =
    'the binding that gives it permissions here is deleted with this namespace';
  const remedies = orderRemedies(context, held, "their controller's permissions");
  return [findingAbout(owner, 'owner-failing', words, remedies, { waitsForNamespace })];
}

function isBeingDeleted(owner: RunningOwner): RuleResult[] | undefined {
  const { actor, context, held } = owner;
  if (!isEnding(context, actor)) return undefined;
  const remedies = [installRemedy(held, actorText(actor)), logRemedy(context, actor)];
  const words = ' and still runs, but is being deleted itself';
  return [findingAbout(owner, 'owner-running', words, remedies)];
}

/**
 * Finds an owner without the lead. A Lease that is not renewed may be an old one: a candidate takes it within its
 * duration.
 */
function doesNotLead(owner: RunningOwner): RuleResult[] | undefined {
  const { actor, context } = owner;
  const lease = lostLease(context, actor);
  if (lease === undefined) return undefined;
  const { namespace, name, holder, renewTime } = lease;
  const what = `Lease ${namespace}/${name}`;
  const log = logRemedy(context, actor);
  if (isHolder(actor, lease)) {
    const words = ` and runs, but its pod holds ${what} and has not renewed it since ${renewTime}`;
    const why = `Restart ${actorText(actor)}, which is the leader and does nothing`;
    const remedies = [log, ...restartRemedies(context, actor, why)];
    return [findingAbout(owner, 'owner-running', words, remedies)];
  }
  const see = showObjectRemedy(`See which pod holds ${what}`, { kind: 'Lease', namespace, name });
  const isLed = isRenewed(context, lease);
  const words = ` and runs, but ${isLed ? 'does not lead' : 'may have no leader'}: ${what} was last renewed at ${renewTime}, by ${holder}`;
  const why = `Restart ${actorText(actor)}, so that one of its pods becomes the leader`;
  const restart = isLed ? [] : restartRemedies(context, actor, why);
  const text = `Let ${actorText(actor)} become the leader, or end the process that holds the Lease`;
  const fix = restart.length > 0 ? restart : [withRole('now', { text })];
  const remedies = [log, see, ...fix];
  return [findingAbout(owner, 'owner-running', words, remedies)];
}

function followsEndedPod(owner: RunningOwner): RuleResult[] | undefined {
  const { actor, context, isSilent, removal } = owner;
  const dead = isSilent ? deadLeader(context, actor) : undefined;
  if (dead === undefined) return undefined;
  const { lock, pod } = dead;
  const what = `Pod ${pod.namespace}/${pod.name}`;
  const words = ` and runs, but may not lead: ConfigMap ${lock.namespace}/${lock.name} belongs to ${what}, which has ended`;
  const text = `Delete ${what}, and with it the ConfigMap; another pod of ${actorText(actor)} then leads and removes the finalizer`;
  const command = kubectl('delete', 'pod', pod.name, '-n', pod.namespace);
  const remedies = [withRole('now', { text, command }), ...removal, logRemedy(context, actor)];
  const more = { certainty: 'likely', evidence: pod.troubles.slice(0, 3) } as const;
  return [findingAbout(owner, 'owner-not-acting', words, remedies, more)];
}

function lacksAgent(owner: RunningOwner): RuleResult[] | undefined {
  const { actor, context, held, removal } = owner;
  const agent = lostAgent(context, held, actor);
  if (agent === undefined) return undefined;
  const { node, pod, object } = agent;
  const what = pod === undefined ? 'has no pod' : `its pod ${pod} is not ready`;
  const words = `, but ${what} on node ${node}, which ${object.kind} ${object.name} names`;
  const who = `the pod of ${actorText(actor)} on node ${node}`;
  return [findingAbout(owner, 'owner-not-ready', words, [...podRemedies(actor, who), ...removal])];
}

/** The end of a wait for a deletion, which an object that has failed does not prevent. */
const UNTIL_DELETED = /\b(?:deleted|removed|gone|finali[sz]ed|terminated)\b/i;

/** Finds an object elsewhere that the status waits for, not for its deletion, and that has failed: a Job of the owner. */
function waitsForFailure(owner: RunningOwner): RuleResult[] | undefined {
  const { actor, context, held, removal } = owner;
  const texts = waitTexts(context, held).filter((text) => !UNTIL_DELETED.test(text));
  for (const awaited of namedInTexts(context, texts, [actor.namespace])) {
    const { type, name, namespace } = awaited;
    const object = valueIn(context.now.partners[partnerKey({ ...type, namespace, name })]);
    const failure = object && failureOf(context, object);
    if (object === undefined || failure === undefined) continue;
    const what = `${type.kind} ${[namespace, name].filter(Boolean).join('/')}`;
    const who = actorText(actor);
    const words = ` and runs, but waits for ${what}, which says: ${shortQuote(failure)}`;
    const remedies = [
      showObjectRemedy(`See what ${what} says`, object, typeName(type)),
      withRole('now', { text: `Resolve what ${what} says; ${who} then removes the finalizer` }),
      ...removal,
      logRemedy(context, actor),
    ];
    const more = {
      quote: shortQuote(failure),
      evidence: [
        `the status of ${held.subject.kind} ${held.subject.name} names ${what}`,
        `${what}: ${failure}`,
      ],
    };
    return [findingAbout(owner, 'owner-not-acting', words, remedies, more)];
  }
  return undefined;
}

/** Returns the remedies for pods of the owner that are not ready. */
export function podRemedies(actor: Actor, who: string): Remedy[] {
  const text = `Fix what keeps ${who} from being ready; it then removes the finalizer`;
  return [
    withRole('now', { text }),
    lookRemedy(`See the state of ${actorText(actor)}`, kubectl('describe', ...objectArgs(actor))),
  ];
}

/** A CronJob acts, and can fail, only while a Job runs. */
function runsBySchedule(owner: RunningOwner): RuleResult[] | undefined {
  const { name, namespace, kind } = owner.actor;
  if (kind !== 'CronJob') return undefined;
  const text = `Start a Job of ${actorText(owner.actor)} while the namespace is being deleted; it then removes the finalizer`;
  const command = kubectl(
    'create',
    'job',
    `${name}-now`,
    `--from=cronjob/${name}`,
    '-n',
    namespace,
  );
  const words = ', but acts only while its schedule runs a Job';
  return [findingAbout(owner, 'owner-running', words, [withRole('now', { text, command })])];
}

/** Finds what a silent owner may need and cannot get. */
function mayLackNeeds(owner: RunningOwner): RuleResult[] | undefined {
  const { actor, context, held, removal } = owner;
  const gone = goneNeeds(context, held).map(
    ({ what, by }) => `${what} (${by}), which was deleted with this namespace`,
  );
  const absent = absentObjects(context, held);
  const isLate = held.since >= (context.now.namespace.deletionTimestamp ?? '');
  const created = isLate ? neededCreations(held) : [];
  const lacks = [
    ...gone,
    ...absent.map((what) => `${what}, which does not exist`),
    ...created.map((what) => `to create ${what} here, which a terminating namespace refuses`),
  ];
  if (lacks.length === 0) return undefined;
  const words = ` and runs, but may need ${listNames(lacks)}`;
  const remedies = [
    ...absent.map((what) => withRole('now', { text: `Create ${what} again, as it was` })),
    ...removal,
    logRemedy(context, actor),
  ];
  const more = { certainty: 'likely', evidence: lacks } as const;
  return [findingAbout(owner, 'owner-failing', words, remedies, more)];
}

/**
 * Finds what a running owner needs and will lack. Only the owner knows whether it can work without what a deletion
 * of the namespace takes away, unless the catalogue or an earlier deletion says so.
 */
function willLackNeeds(owner: RunningOwner): RuleResult[] | undefined {
  const { actor, context, held } = owner;
  const states = [
    ...owner.questions,
    ...namespacesBehind(context, held).map(({ because }) => because),
  ].map((text): Need => ({ kind: 'state', text, certainty: 'unknown' }));
  const needs = [...needsOfOwner(context, held, actor), ...states];
  const [first] = needs;
  if (first === undefined) return undefined;
  const words = { object: 'it may need', create: 'it may have to create', state: '' };
  const fates = {
    object: ', deleted with this namespace',
    create: ' here, which a terminating namespace refuses',
    state: '',
  };
  const clauses = needs
    .slice(0, 5)
    .map(({ kind, text }) => `${words[kind]} ${text}${fates[kind]}`.trim());
  const names = listNames(needs.flatMap(({ kind, text }) => (kind === 'state' ? [] : [text])));
  const remedies = names === '' ? [logRemedy(context, actor)] : orderRemedies(context, held, names);
  return [
    findingAbout(owner, 'owner-failing', ` and runs; ${clauses.join('; ')}`, remedies, {
      certainty: first.certainty,
      evidence: needs.map(({ text }) => text),
      waitsForNamespace:
        names === '' ? undefined : `${names}: not available while this namespace terminates`,
    }),
  ];
}

/**
 * Finds a CRD that was deleted before the objects: some controllers then end their watch, although the API server
 * still serves one.
 */
function stoppedWatching(owner: RunningOwner): RuleResult[] | undefined {
  const { actor, context, held, removal } = owner;
  const crd = definitionsOf(context).find(({ name }) => name === typeName(held.type));
  const isEarlier = Date.parse(crd?.deletionTimestamp ?? '') <= Date.parse(held.since);
  if (crd === undefined || !isEarlier) return undefined;
  const fate = `${crd.name} has been terminating since ${crd.deletionTimestamp}`;
  const words = ` and runs, but may no longer watch ${held.type.kind}: ${fate}, and nothing shows that it has noticed the deletion of ${held.subject.kind} ${held.subject.name}`;
  const why = 'Restart the controller, so that it watches again';
  const remedies = [...restartRemedies(context, actor, why), ...removal, logRemedy(context, actor)];
  const evidence = [`CustomResourceDefinition ${fate}`];
  const more = { certainty: 'likely', evidence } as const;
  return [findingAbout(owner, 'owner-not-acting', words, remedies, more)];
}

/**
 * Says what was looked at. What the status has said since the deletion is the state; the last error from before is only
 * quoted. Admission that was not asked may refuse what the owner does, and only a part of the owner may be down.
 */
function showsNoReason(owner: RunningOwner): RuleResult[] {
  const { actor, common, context, held, questions, removal, statements } = owner;
  const { kind, name } = held.subject;
  const who = actorText(actor);
  const [said] = statements;
  const complaint = said === undefined ? lastComplaint(context, held, actor) : undefined;
  const quote = (said ?? complaint) && shortQuote((said ?? complaint)?.text ?? '');
  const looked = isLogRead(context, actor)
    ? 'status, Events and log report no error about it'
    : 'status and Events report no error about it (the log was not read)';
  const untried = untriedAdmission(context, held, actor);
  const [open] = [...questions, ...untried];
  const isPart = actor.ready < actor.wanted && !hasLeader(context, actor);
  const state = said
    ? `. ${said.object.kind} ${said.object.name} says: ${quote}`
    : complaint
      ? `; it may be slow or in back-off. ${upperFirst(complaint.who)} says: ${quote}`
      : open === undefined
        ? `; ${looked}, so it may be slow or in back-off`
        : '';
  const words = [
    ` and runs, ${actor.ready} of ${actor.wanted} ready`,
    isPart ? `: the one that handles ${kind} ${name} may be one that is not` : '',
    state,
    open === undefined ? '' : `; ${open.replace(/: .*/s, '')}`,
  ];
  const down = actor.pods.filter(({ ready }) => !ready).map((pod) => pod.name);
  const grant = `. With permission to patch ${typeName(held.type)}, this gate tries it by a dry run`;
  const ask = `Find out whether admission refuses the update that removes the finalizer${untried.length > 0 ? grant : ''}`;
  const time = `Give ${who} more time: raise the timeout`;
  const remedies = [
    logRemedy(context, actor),
    ...(isPart
      ? [...podRemedies(actor, `Pod ${listNames(down)} of ${who}`), ...removal]
      : said !== undefined && !PROGRESS.test(said.text)
        ? [statusRemedy(said.object)]
        : [withRole('now', { text: open === undefined ? time : ask })]),
  ];
  const evidence = [
    ...[said, complaint].flatMap((one) => (one ? [`${one.source}: ${one.text}`] : [])),
    ...(isPart ? podTroubles(context, actor).slice(0, 3) : []),
    ...untried,
  ];
  const certainty = isPart || open !== undefined ? 'likely' : common.certainty;
  const more = { evidence, quote, certainty };
  return [findingAbout(owner, 'owner-running', words.join(''), remedies, more)];
}

/** Returns the problems of its pods: of the node, of the containers, and in Warning Events. */
export function podTroubles({ now }: Context, { namespace, pods }: Actor): string[] {
  const events = warningsIn(now, namespace);
  return pods.flatMap((pod) =>
    [
      ...(isNodeLost(now, pod) ? [`its node ${pod.nodeName} is not ready`] : []),
      ...pod.troubles,
      ...events.flatMap(({ regarding, reason, message }) =>
        regarding.uid === pod.uid ? `${reason}: ${message}` : [],
      ),
    ].map((text) => `Pod ${pod.name}: ${text}`),
  );
}

/** Returns the Warning Events of a namespace, newest first. */
export function warningsIn({ places }: Snapshot, namespace: string): EventFacts[] {
  return itemsIn(places[namespace]?.events)
    .filter(({ type }) => type === 'Warning')
    .toSorted((a, b) => ((a.at ?? '') < (b.at ?? '') ? 1 : -1));
}
