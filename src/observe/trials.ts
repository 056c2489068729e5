import { type JsonObject, stringsAt } from '../base/json.ts';
import type { Mutation } from '../kubernetes/api.ts';
import { deleteRequest, namespacePath, objectPath } from '../kubernetes/paths.ts';
import { identity, removalPatch } from '../model/facts/metadata.ts';
import type { Read, ReadFailure } from '../model/read.ts';
import type { Trial, Wanted } from '../model/snapshot.ts';
import type { Reading } from './collections.ts';

/** The API server waits up to 30 s for a webhook (ValidatingWebhook.timeoutSeconds). */
export const ADMISSION_MS = 35_000;

/** Answers to a dry run that do not hold for the owner's request: of RBAC, about dry runs, and a failed `test` of the patch. */
const NOT_ABOUT_THE_OWNER =
  /User "[^"]*" cannot (?:patch|update|delete) resource|\bdry[- ]?runs?\b.{0,40}\b(?:not|un) ?(?:supported|allowed|possible)|(?:not|n't) (?:support|allow).{0,20}\bdry[- ]?run|the server rejected our request due to an error in our request/;

/** The answer names the webhook or policy that refuses it, or shows that a mutating one put the finalizer back. */
export async function tryRemoval(
  { type, object, finalizer }: Wanted['trials'][number],
  deps: Reading,
): Promise<Trial> {
  if (type.resource !== 'namespaces/finalize') {
    const path = objectPath(type, object.namespace || undefined, object.name);
    const body = removalPatch(object, [finalizer]);
    const sent = await tryMutation({ method: 'PATCH', path, body }, deps);
    const isBack = sent.ok && stringsAt(sent.value, 'metadata', 'finalizers').includes(finalizer);
    return isBack ? { answer: 'undone' } : trialOf(sent);
  }
  // The namespace is sent unchanged: admission is asked, and nothing could be finalized by it.
  const path = namespacePath(object.name);
  const got = await deps.api.get(path, { signal: deps.signal });
  if (!got.ok) return { answer: 'unknown', message: got.failure.message };
  if (identity(got.value).uid !== object.uid)
    return { answer: 'unknown', message: 'another object has the name now' };
  const mutation = { method: 'PUT' as const, path: `${path}/finalize`, body: got.value };
  return trialOf(await tryMutation(mutation, deps));
}

/** Objects of a namespace are deleted with the options of the namespace controller (pkg/controller/namespace/deletion). */
export async function tryDeletion(
  { type, object: { namespace, name, uid } }: Wanted['deletions'][number],
  deps: Reading,
): Promise<Trial> {
  const path = objectPath(type, namespace || undefined, name);
  const options = { preconditions: { uid }, ...(namespace && { propagationPolicy: 'Background' }) };
  const begunAt = performance.now();
  const sent = await tryMutation(deleteRequest(path, options), deps);
  const seconds = Math.round((performance.now() - begunAt) / 1_000);
  if (sent.ok) return { answer: 'accepted', ...(seconds > 0 && { seconds }) };
  // What was deleted meanwhile could be deleted.
  return namespace !== '' && isDeletedOrReplaced(sent.failure)
    ? { answer: 'accepted' }
    : trialOf(sent);
}

/** Reports whether the object was deleted or replaced (apiserver, rest.BeforeDelete and storage's Preconditions.Check). */
export function isDeletedOrReplaced({ kind, message }: ReadFailure): boolean {
  return kind === 'not-found' || /UID in (?:the )?precondition/.test(message);
}

/** Sends a mutation, always as a dry run. */
function tryMutation(mutation: Mutation, { api, signal }: Reading): Promise<Read<JsonObject>> {
  return api.send({ ...mutation, dryRun: true }, { signal, timeoutMs: ADMISSION_MS });
}

function trialOf(sent: Read<unknown>): Trial {
  if (sent.ok) return { answer: 'accepted' };
  const { kind, message } = sent.failure;
  const isAnswer = kind === 'forbidden' || kind === 'invalid' || kind === 'server-error';
  const isRefusal = isAnswer && !NOT_ABOUT_THE_OWNER.test(message);
  return { answer: isRefusal ? 'refused' : 'unknown', message };
}
