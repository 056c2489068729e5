/**
 * `npm run bench`: the gate and what people use without it, side by side on a real control plane. Prints
 * Markdown, writes the results as JSON, and ends with 1 when a target is missed.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { NEWEST_VERSION } from '../test/cluster/build.ts';
import { startControlPlane } from '../test/cluster/control-plane.ts';
import { dropBundle, theBundle } from '../test/cluster/run-gate.ts';
import type { Bench } from './bench.ts';
import { readEnvironment } from './environment.ts';
import { judge, missed } from './judge.ts';
import { withFolder } from './leftovers.ts';
import { type Options, type Part, parseOptions, USAGE } from './options.ts';
import { measureExplain } from './parts/explain.ts';
import { measurePoint } from './parts/growth.ts';
import { measureLatency } from './parts/latency.ts';
import { measureLimits } from './parts/limits.ts';
import { measureBulk } from './parts/objects.ts';
import { measureStartup } from './parts/startup.ts';
import { measureSweep } from './parts/sweep.ts';
import { measureWaiting } from './parts/waiting.ts';
import { ratiosOf } from './ratios.ts';
import { renderMarkdown } from './render.ts';
import { type BenchResults, type GrowthAxis, type GrowthPoint, SOME_OBJECTS } from './results.ts';
import { createStuck, createTypes, range, STUCK, withNamespaceController } from './situations.ts';
import { findTools, IDENTITY, type Tools } from './tools.ts';

const TYPES = [0, 100, 200, 300];
const MOST_TYPES = 300;
const NAMESPACES = [1, 5, 10, 25, 50];
const OBJECTS = [0, 1_000, 10_000, 100_000];
const MOST_OBJECTS = 100_000;
/** Of the larger sweep; the smaller one has as many as the longest line of `growth`, with one object each. */
const SWEEP = { namespaces: 200, objects: 500 };

type Parts = Omit<
  BenchResults,
  'schemaVersion' | 'startedAt' | 'finishedAt' | 'mode' | 'environment'
>;

async function main(): Promise<void> {
  const options = parseOptions(process.argv.slice(2));
  if (options === 'help') return console.log(USAGE);
  // One run measures one build, whatever becomes of dist/ meanwhile.
  const bundle = await theBundle();
  try {
    await withFolder(async (bin) => measure(options, bundle, await findTools(bundle, bin)));
  } finally {
    await dropBundle();
  }
}

async function measure(options: Options, bundle: string, tools: Tools): Promise<void> {
  const startedAt = new Date().toISOString();
  const environment = readEnvironment(NEWEST_VERSION, tools.kubectlVersion);
  const measured: Parts = {};
  try {
    if (options.parts.has('startup')) measured.startup = await measureStartup(bundle);
    if (needsCluster(options.parts)) await measureOnCluster(options, tools, measured);
  } finally {
    // Also after an error: what was measured until then took long.
    await report(options, {
      schemaVersion: 1,
      startedAt,
      finishedAt: new Date().toISOString(),
      mode: options.mode,
      environment,
      ...measured,
    });
  }
}

async function report(options: Options, results: BenchResults): Promise<void> {
  await mkdir(dirname(resolve(options.json)), { recursive: true });
  const targets = judge(results);
  const judged = { ...results, ratios: ratiosOf(results), targets };
  await writeFile(options.json, `${JSON.stringify(judged, null, 2)}\n`);
  console.log(renderMarkdown(results));
  const failed = missed(targets);
  console.log(
    failed.length === 0
      ? `No target that was measured is missed. ${options.json} has the numbers.`
      : `Missed: ${failed.map(({ what }) => what).join('; ')}.`,
  );
  if (failed.length > 0) process.exitCode = 1;
}

function needsCluster(parts: ReadonlySet<Part>): boolean {
  return [...parts].some((part) => part !== 'startup');
}

async function measureOnCluster(options: Options, tools: Tools, results: Parts): Promise<void> {
  const plane = await startControlPlane({
    apiServerFlags: [
      // One file for everything: the log is read from where it was when a command began.
      '--audit-log-maxsize=100000',
      // With the default of 1, the namespace controller's delete of 100,000 objects never comes to an end
      // within the 60 s of a request, and the namespace never to its conditions.
      '--delete-collection-workers=32',
      // Off in the tests; one part measures what it refuses.
      '--enable-priority-and-fairness=true',
    ],
    say,
  });
  try {
    const kubeconfig = plane.kubeconfig(IDENTITY);
    await measureSizes(options, { plane, tools, kubeconfig, say }, results);
  } finally {
    await plane.stop();
  }
}

/** From the bare cluster to the full one; each size is made once and everybody measured on it. */
async function measureSizes(options: Options, bench: Bench, results: Parts): Promise<void> {
  const { plane } = bench;
  const { parts } = options;
  const many =
    parts.has('growth') || parts.has('sweep') ? range(Math.max(...NAMESPACES)).map(manyName) : [];
  const stuck = [STUCK, ...many].map((name) => ({ name, objects: 1 }));
  await withNamespaceController(plane, () => createStuck(plane, stuck));
  if (parts.has('latency')) results.latency = await measureLatency(bench, options.latencyRounds);
  if (parts.has('waiting')) {
    results.waiting = await measureWaiting(bench, STUCK, options.waitingSeconds);
  }
  await measureTypes(parts, bench, results);
  if (parts.has('limits')) results.limits = await measureLimits(bench, STUCK);
  if (parts.has('growth')) {
    for (const count of NAMESPACES) {
      const point = await measurePoint(bench, count, many.slice(0, count));
      addPoint(results, 'namespaces', point);
    }
  }
  if (parts.has('sweep')) {
    results.sweep = [await measureSweep(bench, many, 1, { loop: true })];
    const names = range(SWEEP.namespaces).map((index) => `bench-sweep-${index}`);
    const sizes = names.map((name) => ({ name, objects: SWEEP.objects }));
    await withNamespaceController(plane, () => createStuck(plane, sizes));
    results.sweep.push(await measureSweep(bench, names, SWEEP.objects, { loop: false }));
  }
  if (parts.has('objects')) await measureObjects(parts, bench, results);
}

async function measureTypes(parts: ReadonlySet<Part>, bench: Bench, results: Parts): Promise<void> {
  for (const [index, crds] of TYPES.entries()) {
    await createTypes(bench.plane.admin, TYPES[index - 1] ?? 0, crds);
    if (parts.has('growth')) {
      addPoint(results, 'types', await measurePoint(bench, crds, [STUCK]));
    }
    if (parts.has('explain') && (crds === 0 || crds === MOST_TYPES)) {
      await addSize(bench, results, STUCK, { crds, objects: 1 });
    }
    if (parts.has('explain') && crds === MOST_TYPES) {
      const [name, objects] = ['bench-some-objects', SOME_OBJECTS];
      await withNamespaceController(bench.plane, () =>
        createStuck(bench.plane, [{ name, objects }]),
      );
      await addSize(bench, results, name, { crds, objects });
    }
  }
}

async function measureObjects(
  parts: ReadonlySet<Part>,
  bench: Bench,
  results: Parts,
): Promise<void> {
  const sizes = OBJECTS.map((objects) => ({ name: `bench-objects-${objects}`, objects }));
  bench.say('creating the objects');
  await withNamespaceController(bench.plane, () => createStuck(bench.plane, sizes));
  for (const { name, objects } of sizes) {
    if (parts.has('growth')) {
      addPoint(results, 'objects', await measurePoint(bench, objects, [name]));
    }
    if (objects === MOST_OBJECTS) {
      results.bulk = await measureBulk(bench, name, STUCK, objects);
      if (parts.has('explain')) await addSize(bench, results, name, { crds: MOST_TYPES, objects });
    }
  }
}

async function addSize(
  bench: Bench,
  results: Parts,
  namespace: string,
  size: { crds: number; objects: number },
): Promise<void> {
  results.explain = [
    ...(results.explain ?? []),
    await measureExplain(bench, namespace, STUCK, size),
  ];
}

function addPoint(results: Parts, axis: GrowthAxis, point: GrowthPoint): void {
  results.growth = { ...results.growth, [axis]: [...(results.growth?.[axis] ?? []), point] };
}

function manyName(index: number): string {
  return `bench-many-${index}`;
}

function say(line: string): void {
  console.error(`${new Date().toISOString().slice(11, 19)} ${line}`);
}

await main();
