import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ActionCase, Bad } from './case.ts';

/** What the runner gives, damaged. The namespace does not exist: the gate passes when it can work. */
function working(
  what: string,
  env: (bad: Bad) => Record<string, string | undefined>,
  says: RegExp,
  inputs: Record<string, string> = {},
): ActionCase {
  return {
    what,
    env,
    inputs: ({ kubeconfig }) => ({ namespace: 'never-existed', kubeconfig, ...inputs }),
    says,
    works: true,
  };
}

const NOT_THERE = /never-existed/;
const COMMENT = { comment: 'always', 'pr-number': '7', 'github-token': 'token-for-nobody' };
const FROM_EVENT = { comment: 'always', 'github-token': 'token-for-nobody' };

function folder({ bench }: Bad): string {
  const path = join(bench.folder, 'folder');
  mkdirSync(path, { recursive: true });
  return path;
}

export const ENVIRONMENT: readonly ActionCase[] = [
  working(
    'an input has left',
    () => ({ 'INPUT_FORECAST-REPORT': 'old/report.json' }),
    /::warning.*::input "forecast-report" no longer exists: compare the report\.json/,
  ),
  working('GITHUB_OUTPUT is not set', () => ({ GITHUB_OUTPUT: undefined }), NOT_THERE),
  working(
    'GITHUB_OUTPUT does not exist',
    () => ({ GITHUB_OUTPUT: '/nonexistent/output' }),
    /could not set the outputs of this step: .*\/nonexistent\/output/,
  ),
  working('GITHUB_STEP_SUMMARY is not set', () => ({ GITHUB_STEP_SUMMARY: undefined }), NOT_THERE),
  working(
    'GITHUB_STEP_SUMMARY is a folder',
    (bad) => ({ GITHUB_STEP_SUMMARY: folder(bad) }),
    /could not write the job summary: .*EISDIR/,
  ),
  working('RUNNER_TEMP is not set', () => ({ RUNNER_TEMP: undefined }), NOT_THERE),
  working(
    'no folder for temporary files at all',
    () => ({ RUNNER_TEMP: '/nonexistent/a', TMPDIR: '/dev/null/nonexistent' }),
    /could not write \/dev\/null\/nonexistent\/.*report\.json: .*give another folder as "report-dir"/,
  ),
  working(
    'report-dir cannot be written',
    () => ({}),
    /could not write \/dev\/null\/nope\/report\.json/,
    { 'report-dir': '/dev/null/nope' },
  ),
  working('HOME is not set', () => ({ HOME: undefined }), NOT_THERE),
  working(
    'the event is not there',
    () => ({ GITHUB_EVENT_NAME: 'pull_request', GITHUB_EVENT_PATH: '/nonexistent/event.json' }),
    /no pull request comment: the event "pull_request" of .* names no pull request/,
    FROM_EVENT,
  ),
  working(
    'the event is garbage',
    ({ bench }) => ({
      GITHUB_EVENT_NAME: 'issue_comment',
      GITHUB_EVENT_PATH: bench.file('{"issue":'),
    }),
    /no pull request comment/,
    FROM_EVENT,
  ),
  working(
    'the event has other types than it should',
    ({ bench }) => ({
      GITHUB_EVENT_NAME: 'workflow_run',
      GITHUB_EVENT_PATH: bench.file(
        JSON.stringify({ workflow_run: { pull_requests: 'x', head_repository: [], head_sha: 7 } }),
      ),
    }),
    /no pull request comment/,
    FROM_EVENT,
  ),
  working(
    'the event is 40 MB long',
    ({ bench }) => {
      const path = join(bench.folder, 'huge.json');
      writeFileSync(path, `{"pull_request":{"body":"${'x'.repeat(40_000_000)}"}}`);
      return { GITHUB_EVENT_NAME: 'pull_request', GITHUB_EVENT_PATH: path };
    },
    /no pull request comment/,
    FROM_EVENT,
  ),
  working(
    'the address of GitHub is no URL',
    () => ({ GITHUB_API_URL: 'not a url', GITHUB_GRAPHQL_URL: '::' }),
    /could not .*pull request|no pull request comment/,
    COMMENT,
  ),
  working(
    'the run has no numbers',
    () => ({ GITHUB_RUN_ID: '../..', GITHUB_RUN_ATTEMPT: 'x', GITHUB_RUN_NUMBER: '<b>' }),
    NOT_THERE,
  ),
  working('the time zone is none', () => ({ TZ: 'Nowhere/Land', LANG: 'xx_XX' }), NOT_THERE),
  working('the proxy is none', () => ({ HTTPS_PROXY: '::::', NO_PROXY: ',,*.,[::1' }), NOT_THERE),
];
