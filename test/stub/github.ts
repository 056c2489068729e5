import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isObject, type Json, type JsonObject, stringAt } from '../../src/base/json.ts';
import { type Description, violationOf } from './host-description.ts';
import { REPOSITORY_NAME } from './runner.ts';

/** A server that speaks GitHub's API as far as the gate uses it. Every request is held against GitHub's own description. */
export interface Github {
  /** What `GITHUB_API_URL` is set to. */
  readonly url: string;
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
    | 'hang'
    | 'reset';
}

export interface GithubOptions {
  /** Whose description requests are held against. */
  description?: Description;
  repository?: string;
  /** Who the token is. */
  login?: string;
  /** Whether GraphQL tells who the token is; a server other than GitHub has none. */
  tellsViewer?: boolean;
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
    this.#options = {
      description: 'api.github.com',
      repository: REPOSITORY_NAME,
      login: 'github-actions[bot]',
      tellsViewer: true,
      ...options,
    };
  }

  get url(): string {
    return `${this.serverUrl}${this.#basePath}`;
  }

  get #basePath(): string {
    return this.#options.description.startsWith('ghes') ? '/api/v3' : '';
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
    const answer = fault ?? this.#answer(entry, request.headers.authorization);
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
    const { login, repository, tellsViewer } = this.#options;
    const unknown = message(403, 'Resource not accessible by integration');
    if (/^(\/api)?\/graphql$/.test(url.pathname)) {
      return tellsViewer ? { status: 200, body: { data: { viewer: { login } } } } : unknown;
    }
    const path = url.pathname.slice(this.#basePath.length);
    const prefix = `/repos/${repository}`;
    if (!path.startsWith(`${prefix}/`)) return message(404, 'Not Found');
    return this.#inRepository(entry, url, path.slice(prefix.length));
  }

  #inRepository(entry: GithubRequest, url: URL, path: string): Answer {
    const onIssue = /^\/issues\/(\d+)\/comments$/.exec(path);
    if (onIssue !== null) return this.#issueComments(entry, url, Number(onIssue[1]));
    const one = /^\/issues\/comments\/(\d+)$/.exec(path);
    if (one !== null) return this.#oneComment(entry, Number(one[1]));
    const sha = /^\/commits\/([0-9a-f]+)\/pulls$/.exec(path)?.[1];
    if (sha !== undefined) return this.#pullsWhere(({ commits }) => commits.includes(sha));
    if (path === '/pulls') {
      const head = url.searchParams.get('head');
      return this.#pullsWhere(({ headOwner, headRef }) => `${headOwner}:${headRef}` === head);
    }
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
    return this.#page(items, url);
  }

  #page(items: readonly JsonObject[], url: URL): Answer {
    const size = Math.min(100, Number(url.searchParams.get('per_page') ?? 30));
    const page = Number(url.searchParams.get('page') ?? 1);
    const next = new URL(url);
    next.searchParams.set('page', String(page + 1));
    return {
      status: 200,
      headers: page * size < items.length ? { link: `<${next}>; rel="next"` } : {},
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
    comment.body = stringAt(body, 'body') ?? '';
    return { status: 200, body: this.#commentJson(comment) };
  }

  #pullsWhere(isWanted: (pull: StubPull) => boolean): Answer {
    const body = this.#pulls.filter(isWanted).map((pull) => ({
      number: pull.number,
      merged_at: pull.mergedAt,
      merge_commit_sha: pull.mergeCommitSha,
      base: { repo: { full_name: pull.baseRepository } },
      head: { sha: pull.headSha },
    }));
    return { status: 200, body };
  }

  #commentJson({ id, issue, body, user }: StubComment): JsonObject {
    const html_url = `https://github.com/${this.#options.repository}/pull/${issue}#issuecomment-${id}`;
    return { id, body, html_url, user: { ...user } };
  }
}

type Answer = Exclude<Fault['answer'], 'hang' | 'reset'>;

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
