import { spawnSync } from 'node:child_process';
import { cpSync, rmSync } from 'node:fs';

/**
 * tsc first, then ncc on its JavaScript: ncc cannot read TypeScript 7. The new bundle replaces the old
 * one only when it is complete, and nothing of an earlier build survives into it.
 */
const OUT = 'lib/bundle';

rmSync('lib', { recursive: true, force: true });
run('tsc', '-p', 'tsconfig.build.json');
run('ncc', 'build', 'lib/index.js', '-o', OUT, '-m', '--license', 'licenses.txt');
rmSync('dist', { recursive: true, force: true });
cpSync(OUT, 'dist', { recursive: true });

function run(command: string, ...args: string[]): void {
  // npm puts node_modules/.bin first on PATH; on Windows the commands there are .cmd files.
  const { status } = spawnSync(command, args, {
    stdio: 'inherit',
    shell: process.platform === 'win32',
  });
  if (status !== 0) process.exit(status ?? 1);
}
