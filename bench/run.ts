/**
 * `npm run bench`: the gate and what people use without it, side by side on a real control plane. Prints
 * Markdown, writes the results as JSON, and ends with 1 when a target is missed.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { NEWEST_VERSION } from '../test/cluster/build.ts';
import { type ControlPlane, startControlPlane } from '../test/cluster/control-plane.ts';
import { dropBundle, theBundle } from '../test/cluster/run-gate.ts';
import type { Bench } from './bench.ts';
import { readEnvironment } from './environment.ts';
import { judge, missed } from './judge.ts';
import { type Options, type Part, parseOptions, USAGE } from './options.ts';
import { measureExplain } from './parts/explain.ts';
import { measurePoint } from './parts/growth.ts';
import { measureLatency } from './parts/latency.ts';
import { measureLimits } from './parts/limits.ts';
import { measureBulk } from './parts/objects.ts';
import { measureStartup } from './parts/startup.ts';
import { measureWaiting } from './parts/waiting.ts';
import { renderMarkdown } from './render.ts';
import type { BenchResults, GrowthPoint } from './results.ts';
import { createStuck, createTypes, range, STUCK, withNamespaceController } from './situations.ts';
import { findTools, IDENTITY } from './tools.ts';

const TYPES = [0, 100, 200, 300];
const NAMESPACES = [1, 5, 10, 25, 50];
const OBJECTS = [0, 1_000, 10_000, 100_000];
const MOST_OBJECTS = 100_000;

type Parts = Omit<
  BenchResults,
  'schemaVersion' | 'startedAt' | 'finishedAt' | 'mode' | 'environment'
>;

async function main(): Promise<void> {
  const options = parseOptions(process.argv.slice(2));
  if (options === 'help') return console.log(USAGE);
  const startedAt = new Date().toISOString();
  const bundle = await theBundle();
  const tools = await findTools(bundle);
  try {
    const environment = readEnvironment(NEWEST_VERSION, tools.kubectlVersion);
    const startup = options.parts.has('startup') ? { startup: await measureStartup(bundle) } : {};
    const onCluster = needsCluster(options.parts)
      ? await measureOnCluster(options, (plane) => ({
          plane,
          tools,
          kubeconfig: plane.kubeconfig(IDENTITY),
          say,
        }))
      : {};
    const results: BenchResults = {
      schemaVersion: 1,
      startedAt,
      finishedAt: new Date().toISOString(),
      mode: options.mode,
      environment,
      ...startup,
      ...onCluster,
    };
    await mkdir(dirname(resolve(options.json)), { recursive: true });
    await writeFile(options.json, `${JSON.stringify(results, null, 2)}\n`);
    console.log(renderMarkdown(results));
    if (missed(judge(results)).length > 0) process.exitCode = 1;
  } finally {
    await Promise.all([tools.close(), dropBundle()]);
  }
}

function needsCluster(parts: ReadonlySet<Part>): boolean {
  return [...parts].some((part) => part !== 'startup');
}

async function measureOnCluster(
  options: Options,
  benchOn: (plane: ControlPlane) => Bench,
): Promise<Parts> {
  const plane = await startControlPlane({
    // One file for everything: the log is read from where it was when a command began.
    apiServerFlags: ['--audit-log-maxsize=100000'],
    say,
  });
  try {
    return await measureSizes(options, benchOn(plane));
  } finally {
    await plane.stop();
  }
}

/** From the bare cluster to the full one; each size is made once and everybody measured on it. */
async function measureSizes({ parts, ...options }: Options, bench: Bench): Promise<Parts> {
  const { plane } = bench;
  const results: Parts = {};
  const types: GrowthPoint[] = [];
  const many = parts.has('growth') ? range(Math.max(...NAMESPACES)).map(manyName) : [];
  await withNamespaceController(plane, () =>
    createStuck(
      plane,
      [STUCK, ...many].map((name) => ({ name, objects: 1 })),
    ),
  );
  if (parts.has('latency')) results.latency = await measureLatency(bench, options.latencyRounds);
  if (parts.has('waiting')) {
    results.waiting = await measureWaiting(bench, STUCK, options.waitingSeconds);
  }
  const explain = [];
  for (const [index, crds] of TYPES.entries()) {
    const isEnd = crds === 0 || crds === TYPES.at(-1);
    await createTypes(plane.admin, TYPES[index - 1] ?? 0, crds);
    if (parts.has('growth')) types.push(await measurePoint(bench, crds, [STUCK]));
    if (parts.has('explain') && isEnd) {
      explain.push(await measureExplain(bench, STUCK, { crds, objects: 1 }));
    }
  }
  if (parts.has('limits')) results.limits = await measureLimits(bench, STUCK);
  if (parts.has('growth')) {
    const namespaces: GrowthPoint[] = [];
    for (const count of NAMESPACES) {
      namespaces.push(await measurePoint(bench, count, many.slice(0, count)));
    }
    results.growth = { types, namespaces };
  }
  if (parts.has('objects')) {
    const sizes = OBJECTS.map((objects) => ({ name: objectsName(objects), objects }));
    bench.say('creating the objects');
    await withNamespaceController(plane, () => createStuck(plane, sizes));
    const objects: GrowthPoint[] = [];
    for (const { name, objects: at } of sizes) {
      objects.push(await measurePoint(bench, at, [name]));
    }
    results.growth = { ...results.growth, objects };
    const most = objectsName(MOST_OBJECTS);
    results.bulk = await measureBulk(bench, most, STUCK, MOST_OBJECTS);
    const size = { crds: TYPES.at(-1) ?? 0, objects: MOST_OBJECTS };
    explain.push(await measureExplain(bench, most, size));
  }
  if (explain.length > 0) results.explain = explain;
  return results;
}

function manyName(index: number): string {
  return `bench-many-${index}`;
}

function objectsName(objects: number): string {
  return `bench-objects-${objects}`;
}

function say(line: string): void {
  console.error(`${new Date().toISOString().slice(11, 19)} ${line}`);
}

await main();
