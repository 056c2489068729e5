import {
  arrayAt,
  isObject,
  type Json,
  recordAt,
  stringAt,
  stringsAt,
  valueAt,
} from '../../base/json.ts';

/** Reads the facts of a pod template, or of a pod, that show which controller it runs, and how it was started. */
export function templateFacts(template: Json | undefined, namespace: string, name: string) {
  const containers = arrayAt(template, 'spec', 'containers').map((container) => ({
    container,
    programs: programsOf(container),
    settings: settingsOf(container, template, namespace),
  }));
  const mainName = recordAt(template, 'metadata', 'annotations')[DEFAULT_CONTAINER];
  // The arguments of a sidecar do not restrict the controller: the only container, the default one of kubectl, or those
  // whose program the workload is named after.
  const main = containers.filter(
    ({ container, programs }) =>
      containers.length === 1 ||
      stringAt(container, 'name') === mainName ||
      programs.some((program) => `${name}-`.startsWith(`${program}-`)),
  );
  const settings = containers.flatMap((one) => one.settings);
  const own = main.flatMap((one) => one.settings);
  const watches = main.flatMap((one) => {
    const found = one.settings.flatMap((setting) => watchesBy(setting, namespace));
    return found.length === 0 ? ['*'] : found;
  });
  const ignores = own.flatMap((one) => (isA(IGNORES, one) ? splitNames(one.value) : []));
  const selectors = settings
    .filter((one) => isA(SELECTS, one) && !/leader/i.test(one.name) && !isHome(one, namespace))
    .map(settingText)
    .toSorted();
  const addresses = new Set(settings.flatMap(({ value }) => serviceAddresses(value)));
  const limits = new Set([
    ...own.flatMap((setting) => limitIn(setting, namespace)),
    ...main.flatMap(({ container }) => settingsElsewhere(container, template)),
  ]);
  return {
    /** ServiceAccount of the pods, in their namespace. */
    account: stringAt(template, 'spec', 'serviceAccountName') ?? 'default',
    podLabels: recordAt(template, 'metadata', 'labels'),
    /** Names that its program may use: containers, commands, images. */
    programs: [...new Set(containers.flatMap((one) => one.programs))].filter(Boolean),
    /** The only namespaces that it watches, by its arguments and environment; undefined: all. */
    watches: watches.length === 0 || watches.includes('*') ? undefined : [...new Set(watches)],
    /** Namespaces that its arguments or environment exclude. */
    ...(ignores.length > 0 && { ignores }),
    /** Arguments that look as if they select objects: a class, a label selector, a shard. */
    ...(selectors.length > 0 && { selectors }),
    /** Services that its arguments and environment address, as `NAME.NAMESPACE`. */
    ...(addresses.size > 0 && { addresses: [...addresses] }),
    /** Arguments and variables that may keep it from acting on an object; see `limitIn`. */
    ...(limits.size > 0 && { limits: [...limits] }),
  };
}

const DEFAULT_CONTAINER = 'kubectl.kubernetes.io/default-container';

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
  isVariable: boolean;
  /** The object that has the value, or a part of it. */
  source?: string | undefined;
}

/** Returns the variables and arguments of a container. `*` is a value that the object does not show. */
function settingsOf(container: Json, template: Json | undefined, own: string): Setting[] {
  const values = new Map<string, string>();
  const inserted = (value: string): string =>
    value.replace(/\$\(([^)]*)\)/g, (_, name) => values.get(name) ?? '*');
  const variables = arrayAt(container, 'env').map((entry): Setting => {
    const name = stringAt(entry, 'name') ?? '';
    const value = variableOf(entry, template, own);
    values.set(name, value);
    return { name, value, isVariable: true, source: sourceOf(entry) };
  });
  const words = [...stringsAt(container, 'command'), ...stringsAt(container, 'args')];
  const options = words.map((word, index): Setting => {
    const [, name = word, given] = /^(.*?)=(.*)$/.exec(word) ?? [];
    const next = words[index + 1] ?? '';
    const value = given ?? (next.startsWith('-') ? '' : next);
    const from = variables.find((one) => one.source && value.includes(`$(${one.name})`));
    return { name, value, isVariable: false, source: from?.source };
  });
  return [...variables, ...options].map((one) => ({ ...one, value: inserted(one.value) }));
}

function variableOf(entry: Json, template: Json | undefined, own: string): string {
  const field = stringAt(entry, 'valueFrom', 'fieldRef', 'fieldPath');
  if (field === 'metadata.namespace') return own;
  // OLM writes the namespaces of an OperatorGroup into an annotation.
  const annotation = /^metadata\.annotations\['([^']+)'\]$/.exec(field ?? '')?.[1];
  if (annotation !== undefined) {
    return recordAt(template, 'metadata', 'annotations')[annotation] ?? '';
  }
  return isObject(valueAt(entry, 'valueFrom')) ? '*' : (stringAt(entry, 'value') ?? '');
}

function sourceOf(entry: Json): string | undefined {
  const config = stringAt(entry, 'valueFrom', 'configMapKeyRef', 'name');
  const secret = stringAt(entry, 'valueFrom', 'secretKeyRef', 'name');
  return (config && `ConfigMap ${config}`) ?? (secret && `Secret ${secret}`);
}

/** What a setting is about, by the conventions of operator-sdk, controller-runtime projects and client-go's own flags. */
interface Convention {
  argument?: RegExp;
  variable?: RegExp;
}

const isA = ({ argument, variable }: Convention, { name, isVariable }: Setting): boolean =>
  (isVariable ? variable : argument)?.test(name) === true;

/** Not `SECRETS_WATCH_NAMESPACE`, which is about something else than the reconciled objects. */
const WATCHES: Convention = {
  argument: /^--?(?:(?:watch(?:ed)?|managed)-(?:single-)?)?namespaces?$/,
  variable:
    /^(?:\w*(?:OPERATOR|CONTROLLER|MANAGER)_)?(?:WATCH(?:ED)?_NAMESPACES?|NAMESPACES?_TO_WATCH|WATCH_NS)$/,
};
/** It works only in its own namespace if it is true, as in Argo, Flux and Rook. */
const OWN_ONLY: Convention = {
  argument: /^--?namespaced$/,
  variable: /^(?:\w+_)?(?:CURRENT|OWN|SINGLE)_NAMESPACE(?:_ONLY)?$/,
};
/** The same if it is false. */
const NOT_ALL: Convention = { argument: /^--?(?:watch-)?all-namespaces$/ };
/** `--deny-namespaces=a,b`, `--namespace-denylist`, `EXCLUDED_NAMESPACES`. */
const IGNORED =
  /^(?:--?)?(?:\w+[-_])?(?:(?:den(?:y|ied)|exclude[ds]?|ignored?|skip(?:ped)?)[-_]namespaces?|namespaces?[-_](?:deny-?list|black-?list|exclude[ds]?))$/i;
const IGNORES: Convention = { argument: IGNORED, variable: IGNORED };
/**
 * `--widget-class=blue`, `WATCH_NAMESPACE_SELECTOR`, `SHARD_ID`, and plurals that list namespaces, of the objects or of
 * something else: `ARGOCD_APPLICATION_NAMESPACES`. Other variables have values for what the controller makes.
 */
const SELECTS: Convention = {
  argument:
    /^--?(?:[\w.-]+-)?(?:class(?:es|-name)?|selectors?|shards?(?:-[\w-]+)?|watch-[\w-]+|instance-?id|namespaces?)$/,
  variable:
    /^\w+_NAMESPACES$|^(?:\w+_)?(?:(?<!NODE_|POD_)SELECTORS?|SHARD(?:_(?:ID|INDEX|NAME|NUMBER))?|CONTROLLER_ID)$/,
};
/** `STRIMZI_NAMESPACE`, that of the objects, but also `VAULT_NAMESPACE`, that of another program. */
const PLACE: Convention = { variable: /^(?!\w*LEADER)\w+_NAMESPACE$/ };
const DRY_RUN: Convention = { argument: /^--?dry-?run$/ };
const DISABLES: Convention = {
  argument:
    /^--?(?:disabled?|skip(?:ped)?|excluded?)-(?:controllers?|kinds?|resources?|types?|crds?)$/,
};

/**
 * Arguments and variables that say where further settings are: `--config=/etc/operator.yaml`, `--configmap=settings`,
 * `CONFIG_MAP_NAME`, `POSTGRES_OPERATOR_CONFIGURATION_OBJECT`.
 */
export const SETTINGS =
  /^(?:ConfigMap .*|--?config(?:-?(?:map|file))?(?:-name)?|(?:\w+_)?CONFIG(?:URATION)?_?(?:MAP|OBJECT)(?:_NAME)?)$/;

const splitNames = (list: string): string[] => list.split(/[\s,]+/).filter(Boolean);
const settingText = ({ name, value }: Setting): string =>
  value === '' ? name : `${name}=${value}`;

function watchesBy(setting: Setting, own: string): string[] {
  const { name, value } = setting;
  const isOwn =
    (isA(OWN_ONLY, setting) && (setting.isVariable ? /^true$/i.test(value) : value !== 'false')) ||
    (isA(NOT_ALL, setting) && value === 'false');
  if (isOwn) return [own];
  // `--namespace` often names only the namespace in which the program runs.
  if (!isA(WATCHES, setting) || (/^--?namespace$/.test(name) && value === own)) return [];
  // A pattern counts as all namespaces, because patterns have many notations (`preview-*`, `preview-.*`,
  // `!kube-system`).
  return splitNames(value || '*').map((one) => (/^[-a-z0-9]+$/.test(one) ? one : '*'));
}

/** Reports whether it is the namespace that the program runs in, which many get as an argument, or all. */
function isHome({ name, value }: Setting, own: string): boolean {
  return (
    (/namespace$/i.test(name) && value === own) || (/namespaces?$/i.test(name) && value === '*')
  );
}

/** Returns an argument or variable that may keep a controller from acting on an object. */
function limitIn(setting: Setting, own: string): string[] {
  const { name, value, source } = setting;
  const isList = isA(WATCHES, setting) || /^\w+_NAMESPACES$/.test(name);
  if (source !== undefined && isList) return [`${name} from ${source}`];
  const isMeant =
    (isA(PLACE, setting) && !isList && ![own, '', '*'].includes(value)) ||
    (isA(DRY_RUN, setting) && !/^(?:false|none)$/.test(value)) ||
    isA(DISABLES, setting) ||
    SETTINGS.test(name);
  return isMeant ? [settingText(setting)] : [];
}

/** Returns the ConfigMaps whose keys are variables of a container, or that it mounts and that have settings by their names. */
function settingsElsewhere(container: Json, template: Json | undefined): string[] {
  const sources = arrayAt(container, 'envFrom').map((one) => stringAt(one, 'configMapRef', 'name'));
  const mounts = arrayAt(container, 'volumeMounts').map((mount) => stringAt(mount, 'name'));
  const mounted = arrayAt(template, 'spec', 'volumes')
    .filter((volume) => mounts.includes(stringAt(volume, 'name')))
    .map((volume) => stringAt(volume, 'configMap', 'name'))
    .filter((name = '') => /conf|settings/i.test(name));
  return [...sources, ...mounted].flatMap((name) => (name ? [`ConfigMap ${name}`] : []));
}

/** Returns the Services whose DNS names, or those of whose pods, a text has, as `NAME.NAMESPACE`. */
export function serviceAddresses(text: string): string[] {
  const names = text.matchAll(/(?<![\w-])([a-z0-9-]+\.[a-z0-9-]+)\.svc(?![\w-])/g);
  return [...names].flatMap(([, name]) => name ?? []);
}
