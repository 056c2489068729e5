import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Json } from '../../src/base/json.ts';
import type { Log } from '../../src/base/log.ts';
import { createRedactor, type Redactor } from '../../src/base/redact.ts';
import type { RunResult } from '../../src/model/result.ts';
import { connectHost } from '../../src/publish/host-api.ts';
import { Publisher, type PublisherDeps } from '../../src/publish/publish.ts';
import { readWorkflowRun, type WorkflowRun } from '../../src/publish/workflow-run.ts';
import {
  type Entry,
  MAX_COMMENT_CHARS,
  renderComment,
  resultOf,
} from '../../src/report/comment.ts';
import { type RenderContext, renderSummary } from '../../src/report/markdown.ts';
import { logReport } from '../../src/report/plain-text.ts';
import { type Failure, type View, viewOf } from '../../src/report/view.ts';
import type { Github } from './github.ts';
import { REPOSITORY_NAME } from './runner.ts';

/** A publisher with all it needs, and a folder that is deleted at the end of the test. */
interface Desk {
  publisher: Publisher;
  said: string[];
  folder: string;
  /** What is in a file of the folder. */
  read(name: string): string;
  write(name: string, text: string): void;
}

export interface DeskOptions {
  github?: Github;
  mode?: 'off' | 'on-failure' | 'always';
  event?: { name: string; payload: Json; actor?: string | undefined };
  prNumber?: number;
  commentKey?: string;
  /** Id, number and attempt of the run. */
  run?: { id: number; number?: number; attempt?: number };
  workflow?: string;
  job?: string;
  matrix?: Json;
  namespaces?: readonly string[];
  selector?: string;
  token?: string;
  cancelled?: AbortSignal;
  /** For a server that does not answer; otherwise no call times out, even on a slow machine. */
  callTimeoutMs?: number;
  redactor?: Redactor;
  /** GITHUB_STEP_SUMMARY; a file in the folder of the test unless given. */
  summaryFile?: string | undefined;
  reportDir?: string;
}

export const PULL_REQUEST = 42;

const ON_PULL_REQUEST: NonNullable<DeskOptions['event']> = {
  name: 'pull_request',
  payload: {
    pull_request: { number: PULL_REQUEST, head: { repo: { full_name: REPOSITORY_NAME } } },
  },
};

export function desk(options: DeskOptions = {}): Desk {
  const folder = mkdtempSync(join(tmpdir(), 'publish-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const said: string[] = [];
  const { cancelled = new AbortController().signal, callTimeoutMs = 120_000 } = options;
  const publisher = new Publisher({
    log: recordingLog(said),
    redactor: options.redactor ?? createRedactor(),
    summaryFile: 'summaryFile' in options ? options.summaryFile : join(folder, 'summary.md'),
    reportDir: options.reportDir ?? join(folder, 'not', 'there', 'yet'),
    run: workflowRun(options),
    comment: commentInputs(options),
    cancelled,
    clock: { now: Date.now, sleep: async () => undefined },
    connect: (given) =>
      connectHost({
        ...given,
        signal: options.cancelled === undefined ? cancelled : given.signal,
        callTimeoutMs,
      }),
  });
  return {
    publisher,
    said,
    folder,
    read: (name) => readFileSync(join(folder, name), 'utf8'),
    write: (name, text) => writeFileSync(join(folder, name), text),
  };
}

/** Files and comment, as the action has them. */
export async function report(
  github: Github,
  told: RunResult | Failure,
  options: DeskOptions = {},
): Promise<{ said: string[]; commentUrl: string }> {
  const { publisher, said } = desk({ github, ...options });
  const whole = 'namespaces' in told ? viewOf(told) : told;
  await publisher.files(whole);
  return { said, commentUrl: await publisher.comment(whole) };
}

function workflowRun(options: DeskOptions): WorkflowRun {
  const { run = { id: 9_000 }, event = ON_PULL_REQUEST } = options;
  const { actor = 'octocat' } = event;
  const read = readWorkflowRun(
    {
      GITHUB_REPOSITORY: REPOSITORY_NAME,
      GITHUB_EVENT_NAME: event.name,
      GITHUB_SHA: '9f3c2e1a7b5d4c6e8f0a1b2c3d4e5f6a7b8c9d0e',
      GITHUB_ACTOR: actor,
      GITHUB_RUN_ID: String(run.id),
      GITHUB_RUN_NUMBER: String(run.number ?? 812),
      GITHUB_RUN_ATTEMPT: String(run.attempt ?? 1),
      GITHUB_WORKFLOW: options.workflow ?? 'preview',
      GITHUB_JOB: options.job ?? 'teardown',
      GITHUB_API_URL: options.github?.url ?? 'https://api.github.com',
    },
    JSON.stringify(options.matrix ?? null),
  );
  if (read === undefined) throw new Error('that is no workflow run');
  const { payload } = event;
  return { ...read, event: { ...read.event, payload } };
}

function commentInputs(options: DeskOptions): PublisherDeps['comment'] {
  const { github, mode = 'on-failure' } = options;
  if (github === undefined || mode === 'off') return undefined;
  return {
    mode,
    token: options.token ?? github.token,
    prNumber: options.prNumber,
    key: options.commentKey ?? '',
    namespaces: [...(options.namespaces ?? ['preview-pr-42'])],
    selector: options.selector ?? '',
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

/** What the step log ends with. */
export function endOfLog(view: View) {
  const lines: string[] = [];
  const groups: { title: string; lines: readonly string[] }[] = [];
  const annotations: { level: string; title: string; message: string }[] = [];
  const annotate =
    (level: string) =>
    (message: string, title = ''): void =>
      void annotations.push({ level, title, message });
  logReport(view, {
    line: (text) => void lines.push(text),
    group: (title, inside) => void groups.push({ title, lines: inside }),
    notice: annotate('notice'),
    warning: annotate('warning'),
    error: annotate('error'),
    debug: () => undefined,
  });
  return { lines, groups, annotations };
}

export const KEY = '0123456789abcdef';

/** Of a run, as far as the comment needs it. */
export function entryOf(result: RunResult, given: Partial<Entry> = {}): Entry {
  const place = { scope: 'c'.repeat(16), about: 'preview-pr-42' };
  const run = { run: 9_001, attempt: 1, number: 812 };
  return { ...run, ...place, ...resultOf(viewOf(result)), ...given };
}

/** The comment of one run, after those that the job has already. */
export function commentOf(
  run: RunResult,
  context: RenderContext,
  known: readonly string[] = [],
  {
    job = 'preview / teardown',
    maxChars = MAX_COMMENT_CHARS,
    ...given
  }: {
    job?: string;
    maxChars?: number;
  } & Partial<Entry> = {},
): string {
  const section = (room: number): string => renderSummary(viewOf(run), context, room);
  const content = { key: KEY, job, own: entryOf(run, given), section };
  return renderComment({ ...content, linkTo: () => context.runUrl }, known, maxChars);
}
