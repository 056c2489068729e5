import {
  arrayAt,
  isObject,
  type Json,
  recordAt,
  stringAt,
  stringsAt,
  valueAt,
} from '../../base/json.ts';

/** Returns what a pod or its template shows of the controller that it runs, and of how that was started. */
export function templateFacts(template: Json | undefined, namespace: string, name: string) {
  const annotations = recordAt(template, 'metadata', 'annotations');
  const containers = arrayAt(template, 'spec', 'containers').map((container) => ({
    container,
    programs: programsOf(container),
    settings: settingsOf(container, annotations, namespace),
  }));
  // The arguments of a sidecar do not restrict the controller.
  const main = containers.filter(
    ({ container, programs }) =>
      containers.length === 1 ||
      stringAt(container, 'name') === annotations['kubectl.kubernetes.io/default-container'] ||
      programs.some((program) => `${name}-`.startsWith(`${program}-`)),
  );
  const own = main.flatMap(({ settings }) => settings);
  const all = containers.flatMap(({ settings }) => settings);
  const watches = main.flatMap(({ settings }) => {
    const found = settings.flatMap((setting) => watchesBy(setting, namespace));
    return found.length === 0 ? ['*'] : found;
  });
  const limits = own.filter(
    ({ key, value }) => LIMITS.test(key) && !/^(?:false|none)$/.test(value),
  );
  const unread = main.flatMap((one) => unreadSettings(one.container, template, one.settings));
  return {
    /** ServiceAccount of the pods, in their namespace. */
    account: stringAt(template, 'spec', 'serviceAccountName') ?? 'default',
    podLabels: recordAt(template, 'metadata', 'labels'),
    /** Names that its program may use: containers, commands, images. */
    programs: uniqueIn(containers.flatMap(({ programs }) => programs)).filter(Boolean),
    /** The only namespaces that it watches, by its arguments and environment; undefined: all. */
    watches: watches.length === 0 || watches.includes('*') ? undefined : uniqueIn(watches),
    ...filled({
      /** Namespaces that its arguments or environment exclude. */
      ignores: own.flatMap(({ key, value }) => (IGNORES.test(key) ? splitNames(value) : [])),
      /** Arguments that look as if they select objects: a class, a label selector, a shard. */
      selectors: textsOf(all.filter((one) => mayExclude(one, namespace))).toSorted(),
      /** Services that its arguments and environment address, as `NAME.NAMESPACE`. */
      addresses: uniqueIn(all.flatMap(({ value }) => serviceAddresses(value))),
      /** What may keep it from acting on an object: arguments (`--dry-run`), and where settings are that are not read. */
      limits: uniqueIn([...textsOf(limits), ...unread]),
    }),
  };
}

function filled<T extends Record<string, string[]>>(lists: T): Partial<T> {
  return Object.fromEntries(
    Object.entries(lists).filter(([, list]) => list.length > 0),
  ) as Partial<T>;
}

const uniqueIn = (texts: readonly string[]): string[] => [...new Set(texts)];
const textsOf = (settings: readonly Setting[]): string[] => settings.map(({ text }) => text);
const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

function programsOf(container: Json): string[] {
  const [command = ''] = stringsAt(container, 'command');
  const image = baseName(stringAt(container, 'image') ?? '').replace(/[:@].*$/, '');
  return [stringAt(container, 'name') ?? '', baseName(command), image];
}

/** An argument with its value, which may be the next word, or a variable of the environment. */
interface Setting {
  /** The name in lower case with hyphens; that of an argument begins with two: `--watch-namespace`, `watch-namespace`. */
  key: string;
  value: string;
  /** The value before variables are inserted: `$(NAMESPACE)`. */
  written: string;
  text: string;
}

/** Returns the variables and arguments of a container. `*` is a value that the object does not show. */
function settingsOf(container: Json, annotations: Record<string, string>, own: string): Setting[] {
  const values = new Map(
    arrayAt(container, 'env').map((entry): [string, string] => [
      stringAt(entry, 'name') ?? '',
      variableOf(entry, annotations, own),
    ]),
  );
  const words = wordsOf(container);
  const options = words.map((word, index): [string, string] => {
    const [, name = word, given] = /^(.*?)=(.*)$/.exec(word) ?? [];
    const next = words[index + 1] ?? '';
    return [name, given ?? (next.startsWith('-') ? '' : next)];
  });
  return [...values, ...options].map(([name, written]) => {
    const value = written.replace(/\$\(([^)]*)\)/g, (_, variable) => values.get(variable) ?? '*');
    const key = name.replaceAll('_', '-').replace(/^--?/, '--').toLowerCase();
    return { key, value, written, text: value === '' ? name : `${name}=${value}` };
  });
}

const wordsOf = (container: Json): string[] => [
  ...stringsAt(container, 'command'),
  ...stringsAt(container, 'args'),
];

/** Returns the ConfigMaps and Secrets that may hold settings of a container, such as the namespaces that it watches. */
function unreadSettings(container: Json, template: Json | undefined, settings: Setting[]) {
  const variables = arrayAt(container, 'env').flatMap((entry) => {
    const name = stringAt(entry, 'name') ?? '';
    const config = stringAt(entry, 'valueFrom', 'configMapKeyRef', 'name');
    const source = config ?? stringAt(entry, 'valueFrom', 'secretKeyRef', 'name');
    const tellsWhere =
      /WATCH|NAMESPACES$/.test(name) ||
      settings.some(({ key, written }) => WATCHES.test(key) && written.includes(`$(${name})`));
    if (source !== undefined && tellsWhere)
      return `${name} from ${config ? 'ConfigMap' : 'Secret'} ${source}`;
    return CONFIG_MAP.test(name) ? `${name}=${stringAt(entry, 'value') ?? '*'}` : [];
  });
  const options = wordsOf(container).filter((word) => CONFIG_FILE.test(word));
  const mounts = arrayAt(container, 'volumeMounts').map((mount) => stringAt(mount, 'name'));
  const mounted = arrayAt(template, 'spec', 'volumes')
    .filter((volume) => mounts.includes(stringAt(volume, 'name')))
    .flatMap((volume) => stringAt(volume, 'configMap', 'name') ?? []);
  const maps = [
    ...arrayAt(container, 'envFrom').flatMap((one) => stringAt(one, 'configMapRef', 'name') ?? []),
    ...mounted.filter((name) => /conf|settings/i.test(name)),
  ];
  return [
    ...variables,
    ...options.map((word) => `the file or object of ${word}`),
    ...maps.map((name) => `ConfigMap ${name}`),
  ];
}

const CONFIG_FILE = /^--?config(?:-?(?:map|file))?(?:-name)?(?:=|$)/;
/** `CONFIG_MAP_NAME`, `POSTGRES_OPERATOR_CONFIGURATION_OBJECT`. */
const CONFIG_MAP = /^(?:\w+_)?CONFIG(?:URATION)?_?(?:MAP|OBJECT)(?:_NAME)?$/;

function variableOf(entry: Json, annotations: Record<string, string>, own: string): string {
  const field = stringAt(entry, 'valueFrom', 'fieldRef', 'fieldPath') ?? '';
  if (field === 'metadata.namespace') return own;
  // OLM writes the namespaces of an OperatorGroup into an annotation.
  const [, annotation] = /^metadata\.annotations\['([^']+)'\]$/.exec(field) ?? [];
  if (annotation !== undefined) return annotations[annotation] ?? '';
  return isObject(valueAt(entry, 'valueFrom')) ? '*' : (stringAt(entry, 'value') ?? '');
}

// The conventions of operator-sdk, controller-runtime projects and client-go's own flags.

/** Not `SECRETS_WATCH_NAMESPACE`, which is about something else than the reconciled objects. */
const WATCHES =
  /^(?:--namespaces?|(?:--|(?:[\w-]*(?:operator|controller|manager)-)?)(?:(?:watch(?:ed)?|managed)-(?:single-)?namespaces?|namespaces?-to-watch|watch-ns))$/;
/** It works only in its own namespace if it is true, as in Argo, Flux and Rook. */
const OWN_ONLY = /^(?:--namespaced|(?:\w[\w-]*-)?(?:current|own|single)-namespace(?:-only)?)$/;
/** The same if it is false. */
const NOT_ALL = /^--(?:watch-)?all-namespaces$/;
/** `--deny-namespaces=a,b`, `--namespace-denylist`, `EXCLUDED_NAMESPACES`. */
const IGNORES =
  /^(?:--)?(?:\w[\w-]*-)?(?:(?:den(?:y|ied)|exclude[ds]?|ignored?|skip(?:ped)?)-namespaces?|namespaces?-(?:deny-?list|black-?list|exclude[ds]?))$/;
/**
 * `--widget-class=blue`, `WATCH_NAMESPACE_SELECTOR`, `SHARD_ID`, and plurals that list namespaces, of the objects or
 * of something else: `ARGOCD_APPLICATION_NAMESPACES`.
 */
const SELECTS =
  /^(?:--(?:[\w.-]+-)?(?:class(?:es|-name)?|selectors?|shards?(?:-[\w-]+)?|watch-[\w-]+|instance-?id|namespaces?)|[\w-]+-namespaces|(?:[\w-]+-)?(?:(?<!node-|pod-)selectors?|shard(?:-(?:id|index|name|number))?|controller-id))$/;
const LIMITS =
  /^--(?:dry-?run|(?:disabled?|skip(?:ped)?|excluded?)-(?:controllers?|kinds?|resources?|types?|crds?))$/;

/** Reports whether an argument may select objects. A list with its own namespace alone leaves out all others. */
function mayExclude({ key, value }: Setting, own: string): boolean {
  const isHome = value === '*' ? /namespaces?$/.test(key) : value === own && /namespace$/.test(key);
  return SELECTS.test(key) && !/leader/.test(key) && !isHome;
}

const splitNames = (list: string): string[] => list.split(/[\s,]+/).filter(Boolean);

function watchesBy({ key, value }: Setting, own: string): string[] {
  const isOwn = key.startsWith('--') ? value !== 'false' : /^true$/i.test(value);
  if ((OWN_ONLY.test(key) && isOwn) || (NOT_ALL.test(key) && value === 'false')) return [own];
  // `--namespace` often names only the namespace in which the program runs.
  if (!WATCHES.test(key) || (key === '--namespace' && value === own)) return [];
  // A pattern counts as all namespaces, because patterns have many notations (`preview-*`, `preview-.*`, `!kube-system`).
  return splitNames(value || '*').map((one) => (/^[-a-z0-9]+$/.test(one) ? one : '*'));
}

/** Returns the Services whose DNS names, or those of whose pods, a text has, as `NAME.NAMESPACE`. */
export function serviceAddresses(text: string): string[] {
  const names = text.matchAll(/(?<![\w-])([a-z0-9-]+\.[a-z0-9-]+)\.svc(?![\w-])/g);
  return [...names].flatMap(([, name]) => name ?? []);
}
