import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Json } from '../../src/base/json.ts';
import {
  isForFork,
  lackOfSecrets,
  readWorkflowRun,
  runUrl,
  type WorkflowRun,
} from '../../src/publish/workflow-run.ts';
import { expectPairs } from '../stub/pairs.ts';

const ENV = {
  GITHUB_REPOSITORY: 'octo-org/shop',
  GITHUB_EVENT_NAME: 'pull_request',
  GITHUB_RUN_ID: '9001',
  GITHUB_RUN_NUMBER: '812',
  GITHUB_RUN_ATTEMPT: '2',
  GITHUB_WORKFLOW: 'preview',
  GITHUB_JOB: 'teardown',
  GITHUB_SERVER_URL: 'https://github.com',
  GITHUB_API_URL: 'https://api.github.com',
};

function run(env: Record<string, string> = {}, matrix = ''): WorkflowRun {
  const read = readWorkflowRun({ ...ENV, ...env }, matrix);
  if (read === undefined) throw new Error('no run');
  return read;
}

describe('the workflow run', () => {
  test('has its host, the address of its page and the name of its job', () =>
    expectPairs('workflow-runs.txt', (line) => {
      const { matrix = '', ...env } = JSON.parse(line);
      const read = readWorkflowRun({ ...ENV, ...env }, matrix);
      if (read === undefined) return 'none';
      const { apiUrl, where, label } = read;
      return { where, label, url: runUrl(read, read), apiUrl };
    }));

  test('reads the payload of the event, if it exists', () => {
    const folder = mkdtempSync(join(tmpdir(), 'event-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const path = join(folder, 'event.json');
    const read = (file: string): WorkflowRun => run({ GITHUB_EVENT_PATH: file });
    writeFileSync(path, '\uFEFF{"action":"closed"}');
    expect(read(path).event.payload).toEqual({ action: 'closed' });
    writeFileSync(path, 'not JSON');
    expect(read(path).event.payload).toBeNull();
    for (const missing of ['', join(folder, 'none.json'), join(path, 'below')]) {
      expect(read(missing)).toMatchObject({ event: { payload: null } });
    }
    // The writer is there so that a reader who waits for one fails instead of hanging.
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const writer = spawn('sh', ['-c', 'echo "{}" > "$0"', pipe], { stdio: 'ignore' });
    expect(read(pipe).event.payload).toBeNull();
    writer.kill();
  });

  test.each<
    [what: string, isSame: boolean, env: Record<string, string>, matrix?: string, as?: string]
  >([
    ['run', true, { GITHUB_RUN_ID: '1', GITHUB_RUN_ATTEMPT: '9' }],
    ['event', true, { GITHUB_EVENT_NAME: 'schedule' }],
    ['order of the matrix', true, {}, '{"b":1,"a":2}', '{"a":2,"b":1}'],
    ['workflow', false, { GITHUB_WORKFLOW: 'sweep' }],
    ['job', false, { GITHUB_JOB: '--> <!-- \n' }],
    ['matrix', false, {}, '{"zone":"eu"}'],
  ])('of another %s is of the same job: %s', (_, isSame, env, matrix, as) => {
    const { job } = run(env, matrix);
    expect(job === run({}, as).job).toBe(isSame);
    expect(job).toMatch(/^[0-9a-f]{16}$/);
  });
});

const from = (repo: Json): Json => ({ pull_request: { head: { repo } } });
const FORK = from({ full_name: 'fork/shop' });
const BOT = { GITHUB_ACTOR: 'dependabot[bot]' };
const TARGET = { GITHUB_EVENT_NAME: 'pull_request_target' };

test.each([
  { what: 'a fork', payload: FORK, says: /^A run for a fork gets no secrets/ },
  { what: 'a fork that is gone', payload: from(null), says: /^A run for a fork gets no secrets/ },
  { what: 'this repository', payload: from({ full_name: 'Octo-Org/Shop' }) },
  { what: 'a fork, with the target', env: TARGET, payload: FORK },
  { what: 'Dependabot', env: { ...BOT, GITHUB_EVENT_NAME: 'push' }, says: /for Dependabot:/ },
  { what: 'Dependabot, with the target', env: { ...BOT, ...TARGET } },
  { what: 'a schedule', env: { GITHUB_EVENT_NAME: 'schedule' } },
])('a run for $what lacks secrets: $says', (row) => {
  const { event, ...read } = run(row.env);
  const asked = { ...read, event: { ...event, payload: row.payload ?? {} } };
  expect(isForFork(asked)).toBe(String(row.says).includes('fork'));
  expect(lackOfSecrets(asked) ?? '').toMatch(row.says ?? /^$/);
});
