import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { delimiter, dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { load } from 'js-yaml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { REPOSITORY } from '../stub/action-yml.ts';
import { ADMIN_TOKEN, type ApiServer, startApiServer } from '../stub/api-server.ts';
import { readRecording } from '../stub/recordings.ts';
import { Bench, NAME } from './bench.ts';

/**
 * The examples for other CI servers: their scripts, run by a shell against a namespace that hangs; their form, judged by
 * the program of the server.
 */

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

const missing = ['gitlab-ci-local', 'curl', 'git'].filter(
  (tool) => spawnSync(tool, ['--version'], { env: { ...process.env, PATH } }).status !== 0,
);
const title = `the component for GitLab${missing.length === 0 ? '' : ` (skipped: there is no ${missing.join(', ')})`}`;

describe.skipIf(missing.length > 0)(title, () => {
  test('fulfils the schema of GitLab, and its job posts the report as a note', async () => {
    const project = folder();
    copyFileSync(
      join(REPOSITORY, 'deploy', 'gitlab', 'namespace-teardown.yml'),
      join(project, 'namespace-teardown.yml'),
    );
    const [include] = page.match(/^include:\n(?:[ -].*\n)+/m) ?? [];
    writeFileSync(
      join(project, '.gitlab-ci.yml'),
      include?.replace(/namespace: .*/, `namespace: ${NAME}`) ?? '',
    );
    for (const command of ['init --quiet', 'remote add origin git@git.example:o/r.git', 'add .']) {
      execFileSync('git', command.split(' '), { cwd: project });
    }
    const expanded = execFileSync('gitlab-ci-local', ['--preview'], {
      cwd: project,
      env: { ...process.env, PATH },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const { 'stop-review': job } = load(expanded) as Record<
      string,
      { script: string[]; after_script: string[]; variables: Record<string, string> }
    >;
    expect(job?.variables['PREVIEW']).toBe(NAME);

    const notes: string[] = [];
    const host = createServer(async (request, response) => {
      const token = request.headers['private-token'];
      notes.push(`${request.method} ${request.url} ${token} ${await text(request)}`);
      response.end();
    });
    await once(host.listen(0, '127.0.0.1'), 'listening');
    const variables = {
      ...job?.variables,
      GITLAB_TOKEN: 'secret',
      CI_API_V4_URL: `http://127.0.0.1:${(host.address() as AddressInfo).port}/api/v4`,
      CI_PROJECT_ID: '12',
      CI_MERGE_REQUEST_IID: '7',
    };
    const { exitCode, cwd } = await run(job?.script ?? [], variables);
    const after = await run(job?.after_script ?? [], variables, cwd);
    host.close();

    expect([exitCode, after.exitCode]).toEqual([1, 0]);
    expect(existsSync(join(cwd, 'report', 'report.xml'))).toBe(true);
    expect(notes).toEqual([
      expect.stringMatching(
        /^POST \/api\/v4\/projects\/12\/merge_requests\/7\/notes secret body=.*preview-pr-42/,
      ),
    ]);
  });
});
