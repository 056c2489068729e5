import type { ReadFailure } from '../model/read.ts';
import type { PullRequestSource } from './event.ts';
import type { GithubApi, PullRequest } from './github-api.ts';

export type FoundPullRequest =
  | { kind: 'found'; number: number }
  | { kind: 'none'; reason: string }
  | { kind: 'failed'; what: string; failure: ReadFailure };

/** The pull request that a source leads to; one of another repository is never ours to comment on. */
export async function findPullRequest(
  source: PullRequestSource,
  api: GithubApi,
  signal?: AbortSignal,
): Promise<FoundPullRequest> {
  switch (source.kind) {
    case 'none':
      return source;
    case 'number':
      return checked(source.number, api, signal);
    case 'commit': {
      const got = await api.pullsOfCommit(source.sha, signal);
      if (!got.ok)
        return { kind: 'failed', what: 'the pull requests of the commit', failure: got.failure };
      return chooseByCommit(ours(got.value, api), source.sha);
    }
    case 'branch': {
      const got = await api.pullsOfBranch(source.owner, source.branch, signal);
      if (!got.ok)
        return { kind: 'failed', what: 'the pull requests of the branch', failure: got.failure };
      return chooseByBranch(ours(got.value, api), source);
    }
  }
}

async function checked(
  number: number,
  api: GithubApi,
  signal: AbortSignal | undefined,
): Promise<FoundPullRequest> {
  const got = await api.pull(number, signal);
  // With "issues: write" alone a comment can be written, but a pull request cannot be read.
  if (!got.ok && got.failure.kind !== 'not-found') return { kind: 'found', number };
  const isOurs = got.ok && isInRepository(got.value, api);
  return isOurs
    ? { kind: 'found', number }
    : { kind: 'none', reason: `this repository has no pull request ${number}` };
}

/** Exported for its table of cases: a commit can belong to several pull requests. */
export function chooseByCommit(pulls: readonly PullRequest[], sha: string): FoundPullRequest {
  const ranked = [
    pulls.filter((pull) => pull.isMerged && pull.mergeCommitSha === sha),
    pulls.filter((pull) => pull.headSha === sha),
    pulls.filter((pull) => pull.isMerged),
    pulls,
  ];
  const best = ranked.find((some) => some.length > 0) ?? [];
  const [only] = best;
  if (only === undefined) return { kind: 'none', reason: 'no pull request contains the commit' };
  if (best.length === 1) return { kind: 'found', number: only.number };
  return {
    kind: 'none',
    reason: `${best.length} pull requests contain the commit; give the input "pr-number" to choose one`,
  };
}

/** The one that was updated last: a branch name can have been used before. */
export function chooseByBranch(
  pulls: readonly PullRequest[],
  source: { owner: string; branch: string; sha?: string },
): FoundPullRequest {
  const [newest] = pulls.filter(
    (pull) =>
      pull.headRef === source.branch &&
      // The head repository is missing once a fork was deleted.
      (pull.headOwner === '' || same(pull.headOwner, source.owner)) &&
      (source.sha === undefined || pull.headSha === source.sha),
  );
  return newest === undefined
    ? { kind: 'none', reason: 'no pull request comes from the branch' }
    : { kind: 'found', number: newest.number };
}

function ours(pulls: readonly PullRequest[], api: GithubApi): PullRequest[] {
  return pulls.filter((pull) => isInRepository(pull, api));
}

function isInRepository(pull: PullRequest, api: GithubApi): boolean {
  return same(pull.baseRepository, api.repository);
}

function same(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
