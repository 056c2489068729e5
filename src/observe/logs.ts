import { maskLogSecrets } from '../base/redact.ts';
import { objectPath, withQuery } from '../kubernetes/paths.ts';
import { POD_TYPE } from '../model/facts/metadata.ts';
import { type Read, readOk } from '../model/read.ts';
import { type LogSource, logKey, type Snapshot } from '../model/snapshot.ts';
import { type Gathered, notInspectedEntries, type Reading } from './collections.ts';

/** Limit for containers, counting each run, whose logs are read. */
export const MAX_LOGS = 40;
const TAIL_LINES = 500;
const LIMIT_BYTES = 256 * 1024;
/**
 * Time limit for one log, so that a kubelet that does not answer cannot use up the time of the examination.
 */
const LIMIT_MS = 5_000;
/** Size limit for a log from a server that ignores `limitBytes`. */
const MAX_BYTES = 2 * LIMIT_BYTES;

/** Reads the end of a log, since the deletion began. */
export async function readLog(
  source: LogSource,
  sinceTime: string | undefined,
  { api, signal }: Reading,
): Promise<Gathered<Read<string[]>>> {
  const { namespace, pod, container, isPrevious } = source;
  const path = withQuery(`${objectPath(POD_TYPE, namespace, pod)}/log`, {
    container,
    previous: isPrevious ? 'true' : undefined,
    sinceTime,
    timestamps: 'true',
    tailLines: TAIL_LINES,
    limitBytes: LIMIT_BYTES,
  });
  const got = await api.text(path, { signal, timeoutMs: LIMIT_MS, maxBytes: MAX_BYTES });
  const what = `log of ${logKey(source)}`;
  if (!got.ok) {
    const type = { group: '', resource: 'pods/log' };
    return { value: got, unread: notInspectedEntries(what, got, type, 'get') };
  }
  const value = readOk(maskLogSecrets(got.value).split(/\r?\n/).filter(Boolean));
  // The limit cuts off the newest lines, because the kubelet counts bytes from the first of the last 500
  // lines.
  if (Buffer.byteLength(got.value) < LIMIT_BYTES) return { value };
  return {
    value,
    unread: [{ what: `more of the ${what}`, reason: 'only its first 256 KB were read' }],
  };
}

/** client-go writes this when it cannot read a type (tools/cache/reflector.go). */
const CANNOT_READ = /failed to (?:list|watch)/i;

/** The name of an object in a structured line. */
const NAME = /\bname\\?"?[=:] ?\\?"?([a-z0-9.-]{1,253})/;

const lastPart = (finalizer: string): string => finalizer.slice(finalizer.lastIndexOf('/') + 1);

/**
 * Keeps the lines that mention this namespace, the UID of an object that is held in it, or an object named like the last
 * part of a finalizer, and those that say that a type cannot be read.
 */
export function keepMentions(log: Read<string[]>, snapshot: Snapshot): Read<string[]> {
  if (!log.ok) return log;
  const all = [snapshot, ...Object.values(snapshot.behind ?? {})];
  const held = all
    .flatMap(({ content }) => content)
    .flatMap(({ read }) => (read.ok ? read.value.terminating : []))
    .flatMap(({ examples }) => examples);
  const names = all.map(({ namespace }) => namespace.name);
  const uids = [...all.map(({ namespace }) => namespace), ...held].map(({ uid }) => uid);
  const words = [...names, ...uids].filter((word) => word !== '');
  const groups = new Set(held.flatMap(({ finalizers }) => finalizers.map(lastPart)));
  return readOk(
    log.value.filter(
      (line) =>
        CANNOT_READ.test(line) ||
        words.some((word) => line.includes(word)) ||
        NAME.exec(line)
          ?.slice(1)
          .some((name) => groups.has(name)),
    ),
  );
}
