import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { REPOSITORY } from '../stub/action-yml.ts';
import { ADMIN_TOKEN, type ApiServer, startApiServer } from '../stub/api-server.ts';
import { readRecording } from '../stub/recordings.ts';
import { Bench, NAME } from './bench.ts';

/** The package as `npm pack` makes it, installed in an empty folder without a registry. */

const MAX_BYTES = 2_500_000;

const bench = new Bench();
let server: ApiServer;
let folder: string;
let bin: string;

beforeAll(async () => {
  server = await startApiServer({ recording: readRecording('S4') });
  folder = mkdtempSync(join(tmpdir(), 'gate-package-'));
  npm(REPOSITORY, 'pack', '--pack-destination', folder);
  const [tarball = ''] = readdirSync(folder);
  npm(folder, 'install', '--offline', '--no-audit', '--no-fund', join(folder, tarball));
  bin = join(folder, 'node_modules', '.bin');
}, 120_000);
afterAll(async () => {
  await server.close();
  bench.remove();
  rmSync(folder, { recursive: true, force: true });
});

describe('the npm package', () => {
  test('has all files that it needs and no others', () => {
    const text = npm(REPOSITORY, 'pack', '--dry-run', '--json');
    const [packed] = JSON.parse(text) as { unpackedSize: number; files: { path: string }[] }[];
    const roots = new Set(packed?.files.map(({ path }) => path.split('/')[0]));
    expect([...roots].sort()).toEqual([
      'LICENSE',
      'README.md',
      'deploy',
      'dist',
      'docs',
      'package.json',
      'rbac',
      'schema',
    ]);
    expect(packed?.unpackedSize).toBeLessThanOrEqual(MAX_BYTES);
    expect(
      readdirSync(join(folder, 'node_modules')).filter((name) => !name.startsWith('.')),
    ).toEqual(['namespace-teardown-gate']);
  });

  test.each<[string, string, ...string[]]>([
    // The same as npx, which some installations of npm lack.
    ['npx', 'npm', 'exec', '--offline', '--', 'namespace-teardown-gate'],
    // kubectl finds it on the PATH by this name: `kubectl teardown-gate`.
    ['a plugin of kubectl', 'kubectl-teardown_gate'],
  ])('explains a namespace as %s', async (_, command, ...args) => {
    const run = await start(command, [...args, NAME, '--now', ...login()]);
    expect(run.stderr).not.toContain('error');
    expect(run.stdout).toContain(`Namespace ${NAME}`);
    expect(run.exitCode).toBe(1);
  });
});

function login(): string[] {
  const path = bench.kubeconfig({ server: server.url, user: { token: ADMIN_TOKEN } });
  return ['--kubeconfig', path, '--context', 'recorded'];
}

function environment() {
  const path = [bin ?? '', dirname(process.execPath), process.env['PATH']].join(delimiter);
  return { PATH: path, HOME: folder ?? tmpdir() };
}

function npm(cwd: string, ...args: string[]): string {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
}

function start(command: string, args: readonly string[]) {
  const child = spawn(command, args, {
    cwd: folder,
    env: environment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const text = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (chunk: string) => {
      text[stream] += chunk;
    });
  }
  return new Promise<typeof text & { exitCode: number | null }>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (exitCode) => resolve({ exitCode, ...text }));
  });
}
