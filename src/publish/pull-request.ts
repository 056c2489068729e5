import { arrayAt, type Json, numberAt, stringAt, valueAt } from '../base/json.ts';
import type { HostApi, PullRequest } from './host-api.ts';
import type { HostEvent } from './workflow-run.ts';

const ASK = 'give the input "pr-number" for a comment';

/** The number of a pull request, or the reason why there is none. */
export type FoundPullRequest = { number: number } | { reason: string };

/** Returns the pull request that an event is about. `given` is the number in the inputs, which always counts. */
export async function findPullRequest(
  event: HostEvent,
  given: number | undefined,
  api: Pick<HostApi, 'pullsOfBranch' | 'pullsOfCommit'>,
): Promise<FoundPullRequest> {
  if (given !== undefined) return { number: given };
  const { name, payload, repository, sha } = event;
  if (payload === null) {
    return { reason: `the file that GITHUB_EVENT_PATH names could not be read; ${ASK}` };
  }
  switch (name) {
    case 'push': {
      const head = stringAt(payload, 'after') ?? sha;
      return single(ofCommit(await api.pullsOfCommit(head), event, head));
    }
    case 'merge_group':
      return single(queuedIn(stringAt(payload, 'merge_group', 'head_ref')));
    case 'workflow_run': {
      const run = valueAt(payload, 'workflow_run');
      const commit = stringAt(run, 'head_sha') ?? '';
      const branch = stringAt(run, 'head_branch') ?? '';
      switch (stringAt(run, 'event')) {
        case 'push':
          return single(ofCommit(await api.pullsOfCommit(commit), event, commit));
        case 'merge_group':
          return single(queuedIn(`refs/heads/${branch}`));
        case 'pull_request':
        case 'pull_request_target': {
          const listed = listedIn(run, event, commit);
          if (listed.length > 0) return single(listed);
          // GitHub lists none for a fork.
          const owner = stringAt(run, 'head_repository', 'owner', 'login') ?? '';
          const pulls = await api.pullsOfBranch(owner, branch);
          const same = pulls.filter((pull) => pull.head.sha === commit && isOurs(pull, event));
          return single(same.map(({ number }) => number));
        }
        default:
          return single([]);
      }
    }
    default:
      return single(numbersIn(valueAt(payload, 'pull_request')));
  }

  function single([number, ...others]: readonly number[]): FoundPullRequest {
    if (number === undefined) {
      return { reason: `the event "${name}" of ${repository} names no pull request; ${ASK}` };
    }
    if (others.length === 0) return { number };
    const all = [number, ...others].slice(0, 10).join(', ');
    return { reason: `this belongs to several pull requests (${all}); ${ASK}` };
  }
}

function numbersIn(holder: Json | undefined): number[] {
  const number = numberAt(holder, 'number') ?? 0;
  return Number.isSafeInteger(number) && number > 0 ? [number] : [];
}

/** Reads "refs/heads/gh-readonly-queue/<base>/pr-7-<commit of the base>", where the base may contain "/". */
function queuedIn(ref = ''): number[] {
  const queued = /^refs\/heads\/gh-readonly-queue\/.+\/pr-(\d{1,10})-[0-9a-f]{40,64}$/.exec(ref);
  return queued === null ? [] : [Number(queued[1])];
}

/**
 * Returns the numbers in `pull_requests`. It lists every pull request with this head branch, also of other
 * repositories, and may be older than the commit.
 */
function listedIn(run: Json | undefined, { payload }: HostEvent, commit: string): number[] {
  const id = numberAt(payload, 'repository', 'id');
  return arrayAt(run, 'pull_requests')
    .filter((pull) => numberAt(pull, 'base', 'repo', 'id') === id)
    .filter((pull) => stringAt(pull, 'head', 'sha') === commit)
    .flatMap(numbersIn);
}

/**
 * Returns the pull requests with the closest relation to a commit: merged as this commit, at this commit, or
 * containing it.
 */
function ofCommit(pulls: readonly PullRequest[], event: HostEvent, sha: string): number[] {
  const ours = pulls.filter((pull) => isOurs(pull, event));
  const ranked = [
    ours.filter(({ merged_at, merge_commit_sha }) => merged_at && merge_commit_sha === sha),
    ours.filter(({ head }) => head.sha === sha),
    ours,
  ];
  return (ranked.find((some) => some.length > 0) ?? []).map(({ number }) => number);
}

/** Reports whether the pull request wants to change this repository, and not a fork of it. */
function isOurs({ base }: PullRequest, { repository }: HostEvent): boolean {
  return base.repo.full_name.toLowerCase() === repository.toLowerCase();
}
