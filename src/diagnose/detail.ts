import {
  isObject,
  type Json,
  type JsonObject,
  numberAt,
  parseObject,
  recordAt,
  stringAt,
  valueAt,
} from '../base/json.ts';
import { escapeForRegExp, shorten, upperFirst } from '../base/text.ts';
import {
  conditionsOf,
  forbidsDeletion,
  groupOf,
  shortAnnotations,
} from '../model/facts/metadata.ts';
import { labelRequirements, MAX_MESSAGE_CHARS } from '../model/facts/shape.ts';
import type { ObjectDetail, Reference } from '../model/snapshot.ts';
import { FAILURE } from './error-texts.ts';

/** A field of the object, with the object or list that it is in. */
interface Place {
  field: string;
  key: string;
  value: Json;
  beside?: Json | undefined;
}

const MAX_PLACES = 20_000;
const MAX_NAMES = 500;
const MAX_REFERENCES = 20;
const MAX_SETTINGS = 200;
const MAX_TEXTS = 10;

/** Reads status, conditions and references of a held object by conventions: its type is not known. */
export function objectDetail(object: JsonObject): ObjectDetail {
  const { name = '', namespace } = recordAt(object, 'metadata');
  const spec = placesIn('spec', object['spec']);
  const status = placesIn('status', object['status']);
  const annotations = shortAnnotations(object).map(([key, value]): Place => {
    return { field: `metadata.annotations[${key}]`, key: '', value };
  });
  const places = [...spec, ...status];
  const names = [...places, ...annotations].flatMap((place) => namesIn(place, name, namespace));
  const kept = spec.filter(({ key, value }) => forbidsDeletion(key, `${value}`));
  return {
    conditions: conditionsOf(object),
    observedGeneration: numberAt(object, 'status', 'observedGeneration'),
    ...textsIn(object, status),
    endedAt: endOf(object),
    references: [
      ...places.flatMap(referencesIn),
      ...(namespace === undefined ? [] : servicesIn(spec, namespace)),
    ].slice(0, MAX_REFERENCES),
    nodes: most(places.flatMap(({ key, value }) => (NODE.test(key) ? textOf(value) : []))),
    names: names.slice(0, MAX_NAMES),
    hasMoreNames: names.length > MAX_NAMES || places.length > MAX_PLACES,
    selectors: spec.flatMap(({ field, key, value }) => {
      const requirements = SELECTOR.test(key) ? labelRequirements(value) : [];
      return requirements.length > 0 ? [{ field, requirements }] : [];
    }),
    settings: [...spec.filter(isShort), ...annotations]
      .flatMap(({ field, value }) => (isSetting(value) ? [`${field}=${value}`] : []))
      .slice(0, MAX_SETTINGS),
    protections: most(kept.map(({ field, value }) => `${field}: ${value}`)),
    templates: most(spec.flatMap(({ field, key }) => (TASK_TEMPLATE.test(key) ? [field] : []))),
  };
}

/** Returns all fields in a part of the object, those of the upper levels first. */
function placesIn(part: string, value: Json = null): Place[] {
  const places: Place[] = [{ field: part, key: '', value }];
  // The list grows while it is read.
  for (const { field, value, beside } of places) {
    if (places.length > MAX_PLACES) break;
    const isList = Array.isArray(value);
    for (const [key, item = null] of Object.entries(isList || isObject(value) ? value : {})) {
      const own = isList ? { field: `${field}[]`, key: '' } : { field: `${field}.${key}`, key };
      // A text in a list, as of `status.messages[]`, stands beside what the list does.
      places.push({ ...own, value: item, beside: isList && !isObject(item) ? beside : value });
    }
  }
  return places.slice(1);
}

const textOf = (value: Json): string[] => (typeof value === 'string' ? [value] : []);

/** Returns the first different texts, cut where they are long. */
function most(texts: readonly string[]): string[] {
  const short = texts.map((text) => shorten(text, MAX_MESSAGE_CHARS)).filter(Boolean);
  return [...new Set(short)].slice(0, MAX_TEXTS);
}

const ENDED = /^(?:completion|completed|finish|finished|end|ended)(?:time|timestamp|at|date)$/i;

function endOf({ status }: JsonObject): string | undefined {
  const times = recordAt(status);
  const ended = Object.keys(times).findLast((key) => ENDED.test(key));
  // A snapshot that is ready was taken at its creation.
  const taken = valueAt(status, 'readyToUse') === true ? times['creationTime'] : undefined;
  return (ended === undefined ? taken : times[ended]) || undefined;
}

const WORD = /^[a-zA-Z][-a-zA-Z0-9.]{0,62}$/;
const isSetting = (value: Json) =>
  typeof value === 'boolean' || (typeof value === 'string' && WORD.test(value));
const isShort = ({ field }: Place) => field.split('.', 4).length <= 3;
const NODE = /^(?:current)?(?:node(?:name|id)?|ownerid)$/i;
const TASK_TEMPLATE = /^(?:runner|job|task)\w*Template$/;
/** A selector of objects that are neither pods nor where these run. */
const SELECTOR = /^(?!(?:node|pod|namespace|topology|workload)Selector$)\w*[a-z]Selector$/;
/** Fields that contain a state. */
const STATE = /(?:phase|state|status|health)$/i;
/** Matches `DeleteFailed` and `Error`, not `NoError`. */
const FAILED = /(?<!^no[ _-]?)(?:error|failed|failure)$/i;
/** States in which an object works badly or not at all. Unlike a failure, they do not end its work. */
const UNHEALTHY =
  /^(?:degraded|offline|disconnected|un(?:healthy|available|reachable)|not[ _-]?(?:healthy|available|reachable|connected))$/i;
/** The same, if a message beside it says why: a machine may be stopped, and well. */
const HALTED =
  /^(?:suspended|paused|on ?hold|halted|frozen|stopped|stalled|blocked|locked|disabled|inactive|expired|rejected|invalid)$/i;
/** States in which an object is well: what was said beside it before a deletion, or of a part, is history. */
const HEALTHY = /^(?:running|ready|active|available|healthy|bound|synced|succeeded|completed)$/i;
/** `status.message`, `status.lastErrorMessage`, `status.phaseReason`, `status.messages[]`. */
const STATUS_TEXT =
  /(?:messages?|\.(?:last)?(?:error|failure|phase|state|status)?(?:reason|error))(?:\[\])?$/i;
/** `status.lastErrors[].description`, `status.failureMessage`, `status.error.detail`. */
const ERROR_FIELD = /\.\w*(?:error|failure|exception)\w*(?:\[\])?(?:\.\w+)?$/i;
const NO_ERROR = /^(?:none|null|nil|ok|success\w*|no (?:errors?|failures?|problems?)\b.*)$/i;
/** Conditions about the removal itself are True while it goes on, well or badly: only the text decides. */
export const ABOUT_REMOVAL = /delet|terminati(?:ng|on)|finali[sz]|clean/i;
/** A letter, and then two spaces at least: three words. Anchored, since a text may be long and without spaces. */
const WORDS = /^\P{L}*\p{L}.*\s.*\s/su;
/** Fields that say when something happened, unless they only say when it began. */
const TIME =
  /(?<!start|started|start_|create|created|creation|transition)(?:time|timestamp|at|date)$/i;
/** A terminating namespace accepts no Events: what was said last before the deletion may be all that a controller could say. */
export const LAST_WORDS_MS = 60_000;

/** Returns the texts of a status outside of its conditions. */
function textsIn(object: JsonObject, status: readonly Place[]) {
  const deletedAt = Date.parse(stringAt(object, 'metadata', 'deletionTimestamp') ?? '');
  const said = status.flatMap((place) => saidAt(place, deletedAt - LAST_WORDS_MS) ?? []);
  const textsAs = (...kinds: string[]) =>
    most(said.flatMap(({ as, text }) => (kinds.includes(as) ? text : [])));
  // Without a text, a state such as `phase: ReconcileFailed` is all that says that something failed.
  const isSilent =
    said.every(({ as }) => as === 'state' || as === 'unhealthy') &&
    conditionsOf(object).every((one) => !one.message);
  return {
    texts: isSilent ? textsAs('state') : textsAs('error', 'text'),
    errors: textsAs(isSilent ? 'state' : 'error'),
    unhealthy: textsAs('unhealthy'),
  };
}

function saidAt({ field, key, value, beside }: Place, earliest: number) {
  if (typeof value !== 'string' || value === '' || field.includes('conditions')) return undefined;
  if (STATE.test(key) && !field.includes('[]')) {
    const message = stringAt(beside, 'message');
    const why = message ? ` (${message})` : '';
    if (UNHEALTHY.test(value) || (why && HALTED.test(value)))
      return { as: 'unhealthy', text: `${field.slice(7)}: ${value}${why}` };
    if (FAILED.test(value)) return { as: 'state', text: `${key}: ${value}` };
  }
  const isErrorField = ERROR_FIELD.test(field);
  if (isErrorField && NO_ERROR.test(value)) return undefined;
  const neighbours = Object.entries(recordAt(beside));
  // A text with its time, `lastError: {message, time}`, may be from long before the deletion.
  const isAlone = field === `status.${key}` || /^status\.\w+\[\]$/.test(field);
  const times = neighbours.flatMap(([name, time]) => {
    const isItsOwn = !isAlone || (key !== '' && name.startsWith(key) && name !== key);
    return isItsOwn && TIME.test(name) ? Date.parse(time) : [];
  });
  if (times.length > 0 && Math.max(...times) < earliest) return undefined;
  // The state `phase: DeleteFailed` is explained by the texts beside it.
  const states = neighbours.flatMap(([name, is]) => (STATE.test(name) ? textOf(is) : []));
  const failed = states.find((is) => FAILED.test(is));
  const isError = failed !== undefined || isErrorField;
  const isHistory = Number.isNaN(earliest) || field.includes('[]');
  if (isHistory && !isError && states.some((is) => HEALTHY.test(is))) return undefined;
  // `status.detail`, `status.info`: any text that says why a removal fails.
  const isRefusal = ABOUT_REMOVAL.test(value) && FAILURE.test(value) && !field.includes('[]');
  if (!STATUS_TEXT.test(field) && !((isError || isRefusal) && WORDS.test(value))) return undefined;
  // Java operators write a whole exception as JSON, with a stack trace (Flink, `status.error`).
  const said = (value.startsWith('{') && stringAt(parseObject(value), 'message')) || value;
  const isSaid = failed === undefined || said.toLowerCase().startsWith(failed.toLowerCase());
  return { as: isError ? 'error' : 'text', text: isSaid ? said : `${failed}: ${said}` };
}

/** The name of an object (RFC 1123 subdomain). */
const NAME_VALUE = /^[a-z0-9][-a-z0-9.]{0,252}$/;
/** Fields whose texts name no object that a controller reads for its clean-up. */
const NAMES_NOTHING =
  /^(?:labels|annotations|match(?:Labels|Expressions)|nodeSelector|env|args|command|images?|conditions|apiVersion|kind|namespace|key)$|[hH]ost(?:s|name|names)?$/;

export function canName(field: string): boolean {
  return !field.split(/[.[\]]+/).some((key) => NAMES_NOTHING.test(key));
}

/** Returns what may be names of other objects: a whole text, keys of texts, or what is behind the namespace: `team-1/creds`. */
function namesIn({ field, key, value, beside }: Place, own: string, namespace?: string) {
  if (!field.startsWith('metadata.') && !canName(field)) return [];
  const kind = key === 'name' ? stringAt(beside, 'kind') : undefined;
  const isOfTexts = isObject(value) && Object.values(value).every((one) => typeof one === 'string');
  const texts = textOf(value).map((text) => {
    const [, behind] = text.split(`${namespace}/`);
    return behind?.split(/[^-a-z0-9.]/)[0] ?? text;
  });
  return [...(isOfTexts ? Object.keys(value).filter(canName) : []), ...texts]
    .filter((name) => name !== own && NAME_VALUE.test(name))
    .map((name) => ({ field, name, ...(kind !== undefined && { kind }) }));
}

const REFERENCE =
  /(?:Ref|Refs|Reference|References)(?:\[\])?$|(?:[sS]ecret|[cC]onfigMap)(?:\[\])?$/;
/** Kinds of the core group that a controller reads for its own work. */
export const INPUT_KINDS: readonly string[] = ['Secret', 'ConfigMap', 'ServiceAccount'];

/**
 * Returns references to other objects, by these conventions: an ObjectReference or a name under a key that ends in "Ref"
 * (Kubernetes API conventions, "Object references"), `bound…Name` of the snapshot API, `volumeName` of a claim.
 */
function referencesIn({ field, key, value }: Place): Reference[] {
  if (typeof value === 'string') {
    const [, bound] = /^bound([A-Z]\w*)Name$/.exec(key) ?? [];
    const claimed = field === 'spec.volumeName' ? 'PersistentVolume' : undefined;
    const named = /(?:Name|Ref|Secret|ConfigMap)$/.test(key) ? kindOfKey(key) : undefined;
    const kind = bound ?? claimed ?? named;
    return kind && value ? [{ kind, name: value, field }] : [];
  }
  const made = valueAt(value, 'metadata');
  const apiVersion = stringAt(value, 'apiVersion');
  const isMade = apiVersion !== undefined && stringAt(made, 'name') !== undefined;
  const given = stringAt(value, 'kind');
  const uid = stringAt(value, 'uid');
  const last = field.slice(field.lastIndexOf('.') + 1);
  // Such a name is a reference under any key: `status.reservedFor` of a ResourceClaim.
  const isNamed =
    uid ?? (INPUT_KINDS.includes(given ?? '') || (field.startsWith('status.') && given));
  if (!isMade && !isNamed && !REFERENCE.test(last)) return [];
  // AWS controllers for Kubernetes write `vpcRef: {from: {name}}`.
  const named = isMade ? made : (valueAt(value, 'from') ?? value);
  // `tokenRef: {name, key}` selects a key of a Secret.
  const keyed = stringAt(value, 'key') === undefined ? undefined : 'Secret';
  const kind = given ?? stringAt(value, 'resource') ?? kindOfKey(last, keyed);
  const name = stringAt(named, 'name');
  if (!kind || !name) return [];
  const group = apiVersion === undefined ? stringAt(value, 'apiGroup') : groupOf(apiVersion);
  const namespace = stringAt(named, 'namespace');
  return [{ group, kind, namespace, name, field, uid, isMade: isMade || undefined }];
}

/** Returns the kind of object that a key names: `credentialsSecretName`, or `providerConfigRef`, if the server has such a kind. */
function kindOfKey(key: string, otherwise?: string): string | undefined {
  const known = INPUT_KINDS.find((one) => key.toLowerCase().includes(one.toLowerCase()));
  if (known !== undefined) return known;
  if (key === 'persistentVolumeClaimName') return 'PersistentVolumeClaim';
  const [, kind] = /^([a-z]\w+)Ref(?:erence)?$/.exec(key) ?? [];
  return otherwise ?? (kind && upperFirst(kind));
}

/** Fields of which the value may be the host alone: `spec.broker.url`, `spec.hosts[]`. */
const ADDRESS_FIELD =
  /(?:host|hostname|addr|address|url|uri|endpoint|server|broker)(?:e?s)?(?:\[\])?$/i;
/** `nats`, `tcp://nats:4222`: a Service of the same namespace. */
const BARE_HOST =
  /^(?:[a-z][a-z0-9+.-]*:\/\/(?:[^\s/@]*@)?)?([a-z](?:[a-z0-9-]*[a-z0-9])?)(?::\d+)?(?:[/?].*)?$/;

/** Returns the Services of the object's namespace that its spec addresses: `nats.team-1.svc`, `amqp://rabbit.team-1:5672`, `nats`. */
function servicesIn(spec: readonly Place[], own: string): Reference[] {
  const inside = `(?<![\\w-])([a-z0-9-]+)\\.${escapeForRegExp(own)}(?=\\.svc|[:/,]|$)`;
  const host = new RegExp(inside, 'g');
  const service = { group: '', kind: 'Service', namespace: own, isAddress: true };
  return spec.flatMap(({ field, value }) =>
    textOf(value).flatMap((text) => {
      const alone = ADDRESS_FIELD.test(field) ? text.split(/, ?/) : [];
      const found = [...text.matchAll(host), ...alone.map((one) => BARE_HOST.exec(one))];
      const names = found.flatMap((one) => one?.[1] ?? []).filter((one) => one !== 'localhost');
      return names.map((name) => ({ ...service, name, field }));
    }),
  );
}
