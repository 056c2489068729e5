import { readFileSync } from 'node:fs';
import type { Json } from '../base/json.ts';
import type { GithubEvent } from './event.ts';

export interface GithubRun {
  /** "owner/name". */
  repository: string;
  apiUrl: string;
  graphqlUrl: string | undefined;
  /** Page of this run, for people. */
  url: string;
  /** "run 812, attempt 1". */
  label: string;
  event: GithubEvent;
}

/** The workflow run that this process belongs to; `undefined` outside of one. */
export function readGithubRun(
  env: Readonly<Record<string, string | undefined>>,
): GithubRun | undefined {
  const repository = env['GITHUB_REPOSITORY'] ?? '';
  const name = env['GITHUB_EVENT_NAME'] ?? '';
  if (!/^[^/\s]+\/[^/\s]+$/.test(repository) || name === '') return undefined;
  const server = trimmed(env['GITHUB_SERVER_URL'] ?? 'https://github.com');
  const graphqlUrl = env['GITHUB_GRAPHQL_URL'] ?? '';
  return {
    repository,
    apiUrl: trimmed(env['GITHUB_API_URL'] ?? 'https://api.github.com'),
    graphqlUrl: graphqlUrl === '' ? undefined : graphqlUrl,
    url: `${server}/${repository}/actions/runs/${runPath(env)}`,
    label: runLabel(env),
    event: {
      name,
      payload: readPayload(env['GITHUB_EVENT_PATH']),
      sha: env['GITHUB_SHA'] ?? '',
      actor: env['GITHUB_ACTOR'] ?? '',
      repository,
    },
  };
}

/** Gitea and Forgejo count runs per repository and have no page per attempt. */
function runPath(env: Readonly<Record<string, string | undefined>>): string {
  if (env['GITEA_ACTIONS'] === 'true') return digits(env['GITHUB_RUN_NUMBER']);
  const attempt = digits(env['GITHUB_RUN_ATTEMPT']);
  return `${digits(env['GITHUB_RUN_ID'])}${attempt === '' ? '' : `/attempts/${attempt}`}`;
}

function runLabel(env: Readonly<Record<string, string | undefined>>): string {
  const number = digits(env['GITHUB_RUN_NUMBER']);
  return `run ${number === '' ? '?' : number}, attempt ${digits(env['GITHUB_RUN_ATTEMPT']) || '1'}`;
}

function digits(value: string | undefined): string {
  return /^\d+$/.test(value ?? '') ? (value as string) : '';
}

function trimmed(url: string): string {
  return url.replace(/\/+$/, '');
}

/** No payload is like one that names no pull request: the report goes without a comment. */
function readPayload(path: string | undefined): Json {
  if (path === undefined || path === '') return null;
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Json;
  } catch {
    return null;
  }
}
