import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { workflowsIn } from '../../scripts/docs/markdown.ts';
import type { JsonObject } from '../../src/base/json.ts';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { configMap } from '../cluster/objects.ts';
import { REPOSITORY } from '../stub/action-yml.ts';
import { type Github, startGithub } from '../stub/github.ts';
import { REPOSITORY_NAME } from '../stub/runner.ts';
import { ActRepository, type ActRun, NO_ACT } from './act.ts';

const PULL_REQUEST = 42;
const NAMESPACE = `preview-pr-${PULL_REQUEST}`;
const FINALIZER = 'example.com/cleanup';

/** The first workflow of the README, with this action in place of the released one, and less patience. */
function workflow(): string {
  const [first = ''] = workflowsIn(readFileSync(join(REPOSITORY, 'README.md'), 'utf8'));
  const changed = first
    .replace(/uses: OWNER\/namespace-teardown-gate@\S+/, 'uses: ./')
    .replace('timeout: 10m', 'timeout: 15s')
    .replace('    steps:\n', '    steps:\n      - uses: actions/checkout@v7\n');
  expect(changed).toContain('uses: ./');
  expect(changed).toContain('timeout: 15s');
  return changed;
}

function closedPullRequest(): JsonObject {
  const repo = { full_name: REPOSITORY_NAME };
  return {
    action: 'closed',
    number: PULL_REQUEST,
    pull_request: {
      number: PULL_REQUEST,
      merged: true,
      head: { ref: 'topic', sha: 'a'.repeat(40), repo },
      base: { ref: 'main', repo },
    },
    repository: repo,
  };
}

const title = 'the smallest workflow of the README';
describe.skipIf(NO_ACT !== undefined)(NO_ACT ? `${title} (skipped: ${NO_ACT})` : title, () => {
  let plane: ControlPlane;
  let github: Github;
  let repository: ActRepository;

  beforeAll(async () => {
    [plane, github, repository] = await Promise.all([
      startControlPlane(),
      startGithub(),
      ActRepository.create(workflow()),
    ]);
    await plane.admin.create({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: NAMESPACE },
    });
    await plane.admin.create(configMap(NAMESPACE, 'held', { finalizers: [FINALIZER] }));
  });

  afterAll(async () => {
    await Promise.all([plane?.stop(), github?.close(), repository?.remove()]);
  });

  async function run(): Promise<ActRun> {
    return repository.run({
      event: { name: 'pull_request', payload: closedPullRequest() },
      secrets: {
        PREVIEW_KUBECONFIG: await readFile(plane.kubeconfig('teardown-gate'), 'utf8'),
        GITHUB_TOKEN: github.token,
      },
      env: { GITHUB_API_URL: github.url, GITHUB_GRAPHQL_URL: `${github.url}/graphql` },
    });
  }

  test('fails on a namespace that hangs, and says why on the pull request', async () => {
    const { exitCode, log } = await run();

    expect(exitCode, log).not.toBe(0);
    expect(log).toContain(`${NAMESPACE}: requested its deletion`);
    const [comment, ...others] = github.commentsOn(PULL_REQUEST);
    expect(others).toEqual([]);
    expect(comment?.body).toContain('is stuck');
    expect(comment?.body).toContain(FINALIZER);
  });

  test('passes once the cause is fixed, and turns the comment green', async () => {
    await plane.admin.patch(
      { apiVersion: 'v1', kind: 'ConfigMap', namespace: NAMESPACE, name: 'held' },
      { metadata: { finalizers: null } },
    );

    const { exitCode, log } = await run();

    expect(exitCode, log).toBe(0);
    const [comment, ...others] = github.commentsOn(PULL_REQUEST);
    expect(others).toEqual([]);
    expect(comment?.body).toMatch(/✅/);
  });
});
