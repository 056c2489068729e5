import { expect, test } from 'vitest';
import type { Json } from '../../src/base/json.ts';
import type { PullRequest } from '../../src/publish/host-api.ts';
import { findPullRequest } from '../../src/publish/pull-request.ts';
import { expectPairs } from '../stub/pairs.ts';

const SHA = '9f3c2e1a7b5d4c6e8f0a1b2c3d4e5f6a7b8c9d0e';
const EVENT = { sha: SHA, actor: 'octocat', repository: 'octo-org/shop' };

interface Row {
  name: string;
  payload: Json;
  prNumber?: number;
  /** The pull requests that the host answers with. */
  pulls?: { number: number; base?: string; head?: string; merged?: string }[];
}

async function found({ name, payload, prNumber, pulls = [] }: Row): Promise<unknown> {
  const asked: string[] = [];
  const answer = (question: string): Promise<PullRequest[]> => {
    asked.push(question);
    const all = pulls.map(({ number, base = 'Octo-Org/shop', head = SHA, merged }) => ({
      number,
      base: { repo: { full_name: base } },
      head: { sha: head },
      ...{ merged_at: merged === undefined ? null : 'x', merge_commit_sha: merged ?? null },
    }));
    return Promise.resolve(all as unknown as PullRequest[]);
  };
  const got = await findPullRequest({ ...EVENT, name, payload }, prNumber, {
    pullsOfCommit: (sha) => answer(`commit ${sha}`),
    pullsOfBranch: (owner, branch) => answer(`branch ${owner}:${branch}`),
  });
  return [...asked, got];
}

test('the pull request of an event, or why there is none', () =>
  expectPairs('pull-requests.txt', (line) => found(JSON.parse(line.replaceAll('SHA', SHA)))));

test('no payload of any shape throws or names a number', async () => {
  const strange = [null, [], 'x', 42, true, {}, { number: '42' }, { number: -1 }, { number: 1.5 }];
  const keys = ['pull_request', 'workflow_run', 'merge_group', 'after', 'event', 'head_sha'];
  for (const name of ['pull_request', 'workflow_run', 'merge_group', 'push', 'schedule', '']) {
    for (const value of strange) {
      const inside = Object.fromEntries(keys.map((key) => [key, value]));
      for (const payload of [value, inside, { workflow_run: { ...inside, event: 'push' } }]) {
        expect((await found({ name, payload })) as Json[]).toContainEqual(
          expect.stringContaining('pr-number'),
        );
      }
    }
  }
});
