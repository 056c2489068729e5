import { appendFile, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describeError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { makeFolder } from '../base/process.ts';
import type { Redactor } from '../base/redact.ts';
import type { ReadFailure } from '../model/read.ts';
import type { RunResult } from '../model/result.ts';
import { historyIn, markerLine, renderComment } from '../report/comment.ts';
import { buildReport, redactResult } from '../report/json.ts';
import { type RenderContext, renderMarkdownReport, renderSummary } from '../report/markdown.ts';
import { type View, viewOf } from '../report/view.ts';
import { commentTrouble } from './comment-failure.ts';
import { type CommentOutcome, putComment } from './comment-lifecycle.ts';
import { type GithubEvent, pullRequestSource, readOnlyReason } from './event.ts';
import type { GithubApi } from './github-api.ts';
import { findPullRequest } from './pull-request.ts';

/** GitHub drops a summary above 1 MiB whole, and one just below it can vanish without a word. */
const MAX_SUMMARY_BYTES = 900 * 1024;

export interface PublishDeps {
  log: Log;
  redactor: Redactor;
  /** `GITHUB_STEP_SUMMARY`; undefined where there is none. */
  summaryFile: string | undefined;
  /** How long the file was before this run wrote to it: a second publishing replaces the first. */
  summaryStart?: number;
  /** Folder for report.json and report.md; made when missing. */
  reportDir: string;
  files?: Files;
  run: { url: string; label: string } | undefined;
  /** Absent without a workflow run or without a token. */
  comment: CommentDeps | undefined;
}

export interface CommentDeps {
  mode: 'off' | 'on-failure' | 'always';
  /** 16 hexadecimal characters, see `commentKey`. */
  key: string;
  github: GithubApi;
  event: GithubEvent;
  /** The input `pr-number`. */
  prNumber: number | undefined;
}

export interface Files {
  size(path: string): Promise<number>;
  append(path: string, text: string): Promise<void>;
  truncate(path: string, size: number): Promise<void>;
  write(path: string, text: string): Promise<void>;
}

export interface Published {
  commentUrl: string;
  /** Empty when the file could not be written. */
  reportJsonPath: string;
  reportMarkdownPath: string;
  /** For `summaryStart` of a second publishing. */
  summaryStart: number | undefined;
  /** What did not work, already logged. */
  warnings: string[];
}

/**
 * Writes the report files, the job summary and the comment. Never throws and never changes the
 * verdict: what cannot be published is a warning that says what would help.
 */
export async function publish(
  given: RunResult,
  deps: PublishDeps,
  signal?: AbortSignal,
): Promise<Published> {
  const view = viewOf(redactResult(given, (text) => deps.redactor.redact(text)));
  const warnings: string[] = [];
  const warn = (message: string, fix: readonly string[] = []): void => {
    const clean = deps.redactor.redact(message);
    deps.log.warning(clean);
    for (const line of fix) deps.log.line(`    ${line}`);
    warnings.push([clean, ...fix].join('\n'));
  };
  const files = deps.files ?? nodeFiles;
  const paths = await writeReports(view, deps, files, warn);
  const context: RenderContext = {
    finishedAt: view.run.finishedAt,
    ...(deps.run === undefined ? {} : { runUrl: deps.run.url, runLabel: deps.run.label }),
  };
  const summaryStart = await writeSummary(view, context, deps, files, warn);
  const commentUrl = await writeComment(view, context, deps, warn, signal);
  return {
    commentUrl,
    reportJsonPath: paths.json,
    reportMarkdownPath: paths.markdown,
    summaryStart,
    warnings,
  };
}

type Warn = (message: string, fix?: readonly string[]) => void;

async function writeReports(
  view: View,
  deps: PublishDeps,
  files: Files,
  warn: Warn,
): Promise<{ json: string; markdown: string }> {
  const context: RenderContext = {
    finishedAt: view.run.finishedAt,
    ...(deps.run === undefined ? {} : { runUrl: deps.run.url, runLabel: deps.run.label }),
  };
  const write = async (name: string, text: () => string): Promise<string> => {
    const path = join(deps.reportDir, name);
    try {
      await files.write(path, text());
      return path;
    } catch (error) {
      warn(`could not write ${path}: ${describeError(error)}; give another folder as "report-dir"`);
      return '';
    }
  };
  return {
    json: await write('report.json', () => `${JSON.stringify(buildReport(view.run), null, 2)}\n`),
    markdown: await write('report.md', () => renderMarkdownReport(view, context)),
  };
}

async function writeSummary(
  view: View,
  context: RenderContext,
  deps: PublishDeps,
  files: Files,
  warn: Warn,
): Promise<number | undefined> {
  const { summaryFile } = deps;
  if (summaryFile === undefined || summaryFile === '') return undefined;
  try {
    if (deps.summaryStart !== undefined) await files.truncate(summaryFile, deps.summaryStart);
    const size = deps.summaryStart ?? (await files.size(summaryFile));
    // The file may end in the middle of a line that somebody else wrote.
    const lead = size === 0 ? '' : '\n\n';
    const text = renderSummary(view, context, MAX_SUMMARY_BYTES - size - lead.length);
    if (text === '') warn('the job summary of this step is full; the report is only in its files');
    else await files.append(summaryFile, `${lead}${text}`);
    return size;
  } catch (error) {
    warn(`could not write the job summary: ${describeError(error)}; the report is in its files`);
    return undefined;
  }
}

async function writeComment(
  view: View,
  context: RenderContext,
  deps: PublishDeps,
  warn: Warn,
  signal: AbortSignal | undefined,
): Promise<string> {
  const { comment, log } = deps;
  // A cancelled run knows less than the comment that may be there already.
  if (comment === undefined || comment.mode === 'off' || view.run.outcome === 'cancelled')
    return '';
  try {
    const found = await findPullRequest(
      pullRequestSource(comment.event, comment.prNumber),
      comment.github,
      signal,
    );
    if (found.kind === 'none') {
      log.notice(`no pull request comment: ${found.reason}`);
      return '';
    }
    if (found.kind === 'failed') {
      tell(`could not read ${found.what}`, found.failure, comment.event, deps, warn);
      return '';
    }
    const task = {
      issue: found.number,
      marker: markerLine(comment.key),
      mayCreate: comment.mode === 'always' || view.run.verdict === 'fail',
      render: (earlier: string | undefined): string =>
        renderComment(view, context, comment.key, earlier === undefined ? [] : historyIn(earlier)),
    };
    const outcome = await putComment(task, comment.github, signal);
    return commentUrl(outcome, found.number, comment.event, deps, warn);
  } catch (error) {
    warn(`no pull request comment: ${describeError(error)}`);
    return '';
  }
}

function commentUrl(
  outcome: CommentOutcome,
  issue: number,
  event: GithubEvent,
  deps: PublishDeps,
  warn: Warn,
): string {
  switch (outcome.kind) {
    case 'created':
    case 'updated':
      return outcome.url;
    case 'none':
      return '';
    case 'failed':
      tell(
        `could not ${outcome.what} the comment on pull request ${issue}`,
        outcome.failure,
        event,
        deps,
        warn,
      );
      return '';
  }
}

function tell(
  tried: string,
  failure: ReadFailure,
  event: GithubEvent,
  deps: PublishDeps,
  warn: Warn,
): void {
  const trouble = commentTrouble(tried, failure, readOnlyReason(event));
  if (trouble.level === 'warning') warn(trouble.message, trouble.fix);
  if (trouble.level === 'notice') deps.log.notice(deps.redactor.redact(trouble.message));
}

const nodeFiles: Files = {
  size: async (path) => {
    try {
      return (await stat(path)).size;
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return 0;
      throw error;
    }
  },
  append: (path, text) => appendFile(path, text),
  truncate: (path, size) => truncate(path, size),
  write: async (path, text) => {
    await makeFolder(join(path, '..'));
    await writeFile(path, text);
  },
};
