import { afterAll, beforeAll, describe, expect, test } from 'vitest';
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
const RED = /🔴/;
const GREEN = /✅/;

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
      expect(await repository.log(red)).toContain(`${namespace}: asked for its deletion`);
      const comment = await onlyComment(repository, pull.number);
      expect(comment.user.login).toBe(WORKFLOW_LOGIN);
      expect(comment.body).toMatch(RED);
      expect(comment.body).toContain(FINALIZER);
      await expectLinksTo(comment, [red]);

      await repository.rerun(red);
      const again = await repository.finishedAgain(red);
      expect(again.conclusion).toBe('failure');
      const still = await onlyComment(repository, pull.number);
      expect(still.id).toBe(comment.id);
      expect(still.body).toMatch(RED);
      expect(still.body).toContain('attempt 2');
      expect(still.body).toContain('attempt 1');

      await cure(bed, namespace);
      await repository.reopenPull(pull.number);
      await repository.closePull(pull.number);
      const green = await repository.finishedRun(file, [red]);
      expect(green.conclusion, await repository.log(green)).toBe('success');
      const turned = await onlyComment(repository, pull.number);
      expect(turned.id).toBe(comment.id);
      expect(turned.body).toMatch(GREEN);
      expect(turned.body).not.toMatch(RED);
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
      expect(comment.body).toMatch(RED);

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
      expect(turned.body).toMatch(GREEN);
      expect(turned.body).not.toMatch(RED);
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
      expect(await gateComments(repository, pull.number)).toEqual([]);
    });
  });

  describe.concurrent('several gates', () => {
    /** Two namespaces per pull request: one hangs, one goes. */
    async function halfHanging(
      name: string,
      jobs: string,
    ): Promise<{ repository: Repository; number: number; hanging: string }> {
      const text = `name: teardown\non:\n  pull_request:\n    types: [closed]\njobs:\n${jobs}`;
      const repository = await project(bed, name, { 'teardown.yml': text });
      const pull = await repository.openPull('topic');
      const hanging = `${name}-api`;
      await hangingNamespace(bed, hanging);
      await bed.plane.admin.create({
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: `${name}-web` },
      });
      return { repository, number: pull.number, hanging };
    }

    async function redThenGreen(
      { repository, number, hanging }: Awaited<ReturnType<typeof halfHanging>>,
      expectedComments: number,
    ): Promise<void> {
      await repository.closePull(number);
      const red = await repository.finishedRun('teardown.yml');
      expect(red.conclusion, await repository.log(red)).toBe('failure');
      const comments = await gateComments(repository, number);
      const about = comments.filter(({ body }) => body.includes(hanging));
      expect(about.length).toBeGreaterThan(0);
      for (const { body } of about) {
        expect(body).toMatch(RED);
        expect(body.split('\n').find((line) => line.startsWith('###'))).not.toMatch(GREEN);
      }

      await cure(bed, hanging);
      await repository.rerun(red);
      const green = await repository.finishedAgain(red);
      expect(green.conclusion, await repository.log(green)).toBe('success');
      const turned = await gateComments(repository, number);
      expect(turned.length).toBe(expectedComments);
      for (const { body } of turned) {
        expect(body).not.toMatch(RED);
        expect(body).toMatch(GREEN);
      }
    }

    const step = (namespace: string, more = ''): string => `
      - uses: ${bed.action}
        if: always()
        with:
          namespace: ${namespace}
          kubeconfig: ${bed.plane.kubeconfig('teardown-gate')}
          delete: true
          timeout: 12s
${more}`;
    const comment = '          comment: always\n';

    test('two steps of one job', async () => {
      const name = 'two-steps';
      const jobs = `  teardown:
    runs-on: ubuntu-latest
    permissions:
      pull-requests: write
    steps:${step(`${name}-api`, comment)}${step(`${name}-web`, comment)}`;
      await redThenGreen(await halfHanging(name, jobs), 1);
    });

    test('two jobs that share a comment', async () => {
      const name = 'two-jobs';
      const jobs = ['api', 'web']
        .map(
          (part) => `  ${part}:
    runs-on: ubuntu-latest
    permissions:
      pull-requests: write
    steps:${step(`${name}-${part}`, `${comment}          comment-key: shared\n`)}`,
        )
        .join('');
      await redThenGreen(await halfHanging(name, jobs), 1);
    });

    test('a matrix', async () => {
      const name = 'matrix';
      const jobs = `  teardown:
    runs-on: ubuntu-latest
    permissions:
      pull-requests: write
    strategy:
      fail-fast: false
      matrix:
        part: [api, web]
    steps:${step(`${name}-\${{ matrix.part }}`, comment)}`;
      await redThenGreen(await halfHanging(name, jobs), 2);
    });
  });

  describe.concurrent('which pull request it is', () => {
    /** A workflow on any event that waits for a namespace of the repository's name. */
    const onEvent = (events: string, namespace: string, more = ''): string => `name: gate
on:
${events}
jobs:
  gate:
    runs-on: ubuntu-latest
    permissions:
      pull-requests: write
    steps:
      - uses: ${bed.action}
        with:
          namespace: ${namespace}
          kubeconfig: ${bed.plane.kubeconfig('teardown-gate')}
          delete: true
          timeout: 5s
${more}`;

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
      expect(comment?.body, log).toMatch(RED);
      await expectLinksTo(comment as Comment, [run]);
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
      const pull = await repository.openPull('Fix/Login_1');
      await hangingNamespace(bed, 'branch-fix-login-1');
      await repository.closePull(pull.number);

      await repository.deleteBranch('Fix/Login_1');
      await expectRedComment(repository, pull.number, [], 'branch-teardown.yml');
      await cure(bed, 'branch-fix-login-1');
      await waitUntil('it goes', async () => !(await isThere(bed, 'branch-fix-login-1')));
    });

    test('the merge was pushed', async () => {
      const repository = await project(bed, 'pushed', {});
      await repository.openPull('other');
      const pull = await repository.openPull('topic');
      await hangingNamespace(bed, 'pushed');
      await repository.commit({
        '.github/workflows/gate.yml': onEvent('  push:\n    branches: [main]', 'pushed'),
      });
      await repository.finishedRun('gate.yml'); // of this commit, which is nobody's
      const before = await repository.runs();
      await repository.mergePull(pull.number);
      await expectRedComment(repository, pull.number, before);
    });

    test('another workflow has run for the pull request', async () => {
      const repository = await project(bed, 'after', {
        'first.yml':
          'name: first\non: pull_request\njobs:\n  one:\n    runs-on: ubuntu-latest\n    steps:\n      - run: true\n',
        'gate.yml': onEvent(
          '  workflow_run:\n    workflows: [first]\n    types: [completed]',
          'after',
        ),
      });
      await hangingNamespace(bed, 'after');
      const pull = await repository.openPull('topic');
      await expectRedComment(repository, pull.number);
    });

    test('somebody has commented on the pull request', async () => {
      const repository = await project(bed, 'asked', {
        'gate.yml': onEvent('  issue_comment:\n    types: [created]', 'asked'),
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
        'gate.yml': onEvent('  workflow_dispatch:', 'by-hand'),
      });
      await hangingNamespace(bed, 'by-hand');
      const pull = await repository.openPull('topic');
      await repository.dispatch('gate.yml', 'topic');
      await expectRedComment(repository, pull.number);
    });

    test('a token of a person that may not read who it is finds its comment again', async () => {
      const repository = await project(bed, 'scoped', {
        'gate.yml': onEvent(
          '  pull_request:\n    types: [closed]',
          'scoped',
          `          github-token: \${{ secrets.PERSONAL }}\n`,
        ),
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
