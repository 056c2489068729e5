import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Client } from '../client.ts';
import { findKindNode, type KindNode } from './node.ts';
import { loadImage } from './pod-image.ts';

const run = promisify(execFile);

const REPOSITORY = join(import.meta.dirname, '..', '..', '..');
const NODE = join(REPOSITORY, 'node_modules', 'node', 'bin', 'node');
/** Node and the libraries of this machine that it is linked to: nothing is pulled. */
const BASE = 'teardown-gate-tests/node:1';
/** The name alone: the manifests have the tag. */
export const GATE_IMAGE = 'teardown-gate-tests/gate';

/** Returns why the image cannot be built and loaded from here; undefined when it can. */
export async function whyNoGateImage(client: Client): Promise<string | undefined> {
  const node = await findKindNode(client);
  if (!node) return 'no node here is a container of kind';
  const needed = [
    [node.engine, 'version'],
    ['kubectl', 'version', '--client'],
    ['ldd', NODE],
    ['tar', '--version'],
  ];
  for (const [command = '', ...args] of needed) {
    const failed = await run(command, args).then(
      () => false,
      () => true,
    );
    if (failed) return `"${[command, ...args].join(' ')}" fails here`;
  }
  return undefined;
}

/** Builds the image by the Dockerfile of this repository, and brings it to the node. */
export async function loadGateImage(node: KindNode, tag: string): Promise<void> {
  const { engine } = node;
  await makeBase(engine);
  const args = { BASE, VERSION: tag, SOURCE: 'https://example.com/source', REVISION: 'abc' };
  const options = Object.entries(args).flatMap(([name, value]) => [
    '--build-arg',
    `${name}=${value}`,
  ]);
  await run(engine, ['build', ...options, '--tag', `${GATE_IMAGE}:${tag}`, REPOSITORY]);
  await loadImage(node, `${GATE_IMAGE}:${tag}`);
}

async function makeBase(engine: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'teardown-gate-base-'));
  try {
    const { stdout } = await run('ldd', [NODE]);
    const libraries = [...stdout.matchAll(/(\/\S+) \(0x/g)].map(([, path = '']) => path);
    const root = join(folder, 'root');
    for (const [from, to] of [
      [NODE, '/usr/local/bin/node'],
      ...libraries.map((path) => [path, path]),
    ] as const) {
      await mkdir(dirname(join(root, to)), { recursive: true });
      await copyFile(from, join(root, to));
    }
    const archive = join(folder, 'root.tar');
    await run('tar', ['-C', root, '-cf', archive, '.']);
    await run(engine, ['import', '--change', 'ENV PATH=/usr/local/bin', archive, BASE]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
