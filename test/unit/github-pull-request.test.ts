import examples from '@octokit/webhooks-examples';
import { describe, expect, test } from 'vitest';
import { isObject, type Json, type JsonObject } from '../../src/base/json.ts';
import type { HostApi, PullRequest } from '../../src/publish/host-api.ts';
import { findPullRequest, leadsOf } from '../../src/publish/pull-request.ts';
import type { HostEvent, HostKind } from '../../src/publish/workflow-run.ts';
import { NASTY_TEXTS } from '../stub/nasty.ts';

const SHA = '9f3c2e1a7b5d4c6e8f0a1b2c3d4e5f6a7b8c9d0e';
const OTHER = '0123456789abcdef0123456789abcdef01234567';
const OWNER = 'octo-org';

function event(name: string, payload: Json = {}, more: Partial<HostEvent> = {}): HostEvent {
  return {
    name,
    payload,
    sha: SHA,
    ref: 'refs/heads/main',
    actor: 'octocat',
    repository: 'octo-org/shop',
    ...more,
  };
}

/** "number 42", "commit 9f3c2e1", "branch octo-org:x @9f3c2e1". */
function shown(given: HostEvent, host: HostKind = 'github'): string[] {
  return leadsOf(given, host).leads.map((lead) => {
    if (lead.by === 'number') return `number ${lead.number}`;
    if (lead.by === 'commit') return `commit ${lead.sha.slice(0, 7)}`;
    const at = lead.sha === undefined ? '' : ` @${lead.sha.slice(0, 7)}`;
    return `branch ${lead.owner}:${lead.branch}${at}`;
  });
}

/** What GitHub has published, by the name of the event. */
function published(name: string): { payload: JsonObject; repository: string }[] {
  const found = (examples as unknown as { name: string; examples: JsonObject[] }[]).find(
    (entry) => entry.name === name,
  );
  return (found?.examples ?? []).map((payload) => ({
    payload,
    repository: String(
      isObject(payload['repository']) ? payload['repository']['full_name'] : 'o/r',
    ),
  }));
}

const NAMES = (examples as unknown as { name: string }[]).map(({ name }) => name);

describe("GitHub's published payloads", () => {
  test.each([
    { name: 'pull_request', leads: ['number 2'] },
    { name: 'pull_request_target', as: 'pull_request', leads: ['number 2'] },
    { name: 'pull_request_review', leads: ['number 2'] },
    { name: 'pull_request_review_comment', leads: ['number 2'] },
    { name: 'merge_group', leads: ['number 104'] },
    { name: 'status', leads: ['commit 6113728'] },
    // What is published here belongs to pull requests of other repositories, or of earlier commits.
    {
      name: 'workflow_run',
      // Started by hand, and by a dispatch.
      leads: ['branch octo-org:main @5779607'],
      or: [],
    },
    {
      name: 'check_suite',
      leads: ['number 2', 'commit ec26c3e', 'branch Codertocat:changes @ec26c3e'],
      or: ['commit f95f852', 'branch Codertocat:master @f95f852'],
      orElse: ['commit ec26c3e', 'branch Codertocat:main @ec26c3e'],
    },
    {
      name: 'workflow_dispatch',
      leads: ['branch octo-org:master @9f3c2e1'],
      or: ['branch octo-org:main @9f3c2e1'],
    },
    {
      name: 'deployment',
      leads: ['commit f95f852', 'branch Codertocat:master @f95f852'],
      or: ['commit f95f852', 'branch Codertocat:gh-pages @f95f852'],
    },
    { name: 'deployment_status', leads: ['commit f95f852', 'branch Codertocat:master @f95f852'] },
    { name: 'delete', leads: [] },
    { name: 'issues', leads: [], or: ['number 2'] },
    { name: 'issue_comment', leads: [] },
    { name: 'repository_dispatch', leads: [] },
  ])('$name', ({ name, as, leads, or, orElse }) => {
    const given = published(as ?? name);
    expect(given.length).toBeGreaterThan(0);
    for (const { payload, repository } of given) {
      const found = shown(event(name, payload, { repository }));
      expect([leads, or ?? leads, orElse ?? leads]).toContainEqual(found);
    }
  });

  test('check_run: each of what is asked to act, and none of a fork', () => {
    const found = published('check_run').map(({ payload, repository }) =>
      shown(event('check_run', payload, { repository })),
    );
    expect(found).toContainEqual([
      'number 26764',
      'commit 5bd5f19',
      'branch electron:miniak/event-process-id @5bd5f19',
    ]);
    expect(found).toContainEqual(['commit d6fde92', 'branch github:master @d6fde92']);
  });

  test('a pull request that is listed is ours only by the id of its repository and this commit', () => {
    const [given] = published('workflow_run').filter(({ payload }) =>
      JSON.stringify(payload).includes('"pull_requests":[{'),
    );
    const run = structuredClone(given?.payload) as {
      workflow_run: JsonObject;
      repository: JsonObject;
    };
    const [pull] = run.workflow_run['pull_requests'] as [
      { number: number; head: JsonObject; base: { repo: JsonObject } },
    ];
    const found = (): string[] =>
      shown(event('workflow_run', run, { repository: 'octo-org/octo-repo' }));
    run.workflow_run['event'] = 'push';
    expect(found()).not.toContain('number 2');
    pull.base.repo['id'] = run.repository['id'];
    expect(found()).not.toContain('number 2');
    pull.head['sha'] = run.workflow_run['head_sha'];
    expect(found()).toContain('number 2');
  });

  test('none is too strange', () => {
    for (const name of NAMES) {
      for (const { payload, repository } of published(name)) {
        const { leads, reason } = leadsOf(event(name, payload, { repository }), 'github');
        expect(leads.length > 0 || /pr-number/.test(reason)).toBe(true);
      }
    }
  });
});

describe('GitHub, where nothing is published', () => {
  test.each<{ what: string; given: HostEvent; leads: string[] }>([
    {
      what: 'a comment on a pull request',
      given: event('issue_comment', { issue: { number: 42, pull_request: { url: 'x' } } }),
      leads: ['number 42'],
    },
    {
      what: 'a queue of a base with a hostile name',
      given: event('merge_group', {
        merge_group: { head_ref: `refs/heads/gh-readonly-queue/rel/pr-7-${SHA}/pr-42-${SHA}` },
      }),
      leads: ['number 42'],
    },
    {
      what: 'a push',
      given: event('push', { after: SHA, ref: 'refs/heads/main' }),
      leads: ['commit 9f3c2e1', 'branch octo-org:main @9f3c2e1'],
    },
    // What an annotated tag's push carries is the tag; GITHUB_SHA is the commit.
    {
      what: 'a push of a tag',
      given: event('push', { after: OTHER, ref: 'refs/tags/v1' }),
      leads: ['commit 9f3c2e1'],
    },
    // GITHUB_SHA of both is the head of the default branch: never to be looked up.
    {
      what: 'a branch that a push removed',
      given: event('push', { deleted: true, ref: 'refs/heads/feature/x', after: '0'.repeat(40) }),
      leads: ['branch octo-org:feature/x'],
    },
    {
      what: 'a branch that was deleted',
      given: event('delete', { ref_type: 'branch', ref: 'feature/x' }),
      leads: ['branch octo-org:feature/x'],
    },
    {
      what: 'a branch that is called like a ref',
      given: event('delete', { ref_type: 'branch', ref: 'refs/heads/x' }),
      leads: ['branch octo-org:refs/heads/x'],
    },
    {
      what: 'a run of a fork',
      given: event('workflow_run', {
        workflow_run: {
          pull_requests: [],
          head_repository: { owner: { login: 'fork' }, full_name: 'fork/shop' },
          head_branch: 'patch-1',
          head_sha: SHA,
        },
      }),
      leads: ['branch fork:patch-1 @9f3c2e1', 'commit 9f3c2e1'],
    },
    {
      what: 'a deployment for a pull request',
      given: event('deployment_status', { deployment: { sha: SHA, ref: 'refs/pull/7/merge' } }),
      leads: ['number 7', 'commit 9f3c2e1'],
    },
    {
      what: 'a deployment whose run is known',
      given: event('deployment_status', {
        repository: { id: 5 },
        deployment: { sha: SHA, ref: 'x' },
        workflow_run: {
          head_sha: SHA,
          pull_requests: [
            { number: 8, base: { repo: { id: 6 } }, head: { sha: SHA } },
            { number: 9, base: { repo: { id: 5 } }, head: { sha: SHA } },
          ],
        },
      }),
      leads: ['number 9', 'commit 9f3c2e1', 'branch octo-org:x @9f3c2e1'],
    },
    {
      what: 'a status with its branches',
      given: event('status', {
        sha: SHA,
        branches: [
          { name: 'x', commit: { sha: SHA } },
          { name: 'old', commit: { sha: OTHER } },
        ],
      }),
      leads: ['commit 9f3c2e1', 'branch octo-org:x @9f3c2e1'],
    },
    {
      what: 'a start by hand on a branch',
      given: event('workflow_dispatch', { ref: 'refs/heads/feature/x' }),
      leads: ['branch octo-org:feature/x @9f3c2e1'],
    },
    {
      what: 'a start by hand on a tag',
      given: event('workflow_dispatch', { ref: 'refs/tags/v1' }),
      leads: [],
    },
    {
      what: 'a pull request without its payload',
      given: event('pull_request', null, { ref: 'refs/pull/42/merge' }),
      leads: ['number 42'],
    },
    {
      what: 'an event of tomorrow that has a pull request',
      given: event('pull_request_thread', { pull_request: { number: 42 } }),
      leads: ['number 42'],
    },
  ])('$what', ({ given, leads }) => {
    expect(shown(given)).toEqual(leads);
  });

  test.each([
    {
      name: 'schedule',
      payload: {},
      reason: /^a scheduled run belongs to no pull request; .*pr-number/,
    },
    { name: 'issue_comment', payload: { issue: { number: 7 } }, reason: /^this is about an issue/ },
    { name: 'issues', payload: { issue: { number: 7 } }, reason: /^this is about an issue/ },
    { name: 'delete', payload: { ref_type: 'tag', ref: 'v1' }, reason: /^a deleted tag/ },
    { name: 'push', payload: { deleted: true, ref: 'refs/tags/v1' }, reason: /^a deleted tag/ },
    {
      name: 'repository_dispatch',
      payload: { client_payload: { pr: 7 } },
      reason: /^could not tell/,
    },
    { name: 'workflow_run', payload: { workflow_run: {} }, reason: /^could not tell/ },
    { name: 'pull_request', payload: null, reason: /^could not tell which pull request/ },
    { name: 'release', payload: {}, reason: /^could not tell/ },
  ])('nothing to follow in $name: $reason', ({ name, payload, reason }) => {
    const found = leadsOf(event(name, payload), 'github');
    expect(found).toEqual({ leads: [], reason: expect.stringMatching(reason) });
  });
});

/** After modules/structs/hook.go, services/actions/notifier.go and services/convert of Gitea 1.26 and Forgejo. */
describe('Gitea and Forgejo', () => {
  const pull = {
    number: 42,
    head: {
      label: 'feature/x',
      ref: 'feature/x',
      sha: SHA,
      repo_id: 5,
      repo: { id: 5, full_name: 'octo-org/shop' },
    },
    base: { label: 'main', ref: 'main', repo_id: 5, repo: { id: 5, full_name: 'octo-org/shop' } },
  };
  const run = {
    head_sha: SHA,
    head_branch: '',
    event: 'pull_request',
    path: 'ci.yml@refs/pull/42/head',
    repository: { id: 5, full_name: 'octo-org/shop' },
  };

  test.each<{ what: string; given: HostEvent; leads: string[] }>([
    {
      what: 'a pull request',
      given: event('pull_request', { action: 'closed', number: 42, pull_request: pull }),
      leads: ['number 42'],
    },
    {
      what: 'a review',
      given: event('pull_request_review_approved', { number: 42, pull_request: pull, review: {} }),
      leads: ['number 42'],
    },
    {
      what: 'a comment on a pull request',
      given: event('pull_request_comment', {
        issue: { number: 42, pull_request: { merged: false } },
        is_pull: true,
      }),
      leads: ['number 42'],
    },
    {
      what: 'a comment on an issue',
      given: event('issue_comment', { issue: { number: 42, pull_request: null }, is_pull: false }),
      leads: [],
    },
    {
      what: 'a deleted branch, by its whole ref',
      given: event('delete', {
        ref: 'refs/heads/feature/x',
        ref_type: 'branch',
        pusher_type: 'user',
      }),
      leads: ['branch octo-org:feature/x'],
    },
    {
      what: 'a run for a pull request',
      given: event('workflow_run', { action: 'completed', workflow_run: run }),
      leads: ['number 42', 'commit 9f3c2e1'],
    },
    {
      what: 'a run for a branch',
      given: event('workflow_run', {
        workflow_run: {
          ...run,
          path: 'ci.yml@refs/heads/x',
          head_branch: 'x',
          head_repository: { full_name: 'octo-org/shop' },
        },
      }),
      leads: ['branch octo-org:x @9f3c2e1', 'commit 9f3c2e1'],
    },
    {
      what: 'a push',
      given: event('push', { ref: 'refs/heads/x', before: OTHER, after: SHA, commits: [] }),
      leads: ['commit 9f3c2e1', 'branch octo-org:x @9f3c2e1'],
    },
    {
      what: 'a called workflow, which has the payload of its caller',
      given: event('workflow_call', { action: 'closed', number: 42, pull_request: pull }),
      leads: ['number 42'],
    },
    {
      what: 'a called workflow of a deleted branch',
      given: event('workflow_call', { ref: 'refs/heads/x', ref_type: 'branch' }),
      leads: ['branch octo-org:x'],
    },
    {
      what: 'a pull request whose payload does not say so',
      given: event('pull_request_sync', {}, { ref: 'refs/pull/42/head' }),
      leads: ['number 42'],
    },
  ])('$what', ({ given, leads }) => {
    expect(shown(given, 'gitea')).toEqual(leads);
    expect(shown(given, 'forgejo')).toEqual(leads);
  });
});

describe('whatever somebody has put into the payload', () => {
  const strange: Json[] = [
    null,
    [],
    'x',
    42,
    true,
    {},
    { number: '42' },
    { number: -1 },
    { number: 1.5 },
  ];
  const keys = [
    'pull_request',
    'issue',
    'workflow_run',
    'check_run',
    'check_suite',
    'merge_group',
    'deployment',
    'ref',
    'sha',
  ];
  const names = [...NAMES, 'delete', 'workflow_call', 'schedule', ''];

  test.each(names)('%s is read without harm', (name) => {
    for (const value of strange) {
      expect(shown(event(name, value)).filter((lead) => lead.startsWith('number'))).toEqual([]);
      const payload = Object.fromEntries(keys.map((key) => [key, value]));
      const numbers = shown(event(name, payload)).filter((lead) => lead.startsWith('number'));
      expect(numbers).toEqual([]);
    }
  });

  test.each(['schedule', 'repository_dispatch', 'issue_comment', 'delete', 'workflow_run'])(
    'a run of %s is not about the commit that it ran on',
    (by) => {
      const run = { event: by, head_sha: SHA, head_branch: 'main' };
      const given = event('workflow_run', {
        workflow_run: { ...run, head_repository: { full_name: 'octo-org/shop' } },
      });
      expect(leadsOf(given, 'github')).toEqual({ leads: [], reason: expect.stringContaining(by) });
    },
  );

  test('the branch of a merge queue names its pull request, unless a fork has it', () => {
    const queue = `gh-readonly-queue/release/1.x/pr-104-${OTHER}`;
    const run = (repository: string) => ({
      workflow_run: {
        event: 'push',
        head_sha: SHA,
        head_branch: queue,
        head_repository: { full_name: repository },
      },
    });
    expect(shown(event('push', { ref: `refs/heads/${queue}`, after: SHA }))).toContain(
      'number 104',
    );
    expect(shown(event('create', { ref_type: 'branch', ref: queue }))).toEqual(['number 104']);
    expect(shown(event('workflow_run', run('octo-org/shop')))).toContain('number 104');
    expect(shown(event('workflow_run', run('somebody/shop')))).not.toContain('number 104');
  });

  test('a branch may have any name', () => {
    for (const name of NASTY_TEXTS) {
      const leads = shown(event('delete', { ref_type: 'branch', ref: name }));
      expect(leads).toEqual([`branch ${OWNER}:${name}`]);
    }
  });
});

function pull(number: number, more: Partial<PullRequest> = {}): PullRequest {
  return {
    number,
    baseRepository: 'octo-org/shop',
    baseRepositoryId: undefined,
    headSha: SHA,
    headBranch: 'feature',
    headRepository: '',
    headOwner: OWNER,
    isMerged: false,
    mergeCommitSha: undefined,
    closedAt: undefined,
    ...more,
  };
}

/** Answers with all of them, whatever it is asked; the gate has to choose. */
function hostWith(pulls: readonly PullRequest[]): HostApi {
  const all = async () => ({ ok: true, value: [...pulls] }) as const;
  return {
    pull: async (number: number) => {
      const found = pulls.find((one) => one.number === number);
      if (found !== undefined) return { ok: true, value: found };
      return { ok: false, failure: { kind: 'not-found', message: '404 Not Found' } };
    },
    pullsOfCommit: all,
    pullsOfBranch: all,
  } as unknown as HostApi;
}

async function found(
  given: HostEvent,
  pulls: readonly PullRequest[],
  input?: number,
): Promise<unknown> {
  const end = await findPullRequest(given, 'github', input, hostWith(pulls));
  return end.kind === 'found' ? end.number : 'reason' in end ? end.reason : end;
}

const MINUTE = 60_000;
const DELETED = event('delete', { ref_type: 'branch', ref: 'feature' });
const STATUS = event('status', { sha: SHA });
const RUN = event('workflow_run', {
  workflow_run: {
    head_sha: SHA,
    head_branch: 'feature',
    head_repository: { owner: { login: 'Octo-Org' } },
  },
});
const SEVERAL = (...numbers: number[]) =>
  expect.stringContaining(`this belongs to several pull requests (${numbers.join(', ')})`);

describe('the pull request that a host has', () => {
  test.each<{ what: string; given: HostEvent; pulls: PullRequest[]; end: unknown }>([
    { what: 'by commit, the only one', given: STATUS, pulls: [pull(1)], end: 1 },
    {
      what: 'by commit, the one that it merged',
      given: STATUS,
      pulls: [pull(1, { isMerged: true }), pull(2, { isMerged: true, mergeCommitSha: SHA })],
      end: 2,
    },
    {
      what: 'by commit, the one with this head',
      given: STATUS,
      pulls: [pull(1, { headSha: OTHER }), pull(2)],
      end: 2,
    },
    {
      what: 'by commit, none of two equal ones',
      given: STATUS,
      pulls: [pull(1), pull(2)],
      end: SEVERAL(1, 2),
    },
    {
      what: 'by commit, never one of another repository',
      given: STATUS,
      pulls: [pull(1, { baseRepository: 'somebody/shop' })],
      end: expect.stringMatching(/^no pull request of this repository has this commit/),
    },
    {
      what: 'by branch, of those that ended at different times the last',
      given: DELETED,
      pulls: [pull(3, { closedAt: 5 * MINUTE }), pull(9, { closedAt: 50 * MINUTE })],
      end: 9,
    },
    {
      what: 'by branch, none of two that ended with it',
      given: DELETED,
      pulls: [pull(3, { closedAt: 50 * MINUTE }), pull(9, { closedAt: 50 * MINUTE + 900 })],
      end: SEVERAL(3, 9),
    },
    {
      what: 'by branch, an open one before those that ended',
      given: DELETED,
      pulls: [pull(3), pull(9, { closedAt: 50 * MINUTE })],
      end: 3,
    },
    {
      what: 'by branch, none of two open ones',
      given: DELETED,
      pulls: [pull(3), pull(9)],
      end: SEVERAL(3, 9),
    },
    {
      what: 'by branch, not another branch or owner',
      given: DELETED,
      pulls: [pull(3, { headBranch: 'x' }), pull(4, { headOwner: 'fork' })],
      end: expect.stringMatching(/^no pull request comes from the branch that was deleted/),
    },
    {
      what: 'by branch, one whose fork is gone',
      given: DELETED,
      pulls: [pull(9, { headOwner: '' })],
      end: 9,
    },
    {
      what: 'by branch, not of a fork that the same owner has',
      given: DELETED,
      pulls: [
        pull(3, { headRepository: 'octo-org/shop-fork', closedAt: undefined }),
        pull(9, { headRepository: 'octo-org/shop', closedAt: 50 * MINUTE }),
      ],
      end: 9,
    },
    {
      what: 'of a repository that has another name by now',
      given: event('status', { sha: SHA, repository: { id: 5 } }),
      pulls: [pull(1, { baseRepository: 'octo-org/store', baseRepositoryId: 5 })],
      end: 1,
    },
    {
      what: 'of a repository that another one is called like by now',
      given: event('status', { sha: SHA, repository: { id: 5 } }),
      pulls: [pull(1, { baseRepositoryId: 6 })],
      end: expect.stringContaining('no pull request of this repository'),
    },
    {
      what: 'that the event names and the token may not see',
      given: event('pull_request', { pull_request: { number: 8 } }),
      pulls: [],
      end: expect.objectContaining({ kind: 'failed', what: 'pull request 8' }),
    },
    {
      what: 'of a run, only with the commit that ran',
      given: RUN,
      pulls: [pull(9, { headSha: OTHER }), pull(3)],
      end: 3,
    },
    {
      what: 'of a run, nobody knows',
      given: RUN,
      pulls: [],
      end: expect.stringMatching(/^could not tell which pull request this belongs to/),
    },
  ])('$what', async ({ given, pulls, end }) => {
    expect(await found(given, pulls)).toEqual(end);
  });

  test.each(['pull_request', 'schedule', 'delete', 'push'])(
    'is the input before all that %s says',
    async (name) => {
      const given = event(name, { pull_request: { number: 42 } });
      expect(await found(given, [pull(7), pull(42)], 7)).toBe(7);
    },
  );

  test('is found by its branch where the host does not know the commit', async () => {
    const unknown = { kind: 'invalid', status: 422, message: '422 No commit found for SHA' };
    const api = {
      ...hostWith([pull(3)]),
      pullsOfCommit: async () => ({ ok: false, failure: unknown }),
    } as unknown as HostApi;
    const given = event('push', { ref: 'refs/heads/feature', after: SHA });
    expect(await findPullRequest(given, 'github', undefined, api)).toMatchObject({ number: 3 });
  });

  test('may be one of several that a check lists', async () => {
    const listed = (number: number) => ({ number, base: { repo: { id: 5 } }, head: { sha: SHA } });
    const given = event('check_suite', {
      repository: { id: 5 },
      check_suite: { head_sha: SHA, pull_requests: [listed(3), listed(4)] },
    });
    expect(await found(given, [pull(3), pull(4)])).toEqual(SEVERAL(3, 4));
    expect(await found(given, [pull(4)])).toBe(4);
  });
});
