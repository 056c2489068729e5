import { type JsonObject, stringAt } from '../base/json.ts';
import type { KubernetesApi } from '../kubernetes/api.ts';
import { collectionPath, objectPath } from '../kubernetes/paths.ts';
import { failed, type Read, type ReadFailure, read } from '../model/read.ts';
import {
  type ObjectDetail,
  type ObjectFacts,
  type ResourceType,
  type Trial,
  trialKey,
  type Wanted,
} from '../model/snapshot.ts';
import { CONCURRENT_LISTS, FEW, inParallel, listIn, listTogether, PAGE } from './collections.ts';
import { objectDetail, objectFacts } from './parse.ts';
import { type Answer, unreadOf } from './sources.ts';

/**
 * Single objects, for all namespaces of an examination at once. Read by `list` throughout: it is what the
 * sweep needs anyway, and `get` on everything reaches further than it looks (pods/exec, nodes/proxy).
 */

/** With more objects of a type in a namespace, the first page has to do, and names for what is not in it. */
const MAX_DETAILED = 200;
const FIRST_PAGE = 50;
/** In all namespaces together. */
const MAX_BY_NAME = 200;
const GONE = failed({ kind: 'not-found', message: 'it is gone meanwhile' });
const TOO_MANY = failed({
  kind: 'aborted',
  message: `only ${MAX_BY_NAME} objects are read one by one`,
});

export interface Detailed {
  type: ResourceType;
  object: ObjectFacts;
  /** Objects of the type in the namespace. */
  total: number;
}

/** What held objects say beyond their metadata, by UID. */
export async function readDetails(
  items: readonly Detailed[],
  api: KubernetesApi,
  signal: AbortSignal,
): Promise<Map<string, Answer<Read<ObjectDetail>>>> {
  const answers = new Map<string, Answer<Read<ObjectDetail>>>();
  const wanted = new Set(items.map(({ object }) => object.uid));
  const keep = (item: JsonObject): void => {
    const uid = stringAt(item, 'metadata', 'uid') ?? '';
    if (wanted.has(uid)) answers.set(uid, { value: read(objectDetail(item)) });
  };
  let byName = 0;
  const readNamed = async ({ type, object }: Detailed): Promise<Read<never>> => {
    if (byName++ >= MAX_BY_NAME) return TOO_MANY;
    const path = collectionPath(type, object.namespace);
    const only = { fieldSelector: `metadata.name=${object.name}` };
    const end = await api.list(path, { signal, ...only, onItem: keep });
    return end.ok ? GONE : end;
  };
  const groups = Map.groupBy(items, ({ type, total }) => `${typeKey(type)} ${isMany(total)}`);
  await inParallel([...groups.values()], CONCURRENT_LISTS, async (group) => {
    const [{ type, total: some }] = group as [Detailed];
    const places = Map.groupBy(group, ({ object }) => object.namespace);
    const ends = await listIn(
      api,
      type,
      [...places.keys()],
      {
        ...(isMany(some) ? { limit: FIRST_PAGE, maxItems: FIRST_PAGE } : { limit: 100 }),
        onItem: (_, item) => keep(item),
        onRestart: () => undefined,
      },
      signal,
    );
    await inParallel([...places], CONCURRENT_LISTS, async ([namespace, held]) => {
      const end = ends.get(namespace) ?? GONE;
      const [{ total }] = held as [Detailed];
      await inParallel(held, CONCURRENT_LISTS, async (one) => {
        if (answers.has(one.object.uid)) return;
        const isListed = !end.ok || end.value.complete;
        const missing = isListed ? (end.ok ? GONE : end) : await readNamed(one);
        if (!answers.has(one.object.uid)) answers.set(one.object.uid, { value: missing });
      });
      const first = answers.get((held[0] as Detailed).object.uid) as Answer<Read<ObjectDetail>>;
      first.unread = unreadOf('details', `status of ${type.resource}`, end, type, 'list');
      if (!isMany(total)) return;
      first.unread.push({
        source: 'details',
        what: `status of ${total - held.length} more ${type.resource}`,
        reason: `of so many only ${held.length} are read one by one`,
      });
    });
  });
  return answers;
}

function isMany(total: number): boolean {
  return total > MAX_DETAILED;
}

function typeKey({ group, resource }: ResourceType): string {
  return `${resource}.${group}`;
}

export interface Partner {
  facts: Read<ObjectFacts | undefined>;
  detail: ObjectDetail | undefined;
}

type WantedPartner = Wanted['partners'][number] & { key: string };

/** Objects outside that held ones name, by `key`. */
export async function readPartners(
  items: readonly WantedPartner[],
  api: KubernetesApi,
  signal: AbortSignal,
): Promise<Map<string, Answer<Partner>>> {
  const answers = new Map<string, Answer<Partner>>();
  await inParallel(
    [...Map.groupBy(items, ({ type }) => typeKey(type)).values()],
    CONCURRENT_LISTS,
    async (group) => {
      const [{ type }] = group as [WantedPartner];
      const found = new Map<string, Partner>();
      const placeOf = (namespace: string | undefined, name: string): string =>
        `${namespace ?? ''}/${name}`;
      const wanted = new Set(group.map(({ namespace, name }) => placeOf(namespace, name)));
      const onItem = (item: JsonObject): void => {
        const facts = objectFacts(item, type);
        const place = placeOf(facts.namespace, facts.name);
        if (wanted.has(place)) found.set(place, { facts: read(facts), detail: objectDetail(item) });
      };
      // What is in Secrets and their like is nobody's business.
      const metadataOnly = type.group === '' && type.namespaced;
      const options = { page: PAGE.full, metadataOnly, onItem, onRestart: () => found.clear() };
      const whole =
        group.length > FEW
          ? await listTogether(api, collectionPath(type), group.length, options, signal)
          : read(false);
      const isWhole = whole.ok && whole.value;
      await inParallel(group, CONCURRENT_LISTS, async ({ namespace, name, key }) => {
        const only = { fieldSelector: `metadata.name=${name}`, maxItems: 1, metadataOnly };
        const end = isWhole
          ? whole
          : await api.list(collectionPath(type, namespace), { signal, ...only, onItem });
        const none: Partner = { facts: end.ok ? read(undefined) : end, detail: undefined };
        answers.set(key, {
          value: found.get(placeOf(namespace, name)) ?? none,
          unread: unreadOf('partners', `${type.kind} ${name}`, end, type, 'list'),
        });
      });
    },
  );
  return answers;
}

/** Cluster-scoped objects with an owner reference to these UIDs of namespaces, by UID. */
export async function readDependents(
  uids: readonly string[],
  types: readonly ResourceType[],
  api: KubernetesApi,
  signal: AbortSignal,
): Promise<Map<string, Answer<Read<ObjectFacts[]>>>> {
  const found = new Map<string, ObjectFacts[]>(uids.map((uid) => [uid, []]));
  let failure: Read<never> | undefined;
  const wanted = types.filter(
    ({ namespaced, verbs }) => uids.length > 0 && !namespaced && verbs.includes('list'),
  );
  await inParallel(wanted, CONCURRENT_LISTS, async (type) => {
    const end = await api.list(collectionPath(type), {
      signal,
      metadataOnly: true,
      onItem: (item) => {
        const facts = objectFacts(item, type);
        for (const { uid } of facts.ownerReferences) found.get(uid)?.push(facts);
      },
    });
    if (!end.ok) failure ??= end;
  });
  const what = 'cluster-scoped objects that the namespace owns';
  return new Map(
    [...found].map(([uid, objects]) => {
      const value = failure !== undefined && objects.length === 0 ? failure : read(objects);
      return [uid, { value, unread: unreadOf('dependents', what, value, EVERYTHING, 'list') }];
    }),
  );
}

const EVERYTHING = { group: '*', resource: '*' };

/**
 * Removals, tried as dry runs. A webhook that cannot be called fails whatever it is asked about, so where
 * admission is the same one answer serves all; what somebody says who was called is about one object.
 */
export async function readTrials(
  items: readonly Wanted['trials'][number][],
  api: KubernetesApi,
  signal: AbortSignal,
): Promise<Map<string, Answer<Trial>>> {
  const answers = new Map<string, Answer<Trial>>();
  const put = ({ object, finalizer }: Wanted['trials'][number], value: Trial): void => {
    answers.set(trialKey(object.uid, finalizer), { value });
  };
  const groups = Map.groupBy(items, ({ type, finalizer, admission, object }) =>
    [typeKey(type), finalizer, admission ?? object.uid].join(' '),
  );
  await inParallel([...groups.values()], CONCURRENT_LISTS, async ([first, ...others]) => {
    if (first === undefined) return;
    const trial = await tryRemoval(first, api, signal);
    put(first, trial);
    const isForAll = trial.answer === 'refused' && NOBODY_CALLED.test(trial.message);
    await inParallel(others, CONCURRENT_LISTS, async (other) =>
      put(other, isForAll ? trial : await tryRemoval(other, api, signal)),
    );
  });
  return answers;
}

/** apiserver pkg/admission/plugin/webhook/errors and validating/dispatcher.go. */
const NOBODY_CALLED = /failed calling webhook/;

/**
 * Answers to the trial that say nothing about the owner's request: a right that we lack, a webhook that
 * knows no dry runs, and a failed `test` of the patch, because the object has changed since it was read.
 */
const OUR_OWN =
  /cannot (?:patch|delete) resource|\bdry[- ]?runs?\b.{0,40}\b(?:not|un) ?(?:supported|allowed|possible)|(?:not|n't) (?:support|allow).{0,20}\bdry[- ]?run|the server rejected our request due to an error in our request/;

/**
 * Would the API server let the finalizer be removed? Pinned to the UID and to the place of the
 * finalizer, and only ever as a dry run: which webhook or policy refuses is in the answer.
 */
async function tryRemoval(
  { type, object, finalizer }: Wanted['trials'][number],
  api: KubernetesApi,
  signal: AbortSignal,
): Promise<Trial> {
  const place = `/metadata/finalizers/${object.finalizers.indexOf(finalizer)}`;
  const sent = await api.send(
    {
      method: 'PATCH',
      path: objectPath(type, object.namespace || undefined, object.name),
      contentType: 'application/json-patch+json',
      dryRun: true,
      body: [
        { op: 'test', path: '/metadata/uid', value: object.uid },
        { op: 'test', path: place, value: finalizer },
        { op: 'remove', path: place },
      ],
    },
    { signal },
  );
  return trialOf(sent);
}

/** Would the API server let the object be deleted? Only ever as a dry run, and of exactly this object. */
export async function tryDeletion(
  { type, object: { namespace, name, uid } }: Wanted['deletions'][number],
  api: KubernetesApi,
  signal: AbortSignal,
): Promise<Trial> {
  const ask = (who: { name: string; uid: string }): Promise<Read<unknown>> =>
    api.send(
      {
        method: 'DELETE',
        path: objectPath(type, namespace || undefined, who.name),
        dryRun: true,
        body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid: who.uid } },
      },
      { signal },
    );
  const sent = await ask({ name, uid });
  if (sent.ok || namespace === '' || !isOfAnother(sent.failure)) return trialOf(sent);
  // It went meanwhile: any other of its type will do, and none is no obstacle.
  let other: ObjectFacts | undefined;
  const end = await api.list(collectionPath(type, namespace), {
    signal,
    metadataOnly: true,
    limit: 1,
    maxItems: 1,
    onItem: (item) => {
      other = objectFacts(item, type);
    },
  });
  if (!end.ok) return { answer: 'unknown', message: end.failure.message };
  return other === undefined ? { answer: 'accepted' } : trialOf(await ask(other));
}

/** It went, and perhaps another of its name came (apiserver, rest.BeforeDelete and storage's Preconditions.Check). */
export function isOfAnother({ kind, message }: ReadFailure): boolean {
  return kind === 'not-found' || /UID in (?:the )?precondition/.test(message);
}

function trialOf(sent: Read<unknown>): Trial {
  if (sent.ok) return { answer: 'accepted' };
  const { failure } = sent;
  const isOurs = OUR_OWN.test(failure.message);
  const hasAnswer =
    failure.kind === 'forbidden' || failure.kind === 'invalid' || failure.kind === 'server-error';
  return { answer: hasAnswer && !isOurs ? 'refused' : 'unknown', message: failure.message };
}
