import { createHash } from 'node:crypto';
import { isObject, type Json, parseObject, stringAt, valueAt } from '../base/json.ts';
import { type Environment, readRegularFile } from '../base/process.ts';
import { shorten } from '../base/text.ts';

/** An attempt of a job in a workflow run. */
export type WorkflowRun = NonNullable<ReturnType<typeof readWorkflowRun>>;
/** The event that started the workflow. */
export type HostEvent = WorkflowRun['event'];

const MAX_WHERE_CHARS = 120;
/** Limit for an event payload; GitHub sends at most 25 MB. */
const MAX_PAYLOAD_MB = 100;

/** `undefined` outside of a workflow run. */
export function readWorkflowRun(env: Environment, matrix: string) {
  const repository = env['GITHUB_REPOSITORY'] ?? '';
  const name = env['GITHUB_EVENT_NAME'] ?? '';
  const apiUrl = withoutSlash(env['GITHUB_API_URL'] ?? '');
  const isKnown = /^[^/\s]+\/[^/\s]+$/.test(repository) && name !== '' && apiUrl !== '';
  if (!isKnown) return undefined;
  const [workflow, job] = [env['GITHUB_WORKFLOW'] ?? '', env['GITHUB_JOB'] ?? ''];
  const values = Object.entries(parseObject(matrix) ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  const shown = values.map(([, one]) => (typeof one === 'string' ? one : JSON.stringify(one)));
  const number = wholeNumber(env['GITHUB_RUN_NUMBER']);
  const attempt = wholeNumber(env['GITHUB_RUN_ATTEMPT']) || 1;
  // A workflow without a name has that of its file.
  const names = [workflow.replace(/^.*\//, ''), job || 'job'].filter(Boolean).join(' / ');
  const entry = shown.length === 0 ? '' : ` (${shown.join(', ')})`;
  return {
    serverUrl: withoutSlash(env['GITHUB_SERVER_URL'] ?? ''),
    apiUrl,
    event: {
      /** In a called workflow it is that of the caller. */
      name,
      payload: readPayload(env['GITHUB_EVENT_PATH'] ?? ''),
      sha: env['GITHUB_SHA'] ?? '',
      actor: env['GITHUB_ACTOR'] ?? '',
      /** Repository as "owner/name". */
      repository,
    },
    /** Id of the run, ascending in time. The number of a run is unique only per workflow. */
    id: wholeNumber(env['GITHUB_RUN_ID']),
    attempt,
    number,
    label: `run ${number || '?'}, attempt ${attempt}`,
    /** Name of the job, such as "preview / teardown (eu)", as GitHub names checks. */
    where: shorten(`${names}${entry}`, MAX_WHERE_CHARS),
    /** Hash of the job, because its name may contain any text. */
    job: hash([workflow, job, values]),
  };
}

function withoutSlash(address: string): string {
  return address.replace(/\/+$/, '');
}

function wholeNumber(value = ''): number {
  return /^\d{1,15}$/.test(value) ? Number(value) : 0;
}

/** Null if it cannot be read. Programs of Windows write a byte order mark. */
function readPayload(path: string): Json {
  const read = readRegularFile(path, MAX_PAYLOAD_MB);
  if ('problem' in read) return null;
  return parseObject(read.bytes.toString('utf8').replace(/^\uFEFF/, '')) ?? null;
}

/** The page of a run; `undefined` if its address is unknown. */
export function runUrl(at: WorkflowRun, { id, attempt }: Pick<WorkflowRun, 'id' | 'attempt'>) {
  const { serverUrl, event } = at;
  if (!/^https?:\/\//.test(serverUrl) || id === 0) return undefined;
  return `${serverUrl}/${event.repository}/actions/runs/${id}/attempts/${attempt}`;
}

/** Reports whether the run is for a pull request from a fork: its token cannot write. */
export function isForFork({ event: { name, payload, repository } }: WorkflowRun): boolean {
  const head = valueAt(payload, 'pull_request', 'head');
  // A fork that was deleted has no repository.
  const from = stringAt(head, 'repo', 'full_name')?.toLowerCase();
  return name === 'pull_request' && isObject(head) && from !== repository.toLowerCase();
}

/** Why a kubeconfig from a secret may be empty in this run. */
export function lackOfSecrets(run: WorkflowRun): string | undefined {
  if (isForFork(run)) return 'A run for a fork gets no secrets: a kubeconfig from one is empty.';
  const { actor, name } = run.event;
  if (actor !== 'dependabot[bot]' || !/^(push|pull_request)$/.test(name)) return undefined;
  return 'A run by Dependabot gets only the secrets for Dependabot: add the kubeconfig to them.';
}

/** Can stand in an HTML comment and reveals nothing. */
export function hash(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 16);
}
