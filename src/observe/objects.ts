import { type JsonObject, recordAt, stringAt, stringsAt, valueAt } from '../base/json.ts';
import { collectItems, type Fold, type Mutation } from '../kubernetes/api.ts';
import { collectionPath, deleteRequest, namespacePath, objectPath } from '../kubernetes/paths.ts';
import { type ObjectDetail, objectDetail } from '../model/facts/detail.ts';
import {
  type Identity,
  identity,
  type ObjectFacts,
  objectFacts,
  type ResourceType,
  removalPatch,
  typeName,
} from '../model/facts/metadata.ts';
import { type Read, type ReadFailure, readFailed, readOk } from '../model/read.ts';
import {
  partnerKey,
  type SampleFound,
  type Trial,
  trialKey,
  type Wanted,
} from '../model/snapshot.ts';
import {
  type Gathered,
  inParallel,
  listIn,
  listTogether,
  notInspectedEntries,
  PAGE_SIZES,
  type Reading,
} from './collections.ts';

/**
 * Reads of single objects, for all namespaces of an examination at once. They use only `list`: the sweep needs
 * that permission anyway, and `get` on everything includes pods/exec and nodes/proxy.
 */

/**
 * Limit for reading all objects of a type in a namespace. Beyond it, only the first page is read, and further
 * objects by name.
 */
const MAX_DETAILED = 200;
const FIRST_PAGE = 50;
/** Limit for reads by name, in all namespaces together. */
const MAX_BY_NAME = 200;
const GONE = readFailed({ kind: 'not-found', message: 'it was deleted meanwhile' });
const TOO_MANY = readFailed({
  kind: 'aborted',
  message: `only ${MAX_BY_NAME} objects are read one by one`,
});

type Detailed = Wanted['details'][number];

/** Reads status, conditions and references of held objects, by UID. */
export async function readDetails(
  items: readonly Detailed[],
  { api, signal }: Reading,
): Promise<Map<string, Gathered<Read<ObjectDetail>>>> {
  const answers = new Map<string, Gathered<Read<ObjectDetail>>>();
  const wanted = new Set(items.map(({ object }) => object.uid));
  const add = (item: JsonObject): void => {
    const uid = stringAt(item, 'metadata', 'uid') ?? '';
    if (wanted.has(uid)) answers.set(uid, { value: readOk(objectDetail(item)) });
  };
  // An object that is in two lists is kept once.
  const begin = (): Fold<true> => ({ add, kept: true });
  let byName = 0;
  const readNamed = async ({ type, object }: Detailed): Promise<Read<never>> => {
    if (byName++ >= MAX_BY_NAME) return TOO_MANY;
    const fieldSelector = `metadata.name=${object.name}`;
    const path = collectionPath(type, object.namespace);
    const end = await api.list(path, begin, { signal, fieldSelector });
    return end.ok ? GONE : end;
  };
  const groups = Map.groupBy(
    items,
    ({ type, total }) => `${typeName(type)} ${total > MAX_DETAILED}`,
  );
  await inParallel([...groups.values()], async (group) => {
    const [{ type, total: some }] = group as [Detailed];
    const isCut = some > MAX_DETAILED;
    const places = Map.groupBy(group, ({ object }) => object.namespace);
    const limits = isCut ? { limit: FIRST_PAGE, maxItems: FIRST_PAGE } : { limit: PAGE_SIZES.full };
    const ends = await listIn(type, [...places.keys()], begin, limits, { api, signal });
    await inParallel([...places], async ([namespace, held]) => {
      const end = ends.get(namespace) ?? GONE;
      const [{ object: first, total }] = held as [Detailed];
      await inParallel(held, async (one) => {
        const { uid } = one.object;
        if (answers.has(uid)) return;
        const missing = !end.ok ? end : end.value.complete ? GONE : await readNamed(one);
        if (!answers.has(uid)) answers.set(uid, { value: missing });
      });
      const unread = notInspectedEntries(`status of ${type.resource}`, end, type);
      if (isCut) {
        const what = `status of ${total - held.length} more ${type.resource}`;
        const reason = `of so many only ${held.length} are read one by one`;
        unread.push({ what, reason });
      }
      Object.assign(answers.get(first.uid) as Gathered<unknown>, { unread });
    });
  });
  return answers;
}

type WantedPartner = Wanted['partners'][number];

/** Reads objects outside of the namespace that held objects refer to, by `partnerKey`. */
export async function readPartners(
  items: readonly WantedPartner[],
  { api, signal }: Reading,
): Promise<Map<string, Gathered<Read<ObjectFacts | undefined>>>> {
  const answers = new Map<string, Gathered<Read<ObjectFacts | undefined>>>();
  const groups = Map.groupBy(items, ({ type }) => typeName(type));
  await inParallel([...groups.values()], async (group) => {
    const [{ type }] = group as [WantedPartner];
    const placeOf = (namespace: string | undefined, name: string): string =>
      `${namespace ?? ''}/${name}`;
    const wanted = new Set(group.map(({ namespace, name }) => placeOf(namespace, name)));
    const begin = collectItems((item) => {
      const facts = objectFacts(item, type);
      const place = placeOf(facts.namespace, facts.name);
      const details = { [facts.uid]: readOk(objectDetail(item)) };
      return wanted.has(place) ? [{ place, value: readOk(facts), details }] : [];
    });
    // The contents of Secrets and ConfigMaps are never requested.
    const metadataOnly = type.group === '' && type.namespaced;
    const page = { limit: PAGE_SIZES.full, metadataOnly };
    const deps = { api, signal };
    const whole = await listTogether(collectionPath(type), group.length, begin, page, deps);
    await inParallel(group, async ({ namespace, name }) => {
      const only = { fieldSelector: `metadata.name=${name}`, maxItems: 1, metadataOnly };
      const end =
        whole.ok && whole.value !== undefined
          ? readOk({ kept: whole.value })
          : await api.list(collectionPath(type, namespace), begin, { signal, ...only });
      const found = end.ok
        ? end.value.kept.findLast(({ place }) => place === placeOf(namespace, name))
        : { value: end };
      answers.set(partnerKey({ ...type, namespace, name }), {
        ...(found ?? { value: readOk(undefined) }),
        unread: notInspectedEntries(`${type.kind} ${name}`, end, type),
      });
    });
  });
  return answers;
}

/**
 * Reads cluster-scoped objects with an owner reference to one of these namespaces, by the UID of the namespace.
 */
export async function readDependents(
  uids: readonly string[],
  types: readonly ResourceType[],
  { api, signal }: Reading,
): Promise<Map<string, Gathered<Read<ObjectFacts[]>>>> {
  const found = new Map<string, ObjectFacts[]>(uids.map((uid) => [uid, []]));
  let failure: Read<never> | undefined;
  const wanted = types.filter(
    ({ namespaced, verbs }) => uids.length > 0 && !namespaced && verbs.includes('list'),
  );
  await inParallel(wanted, async (type) => {
    const path = collectionPath(type);
    const begin = collectItems((item) => objectFacts(item, type));
    const listed = await api.list(path, begin, { signal, metadataOnly: true });
    if (!listed.ok) failure ??= listed;
    for (const facts of listed.ok ? listed.value.kept : []) {
      for (const { uid } of facts.ownerReferences) found.get(uid)?.push(facts);
    }
  });
  const what = 'cluster-scoped objects that the namespace owns';
  return new Map(
    [...found].map(([uid, objects]) => {
      const value = failure !== undefined && objects.length === 0 ? failure : readOk(objects);
      return [uid, { value, unread: notInspectedEntries(what, value, EVERYTHING) }];
    }),
  );
}

const EVERYTHING = { group: '*', resource: '*' };

/**
 * Sends removals of finalizers as dry runs. A webhook that cannot be called fails for every object, so one
 * answer is used for all objects with the same admission. The refusal of a webhook that was called is about one
 * object.
 */
export async function readTrials(
  items: readonly Wanted['trials'][number][],
  deps: Reading,
): Promise<Map<string, Gathered<Trial>>> {
  const answers = new Map<string, Gathered<Trial>>();
  const put = ({ object, finalizer }: Wanted['trials'][number], value: Trial): void => {
    answers.set(trialKey(object.uid, finalizer), { value });
  };
  const groups = Map.groupBy(items, ({ type, finalizer, admission, object }) =>
    [typeName(type), finalizer, admission ?? object.uid].join(' '),
  );
  await inParallel([...groups.values()], async ([first, ...others]) => {
    if (first === undefined) return;
    const trial = await tryRemoval(first, deps);
    put(first, trial);
    const isForAll = trial.answer === 'refused' && WEBHOOK_NOT_CALLED.test(trial.message);
    await inParallel(others, async (other) =>
      put(other, isForAll ? trial : await tryRemoval(other, deps)),
    );
  });
  return answers;
}

/**
 * Error of a webhook that could not be called (apiserver pkg/admission/plugin/webhook/errors and
 * validating/dispatcher.go).
 */
const WEBHOOK_NOT_CALLED = /failed calling webhook/;

/**
 * Answers to the dry run that do not hold for the request of the owner: a permission that the gate lacks, a
 * webhook without support for dry runs, and a failed `test` of the patch because the object has changed.
 */
const NOT_ABOUT_THE_OWNER =
  /User "[^"]*" cannot (?:patch|update|delete) resource|\bdry[- ]?runs?\b.{0,40}\b(?:not|un) ?(?:supported|allowed|possible)|(?:not|n't) (?:support|allow).{0,20}\bdry[- ]?run|the server rejected our request due to an error in our request/;

/**
 * Sends the removal as a dry run. The answer names the webhook or policy that refuses it, or shows that a
 * mutating one put the finalizer back.
 */
async function tryRemoval(
  { type, object, finalizer }: Wanted['trials'][number],
  deps: Reading,
): Promise<Trial> {
  if (type.resource === 'namespaces/finalize') return tryFinalize(object, deps);
  const path = objectPath(type, object.namespace || undefined, object.name);
  const body = removalPatch(object, [finalizer]);
  const sent = await sendMutation({ method: 'PATCH', path, body }, deps);
  const isBack = sent.ok && stringsAt(sent.value, 'metadata', 'finalizers').includes(finalizer);
  return isBack ? { answer: 'undone' } : trialOf(sent);
}

/**
 * Sends the namespace unchanged to `/finalize` as a dry run. Admission is asked, and nothing could be finalized
 * by it.
 */
async function tryFinalize({ name, uid }: Identity, deps: Reading): Promise<Trial> {
  const path = namespacePath(name);
  const got = await deps.api.get(path, { signal: deps.signal });
  if (!got.ok) return { answer: 'unknown', message: got.failure.message };
  const body = got.value;
  if (identity(body).uid !== uid) {
    return { answer: 'unknown', message: 'another object has the name now' };
  }
  return trialOf(await sendMutation({ method: 'PUT', path: `${path}/finalize`, body }, deps));
}

/** Limit for the objects of one type that `readSamples` searches. */
const MAX_SEARCHED = 5_000;

type WantedSample = NonNullable<Wanted['samples']>[number] & { namespace: string };

/** Searches types for objects that `isMeant` accepts: one list each. */
export async function readSamples(
  items: readonly WantedSample[],
  { api, signal }: Reading,
): Promise<Map<string, Gathered<SampleFound>>> {
  const lists = Map.groupBy(items, ({ type, namespace, labelSelector }) =>
    [typeName(type), namespace, labelSelector].join(' '),
  );
  const found = await inParallel([...lists.values()], async (some) => {
    const samples = await readSamplesOfList(some, { api, signal });
    return some.map(
      ({ key, namespace }, index) =>
        [`${namespace} ${key}`, { value: samples[index] as SampleFound }] as const,
    );
  });
  return new Map(found.flat());
}

async function readSamplesOfList(
  items: readonly WantedSample[],
  { api, signal }: Reading,
): Promise<SampleFound[]> {
  const [{ type, namespace, labelSelector }] = items as [WantedSample];
  const samples: SampleFound[] = items.map(() => ({}));
  const add = (object: JsonObject): void => {
    if (valueAt(object, 'metadata', 'deletionTimestamp') !== undefined) return;
    const allAnnotations = recordAt(object, 'metadata', 'annotations');
    const candidate = { ...objectFacts(object, type), allAnnotations };
    for (const [index, { isMeant }] of items.entries()) {
      const found = samples[index];
      if (found?.sample === undefined && isMeant(candidate)) samples[index] = { sample: candidate };
    }
  };
  const end = await api.list(collectionPath(type, namespace), () => ({ add, kept: true }), {
    signal,
    metadataOnly: true,
    maxItems: MAX_SEARCHED,
    ...(labelSelector !== '' && { labelSelector }),
  });
  if (end.ok && end.value.complete) return samples;
  const reason = end.ok ? `only the first ${MAX_SEARCHED} are searched` : end.failure.message;
  return samples.map((found, index) => {
    const what = `whether ${items[index]?.text} is asked about any of the ${typeName(type)}`;
    return found.sample === undefined ? { unsearched: { what, reason } } : found;
  });
}

/**
 * Sends a deletion as a dry run, with the UID as precondition, to see whether the API server would permit it. Objects of
 * a namespace are deleted with the options of the namespace controller (pkg/controller/namespace/deletion).
 */
export async function tryDeletion(
  { type, object }: Wanted['deletions'][number],
  deps: Reading,
): Promise<Trial> {
  const { namespace } = object;
  const ask = ({ name, uid }: Identity): Promise<Read<unknown>> => {
    const path = objectPath(type, namespace || undefined, name);
    const options = {
      preconditions: { uid },
      ...(namespace && { propagationPolicy: 'Background' }),
    };
    return sendMutation(deleteRequest(path, options), deps);
  };
  const begunAt = performance.now();
  const sent = await ask(object);
  const seconds = Math.round((performance.now() - begunAt) / 1_000);
  if (sent.ok) return { answer: 'accepted', ...(seconds > 0 && { seconds }) };
  if (namespace === '' || !isDeletedOrReplaced(sent.failure)) return trialOf(sent);
  // The object was deleted meanwhile. Another object of its type answers the question; without any, nothing
  // can refuse.
  const path = collectionPath(type, namespace);
  const options = { signal: deps.signal, metadataOnly: true, limit: 1, maxItems: 1 };
  const others = await deps.api.list(path, collectItems(identity), options);
  if (!others.ok) return { answer: 'unknown', message: others.failure.message };
  const [other] = others.value.kept;
  return other === undefined ? { answer: 'accepted' } : trialOf(await ask(other));
}

/** Reports whether the object was deleted or replaced (apiserver, rest.BeforeDelete and storage's Preconditions.Check). */
export function isDeletedOrReplaced({ kind, message }: ReadFailure): boolean {
  return kind === 'not-found' || /UID in (?:the )?precondition/.test(message);
}

/** Time limit for a dry run: the API server waits up to 30 s for a webhook (ValidatingWebhook.timeoutSeconds). */
const ADMISSION_MS = 35_000;

/** Sends a mutation, always as a dry run. */
function sendMutation(mutation: Mutation, { api, signal }: Reading): Promise<Read<JsonObject>> {
  return api.send({ ...mutation, dryRun: true }, { signal, timeoutMs: ADMISSION_MS });
}

function trialOf(sent: Read<unknown>): Trial {
  if (sent.ok) return { answer: 'accepted' };
  const { kind, message } = sent.failure;
  const hasAnswer = kind === 'forbidden' || kind === 'invalid' || kind === 'server-error';
  return {
    answer: hasAnswer && !NOT_ABOUT_THE_OWNER.test(message) ? 'refused' : 'unknown',
    message,
  };
}
