import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { JsonObject } from '../../../src/base/json.ts';
import type { KindNode } from './node.ts';

const run = promisify(execFile);

/** What pods of the tests run; the folder beside this file has its source. */
type Program = 'pod' | 'agent';
const imageOf = (program: Program): string => `teardown-gate-tests/${program}:1`;

/**
 * Brings the image that pods of the tests run to a node: one static program and nothing else, built
 * here, so that nothing is pulled. Needs Go and the engine that kind works with.
 */
export async function loadPodImage(node: KindNode, program: Program = 'pod'): Promise<void> {
  const image = imageOf(program);
  const folder = await mkdtemp(join(tmpdir(), 'teardown-gate-image-'));
  try {
    const root = join(folder, 'root.tar');
    const output = join(folder, 'program');
    await run('go', ['build', '-trimpath', '-ldflags', '-s -w', '-o', output, 'main.go'], {
      cwd: join(import.meta.dirname, program),
      env: { ...process.env, CGO_ENABLED: '0', GOOS: 'linux' },
    });
    await run('tar', ['-C', folder, '-cf', root, 'program']);
    await run(node.engine, ['import', '--change', 'ENTRYPOINT ["/program"]', root, image]);
    await loadImage(node, image);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Does what `kind load docker-image` does, without having to find kind. */
export async function loadImage({ engine, name }: KindNode, image: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'teardown-gate-image-'));
  try {
    const archive = join(folder, 'image.tar');
    await run(engine, ['save', '-o', archive, image]);
    await importInto(engine, name, archive);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function importInto(engine: string, node: string, archive: string): Promise<void> {
  const file = await open(archive);
  try {
    const command = ['exec', '-i', node, 'ctr', '--namespace=k8s.io', 'images', 'import', '-'];
    const child = spawn(engine, command, { stdio: [file.fd, 'ignore', 'pipe'] });
    let words = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      words += text;
    });
    const [code] = await once(child, 'close');
    if (code !== 0) throw new Error(`${node} did not take the image: ${words}`);
  } finally {
    await file.close();
  }
}

/** A pod that really runs, on this node, whatever is wrong with it. */
export function realPodSpec(node: KindNode): JsonObject {
  return {
    nodeSelector: { 'kubernetes.io/hostname': node.name },
    tolerations: [{ operator: 'Exists' }],
    terminationGracePeriodSeconds: 1,
    containers: [{ name: 'main', image: imageOf('pod'), imagePullPolicy: 'Never' }],
  };
}
