import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { isObject, type Json, parseObject, stringAt, valueAt } from '../base/json.ts';
import { type Environment, readRegularFile } from '../base/process.ts';
import { shorten } from '../base/text.ts';

export type HostKind = 'github' | 'gitea' | 'forgejo';

/** The host on which the workflow runs, read from the environment. */
export type Host = ReturnType<typeof readHost>;
/** An attempt of a job in a workflow run. */
export type WorkflowRun = NonNullable<ReturnType<typeof readWorkflowRun>>;
/** The event that started the workflow. */
export type HostEvent = WorkflowRun['event'];

/** Reads the workflow run that this process belongs to; `undefined` outside of one. */
export function readWorkflowRun(env: Environment, matrix: string) {
  const repository = env['GITHUB_REPOSITORY'] ?? '';
  const name = env['GITHUB_EVENT_NAME'] ?? '';
  if (!/^[^/\s]+\/[^/\s]+$/.test(repository) || name === '') return undefined;
  const eventPath = env['GITHUB_EVENT_PATH'] ?? '';
  const [id, number] = [digits(env['GITHUB_RUN_ID']), digits(env['GITHUB_RUN_NUMBER'])];
  const attempt = Number(digits(env['GITHUB_RUN_ATTEMPT'])) || 1;
  return {
    host: readHost(env),
    event: {
      /** Name of the workflow. In a called workflow it is that of the caller, or "workflow_call" on Gitea. */
      name,
      payload: readPayload(eventPath),
      sha: env['GITHUB_SHA'] ?? '',
      ref: env['GITHUB_REF'] ?? '',
      actor: env['GITHUB_ACTOR'] ?? '',
      /** Repository as "owner/name". */
      repository,
    },
    /**
     * Id of the run in digits, ascending in time; empty if the host does not say it. The number of a run is
     * unique only per workflow.
     */
    id,
    attempt,
    number,
    /** Label such as "run 812, attempt 1". */
    label: `run ${number === '' ? '?' : number}, attempt ${attempt}`,
    ...identity({
      workflow: env['GITHUB_WORKFLOW'] ?? '',
      job: env['GITHUB_JOB'] ?? '',
      matrix: matrixValues(matrix),
    }),
    /** Start of the job, in milliseconds since the epoch. */
    startedAt: startOf(eventPath),
  };
}

function identity(names: { workflow: string; job: string; matrix: readonly string[] }) {
  const { workflow, job, matrix } = names;
  return {
    /** Name of the job, such as "preview / teardown (eu)", as GitHub names checks. */
    where: describeJob(workflow, job, matrix),
    /** Hashes, because the name of a job may contain any text. */
    workflow: hash(workflow),
    job: hash([workflow, job, matrix]),
    /**
     * The names from which the three above are built. Gitea's runner sends none for a workflow without a name.
     */
    names,
  };
}

/** Returns the run of a workflow without a name, named after its file as on GitHub. */
export function namedAfterFile(file: string, run: WorkflowRun): WorkflowRun {
  return { ...run, ...identity({ ...run.names, workflow: file }) };
}

function readHost(env: Environment) {
  // Forgejo's runner also says that it is Gitea's (forgejo/runner, internal/app/run/runner.go).
  const isForgejo = env['FORGEJO_ACTIONS'] === 'true';
  const isGitea = env['GITEA_ACTIONS'] === 'true';
  const kind: HostKind = isForgejo ? 'forgejo' : isGitea ? 'gitea' : 'github';
  const isGithub = kind === 'github';
  return {
    kind,
    /** Name of the host in a sentence. */
    name: NAMES[kind],
    /** Both addresses have no slash at the end. */
    serverUrl: baseUrl(env['GITHUB_SERVER_URL'], isGithub ? 'https://github.com' : ''),
    apiUrl: baseUrl(env['GITHUB_API_URL'], apiOf(kind, env['GITHUB_SERVER_URL'] ?? '')),
    /** Whether people can read what a step writes into GITHUB_STEP_SUMMARY. */
    hasSummary: isGithub && Boolean(env['GITHUB_STEP_SUMMARY']),
  };
}

const NAMES = { github: 'GitHub', gitea: 'Gitea', forgejo: 'Forgejo' } as const;

/** Returns the usual address of the API of a server; empty if that is unknown, so that no token goes to another host. */
function apiOf(kind: HostKind, server: string): string {
  const isGithub = kind === 'github';
  const own = baseUrl(server, isGithub ? 'https://github.com' : '');
  // GitHub itself, and GitHub Enterprise Cloud with data residency, have a host for the API.
  const [, host] = /^https:\/\/(github\.com|[\w-]+\.ghe\.com)$/.exec(own) ?? [];
  if (isGithub && host !== undefined) return `https://api.${host}`;
  return own === '' ? '' : `${own}/api/${isGithub ? 'v3' : 'v1'}`;
}

/** Returns the configured address or its fallback, without a slash at the end. */
function baseUrl(given: string | undefined, fallback: string): string {
  return (given || fallback).replace(/\/+$/, '');
}

/**
 * Returns the page of the run; `undefined` if its address is unknown. Gitea used the number of the run until
 * 1.25 and uses its id since then. With `by_index` later versions also accept the number, and earlier ones
 * ignore the parameter (routers/web/repo/actions/view.go, resolveCurrentRunForView).
 */
export function runUrl(
  run: Pick<WorkflowRun, 'host' | 'event' | 'id' | 'number' | 'attempt'>,
): string | undefined {
  const { host, id, number, event } = run;
  if (!/^https?:\/\//.test(host.serverUrl)) return undefined;
  const base = `${host.serverUrl}/${event.repository}/actions/runs`;
  switch (host.kind) {
    case 'github':
      return id === '' ? undefined : `${base}/${id}/attempts/${run.attempt}`;
    case 'gitea':
      return number === '' ? undefined : `${base}/${number}?by_index=1`;
    case 'forgejo':
      return number === '' ? undefined : `${base}/${number}`;
  }
}

/** Returns why a run of this event has a token that cannot write, whatever its permissions say. */
export function readOnlyReason({ event, host }: WorkflowRun): string | undefined {
  if (isOfDependabot(event))
    return `${host.name} gives a run that Dependabot started a read-only token`;
  return isOfFork(event)
    ? `${host.name} gives a run for a pull request from a fork a read-only token`
    : undefined;
}

/** Returns why a run of this event may have no kubeconfig. */
export function secretsHint({ event, host }: WorkflowRun): string | undefined {
  if (isOfDependabot(event)) {
    return `Dependabot started this run, and ${host.name} gives it no secrets but those of Dependabot: a kubeconfig from another one is empty.`;
  }
  return isOfFork(event)
    ? `This run is for a pull request from a fork, and ${host.name} gives it no secrets: a kubeconfig from one is empty.`
    : undefined;
}

/**
 * Reports whether the run has Dependabot's restrictions, which apply only to these events (docs.github.com,
 * "Dependabot on Actions").
 */
function isOfDependabot({ actor, name }: HostEvent): boolean {
  return actor === 'dependabot[bot]' && DEPENDABOT_EVENTS.includes(name);
}

const DEPENDABOT_EVENTS = [
  'pull_request',
  'pull_request_review',
  'pull_request_review_comment',
  'push',
  'create',
  'deployment',
  'deployment_status',
];

/** Reports whether the run belongs to a fork, also if the fork was deleted. */
function isOfFork({ name, payload, repository }: HostEvent): boolean {
  if (!name.startsWith('pull_request') || name === 'pull_request_target') return false;
  const head = valueAt(payload, 'pull_request', 'head');
  const from = stringAt(head, 'repo', 'full_name')?.toLowerCase();
  return isObject(head) && from !== repository.toLowerCase();
}

function describeJob(workflow: string, job: string, values: readonly string[]): string {
  // A workflow without a name has that of its file.
  const name = workflow.replace(/^.*\//, '');
  const shown = values.map((entry) =>
    entry.slice(entry.indexOf('=') + 1).replace(/^"(.*)"$/, '$1'),
  );
  const matrix = shown.length === 0 ? '' : ` (${shown.join(', ')})`;
  return shorten(`${name === '' ? '' : `${name} / `}${job || 'job'}${matrix}`, MAX_WHERE_CHARS);
}

const MAX_WHERE_CHARS = 120;

/** Returns "key=value" per dimension, in order; none if the job has no matrix or the host does not pass it. */
function matrixValues(matrix: string): string[] {
  return Object.entries(parseObject(matrix) ?? {})
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .sort();
}

/**
 * Returns the key of the comment that a run writes into. Jobs, workflows and clusters with the same given key
 * share a comment; otherwise each job has its own.
 */
export function commentKey(given: string, run: Pick<WorkflowRun, 'job'>): string {
  return given === '' ? hash(['job', run.job]) : hash(['key', given]);
}

/** Returns 16 hexadecimal characters, which can stand in an HTML comment and reveal nothing. */
export function hash(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 16);
}

function digits(value: string | undefined): string {
  return /^\d{1,19}$/.test(value ?? '') ? (value as string) : '';
}

/** Returns the start of the job: runners write the file of the event when a job begins. */
function startOf(eventPath: string): number | undefined {
  try {
    const at = statSync(eventPath).mtimeMs;
    // Files in a container may be dated 1970.
    return Date.now() - at < MAX_JOB_MS ? at : undefined;
  } catch {
    return undefined;
  }
}

const MAX_JOB_MS = 5 * 24 * 3_600_000;

/** Limit for an event payload; GitHub sends at most 25 MB. */
const MAX_PAYLOAD_MB = 100;

/**
 * Reads the payload; null if it cannot be read. The report is then published without a comment. A byte order mark, which
 * programs of Windows write, is skipped.
 */
function readPayload(path: string): Json {
  const read = readRegularFile(path, MAX_PAYLOAD_MB);
  if ('problem' in read) return null;
  return parseObject(read.bytes.toString('utf8').replace(/^\uFEFF/, '')) ?? null;
}
