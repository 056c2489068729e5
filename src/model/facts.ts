import {
  arrayAt,
  dictionary,
  isObject,
  type Json,
  type JsonObject,
  numberAt,
  recordAt,
  stringAt,
  stringsAt,
  valueAt,
} from '../base/json.ts';
import { shorten, upperFirst } from '../base/text.ts';

/**
 * Facts that are kept of an object. A shape names each fact with the field it comes from, and reads it. Nothing
 * here throws: a field of an unexpected type is left out.
 */
type Field<T> = (object: Json | undefined) => T;
type Fields = Record<string, Field<unknown>>;
/** A fact that may be undefined may also be absent, as in snapshots that were recorded earlier. */
type Shape<S extends Fields> = {
  [K in keyof S as undefined extends ReturnType<S[K]> ? never : K]: ReturnType<S[K]>;
} & { [K in keyof S as undefined extends ReturnType<S[K]> ? K : never]?: ReturnType<S[K]> };

function shape<S extends Fields>(fields: S): Field<Shape<S>> {
  const entries = Object.entries(fields);
  return (object) => {
    const facts: Record<string, unknown> = {};
    for (const [key, read] of entries) facts[key] = read(object);
    return facts as Shape<S>;
  };
}

/** Reads the value at a path such as `spec.nodeName`. */
function fieldAt<T>(path: string, read: Field<T>): Field<T> {
  const keys = path.split('.');
  return (object) => read(valueAt(object, ...keys));
}

const text = (path: string, otherwise = '') =>
  fieldAt(path, (value) => stringAt(value) ?? otherwise);
const textIfAny = (path: string) => fieldAt(path, (value) => stringAt(value));
const number = (path: string) => fieldAt(path, (value) => numberAt(value));
const isTrue = (path: string) => fieldAt(path, (value) => value === true);
const texts = (path: string) => fieldAt(path, (value) => stringsAt(value));
const record = (path: string) => fieldAt(path, (value) => recordAt(value));
const each = <T>(path: string, read: Field<T>) =>
  fieldAt(path, (value) => arrayAt(value).map((item) => read(item)));
/** Returns a function that reads the texts at a path of each item, without items that have none. */
const textOfEach = (path: string, key: string) =>
  fieldAt(path, (value) => arrayAt(value).flatMap((item) => stringAt(item, key) ?? []));

const NAME = { name: text('metadata.name') };
const PLACED = { namespace: text('metadata.namespace'), ...NAME };

export type Condition = ReturnType<typeof condition>;
const condition = shape({
  type: text('type'),
  status: text('status'),
  reason: text('reason'),
  message: text('message'),
  lastTransitionTime: textIfAny('lastTransitionTime'),
  observedGeneration: number('observedGeneration'),
});

/** Reads `status.conditions`: a list, or an object with the types as keys. */
export function conditionsOf(object: Json | undefined): Condition[] {
  const list = valueAt(object, 'status', 'conditions');
  const found: Condition[] = isObject(list)
    ? Object.entries(list).map(([type, item]) => ({ ...condition(item), type }))
    : each('status.conditions', condition)(object);
  return found.filter(({ type }) => type !== '');
}

export type OwnerReference = ReturnType<typeof ownerReference>;
const ownerReference = shape({
  apiVersion: text('apiVersion'),
  kind: text('kind'),
  name: text('name'),
  uid: text('uid'),
  controller: isTrue('controller'),
  blockOwnerDeletion: isTrue('blockOwnerDeletion'),
});

const ownerReferences = each('metadata.ownerReferences', ownerReference);

function controllerOf(object: Json | undefined): OwnerReference | undefined {
  return ownerReferences(object).find(({ controller }) => controller);
}

const writer = shape({
  /** Field manager: `fieldManager` of the request, or its User-Agent up to the first slash. */
  manager: text('manager'),
  operation: text('operation'),
  time: textIfAny('time'),
});

export type FinalizerWriter = ReturnType<typeof finalizerWriters>[number];

/**
 * Returns the managedFields entries that own `f:metadata` → `f:finalizers` → `v:"<finalizer>"`. Several managers
 * may own the same entry; the last writer is named. `isAuthor`: the manager applied a manifest or created the
 * object, and the finalizer came with the rest of the object.
 */
export function finalizerWriters(object: Json | undefined) {
  const finalizers = stringsAt(object, 'metadata', 'finalizers');
  if (finalizers.length === 0) return [];
  const authors = managedFields(object).filter((entry) =>
    Object.keys(valueAt(entry, 'fieldsV1') ?? {}).some(
      (key) => !/^f:(?:metadata|status)$/.test(key),
    ),
  );
  return [...new Set(finalizers)].flatMap((finalizer) => {
    const key = `v:${JSON.stringify(finalizer)}`;
    const owner = lastWrite(object, 'f:metadata', 'f:finalizers', key);
    if (owner === undefined) return [];
    const isManifest = authors.length === 1 || stringAt(owner, 'operation') === 'Apply';
    return {
      finalizer,
      ...writer(owner),
      ...(isManifest && authors.includes(owner) ? { isAuthor: true as const } : {}),
    };
  });
}

const write = shape({ manager: text('manager'), time: textIfAny('time') });
const writes = (object: Json | undefined) => managedFields(object).map(write);

function statusWriters(object: Json | undefined): ReturnType<typeof write>[] {
  return managedFields(object)
    .filter(
      (entry) =>
        stringAt(entry, 'subresource') === 'status' ||
        isObject(valueAt(entry, 'fieldsV1', 'f:status')),
    )
    .map(write);
}

/** Returns the managedFields, oldest first. RFC 3339 in UTC sorts as text. */
function managedFields(object: Json | undefined): Json[] {
  const timeOf = (entry: Json): string => stringAt(entry, 'time') ?? '';
  return arrayAt(object, 'metadata', 'managedFields').toSorted((a, b) =>
    timeOf(a) < timeOf(b) ? -1 : Number(timeOf(a) > timeOf(b)),
  );
}

/** Returns the entry of the field manager that last set a field, also by a subresource. */
function lastWrite(object: Json | undefined, ...field: string[]): Json | undefined {
  return managedFields(object).findLast(
    (entry) => valueAt(entry, 'fieldsV1', ...field) !== undefined,
  );
}

/** All field managers. Absent in snapshots that were recorded earlier. */
function managersOf(object: Json | undefined): string[] | undefined {
  return [...new Set(managedFields(object).flatMap((entry) => stringAt(entry, 'manager') ?? []))];
}

const MAX_ANNOTATION_CHARS = 200;

const shortAnnotations = fieldAt('metadata.annotations', (all) =>
  Object.entries(recordAt(all)).filter(([, value]) => value.length <= MAX_ANNOTATION_CHARS),
);

/** Annotations that show the installer (Helm, OLM, Argo CD) or that pause a controller. */
const USEFUL_ANNOTATIONS =
  /^argocd\.argoproj\.io\/tracking-id$|^meta\.helm\.sh\/|coreos\.com\/|^olm\.|paus|reconcil|suspend|ignore|\/managed$/i;
const usefulAnnotations: Field<Record<string, string>> = (object) =>
  dictionary(shortAnnotations(object).filter(([key]) => USEFUL_ANNOTATIONS.test(key)));

const METADATA = {
  uid: text('metadata.uid'),
  resourceVersion: text('metadata.resourceVersion'),
  creationTimestamp: textIfAny('metadata.creationTimestamp'),
  deletionTimestamp: textIfAny('metadata.deletionTimestamp'),
  finalizers: texts('metadata.finalizers'),
  labels: record('metadata.labels'),
  /** Field managers that set each of `finalizers`. */
  writers: finalizerWriters,
};

export type NamespaceFacts = ReturnType<typeof namespaceFacts>;
export const namespaceFacts = shape({
  ...NAME,
  ...METADATA,
  phase: textIfAny('status.phase'),
  specFinalizers: texts('spec.finalizers'),
  /** UIDs of its owners, and annotations while it is deleted: they may name the object that stands for it. */
  owners: textOfEach('metadata.ownerReferences', 'uid'),
  annotations: (object) =>
    stringAt(object, 'metadata', 'deletionTimestamp') === undefined
      ? undefined
      : dictionary(shortAnnotations(object)),
  conditions: conditionsOf,
  /**
   * Time at which kube-controller-manager last wrote the status (managedFields). Conditions have no other time
   * of their last check.
   */
  statusWrittenAt: (object) =>
    statusWriters(object).findLast(({ manager }) => manager === 'kube-controller-manager')?.time,
});

/** A resource type in the version that the server prefers for it. */
export interface ResourceType {
  /** Empty for the core group. */
  group: string;
  version: string;
  /** Plural, as in paths. */
  resource: string;
  kind: string;
  namespaced: boolean;
  verbs: string[];
  /** Whether its objects have replicas, which `kubectl scale` changes. */
  scales?: true;
}

function coreType(kind: string, namespaced: boolean): ResourceType {
  const resource = `${kind.toLowerCase()}s`;
  return { group: '', version: 'v1', resource, kind, namespaced, verbs: [] };
}

export const NAMESPACE_TYPE = coreType('Namespace', false);
/** The last write of the namespace controller. Admission and RBAC may refuse it too. */
export const FINALIZE: ResourceType = { ...NAMESPACE_TYPE, resource: 'namespaces/finalize' };
/** The entry of the namespace controller in `spec.finalizers`, removed once the content is deleted. */
export const KUBERNETES_FINALIZER = 'kubernetes';
export const POD_TYPE = coreType('Pod', true);

/** The part of a resource type that identifies it. */
export type TypeRef = Pick<ResourceType, 'group' | 'version' | 'resource'>;

/** Returns the name that kubectl accepts on a command line: `widgets.example.com`, `configmaps`. */
export function typeName({ group, resource }: Pick<TypeRef, 'group' | 'resource'>): string {
  return group === '' ? resource : `${resource}.${group}`;
}

/** Returns `v1` or `apps/v1`. */
export function apiVersionOf({ group, version }: Pick<TypeRef, 'group' | 'version'>): string {
  return group === '' ? version : `${group}/${version}`;
}

/** Returns the API group of `apps/v1`; empty for the core group. */
export function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf('/');
  return slash < 0 ? '' : apiVersion.slice(0, slash);
}

const objectMetadata = shape({
  /** Empty for cluster-scoped objects. */
  ...PLACED,
  ...METADATA,
  /** Set by the API server for most types and raised by the deletion (apiserver, rest.BeforeDelete). */
  generation: number('metadata.generation'),
  annotations: usefulAnnotations,
  ownerReferences,
  /** Field managers of the status, the latest last. */
  statusWriters,
  managers: managersOf,
  /** Field managers that wrote anything since the deletion began. Absent in snapshots that were recorded earlier. */
  lateWriters: (object) => {
    const since = stringAt(object, 'metadata', 'deletionTimestamp');
    return since === undefined ? undefined : writes(object).filter(({ time = '' }) => time > since);
  },
});

/** An object of the same type as a held one, anywhere in the cluster. A controller that writes it still handles the type. */
export type Sibling = ReturnType<typeof siblingFacts>;
export const siblingFacts = shape({
  ...PLACED,
  finalizers: texts('metadata.finalizers'),
  /** The last write of each field manager, whatever it wrote. */
  writes,
});

export type ObjectFacts = ReturnType<typeof objectFacts>;

/**
 * Reads the facts of any object. `object` may be the full object or only its metadata; a list leaves out
 * apiVersion and kind.
 */
export function objectFacts(
  object: JsonObject,
  type: Pick<ResourceType, 'group' | 'version' | 'kind'>,
) {
  return { apiVersion: apiVersionOf(type), kind: type.kind, ...objectMetadata(object) };
}

/**
 * Builds a patch that removes every occurrence of these finalizers from the list as it was read. It is one patch
 * because each removal moves the entries after it. If the object was replaced or its list has changed, a `test`
 * fails and the server answers 422 without a change.
 */
export function removalPatch(
  { uid, finalizers }: Pick<ObjectFacts, 'uid' | 'finalizers'>,
  remove: readonly string[],
): JsonObject[] {
  const indexes = finalizers.flatMap((entry, index) => (remove.includes(entry) ? [index] : []));
  const path = (index: number): string => `/metadata/finalizers/${index}`;
  return [
    { op: 'test', path: '/metadata/uid', value: uid },
    ...indexes.map((index) => ({ op: 'test', path: path(index), value: finalizers[index] })),
    ...indexes.toReversed().map((index) => ({ op: 'remove', path: path(index) })),
  ];
}

/** Reads the facts of a pod template, or of a pod, that show which controller it runs. */
function templateFacts(template: Json | undefined, namespace: string, name: string) {
  const containers = arrayAt(template, 'spec', 'containers');
  const settingsIn = (container: Json): Setting[] => settingsOf(container, template, namespace);
  const selectors = containers
    .flatMap(settingsIn)
    .flatMap((setting) => selectorIn(setting, namespace))
    .toSorted();
  const controllers = controllersAmong(containers, template, name).map(settingsIn);
  const watches = controllers.flatMap((own) => {
    const found = own.flatMap((setting) => watchesBy(setting, namespace));
    return found.length === 0 ? '*' : found;
  });
  const ignores = controllers
    .flat()
    .flatMap((setting) => (IGNORED.test(setting.name) ? splitNames(setting.value) : []));
  return {
    /** ServiceAccount of the pods, in their namespace. */
    account: stringAt(template, 'spec', 'serviceAccountName') ?? 'default',
    podLabels: recordAt(template, 'metadata', 'labels'),
    /** Names that its program may use: containers, commands, images. */
    programs: [...new Set(containers.flatMap(programsOf))].filter((name) => name !== ''),
    /** The only namespaces that it watches, by its arguments and environment; undefined: all. */
    watches: watches.length === 0 || watches.includes('*') ? undefined : [...new Set(watches)],
    /** Namespaces that its arguments or environment exclude. */
    ...(ignores.length > 0 && { ignores }),
    /** Arguments that look as if they select objects: a class, a label selector, a shard. */
    ...(selectors.length > 0 && { selectors }),
  };
}

/**
 * Returns the containers that are the controller: the only one, the default one of kubectl, or those whose program
 * the workload is named after. Returns none if no container is known to be the controller: the arguments of a sidecar
 * do not restrict the controller.
 */
function controllersAmong(containers: Json[], template: Json | undefined, name: string): Json[] {
  const key = 'kubectl.kubernetes.io/default-container';
  const main = recordAt(template, 'metadata', 'annotations')[key];
  return containers.filter(
    (container) =>
      containers.length === 1 ||
      stringAt(container, 'name') === main ||
      programsOf(container).some((program) => `${name}-`.startsWith(`${program}-`)),
  );
}

function programsOf(container: Json): string[] {
  const [command = '', ...more] = stringsAt(container, 'command');
  const image = baseName(stringAt(container, 'image') ?? '').replace(/[:@].*$/, '');
  const [word = ''] = [...more, ...stringsAt(container, 'args')];
  const program = baseName(command) || image;
  // Programs with subcommands often write as `program-command`.
  const own = /^[a-z][a-z-]*$/.test(word) ? [`${program}-${word}`] : [];
  return [stringAt(container, 'name') ?? '', baseName(command), image, ...own];
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** An argument with its value, which may be the next word, or a variable of the environment. */
interface Setting {
  name: string;
  value: string;
  /** The argument as it is written; undefined for a variable. */
  word?: string;
}

/** Returns the arguments and variables of a container. */
function settingsOf(container: Json, template: Json | undefined, own: string): Setting[] {
  const variables = arrayAt(container, 'env').map((entry): [string, string] => [
    stringAt(entry, 'name') ?? '',
    variableOf(entry, template, own),
  ]);
  const known = new Map(variables);
  const inserted = (value: string): string =>
    value.replace(/\$\(([^)]*)\)/g, (_, name) => known.get(name) ?? '*');
  const words = [...stringsAt(container, 'command'), ...stringsAt(container, 'args')];
  return [
    ...variables.map(([name, value]) => ({ name, value: inserted(value) })),
    ...words.map((word, index) => {
      const [, name = word, given] = /^(.*?)=(.*)$/.exec(word) ?? [];
      const next = words[index + 1] ?? '';
      return { word, name, value: inserted(given ?? (next.startsWith('-') ? '' : next)) };
    }),
  ];
}

function splitNames(list: string): string[] {
  return list
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

/**
 * `GRAFANA_OPERATOR_WATCH_NAMESPACE`, but not `SECRETS_WATCH_NAMESPACE`, which is about something else than the
 * reconciled objects.
 */
const WATCH_VARIABLE =
  /^(?:\w*(?:OPERATOR|CONTROLLER|MANAGER)_)?(?:WATCH(?:ED)?_NAMESPACES?|NAMESPACES?_TO_WATCH|WATCH_NS)$/;
const WATCH_ARGUMENT = /^--?(?:(?:watch(?:ed)?|managed)-(?:single-)?)?namespaces?$/;
/** Arguments that restrict a controller to its own namespace, as in Argo and Flux. */
const OWN_NAMESPACE_ONLY = /^--?(?:namespaced(?:=true)?|(?:watch-)?all-namespaces=false)$/;

/**
 * Returns the watched namespaces, by the conventions of operator-sdk, controller-runtime projects and
 * client-go's own flags.
 */
function watchesBy({ name, value, word }: Setting, own: string): string[] {
  if (word !== undefined && OWN_NAMESPACE_ONLY.test(word)) return [own];
  if (!(word === undefined ? WATCH_VARIABLE : WATCH_ARGUMENT).test(name)) return [];
  // `--namespace` often names only the namespace in which the program runs.
  if (/^--?namespace$/.test(name) && value === own) return [];
  // A pattern counts as all namespaces, because patterns have many notations (`preview-*`, `preview-.*`,
  // `!kube-system`).
  return splitNames(value || '*').map((one) => (/^[-a-z0-9]+$/.test(one) ? one : '*'));
}

const SELECTOR_ARGUMENT =
  /^--?(?:[\w.-]+-)?(?:class(?:es|-name)?|selectors?|shards?(?:-[\w-]+)?|watch-[\w-]+|instance-?id|namespaces?)$/;

/** `ARGOCD_APPLICATION_NAMESPACES`: the plural lists namespaces, of the objects or of something else. */
const NAMESPACES_VARIABLE = /^\w+_NAMESPACES$/;

/** Returns an argument like `--widget-class=blue`, or a variable that lists namespaces, or none. */
function selectorIn({ name, value, word }: Setting, own: string): string[] {
  // Many programs get the namespace that they run in as an argument.
  const isHome =
    (/namespace$/.test(name) && value === own) || (/namespaces?$/i.test(name) && value === '*');
  const isMeant = (word === undefined ? NAMESPACES_VARIABLE : SELECTOR_ARGUMENT).test(name);
  if (!isMeant || /leader/.test(name) || isHome) return [];
  return [value === '' ? name : `${name}=${value}`];
}

/** `--deny-namespaces=a,b`, `--ignored-namespaces`, `--namespace-denylist`, `EXCLUDED_NAMESPACES`. */
const IGNORED =
  /^(?:--?)?(?:\w+[-_])?(?:(?:den(?:y|ied)|exclude[ds]?|ignored?|skip(?:ped)?)[-_]namespaces?|namespaces?[-_](?:deny-?list|black-?list|exclude[ds]?))$/i;

/** Returns the value of a variable, or `*` if it comes from a source that the object does not show. */
function variableOf(entry: Json, template: Json | undefined, own: string): string {
  const field = stringAt(entry, 'valueFrom', 'fieldRef', 'fieldPath');
  if (field === 'metadata.namespace') return own;
  const annotation = /^metadata\.annotations\['([^']+)'\]$/.exec(field ?? '')?.[1];
  if (annotation !== undefined) {
    return recordAt(template, 'metadata', 'annotations')[annotation] ?? '';
  }
  return isObject(valueAt(entry, 'valueFrom')) ? '*' : (stringAt(entry, 'value') ?? '');
}

/** Returns the containers of a pod whose logs can be read. Absent in snapshots that were recorded earlier. */
function containerRuns(
  pod: Json | undefined,
): { name: string; crashedAt?: string | undefined }[] | undefined {
  const statuses = arrayAt(pod, 'status', 'containerStatuses');
  return arrayAt(pod, 'spec', 'containers').map((container) => {
    const name = stringAt(container, 'name') ?? '';
    const status = statuses.find((one) => stringAt(one, 'name') === name);
    const ended = valueAt(status, 'lastState', 'terminated');
    const isCrash = isObject(ended) && numberAt(ended, 'exitCode') !== 0;
    return { name, ...(isCrash && { crashedAt: stringAt(ended, 'finishedAt') }) };
  });
}

const podState = shape({
  phase: textIfAny('status.phase'),
  ready: (pod) =>
    conditionsOf(pod).some(({ type, status }) => type === 'Ready' && status === 'True'),
  nodeName: textIfAny('spec.nodeName'),
  deletionGracePeriodSeconds: number('metadata.deletionGracePeriodSeconds'),
  containers: containerRuns,
  /** PersistentVolumeClaims that its volumes name. */
  claims: (pod) => arrayAt(pod, 'spec', 'volumes').flatMap((volume) => claimOf(pod, volume) ?? []),
  /** The reasons in its conditions and containers why it does not run. */
  troubles: (pod) => [
    ...falseConditionTexts(pod, 'PodScheduled'),
    ...['initContainerStatuses', 'containerStatuses'].flatMap((list) =>
      arrayAt(pod, 'status', list).flatMap((container) => [
        ...containerTexts('waiting', valueAt(container, 'state', 'waiting')),
        ...containerTexts('ended before', valueAt(container, 'lastState', 'terminated')),
      ]),
    ),
    ...(stringAt(pod, 'status', 'phase') === 'Failed'
      ? containerTexts('ended', valueAt(pod, 'status'))
      : []),
    ...falseConditionTexts(pod, 'Ready').map((words) => `not ready: ${words}`),
  ],
});

export type PodFacts = ReturnType<typeof podFacts>;
export function podFacts(pod: JsonObject) {
  const facts = objectFacts(pod, POD_TYPE);
  return { ...facts, ...templateFacts(pod, facts.namespace, facts.name), ...podState(pod) };
}

function falseConditionTexts(pod: Json | undefined, condition: string): string[] {
  return conditionsOf(pod)
    .filter(({ type, status }) => type === condition && status === 'False')
    .map(({ reason, message }) => [reason, message].filter(Boolean).join(': '))
    .filter(Boolean);
}

/** Describes why a container waits, or how a container or pod ended the last time. */
function containerTexts(state: string, detail: Json | undefined): string[] {
  if (!isObject(detail)) return [];
  const exitCode = numberAt(detail, 'exitCode');
  const words = [stringAt(detail, 'reason'), stringAt(detail, 'message')?.trim()].filter(Boolean);
  const isNormal = /^(?:ContainerCreating|PodInitializing)$/.test(words.join(': '));
  if (exitCode === 0 || words.length === 0 || isNormal) return [];
  const code = exitCode === undefined ? '' : `, exit code ${exitCode}`;
  return [`${state}: ${shorten(words.join(': '), 300)}${code}`];
}

/**
 * Returns the claim of a volume. A generic ephemeral volume has one too (component-helpers,
 * storage/ephemeral.VolumeClaimName).
 */
function claimOf(pod: Json | undefined, volume: Json): string | undefined {
  if (!isObject(valueAt(volume, 'ephemeral'))) {
    return stringAt(volume, 'persistentVolumeClaim', 'claimName');
  }
  return `${stringAt(pod, 'metadata', 'name') ?? ''}-${stringAt(volume, 'name')}`;
}

const workloadState = shape({
  ...PLACED,
  uid: text('metadata.uid'),
  deletionTimestamp: textIfAny('metadata.deletionTimestamp'),
  labels: record('metadata.labels'),
  annotations: usefulAnnotations,
  conditions: conditionsOf,
  /** The object that controls this workload, as a Deployment controls its ReplicaSet. */
  owner: controllerOf,
});

/** A workload. `wanted` and `ready` count replicas, nodes or runs; a suspended CronJob or Job wants none. */
export type WorkloadFacts = ReturnType<ReturnType<typeof workloadFacts>>;

export function workloadFacts(apiVersion: string, kind: string) {
  return (object: JsonObject) => {
    const template =
      kind === 'CronJob'
        ? valueAt(object, 'spec', 'jobTemplate', 'spec', 'template')
        : valueAt(object, 'spec', 'template');
    const state = workloadState(object);
    const [wanted, ready] = replicasOf(object, kind, state.conditions);
    const scaledBy = lastWrite(object, 'f:spec', 'f:replicas');
    return {
      ...templateFacts(template, state.namespace, state.name),
      ...state,
      apiVersion,
      kind,
      wanted,
      ready,
      nodeSelector: recordAt(template, 'spec', 'nodeSelector'),
      /** The field manager that last set `spec.replicas`. */
      scaledBy: scaledBy === undefined ? undefined : writer(scaledBy),
    };
  };
}

/** Returns how many replicas, nodes or runs are wanted and ready. */
function replicasOf(
  { spec, status }: JsonObject,
  kind: string,
  conditions: readonly Condition[],
): [wanted: number, ready: number] {
  const count = (value: Json | undefined, key: string, otherwise = 0): number =>
    numberAt(value, key) ?? otherwise;
  if (valueAt(spec, 'suspend') === true) return [0, kind === 'Job' ? count(status, 'ready') : 0];
  switch (kind) {
    case 'DaemonSet':
      return [count(status, 'desiredNumberScheduled'), count(status, 'numberReady')];
    case 'Job': {
      const isOver = conditions.some(
        ({ type, status: is }) => (type === 'Complete' || type === 'Failed') && is === 'True',
      );
      return [isOver ? 0 : count(spec, 'parallelism', 1), count(status, 'ready')];
    }
    case 'CronJob':
      // A CronJob between two runs counts as ready.
      return [1, 1];
    default:
      return [count(spec, 'replicas', 1), count(status, 'readyReplicas')];
  }
}

/** Labels and annotations that name the installation. */
const INSTALLED = { labels: record('metadata.labels'), annotations: usefulAnnotations };

const DEFINITION = {
  /** A name such as `widgets.example.com`. */
  ...NAME,
  deletionTimestamp: textIfAny('metadata.deletionTimestamp'),
  ...INSTALLED,
  /** The object that created the type: a Crossplane XRD, for example. */
  madeBy: controllerOf,
};
export const definitionFacts = shape(DEFINITION);

const ifAny = <T>(path: string, read: Field<T>): Field<T | undefined> =>
  fieldAt(path, (value) => (isObject(value) ? read(value) : undefined));

export type ServiceRef = ReturnType<typeof serviceRef>;
const serviceRef = shape({ namespace: text('namespace'), name: text('name') });

/** A CRD without its schemas. */
export type DefinitionDetail = ReturnType<typeof definitionDetail>;
export const definitionDetail = shape({
  ...DEFINITION,
  group: text('spec.group'),
  kind: text('spec.names.kind'),
  versions: each('spec.versions', shape({ name: text('name'), storage: isTrue('storage') })),
  /** Versions in which objects may still be stored. */
  storedVersions: texts('status.storedVersions'),
  conditions: conditionsOf,
  conversionService: ifAny('spec.conversion.webhook.clientConfig.service', serviceRef),
});

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
  /**
   * `spec.deletionPolicy`, as in a VolumeSnapshotContent: whether the object is deleted together with the object that
   * it is bound to.
   */
  deletionPolicy?: string | undefined;
  /** Objects that its spec or status refers to. */
  references: Reference[];
  /** UIDs in its status, of this or of other objects. */
  uids?: string[];
  /** Nodes that its spec or status names: `spec.nodeID`, `status.ownerID` (CSI drivers, Longhorn). */
  nodes?: string[];
  /** Plain names in its spec. If an object of such a name is missing, the spec probably meant it. */
  mentions: string[];
  /** Objects that fields like `spec.cluster` or `spec.clusterName` may name, as `cluster/team-1`. */
  siblings?: string[];
  /** Fields of its spec that contain a template for a Pod or Job in which its controller works. */
  templates?: string[];
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
const MAX_MENTIONS = 50;
const MAX_NODES = 5;
const MAX_SIBLINGS = 20;
const UID_VALUE = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** The name of an object (RFC 1123 subdomain). */
const NAME_VALUE = /^[a-z0-9][-a-z0-9.]{0,252}$/;
const MAX_REFERENCES = 20;
const MAX_DEPTH = 6;
const ENDED = /^(?:completion|completed|finish|finished|end|ended)(?:time|timestamp|at|date)$/i;
const REFERENCE =
  /(?:Ref|Refs|Reference|References)(?:\[\])?$|(?:[sS]ecret|[cC]onfigMap)(?:\[\])?$/;
const INPUT_KIND = /^(?:Secret|ConfigMap|ServiceAccount)$/;
const TASK_TEMPLATE = /^(?:runner|job|task)\w*Template$/;
const NODE = /^(?:current)?(?:node(?:name|id)|ownerid)$/i;
/** At least three words, and no sign that only programs write. */
const SENTENCE =
  /^(?=.{10,300}$)\p{L}[\p{L}\p{N}.,:;'"()/!?-]*(?: [\p{L}\p{N}.,:;'"()/!?-]+){2,}$/u;
const STATUS_TEXT = /^(?:last)?(?:error|failure)?(?:message|reason|error)$/i;
/** `status.lastErrors[].description`, `status.failureMessage`, `status.error.detail`. */
const ERROR_FIELD = /\.\w*(?:error|failure|exception)\w*(?:\[\])?(?:\.\w+)?$/i;
const NO_ERROR = /^(?:none|null|nil|ok|success\w*|no (?:errors?|failures?|problems?)\b.*)$/i;
const WORDS = /^\p{L}.*\s.*\s/u;
/** Names of states in which an object is well (Kubernetes phases, and the usual ones of operators). */
const HEALTHY = /^(?:running|ready|active|available|healthy|bound|synced|succeeded|completed)$/i;

export function objectDetail(object: JsonObject): ObjectDetail {
  const detail: ObjectDetail = {
    conditions: conditionsOf(object),
    observedGeneration: numberAt(object, 'status', 'observedGeneration'),
    texts: [],
    suspended: pauseField(object),
    deletionPolicy: stringAt(object, 'spec', 'deletionPolicy'),
    references: [],
    mentions: [],
  };
  // A snapshot that is ready was taken at its creation.
  const taken = stringAt(object, 'status', 'creationTime');
  if (valueAt(object, 'status', 'readyToUse') === true && taken) detail.endedAt = taken;
  const own = stringAt(object, 'metadata', 'namespace');
  visitFields(valueAt(object, 'spec'), 'spec', 0, (field, key, value) => {
    addReference(detail, field, key, value);
    if (isObject(value) && TASK_TEMPLATE.test(key)) detail.templates = [field];
    if (typeof value !== 'string') return;
    addAddress(detail, own, field, value);
    if (NODE.test(key)) addText(detail, 'nodes', value, MAX_NODES);
    const named = key === '' ? field.slice(field.lastIndexOf('.')) : key;
    if (/name|secret|config|ref|class/i.test(named)) addMention(detail, value);
    const [, kind] = /^spec\.(\w+?)(?:Name)?$/.exec(field) ?? [];
    if (kind !== undefined && NAME_VALUE.test(value)) {
      addText(detail, 'siblings', `${kind.toLowerCase()}/${value}`, MAX_SIBLINGS);
    }
  });
  visitFields(valueAt(object, 'status'), 'status', 0, (field, key, value, beside) => {
    addReference(detail, field, key, value);
    if (typeof value !== 'string') return;
    if (NODE.test(key)) addText(detail, 'nodes', value, MAX_NODES);
    if (field === `status.${key}` && ENDED.test(key)) detail.endedAt = value;
    if (/conditions/.test(field)) return;
    if (UID_VALUE.test(value)) addText(detail, 'uids', value, MAX_REFERENCES);
    if (/namespace/i.test(key)) addMention(detail, value);
    if (ERROR_FIELD.test(field) && NO_ERROR.test(value)) return;
    if (isOutdated(object, field, key, beside)) return;
    const failed = firstState(beside, FAILED);
    const isError = failed !== undefined || ERROR_FIELD.test(field);
    const isText = STATUS_TEXT.test(key) || (isError && WORDS.test(value));
    if (!isText && SENTENCE.test(value)) addText(detail, 'sentences', value);
    if (!isText || value === '') return;
    const text = failed === undefined ? value : `${failed}: ${value}`;
    addText(detail, 'texts', text);
    if (isError) addText(detail, 'errors', text);
    else if (firstState(beside, HEALTHY) !== undefined) addText(detail, 'besideHealthy', text);
  });
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

/**
 * Reports whether a text is from before the deletion by a time of its own: in the same part of the status, such as
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
  return times.length > 0 && Math.max(...times) < Date.parse(deletion);
}

type Notes =
  | 'uids'
  | 'texts'
  | 'errors'
  | 'besideHealthy'
  | 'sentences'
  | 'nodes'
  | 'mentions'
  | 'siblings';

/** Adds a text to a list, once, while there is room. */
function addText(detail: ObjectDetail, list: Notes, text: string, most = MAX_TEXTS): void {
  const known = detail[list] ?? [];
  if (text !== '' && known.length < most && !known.includes(text)) detail[list] = [...known, text];
}

/** Matches `DeleteFailed` and `Error`, not `NoError`. */
const FAILED = /(?<!^no[ _-]?)(?:error|failed|failure)$/i;

/** Returns the first state of this kind, such as `phase: DeleteFailed`; the texts beside it explain it. */
function firstState(status: Json, kind: RegExp): string | undefined {
  const states = Object.entries(recordAt(status));
  return states.find(
    ([key, value]) => /(?:phase|state|status)$/i.test(key) && kind.test(value),
  )?.[1];
}

function addMention(detail: ObjectDetail, value: string): void {
  if (NAME_VALUE.test(value)) addText(detail, 'mentions', value, MAX_MENTIONS);
}

/**
 * Adds a reference to another object, by these conventions: an ObjectReference under a key that ends in "Ref"
 * (Kubernetes API conventions, "Object references"), `bound…Name` of the snapshot API, `volumeName` of a claim.
 * For `secretRef`, `secretKeyRef`, `secretName` and similar keys the name of the key contains the kind.
 */
function addReference({ references }: ObjectDetail, field: string, key: string, value: Json): void {
  if (references.length >= MAX_REFERENCES) return;
  if (typeof value === 'string' && value !== '') {
    const kind =
      /^bound([A-Z]\w*)Name$/.exec(key)?.[1] ??
      (field === 'spec.volumeName' ? 'PersistentVolume' : undefined) ??
      (/(?:Name|Ref|Secret|ConfigMap)$/.test(key) ? kindNamedBy(key) : undefined);
    if (kind === undefined) return;
    references.push({ group: undefined, kind, namespace: undefined, name: value, field });
    return;
  }
  const made = valueAt(value, 'metadata');
  const apiVersion = stringAt(value, 'apiVersion');
  const isMade = apiVersion !== undefined && stringAt(made, 'name') !== undefined;
  const named = isMade ? made : value;
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
  /(?:host|hostname|address|addresses|addr|url|uri|endpoint|server|servers)s?(?:\[\])?$/i;
/** `nats`, `nats.team-1`, `nats.team-1.svc.cluster.local`, as a URL or with a port. */
const SERVICE_HOST =
  /^(?<scheme>[a-z][a-z0-9+.-]*:\/\/(?:[^\s/@]*@)?)?(?<name>[a-z](?:[a-z0-9-]*[a-z0-9])?)(?:\.(?<namespace>[a-z0-9-]+)(?<svc>\.svc(?:\.[a-z0-9.-]+)?)?)?(?::\d+)?(?:[/?].*)?$/;

/** Adds a reference to the Service of the object's namespace that the host of an address names. */
function addAddress(
  { references }: ObjectDetail,
  own: string | undefined,
  field: string,
  value: string,
): void {
  if (own === undefined || references.length >= MAX_REFERENCES) return;
  const { scheme, name = '', namespace = own, svc } = SERVICE_HOST.exec(value)?.groups ?? {};
  const isHost = (scheme ?? svc) !== undefined || ADDRESS_FIELD.test(field);
  if (!isHost || name === '' || name === 'localhost' || namespace !== own) return;
  references.push({ group: '', kind: 'Service', namespace, name, field, isAddress: true });
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

/**
 * Verbs that identify a controller: it watches its type and changes it, by its own account or by impersonation.
 * The namespace controller deletes objects of all types. Other verbs show nothing.
 */
const VERBS = /^(?:watch|list|update|patch|deletecollection|impersonate|bind|escalate|\*)$/;

/** Resources of a rule that include tokens of ServiceAccounts; `*` includes all subresources. */
export const TOKENS = /^(?:serviceaccounts\/(?:token|\*)|\*(?:\/token)?)$/;

/** A rule that permits watching or changing objects. */
export type RuleFacts = ReturnType<typeof ruleFacts>;
const ruleFacts = shape({
  apiGroups: texts('apiGroups'),
  resources: texts('resources'),
  resourceNames: texts('resourceNames'),
  // A token of a ServiceAccount lets its holder act as that account.
  verbs: (rule) => {
    const mayCreateTokens = stringsAt(rule, 'resources').some((name) => TOKENS.test(name));
    return stringsAt(rule, 'verbs').filter(
      (verb) => VERBS.test(verb) || (mayCreateTokens && verb === 'create'),
    );
  },
});

/** Name and namespace of an object of RBAC; without a namespace for a ClusterRole or ClusterRoleBinding. */
const RBAC_OBJECT = { ...NAME, namespace: textIfAny('metadata.namespace') };

export type RoleFacts = ReturnType<typeof roleFacts>;
export const roleFacts = shape({
  ...RBAC_OBJECT,
  ...INSTALLED,
  rules: (role) =>
    arrayAt(role, 'rules')
      .map((rule) => ruleFacts(rule))
      .filter(({ verbs, resources }) => verbs.length > 0 && resources.length > 0),
});

export type BindingFacts = ReturnType<typeof bindingFacts>;
export const bindingFacts = shape({
  ...RBAC_OBJECT,
  role: fieldAt('roleRef', shape({ kind: text('kind'), name: text('name') })),
  subjects: each(
    'subjects',
    shape({ kind: text('kind'), namespace: textIfAny('namespace'), name: text('name') }),
  ),
});

export type LabelRequirement = ReturnType<typeof requirement>;
const requirement = shape({
  key: text('key'),
  /** One of In, NotIn, Exists, DoesNotExist. */
  operator: text('operator'),
  values: texts('values'),
});

/**
 * Reads a label selector. A missing or empty selector matches everything (apimachinery,
 * metav1.LabelSelectorAsSelector).
 */
const selector = (path: string): Field<LabelRequirement[]> =>
  fieldAt(path, (value) => [
    ...Object.entries(recordAt(value, 'matchLabels')).map(([key, label]) => ({
      key,
      operator: 'In',
      values: [label],
    })),
    ...each('matchExpressions', requirement)(value),
  ]);

/** Reports whether the selector matches objects of this namespace only. */
export function isOnlyFor(namespace: string, selector: readonly LabelRequirement[]): boolean {
  return selector.some(
    ({ key, operator, values }) =>
      key === 'kubernetes.io/metadata.name' &&
      operator === 'In' &&
      values.every((value) => value === namespace),
  );
}

/** A rule of a webhook or policy (admissionregistration/v1, RuleWithOperations). */
export type MatchRule = ReturnType<typeof matchRule>;
const matchRule = shape({
  operations: texts('operations'),
  apiGroups: texts('apiGroups'),
  apiVersions: texts('apiVersions'),
  resources: texts('resources'),
  /** In a policy: only objects of these names; empty for all. */
  resourceNames: texts('resourceNames'),
  /** One of `*`, `Cluster`, `Namespaced`. */
  scope: text('scope', '*'),
});

/**
 * Reports whether CEL text reads the user of a request. Then the answer to a request of the gate does not hold
 * for other users (KEP-3488).
 */
const readsUser = (path: string) => mentions(path, /\brequest\.userInfo\b|\bauthorizer\b/);
/** Reports whether an expression may give another answer once the object or its namespace is terminating. */
const readsDeletion = (path: string) =>
  mentions(path, /\bdeletionTimestamp\b|\bnamespaceObject\.status\b/);

function mentions(path: string, words: RegExp): Field<boolean> {
  return fieldAt(path, (expressions) => words.test(JSON.stringify(expressions ?? null)));
}

/**
 * Returns the Service whose DNS name is the host of an address, like https://NAME.NAMESPACE.svc:8443/path; undefined
 * for other hosts. For a webhook that names a Service, the API server calls such an address.
 */
export function serviceInUrl(url = ''): ServiceRef | undefined {
  const host = /^https:\/\/([^./:]{1,63})\.([^./:]{1,63})\.svc(?:\.cluster\.local)?\.?(?:[/:]|$)/i;
  const [, name, namespace] = host.exec(url) ?? [];
  return name && namespace ? { namespace, name } : undefined;
}

const webhook = shape({
  /** Name, from `webhooks[].name`. */
  name: text('name'),
  failurePolicy: text('failurePolicy', 'Fail'),
  matchPolicy: text('matchPolicy', 'Equivalent'),
  service: ifAny('clientConfig.service', serviceRef),
  /** The Service whose DNS name is the host of `url`. Whether the API server resolves that name is not known. */
  serviceInUrl: (object) => serviceInUrl(stringAt(object, 'clientConfig', 'url')),
  rules: each('rules', matchRule),
  namespaceSelector: selector('namespaceSelector'),
  objectSelector: selector('objectSelector'),
  /** CEL conditions, which only the API server can evaluate. */
  matchConditions: textOfEach('matchConditions', 'expression'),
  dependsOnUser: readsUser('matchConditions'),
  dependsOnDeletion: readsDeletion('matchConditions'),
});

/** Name and UID. An object that was created again has another UID. */
export type Identity = ReturnType<typeof identity>;
export const identity = shape({ ...NAME, uid: text('metadata.uid') });

/**
 * Reads a ConfigMap that belongs to a pod: its creator leads as long as the pod exists (operator-lib,
 * leader.Become).
 */
export function lockFacts(object: Json | undefined) {
  const { name } = identity(object);
  const namespace = stringAt(object, 'metadata', 'namespace') ?? '';
  const pods = ownerReferences(object).flatMap(({ kind, uid }) => (kind === 'Pod' ? [uid] : []));
  return pods.length === 0 ? [] : [{ name, namespace, pods }];
}

/** A webhook; `index` is its position in the configuration. */
export type WebhookFacts = ReturnType<ReturnType<typeof webhookFacts>>[number];
export function webhookFacts(kind: string) {
  return (object: JsonObject) => {
    const configuration = { kind, ...identity(object) };
    const entries = arrayAt(object, 'webhooks');
    return entries.map((entry, index) => ({ configuration, index, ...webhook(entry) }));
  };
}

const policy = shape({
  ...NAME,
  failurePolicy: text('spec.failurePolicy', 'Fail'),
  rules: each('spec.matchConstraints.resourceRules', matchRule),
  namespaceSelector: selector('spec.matchConstraints.namespaceSelector'),
  objectSelector: selector('spec.matchConstraints.objectSelector'),
  dependsOnUser: readsUser('spec'),
  dependsOnDeletion: readsDeletion('spec'),
  matchConditions: textOfEach('spec.matchConditions', 'expression') as Field<string[] | undefined>,
  /** Validations. Absent in snapshots that were recorded earlier. */
  validations: each(
    'spec.validations',
    shape({ expression: text('expression'), message: text('message') }),
  ) as Field<{ expression: string; message: string }[] | undefined>,
  paramKind: ifAny('spec.paramKind', shape({ apiVersion: text('apiVersion'), kind: text('kind') })),
});

/** A ValidatingAdmissionPolicy or a MutatingAdmissionPolicy. */
export type PolicyFacts = ReturnType<ReturnType<typeof policyFacts>>;
export function policyFacts(kind: string) {
  return (object: JsonObject) => ({ kind, ...policy(object) });
}

export type PolicyBindingFacts = ReturnType<typeof policyBindingFacts>;
export const policyBindingFacts = shape({
  ...NAME,
  policy: text('spec.policyName'),
  /** `Deny`, `Warn`, `Audit`; empty for mutating policies. */
  actions: texts('spec.validationActions'),
  namespaceSelector: selector('spec.matchResources.namespaceSelector'),
  objectSelector: selector('spec.matchResources.objectSelector') as Field<
    LabelRequirement[] | undefined
  >,
  paramRef: ifAny(
    'spec.paramRef',
    shape({
      name: textIfAny('name'),
      namespace: textIfAny('namespace'),
      parameterNotFoundAction: textIfAny('parameterNotFoundAction'),
    }),
  ),
});

export type ServiceFacts = ReturnType<typeof serviceFacts>;
export const serviceFacts = shape({ ...PLACED, selector: record('spec.selector') });

/** An Event of core/v1, which also contains Events that were written through events.k8s.io/v1. */
export type EventFacts = ReturnType<typeof eventFacts>;
export const eventFacts = shape({
  type: text('type'),
  reason: text('reason'),
  message: text('message'),
  /** The object that the Event is about. */
  regarding: fieldAt(
    'involvedObject',
    shape({
      kind: text('kind'),
      namespace: text('namespace'),
      name: text('name'),
      uid: text('uid'),
    }),
  ),
  /** The component that reported the Event, and its pod or process. */
  component: (event) =>
    stringAt(event, 'reportingComponent') || stringAt(event, 'source', 'component') || '',
  instance: (event) =>
    stringAt(event, 'reportingInstance') || stringAt(event, 'source', 'host') || '',
  at: (event) =>
    stringAt(event, 'series', 'lastObservedTime') ??
    stringAt(event, 'lastTimestamp') ??
    stringAt(event, 'eventTime') ??
    stringAt(event, 'metadata', 'creationTimestamp'),
});

export type LeaseFacts = ReturnType<typeof leaseFacts>;
export const leaseFacts = shape({
  ...PLACED,
  holder: textIfAny('spec.holderIdentity'),
  /**
   * Time of the last renewal, by the server's clock (managedFields), which is the same for all nodes. The
   * holder's own time is used only if the server has none.
   */
  renewTime: (lease): string | undefined =>
    stringAt(lastWrite(lease, 'f:spec', 'f:renewTime'), 'time') ??
    stringAt(lease, 'spec', 'renewTime'),
  durationSeconds: number('spec.leaseDurationSeconds'),
  /** Field managers. Client libraries use the name of the program. */
  writers: managersOf,
});

/** The CRDs that an operator of OLM owns, and the Deployments that it runs. */
export const clusterServiceVersionFacts = shape({
  ...PLACED,
  owned: textOfEach('spec.customresourcedefinitions.owned', 'name'),
  deployments: textOfEach('spec.install.spec.deployments', 'name'),
});

export const attachmentFacts = shape({
  ...NAME,
  attacher: text('spec.attacher'),
  volume: text('spec.source.persistentVolumeName'),
  node: text('spec.nodeName'),
  attached: isTrue('status.attached'),
  error: (object) =>
    stringAt(object, 'status', 'detachError', 'message') ??
    stringAt(object, 'status', 'attachError', 'message'),
});

export type NodeFacts = ReturnType<typeof nodeFacts>;
export function nodeFacts(object: JsonObject) {
  const ready = conditionsOf(object).find((condition) => condition.type === 'Ready');
  return {
    name: stringAt(object, 'metadata', 'name') ?? '',
    /** Status of the Ready condition: "True", "False" or "Unknown"; undefined if there is none. */
    ready: ready?.status,
    readyReason: ready && `${ready.reason}: ${ready.message}`,
    readySince: ready?.lastTransitionTime,
    taints: textOfEach('spec.taints', 'key')(object),
  };
}

export type ApiServiceFacts = ReturnType<typeof apiServiceFacts>;
export const apiServiceFacts = shape({
  ...NAME,
  group: text('spec.group'),
  version: text('spec.version'),
  /** Backend Service. Absent for built-in and CRD groups, which the API server serves itself. */
  service: ifAny('spec.service', serviceRef),
  /** The `Available` condition; undefined if it was never evaluated. */
  available: (object) =>
    conditionsOf(object).flatMap(({ type, lastTransitionTime: since, ...state }) =>
      type === 'Available' ? { ...state, ...(since === undefined ? {} : { since }) } : [],
    )[0],
});
