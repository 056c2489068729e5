import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { isObject, type Json, type JsonObject, stringAt } from '../../src/base/json.ts';
import type { Host } from '../../src/publish/workflow-run.ts';
import { type Description, violationOf } from './host-description.ts';
import { REPOSITORY_NAME } from './runner.ts';

/**
 * A server that speaks GitHub's API as far as the gate uses it, or Gitea's dialect of it. Every request is
 * held against the host's own description of its API.
 */
export interface Github {
  /** What `GITHUB_API_URL` is set to. */
  readonly url: string;
  /** As the gate knows it. */
  readonly host: Host;
  readonly token: string;
  /** In the order of their arrival. */
  readonly requests: GithubRequest[];
  commentsOn(issue: number): StubComment[];
  /** Adds an existing comment; its author is the login of the token unless given. */
  addComment(issue: number, body: string, author?: { login: string; type: string }): StubComment;
  addPull(pull: Partial<StubPull> & { number: number }): void;
  /** Answers with this fault instead, `times` times (always unless given). */
  fail(fault: Fault): void;
  /** Called with every request before it is answered; tests make concurrent changes here. */
  onRequest: ((request: GithubRequest) => void) | undefined;
  /** Throws if a request is not in the API description of the host. */
  close(): Promise<void>;
}

interface GithubRequest {
  method: string;
  /** The path with the query. */
  path: string;
  body: Json | undefined;
  status: number | undefined;
}

interface StubComment {
  id: number;
  issue: number;
  body: string;
  user: { login: string; type: string };
}

interface StubPull {
  number: number;
  baseRepository: string;
  headSha: string;
  headRef: string;
  headOwner: string;
  mergedAt: string | null;
  closedAt: string | null;
  mergeCommitSha: string | null;
  /** Commits that `commits/{sha}/pulls` finds it by; none for commits of a fork. */
  commits: string[];
}

export interface Fault {
  /** Matched against "GET /repos/o/r/…". */
  request: RegExp;
  times?: number;
  answer:
    | { status: number; headers?: Record<string, string>; body?: Json; text?: string }
    /** The request is carried out after this, whether its client still waits or not. */
    | { lateMs: number }
    | 'hang'
    | 'reset';
}

export interface GithubOptions {
  flavour?: 'github' | 'gitea' | 'forgejo';
  /** Whose description requests are held against; that of the flavour unless given. */
  description?: Description;
  /** What the host calls itself in links, when that is another address than its clients use. */
  publicUrl?: string;
  repository?: string;
  /** Who the token is. */
  login?: string;
  /** Whether the server tells who the token is, by GraphQL and `/user`. */
  isViewerKnown?: boolean;
  /** Whether every number is a pull request; otherwise only those that were added. */
  hasAnyPull?: boolean;
  /** Comments per page, however many are asked for. */
  pageSize?: number;
}

const TOKEN = 'token-of-the-workflow-run';

export async function startGithub(options: GithubOptions = {}): Promise<Github> {
  const stub = new GithubStub(options);
  const server = createServer((request, response) => void stub.handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stub.serverUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  stub.server = server;
  return stub;
}

class GithubStub implements Github {
  serverUrl = '';
  server: Server | undefined;
  readonly token = TOKEN;
  readonly requests: GithubRequest[] = [];
  onRequest: ((request: GithubRequest) => void) | undefined;
  readonly #comments: StubComment[] = [];
  readonly #pulls: StubPull[] = [];
  readonly #faults: (Fault & { left: number })[] = [];
  readonly #options: Required<GithubOptions>;
  readonly #violations: string[] = [];
  #nextId = 1_000;

  constructor(options: GithubOptions) {
    const { flavour = 'github' } = options;
    const isGithub = flavour === 'github';
    this.#options = {
      flavour,
      description: isGithub ? 'api.github.com' : 'gitea',
      publicUrl: '',
      repository: REPOSITORY_NAME,
      login: isGithub ? 'github-actions[bot]' : `${flavour}-actions`,
      isViewerKnown: isGithub,
      hasAnyPull: true,
      pageSize: isGithub ? 100 : 50,
      ...options,
    };
  }

  get url(): string {
    return `${this.serverUrl}${this.#basePath}`;
  }

  get #basePath(): string {
    const { description } = this.#options;
    if (description === 'gitea') return '/api/v1';
    return description.startsWith('ghes') ? '/api/v3' : '';
  }

  get host(): Host {
    const { flavour } = this.#options;
    const names = { github: 'GitHub', gitea: 'Gitea', forgejo: 'Forgejo' } as const;
    return {
      kind: flavour,
      name: names[flavour],
      serverUrl: flavour === 'github' ? 'https://github.com' : this.serverUrl,
      apiUrl: this.url,
      hasSummary: flavour === 'github',
    };
  }

  commentsOn(issue: number): StubComment[] {
    return this.#comments.filter((comment) => comment.issue === issue);
  }

  addComment(issue: number, body: string, user = this.#self()): StubComment {
    const comment = { id: this.#nextId++, issue, body, user };
    this.#comments.push(comment);
    return comment;
  }

  addPull(pull: Partial<StubPull> & { number: number }): void {
    this.#pulls.push({
      baseRepository: this.#options.repository,
      headSha: 'a'.repeat(40),
      headRef: 'feature',
      headOwner: this.#options.repository.split('/')[0] ?? '',
      mergedAt: null,
      closedAt: null,
      mergeCommitSha: null,
      commits: [],
      ...pull,
    });
  }

  fail(fault: Fault): void {
    this.#faults.push({ ...fault, left: fault.times ?? Number.POSITIVE_INFINITY });
  }

  async close(): Promise<void> {
    this.server?.closeAllConnections();
    await new Promise((resolve) => this.server?.close(resolve));
    if (this.#violations.length > 0) throw new Error(this.#violations.join('\n'));
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const entry: GithubRequest = {
      method: request.method ?? '',
      path: request.url ?? '',
      body: await readJson(request),
      status: undefined,
    };
    this.requests.push(entry);
    const violation = this.#violation(entry);
    if (violation !== undefined) this.#violations.push(violation);
    this.onRequest?.(entry);
    const fault = this.#faultFor(entry);
    if (typeof fault === 'object' && 'lateMs' in fault) await setTimeout(fault.lateMs);
    const isReal = fault === undefined || (typeof fault === 'object' && 'lateMs' in fault);
    const answer = isReal ? this.#answer(entry, request.headers.authorization) : fault;
    if (answer === 'hang') return;
    if (answer === 'reset') {
      request.socket.destroy();
      return;
    }
    entry.status = answer.status;
    const type = 'text' in answer ? 'text/html' : 'application/json; charset=utf-8';
    response.writeHead(answer.status, { 'content-type': type, ...answer.headers });
    if (answer.status === 204) response.end();
    else response.end('text' in answer ? answer.text : JSON.stringify(answer.body ?? {}));
  }

  #self(): { login: string; type: string } {
    const { login } = this.#options;
    return { login, type: login.endsWith('[bot]') ? 'Bot' : 'User' };
  }

  #faultFor({ method, path }: GithubRequest): Fault['answer'] | undefined {
    const fault = this.#faults.find((one) => one.left > 0 && one.request.test(`${method} ${path}`));
    if (fault === undefined) return undefined;
    fault.left--;
    return fault.answer;
  }

  #violation({ method, path, body }: GithubRequest): string | undefined {
    if (path.endsWith('/graphql')) return undefined;
    const { description, repository } = this.#options;
    if (!path.startsWith(`${this.#basePath}/`)) return `not in the API: ${method} ${path}`;
    const inside = path.slice(this.#basePath.length);
    return violationOf(description, repository, method, inside, body);
  }

  #answer(entry: GithubRequest, authorization: string | undefined): Answer {
    if (authorization !== `token ${TOKEN}`) return message(401, 'Bad credentials');
    const url = new URL(entry.path, this.serverUrl);
    const { isViewerKnown, login, repository, flavour } = this.#options;
    if (/^(\/api)?\/graphql$/.test(url.pathname) && flavour === 'github') {
      return isViewerKnown
        ? { status: 200, body: { data: { viewer: { login } } } }
        : message(403, 'Resource not accessible by integration');
    }
    const path = url.pathname.slice(this.#basePath.length);
    if (path === '/user' && isViewerKnown) return { status: 200, body: { login } };
    if (path === '/user') return message(403, 'Resource not accessible by integration');
    const prefix = `/repos/${repository}`;
    if (!path.startsWith(`${prefix}/`)) return message(404, 'Not Found');
    return this.#inRepository(entry, url, path.slice(prefix.length));
  }

  #inRepository(entry: GithubRequest, url: URL, path: string): Answer {
    const onIssue = /^\/issues\/(\d+)\/comments$/.exec(path);
    if (onIssue !== null) return this.#issueComments(entry, url, Number(onIssue[1]));
    const one = /^\/issues\/comments\/(\d+)$/.exec(path);
    if (one !== null) return this.#oneComment(entry, Number(one[1]));
    const pull = /^\/pulls\/(\d+)$/.exec(path);
    if (pull !== null) return this.#onePull(Number(pull[1]));
    const commit = /^\/commits\/([0-9a-f]+)\/(pulls?)$/.exec(path);
    if (commit !== null) return this.#pullsOfCommit(commit[1] ?? '', commit[2] ?? '');
    if (path === '/pulls') return this.#pullsOfBranch(url);
    return message(404, 'Not Found');
  }

  #issueComments({ method, body }: GithubRequest, url: URL, issue: number): Answer {
    if (method === 'POST') {
      const text = stringAt(body, 'body') ?? '';
      if (text.length > 65_536) {
        return message(422, 'Validation Failed: body is too long (maximum is 65536 characters)');
      }
      return { status: 201, body: this.#commentJson(this.addComment(issue, text)) };
    }
    const all = this.commentsOn(issue);
    const items = all.map((comment) => this.#commentJson(comment));
    // Gitea returns all at once, ignores the page parameters, and sends no Link header.
    if (this.#options.flavour !== 'github') return { status: 200, body: items };
    return this.#page(items, url, 'per_page');
  }

  #page(items: readonly JsonObject[], url: URL, parameter: 'per_page' | 'limit'): Answer {
    const { pageSize, publicUrl } = this.#options;
    const size = Math.min(pageSize, Number(url.searchParams.get(parameter) ?? 30));
    const page = Number(url.searchParams.get('page') ?? 1);
    const next = new URL(`${publicUrl || this.serverUrl}${url.pathname}${url.search}`);
    next.searchParams.set('page', String(page + 1));
    const hasMore = page * size < items.length;
    return {
      status: 200,
      headers: hasMore ? { link: `<${next}>; rel="next", <${next.origin}/x>; rel="first"` } : {},
      body: items.slice((page - 1) * size, page * size),
    };
  }

  #oneComment({ method, body }: GithubRequest, id: number): Answer {
    const at = this.#comments.findIndex((comment) => comment.id === id);
    const comment = this.#comments[at];
    if (comment === undefined) return message(404, 'Not Found');
    if (method === 'DELETE') {
      this.#comments.splice(at, 1);
      return { status: 204 };
    }
    if (method === 'GET') return { status: 200, body: this.#commentJson(comment) };
    comment.body = stringAt(body, 'body') ?? '';
    return { status: 200, body: this.#commentJson(comment) };
  }

  #onePull(number: number): Answer {
    const pull = this.#pulls.find((one) => one.number === number);
    if (pull !== undefined) return { status: 200, body: this.#pullJson(pull) };
    if (!this.#options.hasAnyPull) return message(404, 'Not Found');
    this.addPull({ number });
    return this.#onePull(number);
  }

  #pullsOfCommit(sha: string, path: string): Answer {
    const found = this.#pulls.filter(({ commits }) => commits.includes(sha));
    const isGitea = this.#options.flavour !== 'github';
    if (isGitea !== (path === 'pull')) return message(404, 'Not Found');
    if (!isGitea) return { status: 200, body: found.map((pull) => this.#pullJson(pull)) };
    const merged = found.find(({ mergedAt }) => mergedAt !== null);
    return merged === undefined
      ? message(404, 'Not Found')
      : { status: 200, body: this.#pullJson(merged) };
  }

  #pullsOfBranch(url: URL): Answer {
    const head = url.searchParams.get('head');
    // Gitea knows no such filter; the last changed come first.
    const isGithub = this.#options.flavour === 'github';
    const found = this.#pulls
      .filter((pull) => !isGithub || `${pull.headOwner}:${pull.headRef}` === head)
      .map((pull) => this.#pullJson(pull))
      .reverse();
    return this.#page(found, url, isGithub ? 'per_page' : 'limit');
  }

  #pullJson(pull: StubPull): JsonObject {
    // Gitea has no branch to name once it is gone, only the label.
    const isGone = this.#options.flavour !== 'github' && pull.closedAt !== null;
    return {
      number: pull.number,
      merged_at: pull.mergedAt,
      closed_at: pull.closedAt,
      merge_commit_sha: pull.mergeCommitSha,
      base: { repo: { full_name: pull.baseRepository } },
      head: {
        sha: pull.headSha,
        label:
          this.#options.flavour === 'github' ? `${pull.headOwner}:${pull.headRef}` : pull.headRef,
        ref: isGone ? `refs/pull/${pull.number}/head` : pull.headRef,
        repo: { owner: { login: pull.headOwner } },
      },
    };
  }

  #commentJson({ id, issue, body, user }: StubComment): JsonObject {
    const { repository, flavour } = this.#options;
    return {
      id,
      body,
      html_url: `https://github.com/${repository}/pull/${issue}#issuecomment-${id}`,
      user: flavour === 'github' ? { ...user } : { login: user.login },
    };
  }
}

type Answer = Exclude<Fault['answer'], 'hang' | 'reset' | { lateMs: number }>;

function message(status: number, text: string): Answer {
  return { status, body: { message: text, documentation_url: 'https://docs.github.com/rest' } };
}

async function readJson(request: IncomingMessage): Promise<Json | undefined> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString('utf8');
  if (text === '') return undefined;
  const parsed: unknown = JSON.parse(text);
  return isObject(parsed) ? parsed : undefined;
}
