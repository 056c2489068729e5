import { type JsonObject, numberAt, parseObject, stringAt } from '../../base/json.ts';
import { escapeForRegExp } from '../../base/text.ts';
import { formatDuration } from '../../base/time.ts';
import { type LogSource, logKey, type ObjectFacts } from '../../model/snapshot.ts';
import type { Actor } from '../actors.ts';
import {
  type Context,
  groupsOf,
  isBuiltIn,
  itemsIn,
  shortQuote,
  typeName,
  typesOf,
  valueIn,
} from '../context.ts';
import { FAILURE } from '../error-texts.ts';
import type { Held } from './held.ts';

/** Reads the log of a suspected controller for lines about a held object. Logs are untrusted text. */

/** A line of a controller's log that names a held object. */
export interface LogLine {
  /** The time at which the container wrote it (container runtime), ISO 8601; empty if unknown. */
  at: string;
  /** `namespace/pod/container` */
  pod: string;
  /** Message and error in one line. */
  text: string;
  isError: boolean;
  /** The number of times that the line was written, ignoring numbers and ids. */
  count: number;
  object: ObjectFacts;
  /** Further objects in its fields, as `Gadget team-1/cache`. */
  beside: string[];
  /** The line names the object itself, and not only its type or the group in its finalizer. */
  namesObject: boolean;
}

/** Sidecars, which never reconcile. */
const SIDECAR =
  /^(?:kube-rbac-proxy|istio-proxy|linkerd-proxy|cloud-sql-proxy|liveness-?probe|node-driver-registrar|config-reloader)$/;
const MAX_PODS = 2;
const MAX_CONTAINERS = 3;

/** Returns containers whose logs may show why this controller does not act: those of the leading pod first. */
export function logSources({ now }: Context, actor: Actor): LogSource[] {
  const holders = itemsIn(now.cluster.leases)
    .filter(({ namespace }) => namespace === actor.namespace)
    .flatMap(({ holder = '' }) => holder);
  const isLeader = (pod: string): boolean =>
    holders.some((holder) => holder.split('_', 1)[0] === pod);
  const began = Date.parse(now.namespace.deletionTimestamp ?? '');
  return actor.pods
    .filter(({ phase }) => phase === 'Running')
    .toSorted((a, b) => Number(isLeader(b.name)) - Number(isLeader(a.name)))
    .slice(0, MAX_PODS)
    .flatMap(({ namespace, name: pod, containers = [] }) =>
      containers
        .filter(({ name }) => !SIDECAR.test(name))
        .slice(0, MAX_CONTAINERS)
        .flatMap(({ name: container, crashedAt }) =>
          [false, ...(Date.parse(crashedAt ?? '') >= began ? [true] : [])].map((isPrevious) => ({
            ...{ namespace, pod, container, isPrevious },
          })),
        ),
    );
}

/** Reports whether any log of this controller was read. */
export function isLogRead(context: Context, actor: Actor): boolean {
  return logSources(context, actor).some((one) => context.now.logs?.[logKey(one)]?.ok === true);
}

/** Returns lines of this controller about the held objects: errors first, then the newest. */
export function logLinesAbout(context: Context, held: Held, actor: Actor): LogLine[] {
  const written = logSources(context, actor).flatMap((source) => {
    const pod = logKey(source);
    return recordsOf(valueIn(context.now.logs?.[pod])).map((record) => ({ ...record, pod }));
  });
  const found = new Map<string, LogLine>();
  for (const record of written.toSorted((a, b) => (a.at < b.at ? -1 : 1))) {
    const isAboutType = cannotRead(context, held, record);
    const namesObject = !isAboutType && !isAboutGroup(context, held, record);
    const object = namesObject
      ? held.objects.find((one) => isAbout(context, one, record))
      : held.objects[0];
    if (object === undefined) continue;
    const { at, pod, isError } = record;
    const text = wordsOf(record);
    const shape = text.replace(/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\d+/g, '#');
    const count = (found.get(shape)?.count ?? 0) + 1;
    const beside = referencesIn(context, record)
      .filter(({ name }) => name !== object.name)
      .map(({ kind = '', namespace = '', name }) => `${kind} ${namespace}/${name}`);
    found.set(shape, { at, pod, text, isError, count, object, beside, namesObject });
  }
  const rank = ({ isError, at }: LogLine): string => `${Number(isError)} ${at}`;
  return [...found.values()].toSorted((a, b) => (rank(a) < rank(b) ? 1 : -1));
}

/** The time for which a line counts after the controller logged another text about the object. */
const CURRENT_MS = 60_000;

/** Returns those lines that no later one has outdated. */
export function currentLogLines(context: Context, held: Held, actor: Actor): LogLine[] {
  const lines = logLinesAbout(context, held, actor);
  const newest = Math.max(...lines.map(({ at }) => Date.parse(at)));
  return lines.filter(({ at }) => Date.parse(at) >= newest - CURRENT_MS);
}

/**
 * Returns lines that show that this controller works on the held objects: the strongest clue to the owner. A line
 * that says that the controller ignores an object or waits for one is no clue.
 */
export function logLinesNaming(context: Context, held: Held, actor: Actor): LogLine[] {
  return logLinesAbout(context, held, actor).filter(
    ({ isError, namesObject, text }) =>
      namesObject && !DISCLAIMER.test(text) && (isError || WORKS_ON_IT.test(text)),
  );
}

const DISCLAIMER =
  /\b(?:ignor(?:e|es|ed|ing)|skip(?:s|ped|ping)?|unmanaged|not (?:managed|handled|watched|owned|ours|responsible|selected)|(?:does not|doesn't|did not|no) match|class mismatch|filtered out|wait(?:s|ed|ing)? (?:for|until))\b/i;
const WORKS_ON_IT = /reconcil|finali[sz]|delet|clean|terminat|remov|tear|purg|sync|destroy/i;

const MAX_QUOTED = 3;
const MAX_QUOTED_CHARS = 300;

/** Returns the lines that are reported. */
export function quotedLines(
  lines: readonly LogLine[],
): { at: string; line: string; pod: string }[] {
  return lines.slice(0, MAX_QUOTED).map(({ at: time, pod, text, count }) => ({
    at: time,
    line: shortQuote(text, MAX_QUOTED_CHARS) + (count > 1 ? ` (${count} times)` : ''),
    pod,
  }));
}

/** Returns them as evidence, with their age: a log line is no observation of now. */
export function logEvidence({ nowMs }: Context, lines: readonly LogLine[]): string[] {
  return quotedLines(lines).map(({ at: time, line, pod }) => {
    const age = Math.max(0, nowMs - Date.parse(time));
    return `log of ${pod}${Number.isNaN(age) ? '' : `, ${formatDuration(age)} ago`}: ${line}`;
  });
}

/** One record of a log, whatever its format. */
interface LogRecord {
  at: string;
  isError: boolean;
  message: string;
  error: string;
  fields: JsonObject;
  /** The whole line. */
  line: string;
}

const RECORDS = new WeakMap<string[], LogRecord[]>();

function recordsOf(lines: string[] | undefined): LogRecord[] {
  if (lines === undefined) return [];
  const known = RECORDS.get(lines) ?? lines.map(parseLogLine);
  RECORDS.set(lines, known);
  return known;
}

const MAX_LINE_CHARS = 16_000;
const KLOG = /^[IWEF]\d{4} [\d:.]+\s+\d+ [^\]\s]{1,200}\] ?/;
/** The level at the beginning of a line of klog, capnslog (`E | `), zap's console format, Python or Java. */
const LEVEL =
  /^[IWEF](?=\d{4} )|\b[CEWNID](?= \| )|^(?:crit|fail|warn|info|dbug)(?=: )|\b(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|CRITICAL|SEVERE|PANIC)\b/;
/** Levels by name, and from 50 by number (pino, bunyan). */
const ERROR_LEVEL = /^(?:c|e|f|err|error|fail|fatal|critical|crit|panic|dpanic|severe|[5-9]\d)$/i;
const DEBUG_LEVEL = /^(?:d|dbug|debug|trace|verbose|[12]\d)$/i;
const INFO_LEVEL = /^(?:i|n|info|information|notice|30)$/i;
/** No failure at level info: what is being deleted is often not found. */
const ABSENCE = /not found|notfound|not exist|missing/i;

/** Parses zap JSON, zap's console format, klog and logfmt; any other line is one message. */
export function parseLogLine(raw: string): LogRecord {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: terminal colours are control characters
  const text = raw.slice(0, MAX_LINE_CHARS).replace(/\u001b\[[\d;]{0,20}m/g, '');
  const [, at = '', line = text] = /^(\d{4}-\d\d-\d\dT\S{5,40}) (.*)$/s.exec(text) ?? [];
  const body = line.replace(KLOG, '');
  // The console format ends with its fields: `2026-…\tERROR\tcontroller\tReconciler error\t{"namespace": …}`.
  const [, words = body, json = body] = /^(.*)\t(\{.*)$/s.exec(body) ?? [];
  const fields = parseObject(json) ?? keyValues(body);
  const first = (...keys: string[]): string | undefined =>
    keys.flatMap((key) => stringAt(fields, key) ?? stringAt(fields, key, 'message') ?? [])[0];
  const quoted = /^"((?:[^"\\]|\\.){0,4000})"/.exec(body)?.[1];
  const message = first('msg', 'message') ?? quoted ?? words;
  // The last words of microerror's `[{file: } {cause}]`.
  const [, nested] = /^\[\{.*\{([^{}]{1,1000})\}\]$/s.exec(first('stack') ?? '') ?? [];
  const error = first('error', 'err')?.replace(/^<nil>$|^null$/, '') ?? nested ?? '';
  const level =
    first('level', 'severity', 'lvl', 'levelname') ??
    numberAt(fields, 'level')?.toString() ??
    LEVEL.exec(line.slice(0, 80))?.[0] ??
    '';
  const isPlain = DEBUG_LEVEL.test(level) || (INFO_LEVEL.test(level) && ABSENCE.test(message));
  const isFailure = error !== '' || ERROR_LEVEL.test(level) || (!isPlain && FAILURE.test(message));
  return { at, isError: isFailure, message, error, fields, line };
}

function keyValues(text: string): JsonObject {
  const pair =
    /(?:^|\s)([A-Za-z_][\w./-]{0,80})=("(?:[^"\\]|\\.){0,4000}"|\{[^{}]{0,1000}\}|[^\s"{][^\s]{0,1000})/g;
  return Object.fromEntries(
    [...text.matchAll(pair)].slice(0, 100).map(([, key = '', value = '']) => {
      const inner = value.startsWith('{') ? parseObject(value) : undefined;
      return [key, inner ?? value.replace(/^"|"$/g, '').replace(/\\(["\\])/g, '$1')];
    }),
  );
}

/** The beginning of a stack, in Go, Java, Python or JavaScript: everything behind it is left out. */
const STACK =
  /\s*(?:\\n|\n)\s*(?:at \S+[( ]|goroutine \d|File "|Traceback|created by |panic\(|[\w./*()-]+\.go:\d+|[\w./-]+\.[\w.*()[\]{}]+\(0x)/;

function wordsOf({ message, error }: LogRecord): string {
  const words = [...new Set([message, error])].filter(Boolean).join(': ');
  return (words.split(STACK, 1)[0] as string).replace(/(?:\\n|\s)+/g, ' ').trim();
}

/**
 * Reports whether a record names the object: by its UID, in a field, as `namespace/name`, or after its kind in a
 * sentence that also names the namespace. The name alone might be any word.
 */
function isAbout(context: Context, object: ObjectFacts, record: LogRecord): boolean {
  // A printed Event or audit record is about another program.
  if (['involvedObject', 'regarding', 'objectRef', 'auditID'].some((key) => key in record.fields)) {
    return false;
  }
  const { kind, namespace, name, uid } = object;
  if (uid !== '' && record.line.includes(uid)) return true;
  // Some write `NAME.NAMESPACE`: Flagger `canary=web.team-1`, kube-rs `object.ref=Widget.v1.example.com/db.team-1`.
  if (namespace !== '' && hasWord(record.line, `${name}.${namespace}`)) return true;
  const isKind = (other: string | undefined): boolean =>
    other === undefined ? !isAmbiguous(context, object) : isSameKind(other, kind);
  const isObject = (one: Reference): boolean =>
    one.name === name && (one.namespace ?? '') === namespace && isKind(one.kind);
  // A structured record is about the objects in its fields; its text may mention others.
  const inFields = referencesIn(context, record).filter((one) => one.namespace !== undefined);
  if (inFields.length > 0) return inFields.some(isObject);
  const text = `${record.message} ${record.error}`;
  if (pathsIn(context, text).some(isObject)) return true;
  const path = `${namespace}/`;
  return textsBefore(text, name).some((before) => {
    const isPath = before.endsWith(path);
    const ahead = isPath ? before.slice(0, -path.length) : before;
    const word = /([A-Za-z]+)(?:\.[\w.-]+)?[\s"'`/:=[({]*$/.exec(ahead)?.[1] ?? '';
    const other = typesOf(context).find((type) =>
      [type.kind, type.resource].some((one) => isSameKind(one, word)),
    )?.kind;
    return isPath
      ? isKind(other ?? kindIn(record))
      : other === kind && hasWord(record.line, namespace);
  });
}

/**
 * Reports whether a record is about the group of objects that the finalizer names: of Ingresses with
 * `group.ingress.k8s.aws/shared`, the group `shared`. Groups have no namespace.
 */
function isAboutGroup(context: Context, { finalizer, type }: Held, record: LogRecord): boolean {
  const kind = kindIn(record) ?? stringAt(record.fields, 'controller');
  return (
    kind !== undefined &&
    isSameKind(kind, type.kind) &&
    referencesIn(context, record).some(
      ({ namespace = '', name }) => namespace === '' && finalizer.endsWith(`/${name}`),
    )
  );
}

/** client-go tries again within half a minute, and does not log that it has succeeded (reflector.go). */
const CANNOT_READ_MS = 120_000;

/** Reports whether client-go says, and recently, that it cannot read the type: `failed to list *v1.Widget: Unauthorized`. */
function cannotRead({ nowMs }: Context, { type }: Held, { at, line }: LogRecord): boolean {
  const kind = /failed to (?:list|watch) (?:[*\w./]+\.)?(\w+)/i.exec(line)?.[1];
  const isRecent = Date.parse(at) >= nowMs - CANNOT_READ_MS;
  return isRecent && kind !== undefined && isSameKind(kind, type.kind);
}

/** Reports whether another held object in this namespace has the same name. */
function isAmbiguous({ now }: Context, { kind, name }: ObjectFacts): boolean {
  return groupsOf(now).some(({ examples }) =>
    examples.some((other) => other.name === name && other.kind !== kind),
  );
}

interface Reference {
  kind: string | undefined;
  namespace: string | undefined;
  name: string;
}

/** Returns the kind that the controller of this record reconciles (controller-runtime). */
function kindIn({ fields }: LogRecord): string | undefined {
  return stringAt(fields, 'controllerKind') ?? stringAt(fields, 'kind');
}

const MAX_FIELDS = 100;
/** Keys that frameworks use for the object that a controller reconciles. */
const COMMON_KEY = /^(?:object|key|resource|request|req|item|obj|name)$/i;

/**
 * Returns objects in the fields of a record: `namespace` and `name`, `Widget: {name, namespace}`, and any value that is a
 * whole `namespace/name` or API path. The key gives the kind: `widget`, `source-secret`; another key (`cluster-name`) none.
 * A bare name after the kind of a CRD is in the namespace of the record: `widget=db namespace=team-1`.
 * Fields that give a kind, or that frameworks use for the object, count before others.
 */
function referencesIn(context: Context, record: LogRecord): Reference[] {
  const { fields } = record;
  const entries: [string, JsonObject[string]][] = [
    ...Object.entries(fields).slice(0, MAX_FIELDS),
    ['object', fields],
  ];
  const found = entries.flatMap(([key, value]): (Reference & { isSure: boolean })[] => {
    const text = stringAt(value) ?? '';
    const [inPath] = text.startsWith('/api') ? pathsIn(context, text) : [];
    if (inPath !== undefined) return [{ ...inPath, isSure: true }];
    const [, place, last] =
      /^([a-z0-9][a-z0-9-]{0,62})\/([a-z0-9][a-z0-9.-]{0,252})$/.exec(text) ?? [];
    const bare = isOwnKind(context, key)
      ? text.match(/^[a-z0-9][a-z0-9.-]{0,252}$/)?.[0]
      : undefined;
    const name = last ?? stringAt(value, 'name') ?? bare;
    if (name === undefined) return [];
    const namespace = place ?? stringAt(name === bare ? fields : value, 'namespace');
    if (COMMON_KEY.test(key)) return [{ kind: kindIn(record), namespace, name, isSure: true }];
    const kind = kindOfKey(context, key);
    if (kind !== undefined) return [{ kind, namespace, name, isSure: true }];
    if (place === undefined) return [{ kind: key, namespace, name, isSure: false }];
    // `type=application/json` is no object.
    return place === context.now.namespace.name ? [{ kind, namespace, name, isSure: false }] : [];
  });
  const sure = found.filter(({ isSure }) => isSure);
  return sure.some(({ namespace }) => namespace !== undefined) ? sure : found;
}

/** Reports whether a key is the kind of a custom resource. Records have built-in kinds beside what they are about. */
function isOwnKind(context: Context, key: string): boolean {
  return typesOf(context).some(({ kind, group }) => !isBuiltIn(group) && isSameKind(kind, key));
}

/** Returns the kind that a key names: any kind as a whole, a built-in kind also as a word (`secretRef`, `source-secret`). */
function kindOfKey(context: Context, key: string): string | undefined {
  const words = (name: string): string =>
    `-${name.replace(/(?<=[a-z])(?=[A-Z])|[_.]/g, '-').toLowerCase()}-`;
  const isPart = (kind: string): boolean =>
    [words(kind), `-${kind.toLowerCase()}-`].some((part) => words(key).includes(part));
  const types = typesOf(context);
  const named =
    types.find(({ kind }) => isSameKind(kind, key)) ??
    types.find(({ kind, group }) => isBuiltIn(group) && isPart(kind));
  return named?.kind;
}

const API_PATH =
  /\/apis?(?:\/([a-z0-9.-]{1,253}))?\/v\d\w{0,20}\/namespaces\/([a-z0-9-]{1,63})\/([a-z]{1,63})\/([a-z0-9.-]{1,253})/g;

/** Returns the objects whose API paths a text contains: `/apis/example.com/v1/namespaces/team-1/widgets/db`. */
function pathsIn(context: Context, text: string): Reference[] {
  return [...text.matchAll(API_PATH)].map(([, group = '', namespace, resource = '', name = '']) => {
    const type = typesOf(context).find((one) => typeName(one) === typeName({ group, resource }));
    return { kind: type?.kind ?? resource, namespace, name };
  });
}

/** Compares kinds and plurals. */
function isSameKind(a: string, b: string): boolean {
  const singular = (word: string): string => word.toLowerCase().replace(/(?:es|s)$/, '');
  return singular(a) === singular(b);
}

/** Returns the text before each occurrence of a whole word, in terms of Kubernetes names. */
function textsBefore(text: string, word: string): string[] {
  const whole = new RegExp(
    `(?<![a-z0-9.-])${escapeForRegExp(word)}(?![a-z0-9-]|\\.[a-z0-9])`,
    'gi',
  );
  return [...text.matchAll(whole)]
    .slice(0, 20)
    .map(({ index }) => text.slice(Math.max(0, index - 100), index));
}

export function hasWord(text: string, word: string): boolean {
  return textsBefore(text, word).length > 0;
}
