import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'acorn';
import { simple } from 'acorn-walk';
import MagicString from 'magic-string';

/**
 * tsc first, then ncc on its JavaScript: ncc cannot read TypeScript 7. The new bundle replaces the old
 * one only when it is complete, and nothing of an earlier build survives into it.
 */
const OUT = 'lib/bundle';

rmSync('lib', { recursive: true, force: true });
run('tsc', '-p', 'tsconfig.build.json');
copyWithoutSideEffects('@kubernetes/client-node');
for (const name of ['hpagent', 'jsonpath-plus', 'openid-client', 'socks', 'socks-proxy-agent']) {
  leaveOut(name);
}
keepOnlyTheClient('undici');
cpSync('node_modules/@actions', 'lib/node_modules/@actions', { recursive: true });
run('ncc', 'build', 'lib/index.js', '-o', OUT, '-m', '--license', 'licenses.txt');
escapeToAscii(join(OUT, 'index.js'));
compileAtOnce(join(OUT, 'index.js'));
rmSync('dist', { recursive: true, force: true });
cpSync(OUT, 'dist', { recursive: true });

/**
 * For the bundler, which looks beside what it bundles first. With this flag it leaves out what nobody imports: of
 * client-node the generated API. Measured: a bundle of 1.7 MB instead of 5.6 MB, and a start of 87 ms instead of 145 ms
 * (docs/adr/0010-official-client.md).
 */
function copyWithoutSideEffects(name: string): void {
  const [from, to] = [join('node_modules', name), join('lib', 'node_modules', name)];
  cpSync(from, to, { recursive: true, filter: (file) => !/\.(map|d\.ts)$/.test(file) });
  const manifest = join(to, 'package.json');
  const content = JSON.parse(readFileSync(manifest, 'utf8')) as object;
  writeFileSync(manifest, JSON.stringify({ ...content, sideEffects: false }));
}

/**
 * Puts an empty module in the place of a package that client-node imports for what the gate does itself or refuses:
 * proxies and auth providers. Measured: a tenth of the bundle, with the six packages that only these need.
 */
function leaveOut(name: string): void {
  const folder = join('lib', 'node_modules', name);
  mkdirSync(folder, { recursive: true });
  const manifest = { name, license: 'not in the bundle' };
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(folder, 'index.js'), 'module.exports = {};\n');
}

/**
 * The index of undici loads its WebSockets, mocks, caches and interceptors as well, of which nobody here uses any; its
 * `fetch`, by which octokit goes through a proxy, is loaded when it is used. The copies of @actions
 * find this one. Measured: 200 KB less, and a sixth of the processor's time until the first request.
 */
function keepOnlyTheClient(name: string): void {
  const to = join('lib', 'node_modules', name);
  cpSync(join('node_modules', name), to, { recursive: true });
  writeFileSync(
    join(to, 'index.js'),
    `Object.assign(require('./lib/dispatcher/dispatcher').prototype, require('./lib/api'));
exports.Agent = require('./lib/dispatcher/agent');
exports.ProxyAgent = require('./lib/dispatcher/proxy-agent');
exports.errors = require('./lib/core/errors');
Object.defineProperty(exports, 'fetch', { get: () => require('./lib/web/fetch').fetch });
`,
  );
}

/** V8 keeps a source of ASCII alone as one byte for each character. Measured: `--help` takes a tenth less. */
function escapeToAscii(file: string): void {
  const escaped = (char: string): string =>
    `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
  writeFileSync(file, readFileSync(file, 'utf8').replace(/[\u0080-\uffff]/g, escaped));
}

/**
 * Puts the function of each module in parentheses: V8 then compiles it at once, and does not read it twice. Measured: a
 * fifth of the processor's time until the first request.
 */
function compileAtOnce(file: string): void {
  const code = readFileSync(file, 'utf8');
  const script = new MagicString(code);
  simple(parse(code, { ecmaVersion: 'latest', sourceType: 'module' }), {
    Property({ key, value }) {
      if (key.type !== 'Literal' || typeof key.value !== 'number') return;
      if (value.type === 'ArrowFunctionExpression') {
        // V8 looks for `(function`. The function of a module that needs `this` is no arrow function.
        const params = value.params.map(({ start, end }) => code.slice(start, end));
        if (value.body.type !== 'BlockStatement') return;
        script.overwrite(value.start, value.body.start, `(function(${params})`);
      } else if (value.type === 'FunctionExpression') script.appendRight(value.start, '(');
      else return;
      script.appendLeft(value.end, ')');
    },
  });
  writeFileSync(file, script.toString());
}

function run(command: string, ...args: string[]): void {
  // npm puts node_modules/.bin first on PATH; on Windows the commands there are .cmd files.
  const { status } = spawnSync(command, args, {
    stdio: 'inherit',
    shell: process.platform === 'win32',
  });
  if (status !== 0) process.exit(status ?? 1);
}
