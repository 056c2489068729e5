import { describe, expect, test } from 'vitest';
import type { Json } from '../../src/base/json.ts';
import { type GithubEvent, pullRequestSource, readOnlyReason } from '../../src/publish/event.ts';
import type { PullRequest } from '../../src/publish/github-api.ts';
import { chooseByBranch, chooseByCommit } from '../../src/publish/pull-request.ts';

const SHA = '9f3c2e1a7b5d4c6e8f0a1b2c3d4e5f6a7b8c9d0e';
const OTHER = '0'.repeat(40);

function event(name: string, payload: Json = {}, more: Partial<GithubEvent> = {}): GithubEvent {
  return { name, payload, sha: SHA, actor: 'octocat', repository: 'octo-org/shop', ...more };
}

const PULL = { number: 42 };

describe('the pull request of an event', () => {
  test.each([
    { name: 'pull_request', payload: { pull_request: PULL } },
    { name: 'pull_request_target', payload: { pull_request: PULL } },
    { name: 'pull_request_review', payload: { pull_request: PULL } },
    { name: 'issue_comment', payload: { issue: { number: 42, pull_request: { url: 'x' } } } },
    { name: 'workflow_run', payload: { workflow_run: { pull_requests: [PULL] } } },
    {
      name: 'merge_group',
      payload: { merge_group: { head_ref: `refs/heads/gh-readonly-queue/main/pr-42-${SHA}` } },
    },
    {
      name: 'merge_group',
      payload: {
        merge_group: { head_ref: `refs/heads/gh-readonly-queue/rel/pr-7-x/pr-42-${SHA}` },
      },
    },
  ])('is in the payload of $name', ({ name, payload }) => {
    expect(pullRequestSource(event(name, payload), undefined)).toEqual({
      kind: 'number',
      number: 42,
    });
  });

  test.each([
    { name: 'push', payload: { after: SHA, ref: 'refs/heads/main' } },
    { name: 'push', payload: {} },
    { name: 'deployment', payload: { deployment: { sha: SHA, ref: 'feature' } } },
    { name: 'deployment_status', payload: { deployment: { sha: SHA } } },
  ])('of $name is looked up by the commit', ({ name, payload }) => {
    expect(pullRequestSource(event(name, payload), undefined)).toEqual({
      kind: 'commit',
      sha: SHA,
    });
  });

  test.each([
    // GITHUB_SHA of a delete event is the head of the default branch: never to be looked up.
    { name: 'delete', payload: { ref_type: 'branch', ref: 'feature/x' } },
    { name: 'push', payload: { deleted: true, ref: 'refs/heads/feature/x', after: OTHER } },
  ])('of a branch removed by $name is looked up by the branch', ({ name, payload }) => {
    expect(pullRequestSource(event(name, payload), undefined)).toEqual({
      kind: 'branch',
      owner: 'octo-org',
      branch: 'feature/x',
    });
  });

  test('of workflow_run from a fork is looked up by branch and commit', () => {
    const payload = {
      workflow_run: {
        pull_requests: [],
        head_repository: { owner: { login: 'fork' } },
        head_branch: 'patch-1',
        head_sha: SHA,
      },
    };
    expect(pullRequestSource(event('workflow_run', payload), undefined)).toEqual({
      kind: 'branch',
      owner: 'fork',
      branch: 'patch-1',
      sha: SHA,
    });
  });

  test.each([
    { name: 'schedule', payload: {}, reason: 'schedule' },
    { name: 'workflow_dispatch', payload: { number: 7 }, reason: 'workflow_dispatch' },
    { name: 'repository_dispatch', payload: {}, reason: 'repository_dispatch' },
    { name: 'issue_comment', payload: { issue: { number: 7 } }, reason: 'issue' },
    { name: 'delete', payload: { ref_type: 'tag', ref: 'v1' }, reason: 'tag' },
    { name: 'push', payload: { deleted: true, ref: 'refs/tags/v1' }, reason: 'tag' },
    { name: 'push', payload: { after: 'x' }, reason: 'commit' },
    {
      name: 'merge_group',
      payload: { merge_group: { head_ref: 'refs/heads/x' } },
      reason: 'merge group',
    },
    { name: 'workflow_run', payload: { workflow_run: {} }, reason: 'workflow' },
    { name: 'pull_request', payload: null, reason: 'pull_request' },
    { name: 'pull_request', payload: [], reason: 'pull_request' },
  ])('of $name is none, with a reason that names $reason', ({ name, payload, reason }) => {
    expect(pullRequestSource(event(name, payload), undefined)).toEqual({
      kind: 'none',
      reason: expect.stringContaining(reason),
    });
  });

  test.each(['pull_request', 'schedule', 'delete', 'push'])(
    'is the input before anything that %s says',
    (name) => {
      expect(pullRequestSource(event(name, { pull_request: PULL }), 7)).toEqual({
        kind: 'number',
        number: 7,
      });
    },
  );
});

describe('a token that cannot write', () => {
  const from = (full_name: string | undefined): Json => ({
    pull_request: { head: { repo: full_name === undefined ? null : { full_name } } },
  });

  test.each([
    { what: 'a fork', event: event('pull_request', from('fork/shop')), is: true },
    { what: 'a fork that is gone', event: event('pull_request', from(undefined)), is: true },
    { what: 'this repository', event: event('pull_request', from('Octo-Org/Shop')), is: false },
    {
      what: 'a fork, with the target',
      event: event('pull_request_target', from('fork/x')),
      is: false,
    },
    { what: 'Dependabot', event: event('push', {}, { actor: 'dependabot[bot]' }), is: true },
    { what: 'a schedule', event: event('schedule'), is: false },
  ])('$what: $is', ({ event: given, is }) => {
    expect(readOnlyReason(given) !== undefined).toBe(is);
  });
});

function pull(number: number, more: Partial<PullRequest> = {}): PullRequest {
  return {
    number,
    baseRepository: 'octo-org/shop',
    headSha: OTHER,
    headRef: 'feature',
    headOwner: 'octo-org',
    isMerged: false,
    mergeCommitSha: undefined,
    ...more,
  };
}

describe('of several pull requests', () => {
  test.each([
    { what: 'the only one', pulls: [pull(1)], number: 1 },
    {
      what: 'the one that this commit merged',
      pulls: [pull(1, { isMerged: true }), pull(2, { isMerged: true, mergeCommitSha: SHA })],
      number: 2,
    },
    { what: 'the one with this head', pulls: [pull(1), pull(2, { headSha: SHA })], number: 2 },
    { what: 'the merged one', pulls: [pull(1), pull(2, { isMerged: true })], number: 2 },
    { what: 'none of two equal ones', pulls: [pull(1), pull(2)], number: undefined },
    { what: 'none of none', pulls: [], number: undefined },
    {
      what: 'none where a merge commit is only planned',
      pulls: [pull(1, { mergeCommitSha: SHA }), pull(2)],
      number: undefined,
    },
  ])('a commit leads to $what', ({ pulls, number }) => {
    const found = chooseByCommit(pulls, SHA);
    expect(found.kind === 'found' ? found.number : undefined).toBe(number);
  });

  test.each([
    { what: 'the newest', pulls: [pull(9), pull(3)], number: 9 },
    { what: 'those of the branch', pulls: [pull(9, { headRef: 'x' }), pull(3)], number: 3 },
    { what: 'those of the owner', pulls: [pull(9, { headOwner: 'fork' }), pull(3)], number: 3 },
    { what: 'one whose fork is gone', pulls: [pull(9, { headOwner: '' })], number: 9 },
    { what: 'none of another branch', pulls: [pull(9, { headRef: 'x' })], number: undefined },
  ])('a branch leads to $what', ({ pulls, number }) => {
    const found = chooseByBranch(pulls, { owner: 'Octo-Org', branch: 'feature' });
    expect(found.kind === 'found' ? found.number : undefined).toBe(number);
  });

  test('a branch of a workflow run leads only to the commit that ran', () => {
    const source = { owner: 'octo-org', branch: 'feature', sha: SHA };
    expect(chooseByBranch([pull(9), pull(3, { headSha: SHA })], source)).toEqual({
      kind: 'found',
      number: 3,
    });
  });
});
