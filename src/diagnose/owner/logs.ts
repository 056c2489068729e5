import { isObject, type JsonObject, parseObject, stringAt } from '../../base/json.ts';
import { escapeForRegExp } from '../../base/text.ts';
import { formatDuration } from '../../base/time.ts';
import { type LogSource, logKey, type ObjectFacts } from '../../model/snapshot.ts';
import type { Actor } from '../actors.ts';
import { type Context, groupsOf, itemsIn, shortQuote, typesOf, valueIn } from '../context.ts';
import type { Held } from './held.ts';

/** Reads the log of a suspected controller for lines about a held object. Logs are untrusted text. */

/** A line of a controller's log that is about a held object, or about its namespace and kind. */
export interface LogLine {
  /** When the container wrote it (container runtime), ISO 8601; empty where that is unknown. */
  at: string;
  /** `namespace/pod/container` */
  pod: string;
  /** Message and error in one line. */
  text: string;
  isError: boolean;
  /** The line names the object, not only its namespace and kind. */
  namesObject: boolean;
  /** How often the line was written, ignoring numbers and ids. */
  count: number;
  object: ObjectFacts;
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
    holders.some((holder) => holder === pod || holder.startsWith(`${pod}_`));
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
  const found = new Map<string, LogLine>();
  for (const source of logSources(context, actor)) {
    const key = logKey(source);
    for (const record of recordsOf(valueIn(context.now.logs?.[key]))) {
      const about = objectOfRecord(context, held, record);
      if (about === undefined) continue;
      const text = wordsOf(record);
      const shape = text.replace(/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\d+/g, '#');
      const known = found.get(shape);
      const count = (known?.count ?? 0) + 1;
      const { isError } = record;
      if (known !== undefined && known.at > record.at) known.count = count;
      else found.set(shape, { at: record.at, pod: key, text, isError, count, ...about });
    }
  }
  return [...found.values()].toSorted(
    (a, b) =>
      Number(b.namesObject) - Number(a.namesObject) ||
      Number(b.isError) - Number(a.isError) ||
      (a.at < b.at ? 1 : -1),
  );
}

/**
 * Returns lines that show that this controller works on the held objects: the strongest clue to the owner. A line
 * that says that the controller ignores the object, a copy of an Event and an audit record are no clues.
 */
export function logLinesNaming(context: Context, held: Held, actor: Actor): LogLine[] {
  return logLinesAbout(context, held, actor).filter(
    ({ namesObject, isError, text }) =>
      namesObject && !DISCLAIMER.test(text) && (isError || WORKS_ON_IT.test(text)),
  );
}

const DISCLAIMER =
  /\b(?:ignor(?:e|es|ed|ing)|skip(?:s|ped|ping)?|unmanaged|not (?:managed|handled|watched|owned|ours|responsible|selected)|(?:does not|doesn't|did not|no) match|class mismatch|filtered out)\b/i;
const WORKS_ON_IT = /reconcil|finali[sz]|delet|clean|terminat|remov|tear|purg|sync|destroy|wait/i;

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
const KLOG = /^([IWEF])\d{4} [\d:.]+\s+\d+ [^\]\s]{1,200}\] ?(.*)$/s;

/** Parses zap JSON, zap's console format, klog and logfmt; any other line is one message. */
export function parseLogLine(raw: string): LogRecord {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: terminal colours are control characters
  const text = raw.slice(0, MAX_LINE_CHARS).replace(/\u001b\[[\d;]{0,20}m/g, '');
  const [, time = '', line = ''] = /^(\d{4}-\d\d-\d\dT\S{5,40}) (.*)$/s.exec(text) ?? [
    '',
    '',
    text,
  ];
  const json = line.startsWith('{') ? parseObject(line) : undefined;
  const console = json === undefined ? consoleFields(line) : undefined;
  const [, letter, afterHeader] = KLOG.exec(line) ?? [];
  const body = afterHeader ?? line;
  const fields = json ?? console?.fields ?? keyValues(body);
  const first = (...keys: string[]): string =>
    keys.flatMap((key) => stringAt(fields, key) ?? [])[0] ?? '';
  const quoted = /^"((?:[^"\\]|\\.){0,4000})"/.exec(body)?.[1];
  const message = first('msg', 'message') || console?.message || quoted || (json ? '' : body);
  const error = first('error', 'err', 'reason.error').replace(/^<nil>$|^null$/, '');
  const level = letter ?? console?.level ?? first('level', 'severity', 'lvl', 'levelname');
  const isError = /^(?:e|f|err|error|fatal|critical|crit|panic|dpanic|severe)$/i.test(level);
  return { at: time, isError: isError || error !== '', message, error, fields, line };
}

/** Splits a line such as `2026-…\tERROR\tcontroller\tReconciler error\t{"namespace": …}`. */
function consoleFields(line: string) {
  const parts = line.split('\t');
  const level = parts.findIndex((part) => /^(?:DEBUG|INFO|WARN|ERROR|FATAL|PANIC)$/i.test(part));
  if (level < 0 || level > 2) return undefined;
  const last = parts.at(-1) ?? '';
  const fields = last.startsWith('{') ? parseObject(last) : undefined;
  const message = parts.at(fields === undefined ? -1 : -2) ?? '';
  return { level: parts[level], message, fields: fields ?? {} };
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

/** Frames of a stack: of Go, Java, Python and JavaScript. */
const FRAME =
  /^\s*(?:at \S+[( ]|goroutine \d|File "|Traceback|created by |panic\(|[\w./*()-]+\.go:\d+|[\w./-]+\.[\w.*()[\]{}]+\(0x)/;

function wordsOf({ message, error }: LogRecord): string {
  const words = error === '' || message.includes(error) ? message : `${message}: ${error}`;
  return words
    .split(/\\n|\n/)
    .filter((line, index) => index === 0 || !FRAME.test(line))
    .join(' ')
    .replace(/\s+/g, ' ')
    .trim();
}

/** Returns the held object that a record is about, if any. */
function objectOfRecord(
  context: Context,
  held: Held,
  record: LogRecord,
): Pick<LogLine, 'object' | 'namesObject'> | undefined {
  if (isCopy(record)) return undefined;
  const named = held.objects.find((object) => mentionsObject(context, object, record));
  if (named !== undefined) return { object: named, namesObject: true };
  const [object] = held.objects;
  if (object === undefined || object.namespace === '') return undefined;
  const { kind, resource } = held.type;
  const isKind =
    kindIn(record)?.toLowerCase() === kind.toLowerCase() ||
    [kind, resource].some((word) => hasWord(`${record.message} ${record.error}`, word));
  // A record about another object of the kind is no clue for this one, unless it is an error.
  const isAbout = isKind && record.isError && hasWord(record.line, object.namespace);
  return isAbout && !namesAnother(object, record) ? { object, namesObject: false } : undefined;
}

/** Reports whether a line prints an Event or an audit record, which is about other programs. */
function isCopy({ fields }: LogRecord): boolean {
  return ['involvedObject', 'regarding', 'objectRef', 'auditID'].some((key) => key in fields);
}

function mentionsObject(context: Context, object: ObjectFacts, record: LogRecord): boolean {
  if (object.uid.length > 8 && record.line.includes(object.uid)) return true;
  const { kind, namespace, name } = object;
  const references = referencesIn(record).filter(
    (one) => one.name === name && (one.namespace ?? '') === namespace,
  );
  const isKind = (other: string | undefined): boolean =>
    other === undefined ? !isAmbiguous(context, object) : isSameKind(other, kind);
  if (references.length > 0) return references.some((one) => isKind(one.kind));
  const text = `${record.message} ${record.error}`;
  const path = namespace === '' ? undefined : `${namespace}/${name}`;
  for (const { before } of path === undefined ? [] : occurrences(text, path)) {
    const word = /([A-Za-z]+)(?:\.[\w.-]+)?[\s"'/:=[({]*$/.exec(before)?.[1] ?? '';
    const other = typesOf(context).find((type) =>
      [type.kind, type.resource].some((one) => isSameKind(one, word)),
    );
    if (isKind(other?.kind ?? kindIn(record))) return true;
  }
  // Both words somewhere in a sentence: the name in quotes or after the kind, else any word might be meant.
  const isQuoted = new RegExp(`["'\`]${escapeForRegExp(name)}["'\`]`).test(text);
  const isAfterKind = occurrences(text, name).some(({ before }) =>
    new RegExp(`\\b${escapeForRegExp(kind)}s?\\W{1,3}$`, 'i').test(before),
  );
  const isHere = namespace === '' || hasWord(record.line, namespace);
  return isHere && (isAfterKind || (isQuoted && hasWord(text, kind)));
}

/** Reports whether another held object in this namespace has the same name. */
function isAmbiguous({ now }: Context, { kind, name }: ObjectFacts): boolean {
  return groupsOf(now).some(({ examples }) =>
    examples.some((other) => other.name === name && other.kind !== kind),
  );
}

function namesAnother({ name }: ObjectFacts, record: LogRecord): boolean {
  return referencesIn(record).some((one) => one.name !== name);
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

/**
 * Returns objects in the fields of a record: `namespace` and `name`, `Widget: {name, namespace}`,
 * `widget="namespace/name"`.
 */
function referencesIn(record: LogRecord): Reference[] {
  const { fields } = record;
  const kind = kindIn(record);
  const own = stringAt(fields, 'name');
  const found = Object.entries(fields).flatMap(([key, value]): Reference[] => {
    const of = /^(?:object|key|resource|request|req|item|obj|name)$/i.test(key) ? kind : key;
    const nested = isObject(value) ? stringAt(value, 'name') : undefined;
    if (nested !== undefined) {
      return [{ kind: of, namespace: stringAt(value, 'namespace'), name: nested }];
    }
    const [, namespace, name] =
      /^([a-z0-9][a-z0-9-]{0,62})\/([a-z0-9][a-z0-9.-]{0,252})$/.exec(stringAt(value) ?? '') ?? [];
    return name === undefined ? [] : [{ kind: of, namespace, name }];
  });
  return own === undefined
    ? found
    : [...found, { kind, namespace: stringAt(fields, 'namespace'), name: own }];
}

function isSameKind(a: string, b: string): boolean {
  const singular = (word: string): string => word.toLowerCase().replace(/(?:es|s)$/, '');
  return singular(a) === singular(b);
}

/** Returns the position of a whole word, in terms of Kubernetes names, in a text. */
function occurrences(text: string, word: string): { before: string }[] {
  const whole = new RegExp(
    `(?<![a-z0-9.-])${escapeForRegExp(word)}(?![a-z0-9-]|\\.[a-z0-9])`,
    'gi',
  );
  return [...text.matchAll(whole)].slice(0, 20).map(({ index }) => {
    return { before: text.slice(Math.max(0, index - 100), index) };
  });
}

export function hasWord(text: string, word: string): boolean {
  return word !== '' && occurrences(text, word).length > 0;
}
