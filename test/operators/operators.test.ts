import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { KubeObject } from '../cluster/client.ts';
import { type Cluster, clusterFor } from '../cluster/clusters.ts';
import { dropBundle, theBundle } from '../cluster/run-gate.ts';
import { World } from '../cluster/world.ts';
import { adapted, Installation, imageName } from './bed.ts';
import { type Built, buildProduct, buildTool } from './build.ts';
import { startKubelet } from './kubelet.ts';
import { Sources } from './manifests.ts';
import type { Product } from './product.ts';
import { bystander, isTried, PRODUCTS } from './products.ts';
import { environmentOf, type Row, show, situationsOf } from './situations.ts';

/** Real operators, at work and broken, and what the gate says of them. */

/** Where nobody's defaults look, and what nobody calls it. */
const ELSEWHERE = { namespace: 'platform', name: 'core-7' };
const RESULTS = process.env['OPERATORS_RESULTS'] ?? 'coverage/operators';
const MATRIX = `${RESULTS}.md`;
const LOGS = `${RESULTS}-logs`;
const rows: Row[] = [];
const built = new Map<Product, Built>();
const unbuilt = new Map<Product, string>();
const tried = PRODUCTS.filter((product) => isTried(product));

let render = '';
for (const product of tried) {
  try {
    render = await buildTool('render', console.log);
    built.set(product, await buildProduct(product, console.log));
  } catch (error) {
    const lines = error instanceof Error && 'stderr' in error ? String(error.stderr) : '';
    const why = lines.trim() || (error instanceof Error ? error.message : String(error));
    unbuilt.set(product, why.split('\n').at(-1) ?? '');
  }
}

const installations = new Map<Product, Installation>();
let cluster: Cluster;
let world: World;

beforeAll(async () => {
  await theBundle();
  cluster = await clusterFor({});
  world = new World({ ...cluster, namespace: 'none' });
  const folder = await mkdtemp(join(tmpdir(), 'teardown-gate-kubelet-'));
  await rm(LOGS, { recursive: true, force: true });
  await mkdir(LOGS, { recursive: true });
  await startKubelet(world, { node: 'node-1', folder, logs: LOGS, entryPoint });
  for (const product of built.keys()) {
    const installed = await installation(product, placeFor(product, ''));
    installations.set(product, installed);
    await installed.install();
  }
});
afterAll(async () => {
  await world?.end();
  await cluster?.stop();
  await dropBundle();
  await writeMatrix();
});

describe.concurrent('each on its own', () => tried.forEach(declare));

function declare(product: Product): void {
  describe(product.name, () => {
    for (const [name, situation] of situationsOf(product)) {
      const title = `${product.name}: ${name}`;
      const reason = unbuilt.get(product);
      if (reason !== undefined) {
        test.skip(`${title} (skipped: ${reason})`);
        continue;
      }
      test(title, { concurrent: false }, async () => {
        const installed = await installedAt(product, placeFor(product, name));
        const innocents = [...installations.values()]
          .filter((one) => one.product !== product)
          .flatMap(({ names }) => names);
        innocents.push(bystander(product).name);
        const row = await show(name, situation, installed, world, innocents);
        rows.push(row);
        if (row.problems.length > 0) expect.fail([...row.problems, '---', ...row.said].join('\n'));
      });
    }
  });
}

/** Where it has been moved to, there is also somebody with the same rights, who has nothing to do with it. */
async function installedAt(
  product: Product,
  place: { namespace: string; name: string },
): Promise<Installation> {
  const installed = installations.get(product);
  if (installed === undefined) throw new Error('it is not installed');
  if (installed.namespace === place.namespace) return installed;
  await installed.uninstall();
  for (const object of bystander(product).objects) await world.ensure(object);
  const moved = await installation(product, place);
  installations.set(product, moved);
  await moved.install();
  return moved;
}

function placeFor(product: Product, situation: string): { namespace: string; name: string } {
  if (situation.startsWith('somewhere else')) {
    return { ...ELSEWHERE, name: `${ELSEWHERE.name}-${PRODUCTS.indexOf(product)}` };
  }
  const { namespace, owner } = product;
  const isInside = situation.startsWith('in the environment');
  return { namespace: isInside ? environmentOf(product, situation) : namespace, name: owner };
}

async function installation(
  product: Product,
  place: { namespace: string; name: string },
): Promise<Installation> {
  const programs = built.get(product);
  if (programs === undefined) throw new Error(`${product.name} is not built`);
  const { namespace, name } = place;
  const sources = new Sources(programs, render);
  const objects = await product.manifests(sources, namespace);
  if (namespace !== 'kube-system' && !objects.some(({ kind }) => kind === 'Namespace')) {
    objects.unshift({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  }
  const adjusted = renamed(await adapted(product, objects), product, name);
  return new Installation(world, product, place, adjusted);
}

function renamed(objects: KubeObject[], { owner }: Product, name: string): KubeObject[] {
  return objects.map((object) =>
    object.kind === 'Deployment' && object.metadata.name === owner
      ? { ...object, metadata: { ...object.metadata, name } }
      : object,
  );
}

function entryPoint(image: string): readonly string[] | undefined {
  for (const [product, programs] of built) {
    const [program, ...args] = product.images[imageName(image)] ?? [];
    if (program !== undefined) return [programs.program(program), ...args];
  }
  return undefined;
}

async function writeMatrix(): Promise<void> {
  const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
  const lines = [
    '| operator | situation | outcome | what the gate said | what was done | untrue |',
    '|---|---|---|---|---|---|',
    ...rows.map(
      ({ operator, situation, outcome, said, remedy, problems }) =>
        `| ${operator} | ${situation} | ${outcome} | ${said.map(cell).join('<br>')} | ${cell(remedy)} | ${problems.map(cell).join('<br>')} |`,
    ),
  ];
  await mkdir('coverage', { recursive: true });
  await writeFile(MATRIX, `${lines.join('\n')}\n`);
}
