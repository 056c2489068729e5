import type { getOctokit } from '@actions/github';
import { describeError } from '../base/errors.ts';
import { type Json, numberAt, stringAt, valueAt } from '../base/json.ts';
import { plainText, shorten } from '../base/text.ts';
import { failureKindOf, type ReadFailure } from '../model/read.ts';

/** The API of GitHub, with the calls that the gate needs. A call that fails throws; `failureOf` reads the error. */
export type HostApi = Awaited<ReturnType<typeof connectHost>>;

export interface ApiFailure extends ReadFailure {
  /** Pause after which another attempt may succeed. The host may have processed this one. */
  retryMs?: number | undefined;
}

export type Comment = ReturnType<typeof toComment>;
export type PullRequest = Awaited<
  ReturnType<Octokit['rest']['repos']['listPullRequestsAssociatedWithCommit']>
>['data'][number];

interface HostApiOptions {
  apiUrl: string;
  token: string;
  /** Repository as "owner/name". */
  repository: string;
  /** Aborts every call. */
  signal: AbortSignal;
  /** Limit of one call. */
  callTimeoutMs?: number;
}

type Octokit = ReturnType<typeof getOctokit>;

const CALL_TIMEOUT_MS = 8_000;
const RETRY_PAUSE_MS = 500;
const PAGE_SIZE = 100;
const MAX_MESSAGE_CHARS = 200;

/** Connects to the API of the host. The client is imported here because most runs do not need it. */
export async function connectHost(options: HostApiOptions) {
  const octokit = await loadClient(options);
  const { issues, pulls, repos, users } = octokit.rest;
  const [owner = '', repo = ''] = options.repository.split('/');
  const here = { owner, repo };
  return {
    /** Returns the login of the token's user; undefined if the host does not say it. */
    viewer: async (): Promise<string | undefined> => {
      // GitHub's workflow token may not read `/user`; other servers have no GraphQL.
      const asks = [
        async () =>
          stringAt(await octokit.graphql('query { viewer { login } }'), 'viewer', 'login'),
        async () => (await users.getAuthenticated()).data.login,
      ];
      for (const ask of asks) {
        try {
          return await ask();
        } catch (error) {
          if (failureOf(error, options.signal).retryMs !== undefined) throw error;
        }
      }
      return undefined;
    },
    /** Returns the comments that match, oldest first, from all pages. Nothing else is kept. */
    comments: async (issue: number, isWanted: (comment: Comment) => Promise<boolean>) => {
      const wanted = new Map<number, Comment>();
      const seen = new Set<number>();
      for (let page = 1; ; page++) {
        const of = { ...here, issue_number: issue, per_page: PAGE_SIZE, page };
        const { data, headers } = await issues.listComments(of);
        const before = seen.size;
        for (const one of data) {
          const comment = toComment(one);
          if (!seen.has(one.id) && (await isWanted(comment))) wanted.set(one.id, comment);
          seen.add(one.id);
        }
        // Pages are counted, so that no address in an answer says where the token goes.
        if (seen.size === before || !/rel="next"/.test(headers.link ?? '')) break;
      }
      return [...wanted.values()].sort((a, b) => a.id - b.id);
    },
    createComment: async (issue: number, body: string) =>
      toComment((await issues.createComment({ ...here, issue_number: issue, body })).data),
    updateComment: (id: number, body: string) =>
      issues.updateComment({ ...here, comment_id: id, body }),
    deleteComment: (id: number) => issues.deleteComment({ ...here, comment_id: id }),
    /** Returns the pull requests of a commit; none if the host does not know it. */
    pullsOfCommit: async (commit_sha: string) => {
      const of = { ...here, commit_sha, per_page: PAGE_SIZE };
      try {
        return (await repos.listPullRequestsAssociatedWithCommit(of)).data;
      } catch (error) {
        if ([404, 409, 422].includes(numberAt(error as Json, 'status') ?? 0)) return [];
        throw error;
      }
    },
    pullsOfBranch: async (from: string, branch: string) => {
      const of = { ...here, state: 'all', head: `${from}:${branch}`, per_page: PAGE_SIZE } as const;
      return (await pulls.list(of)).data;
    },
  };
}

/** A comment with the members that are needed; `authorType` is "Bot" or "User", or missing on other hosts. */
function toComment(given: {
  id: number;
  html_url: string;
  body?: string;
  user: { login: string; type?: string } | null;
}) {
  const { id, html_url: url, body = '', user } = given;
  if (typeof id !== 'number') throw new TypeError('this is no comment');
  return { id, url, body, author: user?.login ?? '', authorType: user?.type };
}

/** Creates the client. Every call passes through one hook, which limits its time. */
async function loadClient(options: HostApiOptions): Promise<Octokit> {
  const { apiUrl, signal, callTimeoutMs = CALL_TIMEOUT_MS } = options;
  // The package parses the event while it is loaded, and throws if that is no JSON (context.js).
  const eventPath = process.env['GITHUB_EVENT_PATH'] ?? '';
  process.env['GITHUB_EVENT_PATH'] = '';
  const { getOctokit } = await import(/* webpackMode: "eager" */ '@actions/github');
  process.env['GITHUB_EVENT_PATH'] = eventPath;
  const octokit = getOctokit(options.token, {
    baseUrl: apiUrl,
    log: SILENT,
    userAgent: 'namespace-teardown-gate',
  });
  octokit.hook.before('request', (given) => {
    given.request['log'] = SILENT;
    given.request.signal = AbortSignal.any([signal, AbortSignal.timeout(callTimeoutMs)]);
  });
  return octokit;
}

/** The client would write warnings to the console, without our encoding and redaction. */
const SILENT = { debug: ignoreLog, info: ignoreLog, warn: ignoreLog, error: ignoreLog };

function ignoreLog(): void {}

/** Returns what an error of a call means. */
export function failureOf(error: unknown, signal: AbortSignal): ApiFailure {
  const isTimeout = (one: unknown): boolean => one instanceof Error && one.name === 'TimeoutError';
  if (signal.aborted) {
    return isTimeout(signal.reason)
      ? { kind: 'timeout', message: 'no answer within the time for publishing' }
      : { kind: 'aborted', message: 'the run was cancelled' };
  }
  const response = valueAt(error as Json, 'response');
  const status = numberAt(response, 'status');
  if (status === undefined) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    if (isTimeout(cause)) {
      return { kind: 'timeout', message: 'no answer in time', retryMs: RETRY_PAUSE_MS };
    }
    // The client's own errors about an answer contain no request.
    if (!(error instanceof Error && 'request' in error)) {
      return { kind: 'unreadable', message: 'the answer is not what such a host gives' };
    }
    const message = shorten(plainText(describeError(error)), MAX_MESSAGE_CHARS);
    return { kind: 'network', message, retryMs: RETRY_PAUSE_MS };
  }
  const said = stringAt(response, 'data', 'message') ?? 'the answer is no JSON of such a host';
  const message = `${status} ${shorten(plainText(said), MAX_MESSAGE_CHARS)}`;
  const asked = retryDelayMs(response);
  // A 403 can mean a rate limit or a missing permission.
  const isLimit = asked !== undefined || /rate limit|abuse detection/i.test(said);
  if (status === 429 || (status === 403 && isLimit)) {
    const isShort = asked !== undefined && asked <= CALL_TIMEOUT_MS;
    return { kind: 'throttled', status, message, retryMs: isShort ? asked : undefined };
  }
  const retryMs = status >= 500 ? RETRY_PAUSE_MS : undefined;
  return { kind: failureKindOf(status), status, message, retryMs };
}

/** Returns how long the host asks to wait before the next request. */
function retryDelayMs(response: Json | undefined): number | undefined {
  const header = (name: string): string => stringAt(response, 'headers', name) ?? '';
  const seconds = header('retry-after');
  if (/^\d+$/.test(seconds)) return Number(seconds) * 1_000;
  const beginsAgainAt = Number(header('x-ratelimit-reset')) * 1_000;
  if (header('x-ratelimit-remaining') !== '0') return undefined;
  return Math.max(0, beginsAgainAt - Date.now());
}
