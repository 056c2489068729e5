import { type ObjectFacts, trialKey } from '../../model/snapshot.ts';
import { type Actor, accountText } from '../actors.ts';
import { guardsAsked, mayDeny, mayRefuse, realRequests, requesterOf } from '../admission/guards.ts';
import {
  changingGuardResults,
  type Judgement,
  judgeAdmission,
  onlyGuardResults,
} from '../admission/judge.ts';
import { actorsBehind } from '../backends.ts';
import {
  type Context,
  isAggregated,
  listNames,
  resultId,
  shortQuote,
  typeName,
} from '../context.ts';
import { classifyErrorText } from '../error-texts.ts';
import type { Account } from '../rights.ts';
import type { Held } from './held.ts';

/**
 * Finds what refuses the update that removes the finalizer: proven by a dry run, or certain because a webhook
 * matches, fails closed and nothing is behind its Service. A dry run that is accepted clears admission.
 */
export function judgeRemoval(context: Context, held: Held, account?: Account): Judgement {
  const isOurs = !isAggregated(context, held.type);
  const all = (isOurs ? held.objects : []).map((object) =>
    judgeObject(context, held, object, account),
  );
  const results = all.flatMap((one) => one.results);
  return {
    results: [...new Map(results.map((result) => [resultId(result), result])).values()],
    questions: [...new Set(all.flatMap(({ questions }) => questions))],
    toGate: all.flatMap(({ toGate }) => toGate),
  };
}

function judgeObject(
  context: Context,
  { finalizer, type }: Held,
  object: ObjectFacts,
  account: Account | undefined,
): Judgement {
  const trial = context.now.trials[trialKey(object.uid, finalizer)];
  const none = { results: [], questions: [], toGate: [] };
  // A webhook that answers now may be deleted with the namespace.
  if (trial?.answer === 'accepted' && context.now.forecast === undefined) return none;
  const request = `UPDATE of ${typeName(type)}`;
  const asked = guardsAsked(context, 'UPDATE', type, object) ?? [];
  const mutating = asked.filter(({ isMutating }) => isMutating);
  const errors = trial?.answer === 'refused' ? classifyErrorText(trial.message) : [];
  const does =
    trial?.answer === 'undone'
      ? `puts ${finalizer} back on the object`
      : // The trial adds no finalizer, so a mutating webhook or policy does.
        errors.some(({ kind }) => kind === 'new-finalizers-refused') &&
        'adds a finalizer to the object, which the API server refuses';
  if (does) return { ...none, results: onlyGuardResults(context, mutating, request, does) };
  if (errors.some(({ kind }) => kind === 'invalid') && mutating.length > 0) {
    return { ...none, results: changingGuardResults(context, mutating, request) };
  }
  const [real] = realRequests(context, 'UPDATE', type, object);
  const requester = account && requesterOf(account);
  const who = account === undefined ? 'its owner' : accountText(account);
  return judgeAdmission(context, { ...real, requester }, who, trial);
}

/**
 * Names the admission whose answer is not known, because the gate could not try the update. A webhook that the owner
 * itself serves is not among it.
 */
export function untriedAdmission(context: Context, held: Held, owner: Actor): string[] {
  return held.objects.slice(0, 1).flatMap((object) => {
    const trial = context.now.trials[trialKey(object.uid, held.finalizer)];
    if (trial?.answer !== 'unknown') return [];
    const [request] = realRequests(context, 'UPDATE', held.type, object);
    const untried = (guardsAsked(context, 'UPDATE', held.type, object) ?? []).filter(
      (guard) =>
        (guard.isMutating || (mayDeny(guard) && mayRefuse(guard, request))) &&
        !(guard.webhook?.service && actorsBehind(context, guard.webhook.service).includes(owner)),
    );
    if (untried.length === 0) return [];
    const names = listNames(untried.map(({ text }) => text));
    return `whether ${names} allows the update that removes the finalizer could not be tried: ${shortQuote(trial.message)}`;
  });
}
