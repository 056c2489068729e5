import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { stringAt } from '../../src/base/json.ts';
import { cached } from '../cluster/build.ts';
import type { Product } from './product.ts';

const run = promisify(execFile);

const MODULES = join(import.meta.dirname, 'modules');
/** What a module of `modules/` was built into. */
export interface Built {
  /** Path of a program. */
  program(name: string): string;
  /** Where the files of a Go module are that this one requires: manifests come from there. */
  sources(path: string): Promise<string>;
}

/** A tool of these tests. */
export async function buildTool(name: string, say?: (line: string) => void): Promise<string> {
  return (await build(name, { [name]: '.' }, [], say)).program(name);
}

/**
 * Builds the programs of a product, by the name that each has in its image: clients that name no field
 * manager are known by it. Kept in the user's cache folder.
 */
export async function buildProduct(
  { module, programs }: Pick<Product, 'module' | 'programs'>,
  say?: (line: string) => void,
): Promise<Built> {
  return build(module, programs, [`-overlay=${await hostnameOverlay()}`], say);
}

async function build(
  module: string,
  programs: Product['programs'],
  flags: readonly string[],
  say: (line: string) => void = () => {},
): Promise<Built> {
  const name = join('operators', `${module}-${await hashOf(module, programs)}`);
  const folder = await cached(name, async (unfinished) => {
    say(`building ${module}: minutes the first time, then cached`);
    await cp(join(MODULES, module), join(unfinished, 'module'), { recursive: true });
    for (const [program, path] of Object.entries(programs)) {
      const to = join(unfinished, 'bin', program);
      await goBuild(join(unfinished, 'module'), [...flags, '-o', to, path]);
      await lookBeside(to);
    }
  });
  return {
    program: (name) => join(folder, 'bin', name),
    sources: (path) => sourcesOf(join(folder, 'module'), path),
  };
}

async function goBuild(cwd: string, args: readonly string[]): Promise<void> {
  await run('go', ['build', '-trimpath', '-ldflags=-s -w', ...args], {
    cwd,
    // What else a product needs follows from its own go.mod, and is checked against the checksum database.
    env: { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-mod=mod' },
    maxBuffer: 64 * 1024 * 1024,
  });
}

async function sourcesOf(cwd: string, path: string): Promise<string> {
  const { stdout } = await run('go', ['mod', 'download', '-json', path], { cwd });
  const folder = stringAt(JSON.parse(stdout), 'Dir');
  if (folder === undefined) throw new Error(`the module ${path} has no folder`);
  return folder;
}

/**
 * A container's host name is the name of its pod, and stands in Leases and Events. These programs run
 * without containers: they take it from the variable that holds it in a container, too.
 */
async function hostnameOverlay(): Promise<string> {
  const { stdout } = await run('go', ['env', 'GOROOT']);
  const original = join(stdout.trim(), 'src', 'os', 'sys.go');
  const text = await readFile(original, 'utf8');
  const asked = 'return hostname()';
  if (!text.includes(asked)) throw new Error(`${original} does not say "${asked}"`);
  const told = `if pod := Getenv("HOSTNAME"); pod != "" {\n\t\treturn pod, nil\n\t}\n\t${asked}`;
  // By content, so that the compiler's cache holds from one run to the next.
  const name = join('operators', `overlay-${digest(original + text)}`);
  const folder = await cached(name, async (to) => {
    await mkdir(to, { recursive: true });
    await writeFile(join(to, 'sys.go'), text.replace(asked, told));
  });
  const overlay = join(folder, 'overlay.json');
  const Replace = { [original]: join(folder, 'sys.go') };
  await writeFile(overlay, JSON.stringify({ Replace }));
  return overlay;
}

/**
 * A container's namespace stands in a file, which many programs read and no flag replaces. They read it from the
 * folder that they are started in; the text must not become longer.
 */
async function lookBeside(program: string): Promise<void> {
  const path = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';
  const beside = 'serviceaccount/namespace';
  const told = './'.padEnd(path.length - beside.length, '/') + beside;
  const bytes = await readFile(program);
  for (let at = bytes.indexOf(path); at >= 0; at = bytes.indexOf(path, at)) bytes.write(told, at);
  await writeFile(program, bytes);
}

async function hashOf(module: string, programs: object): Promise<string> {
  const folder = join(MODULES, module);
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(folder, join(parentPath, name)))
    .sort();
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')));
  return digest(JSON.stringify([files, texts, programs]));
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}
