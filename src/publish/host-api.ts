import type { getOctokit } from '@actions/github';
import { describeError } from '../base/errors.ts';
import { type Json, numberAt, stringAt, valueAt } from '../base/json.ts';
import { plainText, shorten } from '../base/text.ts';
import { type Clock, systemClock, unlessAborted } from '../base/time.ts';
import {
  type FailureKind,
  failureKindOf,
  type Read,
  type ReadFailure,
  readFailed,
} from '../model/read.ts';
import type { Host } from './workflow-run.ts';

/** The API of GitHub or a compatible host, with the calls that the gate needs. It never throws. */
export type HostApi = Awaited<ReturnType<typeof connectHost>>;

export interface ApiFailure extends ReadFailure {
  /** Time that the host asks a client to wait before the next attempt. */
  retryAfterMs?: number;
}

export type Comment = NonNullable<ReturnType<typeof toComment>>;
export type PullRequest = NonNullable<ReturnType<typeof toPull>>;

interface HostApiOptions {
  host: Host;
  token: string;
  /** Repository as "owner/name". */
  repository: string;
  /** Aborts every call, and the pauses between attempts. */
  signal: AbortSignal;
  clock?: Clock;
  /** Limit of one attempt. */
  callTimeoutMs?: number;
}

type Octokit = ReturnType<typeof getOctokit>;

export const CALL_TIMEOUT_MS = 8_000;
/** Unit of the pauses: the n-th pause is n squared times this. */
const RETRY_PAUSE_MS = 250;
const RETRIES = 2;
const PAGE_SIZE = 100;
/** Limit for pages of pull requests, the last changed first, on hosts that cannot filter by branch. */
const MAX_PAGES = 10;
const MAX_MESSAGE_CHARS = 200;

/** Connects to the API of the host. The client is imported here because most runs do not need it. */
export async function connectHost(options: HostApiOptions) {
  const { host, signal } = options;
  const octokit = await loadClient(options);
  const [owner = '', repo = ''] = options.repository.split('/');
  const here = { owner, repo };
  const { issues, pulls, repos } = octokit.rest;
  const ask = async <T>(work: () => Promise<T | undefined>): Promise<Read<T, ApiFailure>> => {
    // Without an address the client would send the token to GitHub.
    if (!URL.canParse(host.apiUrl)) return readFailed(NO_ADDRESS);
    try {
      const value = await unlessAborted(work(), signal);
      return value === undefined ? readFailed(UNREADABLE) : { ok: true, value };
    } catch (error) {
      return readFailed(failureOf(error, signal));
    }
  };
  const comment = (send: () => Promise<{ data: unknown }>): Promise<Read<Comment, ApiFailure>> =>
    ask(async () => toComment((await send()).data as Json));
  return {
    /** Returns the login of the token's user; a failure if the host does not say it. */
    viewer: () => ask(() => loginOfToken(octokit, host)),
    /** Returns the comments that match `isWanted`, oldest first, from all pages. Nothing else is kept. */
    comments: (issue: number, isWanted: (comment: Comment) => Promise<boolean>) =>
      ask(async () => {
        // Gitea and Forgejo return all comments at once.
        const size = host.kind === 'github' ? { per_page: PAGE_SIZE } : {};
        const of = { ...here, issue_number: issue, ...size };
        const wanted: Comment[] = [];
        const seen = new Set<number>();
        for await (const { data } of octokit.paginate.iterator(issues.listComments, of)) {
          if (!Array.isArray(data)) return undefined;
          const before = seen.size;
          for (const item of data) {
            const one = toComment(item as Json);
            if (one === undefined || seen.has(one.id)) continue;
            seen.add(one.id);
            if (await isWanted(one)) wanted.push(one);
          }
          // This check protects against a host whose last page always names a next one.
          if (seen.size === before) break;
        }
        return wanted.sort((a, b) => a.id - b.id);
      }),
    comment: (id: number) => comment(() => issues.getComment({ ...here, comment_id: id })),
    createComment: (issue: number, body: string) =>
      comment(() => issues.createComment({ ...here, issue_number: issue, body })),
    updateComment: (id: number, body: string) =>
      comment(() => issues.updateComment({ ...here, comment_id: id, body })),
    deleteComment: (id: number) =>
      ask(async () => {
        await issues.deleteComment({ ...here, comment_id: id });
        return true as const;
      }),
    pull: (number: number) =>
      ask(async () => toPull((await pulls.get({ ...here, pull_number: number })).data as Json)),
    pullsOfCommit: (sha: string) =>
      ask(async () => {
        if (host.kind === 'github') {
          const of = { ...here, commit_sha: sha, per_page: PAGE_SIZE };
          return toPulls((await repos.listPullRequestsAssociatedWithCommit(of)).data);
        }
        // Gitea and Forgejo have a path of their own for the pull request that a commit has merged.
        const route = 'GET /repos/{owner}/{repo}/commits/{sha}/pull';
        try {
          return toPulls([(await octokit.request(route, { ...here, sha })).data]);
        } catch (error) {
          if (numberAt(error as Json, 'status') === 404) return [];
          throw error;
        }
      }),
    /**
     * Returns the pull requests of a branch. Hosts that cannot filter return those that changed last, of any
     * branch.
     */
    pullsOfBranch: (from: string, branch: string) =>
      ask(async () => {
        const all = { ...here, state: 'all' } as const;
        if (host.kind === 'github') {
          const of = { ...all, head: `${from}:${branch}`, per_page: PAGE_SIZE };
          return toPulls(await octokit.paginate(pulls.list, of));
        }
        const found: PullRequest[] = [];
        let pages = 0;
        // The names of the parameters are Gitea's (routers/api/v1/repo/pull.go, ListPullRequests).
        const last = { ...all, sort: 'recentupdate' as 'updated', limit: PAGE_SIZE };
        for await (const { data } of octokit.paginate.iterator(pulls.list, last)) {
          const page = toPulls(data);
          if (page === undefined) return undefined;
          found.push(...page);
          pages++;
          if (pages === MAX_PAGES || page.some(({ headBranch }) => headBranch === branch)) break;
        }
        return found;
      }),
    /** Returns the file of a run's workflow, such as "ci.yml", by which Gitea and Forgejo name it. */
    workflowFile: (run: string) =>
      ask(async () => {
        const route = 'GET /repos/{owner}/{repo}/actions/runs/{run}';
        const data = (await octokit.request(route, { ...here, run })).data as Json;
        return stringAt(data, 'workflow_id') ?? stringAt(data, 'path')?.replace(/@.*$/, '');
      }),
  };
}

/**
 * Returns the login of the token's user. GraphQL names the owner of any kind of token; GitHub's workflow token
 * may not read `/user`.
 */
async function loginOfToken(octokit: Octokit, { kind }: Host): Promise<string | undefined> {
  if (kind === 'github') {
    try {
      const login = stringAt(
        await octokit.graphql('query { viewer { login } }'),
        'viewer',
        'login',
      );
      if (login !== undefined) return login;
    } catch {
      // GraphQL is not enabled on every server.
    }
  }
  return stringAt((await octokit.rest.users.getAuthenticated()).data as Json, 'login');
}

/** Creates the client. Every request passes through one hook, which limits it and repeats it. */
async function loadClient(options: HostApiOptions): Promise<Octokit> {
  const { host, signal, callTimeoutMs = CALL_TIMEOUT_MS, clock = systemClock } = options;
  // The package parses the event during its import, and throws if the event is not JSON (context.js).
  delete process.env['GITHUB_EVENT_PATH'];
  const { getOctokit } = await import(/* webpackMode: "eager" */ '@actions/github');
  const octokit = getOctokit(options.token, {
    baseUrl: host.apiUrl,
    log: SILENT,
    userAgent: 'namespace-teardown-gate',
  });
  octokit.hook.wrap('request', async (request, given) => {
    given.url = onHostOfApi(given.url, host.apiUrl);
    given.request['log'] = SILENT;
    for (let tries = 1; ; tries++) {
      given.request.signal = AbortSignal.any([signal, AbortSignal.timeout(callTimeoutMs)]);
      try {
        return await request(given);
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        const pause = isCommentWrite(given)
          ? undefined
          : pauseAfter(failureOf(error, signal), tries);
        if (pause === undefined || tries > RETRIES) throw error;
        await clock.sleep(pause, signal);
      }
    }
  });
  return octokit;
}

/** Returns the pause before another attempt, in ms; undefined if none can help. */
function pauseAfter({ kind, retryAfterMs = 0 }: ApiFailure, tries: number): number | undefined {
  if (kind === 'throttled') return retryAfterMs > CALL_TIMEOUT_MS ? undefined : retryAfterMs;
  return MAY_HAVE_ARRIVED.test(kind) ? tries ** 2 * RETRY_PAUSE_MS : undefined;
}

/** Kinds of failures after which the host may still have processed the request. */
export const MAY_HAVE_ARRIVED = /^(?:timeout|network|server-error)$/;

/** The client would write warnings to the console, without our encoding and redaction. */
const SILENT = { debug: ignoreLog, info: ignoreLog, warn: ignoreLog, error: ignoreLog };

function ignoreLog(): void {}

/**
 * Reports whether a request writes a comment. The client never repeats such a request: another job may have
 * written a newer body meanwhile, and a second POST would create a second comment.
 */
function isCommentWrite({ method, url }: { method: string; url: string }): boolean {
  return (method === 'POST' || method === 'PATCH') && !url.endsWith('/graphql');
}

/**
 * Returns the address of the next page on the host of the API. The token is sent there, so it must be this host.
 * Gitea may name its public address, which differs from the one of the runner.
 */
function onHostOfApi(url: string, apiUrl: string): string {
  if (!/^https?:/i.test(url) || new URL(url).origin === new URL(apiUrl).origin) return url;
  const { pathname, search } = new URL(url);
  return `${apiUrl}${pathname.slice(Math.max(0, pathname.search(/\/repos(itories)?\//)))}${search}`;
}

const NO_ADDRESS: ApiFailure = {
  kind: 'network',
  message: 'GITHUB_API_URL has to be the address of the API of this host',
};

const UNREADABLE: ApiFailure = {
  kind: 'unreadable',
  message: 'the answer is not what such a host gives',
};

function failureOf(error: unknown, signal: AbortSignal): ApiFailure {
  if (signal.aborted) {
    return isTimeout(signal.reason)
      ? { kind: 'timeout', message: 'no answer within the time for publishing' }
      : { kind: 'aborted', message: 'the run was cancelled' };
  }
  const response = valueAt(error as Json, 'response');
  const status = numberAt(response, 'status');
  if (status === undefined) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    if (isTimeout(cause)) return { kind: 'timeout', message: 'no answer in time' };
    // The client's own errors about an answer contain no request.
    if (!(error instanceof Error && 'request' in error)) return UNREADABLE;
    return { kind: 'network', message: shortPlainText(describeError(error)) };
  }
  const elsewhere = redirectedTo(error as Json);
  if (elsewhere !== undefined) {
    const message = `${status} after a redirect to ${elsewhere}, to which no token is sent: GITHUB_API_URL has to be the address of the API there`;
    return { kind: 'unreadable', status, message };
  }
  const said = stringAt(response, 'data', 'message');
  const message = shortPlainText(said ?? 'the answer is no JSON of such a host');
  const retryAfterMs = retryDelayMs(response);
  return {
    kind: isThrottled(status, response, message)
      ? 'throttled'
      : (KINDS[status] ?? failureKindOf(status)),
    status,
    message: `${status} ${message}`,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
}

/** Returns the origin that answered, if a redirect led to it from another one. */
function redirectedTo(error: Json): string | undefined {
  const [asked, answered] = [
    stringAt(error, 'request', 'url'),
    stringAt(error, 'response', 'url'),
  ].map((url = '') => (URL.canParse(url) ? new URL(url).origin : undefined));
  return answered === asked ? undefined : shortPlainText(answered ?? '') || undefined;
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === 'TimeoutError';
}

function shortPlainText(text: string): string {
  return shorten(plainText(text), MAX_MESSAGE_CHARS);
}

/** Returns how long the host asks to wait before the next request. */
function retryDelayMs(response: Json | undefined): number | undefined {
  const seconds = stringAt(response, 'headers', 'retry-after') ?? '';
  if (/^\d+$/.test(seconds)) return Number(seconds) * 1_000;
  const isUsedUp = valueAt(response, 'headers', 'x-ratelimit-remaining') === '0';
  const beginsAgainAt = Number(stringAt(response, 'headers', 'x-ratelimit-reset')) * 1_000;
  return isUsedUp && beginsAgainAt > 0 ? Math.max(0, beginsAgainAt - Date.now()) : undefined;
}

/** Reports whether the host throttles the client. A 403 can also mean a missing permission. */
function isThrottled(status: number, response: Json | undefined, message: string): boolean {
  if (status === 429) return true;
  if (status !== 403) return false;
  return (
    valueAt(response, 'headers', 'retry-after') !== undefined ||
    valueAt(response, 'headers', 'x-ratelimit-remaining') === '0' ||
    /rate limit|abuse detection/i.test(message)
  );
}

/** Failure kinds in addition to the usual ones. 423 is Gitea's for an archived repository. */
const KINDS: Record<number, FailureKind | undefined> = { 410: 'not-found', 423: 'forbidden' };

function toComment(data: Json) {
  const id = numberAt(data, 'id');
  if (id === undefined) return undefined;
  return {
    id,
    /** Address of its page. */
    url: stringAt(data, 'html_url') ?? '',
    body: stringAt(data, 'body') ?? '',
    author: stringAt(data, 'user', 'login') ?? '',
    /** One of "Bot" and "User"; undefined on hosts that do not say it. */
    authorType: stringAt(data, 'user', 'type'),
  };
}

function toPulls(data: unknown): PullRequest[] | undefined {
  if (!Array.isArray(data)) return undefined;
  return data.map((item) => toPull(item as Json)).filter((pull) => pull !== undefined);
}

function toPull(data: Json) {
  const number = numberAt(data, 'number');
  if (number === undefined) return undefined;
  const ref = stringAt(data, 'head', 'ref') ?? '';
  const closedAt = Date.parse(stringAt(data, 'closed_at') ?? '');
  return {
    number,
    /** Repository that it wants to change, as "owner/name". */
    baseRepository: stringAt(data, 'base', 'repo', 'full_name') ?? '',
    baseRepositoryId: numberAt(data, 'base', 'repo', 'id'),
    headSha: stringAt(data, 'head', 'sha') ?? '',
    // After the branch was deleted, only the label has its name on Gitea (services/convert/pull.go).
    headBranch: ref.startsWith('refs/pull/') ? (stringAt(data, 'head', 'label') ?? '') : ref,
    /** Repository of the branch, as "owner/name"; empty after a fork was deleted. */
    headRepository: stringAt(data, 'head', 'repo', 'full_name') ?? '',
    headOwner:
      stringAt(data, 'head', 'repo', 'owner', 'login') ??
      stringAt(data, 'head', 'user', 'login') ??
      '',
    isMerged: stringAt(data, 'merged_at') !== undefined,
    mergeCommitSha: stringAt(data, 'merge_commit_sha'),
    /** Milliseconds since the epoch; undefined while it is open. */
    closedAt: Number.isNaN(closedAt) ? undefined : closedAt,
  };
}
