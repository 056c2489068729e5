import { isObject, numberAt, stringAt, valueAt } from '../base/json.ts';
import type { HostApi, PullRequest } from './host-api.ts';
import type { HostEvent } from './workflow-run.ts';

type PullRequestApi = Pick<HostApi, 'pullsOfBranch' | 'pullsOfCommit'>;

/** Returns the number of the pull request, or the reason why there is none. `given`, in the inputs, always counts. */
export async function findPullRequest(
  event: HostEvent,
  given: number | undefined,
  api: PullRequestApi,
): Promise<number | string> {
  const numbers = given === undefined ? await numbersOf(event, api) : [given];
  const [number, ...others] = numbers;
  if (number !== undefined && others.length === 0) return number;
  const all = `several pull requests (${numbers.slice(0, 10).join(', ')})`;
  const what = number === undefined ? 'no pull request' : all;
  const ask = 'give the input "pr-number" for a comment';
  return `the event "${event.name}" of ${event.repository} names ${what}; ${ask}`;
}

async function numbersOf(event: HostEvent, api: PullRequestApi): Promise<number[]> {
  const { name, payload, sha } = event;
  switch (name) {
    case 'push':
      return pushed(stringAt(payload, 'after') ?? sha, event, api);
    case 'merge_group':
      return queued(stringAt(payload, 'merge_group', 'head_ref'));
    case 'workflow_run': {
      // `pull_requests` of the payload is empty for a fork, and lists those of other repositories.
      const run = valueAt(payload, 'workflow_run');
      if (!/^pull_request/.test(stringAt(run, 'event') ?? '')) return [];
      const owner = stringAt(run, 'head_repository', 'owner', 'login') ?? '';
      const pulls = await api.pullsOfBranch(owner, stringAt(run, 'head_branch') ?? '');
      return pulls
        .filter((pull) => pull.head.sha === stringAt(run, 'head_sha') && isOurs(pull, event))
        .map(({ number }) => number);
    }
  }
  // A comment on a pull request is one on its issue.
  const isOnPull = isObject(valueAt(payload, 'issue', 'pull_request'));
  const number = numberAt(payload, isOnPull ? 'issue' : 'pull_request', 'number') ?? 0;
  return Number.isSafeInteger(number) && number > 0 ? [number] : [];
}

/** Reads "refs/heads/gh-readonly-queue/<base>/pr-7-<commit of the base>", where the base may contain "/". */
function queued(ref = ''): number[] {
  const number = /^refs\/heads\/gh-readonly-queue\/.+\/pr-(\d{1,10})-[0-9a-f]{40,64}$/.exec(ref);
  return number === null ? [] : [Number(number[1])];
}

/** The closest to a commit: merged as this commit, at this commit, or containing it. */
async function pushed(sha: string, event: HostEvent, api: PullRequestApi): Promise<number[]> {
  const ours = (await api.pullsOfCommit(sha)).filter((pull) => isOurs(pull, event));
  const ranked = [
    ours.filter(({ merged_at, merge_commit_sha }) => merged_at && merge_commit_sha === sha),
    ours.filter(({ head }) => head.sha === sha),
    ours,
  ];
  return (ranked.find((some) => some.length > 0) ?? []).map(({ number }) => number);
}

/** It wants to change this repository, and not a fork of it. */
function isOurs({ base }: Pick<PullRequest, 'base'>, { repository }: HostEvent): boolean {
  return base.repo.full_name.toLowerCase() === repository.toLowerCase();
}
