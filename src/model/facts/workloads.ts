import {
  arrayAt,
  isObject,
  type Json,
  type JsonObject,
  numberAt,
  recordAt,
  stringAt,
  stringsAt,
  valueAt,
} from '../../base/json.ts';
import { shortQuote } from '../../base/text.ts';
import {
  type Condition,
  conditionsOf,
  controllerOf,
  lastWrite,
  objectFacts,
  POD_TYPE,
  usefulAnnotations,
  writer,
} from './metadata.ts';
import { number, PLACED, record, shape, text, textIfAny } from './shape.ts';

/** Reads the facts of a pod template, or of a pod, that show which controller it runs. */
function templateFacts(template: Json | undefined, namespace: string, name: string) {
  const containers = arrayAt(template, 'spec', 'containers');
  const settingsIn = (container: Json): Setting[] => settingsOf(container, template, namespace);
  const selectors = containers
    .flatMap(settingsIn)
    .flatMap((setting) => selectorIn(setting, namespace))
    .toSorted();
  const main = controllersAmong(containers, template, name);
  const controllers = main.map(settingsIn);
  const watches = controllers.flatMap((own) => {
    const found = own.flatMap((setting) => watchesBy(setting, namespace));
    return found.length === 0 ? '*' : found;
  });
  const addresses = [
    ...new Set(containers.flatMap(settingsIn).flatMap(({ value }) => serviceAddresses(value))),
  ];
  const limits = [
    ...new Set([
      ...controllers.flat().flatMap((setting) => limitIn(setting, namespace)),
      ...main.flatMap(environmentSources),
      ...main.flatMap((container) => mountedSettings(container, template)),
    ]),
  ];
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
    /** Services that its arguments and environment address, as `NAME.NAMESPACE`. */
    ...(addresses.length > 0 && { addresses }),
    /** Arguments and variables that may keep it from acting on an object; see `limitIn`. */
    ...(limits.length > 0 && { limits }),
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
  /** The object that has the value, or a part of it. */
  source?: string | undefined;
}

/** Returns the arguments and variables of a container. */
function settingsOf(container: Json, template: Json | undefined, own: string): Setting[] {
  const entries = arrayAt(container, 'env').map((entry) => ({
    name: stringAt(entry, 'name') ?? '',
    value: variableOf(entry, template, own),
    source: sourceOf(entry),
  }));
  const known = new Map(entries.map(({ name, value }) => [name, value]));
  const sourceIn = (text: string): string | undefined =>
    entries.find(({ name, source }) => source !== undefined && text.includes(`$(${name})`))?.source;
  const inserted = (value: string): string =>
    value.replace(/\$\(([^)]*)\)/g, (_, name) => known.get(name) ?? '*');
  const words = [...stringsAt(container, 'command'), ...stringsAt(container, 'args')];
  return [
    ...entries.map(({ name, value, source }) => ({ name, value: inserted(value), source })),
    ...words.map((word, index) => {
      const [, name = word, given] = /^(.*?)=(.*)$/.exec(word) ?? [];
      const next = words[index + 1] ?? '';
      const value = given ?? (next.startsWith('-') ? '' : next);
      return { word, name, value: inserted(value), source: sourceIn(value) };
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
/** Variables that do so if they are true: `ROOK_CURRENT_NAMESPACE_ONLY`. */
const OWN_NAMESPACE_VARIABLE = /^(?:\w+_)?(?:CURRENT|OWN|SINGLE)_NAMESPACE(?:_ONLY)?$/;

/**
 * Returns the watched namespaces, by the conventions of operator-sdk, controller-runtime projects and
 * client-go's own flags.
 */
function watchesBy({ name, value, word }: Setting, own: string): string[] {
  if (word !== undefined && OWN_NAMESPACE_ONLY.test(word)) return [own];
  if (OWN_NAMESPACE_VARIABLE.test(name) && /^true$/i.test(value)) return [own];
  if (!(word === undefined ? WATCH_VARIABLE : WATCH_ARGUMENT).test(name)) return [];
  // `--namespace` often names only the namespace in which the program runs.
  if (/^--?namespace$/.test(name) && value === own) return [];
  // A pattern counts as all namespaces, because patterns have many notations (`preview-*`, `preview-.*`,
  // `!kube-system`).
  return splitNames(value || '*').map((one) => (/^[-a-z0-9]+$/.test(one) ? one : '*'));
}

const SELECTOR_ARGUMENT =
  /^--?(?:[\w.-]+-)?(?:class(?:es|-name)?|selectors?|shards?(?:-[\w-]+)?|watch-[\w-]+|instance-?id|namespaces?)$/;

/** `WATCH_NAMESPACE_SELECTOR`, `SHARD_ID`, `CONTROLLER_ID`. Other variables have values for what the controller makes. */
const SELECTOR_VARIABLE =
  /^(?:\w+_)?(?:(?<!NODE_|POD_)SELECTORS?|SHARD(?:_(?:ID|INDEX|NAME|NUMBER))?|CONTROLLER_ID)$/;

/** `ARGOCD_APPLICATION_NAMESPACES`: the plural lists namespaces, of the objects or of something else. */
const NAMESPACES_VARIABLE = /^\w+_NAMESPACES$/;
/** `STRIMZI_NAMESPACE`, that of the objects, but also `VAULT_NAMESPACE`, that of another program. */
const NAMESPACE_VARIABLE = /^(?!\w*LEADER)\w+_NAMESPACE$/;

/** Returns a setting that selects objects, like `--widget-class=blue`, or lists namespaces, or none. */
function selectorIn({ name, value, word }: Setting, own: string): string[] {
  // Many programs get the namespace that they run in as an argument.
  const isHome =
    (/namespace$/i.test(name) && value === own) || (/namespaces?$/i.test(name) && value === '*');
  const patterns =
    word === undefined ? [NAMESPACES_VARIABLE, SELECTOR_VARIABLE] : [SELECTOR_ARGUMENT];
  const isMeant = patterns.some((pattern) => pattern.test(name));
  if (!isMeant || /leader/i.test(name) || isHome) return [];
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

/** Returns the ConfigMap or Secret that has the value of a variable. */
function sourceOf(entry: Json): string | undefined {
  for (const [field, kind] of [
    ['configMapKeyRef', 'ConfigMap'],
    ['secretKeyRef', 'Secret'],
  ] as const) {
    const name = stringAt(entry, 'valueFrom', field, 'name');
    if (name !== undefined) return `${kind} ${name}`;
  }
  return undefined;
}

const DISABLED =
  /^--?(?:disabled?|skip(?:ped)?|excluded?)-(?:controllers?|kinds?|resources?|types?|crds?)$/;

/** Returns the Services whose DNS names, or those of whose pods, a text has, as `NAME.NAMESPACE`. */
export function serviceAddresses(text: string): string[] {
  const names = text.matchAll(/(?<![\w-])([a-z0-9-]+\.[a-z0-9-]+)\.svc(?![\w-])/g);
  return [...names].flatMap(([, name]) => name ?? []);
}

/**
 * Arguments and variables that say where further settings are: `--config=/etc/operator.yaml`, `--configmap=settings`,
 * `CONFIG_MAP_NAME`, `POSTGRES_OPERATOR_CONFIGURATION_OBJECT`.
 */
export const SETTINGS =
  /^(?:ConfigMap .*|--?config(?:-?(?:map|file))?(?:-name)?|(?:\w+_)?CONFIG(?:URATION)?_?(?:MAP|OBJECT)(?:_NAME)?)$/;

/** Returns the ConfigMaps whose keys are variables of a container, as `ConfigMap settings`. */
function environmentSources(container: Json): string[] {
  return arrayAt(container, 'envFrom').flatMap((source) => {
    const name = stringAt(source, 'configMapRef', 'name');
    return name === undefined ? [] : [`ConfigMap ${name}`];
  });
}

/** Returns the ConfigMaps with settings, by their names, that a container mounts: `ConfigMap flink-operator-config`. */
function mountedSettings(container: Json, template: Json | undefined): string[] {
  const mounts = arrayAt(container, 'volumeMounts').map((mount) => stringAt(mount, 'name'));
  return arrayAt(template, 'spec', 'volumes').flatMap((volume) => {
    const name = stringAt(volume, 'configMap', 'name') ?? '';
    const isSettings = /conf|settings/i.test(name) && mounts.includes(stringAt(volume, 'name'));
    return isSettings ? [`ConfigMap ${name}`] : [];
  });
}

/** Returns an argument or variable that may keep a controller from acting on an object. */
function limitIn({ name, value, word, source }: Setting, own: string): string[] {
  const lists = word === undefined ? [WATCH_VARIABLE, NAMESPACES_VARIABLE] : [WATCH_ARGUMENT];
  const isList = lists.some((pattern) => pattern.test(name));
  if (source !== undefined && isList) return [`${name} from ${source}`];
  const isPlace =
    word === undefined &&
    !isList &&
    NAMESPACE_VARIABLE.test(name) &&
    ![own, '', '*'].includes(value);
  const isDryRun = /^--?dry-?run$/.test(name) && !/^(?:false|none)$/.test(value);
  const isMeant = isPlace || isDryRun || DISABLED.test(name) || SETTINGS.test(name);
  return isMeant ? [value === '' ? name : `${name}=${value}`] : [];
}

/** Returns the containers of a pod whose logs can be read. Absent in snapshots that were recorded earlier. */
function containerRuns(
  pod: Json | undefined,
): { name: string; crashedAt?: string | undefined; restarts?: number }[] | undefined {
  const statuses = arrayAt(pod, 'status', 'containerStatuses');
  return arrayAt(pod, 'spec', 'containers').map((container) => {
    const name = stringAt(container, 'name') ?? '';
    const status = statuses.find((one) => stringAt(one, 'name') === name);
    const ended = valueAt(status, 'lastState', 'terminated');
    const isCrash = isObject(ended) && numberAt(ended, 'exitCode') !== 0;
    const restarts = numberAt(status, 'restartCount') ?? 0;
    return { name, ...(isCrash && { crashedAt: stringAt(ended, 'finishedAt'), restarts }) };
  });
}

const podState = shape({
  phase: textIfAny('status.phase'),
  ready: (pod) =>
    conditionsOf(pod).some(({ type, status }) => type === 'Ready' && status === 'True'),
  nodeName: textIfAny('spec.nodeName'),
  deletionGracePeriodSeconds: number('metadata.deletionGracePeriodSeconds'),
  graceSeconds: number('spec.terminationGracePeriodSeconds'),
  containers: containerRuns,
  /** PersistentVolumeClaims that its volumes name. */
  claims: (pod) => arrayAt(pod, 'spec', 'volumes').flatMap((volume) => claimOf(pod, volume) ?? []),
  /** The reasons in its conditions and containers why it does not run. */
  troubles: (pod) => [
    ...falseConditionTexts(pod, 'PodScheduled'),
    ...['initContainerStatuses', 'containerStatuses'].flatMap((list) =>
      arrayAt(pod, 'status', list).flatMap(containerTroubles),
    ),
    ...(stringAt(pod, 'status', 'phase') === 'Failed'
      ? containerTexts('ended', valueAt(pod, 'status'))
      : []),
    ...falseConditionTexts(pod, 'Ready').map((words) => NOT_READY + words),
  ],
});

/** The beginning of the text of the condition Ready, which says that containers are not ready, and not why. */
export const NOT_READY = 'not ready: ';

export type PodFacts = ReturnType<typeof podFacts>;
export function podFacts(pod: JsonObject) {
  const facts = objectFacts(pod, POD_TYPE);
  return { ...facts, ...templateFacts(pod, facts.namespace, facts.name), ...podState(pod) };
}

/** Reports whether the containers of a pod have ended; an evicted pod stays until somebody deletes it. */
export function hasPodEnded({ phase = '' }: Pick<PodFacts, 'phase'>): boolean {
  return phase === 'Succeeded' || phase === 'Failed';
}

/** The time after its grace period in which the kubelet should confirm the end of a pod. */
const CONFIRMATION_MS = 5_000;

/** Reports whether the kubelet still waits for the containers; with grace 0, it has confirmed that they ended. */
export function isInGracePeriod(pod: PodFacts, nowMs: number): boolean {
  const { deletionGracePeriodSeconds = 0, deletionTimestamp = '', nodeName } = pod;
  const isShuttingDown = nodeName !== undefined && deletionGracePeriodSeconds > 0;
  return isShuttingDown && Date.parse(deletionTimestamp) + CONFIRMATION_MS > nowMs;
}

/**
 * Reports whether the grace period is over. Grace 0: the kubelet has confirmed; without a finalizer the pod would be
 * gone.
 */
export function isOverdue(pod: PodFacts, nowMs: number): boolean {
  const isConfirmed = pod.deletionGracePeriodSeconds === 0;
  return pod.nodeName !== undefined && !isConfirmed && !isInGracePeriod(pod, nowMs);
}

function falseConditionTexts(pod: Json | undefined, condition: string): string[] {
  return conditionsOf(pod)
    .filter(({ type, status }) => type === condition && status === 'False')
    .map(({ reason, message }) => [reason, message].filter(Boolean).join(': '))
    .filter(Boolean);
}

/**
 * Returns why a container does not run, the cause first: CrashLoopBackOff only says that the kubelet waits to start it
 * again, and its last end says why.
 */
function containerTroubles(container: Json): string[] {
  const waiting = valueAt(container, 'state', 'waiting');
  const ended = valueAt(container, 'lastState', 'terminated');
  const isOutOfMemory = stringAt(ended, 'reason') === OUT_OF_MEMORY;
  const waits = containerTexts('waiting', waiting);
  const ends = containerTexts(`ended before${isOutOfMemory ? ' for lack of memory' : ''}`, ended);
  const isRestarted = stringAt(waiting, 'reason') === 'CrashLoopBackOff';
  return isRestarted ? [...ends, ...waits] : [...waits, ...ends];
}

/** The reason of a container that exceeded its memory limit (kubelet, and the runtimes). */
export const OUT_OF_MEMORY = 'OOMKilled';

/** Describes why a container waits, or how a container or pod ended the last time. */
function containerTexts(state: string, detail: Json | undefined): string[] {
  if (!isObject(detail)) return [];
  const exitCode = numberAt(detail, 'exitCode');
  const words = [stringAt(detail, 'reason'), stringAt(detail, 'message')?.trim()].filter(Boolean);
  const isNormal = /^(?:ContainerCreating|PodInitializing)$/.test(words.join(': '));
  if (exitCode === 0 || words.length === 0 || isNormal) return [];
  const code = exitCode === undefined ? '' : `, exit code ${exitCode}`;
  return [`${state}: ${shortQuote(words.join(': '))}${code}`];
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
  /** Absent in snapshots that were recorded earlier. */
  creationTimestamp: textIfAny('metadata.creationTimestamp'),
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
