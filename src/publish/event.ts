import { at, type Json, numberAt, stringAt } from '../base/json.ts';

/** The event that started the workflow. */
export interface GithubEvent {
  /** `GITHUB_EVENT_NAME`; in a called workflow that of the caller. */
  name: string;
  payload: Json;
  /** `GITHUB_SHA`. */
  sha: string;
  /** `GITHUB_ACTOR`. */
  actor: string;
  /** "owner/name". */
  repository: string;
}

/** Where the number of the pull request is to be found. */
export type PullRequestSource =
  | { kind: 'number'; number: number }
  | { kind: 'commit'; sha: string }
  | { kind: 'branch'; owner: string; branch: string; sha?: string }
  | { kind: 'none'; reason: string };

/** The input comes first, always; then what the event itself says. Decides without asking anybody. */
export function pullRequestSource(
  event: GithubEvent,
  input: number | undefined,
): PullRequestSource {
  if (input !== undefined) return { kind: 'number', number: input };
  const { payload } = event;
  switch (event.name) {
    case 'issue_comment':
      return numbered(
        at(payload, 'issue', 'pull_request') === undefined
          ? undefined
          : numberAt(payload, 'issue', 'number'),
        'the comment is on an issue, not on a pull request',
      );
    case 'push':
      return pushed(event);
    case 'delete':
      return deleted(event);
    case 'workflow_run':
      return afterWorkflow(payload);
    case 'merge_group':
      return queued(payload);
    case 'deployment':
    case 'deployment_status':
      return commit(stringAt(payload, 'deployment', 'sha') ?? event.sha);
    default:
      return numbered(
        numberAt(payload, 'pull_request', 'number'),
        `the event ${event.name} belongs to no pull request; give the input "pr-number" for a comment`,
      );
  }
}

/** Why a run of this event has a token that cannot write, whatever its permissions say. */
export function readOnlyReason(event: GithubEvent): string | undefined {
  if (event.actor === 'dependabot[bot]') {
    return 'GitHub gives a run that Dependabot started a read-only token';
  }
  const head = stringAt(event.payload, 'pull_request', 'head', 'repo', 'full_name');
  const isFork = head?.toLowerCase() !== event.repository.toLowerCase();
  if (event.name.startsWith('pull_request') && event.name !== 'pull_request_target' && isFork) {
    return 'GitHub gives a run for a pull request from a fork a read-only token';
  }
  return undefined;
}

function numbered(number: number | undefined, reason: string): PullRequestSource {
  return number === undefined ? { kind: 'none', reason } : { kind: 'number', number };
}

function commit(sha: string): PullRequestSource {
  return /^[0-9a-f]{40}([0-9a-f]{24})?$/.test(sha)
    ? { kind: 'commit', sha }
    : { kind: 'none', reason: 'the event names no commit' };
}

function pushed(event: GithubEvent): PullRequestSource {
  // A push that deletes a branch carries no commit; its GITHUB_SHA is the default branch's.
  if (at(event.payload, 'deleted') === true) {
    const branch = /^refs\/heads\/(.+)$/.exec(stringAt(event.payload, 'ref') ?? '')?.[1];
    return branch === undefined
      ? { kind: 'none', reason: 'a deleted tag belongs to no pull request' }
      : { kind: 'branch', owner: ownerOf(event), branch };
  }
  return commit(stringAt(event.payload, 'after') ?? event.sha);
}

function deleted(event: GithubEvent): PullRequestSource {
  const branch = stringAt(event.payload, 'ref');
  if (stringAt(event.payload, 'ref_type') !== 'branch' || branch === undefined) {
    return { kind: 'none', reason: 'a deleted tag belongs to no pull request' };
  }
  return { kind: 'branch', owner: ownerOf(event), branch };
}

function afterWorkflow(payload: Json): PullRequestSource {
  const number = numberAt(payload, 'workflow_run', 'pull_requests', 0, 'number');
  if (number !== undefined) return { kind: 'number', number };
  // Empty for forks; then the branch is what leads to it, and the commit what proves it.
  const owner = stringAt(payload, 'workflow_run', 'head_repository', 'owner', 'login');
  const branch = stringAt(payload, 'workflow_run', 'head_branch');
  const sha = stringAt(payload, 'workflow_run', 'head_sha');
  if (owner === undefined || branch === undefined || sha === undefined) {
    return { kind: 'none', reason: 'the workflow that ran before belongs to no pull request' };
  }
  return { kind: 'branch', owner, branch, sha };
}

function queued(payload: Json): PullRequestSource {
  const ref = stringAt(payload, 'merge_group', 'head_ref') ?? '';
  const number = /\/pr-(\d{1,10})-[0-9a-f]{40}$/.exec(ref)?.[1];
  return numbered(
    number === undefined ? undefined : Number(number),
    'the merge group names no pull request',
  );
}

function ownerOf(event: GithubEvent): string {
  return event.repository.split('/')[0] ?? '';
}
