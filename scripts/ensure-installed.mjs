// node scripts/ensure-installed.mjs [SCRIPT [ARGUMENT…]]
//
// Installs the dependencies where they are missing or older than the lock file, then runs SCRIPT on
// the Node 24 among them. Plain JavaScript, for whatever Node the host has. That it starts SCRIPT
// itself is on purpose: in `node this.mjs && node script.ts` the shell (dash at least) remembers
// where it found the first `node`, so on a fresh clone the second would be the host's as well.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const lockFile = join(root, 'package-lock.json');
const installed = join(root, 'node_modules', '.package-lock.json');
const projectNode = join(root, 'node_modules', 'node', 'bin', 'node');

const major = Number(process.versions.node.split('.')[0]);
if (major < 20) {
  fail(
    `this needs Node 20 or later, to install a Node 24 of its own; it runs on ${process.version}`,
  );
}
if (!isCurrent()) install();
// With "ignore-scripts" npm leaves the binary out without a word.
const version = spawnSync(projectNode, ['--version'], { encoding: 'utf8' });
if (!version.stdout?.startsWith('v24.')) {
  fail(
    'node_modules has no Node 24: npm did not run the install script of the package "node"; run: npm ci --ignore-scripts=false',
  );
}
const [script, ...args] = process.argv.slice(2);
if (script !== undefined) run(script, args);

function isCurrent() {
  return existsSync(installed) && statSync(installed).mtimeMs >= statSync(lockFile).mtimeMs;
}

function install() {
  console.log('Installing the dependencies (npm ci), about half a minute …');
  // npm says where it is; a bare "npm" would be npm.cmd on Windows, which needs a shell.
  const npm = process.env['npm_execpath'];
  const [command, ...before] = npm === undefined ? ['npm'] : [process.execPath, npm];
  const ci = spawnSync(command, [...before, 'ci', '--loglevel=error', '--no-progress'], {
    cwd: root,
    encoding: 'utf8',
  });
  if (ci.status !== 0) {
    fail(`npm ci did not work:\n${ci.error?.message ?? `${ci.stdout}${ci.stderr}`}`);
  }
}

/** Ctrl-C reaches the script by itself; this process only has to outlive it. */
function run(path, args) {
  const child = spawn(projectNode, [path, ...args], { stdio: 'inherit' });
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  child.on('close', (code, signal) => {
    process.exitCode = code ?? (signal === 'SIGINT' ? 130 : 1);
  });
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
