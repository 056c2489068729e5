import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { waitUntil } from '../cluster/wait-until.ts';
import {
  adapted,
  type Bed,
  cure,
  documentedWorkflow,
  FINALIZER,
  hangingNamespace,
  isThere,
  makeBed,
  OWNER,
  project,
} from './bed.ts';
import { wantedVersion, whyNotBuildable } from './binaries.ts';
import type { Comment, Repository, Run } from './repository.ts';

const VERSION = wantedVersion();
const WHY_NOT = await whyNotBuildable(VERSION);
const title = `on Gitea ${VERSION} with its runner`;

const WORKFLOW_LOGIN = 'gitea-actions';

/** A comment is as good as its headline; the history below may have been worse. */
function headline({ body }: Comment): string {
  return body.split('\n').find((line) => line.startsWith('###')) ?? '';
}

function expectRed(comment: Comment): void {
  expect(headline(comment), comment.body).toMatch(/🔴|⏳|🟡/u);
}

function expectGreen(comment: Comment): void {
  expect(headline(comment), comment.body).toContain('✅');
}

describe.skipIf(WHY_NOT)(WHY_NOT ? `${title} (skipped: ${WHY_NOT})` : title, () => {
  let bed: Bed;

  beforeAll(async () => {
    bed = await makeBed(VERSION, (line) => process.stderr.write(`${line}\n`));
  });

  afterAll(async () => {
    await bed?.stop();
  });

  /** The only comment of the gate on a pull request. */
  async function onlyComment(repository: Repository, number: number): Promise<Comment> {
    const [comment, ...others] = await gateComments(repository, number);
    expect(others.map(({ body }) => body)).toEqual([]);
    if (comment === undefined) throw new Error(`no comment on pull request ${number}`);
    return comment;
  }

  async function gateComments(repository: Repository, number: number): Promise<Comment[]> {
    const comments = await repository.comments(number);
    return comments.filter(({ body }) => body.includes('<!-- namespace-teardown-gate:'));
  }

  /** Every link to a run leads to that run, as a reader without an account sees it. */
  async function expectLinksTo(comment: Comment, runs: readonly Run[]): Promise<void> {
    const links = [...comment.body.matchAll(/https?:\/\/[^\s)"<>]*\/actions\/runs\/[^\s)"<>]+/g)];
    const pages = new Set<string>();
    for (const [link] of links) {
      const response = await fetch(link);
      expect(response.status, link).toBe(200);
      const [, id] = /data-run-id="(\d+)"/.exec(await response.text()) ?? [];
      pages.add(String(id));
    }
    expect(pages, comment.body).toEqual(new Set(runs.map(({ id }) => String(id))));
  }

  describe.concurrent('the first workflow of the README', () => {
    const file = 'preview-teardown.yml';
    const first = (prefix: string): string =>
      adapted(documentedWorkflow('preview-teardown'), bed.action, prefix);

    test('red, cure, green in one comment; run again, started anew', async () => {
      const repository = await project(bed, 'shop', { [file]: first('shop') });
      const pull = await repository.openPull('topic');
      const namespace = `shop-pr-${pull.number}`;
      await hangingNamespace(bed, namespace);

      await repository.closePull(pull.number);
      const red = await repository.finishedRun(file);
      expect(red.conclusion, await repository.log(red)).toBe('failure');
      expect(await repository.log(red)).toContain(`${namespace}: requested its deletion`);
      const comment = await onlyComment(repository, pull.number);
      expect(comment.user.login).toBe(WORKFLOW_LOGIN);
      expectRed(comment);
      expect(comment.body).toContain(FINALIZER);
      await expectLinksTo(comment, [red]);

      await repository.rerun(red);
      const again = await repository.finishedAgain(red);
      expect(again.conclusion).toBe('failure');
      const still = await onlyComment(repository, pull.number);
      expect(still.id).toBe(comment.id);
      expectRed(still);
      expect(still.body).toContain('attempt 2');
      expect(still.body.match(/\bstuck\b(?= (·|←))/g), still.body).toHaveLength(2);

      await cure(bed, namespace);
      await repository.reopenPull(pull.number);
      await repository.closePull(pull.number);
      const green = await repository.finishedRun(file, [red]);
      expect(green.conclusion, await repository.log(green)).toBe('success');
      const turned = await onlyComment(repository, pull.number);
      expect(turned.id).toBe(comment.id);
      expectGreen(turned);
      await expectLinksTo(turned, [red, green]);
    });

    test('after a merge that took the branch away; a note above the report', async () => {
      const repository = await project(bed, 'merged', { [file]: first('merged') });
      const pull = await repository.openPull('topic');
      const namespace = `merged-pr-${pull.number}`;
      await hangingNamespace(bed, namespace);

      await repository.mergePull(pull.number, { delete_branch_after_merge: true });
      const red = await repository.finishedRun(file);
      expect(red.conclusion, await repository.log(red)).toBe('failure');
      const comment = await onlyComment(repository, pull.number);
      expectRed(comment);

      const note = 'Somebody looks into it.';
      await bed.host.admin.call('PATCH', `${repository.path}/issues/comments/${comment.id}`, {
        body: `${note}\n\n${comment.body}`,
      });
      await cure(bed, namespace);
      await repository.rerun(red);
      const green = await repository.finishedAgain(red);
      expect(green.conclusion, await repository.log(green)).toBe('success');
      const turned = await onlyComment(repository, pull.number);
      expect(turned.id).toBe(comment.id);
      expectGreen(turned);
    });

    test('a pull request from a fork has no secret and no right to write, and says so', async () => {
      const repository = await project(bed, 'forked', { [file]: first('forked') });
      const stranger = await bed.host.user('stranger');
      await stranger.post(`${repository.path}/forks`);
      const fork = await waitUntil('the fork is there', async () => {
        const answer = await stranger.ask('GET', '/repos/stranger/forked/branches/main');
        return answer.status === 200 && repository.as(stranger);
      });
      await fork.api.post('/repos/stranger/forked/contents/change.txt', {
        content: Buffer.from('a change').toString('base64'),
        new_branch: 'topic',
        message: 'A change',
      });
      const pull = await fork.requestPull('stranger:topic');
      await fork.closePull(pull.number);

      const [waiting] = await waitUntil('a run waits for approval', async () => {
        const runs = await repository.runs();
        return runs.length > 0 && runs;
      });
      await bed.host.browse(
        OWNER,
        'POST',
        `/${repository.fullName}/actions/runs/${waiting?.id}/approve`,
      );
      const run = await repository.finishedRun(file);
      expect(run.conclusion).toBe('failure');
      const log = await repository.log(run);
      expect(log).toMatch(/fork/);
      // Whoever may read may comment on Gitea; on GitHub this would be refused.
      const comment = await onlyComment(repository, pull.number);
      expectRed(comment);
      expect(comment.body).toMatch(/fork/);
    });
  });

  /** JSON is YAML as well. */
  const workflow = (on: JsonObject, jobs: JsonObject, name?: string): string =>
    JSON.stringify({ ...(name === undefined ? {} : { name }), on, jobs });
  const job = (steps: JsonObject[], more: JsonObject = {}): JsonObject => ({
    'runs-on': 'ubuntu-latest',
    permissions: { 'pull-requests': 'write' },
    ...more,
    steps,
  });
  const gate = (namespace: string, inputs: JsonObject = {}): JsonObject => ({
    uses: bed.action,
    if: 'always()',
    with: {
      namespace,
      kubeconfig: bed.plane.kubeconfig('teardown-gate'),
      delete: 'true',
      timeout: '12s',
      ...inputs,
    },
  });
  const CLOSED = { pull_request: { types: ['closed'] } };

  describe.concurrent('several gates on one pull request', () => {
    /** One namespace hangs, the other goes: red as long as one is, green once both are gone. */
    async function redThenGreen(
      name: string,
      workflows: Readonly<Record<string, string>>,
      expectedComments: number,
    ): Promise<void> {
      const repository = await project(bed, name, workflows);
      const files = Object.keys(workflows);
      const { number } = await repository.openPull('topic');
      const hanging = `${name}-api`;
      await hangingNamespace(bed, hanging);
      await bed.plane.admin.create({
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: `${name}-web` },
      });

      await repository.closePull(number);
      const runs = await Promise.all(files.map((file) => repository.finishedRun(file)));
      expect(runs.map(({ conclusion }) => conclusion)).toContain('failure');
      const about = (await gateComments(repository, number)).filter(({ body }) =>
        body.includes(hanging),
      );
      expect(about.length).toBeGreaterThan(0);
      about.forEach(expectRed);

      await cure(bed, hanging);
      for (const run of runs.filter(({ conclusion }) => conclusion === 'failure')) {
        await repository.rerun(run);
        const again = await repository.finishedAgain(run);
        expect(again.conclusion, await repository.log(again)).toBe('success');
      }
      const turned = await gateComments(repository, number);
      expect(turned.map(headline)).toHaveLength(expectedComments);
      turned.forEach(expectGreen);
    }

    test('two steps of one job', async () => {
      const name = 'two-steps';
      const steps = ['api', 'web'].map((part) => gate(`${name}-${part}`, { comment: 'always' }));
      await redThenGreen(
        name,
        { 'a.yml': workflow(CLOSED, { teardown: job(steps) }, 'teardown') },
        1,
      );
    });

    test('two jobs with the same key', async () => {
      const name = 'two-jobs';
      const of = (part: string): JsonObject =>
        job([gate(`${name}-${part}`, { comment: 'always', 'comment-key': 'shared' })]);
      const text = workflow(CLOSED, { api: of('api'), web: of('web') }, 'teardown');
      await redThenGreen(name, { 'a.yml': text }, 1);
    });

    test('a matrix', async () => {
      const name = 'matrix';
      const strategy = { 'fail-fast': false, matrix: { part: ['api', 'web'] } };
      const steps = [gate(`${name}-\${{ matrix.part }}`, { comment: 'always' })];
      const text = workflow(CLOSED, { teardown: job(steps, { strategy }) }, 'teardown');
      await redThenGreen(name, { 'a.yml': text }, 2);
    });

    test('two workflows without a name, whose jobs are called the same', async () => {
      const name = 'nameless';
      const of = (part: string): string =>
        workflow(CLOSED, { teardown: job([gate(`${name}-${part}`, { comment: 'always' })]) });
      await redThenGreen(name, { 'api.yml': of('api'), 'web.yml': of('web') }, 2);
    });
  });

  describe.concurrent('which pull request it is', () => {
    const onEvent = (on: JsonObject, namespace: string, inputs: JsonObject = {}): string =>
      workflow(on, { gate: job([gate(namespace, inputs)]) }, 'gate');

    async function expectRedComment(
      repository: Repository,
      number: number,
      before: readonly Run[] = [],
      workflow = 'gate.yml',
    ): Promise<void> {
      const run = await repository.finishedRun(workflow, before);
      const log = await repository.log(run);
      expect(run.conclusion, log).toBe('failure');
      const [comment] = await gateComments(repository, number);
      if (comment === undefined) throw new Error(`no comment on pull request ${number}: ${log}`);
      expectRed(comment);
      await expectLinksTo(comment, [run]);
    }

    test('a branch was deleted: the recipe of the README', async () => {
      const [, kubeconfig = ''] =
        /( {6}- name: Kubeconfig\n[\s\S]*?)(?= {6}- uses:)/.exec(
          documentedWorkflow('preview-teardown'),
        ) ?? [];
      expect(kubeconfig).toContain('KUBECONFIG=');
      const recipe = adapted(documentedWorkflow('branch-teardown'), bed.action, 'branch')
        .replace('    steps:\n', `    steps:\n${kubeconfig}`)
        .replace(/( +)delete: true\n/, '$1delete: true\n$1timeout: 12s\n');
      const repository = await project(bed, 'branch', { 'branch-teardown.yml': recipe });
      const branch = 'Fix/Login_1';
      const hash = createHash('sha256').update(branch).digest('hex').slice(0, 8);
      const namespace = `branch-fix-login-1-${hash}`;
      const pull = await repository.openPull(branch);
      await hangingNamespace(bed, namespace);
      await repository.closePull(pull.number);

      await repository.deleteBranch(branch);
      await expectRedComment(repository, pull.number, [], 'branch-teardown.yml');
      await cure(bed, namespace);
      await waitUntil('it goes', async () => !(await isThere(bed, namespace)));
    });

    test('the merge was pushed', async () => {
      const repository = await project(bed, 'pushed', {});
      await repository.openPull('other');
      const pull = await repository.openPull('topic');
      await hangingNamespace(bed, 'pushed');
      await repository.commit({
        '.github/workflows/gate.yml': onEvent({ push: { branches: ['main'] } }, 'pushed'),
      });
      await repository.finishedRun('gate.yml'); // of this commit, which is nobody's
      const before = await repository.runs();
      await repository.mergePull(pull.number);
      await expectRedComment(repository, pull.number, before);
    });

    test('another workflow has run for the pull request', async () => {
      const repository = await project(bed, 'after', {
        'first.yml': workflow({ pull_request: {} }, { one: job([{ run: 'true' }]) }, 'first'),
        'gate.yml': onEvent(
          { workflow_run: { workflows: ['first'], types: ['completed'] } },
          'after',
        ),
      });
      await hangingNamespace(bed, 'after');
      await repository.openPull('other');
      const first = await repository.finishedRun('gate.yml');
      const pull = await repository.openPull('topic');
      await expectRedComment(repository, pull.number, [first]);
    });

    test('somebody has commented on the pull request', async () => {
      const repository = await project(bed, 'asked', {
        'gate.yml': onEvent({ issue_comment: { types: ['created'] } }, 'asked'),
      });
      await hangingNamespace(bed, 'asked');
      const pull = await repository.openPull('topic');
      await repository.api.post(`${repository.path}/issues/${pull.number}/comments`, {
        body: '/teardown',
      });
      await expectRedComment(repository, pull.number);
    });

    test('started by hand on the branch of the pull request', async () => {
      const repository = await project(bed, 'by-hand', {
        'gate.yml': onEvent({ workflow_dispatch: {} }, 'by-hand'),
      });
      await hangingNamespace(bed, 'by-hand');
      const pull = await repository.openPull('topic');
      await repository.dispatch('gate.yml', 'topic');
      await expectRedComment(repository, pull.number);
    });

    test('two pull requests of a branch that is gone: said, not guessed', async () => {
      const repository = await project(bed, 'twice', {
        'gate.yml': onEvent({ delete: {} }, 'twice'),
      });
      await repository.commit({ 'b.txt': 'b' }, { into: 'release' });
      const first = await repository.openPull('topic');
      const second = await repository.requestPull('topic', 'release');
      await hangingNamespace(bed, 'twice');
      await repository.deleteBranch('topic');
      const run = await repository.finishedRun('gate.yml');
      expect(await repository.log(run)).toMatch(
        new RegExp(`${first.number}, ${second.number}|${second.number}, ${first.number}`),
      );
      expect(await gateComments(repository, first.number)).toEqual([]);
      expect(await gateComments(repository, second.number)).toEqual([]);
    });

    test('a token of a person that may not read who it is finds its comment again', async () => {
      const repository = await project(bed, 'scoped', {
        'gate.yml': onEvent(CLOSED, 'scoped', { 'github-token': `\${{ secrets.PERSONAL }}` }),
      });
      const token = await bed.host.token(OWNER, ['write:issue', 'read:repository']);
      await repository.secret('PERSONAL', token);
      const me = await fetch(`${bed.host.url}/api/v1/user`, {
        headers: { authorization: `token ${token}` },
      });
      expect(me.status).toBe(403);
      await hangingNamespace(bed, 'scoped');
      const pull = await repository.openPull('topic');
      await repository.closePull(pull.number);
      await expectRedComment(repository, pull.number);
      const [run] = await repository.runs();
      await repository.rerun(run as Run);
      await repository.finishedAgain(run as Run);
      const comment = await onlyComment(repository, pull.number);
      expect(comment.user.login).toBe(OWNER);
      expect(comment.body).toContain('attempt 2');
    });
  });
});
