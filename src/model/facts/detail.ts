import {
  isObject,
  type Json,
  type JsonObject,
  numberAt,
  parseObject,
  recordAt,
  stringAt,
  valueAt,
} from '../../base/json.ts';
import { shorten, upperFirst } from '../../base/text.ts';
import { conditionsOf, forbidsDeletion, groupOf, shortAnnotations } from './metadata.ts';
import { serviceAddresses } from './programs.ts';
import { labelRequirements, MAX_MESSAGE_CHARS } from './shape.ts';

type Detail = ReturnType<typeof objectDetail>;
type Kept = 'conditions' | 'observedGeneration' | 'texts' | 'suspended' | 'references';
export type ObjectDetail = Pick<Detail, Kept> & Partial<Detail>;

/** A reference to another object. Without a namespace the object is cluster-scoped or in the same namespace. */
export interface Reference {
  group: string | undefined;
  kind: string;
  namespace: string | undefined;
  name: string;
  uid?: string;
  /** Path of the field: `status.boundVolumeSnapshotContentName`. */
  field: string;
  /** The field is a manifest: the controller of the object makes and deletes the other one. */
  isMade?: boolean;
  /** The field is an address, by which a program calls the Service. */
  isAddress?: boolean;
}

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

/** Reads status, conditions and references of a held object by conventions: its type is not known. */
export function objectDetail(object: JsonObject) {
  const { name = '', namespace } = recordAt(object, 'metadata');
  const spec = placesIn('spec', valueAt(object, 'spec'));
  const places = [...spec, ...placesIn('status', valueAt(object, 'status'))];
  const annotations = shortAnnotations(object).map(([key, value]): Place => {
    return { field: `metadata.annotations[${key}]`, key: '', value };
  });
  const names = [...places, ...annotations].flatMap((place) => namesIn(place, name, namespace));
  const protections = spec.filter(({ key, value }) => forbidsDeletion(key, `${value}`));
  return {
    conditions: conditionsOf(object),
    observedGeneration: numberAt(object, 'status', 'observedGeneration'),
    ...textsIn(object, places.slice(spec.length)),
    /** Time at which the work that the object describes ended, as for a Job or a backup: `status.completionTime`. */
    endedAt: endOf(object),
    /** The field of `spec` that pauses the controller of the object, as `spec.paused: true`. */
    suspended: pauseField(object),
    references: places.flatMap((one) => referencesIn(one, namespace)).slice(0, MAX_REFERENCES),
    /** Nodes that its spec or status names: `spec.nodeID`, `status.ownerID` (CSI drivers, Longhorn). */
    nodes: most(places.flatMap(({ key, value }) => (NODE.test(key) ? textOf(value) : []))),
    names: names.slice(0, MAX_NAMES),
    hasMoreNames: names.length > MAX_NAMES || places.length > MAX_PLACES,
    selectors: spec.flatMap(({ field, key, value }) => {
      const requirements = SELECTOR.test(key) ? labelRequirements(value) : [];
      return requirements.length > 0 ? [{ field, requirements }] : [];
    }),
    /** Options that the first two levels of its spec or an annotation set: `spec.cleanPolicy=Delete`. */
    settings: most([...spec, ...annotations].flatMap(settingIn), 200),
    /** Fields of its spec that forbid its deletion: `spec.lifecycle.preventDestroy: true`. */
    protections: most(protections.map(({ field, value }) => `${field}: ${value}`)),
    /** Fields of its spec that contain a template for a Pod or Job in which its controller works. */
    templates: most(spec.flatMap(({ field, key }) => (TASK_TEMPLATE.test(key) ? field : []))),
  };
}

/** Returns all fields in a part of the object, those of the upper levels first. */
function placesIn(part: string, value: Json | undefined): Place[] {
  const fieldsOf = (field: string, beside: Json | undefined): Place[] => {
    const isList = Array.isArray(beside);
    const entries = Object.entries(isList || isObject(beside) ? beside : {});
    return entries.flatMap(([key, item]) =>
      item === undefined
        ? []
        : {
            field: `${field}${isList ? '[]' : `.${key}`}`,
            key: isList ? '' : key,
            value: item,
            beside,
          },
    );
  };
  const places = fieldsOf(part, value);
  // The list grows while it is read.
  for (const place of places) {
    if (places.length > MAX_PLACES) break;
    places.push(...fieldsOf(place.field, place.value));
  }
  return places;
}

const textOf = (value: Json): string[] => (typeof value === 'string' ? [value] : []);

/** Returns different texts, cut where they are long. */
function most(texts: readonly string[], number = 10): string[] {
  const short = texts.map((text) => shorten(text, MAX_MESSAGE_CHARS)).filter(Boolean);
  return [...new Set(short)].slice(0, number);
}

/** Returns the field of the spec, with its value, for which a controller ignores the object or does not delete it. */
function pauseField({ spec }: JsonObject): string | undefined {
  const field = ['suspend', 'suspended', 'paused', 'pause', 'deletionProtection'].find(
    (one) => `${valueAt(spec, one)}` === 'true',
  );
  if (field !== undefined) return `spec.${field}: true`;
  // The states of OpenShift's operators (openshift/api operator/v1, ManagementState).
  const isUnmanaged = stringAt(spec, 'managementState') === 'Unmanaged';
  return isUnmanaged ? 'spec.managementState: Unmanaged' : undefined;
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
const NODE = /^(?:current)?(?:node(?:name|id)?|ownerid)$/i;
const TASK_TEMPLATE = /^(?:runner|job|task)\w*Template$/;
/** A selector of objects that are neither pods nor where these run. */
const SELECTOR = /^(?!(?:node|pod|namespace|topology|workload)Selector$)\w*[a-z]Selector$/;

function settingIn({ field, value }: Place): string[] {
  const isShort = field.startsWith('metadata.') || field.split('.').length <= 3;
  const isSetting = typeof value === 'boolean' || (typeof value === 'string' && WORD.test(value));
  return isShort && isSetting ? [`${field}=${value}`] : [];
}

/** Fields that contain a state. */
const STATE = /(?:phase|state|status|health)$/i;
/** Matches `DeleteFailed` and `Error`, not `NoError`. */
const FAILED = /(?<!^no[ _-]?)(?:error|failed|failure)$/i;
/** States in which an object works badly or not at all. Unlike a failure, they do not end its work. */
const UNHEALTHY =
  /^(?:degraded|offline|disconnected|un(?:healthy|available|reachable)|not[ _-]?(?:healthy|available|reachable|connected))$/i;
/** States in which an object is well: a text beside it is no failure. */
const HEALTHY = /^(?:running|ready|active|available|healthy|bound|synced|succeeded|completed)$/i;
const STATUS_TEXT = /^(?:last)?(?:error|failure)?(?:message|reason|error)$/i;
/** `status.lastErrors[].description`, `status.failureMessage`, `status.error.detail`. */
const ERROR_FIELD = /\.\w*(?:error|failure|exception)\w*(?:\[\])?(?:\.\w+)?$/i;
const NO_ERROR = /^(?:none|null|nil|ok|success\w*|no (?:errors?|failures?|problems?)\b.*|)$/i;
/** A letter, and then two spaces at least: three words. Anchored, since a text may be long and without spaces. */
const WORDS = /^\P{L}*\p{L}.*\s.*\s/su;
/** At least three words, and no sign that only programs write. */
const SENTENCE =
  /^(?=.{10,300}$)\p{L}[\p{L}\p{N}.,:;'"()/!?-]*(?: [\p{L}\p{N}.,:;'"()/!?-]+){2,}$/u;

/** Fields that say when something happened, unless they only say when it began. */
const TIME =
  /(?<!start|started|start_|create|created|creation|transition)(?:time|timestamp|at|date)$/i;
/** A terminating namespace accepts no Events: what was said last before the deletion may be all that a controller could say. */
export const LAST_WORDS_MS = 60_000;

/** Returns the texts of a status outside of its conditions. */
function textsIn(object: JsonObject, status: readonly Place[]) {
  const before =
    Date.parse(stringAt(object, 'metadata', 'deletionTimestamp') ?? '') - LAST_WORDS_MS;
  const texts: string[] = [];
  const errors: string[] = [];
  const sentences: string[] = [];
  const unhealthy: string[] = [];
  const failures: string[] = [];
  for (const { field, key, value, beside } of status) {
    if (typeof value !== 'string' || /conditions/.test(field)) continue;
    if (STATE.test(key) && !field.includes('[]')) {
      const message = stringAt(beside, 'message');
      const state = `${field.slice('status.'.length)}: ${value}`;
      if (UNHEALTHY.test(value)) unhealthy.push(message ? `${state} (${message})` : state);
      if (FAILED.test(value)) failures.push(`${key}: ${value}`);
    }
    const isErrorField = ERROR_FIELD.test(field);
    if (value === '' || (isErrorField && NO_ERROR.test(value))) continue;
    // A text with its time, `lastError: {message, time}`, may be from long before the deletion.
    const times = Object.entries(recordAt(beside))
      .filter(([name]) => field !== `status.${key}` || (name.startsWith(key) && name !== key))
      .flatMap(([name, time]) => (TIME.test(name) ? Date.parse(time) : []));
    if (times.length > 0 && Math.max(...times) < before) continue;
    // The state `phase: DeleteFailed` is explained by the texts beside it.
    const fields = Object.entries(recordAt(beside)).filter(([name]) => STATE.test(name));
    const states = fields.map(([, is]) => is);
    const failed = states.find((is) => FAILED.test(is));
    const isError = failed !== undefined || isErrorField;
    const isStatusText = STATUS_TEXT.test(key);
    const isWell = states.some((is) => HEALTHY.test(is));
    // Java operators write a whole exception as JSON, with a stack trace (Flink, `status.error`).
    const said = (value.startsWith('{') && stringAt(parseObject(value), 'message')) || value;
    const text = failed === undefined ? said : `${failed}: ${said}`;
    const isText = (isStatusText && !isWell) || (isError && WORDS.test(value));
    if (isText) texts.push(text);
    if (isText && isError) errors.push(text);
    const isSentence = SENTENCE.test(value) || (isStatusText && WORDS.test(value));
    if (!isText && isSentence) sentences.push(value);
  }
  // Without a text, a state such as `phase: ReconcileFailed` is all that says that something failed.
  const isSilent =
    texts.length + sentences.length === 0 && conditionsOf(object).every((one) => !one.message);
  return {
    /** Texts that may contain an error: `message`, `reason`, `error`, `lastError`. */
    texts: most(isSilent ? failures : texts),
    /** Those of `texts` that the status itself calls errors, by the name of their field or by a failed state beside them. */
    errors: most(isSilent ? failures : errors),
    /** Sentences in other fields. */
    sentences: most(sentences),
    /** States that are not healthy, and the text beside them: `health.status: Degraded (no route)`. */
    unhealthy: most(unhealthy),
  };
}

/** The name of an object (RFC 1123 subdomain). */
const NAME_VALUE = /^[a-z0-9][-a-z0-9.]{0,252}$/;
/** Fields whose texts name no object that a controller reads for its clean-up. */
const NAMES_NOTHING =
  /^(?:labels|annotations|match(?:Labels|Expressions)|nodeSelector|env|args|command|images?|conditions|apiVersion|kind|namespace|key)$|[hH]ost(?:s|name|names)?$/;

export function canName(field: string): boolean {
  return !field.split(/[.[\]]+/).some((key) => NAMES_NOTHING.test(key));
}

/** Returns what may be names of other objects: a whole text, keys of texts, or what is behind the namespace: `k8s://team-1/creds/key`. */
function namesIn({ field, key, value, beside }: Place, own: string, namespace?: string) {
  if (!field.startsWith('metadata.') && !canName(field)) return [];
  const kind = key === 'name' ? stringAt(beside, 'kind') : undefined;
  const isOfTexts = isObject(value) && Object.values(value).every((one) => typeof one === 'string');
  const keys = isOfTexts ? Object.keys(value).filter(canName) : [];
  const [, ...behind] = textOf(value).flatMap((text) => text.split(`${namespace}/`));
  const paths = behind.map((text) => /^[-a-z0-9.]*[a-z0-9]/.exec(text)?.[0] ?? '');
  return [...keys, ...(paths.length > 0 ? paths : textOf(value))].flatMap((name) =>
    name === own || !NAME_VALUE.test(name)
      ? []
      : { field, name, ...(kind !== undefined && { kind }) },
  );
}

const REFERENCE =
  /(?:Ref|Refs|Reference|References)(?:\[\])?$|(?:[sS]ecret|[cC]onfigMap)(?:\[\])?$/;
const INPUT_KINDS: readonly string[] = ['Secret', 'ConfigMap', 'ServiceAccount'];

/**
 * Returns references to other objects, by these conventions: an ObjectReference or a name under a key that ends in "Ref"
 * (Kubernetes API conventions, "Object references"), `bound…Name` of the snapshot API, `volumeName` of a claim, addresses.
 */
function referencesIn({ field, key, value }: Place, own: string | undefined): Reference[] {
  const reference = (kind?: string, name?: string, more: Partial<Reference> = {}): Reference[] =>
    kind && name ? [{ group: undefined, kind, namespace: undefined, name, field, ...more }] : [];
  if (typeof value === 'string') {
    const [, bound] = /^bound([A-Z]\w*)Name$/.exec(key) ?? [];
    const claimed = field === 'spec.volumeName' ? 'PersistentVolume' : undefined;
    const named = /(?:Name|Ref|Secret|ConfigMap)$/.test(key) ? kindOfKey(key) : undefined;
    const services =
      own !== undefined && field.startsWith('spec.') ? servicesIn(field, value, own) : [];
    return [
      ...reference(bound ?? claimed ?? named, value),
      ...services.flatMap((name) =>
        reference('Service', name, { group: '', namespace: own, isAddress: true }),
      ),
    ];
  }
  const made = valueAt(value, 'metadata');
  const apiVersion = stringAt(value, 'apiVersion');
  const isMade = apiVersion !== undefined && stringAt(made, 'name') !== undefined;
  // AWS controllers for Kubernetes write `vpcRef: {from: {name}}`.
  const named = isMade ? made : (valueAt(value, 'from') ?? value);
  const given = stringAt(value, 'kind');
  const uid = stringAt(value, 'uid');
  // Such a name is a reference under any key: `status.reservedFor` of a ResourceClaim.
  const isNamed =
    uid !== undefined ||
    INPUT_KINDS.includes(given ?? '') ||
    (field.startsWith('status.') && given);
  const last = field.slice(field.lastIndexOf('.') + 1);
  if (!isMade && !isNamed && !REFERENCE.test(last)) return [];
  // `tokenRef: {name, key}` selects a key of a Secret.
  const keyed = stringAt(value, 'key') === undefined ? undefined : 'Secret';
  const kind = given ?? stringAt(value, 'resource') ?? kindOfKey(last, keyed);
  return reference(kind, stringAt(named, 'name'), {
    group: apiVersion === undefined ? stringAt(value, 'apiGroup') : groupOf(apiVersion),
    namespace: stringAt(named, 'namespace'),
    ...(uid !== undefined && { uid }),
    ...(isMade && { isMade }),
  });
}

/** Returns the kind of object that a key names: `credentialsSecretName`, or `providerConfigRef`, if the server has such a kind. */
function kindOfKey(key: string, otherwise?: string): string | undefined {
  const known = INPUT_KINDS.find((one) => key.toLowerCase().includes(one.toLowerCase()));
  if (known !== undefined) return known;
  if (key === 'persistentVolumeClaimName') return 'PersistentVolumeClaim';
  const [, kind] = /^([a-z]\w+)Ref(?:erence)?$/.exec(key) ?? [];
  return otherwise ?? (kind === undefined ? undefined : upperFirst(kind));
}

const ADDRESS_FIELD =
  /(?:host|hostname|address|addresses|addr|url|uri|endpoint|server|servers|broker)s?(?:\[\])?$/i;
/** `nats`, `nats.team-1`, as a URL or with a port. */
const SHORT_HOST =
  /^(?<scheme>[a-z][a-z0-9+.-]*:\/\/(?:[^\s/@]*@)?)?(?<name>[a-z](?:[a-z0-9-]*[a-z0-9])?)(?:\.(?<namespace>[a-z0-9-]+))?(?::\d+)?(?:[/?].*)?$/;

/** Returns the Services of the object's namespace that hosts in a text name. */
function servicesIn(field: string, value: string, own: string): string[] {
  const short = value.split(/, ?/).flatMap((host) => {
    const { scheme, name, namespace = own } = SHORT_HOST.exec(host)?.groups ?? {};
    const isHost = scheme !== undefined || ADDRESS_FIELD.test(field);
    return isHost && name !== undefined && name !== 'localhost' ? `${name}.${namespace}` : [];
  });
  return [...new Set([...serviceAddresses(value), ...short])].flatMap((address) => {
    const [name = '', namespace] = address.split('.');
    return namespace === own ? name : [];
  });
}
