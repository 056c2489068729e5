import examples from '@octokit/webhooks-examples';
import { describe, expect, test } from 'vitest';
import { isObject, type Json, type JsonObject } from '../../src/base/json.ts';
import type { HostApi, PullRequest } from '../../src/publish/host-api.ts';
import { findPullRequest, leadsOf } from '../../src/publish/pull-request.ts';
import type { HostEvent, HostKind } from '../../src/publish/workflow-run.ts';
import { NASTY_TEXTS } from '../stub/nasty.ts';
import { expectPairs } from '../stub/pairs.ts';

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

  test('check_run: each pull request that it names, and none of a fork', () => {
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

  test('a listed pull request counts only with the id of this repository and this commit', () => {
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

  test('all events', () => {
    for (const name of NAMES) {
      for (const { payload, repository } of published(name)) {
        const { leads, reason } = leadsOf(event(name, payload, { repository }), 'github');
        expect(leads.length > 0 || /pr-number/.test(reason)).toBe(true);
      }
    }
  });
});

/** Where nothing is published. */
test('events of GitHub, Gitea and Forgejo lead to pull requests, or to a reason', async () => {
  const told = (host: HostKind) => (line: string) => {
    const { name, payload, ...more } = JSON.parse(line);
    const given = event(name, payload, more);
    const leads = shown(given, host);
    return leads.length > 0 ? leads : leadsOf(given, host).reason;
  };
  await expectPairs('pull-requests.txt', told('github'));
  // After modules/structs/hook.go, services/actions/notifier.go and services/convert of Gitea 1.26 and Forgejo.
  await expectPairs('pull-requests-gitea.txt', told('gitea'));
  await expectPairs('pull-requests-gitea.txt', told('forgejo'));
});

describe('with any payload', () => {
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

  test.each(names)('%s does not throw', (name) => {
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

  test('the branch of a merge queue names its pull request, unless the branch is in a fork', () => {
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

const SEVERAL = (...numbers: number[]) =>
  expect.stringContaining(`this belongs to several pull requests (${numbers.join(', ')})`);

describe('the pull request from the API of the host', () => {
  test('is the one of the event, or none', () =>
    expectPairs('pull-requests-found.txt', async (line) => {
      const { name, payload, pulls } = JSON.parse(line);
      const all = pulls.map(({ number, ...more }: PullRequest) => pull(number, more));
      return found(event(name, payload), all);
    }));

  test.each(['pull_request', 'schedule', 'delete', 'push'])(
    'is the one of the input, whatever %s contains',
    async (name) => {
      const given = event(name, { pull_request: { number: 42 } });
      expect(await found(given, [pull(7), pull(42)], 7)).toBe(7);
    },
  );

  test('is found by its branch if the host does not know the commit', async () => {
    const unknown = { kind: 'invalid', status: 422, message: '422 No commit found for SHA' };
    const api = {
      ...hostWith([pull(3)]),
      pullsOfCommit: async () => ({ ok: false, failure: unknown }),
    } as unknown as HostApi;
    const given = event('push', { ref: 'refs/heads/feature', after: SHA });
    expect(await findPullRequest(given, 'github', undefined, api)).toMatchObject({ number: 3 });
  });

  test('may be one of several in the payload of a check', async () => {
    const listed = (number: number) => ({ number, base: { repo: { id: 5 } }, head: { sha: SHA } });
    const given = event('check_suite', {
      repository: { id: 5 },
      check_suite: { head_sha: SHA, pull_requests: [listed(3), listed(4)] },
    });
    expect(await found(given, [pull(3), pull(4)])).toEqual(SEVERAL(3, 4));
    expect(await found(given, [pull(4)])).toBe(4);
  });
});
