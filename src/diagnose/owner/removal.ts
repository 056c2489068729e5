import { type ObjectFacts, trialKey } from '../../model/snapshot.ts';
import { type Actor, accountText } from '../actors.ts';
import { realRequest } from '../admission/guards.ts';
import { type Judgement, judgeAdmission, UNDECIDED } from '../admission/judge.ts';
import { admissionResult, mutatingResults, refusesOtherChange } from '../admission/refusals.ts';
import {
  type Context,
  isAggregated,
  isForeseen,
  type RuleResult,
  resultId,
  typeName,
} from '../context.ts';
import { classifyErrorText, isAdmissionError } from '../error-texts.ts';
import type { Account } from '../rights.ts';
import type { Held } from './held.ts';
import { refusalsFor } from './statements.ts';

/** What a mutating webhook or policy does if the API server then refuses a change that the update does not make. */
const CHANGES = 'changes a field at every update, which the API server refuses';

/**
 * Finds what refuses the update that removes the finalizer: proven by a dry run, certain because a webhook matches, fails
 * closed and nothing is behind its Service, or told by the objects, their Events or the log of the owner. A dry run that is
 * accepted clears admission.
 */
export function judgeRemoval(
  context: Context,
  held: Held,
  owner?: { account?: Account | undefined; actor?: Actor | undefined },
): Judgement {
  if (isAggregated(context, held.type)) return UNDECIDED;
  const all = held.objects.map((object) => judgeObject(context, held, object, owner?.account));
  const told = isForeseen(context, held) ? [] : obstaclesTold(context, held, owner?.actor);
  const results = [...all.flatMap((one) => one.results), ...told];
  return {
    results: [...new Map(results.map((result) => [resultId(result), result])).values()],
    questions: [...new Set(all.flatMap(({ questions }) => questions))],
  };
}

/** What an owner says of a webhook or policy by name is read with its other errors. */
function obstaclesTold(context: Context, held: Held, actor: Actor | undefined): RuleResult[] {
  const { objects, type } = held;
  const [object] = objects;
  if (object === undefined) return [];
  const errors = refusalsFor(context, held, actor).map(({ error }) => error);
  const named = actor === undefined ? errors.filter(isAdmissionError) : [];
  return [
    ...named.map((error) =>
      admissionResult(context, error, `UPDATE of ${typeName(type)}`, object.namespace),
    ),
    ...(errors.some((one) => refusesOtherChange(one, type))
      ? mutatingResults(context, type, object, CHANGES)
      : []),
  ];
}

function judgeObject(
  context: Context,
  { finalizer, type }: Held,
  object: ObjectFacts,
  account: Account | undefined,
): Judgement {
  const trial = context.now.trials[trialKey(object.uid, finalizer)];
  // A webhook that answers now may be deleted with the namespace.
  if (trial?.answer === 'accepted' && context.now.forecast === undefined) return UNDECIDED;
  const errors = trial?.answer === 'refused' ? classifyErrorText(trial.message) : [];
  // The trial adds no finalizer, so a mutating webhook or policy does.
  const isAdded = errors.some(({ kind }) => kind === 'new-finalizers-refused');
  const does =
    trial?.answer === 'undone'
      ? `puts ${finalizer} back on the object`
      : isAdded
        ? 'adds a finalizer to the object, which the API server refuses'
        : errors.some((one) => refusesOtherChange(one, type)) && CHANGES;
  if (does) return { ...UNDECIDED, results: mutatingResults(context, type, object, does) };
  const request = realRequest(context, 'UPDATE', type, object, account);
  const who = account === undefined ? 'its owner' : accountText(account);
  return judgeAdmission(context, request, who, trial);
}
