import { type JsonObject, parseObject, stringAt } from '../../base/json.ts';
import { escapeForRegExp, shortQuote } from '../../base/text.ts';
import { formatDuration } from '../../base/time.ts';
import { SIDECAR } from '../../model/facts/programs.ts';
import { itemsIn, valueIn } from '../../model/read.ts';
import { type LogSource, logKey, type ObjectFacts } from '../../model/snapshot.ts';
import type { Actor } from '../actors.ts';
import { groupsOf, isSameKind, typeNamedBy } from '../content.ts';
import { type Context, isInside, remember } from '../context.ts';
import { FAILURE } from '../error-texts.ts';
import type { Held } from './held.ts';

/** Reads the log of a suspected controller for lines about a held object. Logs are untrusted text. */

const MAX_PODS = 2;
const MAX_CONTAINERS = 3;

/** Returns containers whose logs may show why this controller does not act: those of the leading pod first. */
export function logSources({ now }: Context, actor: Actor): LogSource[] {
  const holders = itemsIn(now.cluster.leases)
    .filter(({ namespace }) => namespace === actor.namespace)
    .map(({ holder = '' }) => holder.split('_', 1)[0]);
  const began = Date.parse(now.namespace.deletionTimestamp ?? '');
  return actor.pods
    .filter(({ phase }) => phase === 'Running')
    .toSorted((a, b) => Number(holders.includes(b.name)) - Number(holders.includes(a.name)))
    .slice(0, MAX_PODS)
    .flatMap(({ namespace, name: pod, containers = [] }) =>
      containers
        .filter(({ name }) => !SIDECAR.test(name))
        .slice(0, MAX_CONTAINERS)
        .flatMap(({ name: container, crashedAt = '' }) => {
          const source = { namespace, pod, container, isPrevious: false };
          const hasCrashed = Date.parse(crashedAt) >= began;
          return hasCrashed ? [source, { ...source, isPrevious: true }] : [source];
        }),
    );
}

export function isLogRead(context: Context, actor: Actor): boolean {
  return logSources(context, actor).some((one) => context.now.logs?.[logKey(one)]?.ok === true);
}

/** Returns lines of this controller about the held objects, those that differ in numbers and ids alone once: errors first, then the newest. */
export function logLinesAbout(context: Context, held: Held, actor: Actor) {
  const lines = logSources(context, actor).flatMap((source) => {
    const pod = logKey(source);
    return recordsOf(valueIn(context.now.logs?.[pod]) ?? []).flatMap((record) => {
      const isMeant = held.objects.some((one) => isAbout(context, one, record));
      return isMeant ? [{ ...record, pod }] : [];
    });
  });
  const rank = ({ isError, at }: (typeof lines)[number]) => `${Number(isError)} ${at}`;
  const sorted = lines.toSorted((a, b) => (rank(a) < rank(b) ? 1 : -1));
  const shapes = Map.groupBy(sorted, ({ text }) =>
    text.replace(/\b[0-9a-f]{8}(?:-[0-9a-f]{4,12}){4}\b|\d+/g, '#'),
  );
  return [...shapes.values()].flatMap((same) => same.slice(0, 1));
}

/** The time for which a line counts after the controller logged another text about the object. */
const CURRENT_MS = 60_000;

/** Returns those lines that no later one has outdated. */
export function currentLogLines(context: Context, held: Held, actor: Actor) {
  const lines = logLinesAbout(context, held, actor);
  const newest = Math.max(...lines.map(({ at }) => Date.parse(at)));
  return lines.filter(({ at }) => Date.parse(at) >= newest - CURRENT_MS);
}

/** Returns lines that show that this controller works on the held objects, and not that it ignores them or waits for them. */
export function logLinesNaming(context: Context, held: Held, actor: Actor) {
  return logLinesAbout(context, held, actor).filter(
    ({ isError, text }) => !DISCLAIMER.test(text) && (isError || WORKS_ON_IT.test(text)),
  );
}

const DISCLAIMER =
  /\b(?:ignor(?:e|es|ed|ing)|skip(?:s|ped|ping)?|unmanaged|not (?:managed|handled|watched|owned|ours|responsible|selected)|(?:does not|doesn't|did not|no) match|class mismatch|filtered out|wait(?:s|ed|ing)? (?:for|until))\b/i;
const WORKS_ON_IT = /reconcil|finali[sz]|delet|clean|terminat|remov|tear|purg|sync|destroy/i;

/** Returns the first lines for the report, and as evidence with their age: a log line is no observation of now. */
export function quotedLines(context: Context, held: Held, actors: readonly Actor[]) {
  const lines = actors.flatMap((actor) => logLinesAbout(context, held, actor)).slice(0, 3);
  const quoted = lines.map(({ at, pod, text }) => ({ at, pod, line: shortQuote(text) }));
  const evidence = quoted.map(({ at, line, pod }) => {
    const age = Math.max(0, context.nowMs - Date.parse(at));
    return `log of ${pod}${Number.isNaN(age) ? '' : `, ${formatDuration(age)} ago`}: ${line}`;
  });
  return { evidence, ownerLog: quoted.length > 0 ? quoted : undefined };
}

type LogRecord = ReturnType<typeof parseLogLine>;

const recordsOf = remember((lines: string[]) => lines.map(parseLogLine));

const MAX_LINE_CHARS = 16_000;
const MAX_FIELDS = 100;
const KLOG = /^[IWEF]\d{4} [\d:.]+\s+\d+ [^\]\s]{1,200}\] ?/;
/** The level of klog, capnslog (`E | `, Rook), zap's console format, Python or Java. */
const LEVEL =
  /^[IWEF](?=\d{4} )|\b[CEWNID](?= \| )|\b(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\b/;
const ERROR_LEVEL = /^(?:c|e|f|error|fatal|critical|d?panic)$/i;
/** The beginning of a stack, in Go, Java, Python or JavaScript: everything behind it is left out. */
const STACK =
  /\s*(?:\\n|\n)\s*(?:at \S+[( ]|goroutine \d|File "|Traceback|created by |panic\(|[\w./*()-]+\.go:\d+|[\w./-]+\.[\w.*()[\]{}]+\(0x)/;

/** Parses JSON (zap, slog), zap's console format, klog and logfmt; any other line is one message. `at`: when the container wrote it, or empty. */
export function parseLogLine(raw: string) {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: terminal colours are control characters
  const plain = raw.slice(0, MAX_LINE_CHARS).replace(/\u001b\[[\d;]{0,20}m/g, '');
  const [, at = '', line = plain] = /^(\d{4}-\d\d-\d\dT\S{5,40}) (.*)$/s.exec(plain) ?? [];
  const body = line.replace(KLOG, '');
  // The console format ends with its fields: `2026-…\tERROR\tcontroller\tReconciler error\t{"namespace": …}`.
  const [, words = body, json = body] = /^(.*)\t(\{.*)$/s.exec(body) ?? [];
  const fields = parseObject(json) ?? keyValues(body);
  const first = (...keys: string[]): string | undefined =>
    keys.flatMap((key) => stringAt(fields, key) ?? stringAt(fields, key, 'message') ?? [])[0];
  const quoted = /^"((?:[^"\\]|\\.){0,4000})"/.exec(body)?.[1];
  const message = first('msg', 'message') ?? quoted ?? words;
  const error = (first('error', 'err') ?? '').replace(/^<nil>$|^null$/, '');
  const level = first('level', 'severity') ?? LEVEL.exec(line.slice(0, 80))?.[0] ?? '';
  // What is being deleted is often not found.
  const isPlain = /^[dt]/i.test(level) || (/^i/i.test(level) && /not ?found/i.test(message));
  const isError = error !== '' || ERROR_LEVEL.test(level) || (!isPlain && FAILURE.test(message));
  const whole = [...new Set([message, error])].filter(Boolean).join(': ');
  const text = (whole.split(STACK, 1)[0] as string).replace(/(?:\\n|\s)+/g, ' ').trim();
  return { at, isError, text, fields, line };
}

function keyValues(text: string): JsonObject {
  const pair = /(?:^|\s)([A-Za-z_][\w./-]{0,80})=("(?:[^"\\]|\\.){0,4000}"|[^\s"{][^\s]{0,1000})/g;
  const pairs = [...text.matchAll(pair)].slice(0, MAX_FIELDS);
  const bare = (value: string): string => value.replace(/^"|"$/g, '').replace(/\\(["\\])/g, '$1');
  return Object.fromEntries(pairs.map(([, key = '', value = '']) => [key, bare(value)]));
}

/** Reports whether a record names the object: with its namespace, and not as another kind of the same name. */
function isAbout(context: Context, object: ObjectFacts, record: LogRecord): boolean {
  const { fields, line } = record;
  const { kind, namespace, name, uid } = object;
  // A printed Event or audit record is about another program.
  const others = ['involvedObject', 'regarding', 'objectRef', 'auditID'];
  if (others.some((key) => key in fields)) return false;
  // kube-rs writes the namespace behind the name.
  if ((uid && line.includes(uid)) || (namespace && hasWord(line, `${name}.${namespace}`)))
    return true;
  const held = groupsOf(context.now).flatMap(({ examples }) => examples);
  const isAmbiguous = held.some((other) => other.name === name && other.kind !== kind);
  const kindBefore = (text: string): string | undefined =>
    typeNamedBy(context, /([A-Za-z]+)(?:\.[\w.-]+)?[\s"'`/:=[({]*$/.exec(text)?.[1] ?? '')?.kind;
  return textsToSearch(context, record).some((text) => {
    const paths = textsBefore(text, `${namespace}/${name}`).map(
      (before) => kindBefore(before) ?? kindIn(record),
    );
    // A name alone needs its kind in front of it, and the namespace in the same line.
    const names = textsBefore(text, name).flatMap((before) =>
      namespace !== '' && before.endsWith(`${namespace}/`) ? [] : (kindBefore(before) ?? []),
    );
    return [...paths, ...(hasWord(text, namespace) ? names : [])].some((one) =>
      one === undefined ? !isAmbiguous : isSameKind(one, kind),
    );
  });
}

/** Returns the kind that the controller of this record reconciles (controller-runtime). */
function kindIn({ fields }: LogRecord): string | undefined {
  return stringAt(fields, 'controllerKind') ?? stringAt(fields, 'kind');
}

/** Keys that frameworks use for the object that a controller reconciles. */
const COMMON_KEY = /^(?:object|key|resource|request|req|item|obj|name)$/i;

/**
 * Returns the objects in the fields of a record, as `Widget team-1/db`; else its line. A record with objects in its fields is
 * about these: its text may mention others. They are `namespace` and `name`, `Widget: {name, namespace}` or a path; of Java in the line.
 */
function textsToSearch(context: Context, record: LogRecord): string[] {
  const entries = Object.entries(record.fields).slice(0, MAX_FIELDS);
  const found = [...entries, ['object', record.fields] as const].flatMap(([key, value]) => {
    const [namespace = '', name = ''] = ['namespace', 'name'].map((one) => stringAt(value, one));
    const path = stringAt(value) ?? `${namespace}/${name}`;
    const kind = COMMON_KEY.test(key) ? kindIn(record) : typeNamedBy(context, key)?.kind;
    // `type=application/json` is no object.
    const isMeant =
      COMMON_KEY.test(key) || kind !== undefined || isInside(context, path.split('/')[0]);
    const isPath = /^[a-z0-9][a-z0-9-]*\/[a-z0-9][a-z0-9.-]*$/.test(path);
    return isMeant && isPath ? [`${kind ?? ''} ${path}`] : [];
  });
  const line = record.line.replace(/\bname='([^']*)', namespace='([^']*)'/g, '$2/$1');
  return found.length > 0 ? found : [line];
}

/** Returns the text before each occurrence of a whole word, in terms of Kubernetes names. */
function textsBefore(text: string, word: string): string[] {
  const whole = `(?<![a-z0-9.-])${escapeForRegExp(word)}(?![a-z0-9-]|\\.[a-z0-9])`;
  const found = [...text.matchAll(new RegExp(whole, 'gi'))].slice(0, 20);
  return found.map(({ index }) => text.slice(Math.max(0, index - 100), index));
}

export function hasWord(text: string, word: string): boolean {
  return textsBefore(text, word).length > 0;
}
