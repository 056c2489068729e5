import { execFileSync, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { REPOSITORY, readActionYml } from '../stub/action-yml.ts';

const DIST = join(REPOSITORY, 'dist');
const BUNDLE = join(DIST, 'index.js');
const MAX_BUNDLE_BYTES = 3_000_000;
/** The bundle refuses to run on anything older: undici needs it. */
const OLDEST_NODE = [22, 19] as const;

describe('the bundle', () => {
  let away: string;
  beforeAll(() => {
    away = mkdtempSync(join(tmpdir(), 'gate-bundle-'));
    cpSync(DIST, join(away, 'dist'), { recursive: true });
  });
  afterAll(() => rmSync(away, { recursive: true, force: true }));

  test('is tested on the Node that runs actions', () => {
    expect(process.version).toMatch(/^v24\./);
  });

  // A dynamic import that the bundler may split off becomes a second file, which is not minified.
  test('is one module with its licenses', () => {
    expect(readdirSync(DIST).sort()).toEqual(['index.js', 'licenses.txt', 'package.json']);
    expect(JSON.parse(readFileSync(join(DIST, 'package.json'), 'utf8'))).toEqual({
      type: 'module',
    });
  });

  test(`is not larger than ${MAX_BUNDLE_BYTES} bytes`, () => {
    expect(statSync(BUNDLE).size).toBeLessThanOrEqual(MAX_BUNDLE_BYTES);
  });

  test('contains everything it imports', () => {
    const source = readFileSync(BUNDLE, 'utf8');

    expect(source).not.toContain('webpackMissingModule');
    // What ncc leaves for an import that it cannot find, without failing.
    const missing = [...source.matchAll(/eval\("require"\)\("?([^")]*)/g)].map(([, name]) => name);
    expect(missing).toEqual([]);
  });

  test('is executable and starts from a folder that has no node_modules', () => {
    const text = execFileSync(process.execPath, [join(away, 'dist', 'index.js'), '--version'], {
      cwd: away,
      encoding: 'utf8',
      env: {},
    });

    expect(text).toContain(packageVersion());
    expect(statSync(BUNDLE).mode & 0o111).not.toBe(0);
    expect(readFileSync(BUNDLE, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
  });

  test('prints its usage if it is started without arguments', () => {
    const run = spawnSync(process.execPath, [BUNDLE], { encoding: 'utf8', env: {} });

    expect(run.status).toBe(3);
    expect(run.stdout).toBe('');
    expect(run.stderr).toContain('Usage\n  npx namespace-teardown-gate NAMESPACE');
  });

  test.skipIf(process.platform === 'win32')(
    'exits with 0 if the reader of its output stops early',
    () => {
      const run = spawnSync(
        '/bin/sh',
        ['-c', '{ "$0" "$1" --help; echo "exit code $?" >&2; } | true', process.execPath, BUNDLE],
        { encoding: 'utf8', env: {} },
      );

      expect(run.stderr).toBe('exit code 0\n');
    },
  );

  test.skipIf(!existsSync('/dev/full'))(
    'exits with an error if its output cannot be written',
    () => {
      const run = spawnSync(
        '/bin/sh',
        ['-c', '"$0" "$1" --help > /dev/full', process.execPath, BUNDLE],
        { encoding: 'utf8', env: {} },
      );

      expect(run.status).toBe(2);
      expect(run.stderr).toMatch(/^error: cannot write to standard output: [^\n]*ENOSPC[^\n]*\n$/);
    },
  );

  const old = findOldNode();
  test.skipIf(old === undefined)(
    old === undefined
      ? 'says in one sentence that the Node is too old (skipped: no older Node on PATH)'
      : `says in one sentence that the Node is too old (${old.version})`,
    () => {
      const run = spawnSync(old?.path ?? '', [BUNDLE], { cwd: away, encoding: 'utf8', env: {} });

      expect(run.status).not.toBe(0);
      expect(run.stdout).toBe('');
      expect(run.stderr).toMatch(/^[^\n]*needs Node [^\n]*\n$/);
      expect(run.stderr).toContain(old?.version);
    },
  );
});

describe('action.yml', () => {
  const action = readActionYml();

  test('starts the bundle on Node 24', () => {
    expect(action.runs).toEqual({ using: 'node24', main: 'dist/index.js' });
  });

  test('has a description that the Marketplace accepts', () => {
    expect(action.description.length).toBeLessThan(125);
  });
});

function packageVersion(): string {
  const text = readFileSync(join(REPOSITORY, 'package.json'), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

/** The host's own Node, where it is older than what the bundle needs. */
function findOldNode(): { path: string; version: string } | undefined {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    const path = join(folder, 'node');
    const version = spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout?.trim() ?? '';
    const [major, minor] = version.slice(1).split('.').map(Number);
    if (major === undefined || minor === undefined) continue;
    const isOld = major < OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor < OLDEST_NODE[1]);
    if (isOld) return { path, version };
  }
  return undefined;
}
