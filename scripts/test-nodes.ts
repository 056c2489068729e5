import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/**
 * Runs the bundle on the oldest Node that it supports and on the newest one. npm has Node itself as packages; they are
 * no dependencies, because each would put its own `node` into node_modules/.bin.
 */
const VERSIONS = ['22.19.0', '26'];
const TESTS = ['test/bundle/gate.test.ts'];

const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
let failed = false;
for (const version of VERSIONS) {
  const node = installed(version);
  console.log(`${version}: ${spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout?.trim()}`);
  const { status } = spawnSync(
    process.execPath,
    [join('node_modules', 'vitest', 'vitest.mjs'), 'run', ...TESTS],
    {
      stdio: 'inherit',
      env: { ...process.env, GATE_NODE: node },
    },
  );
  if (status !== 0) failed = true;
}
process.exitCode = failed ? 1 : 0;

function installed(version: string): string {
  const name = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`;
  const folder = join(cache, 'namespace-teardown-gate', `node-${version}`);
  const node = join(folder, 'node_modules', name, 'bin', 'node');
  if (!existsSync(node)) {
    // npm fails with ENOENT where the prefix does not exist.
    mkdirSync(folder, { recursive: true });
    const args = ['install', '--no-save', '--prefix', folder, `${name}@${version}`];
    const { status } = spawnSync('npm', args, { stdio: 'inherit' });
    if (status !== 0) throw new Error(`npm cannot install ${name}@${version}`);
  }
  return node;
}
