import { arrayAt, isObject, type Json, numberAt, stringAt, valueAt } from '../base/json.ts';
import type { ApiFailure, HostApi, PullRequest } from './host-api.ts';
import type { HostEvent, HostKind } from './workflow-run.ts';

/** Data in an event by which its pull request can be found. */
type Lead =
  | { by: 'number'; number: number }
  | { by: 'commit'; sha: string }
  /** With a commit, the commit has to be the head; without one, the branch was deleted. */
  | { by: 'branch'; owner: string; branch: string; sha?: string; isOwn: boolean };

interface Leads {
  /** Leads in order; the first one with a pull request counts. */
  leads: Lead[];
  /** The message if there is no pull request. */
  reason: string;
}

const ASK = 'give the input "pr-number" for a comment';
const UNKNOWN = `could not tell which pull request this belongs to; ${ASK}`;
const UNREAD = `the event, which says to which pull request this belongs, could not be read from the file that GITHUB_EVENT_PATH names; ${ASK}`;

/**
 * Returns where the pull request of an event can be found, without a request. Sources of the shapes: GitHub's
 * published webhook payloads; Gitea's and Forgejo's modules/structs/hook.go and services/actions/notifier.go.
 */
export function leadsOf(event: HostEvent, host: HostKind): Leads {
  const { payload } = event;
  const name = eventName(event);
  switch (name) {
    case 'issue_comment':
    case 'pull_request_comment':
    case 'issues':
      return leadsOfIssue(event);
    case 'push':
      return leadsOfPush(event);
    case 'create':
      return stringAt(payload, 'ref_type') === 'branch'
        ? leadsOrReason(branchLead(event, stringAt(payload, 'ref'), event.sha))
        : leadsOrReason(commitLead(event.sha));
    case 'delete':
      return leadsOfDelete(event, host);
    case 'workflow_run':
      return leadsOfWorkflowRun(event);
    case 'check_suite':
    case 'check_run': {
      // A check belongs to this repository, also if its pull request is from a fork.
      const check = valueAt(payload, name);
      const sha = stringAt(check, 'head_sha') ?? '';
      const from = stringAt(check, 'head_branch') ?? stringAt(check, 'check_suite', 'head_branch');
      return leadsOrReason([
        ...leadsInPayload(check, sha, event),
        ...commitLead(sha),
        ...branchLead(event, from, sha),
      ]);
    }
    case 'status':
      return leadsOfStatus(event);
    case 'workflow_dispatch':
      return leadsOrReason(
        branchLead(event, stringAt(payload, 'ref') ?? event.ref, event.sha),
        `no pull request comes from the branch that this was started on; ${ASK}`,
      );
    case 'deployment':
    case 'deployment_status':
      return leadsOfDeployment(event);
    case 'merge_group':
      return leadsOrReason(numberLead(numberIn(stringAt(payload, 'merge_group', 'head_ref'))));
    case 'schedule':
      return leadsOrReason([], `a scheduled run belongs to no pull request; ${ASK}`);
    default:
      return leadsOrReason([
        ...numberLead(numberAt(payload, 'pull_request', 'number')),
        ...numberLead(numberIn(event.ref)),
      ]);
  }
}

/**
 * Returns the name of the event. For a called workflow, Gitea names the event "workflow_call" and passes the
 * payload of the caller.
 */
function eventName({ name, payload }: HostEvent): string {
  if (name !== 'workflow_call') return name;
  if (!isObject(payload)) return name;
  const kinds = ['workflow_run', 'check_run', 'check_suite', 'deployment', 'merge_group'];
  if (isObject(payload['pull_request'])) return 'pull_request';
  if (isObject(payload['issue'])) return 'issue_comment';
  const kind = kinds.find((key) => isObject(payload[key]));
  if (kind !== undefined) return kind;
  if (payload['ref_type'] !== undefined) return payload['sha'] === undefined ? 'delete' : 'create';
  return payload['after'] === undefined ? name : 'push';
}

function leadsOrReason(leads: Lead[], reason = UNKNOWN): Leads {
  return { leads, reason };
}

function leadsOfIssue({ payload }: HostEvent): Leads {
  const isPull =
    isObject(valueAt(payload, 'issue', 'pull_request')) ||
    isObject(valueAt(payload, 'pull_request')) ||
    valueAt(payload, 'is_pull') === true;
  const number =
    numberAt(payload, 'issue', 'number') ?? numberAt(payload, 'pull_request', 'number');
  if (isPull || number === undefined) return leadsOrReason(numberLead(number));
  return leadsOrReason([], `this is about an issue, not about a pull request; ${ASK}`);
}

function leadsOfPush(event: HostEvent): Leads {
  const { payload, sha } = event;
  const ref = stringAt(payload, 'ref') ?? event.ref;
  const isTag = ref.startsWith('refs/tags/');
  // A push that deletes has no commit; its GITHUB_SHA is that of the default branch.
  if (valueAt(payload, 'deleted') === true)
    return isTag ? deletedTag() : leadsOrReason(branchLead(event, ref));
  // The push of an annotated tag has the SHA of the tag object; the run has that of the commit.
  if (isTag) return leadsOrReason(commitLead(sha));
  const after = stringAt(payload, 'after') ?? sha;
  return leadsOrReason([...commitLead(after), ...branchLead(event, ref, after)], NO_COMMIT);
}

const NO_COMMIT = `no pull request of this repository has this commit; ${ASK}`;

function leadsOfDelete(event: HostEvent, host: HostKind): Leads {
  const { payload } = event;
  const [type, ref] = [stringAt(payload, 'ref_type'), stringAt(payload, 'ref')];
  if (type === 'tag') return deletedTag();
  // GitHub has the bare name here; other hosts have the whole ref.
  const name = host === 'github' ? ref : ref?.replace(/^refs\/heads\//, '');
  if (type !== 'branch' || name === undefined) return leadsOrReason([]);
  const lead: Lead = { by: 'branch', owner: ownerOf(event), branch: name, isOwn: true };
  return leadsOrReason([lead], `no pull request comes from the branch that was deleted; ${ASK}`);
}

function deletedTag(): Leads {
  return leadsOrReason([], `a deleted tag belongs to no pull request; ${ASK}`);
}

/**
 * Events whose runs are about the commit on which they ran. Other events (a schedule, a comment) run on the
 * latest commit of the default branch, which belongs to an unrelated pull request.
 */
const COMMIT_EVENTS =
  /^(push|create|merge_group|status|workflow_dispatch|(pull_request|check|deployment)(_\w+)?)$/;

function leadsOfWorkflowRun(event: HostEvent): Leads {
  const run = valueAt(event.payload, 'workflow_run');
  const by = stringAt(run, 'event') ?? 'push';
  if (!COMMIT_EVENTS.test(by)) {
    return leadsOrReason(
      [],
      `the run before this one was started by "${by}", of no pull request; ${ASK}`,
    );
  }
  const sha = stringAt(run, 'head_sha') ?? '';
  // Gitea and Forgejo write "ci.yml@refs/pull/7/head".
  const path = numberIn(/@(.+)$/.exec(stringAt(run, 'path') ?? '')?.[1]);
  const from = stringAt(run, 'head_repository', 'full_name');
  const owner = stringAt(run, 'head_repository', 'owner', 'login') ?? from?.split('/')[0];
  const name = stringAt(run, 'head_branch') ?? '';
  const isOwn =
    from === undefined ? owner === ownerOf(event) : isSameIgnoringCase(from, event.repository);
  const ofFork =
    owner === undefined || name === '' || sha === ''
      ? []
      : [{ by: 'branch', owner, branch: name, sha, isOwn } as const];
  return leadsOrReason([
    ...leadsInPayload(run, sha, event),
    ...numberLead(path),
    ...(isOwn ? branchLead(event, name, sha) : ofFork),
    // A manual run may be about the branch, not about a pull request that was merged into it.
    ...(by === 'workflow_dispatch' ? [] : commitLead(sha)),
  ]);
}

function leadsOfStatus(event: HostEvent): Leads {
  const sha = stringAt(event.payload, 'sha') ?? '';
  const branches = arrayAt(event.payload, 'branches').flatMap((entry) =>
    stringAt(entry, 'commit', 'sha') === sha ? branchLead(event, stringAt(entry, 'name'), sha) : [],
  );
  return leadsOrReason([...commitLead(sha), ...branches], NO_COMMIT);
}

function leadsOfDeployment(event: HostEvent): Leads {
  const { payload } = event;
  const run =
    valueAt(payload, 'workflow_run') ?? valueAt(payload, 'deployment_status', 'workflow_run');
  const sha = stringAt(payload, 'deployment', 'sha') ?? event.sha;
  const ref = stringAt(payload, 'deployment', 'ref');
  return leadsOrReason([
    ...numberLead(numberIn(ref)),
    ...leadsInPayload(run, stringAt(run, 'head_sha') ?? '', event),
    ...commitLead(sha),
    ...branchLead(event, ref, sha),
  ]);
}

/**
 * Returns the leads of `pull_requests`. It lists every pull request with this head branch, also of other
 * repositories, and may be older than the commit.
 */
function leadsInPayload(holder: Json | undefined, sha: string, event: HostEvent): Lead[] {
  const id = numberAt(event.payload, 'repository', 'id');
  const isOurs = (pull: Json): boolean => {
    const repository = numberAt(pull, 'base', 'repo', 'id');
    if (repository !== undefined && id !== undefined) return repository === id;
    const url = stringAt(pull, 'base', 'repo', 'url') ?? '';
    return url.toLowerCase().endsWith(`/repos/${event.repository.toLowerCase()}`);
  };
  return arrayAt(holder, 'pull_requests')
    .filter((pull) => isOurs(pull) && stringAt(pull, 'head', 'sha') === sha)
    .flatMap((pull) => numberLead(numberAt(pull, 'number')));
}

function numberLead(number: number | undefined): Lead[] {
  return number !== undefined && Number.isSafeInteger(number) && number > 0
    ? [{ by: 'number', number }]
    : [];
}

/**
 * Returns the number in a ref: "refs/pull/7/merge", "refs/pull/7/head" on Gitea and Forgejo, and the branch of a
 * merge queue: "refs/heads/gh-readonly-queue/<base>/pr-7-<commit of the base>", where the base may contain "/".
 */
function numberIn(ref = ''): number | undefined {
  const [, pull, queued] =
    /^refs\/(?:pull\/(\d{1,10})\/(?:merge|head)|heads\/gh-readonly-queue\/.+\/pr-(\d{1,10})-[0-9a-f]{40,64})$/.exec(
      ref,
    ) ?? [];
  const number = pull ?? queued;
  return number === undefined ? undefined : Number(number);
}

function commitLead(sha: string): Lead[] {
  return isCommit(sha) ? [{ by: 'commit', sha }] : [];
}

function isCommit(sha: string): boolean {
  return /^[0-9a-f]{40}([0-9a-f]{24})?$/.test(sha) && !/^0+$/.test(sha);
}

/** Returns a lead for a branch of this repository. The name may be a whole ref. */
function branchLead(event: HostEvent, ref: string | undefined, sha?: string): Lead[] {
  const name = ref?.replace(/^refs\/heads\//, '') ?? '';
  if (name === '' || name.startsWith('refs/')) return [];
  const queued = numberIn(`refs/heads/${name}`);
  if (queued !== undefined) return numberLead(queued);
  const lead = { by: 'branch', owner: ownerOf(event), branch: name, isOwn: true } as const;
  if (sha === undefined) return [lead];
  return isCommit(sha) ? [{ ...lead, sha }] : [];
}

function ownerOf(event: HostEvent): string {
  return event.repository.split('/')[0] ?? '';
}

type FoundPullRequest =
  | { kind: 'found'; number: number }
  | { kind: 'none'; reason: string }
  | { kind: 'failed'; what: string; failure: ApiFailure };

/** Returns the pull request of the first lead that has one, never one of another repository. */
export async function findPullRequest(
  event: HostEvent,
  host: HostKind,
  given: number | undefined,
  api: HostApi,
): Promise<FoundPullRequest> {
  const { leads, reason } = leadsOf(event, host);
  const said = leads.flatMap((lead) => (lead.by === 'number' ? [lead.number] : []));
  const numbers = given === undefined ? said : [given];
  if (numbers.length > 0) return byNumber([...new Set(numbers)], said, event, api);
  for (const lead of leads) {
    if (lead.by === 'number') continue;
    const isCommitLead = lead.by === 'commit';
    const got = isCommitLead
      ? await api.pullsOfCommit(lead.sha)
      : await api.pullsOfBranch(lead.owner, lead.branch);
    // GitHub answers 422 for a commit that does not exist.
    if (!got.ok && isCommitLead && got.failure.status === 422) continue;
    if (!got.ok) {
      return { kind: 'failed', what: `the pull requests of the ${lead.by}`, failure: got.failure };
    }
    const ours = got.value.filter((pull) => isOfRepository(event, pull));
    const pulls = isCommitLead ? pullsWithCommit(ours, lead.sha) : pullsWithBranch(ours, lead);
    if (pulls.length > 0) return singlePullRequest(pulls.map(({ number }) => number));
  }
  return { kind: 'none', reason: event.payload === null && reason === UNKNOWN ? UNREAD : reason };
}

/** Returns the pull request if there is exactly one: choosing among several would be a guess. */
function singlePullRequest(numbers: readonly number[]): FoundPullRequest {
  const [number, ...others] = numbers;
  if (number !== undefined && others.length === 0) return { kind: 'found', number };
  return {
    kind: 'none',
    reason: `this belongs to several pull requests (${numbers.slice(0, 10).join(', ')}); give the input "pr-number" to choose one`,
  };
}

async function byNumber(
  numbers: readonly number[],
  said: readonly number[],
  event: HostEvent,
  api: HostApi,
): Promise<FoundPullRequest> {
  const ours: number[] = [];
  let hidden: FoundPullRequest | undefined;
  for (const number of numbers.slice(0, 5)) {
    const got = await api.pull(number);
    // With "issues: write" alone a comment can be written, but a pull request cannot be read.
    if (got.ok ? isOfRepository(event, got.value) : got.failure.kind !== 'not-found')
      ours.push(number);
    // A pull request in the event exists: hosts answer 404 if the token may not read it.
    else if (!got.ok && said.includes(number)) {
      hidden ??= { kind: 'failed', what: `pull request ${number}`, failure: got.failure };
    }
  }
  if (ours.length > 0) return singlePullRequest(ours);
  if (hidden !== undefined) return hidden;
  return { kind: 'none', reason: `this repository has no pull request ${numbers.join(', ')}` };
}

/**
 * Reports whether the pull request belongs to this repository. If the repository was renamed meanwhile, only its
 * id is the same.
 */
function isOfRepository({ payload, repository }: HostEvent, pull: PullRequest): boolean {
  const id = numberAt(payload, 'repository', 'id');
  return id === undefined || pull.baseRepositoryId === undefined
    ? isSameIgnoringCase(pull.baseRepository, repository)
    : id === pull.baseRepositoryId;
}

/**
 * Returns the pull requests with the closest relation to a commit: merged as this commit, at this commit, or
 * containing it.
 */
function pullsWithCommit(pulls: readonly PullRequest[], sha: string): readonly PullRequest[] {
  const ranked = [
    pulls.filter((pull) => pull.isMerged && pull.mergeCommitSha === sha),
    pulls.filter((pull) => pull.headSha === sha),
    pulls.filter((pull) => pull.isMerged),
  ];
  return ranked.find((some) => some.length > 0) ?? pulls;
}

function pullsWithBranch(
  pulls: readonly PullRequest[],
  { owner, branch: name, sha, isOwn }: Extract<Lead, { by: 'branch' }>,
): readonly PullRequest[] {
  // The head repository is missing after a fork was deleted. The owner may have a fork as well.
  const from = pulls.filter(
    ({ headBranch, headOwner, headRepository, baseRepository }) =>
      headBranch === name &&
      (headOwner === '' || isSameIgnoringCase(headOwner, owner)) &&
      (headRepository === '' || isSameIgnoringCase(headRepository, baseRepository) === isOwn),
  );
  if (sha !== undefined) return from.filter(({ headSha }) => headSha === sha);
  // The branch was deleted, and its name may have been used before: keep the pull requests that were closed
  // last, or are open.
  const endOf = ({ closedAt = Number.POSITIVE_INFINITY }: PullRequest): number => closedAt;
  const last = Math.max(...from.map(endOf));
  return from.filter((pull) => endOf(pull) === last || last - endOf(pull) < SAME_MOMENT_MS);
}

/** Time within which both hosts close all pull requests of a deleted branch. */
const SAME_MOMENT_MS = 60_000;

function isSameIgnoringCase(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
