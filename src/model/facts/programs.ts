import {
  arrayAt,
  isObject,
  type Json,
  recordAt,
  stringAt,
  stringsAt,
  valueAt,
} from '../../base/json.ts';

/** Sidecars, which never reconcile. */
export const SIDECAR =
  /^(?:kube-rbac-proxy|istio-proxy|linkerd-proxy|cloud-sql-proxy|liveness-?probe|node-driver-registrar|config-reloader)$/;

/** Returns what a pod or its template shows of the controller that it runs, and of how that was started. */
export function templateFacts(template: Json | undefined, namespace: string, name: string) {
  const annotations = recordAt(template, 'metadata', 'annotations');
  const containers = arrayAt(template, 'spec', 'containers')
    .filter((container) => !SIDECAR.test(stringAt(container, 'name') ?? ''))
    .map((container) => ({
      container,
      programs: programsOf(container),
      settings: settingsOf(container, annotations, namespace),
    }));
  // The arguments of other containers do not restrict the controller.
  const main = containers.filter(
    ({ container, programs }) =>
      containers.length === 1 ||
      stringAt(container, 'name') === annotations['kubectl.kubernetes.io/default-container'] ||
      programs.some((program) => `${name}-`.startsWith(`${program}-`)),
  );
  const all = containers.flatMap(({ settings }) => settings);
  const watches = main.flatMap(({ settings }) => {
    const found = settings.flatMap((setting) => watchesBy(setting, namespace));
    return found.length === 0 ? ['*'] : found;
  });
  return {
    /** ServiceAccount of the pods, in their namespace. */
    account: stringAt(template, 'spec', 'serviceAccountName') ?? 'default',
    podLabels: recordAt(template, 'metadata', 'labels'),
    /** Names that its program may use: containers, commands, images. */
    programs: uniqueIn(containers.flatMap(({ programs }) => programs)).filter(Boolean),
    /** The only namespaces that it watches, by its arguments and environment; undefined: all. */
    watches: watches.length === 0 || watches.includes('*') ? undefined : uniqueIn(watches),
    /** Settings that look as if they select objects: a class, a label selector, a shard, namespaces that are left out. */
    selectors: uniqueIn(all.flatMap((one) => (mayExclude(one, namespace) ? one.text : [])).sort()),
    ...servedBy(template),
    /** Services that its settings address, as `NAME.NAMESPACE`. */
    addresses: uniqueIn(all.flatMap(({ value }) => serviceAddresses(value))),
    /** What may keep it from acting on an object: arguments (`--dry-run`), and where settings are that are not read. */
    limits: uniqueIn(
      main.flatMap(({ container, settings }) => [
        ...settings.flatMap(limitBy),
        ...configMapsOf(container, template).map((map) => `ConfigMap ${map}`),
      ]),
    ),
  };
}

/** Returns the drivers, CSI or DRA, that it serves to kubelets: its volumes have the paths of their sockets. */
function servedBy(template: Json | undefined): { serves?: string[] } {
  const found = arrayAt(template, 'spec', 'volumes').flatMap((volume) => {
    const path = stringAt(volume, 'hostPath', 'path') ?? '';
    return /\/kubelet\/plugins\/([\w.-]+)/.exec(path)?.[1] ?? [];
  });
  return found.length === 0 ? {} : { serves: uniqueIn(found) };
}

const uniqueIn = (texts: readonly string[]): string[] => [...new Set(texts)];

function programsOf(container: Json): string[] {
  const base = (path = ''): string => path.slice(path.lastIndexOf('/') + 1);
  const image = base(stringAt(container, 'image')).replace(/[:@].*$/, '');
  // `sh -c "kopf run handlers.py"` and `python -m kopf run` begin with a shell or an interpreter.
  const words = [...stringsAt(container, 'command'), ...stringsAt(container, 'args')]
    .flatMap((word) => word.trim().split(/\s+/))
    .filter((word) => !word.startsWith('-'));
  return [stringAt(container, 'name') ?? '', ...words.slice(0, 2).map(base), image];
}

/** A variable of the environment, or an argument with its value, which may be the next word. */
interface Setting {
  /** The name in lower case with hyphens; that of an argument begins with two: `--watch-namespace`, `watch-namespace`. */
  key: string;
  /** `*` stands for all, and for what the object does not show. */
  value: string;
  text: string;
  /** The object that has the value: `PLACE from ConfigMap settings`. */
  elsewhere?: string | undefined;
}

function settingsOf(container: Json, annotations: Record<string, string>, own: string): Setting[] {
  const settingOf = (name: string, value: string, elsewhere?: string): Setting => ({
    key: name.replaceAll('_', '-').replace(/^--?/, '--').toLowerCase(),
    ...{ value, elsewhere, text: value === '' ? name : `${name}=${value}` },
  });
  const variables = new Map<string, Setting>();
  for (const entry of arrayAt(container, 'env')) {
    const name = stringAt(entry, 'name') ?? '';
    const config = stringAt(entry, 'valueFrom', 'configMapKeyRef', 'name');
    const secret = stringAt(entry, 'valueFrom', 'secretKeyRef', 'name');
    const source = config ? `ConfigMap ${config}` : secret && `Secret ${secret}`;
    const value = variableOf(entry, annotations, own);
    variables.set(name, settingOf(name, value, source && `${name} from ${source}`));
  }
  const words = [...stringsAt(container, 'command'), ...stringsAt(container, 'args')];
  const options = words.map((word, index) => {
    const [, name = word, given] = /^(.*?)=(.*)$/.exec(word) ?? [];
    const next = words[index + 1] ?? '';
    let elsewhere: string | undefined;
    const written = given ?? (next.startsWith('-') ? '' : next);
    const value = written.replace(/\$\(([^)]*)\)/g, (_, variable) => {
      elsewhere ??= variables.get(variable)?.elsewhere;
      return variables.get(variable)?.value ?? '*';
    });
    return settingOf(name, value, elsewhere);
  });
  return [...variables.values(), ...options];
}

function variableOf(entry: Json, annotations: Record<string, string>, own: string): string {
  const field = stringAt(entry, 'valueFrom', 'fieldRef', 'fieldPath') ?? '';
  if (field === 'metadata.namespace') return own;
  // OLM writes the namespaces of an OperatorGroup into an annotation.
  const [, annotation] = /^metadata\.annotations\['([^']+)'\]$/.exec(field) ?? [];
  if (annotation !== undefined) return annotations[annotation] ?? '';
  return isObject(valueAt(entry, 'valueFrom')) ? '*' : (stringAt(entry, 'value') ?? '');
}

/** Returns the ConfigMaps that a container gets as a whole and that may hold settings. */
function configMapsOf(container: Json, template: Json | undefined): string[] {
  const mounts = arrayAt(container, 'volumeMounts').map((mount) => stringAt(mount, 'name'));
  const mounted = arrayAt(template, 'spec', 'volumes')
    .filter((volume) => mounts.includes(stringAt(volume, 'name')))
    .flatMap((volume) => stringAt(volume, 'configMap', 'name') ?? []);
  const variables = arrayAt(container, 'envFrom');
  return [
    ...variables.flatMap((one) => stringAt(one, 'configMapRef', 'name') ?? []),
    ...mounted.filter((name) => /conf|settings/i.test(name)),
  ];
}

// The conventions of operator-sdk, controller-runtime projects and client-go's own flags.

/** Not `SECRETS_WATCH_NAMESPACE`, which is about something else than the reconciled objects. */
const WATCHES =
  /^(?:--namespaces?|(?:--|(?:[\w-]*(?:operator|controller|manager)-)?)(?:(?:watch(?:ed)?|managed)-(?:single-)?namespaces?|namespaces?-to-watch|watch-ns)|[\w-]+-watched-namespaces)$/;
/** It works only in its own namespace if it is true, as in Argo, Flux and Rook. */
const OWN_ONLY = /^(?:--namespaced|(?:\w[\w-]*-)?(?:current|own|single)-namespace(?:-only)?)$/;
/** The same if it is false. */
const NOT_ALL = /^--(?:watch-)?all-namespaces$/;
/**
 * `--widget-class=blue`, `WATCH_NAMESPACE_SELECTOR`, `SHARD_ID`, and lists of namespaces, of the objects or of something
 * else: `ARGOCD_APPLICATION_NAMESPACES`, `--namespace-denylist`.
 */
const SELECTS =
  /^(?:--(?:[\w.-]+-)?(?:class(?:es|-name)?|selectors?|shards?(?:-[\w-]+)?|watch-[\w-]+|instance-?id|namespaces?)|[\w-]+-namespaces|(?:--)?[\w-]*namespaces?-(?:deny|black|exclude)[\w-]*|(?:[\w-]+-)?(?:(?<!node-|pod-)selectors?|shard(?:-(?:id|index|name|number))?|controller-id))$/;
const LIMITS =
  /^--(?:dry-?run|(?:disabled?|skip(?:ped)?|excluded?)-(?:controllers?|kinds?|resources?|types?|crds?))$/;
/** `--config=/etc/x.yaml`, `CONFIG_MAP_NAME`, `POSTGRES_OPERATOR_CONFIGURATION_OBJECT`. */
const CONFIG =
  /^(?:--config(?:-?(?:map|file))?(?:-name)?|(?:[\w-]+-)?config(?:uration)?-?(?:map|object)(?:-name)?)$/;

/** Reports whether an argument may select objects. A list with its own namespace alone leaves out all others. */
function mayExclude({ key, value }: Setting, own: string): boolean {
  const isHome = value === '*' ? /namespaces?$/.test(key) : value === own && /namespace$/.test(key);
  return SELECTS.test(key) && !/leader/.test(key) && !isHome;
}

function watchesBy({ key, value }: Setting, own: string): string[] {
  const isOwn = key.startsWith('--') ? value !== 'false' : /^true$/i.test(value);
  if ((OWN_ONLY.test(key) && isOwn) || (NOT_ALL.test(key) && value === 'false')) return [own];
  // `--namespace` often names only the namespace in which the program runs.
  if (!WATCHES.test(key) || (key === '--namespace' && value === own)) return [];
  // A pattern counts as all namespaces, because patterns have many notations (`preview-*`, `preview-.*`, `!kube-system`).
  const names = (value || '*').split(/[\s,]+/).filter(Boolean);
  return names.map((one) => (/^[-a-z0-9]+$/.test(one) ? one : '*'));
}

function limitBy({ key, value, text, elsewhere }: Setting): string[] {
  // Only a path or a name is shown: an address may hold a password.
  if (CONFIG.test(key)) return [`the file or object of ${/^[\w./-]*$/.test(value) ? text : key}`];
  if (elsewhere !== undefined && (WATCHES.test(key) || /watch|namespaces$/.test(key)))
    return [elsewhere];
  return LIMITS.test(key) && !/^(?:false|none)$/.test(value) ? [text] : [];
}

/** Returns the Services whose DNS names, or those of whose pods, a text has, as `NAME.NAMESPACE`. */
export function serviceAddresses(text: string): string[] {
  const names = text.matchAll(/(?<![\w-])([a-z0-9-]+\.[a-z0-9-]+)\.svc(?![\w-])/g);
  return [...names].flatMap(([, name]) => name ?? []);
}
