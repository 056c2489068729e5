import {
  dictionary,
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
import {
  type Condition,
  conditionsOf,
  forbidsDeletion,
  groupOf,
  shortAnnotations,
} from './metadata.ts';
import { serviceAddresses } from './programs.ts';
import { type LabelRequirement, labelRequirements, MAX_MESSAGE_CHARS } from './shape.ts';

/** Status, conditions and references of a held object, read by conventions: its type is not known. */
export interface ObjectDetail {
  conditions: Condition[];
  observedGeneration: number | undefined;
  /** Other short texts of the status that may contain an error: `message`, `reason`, `error`, `lastError`. */
  texts: string[];
  /** Those of `texts` that the status itself calls errors, by the name of their field or by a failed state beside them. */
  errors?: string[];
  /** Sentences in other fields of the status. */
  sentences?: string[];
  /** Time at which the work that the object describes ended, as for a Job or a backup: `status.completionTime`. */
  endedAt?: string;
  /** The field of `spec` that pauses the controller of the object, as `spec.paused: true`. */
  suspended: string | undefined;
  /** Objects that its spec or status refers to. */
  references: Reference[];
  /** Nodes that its spec or status names: `spec.nodeID`, `status.ownerID` (CSI drivers, Longhorn). */
  nodes?: string[];
  /** Texts in its spec, its status and its annotations that may be names of objects. */
  names?: NameIn[];
  /** There are more of them than were kept. */
  hasMoreNames?: true;
  /** Label selectors in its spec. */
  selectors?: { field: string; requirements: LabelRequirement[] }[];
  /** Options that the first two levels of its spec or an annotation set: `spec.cleanPolicy=Delete`. */
  settings?: string[];
  /** Fields of its spec that forbid its deletion: `spec.lifecycle.preventDestroy: true`. */
  protections?: string[];
  /** Fields of its spec that contain a template for a Pod or Job in which its controller works. */
  templates?: string[];
  /** States of its status that are not healthy, and the text beside them: `health.status: Degraded (no route)`. */
  unhealthy?: string[];
}

/** A text that may be the name of an object; of this kind, if the text beside it names one. */
interface NameIn {
  field: string;
  name: string;
  kind?: string;
}

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
  beside: Json | undefined;
}

/** The texts of each list, and how many are kept. */
const MOST = {
  ...{ texts: 10, errors: 10, sentences: 10, unhealthy: 10 },
  ...{ settings: 200, protections: 10, templates: 10, nodes: 5 },
};
type Found = ObjectDetail & { lists: Record<keyof typeof MOST | 'failed', Set<string>> };

const MAX_PLACES = 20_000;
const MAX_NAMES = 500;
const MAX_REFERENCES = 20;

export function objectDetail(object: JsonObject): ObjectDetail {
  const own = recordAt(object, 'metadata');
  const lists = dictionary([...Object.keys(MOST), 'failed'].map((list) => [list, new Set()]));
  const found: Found = {
    conditions: conditionsOf(object),
    observedGeneration: numberAt(object, 'status', 'observedGeneration'),
    texts: [],
    suspended: pauseField(object),
    references: [],
    lists: lists as Found['lists'],
  };
  // A snapshot that is ready was taken at its creation.
  const taken = stringAt(object, 'status', 'creationTime');
  if (valueAt(object, 'status', 'readyToUse') === true && taken) found.endedAt = taken;
  const names = new Map<string, NameIn>();
  const places = ['spec', 'status'].flatMap((part) => placesIn(part, valueAt(object, part)));
  // The list grows while it is read: the fields of the upper levels come first.
  for (const place of places) {
    addName(names, place, own);
    addReference(found, place);
    if (place.field.startsWith('spec.')) addSpec(found, place, own['namespace']);
    else addStatus(found, place, stringAt(object, 'metadata', 'deletionTimestamp'));
    for (const inner of placesIn(place.field, place.value)) {
      if (places.length < MAX_PLACES) places.push(inner);
      else found.hasMoreNames = true;
    }
  }
  for (const [key, value] of shortAnnotations(object)) {
    const field = `metadata.annotations[${key}]`;
    addName(names, { field, key: '', value, beside: undefined }, own);
    if (WORD.test(value)) found.lists.settings.add(`${field}=${value}`);
  }
  if (names.size > MAX_NAMES) found.hasMoreNames = true;
  if (names.size > 0) found.names = [...names.values()].slice(0, MAX_NAMES);
  const {
    lists: { failed, ...all },
    ...detail
  } = found;
  // Without a text, a state such as `phase: ReconcileFailed` is all that says that something failed.
  const isSilent = all.texts.size + all.sentences.size === 0;
  if (isSilent && detail.conditions.every(({ message }) => message === '')) {
    all.texts = failed;
    all.errors = failed;
  }
  for (const [list, most] of Object.entries(MOST) as [keyof typeof MOST, number][]) {
    const short = [...all[list]].map((text) => shorten(text, MAX_MESSAGE_CHARS)).filter(Boolean);
    if (short.length > 0) detail[list] = [...new Set(short)].slice(0, most);
  }
  return detail;
}

function placesIn(field: string, value: Json | undefined): Place[] {
  const isList = Array.isArray(value);
  return Object.entries(isList || isObject(value) ? value : {}).flatMap(([key, item]) => {
    if (item === undefined) return [];
    const place = isList ? { field: `${field}[]`, key: '' } : { field: `${field}.${key}`, key };
    return { ...place, value: item, beside: value };
  });
}

/** Returns the field of the spec, with its value, for which a controller ignores the object or does not delete it. */
function pauseField(object: JsonObject): string | undefined {
  const field = ['suspend', 'suspended', 'paused', 'pause', 'deletionProtection'].find(
    (one) => `${valueAt(object, 'spec', one)}` === 'true',
  );
  if (field !== undefined) return `spec.${field}: true`;
  // The states of OpenShift's operators (openshift/api operator/v1, ManagementState).
  const isUnmanaged = stringAt(object, 'spec', 'managementState') === 'Unmanaged';
  return isUnmanaged ? 'spec.managementState: Unmanaged' : undefined;
}

const WORD = /^[a-zA-Z][-a-zA-Z0-9.]{0,62}$/;
const NODE = /^(?:current)?(?:node(?:name|id)?|ownerid)$/i;
const TASK_TEMPLATE = /^(?:runner|job|task)\w*Template$/;
/** A selector of objects that are neither pods nor where these run. */
const SELECTOR = /^(?!(?:node|pod|namespace|topology|workload)Selector$)\w*[a-z]Selector$/;

function addSpec(found: Found, { field, key, value }: Place, own: string | undefined): void {
  const { lists, selectors = [] } = found;
  const requirements = SELECTOR.test(key) ? labelRequirements(value) : [];
  if (requirements.length > 0) found.selectors = [...selectors, { field, requirements }];
  if (isObject(value) && TASK_TEMPLATE.test(key)) lists.templates.add(field);
  if (typeof value === 'object') return;
  if (field.split('.').length <= 3 && (typeof value === 'boolean' || WORD.test(`${value}`)))
    lists.settings.add(`${field}=${value}`);
  if (forbidsDeletion(key, `${value}`)) lists.protections.add(`${field}: ${value}`);
  if (typeof value !== 'string') return;
  if (NODE.test(key)) lists.nodes.add(value);
  if (own !== undefined) addAddresses(found, own, field, value);
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
const ENDED = /^(?:completion|completed|finish|finished|end|ended)(?:time|timestamp|at|date)$/i;
const STATUS_TEXT = /^(?:last)?(?:error|failure)?(?:message|reason|error)$/i;
/** `status.lastErrors[].description`, `status.failureMessage`, `status.error.detail`. */
const ERROR_FIELD = /\.\w*(?:error|failure|exception)\w*(?:\[\])?(?:\.\w+)?$/i;
const NO_ERROR = /^(?:none|null|nil|ok|success\w*|no (?:errors?|failures?|problems?)\b.*|)$/i;
/** A letter, and then two spaces at least: three words. Anchored, since a text may be long and without spaces. */
const WORDS = /^\P{L}*\p{L}.*\s.*\s/su;
/** At least three words, and no sign that only programs write. */
const SENTENCE =
  /^(?=.{10,300}$)\p{L}[\p{L}\p{N}.,:;'"()/!?-]*(?: [\p{L}\p{N}.,:;'"()/!?-]+){2,}$/u;

function addStatus(found: Found, place: Place, deletion: string | undefined): void {
  const { lists } = found;
  const { field, key, value, beside } = place;
  if (typeof value !== 'string') return;
  if (NODE.test(key)) lists.nodes.add(value);
  if (field === `status.${key}` && ENDED.test(key)) found.endedAt = value;
  if (/conditions/.test(field)) return;
  if (STATE.test(key) && !field.includes('[]')) {
    const text = stringAt(beside, 'message');
    const state = `${field.slice('status.'.length)}: ${value}${text ? ` (${text})` : ''}`;
    if (UNHEALTHY.test(value)) lists.unhealthy.add(state);
    if (FAILED.test(value)) lists.failed.add(`${key}: ${value}`);
  }
  const isErrorField = ERROR_FIELD.test(field);
  if (isErrorField && NO_ERROR.test(value)) return;
  if (isOutdated(place, deletion)) return;
  // The state `phase: DeleteFailed` is explained by the texts beside it.
  const states = Object.entries(recordAt(beside)).filter(([name]) => STATE.test(name));
  const [, failed] = states.find(([, is]) => FAILED.test(is)) ?? [];
  const isError = failed !== undefined || isErrorField;
  const isHealthy = states.some(([, is]) => HEALTHY.test(is));
  const isText = (STATUS_TEXT.test(key) && !isHealthy) || (isError && WORDS.test(value));
  const isSentence = SENTENCE.test(value) || (STATUS_TEXT.test(key) && WORDS.test(value));
  if (!isText && isSentence) lists.sentences.add(value);
  if (!isText || value === '') return;
  // Java operators write a whole exception as JSON, with a stack trace (Flink, `status.error`).
  const said = value.startsWith('{') ? stringAt(parseObject(value), 'message') : undefined;
  const text = [failed, said ?? value].filter((one) => one !== undefined).join(': ');
  lists.texts.add(text);
  if (isError) lists.errors.add(text);
}

/** Fields that say when something happened, unless they only say when it began. */
const TIME =
  /(?<!start|started|start_|create|created|creation|transition)(?:time|timestamp|at|date)$/i;

/** A terminating namespace accepts no Events: what was said last before the deletion may be all that a controller could say. */
export const LAST_WORDS_MS = 60_000;

/** Reports whether a time in the same part of the status, `lastError: {message, time}`, is from long before the deletion. */
function isOutdated({ field, key, beside }: Place, deletion = ''): boolean {
  const times = Object.entries(recordAt(beside))
    .filter(([name]) => field !== `status.${key}` || (name.startsWith(key) && name !== key))
    .flatMap(([name, value]) => (TIME.test(name) ? Date.parse(value) : []));
  return times.length > 0 && Math.max(...times) < Date.parse(deletion) - LAST_WORDS_MS;
}

/** The name of an object (RFC 1123 subdomain). */
const NAME_VALUE = /^[a-z0-9][-a-z0-9.]{0,252}$/;
/** Fields whose texts name no object that a controller reads for its clean-up. */
const NAMES_NOTHING =
  /^(?:labels|annotations|match(?:Labels|Expressions)|nodeSelector|env|args|command|images?|conditions|apiVersion|kind|namespace|key)$|[hH]ost(?:s|name|names)?$/;

/** Reports whether texts in the field may be names of objects that a controller reads for its clean-up. */
export function canName(field: string): boolean {
  return !field.split(/[.[\]]+/).some((key) => NAMES_NOTHING.test(key));
}

/** Adds what may be names of other objects: a whole text, keys of texts, or what is behind the namespace: `k8s://team-1/creds/key`. */
function addName(
  names: Map<string, NameIn>,
  { field, key, value, beside }: Place,
  { name: self, namespace }: Partial<Record<string, string>>,
): void {
  if (names.size > MAX_NAMES || (!field.startsWith('metadata.') && !canName(field))) return;
  const kind = key === 'name' ? stringAt(beside, 'kind') : undefined;
  for (const name of namesIn(value, `${namespace}/`)) {
    if (name === self || !NAME_VALUE.test(name)) continue;
    names.set(`${field} ${name}`, { field, name, ...(kind !== undefined && { kind }) });
  }
}

function namesIn(value: Json, path: string): string[] {
  if (typeof value === 'string') {
    const [, ...behind] = value.split(path);
    const all = behind.map((text) => /^[-a-z0-9.]*[a-z0-9]/.exec(text)?.[0] ?? '');
    return all.length > 0 ? all : [value];
  }
  const isOfTexts = isObject(value) && Object.values(value).every((one) => typeof one === 'string');
  return isOfTexts ? Object.keys(value).filter(canName) : [];
}

const REFERENCE =
  /(?:Ref|Refs|Reference|References)(?:\[\])?$|(?:[sS]ecret|[cC]onfigMap)(?:\[\])?$/;
const INPUT_KIND = /^(?:Secret|ConfigMap|ServiceAccount)$/;

/**
 * Adds a reference to another object, by these conventions: an ObjectReference or a name under a key that ends in "Ref"
 * (Kubernetes API conventions, "Object references"), `bound…Name` of the snapshot API, `volumeName` of a claim.
 */
function addReference({ references }: ObjectDetail, { field, key, value }: Place): void {
  const add = (kind: string | undefined, name: string | undefined, more = {}): void => {
    if (kind === undefined || !name || references.length >= MAX_REFERENCES) return;
    references.push({ group: undefined, kind, namespace: undefined, name, field, ...more });
  };
  if (typeof value === 'string') {
    const [, bound] = /^bound([A-Z]\w*)Name$/.exec(key) ?? [];
    const claimed = field === 'spec.volumeName' ? 'PersistentVolume' : undefined;
    const isNamed = /(?:Name|Ref|Secret|ConfigMap)$/.test(key);
    add(bound ?? claimed ?? (isNamed ? kindOfKey(key) : undefined), value);
    return;
  }
  const made = valueAt(value, 'metadata');
  const apiVersion = stringAt(value, 'apiVersion');
  const isMade = apiVersion !== undefined && stringAt(made, 'name') !== undefined;
  // AWS controllers for Kubernetes write `vpcRef: {from: {name}}`.
  const named = isMade ? made : (valueAt(value, 'from') ?? value);
  const source = stringAt(value, 'source') ?? '';
  const given = stringAt(value, 'kind') ?? (INPUT_KIND.test(source) ? source : undefined);
  const uid = stringAt(value, 'uid');
  // Such a name is a reference under any key: `status.reservedFor` of a ResourceClaim.
  const isNamed =
    uid !== undefined || INPUT_KIND.test(given ?? '') || (field.startsWith('status.') && given);
  const last = field.slice(field.lastIndexOf('.') + 1);
  if (!isMade && !isNamed && !REFERENCE.test(last)) return;
  // `tokenRef: {name, key}` selects a key of a Secret.
  const keyed = stringAt(value, 'key') === undefined ? undefined : 'Secret';
  add(given ?? stringAt(value, 'resource') ?? kindOfKey(last, keyed), stringAt(named, 'name'), {
    group: apiVersion === undefined ? stringAt(value, 'apiGroup') : groupOf(apiVersion),
    namespace: stringAt(named, 'namespace'),
    ...(uid !== undefined && { uid }),
    ...(isMade && { isMade }),
  });
}

/** Returns the kind of object that a key names: `credentialsSecretName`, or `providerConfigRef`, if the server has such a kind. */
function kindOfKey(key: string, otherwise?: string): string | undefined {
  if (/secret/i.test(key)) return 'Secret';
  if (/configMap/i.test(key)) return 'ConfigMap';
  if (/serviceAccount/i.test(key)) return 'ServiceAccount';
  if (key === 'persistentVolumeClaimName') return 'PersistentVolumeClaim';
  const [, kind] = /^([a-z]\w+)Ref(?:erence)?$/.exec(key) ?? [];
  return otherwise ?? (kind === undefined ? undefined : upperFirst(kind));
}

const ADDRESS_FIELD =
  /(?:host|hostname|address|addresses|addr|url|uri|endpoint|server|servers|broker)s?(?:\[\])?$/i;
/** `nats`, `nats.team-1`, as a URL or with a port. */
const SHORT_HOST =
  /^(?<scheme>[a-z][a-z0-9+.-]*:\/\/(?:[^\s/@]*@)?)?(?<name>[a-z](?:[a-z0-9-]*[a-z0-9])?)(?:\.(?<namespace>[a-z0-9-]+))?(?::\d+)?(?:[/?].*)?$/;

/** Adds references to the Services of the object's namespace that hosts in a text name. */
function addAddresses({ references }: Found, own: string, field: string, value: string): void {
  const short = value.split(/, ?/).flatMap((host) => {
    const { scheme, name, namespace = own } = SHORT_HOST.exec(host)?.groups ?? {};
    const isHost = scheme !== undefined || ADDRESS_FIELD.test(field);
    return isHost && name !== undefined && name !== 'localhost' ? `${name}.${namespace}` : [];
  });
  for (const address of new Set([...serviceAddresses(value), ...short])) {
    const [name = '', namespace] = address.split('.');
    if (namespace !== own || references.length >= MAX_REFERENCES) continue;
    references.push({ group: '', kind: 'Service', namespace, name, field, isAddress: true });
  }
}
