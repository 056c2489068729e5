import { getOctokit } from '@actions/github';
import { describeError } from '../base/errors.ts';
import { arrayAt, at, isObject, type Json, numberAt, stringAt } from '../base/json.ts';
import { plainText, shorten } from '../base/text.ts';
import { type Clock, systemClock } from '../base/time.ts';
import { type FailureKind, failed, type Read, type ReadFailure, read } from '../model/read.ts';
import { restoreEnvironment } from './damaged-environment.ts';
import type { Comment, GithubApi, PullRequest } from './github-api.ts';
import { type Attempt, isRateLimited, retryPauseMs } from './github-retry.ts';

restoreEnvironment();

const CALL_TIMEOUT_MS = 10_000;
/** 10,000 comments; a pull request with more is none that anybody reads. */
const MAX_PAGES = 100;
const PAGE_SIZE = 100;
const MAX_MESSAGE_CHARS = 200;

export interface GithubOptions {
  token: string;
  /** "owner/name". */
  repository: string;
  /** `GITHUB_API_URL`, without a slash at the end. */
  apiUrl: string;
  /** `GITHUB_GRAPHQL_URL`; absent where the server has none. */
  graphqlUrl: string | undefined;
  clock?: Clock;
  /** Limit of one attempt. */
  callTimeoutMs?: number;
}

/** GitHub's API over the toolkit's client, which brings the runner's proxy settings with it. */
export function createGithub(options: GithubOptions): GithubApi {
  const { repository, apiUrl } = options;
  const repo = `${apiUrl}/repos/${repository.split('/').map(encodeURIComponent).join('/')}`;
  const call = createCaller(options);
  return {
    repository,
    viewer: (signal) => viewer(options, call, signal),
    comments: (issue, prefix, signal) =>
      comments(
        `${repo}/issues/${issue}/comments?per_page=${PAGE_SIZE}`,
        prefix,
        call,
        apiUrl,
        signal,
      ),
    createComment: async (issue, body, signal) =>
      mapped(await call('POST', `${repo}/issues/${issue}/comments`, { body }, signal), toComment),
    updateComment: async (id, body, signal) =>
      mapped(await call('PATCH', `${repo}/issues/comments/${id}`, { body }, signal), toComment),
    deleteComment: async (id, signal) => {
      const got = await call('DELETE', `${repo}/issues/comments/${id}`, undefined, signal);
      return got.ok ? read(true) : got;
    },
    pull: async (number, signal) =>
      mapped(await call('GET', `${repo}/pulls/${number}`, undefined, signal), toPull),
    pullsOfCommit: (sha, signal) =>
      pullsOfCommit(`${repo}/commits/${encodeURIComponent(sha)}`, call, signal),
    pullsOfBranch: async (owner, branch, signal) => {
      const head = encodeURIComponent(`${owner}:${branch}`);
      const query = `state=all&sort=updated&direction=desc&per_page=${PAGE_SIZE}&head=${head}`;
      return mapped(await call('GET', `${repo}/pulls?${query}`, undefined, signal), toPulls);
    },
  };
}

interface Answer {
  data: Json;
  headers: Readonly<Record<string, string | undefined>>;
}

type Call = (
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
  url: string,
  body: { [key: string]: Json } | undefined,
  signal: AbortSignal | undefined,
) => Promise<Read<Answer>>;

function createCaller({
  token,
  apiUrl,
  clock = systemClock,
  callTimeoutMs = CALL_TIMEOUT_MS,
}: GithubOptions): Call {
  const octokit = getOctokit(token, {
    baseUrl: apiUrl,
    log: SILENT,
    userAgent: 'namespace-teardown-gate',
  });
  return async (method, url, body, signal) => {
    let waitedMs = 0;
    for (let tries = 1; ; tries++) {
      const limit = AbortSignal.timeout(callTimeoutMs);
      const both = signal === undefined ? limit : AbortSignal.any([signal, limit]);
      try {
        const answer = await octokit.request(`${method} ${url}`, {
          ...body,
          request: { signal: both },
        });
        return read({ data: answer.data as Json, headers: headersOf(answer.headers) });
      } catch (error) {
        if (signal?.aborted) return failed({ kind: 'aborted', message: 'the run was cancelled' });
        const attempt = attemptOf(method, error, limit.aborted);
        const pause = retryPauseMs(attempt, tries, waitedMs, clock.now());
        if (pause === undefined) return failed(failureOf(attempt, limit.aborted));
        await clock.sleep(pause, signal);
        waitedMs += pause;
      }
    }
  };
}

/** The client would warn on the console, past our neutralising and redacting. */
const SILENT = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

function attemptOf(method: string, error: unknown, timedOut: boolean): Attempt {
  const response = isObject(error) ? at(error as Json, 'response') : undefined;
  const answered = isObject(response);
  return {
    method,
    status: answered ? numberAt(response, 'status') : undefined,
    headers: answered ? headersOf(at(response, 'headers')) : {},
    message: shorten(plainText(messageOf(error, response)), MAX_MESSAGE_CHARS),
    networkCode: timedOut ? undefined : networkCodeOf(error),
  };
}

/** The server's own words, without the client's link to the documentation. */
function messageOf(error: unknown, response: Json | undefined): string {
  const message = stringAt(response, 'data', 'message');
  if (message !== undefined) return message;
  return isObject(response) ? 'the answer is no JSON of a GitHub API' : describeError(error);
}

function networkCodeOf(error: unknown): string | undefined {
  let current: unknown = error;
  for (let depth = 0; depth < 8 && current instanceof Error; depth++) {
    if ('code' in current && typeof current.code === 'string') return current.code;
    current = current instanceof AggregateError ? current.errors[0] : current.cause;
  }
  return undefined;
}

function failureOf(attempt: Attempt, timedOut: boolean): ReadFailure {
  const { status, message } = attempt;
  if (status === undefined) {
    return timedOut
      ? { kind: 'timeout', message: 'no answer in time' }
      : { kind: 'network', message };
  }
  return { kind: kindOf(attempt, status), status, message: `${status} ${message}` };
}

function kindOf(attempt: Attempt, status: number): FailureKind {
  if (isRateLimited(attempt)) return 'throttled';
  if (status >= 500) return 'server-error';
  switch (status) {
    case 401:
      return 'unauthorized';
    case 403:
      return 'forbidden';
    case 404:
    case 410:
      return 'not-found';
    case 409:
      return 'conflict';
    default:
      return 'invalid';
  }
}

/** GraphQL knows who any kind of token is; `/user` serves servers without it, but no workflow token. */
async function viewer(
  { graphqlUrl, apiUrl }: GithubOptions,
  call: Call,
  signal: AbortSignal | undefined,
): Promise<Read<string>> {
  if (graphqlUrl !== undefined) {
    const got = await call('POST', graphqlUrl, { query: 'query { viewer { login } }' }, signal);
    const login = got.ok ? stringAt(got.value.data, 'data', 'viewer', 'login') : undefined;
    if (login !== undefined) return read(login);
  }
  const got = await call('GET', `${apiUrl}/user`, undefined, signal);
  if (!got.ok) return got;
  const login = stringAt(got.value.data, 'login');
  return login === undefined ? unreadable('/user') : read(login);
}

async function comments(
  firstUrl: string,
  prefix: string,
  call: Call,
  apiUrl: string,
  signal: AbortSignal | undefined,
): Promise<Read<Comment[]>> {
  const found: Comment[] = [];
  let url: string | undefined = firstUrl;
  for (let page = 0; page < MAX_PAGES && url !== undefined; page++) {
    const got: Read<Answer> = await call('GET', url, undefined, signal);
    if (!got.ok) return got;
    if (!Array.isArray(got.value.data)) return unreadable('the list of comments');
    for (const item of got.value.data) {
      const comment = toComment(item);
      if (comment?.body.startsWith(prefix)) found.push(comment);
    }
    url = nextPage(got.value.headers['link'], apiUrl);
  }
  return read(found.sort((a, b) => a.id - b.id));
}

/** Only `rel="next"` says that there is more; only to our own server does the token go. */
export function nextPage(link: string | undefined, apiUrl: string): string | undefined {
  const match = /<([^<>]+)>\s*;[^,]*\brel="next"/.exec(link ?? '');
  const url = match?.[1];
  if (url === undefined || !URL.canParse(url)) return undefined;
  return new URL(url).origin === new URL(apiUrl).origin ? url : undefined;
}

async function pullsOfCommit(
  commit: string,
  call: Call,
  signal: AbortSignal | undefined,
): Promise<Read<PullRequest[]>> {
  const got = await call('GET', `${commit}/pulls?per_page=${PAGE_SIZE}`, undefined, signal);
  if (got.ok || got.failure.kind !== 'not-found') return mapped(got, toPulls);
  // Gitea and Forgejo know one pull request per commit, under another path.
  const single = await call('GET', `${commit}/pull`, undefined, signal);
  if (single.ok)
    return mapped(single, (data) => [toPull(data)].filter((pull) => pull !== undefined));
  return single.failure.kind === 'not-found' ? read([]) : single;
}

function mapped<T>(got: Read<Answer>, convert: (data: Json) => T | undefined): Read<T> {
  if (!got.ok) return got;
  const value = convert(got.value.data);
  return value === undefined ? unreadable('the answer') : read(value);
}

function unreadable(what: string): { ok: false; failure: ReadFailure } {
  return failed({ kind: 'unreadable', message: `${what} is not what a GitHub API gives` });
}

function toComment(data: Json): Comment | undefined {
  const id = numberAt(data, 'id');
  if (id === undefined) return undefined;
  return {
    id,
    url: stringAt(data, 'html_url') ?? '',
    body: stringAt(data, 'body') ?? '',
    author: stringAt(data, 'user', 'login') ?? '',
    authorType: stringAt(data, 'user', 'type'),
  };
}

function toPulls(data: Json): PullRequest[] | undefined {
  if (!Array.isArray(data)) return undefined;
  return arrayAt(data)
    .map(toPull)
    .filter((pull) => pull !== undefined);
}

function toPull(data: Json): PullRequest | undefined {
  const number = numberAt(data, 'number');
  if (number === undefined) return undefined;
  return {
    number,
    baseRepository: stringAt(data, 'base', 'repo', 'full_name') ?? '',
    headSha: stringAt(data, 'head', 'sha') ?? '',
    headRef: stringAt(data, 'head', 'ref') ?? '',
    headOwner:
      stringAt(data, 'head', 'repo', 'owner', 'login') ??
      stringAt(data, 'head', 'user', 'login') ??
      '',
    isMerged: stringAt(data, 'merged_at') !== undefined,
    mergeCommitSha: stringAt(data, 'merge_commit_sha'),
  };
}

function headersOf(headers: unknown): Record<string, string | undefined> {
  if (!isObject(headers)) return {};
  return Object.fromEntries(
    Object.entries(headers).map(([key, value]) => [
      key,
      value === undefined ? undefined : String(value),
    ]),
  );
}
