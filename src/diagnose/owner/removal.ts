import { type ObjectFacts, trialKey } from '../../model/snapshot.ts';
import { realRequest } from '../admission/guards.ts';
import { type Judgement, judgeAdmission, UNDECIDED } from '../admission/judge.ts';
import { mutatingResults, refusalResult, refusesOtherChange } from '../admission/refusals.ts';
import { isAggregated } from '../content.ts';
import { type Context, isForeseen } from '../context.ts';
import { classifyErrorText, isAdmissionError } from '../error-texts.ts';
import { resultId } from '../results.ts';
import type { Account } from '../rights.ts';
import type { Suspect } from './clues.ts';
import type { Held } from './held.ts';
import { refusalsFor } from './statements.ts';

/** Returns the update that removes the finalizer, which its controller sends as well. */
export function removalRequest(context: Context, { objects, subject, type }: Held) {
  const [object = { namespace: subject.namespace ?? '', labels: {} }] = objects;
  return realRequest(context, 'UPDATE', type, object);
}

const CHANGES = 'changes a field at every update, which the API server refuses';

/** Finds what refuses the update that removes the finalizer: by a dry run, a dead webhook, or what the objects or their Events say. */
export function judgeRemoval(context: Context, held: Held, owner?: Suspect): Judgement {
  if (isAggregated(context, held.type)) return UNDECIDED;
  const all = held.objects.map((object) => judgeObject(context, held, object, owner?.account));
  const told = isForeseen(context, held) ? [] : refusalsFor(context, held, owner?.actor);
  const request = removalRequest(context, held);
  const results = [
    ...all.flatMap((one) => one.results),
    ...told.flatMap(({ error }) =>
      // What an owner says is read with its other errors.
      owner?.actor === undefined && isAdmissionError(error)
        ? refusalResult(context, error, request)
        : refusesOtherChange(error, held.type)
          ? held.objects.flatMap((one) => mutatingResults(context, held.type, one, CHANGES))
          : [],
    ),
  ];
  return {
    // Texts that name their objects would each bring a remedy.
    results: [...new Map(results.map((result) => [resultId(result), result])).values()],
    questions: [...new Set(all.flatMap(({ questions }) => questions))],
  };
}

function judgeObject(context: Context, held: Held, object: ObjectFacts, account?: Account) {
  const { finalizer, type } = held;
  const trial = context.now.trials[trialKey(object.uid, finalizer)];
  // A webhook that answers now may be deleted with the namespace.
  if (trial?.answer === 'accepted' && context.now.forecast === undefined) return UNDECIDED;
  const errors = trial?.answer === 'refused' ? classifyErrorText(trial.message) : [];
  // The trial adds no finalizer, so a mutating webhook or policy does.
  const isAdded = errors.some(({ kind }) => kind === 'new-finalizers-refused');
  const does = isAdded
    ? 'adds a finalizer to the object, which the API server refuses'
    : trial?.answer === 'undone'
      ? `puts ${finalizer} back on the object`
      : errors.some((one) => refusesOtherChange(one, type)) && CHANGES;
  if (does) return { ...UNDECIDED, results: mutatingResults(context, type, object, does) };
  const request = realRequest(context, 'UPDATE', type, object, account);
  return judgeAdmission(context, { request, trial });
}
