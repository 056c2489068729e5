import type { Json } from '../../src/base/json.ts';
import type { Log } from '../../src/base/log.ts';
import { createRedactor, type Redactor } from '../../src/base/redact.ts';
import { commentKey } from '../../src/publish/comment-key.ts';
import { createGithub } from '../../src/publish/octokit.ts';
import type { Files, PublishDeps } from '../../src/publish/publish.ts';
import type { Github } from './github.ts';
import { REPOSITORY_NAME } from './runner.ts';

/** Everything that `publish` works with, on GitHub's stub and on files in memory. */
export interface Desk extends PublishDeps {
  said: string[];
  contents: Map<string, string>;
}

export interface DeskOptions {
  github?: Github;
  mode?: 'off' | 'on-failure' | 'always';
  event?: { name: string; payload: Json; actor?: string };
  prNumber?: number;
  commentKey?: string;
  runLabel?: string;
  redactor?: Redactor;
  files?: Partial<Files>;
}

export const PULL_REQUEST = 42;

export function desk(options: DeskOptions = {}): Desk {
  const said: string[] = [];
  const contents = new Map<string, string>();
  const label = options.runLabel ?? 'run 812, attempt 1';
  const number = label.replaceAll(/\D/g, '');
  return {
    said,
    contents,
    log: recordingLog(said),
    redactor: options.redactor ?? createRedactor(),
    summaryFile: '/summary.md',
    reportDir: '/reports',
    files: { ...filesIn(contents), ...options.files },
    run: { url: `https://github.com/${REPOSITORY_NAME}/actions/runs/${number}`, label },
    comment: options.github === undefined ? undefined : commentDeps(options.github, options),
  };
}

function commentDeps(github: Github, options: DeskOptions): NonNullable<PublishDeps['comment']> {
  const { name, payload, actor } = options.event ?? {
    name: 'pull_request',
    payload: {
      pull_request: { number: PULL_REQUEST, head: { repo: { full_name: REPOSITORY_NAME } } },
    },
  };
  return {
    mode: options.mode ?? 'on-failure',
    key: commentKey({
      server: 'https://kind.example:6443',
      namespaces: ['preview-pr-42'],
      selector: '',
      commentKey: options.commentKey ?? '',
    }),
    github: createGithub({
      token: github.token,
      repository: REPOSITORY_NAME,
      apiUrl: github.url,
      graphqlUrl: `${github.url}/graphql`,
      clock: { now: () => Date.now(), sleep: async () => undefined },
      callTimeoutMs: 1_000,
    }),
    event: {
      name,
      payload,
      sha: '9f3c2e1a7b5d4c6e8f0a1b2c3d4e5f6a7b8c9d0e',
      actor: actor ?? 'octocat',
      repository: REPOSITORY_NAME,
    },
    prNumber: options.prNumber,
  };
}

/** Lines as "warning: …"; plain lines as they are. */
function recordingLog(said: string[]): Log {
  return {
    line: (text) => void said.push(text),
    group: (title) => void said.push(`group: ${title}`),
    notice: (message) => void said.push(`notice: ${message}`),
    warning: (message) => void said.push(`warning: ${message}`),
    error: (message) => void said.push(`error: ${message}`),
    debug: () => undefined,
  };
}

function filesIn(contents: Map<string, string>): Files {
  const read = (path: string): string => contents.get(path) ?? '';
  return {
    size: async (path) => Buffer.byteLength(read(path)),
    append: async (path, text) => void contents.set(path, read(path) + text),
    truncate: async (path, size) =>
      void contents.set(path, Buffer.from(read(path)).subarray(0, size).toString('utf8')),
    write: async (path, text) => void contents.set(path, text),
  };
}
