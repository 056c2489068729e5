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
import { escapeForRegExp, shorten, upperFirst } from '../../base/text.ts';
import {
  type Condition,
  conditionsOf,
  forbidsDeletion,
  groupOf,
  shortAnnotations,
} from './metadata.ts';
import { serviceAddresses } from './programs.ts';
import { type LabelRequirement, labelRequirements, MAX_MESSAGE_CHARS } from './shape.ts';

/** Status, conditions and references of a held object. */
export interface ObjectDetail {
  conditions: Condition[];
  observedGeneration: number | undefined;
  /** Other short texts of the status that may contain an error: `message`, `reason`, `error`, `lastError`. */
  texts: string[];
  /** Those of `texts` that the status itself calls errors, by the name of their field or by a failed state beside them. */
  errors?: string[];
  /** Those of `texts` beside a healthy state. */
  besideHealthy?: string[];
  /** Sentences in other fields of the status. */
  sentences?: string[];
  /**
   * Time at which the work that the object describes ended, as for a Job or a backup: `status.completionTime`.
   */
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
  /** States of its status that are not healthy, and the text beside them: `health.status: Degraded (no route)`. */
  unhealthy?: string[];
  /** Fields of its spec that contain a template for a Pod or Job in which its controller works. */
  templates?: string[];
}

/** A text that may be the name of an object; of this kind, if the text beside it names one. */
interface NameIn {
  field: string;
  name: string;
  kind?: string;
}

/**
 * A reference to another object. Without a namespace the object is cluster-scoped or in the same namespace.
 */
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

const MAX_TEXTS = 10;
const MAX_NODES = 5;
/** The name of an object (RFC 1123 subdomain). */
const NAME_VALUE = /^[a-z0-9][-a-z0-9.]{0,252}$/;
const WORD = /^[a-zA-Z][-a-zA-Z0-9.]{0,62}$/;
const MAX_REFERENCES = 20;
const MAX_DEPTH = 6;
const ENDED = /^(?:completion|completed|finish|finished|end|ended)(?:time|timestamp|at|date)$/i;
const REFERENCE =
  /(?:Ref|Refs|Reference|References)(?:\[\])?$|(?:[sS]ecret|[cC]onfigMap)(?:\[\])?$/;
const INPUT_KIND = /^(?:Secret|ConfigMap|ServiceAccount)$/;
const TASK_TEMPLATE = /^(?:runner|job|task)\w*Template$/;
const NODE = /^(?:current)?(?:node(?:name|id)?|ownerid)$/i;
/** At least three words, and no sign that only programs write. */
const SENTENCE =
  /^(?=.{10,300}$)\p{L}[\p{L}\p{N}.,:;'"()/!?-]*(?: [\p{L}\p{N}.,:;'"()/!?-]+){2,}$/u;
const STATUS_TEXT = /^(?:last)?(?:error|failure)?(?:message|reason|error)$/i;
/** `status.lastErrors[].description`, `status.failureMessage`, `status.error.detail`. */
const ERROR_FIELD = /\.\w*(?:error|failure|exception)\w*(?:\[\])?(?:\.\w+)?$/i;
const NO_ERROR = /^(?:none|null|nil|ok|success\w*|no (?:errors?|failures?|problems?)\b.*)$/i;
/** A letter, and then two spaces at least: three words. Anchored, since a text may be long and without spaces. */
const WORDS = /^\P{L}*\p{L}.*\s.*\s/su;
/** Names of states in which an object is well (Kubernetes phases, and the usual ones of operators). */
const HEALTHY = /^(?:running|ready|active|available|healthy|bound|synced|succeeded|completed)$/i;

export function objectDetail(object: JsonObject): ObjectDetail {
  const detail: ObjectDetail = {
    conditions: conditionsOf(object),
    observedGeneration: numberAt(object, 'status', 'observedGeneration'),
    texts: [],
    suspended: pauseField(object),
    references: [],
  };
  // A snapshot that is ready was taken at its creation.
  const taken = stringAt(object, 'status', 'creationTime');
  if (valueAt(object, 'status', 'readyToUse') === true && taken) detail.endedAt = taken;
  const own = stringAt(object, 'metadata', 'namespace');
  addNames(detail, object);
  visitFields(valueAt(object, 'spec'), 'spec', 0, (field, key, value) => {
    addReference(detail, field, key, value);
    if (isObject(value) && TASK_TEMPLATE.test(key)) detail.templates = [field];
    if (!isObject(value) && !Array.isArray(value) && forbidsDeletion(key, `${value}`)) {
      addText(detail, 'protections', `${field}: ${value}`);
    }
    if (typeof value !== 'string') return;
    addAddresses(detail, own, field, value);
    if (NODE.test(key)) addText(detail, 'nodes', value, MAX_NODES);
  });
  const failedStates: string[] = [];
  visitFields(valueAt(object, 'status'), 'status', 0, (field, key, value, beside) => {
    addReference(detail, field, key, value);
    if (field === `status.${key}` && UNCONNECTED.test(`${key}=${value}`)) {
      addText(detail, 'unhealthy', `${key}: ${value}`);
    }
    if (typeof value !== 'string') return;
    if (NODE.test(key)) addText(detail, 'nodes', value, MAX_NODES);
    if (field === `status.${key}` && ENDED.test(key)) detail.endedAt = value;
    if (/conditions/.test(field)) return;
    if (STATE.test(key) && UNHEALTHY.test(value) && !field.includes('[]')) {
      const text = stringAt(beside, 'message') ?? '';
      addText(detail, 'unhealthy', `${field.slice(7)}: ${value}${text && ` (${text})`}`);
    }
    if (STATE.test(key) && FAILED.test(value) && !field.includes('[]')) {
      failedStates.push(`${key}: ${value}`);
    }
    if (ERROR_FIELD.test(field) && NO_ERROR.test(value)) return;
    if (isOutdated(object, field, key, beside)) return;
    const failed = firstState(beside, FAILED);
    const isError = failed !== undefined || ERROR_FIELD.test(field);
    const isText = STATUS_TEXT.test(key) || (isError && WORDS.test(value));
    if (!isText && SENTENCE.test(value)) addText(detail, 'sentences', value);
    if (!isText || value === '') return;
    // Java operators write a whole exception as JSON, with a stack trace (Flink, `status.error`).
    const said = value.startsWith('{') ? stringAt(parseObject(value), 'message') : undefined;
    const text = [failed, said ?? value].filter((one) => one !== undefined).join(': ');
    addText(detail, 'texts', text);
    if (isError) addText(detail, 'errors', text);
    else if (firstState(beside, HEALTHY) !== undefined) addText(detail, 'besideHealthy', text);
  });
  // Without a text, a state such as `phase: ReconcileFailed` is all that says that something failed.
  const { conditions, texts, sentences = [] } = detail;
  if (texts.length + sentences.length === 0 && conditions.every(({ message }) => message === '')) {
    for (const state of failedStates) {
      addText(detail, 'texts', state);
      addText(detail, 'errors', state);
    }
  }
  return detail;
}

const PAUSE_FIELDS = ['suspend', 'suspended', 'paused', 'pause', 'deletionProtection'];

/** Returns the field of the spec, with its value, for which a controller ignores the object or does not delete it. */
function pauseField(object: JsonObject): string | undefined {
  const field = PAUSE_FIELDS.find((one) => `${valueAt(object, 'spec', one)}` === 'true');
  if (field !== undefined) return `spec.${field}: true`;
  // The states of OpenShift's operators (openshift/api operator/v1, ManagementState).
  const isUnmanaged = stringAt(object, 'spec', 'managementState') === 'Unmanaged';
  return isUnmanaged ? 'spec.managementState: Unmanaged' : undefined;
}

/** Fields that say when something happened, unless they only say when it began. */
const TIME =
  /(?<!start|started|start_|create|created|creation|transition)(?:time|timestamp|at|date)$/i;

/** A terminating namespace accepts no Events: what was said last before the deletion may be all that a controller could say. */
export const LAST_WORDS_MS = 60_000;

/**
 * Reports whether a text is from long before the deletion by a time of its own: in the same part of the status, such as
 * `lastError: {message, time}`, or in a field such as `lastErrorTime` beside `lastError`.
 */
function isOutdated(
  { metadata }: JsonObject,
  field: string,
  key: string,
  beside: Json | undefined,
): boolean {
  const isPart = field !== `status.${key}`;
  const times = Object.entries(recordAt(beside))
    .filter(([name]) => isPart || (name.startsWith(key) && name !== key))
    .flatMap(([name, value]) => (TIME.test(name) ? [Date.parse(value)] : []));
  const deletion = stringAt(metadata, 'deletionTimestamp') ?? '';
  return times.length > 0 && Math.max(...times) < Date.parse(deletion) - LAST_WORDS_MS;
}

type Notes =
  | 'protections'
  | 'unhealthy'
  | 'texts'
  | 'errors'
  | 'besideHealthy'
  | 'sentences'
  | 'nodes';

/** Adds a text to a list, once, while there is room. */
function addText(detail: ObjectDetail, list: Notes, text: string, most = MAX_TEXTS): void {
  const known = detail[list] ?? [];
  const short = shorten(text, MAX_MESSAGE_CHARS);
  if (short !== '' && known.length < most && !known.includes(short)) {
    detail[list] = [...known, short];
  }
}

/** Matches `DeleteFailed` and `Error`, not `NoError`. */
const FAILED = /(?<!^no[ _-]?)(?:error|failed|failure)$/i;

/** Fields that contain a state. */
const STATE = /(?:phase|state|status|health)$/i;
/** States in which an object works badly or not at all. Unlike a failure, they do not end its work. */
const UNHEALTHY =
  /^(?:degraded|offline|disconnected|un(?:healthy|available|reachable)|not[ _-]?(?:healthy|available|reachable|connected))$/i;

/** The same, as a flag without a condition. */
const UNCONNECTED = /^(?:is)?(?:connected|synced|synchronized|reconciled|succeeded)=false$/i;

/** Returns the first state of this kind, such as `phase: DeleteFailed`; the texts beside it explain it. */
function firstState(status: Json, kind: RegExp): string | undefined {
  const states = Object.entries(recordAt(status));
  return states.find(([key, value]) => STATE.test(key) && kind.test(value))?.[1];
}

const MAX_NAMES = 500;
const MAX_VALUES = 20_000;
const MAX_SETTINGS = 200;
/** Fields whose texts name no object that a controller reads for its clean-up. */
const NAMES_NOTHING =
  /^(?:labels|annotations|match(?:Labels|Expressions)|nodeSelector|env|args|command|images?|conditions|apiVersion|kind|namespace|key)$|[hH]ost(?:s|name|names)?$/;

/** Reports whether texts in the field may be names of objects that a controller reads for its clean-up. */
export function canName(field: string): boolean {
  return !field.split(/[.[\]]+/).some((key) => NAMES_NOTHING.test(key));
}

/** A selector of objects that are neither pods nor where these run. */
const SELECTOR = /[a-z]Selector$/;
const OTHER_SELECTOR = /^(?:node|pod|namespace|topology|workload)Selector$/;

/**
 * Collects what may be names of other objects: whole texts at any depth, keys of maps of texts, and what follows
 * the object's namespace in a text, as in `k8s://team-1/creds`.
 */
function addNames(detail: ObjectDetail, object: JsonObject): void {
  const { name: own, namespace = '' } = recordAt(object, 'metadata');
  const names = new Map<string, NameIn>();
  const settings: string[] = [];
  const selectors: NonNullable<ObjectDetail['selectors']> = [];
  const inText = new RegExp(
    `(?:^|[^a-z0-9.-])${escapeForRegExp(namespace)}/([a-z0-9][-a-z0-9.]*[a-z0-9])`,
    'g',
  );
  const add = (field: string, name: string, kind?: string): void => {
    if (name === own || !NAME_VALUE.test(name)) return;
    if (names.size >= MAX_NAMES) detail.hasMoreNames = true;
    else names.set(`${field} ${name}`, { field, name, ...(kind !== undefined && { kind }) });
  };
  const addValue = (field: string, value: Json, kind?: string): void => {
    if (typeof value === 'string') {
      add(field, value, kind);
      const named = namespace === '' ? [] : value.matchAll(inText);
      for (const [, name = ''] of named) add(field, name);
    }
  };
  const addSetting = (field: string, value: Json): void => {
    const isOption = typeof value === 'boolean' || WORD.test(`${value}`);
    if (isOption && settings.length < MAX_SETTINGS) settings.push(`${field}=${value}`);
  };
  let left = MAX_VALUES;
  const visit = (value: Json, field: string): void => {
    if (Array.isArray(value)) {
      for (const item of value) visit(item, `${field}[]`);
      return;
    }
    if (left-- <= 0) detail.hasMoreNames = true;
    else if (!isObject(value)) addValue(field, value);
    else {
      const entries = Object.entries(value);
      const isOfTexts = entries.every(([, item]) => typeof item === 'string');
      for (const [key, item = null] of entries) {
        if (SELECTOR.test(key) && !OTHER_SELECTOR.test(key)) {
          const requirements = labelRequirements(item);
          if (requirements.length > 0) selectors.push({ field: `${field}.${key}`, requirements });
        }
        if (/^spec(?:\.\w+)?$/.test(field)) addSetting(`${field}.${key}`, item);
        if (NAMES_NOTHING.test(key)) continue;
        if (isOfTexts) add(field, key);
        if (key === 'name') addValue(field, item, stringAt(value, 'kind'));
        else visit(item, `${field}.${key}`);
      }
    }
  };
  for (const part of ['spec', 'status']) visit(valueAt(object, part) ?? null, part);
  for (const [key, value] of shortAnnotations(object)) {
    addValue(`metadata.annotations[${key}]`, value);
    addSetting(`metadata.annotations[${key}]`, value);
  }
  if (names.size > 0) detail.names = [...names.values()];
  if (selectors.length > 0) detail.selectors = selectors;
  if (settings.length > 0) detail.settings = settings;
}

/**
 * Adds a reference to another object, by these conventions: an ObjectReference or a name under a key that ends in "Ref"
 * (Kubernetes API conventions, "Object references"), `bound…Name` of the snapshot API, `volumeName` of a claim.
 * For `secretRef`, `secretKeyRef`, `secretName` and similar keys the name of the key contains the kind.
 */
function addReference({ references }: ObjectDetail, field: string, key: string, value: Json): void {
  if (references.length >= MAX_REFERENCES) return;
  if (typeof value === 'string' && value !== '') {
    const kind =
      /^bound([A-Z]\w*)Name$/.exec(key)?.[1] ??
      (field === 'spec.volumeName' ? 'PersistentVolume' : undefined) ??
      (/(?:Name|Ref|Secret|ConfigMap)$/.test(key) ? kindNamedBy(key) : undefined) ??
      kindOfKey(key);
    if (kind === undefined) return;
    references.push({ group: undefined, kind, namespace: undefined, name: value, field });
    return;
  }
  const made = valueAt(value, 'metadata');
  const apiVersion = stringAt(value, 'apiVersion');
  const isMade = apiVersion !== undefined && stringAt(made, 'name') !== undefined;
  // AWS controllers for Kubernetes write `vpcRef: {from: {name}}`.
  const named = isMade ? made : (valueAt(value, 'from') ?? value);
  const [name, namespace] = [stringAt(named, 'name'), stringAt(named, 'namespace')];
  const given = stringAt(value, 'kind') ?? inputKind(stringAt(value, 'source'));
  // A name with a UID, with the kind of an input, or in a status with a kind, is a reference under any key:
  // `status.reservedFor` of a ResourceClaim.
  const uid = stringAt(value, 'uid');
  const isNamed =
    uid !== undefined ||
    inputKind(given) !== undefined ||
    (field.startsWith('status.') && given !== undefined);
  const last = field.slice(field.lastIndexOf('.') + 1);
  if (!isMade && !isNamed && !REFERENCE.test(last)) return;
  // `tokenRef: {name, key}` selects a key of a Secret.
  const keyed = stringAt(value, 'key') === undefined ? undefined : 'Secret';
  const kind =
    given ?? stringAt(value, 'resource') ?? kindNamedBy(last) ?? keyed ?? kindOfKey(last);
  if (kind === undefined || name === undefined) return;
  const group = apiVersion === undefined ? stringAt(value, 'apiGroup') : groupOf(apiVersion);
  const more = { ...(uid !== undefined && { uid }), ...(isMade && { isMade }) };
  references.push({ group, kind, namespace, name, field, ...more });
}

const ADDRESS_FIELD =
  /(?:host|hostname|address|addresses|addr|url|uri|endpoint|server|servers|broker)s?(?:\[\])?$/i;
/** `nats`, `nats.team-1`, as a URL or with a port. */
const SHORT_HOST =
  /^(?<scheme>[a-z][a-z0-9+.-]*:\/\/(?:[^\s/@]*@)?)?(?<name>[a-z](?:[a-z0-9-]*[a-z0-9])?)(?:\.(?<namespace>[a-z0-9-]+))?(?::\d+)?(?:[/?].*)?$/;

/** Adds references to the Services of the object's namespace that hosts in a text name. */
function addAddresses(
  { references }: ObjectDetail,
  own: string | undefined,
  field: string,
  value: string,
): void {
  if (own === undefined) return;
  const short = value.split(/, ?/).flatMap((host) => {
    const {
      scheme,
      name,
      namespace = own,
    }: Partial<Record<string, string>> = SHORT_HOST.exec(host)?.groups ?? {};
    const isHost = scheme !== undefined || ADDRESS_FIELD.test(field);
    return isHost && name !== undefined && name !== 'localhost' ? `${name}.${namespace}` : [];
  });
  for (const address of new Set([...serviceAddresses(value), ...short])) {
    const [name = '', namespace] = address.split('.');
    if (namespace !== own || references.length >= MAX_REFERENCES) continue;
    references.push({ group: '', kind: 'Service', namespace, name, field, isAddress: true });
  }
}

function inputKind(kind: string | undefined): string | undefined {
  return kind !== undefined && INPUT_KIND.test(kind) ? kind : undefined;
}

/** Returns the kind that a key such as `providerConfigRef` names, if the server has such a kind. */
function kindOfKey(key: string): string | undefined {
  const [, kind] = /^([a-z]\w+)Ref(?:erence)?$/.exec(key) ?? [];
  return kind === undefined ? undefined : upperFirst(kind);
}

/** Returns the kind of object that a field such as `credentialsSecretName` names. */
function kindNamedBy(key: string): string | undefined {
  if (/secret/i.test(key)) return 'Secret';
  if (/configMap/i.test(key)) return 'ConfigMap';
  if (key === 'persistentVolumeClaimName') return 'PersistentVolumeClaim';
  return /serviceAccount/i.test(key) ? 'ServiceAccount' : undefined;
}

function visitFields(
  value: Json | undefined,
  field: string,
  depth: number,
  visit: (field: string, key: string, value: Json, beside: Json) => void,
): void {
  if (depth > MAX_DEPTH) return;
  const entries: [string, string, Json | undefined][] = Array.isArray(value)
    ? value.slice(0, 100).map((item) => [`${field}[]`, '', item])
    : Object.entries(isObject(value) ? value : {})
        .slice(0, 200)
        .map(([key, item]) => [`${field}.${key}`, key, item]);
  for (const [place, key, item] of entries) {
    if (item === undefined) continue;
    visit(place, key, item, value ?? null);
    visitFields(item, place, depth + 1, visit);
  }
}
