import {
  cpSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { readFailed, readOk } from '../src/model/read.ts';
import type { ObjectFacts, Snapshot } from '../src/model/snapshot.ts';
import { inBusyCluster, withDecoys } from '../test/unit/decoys.ts';
import {
  FORECAST,
  readRecordedForecast,
  readRecordedLook,
  recordingNames,
  rewound,
} from '../test/unit/recorded-looks.ts';
import { type Condition, installSwitch, instrument, switches } from './mutation/conditions.ts';

const USAGE = `npm run ablate                    the conditions in src/diagnose that change nothing in any recording
npm run ablate -- PATH…           in these folders or files
   --limit PERCENT                ends with 1 if more than this share is unpinned
   --sample N                     tries about N of the conditions; each day others
   --json FILE                    every condition, with the number of recordings that it changes`;

/**
 * Switches off each condition of the diagnosis, one after the other, and replays every recording: with everything
 * that was read, with one source unread and no earlier snapshot, cut short, ten minutes later, while objects are being
 * removed, after the last one was, and what is read next when nothing, and when only the collections of the cluster were
 * read. Hangs are also replayed as the forecast that saw the same cluster before the deletion, and the texts of real
 * servers in error-texts.txt are one more recording. Each is replayed beside what does not count as well, and beside
 * software that most clusters have. A condition without which every recording gives the same
 * diagnosis, forecast and lists of things to read is *unpinned*: nothing that a real cluster has shown needs it.
 */
const COPY = join('coverage', 'ablate');
/** A condition that changes this many recordings is not tried on further ones. */
const ENOUGH = 2;
/** The caches of the diagnosis. They are emptied for each attempt, which would otherwise see earlier results. */
const caches: Map<unknown, unknown>[] = [];
/** A replay that evaluates this many times the conditions of the original is ended. */
const ALLOWANCE = 30;

/** Error texts of real servers, each with what it means. */
const TEXTS = join('test', 'unit', 'golden', 'error-texts.txt');

type Texts = typeof import('../src/diagnose/error-texts.ts');
type Diagnose = typeof import('../src/diagnose/diagnose.ts');
type Wanted = typeof import('../src/diagnose/wanted.ts');
type Predict = typeof import('../src/forecast/predict.ts');
type Order = typeof import('../src/forecast/order.ts');

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    limit: { type: 'string' },
    sample: { type: 'string' },
    json: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  },
});
if (values.help) {
  console.log(USAGE);
  process.exit(0);
}
const paths = positionals.length > 0 ? positionals : ['src/diagnose'];
const conditions = instrumentedCopy();
const effects = await ablate(conditions);
report(effects);

/** Writes src to a folder of its own, with the switches in it; imports of packages are resolved from here. */
function instrumentedCopy(): Condition[] {
  rmSync(COPY, { recursive: true, force: true });
  mkdirSync(COPY, { recursive: true });
  cpSync('src', join(COPY, 'src'), { recursive: true });
  cpSync('package.json', join(COPY, 'package.json'));
  symlinkSync(join(process.cwd(), 'node_modules'), join(COPY, 'node_modules'));
  const found: Condition[] = [];
  for (const file of filesIn(paths)) {
    const { code, conditions: own } = instrument(readFileSync(file, 'utf8'), file, found.length);
    found.push(...own);
    writeFileSync(join(COPY, file), code);
  }
  return found;
}

/** Returns the TypeScript files among the paths and in the folders among them. */
function filesIn(all: readonly string[]): string[] {
  return all.flatMap((path) =>
    path.endsWith('.ts') ? path : globSync(join(path, '**/*.ts')).sort(),
  );
}

interface Effect extends Condition {
  /** How many recordings reach it. */
  reached: number;
  /** The recordings that it changes, the first few. */
  changed: string[];
}

/** One recording is in memory at a time: all of them together are gigabytes. */
async function ablate(all: readonly Condition[]): Promise<Effect[]> {
  installSwitch();
  observeCaches();
  const replay = await replayer();
  const effects = new Map(
    sampled(all).map((id) => [id, { ...all[id], reached: 0, changed: [] } as Effect]),
  );
  for (const name of [TEXTS, ...recordingNames()]) {
    const run = replay(name);
    switches.reached.clear();
    switches.decisive.clear();
    switches.budget = Number.MAX_SAFE_INTEGER;
    const expected = run();
    const budget = ALLOWANCE * (Number.MAX_SAFE_INTEGER - switches.budget);
    for (const [id, effect] of effects) if (switches.reached.has(id)) effect.reached++;
    for (const id of [...switches.decisive]) {
      const effect = effects.get(id);
      if (effect === undefined || effect.changed.length === ENOUGH) continue;
      Object.assign(switches, { off: id, budget });
      if (attempt(run) !== expected) effect.changed.push(name);
      switches.off = -1;
    }
  }
  return [...effects.values()];
}

/** Returns the numbers of the conditions that are tried: all, or every n-th, each day from another one on. */
function sampled(all: readonly Condition[]): number[] {
  const ids = [...all.keys()];
  if (values.sample === undefined) return ids;
  const step = Math.max(1, Math.round(ids.length / Number(values.sample)));
  const first = Math.floor(Date.now() / 86_400_000) % step;
  const some = ids.filter((id) => id % step === first);
  console.log(`sample: ${some.length} of ${ids.length} conditions; each day others`);
  return some;
}

/** Returns the snapshot of an identity that may not list one source of the cluster, each time another one. */
function withUnread(now: Snapshot, turn: number): Snapshot {
  const sources = Object.keys(now.cluster) as (keyof Snapshot['cluster'])[];
  const source = sources[turn % sources.length];
  if (source === undefined) return now;
  const failure = { kind: 'forbidden', status: 403, message: '403 Forbidden' } as const;
  const unread = [...now.unread, { source, what: source, reason: failure.message }];
  return { ...now, cluster: { ...now.cluster, [source]: readFailed(failure) }, unread };
}

/**
 * Returns the snapshot of a gate whose time is over before it has read single objects, and that may not read discovery,
 * nodes, and one source in all namespaces, each time another one.
 */
function cutShort(now: Snapshot, turn: number): Snapshot {
  const refused = readFailed({ kind: 'forbidden', status: 403, message: '403 Forbidden' });
  const late = readFailed({ kind: 'aborted', message: 'stopped before the answer came' });
  const all = <T extends object>(reads: T, answer: unknown): T =>
    Object.fromEntries(Object.keys(reads).map((key) => [key, answer])) as T;
  const sources = [...new Set(Object.values(now.places).flatMap(Object.keys))];
  const source = sources[turn % sources.length];
  const places = Object.entries(now.places).map(([name, place]) => [
    name,
    source !== undefined && source in place ? { ...place, [source]: refused } : place,
  ]);
  return {
    ...{ ...now, discovery: refused, nodes: all(now.nodes, refused) },
    ...{ partners: all(now.partners, late), details: all(now.details, late) },
    places: Object.fromEntries(places),
    cluster: Object.fromEntries(
      Object.entries(now.cluster).filter((_, index) => (index + turn) % 4 !== 0),
    ),
  };
}

/**
 * Returns an earlier snapshot of a deletion that goes on: since then one object of each type, or one finalizer of every
 * object in every second group, was removed.
 */
function busier(now: Snapshot): Snapshot {
  let groups = 0;
  const content = now.content.map(({ type, read }) => {
    if (!read.ok) return { type, read };
    const terminating = read.value.terminating.map((group) =>
      groups++ % 2 === 0
        ? { ...group, count: group.count + 1 }
        : {
            ...group,
            examples: group.examples.map((object) => ({
              ...object,
              finalizers: [...object.finalizers, 'example.com/removed'],
            })),
          },
    );
    return { type, read: readOk({ ...read.value, total: read.value.total + 1, terminating }) };
  });
  return { ...now, content, takenAt: new Date(Date.parse(now.takenAt) - 30_000).toISOString() };
}

/** Returns the namespace just after its last object was deleted, with the conditions of the hang. */
function emptied(now: Snapshot): Snapshot {
  const nothing = { total: 0, queued: 0, terminating: [], guarded: [] };
  const content = now.content.map(({ type }) => ({ type, read: readOk(nothing) }));
  return { ...now, content, pods: readOk([]), unread: [] };
}

/** Returns the hang as it would be found ten minutes later, with the same Leases renewed. */
function later(now: Snapshot): Snapshot {
  const { leases } = now.cluster;
  const plus = (time: string): string => new Date(Date.parse(time) + 600_000).toISOString();
  const renewed = leases?.ok
    ? readOk(
        leases.value.map((one) => ({
          ...one,
          ...(one.renewTime && { renewTime: plus(one.renewTime) }),
        })),
      )
    : leases;
  return {
    ...{ ...now, takenAt: plus(now.takenAt) },
    cluster: { ...now.cluster, ...(renewed && { leases: renewed }) },
  };
}

/** Returns the states in which the gate decides what to read next, before it has read everything. */
function earlierRounds(now: Snapshot): Snapshot[] {
  const none = { nodes: {}, definitions: {}, details: {}, partners: {}, trials: {} };
  const collections = { ...now, ...none, unread: [] };
  return [{ ...collections, cluster: {}, places: {} }, collections];
}

/** Gives the modules that are loaded from now on caches that can be emptied. */
function observeCaches(): void {
  globalThis.WeakMap = class extends Map<WeakKey, unknown> {
    constructor() {
      super();
      caches.push(this);
    }
  } as unknown as typeof WeakMap;
}

/** An exception is a change as well. */
function attempt(run: () => string): string {
  for (const cache of caches) cache.clear();
  try {
    return run();
  } catch (error) {
    return String(error);
  }
}

/** The object, and what is like it but for its kind, its name or its marks. */
function alike(object: ObjectFacts): ObjectFacts[] {
  const bare = { ...object, labels: {}, annotations: {}, allAnnotations: {} };
  const { name } = object;
  return [
    ...[object, { ...object, name: `${name}-2` }, { ...bare, name: 'bare' }],
    ...[object, { ...object, name: `${name}-2` }].flatMap((one) => [
      ...[
        { ...one, apiVersion: 'v1', kind: 'Secret' },
        { ...one, apiVersion: 'v1', kind: 'Service' },
      ],
      { ...one, apiVersion: 'example.com/v1', kind: 'Secret' },
    ]),
  ];
}

/** Also what the reads that are wanted look for: which objects of the recording, and which that are like them. */
function answersOf(answers: unknown, now: Snapshot): string {
  const objects = [
    ...now.content
      .flatMap(({ read }) => (read.ok ? [...read.value.terminating, ...read.value.guarded] : []))
      .flatMap(({ examples }) => examples),
    ...Object.values(now.forecast?.samples ?? {}).flatMap(({ sample }) => sample ?? []),
  ];
  return JSON.stringify(answers, (_, one) =>
    typeof one === 'function' ? objects.flatMap(alike).map(one) : one,
  );
}

/** Returns what reads a recording and gives the function that replays it with the instrumented code. */
async function replayer(): Promise<(recording: string) => () => string> {
  const load = (file: string): Promise<unknown> => import(join(process.cwd(), COPY, 'src', file));
  const { classifyErrorText } = (await load('diagnose/error-texts.ts')) as Texts;
  const { diagnose } = (await load('diagnose/diagnose.ts')) as Diagnose;
  const { wantedFor } = (await load('diagnose/wanted.ts')) as Wanted;
  const { basisOf, foresee, predict } = (await load('forecast/predict.ts')) as Predict;
  const { orderOf } = (await load('forecast/order.ts')) as Order;
  let turn = 0;
  const replayForecast = (now: Snapshot, isPodsFirst: boolean): (() => string) => {
    const blind = withUnread(now, turn++);
    const rounds = [now, blind, ...earlierRounds(now)];
    return () => {
      const foreseen = foresee(now, isPodsFirst);
      const answers = [
        [foreseen, foresee(blind, isPodsFirst)],
        [basisOf(now, foreseen), orderOf(now)],
        rounds.map((round) => wantedFor(predict(round))),
      ];
      return answersOf(answers, now);
    };
  };
  return (recording) => {
    if (recording === TEXTS) {
      const texts = readFileSync(TEXTS, 'utf8')
        .split('\n')
        .filter((line) => /^[^#=]/.test(line));
      const all = `Failed to delete all resource types, ${texts.length} remaining: ${texts.toSorted().join(', ')}`;
      return () => JSON.stringify([...texts, all].map(classifyErrorText));
    }
    if (recording.endsWith(FORECAST)) {
      const { now, isPodsFirst } = readRecordedForecast(recording.slice(0, -FORECAST.length));
      return replayForecast(now, isPodsFirst);
    }
    const { now, before } = readRecordedLook(recording);
    const foresight = replayForecast(rewound({ now }), false);
    const neighbours = [withDecoys(now), inBusyCluster(now)].map((one) => ({
      now: one,
      ahead: rewound({ now: one }),
    }));
    const cut = cutShort(now, turn);
    const blind = withUnread(now, turn++);
    const rounds = earlierRounds(now);
    const [old, busy, empty] = [later(now), busier(now), emptied(now)];
    return () =>
      JSON.stringify([
        [diagnose(now, before), wantedFor(now, before)],
        // A permission that is missing, and a gate that looks only once.
        [diagnose(blind), wantedFor(blind)],
        [diagnose(cut), wantedFor(cut), diagnose(old), diagnose(now, busy), diagnose(empty)],
        rounds.map((round) => wantedFor(round)),
        neighbours.map((one) => [diagnose(one.now), foresee(one.ahead, false)]),
        foresight(),
      ]);
  };
}

function report(all: readonly Effect[]): void {
  const unpinned = all.filter(({ changed }) => changed.length === 0);
  const single = all.filter(({ changed }) => changed.length === 1);
  let file = '';
  for (const one of unpinned) {
    if (one.file !== file) console.log(one.file);
    file = one.file;
    const reach = one.reached === 0 ? 'not reached' : `reached by ${one.reached}`;
    console.log(`  ${one.line} ${one.inside}, ${one.kind}, ${reach}: ${one.text.slice(0, 100)}`);
  }
  const percent = (part: number): string =>
    `${((100 * part) / Math.max(1, all.length)).toFixed(1)} %`;
  console.log(
    `${paths.join(', ')}: ${all.length} conditions, ${unpinned.length} (${percent(unpinned.length)}) change no recording, ${single.length} (${percent(single.length)}) change exactly one`,
  );
  if (values.json !== undefined) writeFileSync(values.json, JSON.stringify(all, null, 1));
  const share = (100 * unpinned.length) / Math.max(1, all.length);
  if (values.limit !== undefined && share > Number(values.limit)) {
    console.log(`more than ${values.limit} % are unpinned`);
    process.exitCode = 1;
  }
}
