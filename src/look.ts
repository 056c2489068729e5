import { questionsOf } from './diagnose/ask.ts';
import { noDetails, type RollCall } from './observe/details.ts';
import { investigate } from './observe/investigate.ts';
import { type ObserveDeps, observe } from './observe/observe.ts';
import { hasQuestions } from './observe/questions.ts';
import type { NamespaceFacts, Snapshot } from './observe/snapshot.ts';

/** Finalizer, then its owner, then what the owner waits for: deeper questions do not exist. */
const MAX_ROUNDS = 6;

/** One look at the cluster: the sweep, and then what the findings raise questions about. */
export async function look(
  namespace: NamespaceFacts,
  before: Snapshot | undefined,
  rollCall: RollCall | undefined,
  deps: ObserveDeps,
): Promise<Snapshot> {
  const seen = await observe(namespace, deps);
  let snapshot = rollCall === undefined ? seen : { ...seen, rollCall };
  for (let round = 0; round < MAX_ROUNDS && !deps.signal.aborted; round++) {
    const questions = questionsOf(snapshot, before);
    if (!hasQuestions(questions)) break;
    const known = snapshot.details ?? noDetails();
    snapshot = {
      ...snapshot,
      details: await investigate(namespace.name, questions, known, deps.api, deps.signal),
    };
  }
  return snapshot;
}
