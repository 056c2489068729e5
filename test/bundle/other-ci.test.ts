import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { REPOSITORY } from '../stub/action-yml.ts';
import { ADMIN_TOKEN, type ApiServer, startApiServer } from '../stub/api-server.ts';
import { readRecording } from '../stub/recordings.ts';
import { Bench, NAME } from './bench.ts';

/** The examples for other CI servers: their scripts, run by a shell against a namespace that hangs. */

const bench = new Bench();
let server: ApiServer;
beforeAll(async () => {
  server = await startApiServer({ recording: readRecording('S4') });
  const program = join(REPOSITORY, 'dist', 'index.js');
  // In the place of the npm registry: the package is there already.
  bench.file(`#!/bin/sh\nshift 2\nexec '${process.execPath}' '${program}' "$@"\n`, {
    name: 'npx',
    mode: 0o755,
  });
});
afterAll(async () => {
  await server.close();
  bench.remove();
});

/** The Node of this test is first: that of the machine may be too old for what starts `env node`. */
const PATH = [dirname(process.execPath), process.env['PATH']].join(delimiter);

/** Runs the lines as a CI server does: in an empty folder, until one fails. */
async function run(lines: readonly string[], variables: Record<string, string>, cwd = folder()) {
  const child = spawn('sh', ['-e', '-c', lines.join('\n').replaceAll('10m', '1s')], {
    cwd,
    env: {
      PATH: [bench.folder, PATH].join(delimiter),
      KUBECONFIG: bench.kubeconfig({ server: server.url, user: { token: ADMIN_TOKEN } }),
      ...variables,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const [stderr, [exitCode]] = await Promise.all([text(child.stderr), once(child, 'close')]);
  return { exitCode, stderr, cwd };
}

const folder = (): string => mkdtempSync(join(bench.folder, 'job-'));

const page = readFileSync(join(REPOSITORY, 'docs', 'other-ci.md'), 'utf8');
test.each([
  { server: 'Jenkins', line: /^ *sh '(npx [^']*)'$/m },
  { server: 'Azure Pipelines', line: /^ *- script: (npx .*)$/m },
])('the example for $server fails, with a report, while the namespace hangs', async ({ line }) => {
  const script = line.exec(page)?.[1] ?? '';
  const { exitCode, stderr, cwd } = await run([script], { PREVIEW: NAME });
  expect({ exitCode, stderr }).toEqual({
    exitCode: 1,
    stderr: expect.not.stringContaining('error'),
  });
  expect(readFileSync(join(cwd, 'report', 'report.xml'), 'utf8')).toContain('<failure');
});
