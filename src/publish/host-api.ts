import tls from 'node:tls';
import type { getOctokit } from '@actions/github';
import { causeChain, describeError } from '../base/errors.ts';
import { type Json, numberAt, stringAt, valueAt } from '../base/json.ts';
import { plainText, shorten } from '../base/text.ts';

/** A call that fails throws; `failureOf` reads the error. */
export type HostApi = Awaited<ReturnType<typeof connectHost>>;
type Octokit = ReturnType<typeof getOctokit>;

export type PullRequest = Awaited<
  ReturnType<Octokit['rest']['repos']['listPullRequestsAssociatedWithCommit']>
>['data'][number];
type HostComment = Awaited<ReturnType<Octokit['rest']['issues']['createComment']>>['data'];
export type Comment = ReturnType<typeof toComment>;

interface HostApiOptions {
  apiUrl: string;
  token: string;
  /** "owner/name". */
  repository: string;
  signal: AbortSignal;
  callTimeoutMs?: number;
}

const CALL_TIMEOUT_MS = 8_000;
const RETRY_PAUSE_MS = 500;
const PAGE_SIZE = 100;
const MAX_MESSAGE_CHARS = 200;

export async function connectHost(options: HostApiOptions) {
  const octokit = await loadClient(options);
  const { issues, pulls, repos } = octokit.rest;
  const [owner = '', repo = ''] = options.repository.split('/');
  const here = { owner, repo };
  return {
    /** The login of the token's user; undefined if the host does not say it. */
    viewer: async (): Promise<string | undefined> => {
      try {
        return stringAt(await octokit.graphql('query { viewer { login } }'), 'viewer', 'login');
      } catch (error) {
        if (failureOf(error, options.signal).retryMs !== undefined) throw error;
        return undefined;
      }
    },
    /** Those whose text matches, oldest first, from all pages. */
    comments: async (issue: number, isWanted: (body: string) => boolean): Promise<Comment[]> => {
      const wanted = new Map<number, Comment>();
      // Pages are counted, so that no address in an answer says where the token goes.
      for (let page = 1; ; page++) {
        const of = { ...here, issue_number: issue, per_page: PAGE_SIZE, page };
        const all = (await issues.listComments(of)).data.map(toComment);
        for (const one of all) if (isWanted(one.body)) wanted.set(one.id, one);
        if (all.length !== PAGE_SIZE) return [...wanted.values()].sort((a, b) => a.id - b.id);
      }
    },
    createComment: async (issue: number, body: string) =>
      toComment((await issues.createComment({ ...here, issue_number: issue, body })).data),
    updateComment: (id: number, body: string) =>
      issues.updateComment({ ...here, comment_id: id, body }),
    deleteComment: (id: number) => issues.deleteComment({ ...here, comment_id: id }),
    pullsOfCommit: async (commit_sha: string): Promise<PullRequest[]> => {
      const of = { ...here, commit_sha, per_page: PAGE_SIZE };
      return (await repos.listPullRequestsAssociatedWithCommit(of)).data;
    },
    pullsOfBranch: async (from: string, branch: string) => {
      const of = { ...here, state: 'all', head: `${from}:${branch}`, per_page: PAGE_SIZE } as const;
      return (await pulls.list(of)).data;
    },
  };
}

function toComment({ id, html_url: url, body = '', user }: HostComment) {
  if (typeof id !== 'number') throw new TypeError('this is no comment');
  return { id, url, body, author: user?.login ?? '', authorType: user?.type };
}

/** Creates the client, which most runs do not need. Every call passes through one hook, which limits its time. */
async function loadClient(options: HostApiOptions): Promise<Octokit> {
  const { apiUrl, signal, callTimeoutMs = CALL_TIMEOUT_MS } = options;
  // The package parses the event while it is loaded, and throws if that is no JSON (context.js).
  const eventPath = process.env['GITHUB_EVENT_PATH'] ?? '';
  process.env['GITHUB_EVENT_PATH'] = '';
  const { getOctokit } = await import(/* webpackMode: "eager" */ '@actions/github');
  process.env['GITHUB_EVENT_PATH'] = eventPath;
  // The client would write warnings to the console, without our encoding and redaction.
  const ignore = (): void => undefined;
  const log = { debug: ignore, info: ignore, warn: ignore, error: ignore };
  const userAgent = 'namespace-teardown-gate';
  // As for the cluster: companies add their authority to the system. Node 24.4 cannot.
  const roots = [...tls.getCACertificates('default'), ...tls.getCACertificates('system')];
  tls.setDefaultCACertificates?.(roots);
  const octokit = getOctokit(options.token, { baseUrl: apiUrl, log, userAgent });
  octokit.hook.before('request', (given) => {
    given.request['log'] = log;
    given.request.signal = AbortSignal.any([signal, AbortSignal.timeout(callTimeoutMs)]);
  });
  return octokit;
}

export interface HostFailure {
  /** A clause without secrets, in the words of the host or the network. */
  message: string;
  status?: number | undefined;
  /** Pause after which another attempt may succeed. The host may have processed this one. */
  retryMs?: number | undefined;
}

export function failureOf(error: unknown, signal: AbortSignal): HostFailure {
  if (signal.aborted) return { message: 'no answer within the time for publishing' };
  const response = valueAt(error as Json, 'response');
  const status = numberAt(response, 'status');
  if (status === undefined) {
    const cause = causeChain(error).at(-1) as Error;
    if (cause.name === 'TimeoutError')
      return { message: 'no answer in time', retryMs: RETRY_PAUSE_MS };
    // The client's own errors about an answer contain no request. The option that Node advises would change nothing.
    const message = brief(describeError(cause).replace(/; if the root CA is .*?-ca\b/, ''));
    return error instanceof Error && 'request' in error
      ? { message, retryMs: RETRY_PAUSE_MS }
      : { message: 'the answer is not that of a GitHub API' };
  }
  const said = stringAt(response, 'data', 'message') ?? 'the answer is no JSON';
  const retryMs = status >= 500 ? RETRY_PAUSE_MS : undefined;
  return { status, message: `${status} ${brief(said)}`, retryMs };
}

function brief(text: string): string {
  return shorten(plainText(text), MAX_MESSAGE_CHARS);
}
