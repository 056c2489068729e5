import { maskLogSecrets } from '../base/redact.ts';
import { objectPath, withQuery } from '../kubernetes/paths.ts';
import { POD_TYPE } from '../model/facts/metadata.ts';
import { type Read, readOk, valueIn } from '../model/read.ts';
import { type LogSource, logKey, type Snapshot } from '../model/snapshot.ts';
import { type Gathered, notInspectedEntries, type Reading } from './collections.ts';

const TAIL_LINES = 500;
const LIMIT_BYTES = 256 * 1024;
/** A kubelet that does not answer must not use up the time of the examination. */
const LIMIT_MS = 5_000;

/** Reads the end of a log, since the first of these deletions began: the lines that are about them. */
export async function readLog(
  source: LogSource,
  snapshots: readonly Snapshot[],
  { api, signal }: Reading,
): Promise<Gathered<Read<string[]>>> {
  const { namespace, pod, container, isPrevious } = source;
  const [sinceTime] = snapshots.flatMap((one) => one.namespace.deletionTimestamp ?? []).sort();
  const path = withQuery(`${objectPath(POD_TYPE, namespace, pod)}/log`, {
    ...{ container, previous: isPrevious ? 'true' : undefined, sinceTime, timestamps: 'true' },
    ...{ tailLines: TAIL_LINES, limitBytes: LIMIT_BYTES },
  });
  // A server may ignore `limitBytes`.
  const limits = { signal, timeoutMs: LIMIT_MS, maxBytes: 2 * LIMIT_BYTES };
  const got = await api.text(path, limits);
  const what = `log of ${logKey(source)}`;
  if (!got.ok) {
    const type = { group: '', resource: 'pods/log' };
    return { value: got, unread: notInspectedEntries(what, got, type, 'get') };
  }
  const value = readOk(keepMentions(maskLogSecrets(got.value).split(/\r?\n/), snapshots));
  // The limit cuts off the newest lines, because the kubelet counts bytes from the first of the last 500 lines.
  if (Buffer.byteLength(got.value) < LIMIT_BYTES) return { value };
  const reason = 'only its first 256 KB were read';
  return { value, unread: [{ what: `more of the ${what}`, reason }] };
}

/** client-go writes this when it cannot read a type (tools/cache/reflector.go). */
const CANNOT_READ = /failed to (?:list|watch)/i;

export function keepMentions(lines: readonly string[], snapshots: readonly Snapshot[]): string[] {
  const held = snapshots
    .flatMap(({ content }) => content)
    .flatMap(({ read }) => valueIn(read)?.terminating ?? [])
    .flatMap(({ examples }) => examples.map(({ uid }) => uid));
  const names = snapshots.flatMap(({ namespace: { name, uid } }) => [name, uid]);
  const words = [...names, ...held].filter((word) => word !== '');
  // A Python traceback ends with the exception, of which the line in front of it says only that there is one.
  const traces = /\n\S+ Traceback \(.*(?:\n\S+ {2}.*)*\n\S+ (?=\S)/g;
  const all = lines.join('\n').replace(traces, ' ').split('\n');
  return all.filter((line) => CANNOT_READ.test(line) || words.some((word) => line.includes(word)));
}
