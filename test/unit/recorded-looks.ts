import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isObject, type Json, type JsonObject } from '../../src/base/json.ts';
import { readOk } from '../../src/model/read.ts';
import type { ContentCount, ObjectFacts, Snapshot } from '../../src/model/snapshot.ts';

/**
 * What the gate saw on a real control plane: `npm run record:snapshots` writes these files and this reads
 * them. Two looks at one hang, a few seconds apart, as during a wait. Those with `from` were made in memory, from that.
 */
export interface RecordedLooks {
  scenario: string;
  title: string;
  /** Kubernetes version of the control plane. */
  version: string;
  /** What the gate must say, of a situation that is no scenario (any more): expressions are written as /text/. */
  expected?: JsonObject;
  /** Why a forecast before the deletion calls it clear. */
  beginsLater?: string;
  /** Only its time and its content are of then: two looks are compared by nothing else. */
  before: Snapshot;
  now: Snapshot;
}

/** What a forecast saw before the deletion. */
export interface RecordedForecast extends Omit<RecordedLooks, 'before'> {
  /** Since Kubernetes 1.33 pods go first. */
  isPodsFirst: boolean;
}

export const SNAPSHOTS_FOLDER = join(import.meta.dirname, '..', 'fixtures', 'snapshots');
/** What every control plane brings along (its own roles, types, APIServices) is kept once, by its hash. */
export const COMMON_FILE = join(SNAPSHOTS_FOLDER, 'common.json');

/** Elements of lists that several recordings share, by their hash. */
export type Common = Record<string, Json>;

export function readRecordedLooks(): RecordedLooks[] {
  return recordingNames()
    .filter((name) => !name.endsWith(FORECAST))
    .map(readRecordedLook);
}

/** At the end of the name of a recording. */
export const FORECAST = '.forecast';

export function readRecordedForecast(scenario: string): RecordedForecast {
  const recording = readJson(join(SNAPSHOTS_FOLDER, `${scenario}${FORECAST}.json`));
  return unfolded(recording, common()) as unknown as RecordedForecast;
}

export function recordingNames(): string[] {
  return readdirSync(SNAPSHOTS_FOLDER)
    .filter((file) => file.endsWith('.json') && file !== 'common.json')
    .sort()
    .map((file) => file.slice(0, -'.json'.length));
}

/** `id`: of the scenario, with what tells two recordings of it apart: "S4-watched", "S5@1.32.2". */
export function readRecordedLook(id: string): RecordedLooks {
  const looks = unfolded(readJson(join(SNAPSHOTS_FOLDER, `${id}.json`)), common());
  const { before, now, ...rest } = looks as unknown as RecordedLooks;
  return { ...rest, before: { ...now, ...before }, now };
}

/** The expectation of a recording, with its expressions. */
export function expectationIn({
  expected,
  scenario,
}: Pick<RecordedLooks, 'expected' | 'scenario'>) {
  if (expected === undefined) throw new Error(`nothing says what is right for ${scenario}`);
  return JSON.parse(JSON.stringify(expected), (_, value: Json) => {
    const [, source, flags] =
      (typeof value === 'string' && /^\/(.*)\/([a-z]*)$/s.exec(value)) || [];
    return source === undefined ? value : new RegExp(source, flags);
  });
}

let known: Common | undefined;

function common(): Common {
  known ??= readJson(COMMON_FILE) as Common;
  return known;
}

function readJson(file: string): JsonObject {
  return JSON.parse(readFileSync(file, 'utf8')) as JsonObject;
}

/** The hang as a forecast would have seen it: nothing is terminating yet. What was deleted since stays lost. */
export function rewound({ now }: Pick<RecordedLooks, 'now'>): Snapshot {
  const alive = <T extends ObjectFacts>(object: T): T => ({
    ...object,
    deletionTimestamp: undefined,
    deletionGracePeriodSeconds: undefined,
    lateWriters: undefined,
  });
  const undeleted = ({ total, terminating, guarded, ...count }: ContentCount): ContentCount => {
    const groups = terminating.map((group) => ({
      ...group,
      since: '',
      examples: group.examples.map(alive),
    }));
    return { ...count, total, queued: total, terminating: [], guarded: [...guarded, ...groups] };
  };
  const { baseline: _, ...rest } = now;
  const content = now.content.map(({ type, read: count }) => ({
    type,
    read: count.ok ? readOk(undeleted(count.value)) : count,
  }));
  const pods = now.pods.ok ? readOk(now.pods.value.map(alive)) : now.pods;
  const own = now.places[now.namespace.name];
  const place = own?.pods?.ok ? { ...own, pods: readOk(own.pods.value.map(alive)) } : own;
  return {
    ...rest,
    namespace: { ...now.namespace, deletionTimestamp: undefined, phase: 'Active', conditions: [] },
    content,
    pods,
    places: { ...now.places, ...(place && { [now.namespace.name]: place }) },
    forecast: { deletions: {}, present: { content, pods }, together: [] },
  };
}

export function keyOf(element: Json): string {
  return createHash('sha256').update(JSON.stringify(element)).digest('hex').slice(0, 8);
}

/** Neighbours that are common become one word: `#1f0a33c2 8be01d47`. */
export function folded(value: Json, pool: Common): Json {
  if (Array.isArray(value)) {
    const list: Json[] = [];
    for (const element of value) {
      const key = isObject(element) ? keyOf(element) : '';
      const last = list.at(-1);
      if (!(key in pool)) list.push(folded(element, pool));
      else if (isReference(last)) list[list.length - 1] = `${last} ${key}`;
      else list.push(`#${key}`);
    }
    return list;
  }
  if (!isObject(value)) return value;
  return mapValues(value, (item) => folded(item, pool));
}

export function unfolded(value: Json, pool: Common): Json {
  if (Array.isArray(value)) {
    return value.flatMap((element) =>
      isReference(element)
        ? element
            .slice(1)
            .split(' ')
            .map((key) => structuredClone(pool[key] as Json))
        : [unfolded(element, pool)],
    );
  }
  if (!isObject(value)) return value;
  return mapValues(value, (item) => unfolded(item, pool));
}

function isReference(value: Json | undefined): value is string {
  return typeof value === 'string' && /^#[0-9a-f]{8}(?: [0-9a-f]{8})*$/.test(value);
}

function mapValues(value: JsonObject, change: (item: Json) => Json): JsonObject {
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, change(item ?? null)]),
  );
}
