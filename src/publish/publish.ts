import { statSync } from 'node:fs';
import { appendFile, mkdir, truncate, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import * as core from '@actions/core';
import { describeError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Redactor } from '../base/redact.ts';
import { logLine, shorten, upperFirst } from '../base/text.ts';
import { type Clock, systemClock } from '../base/time.ts';
import type { CommentInputs } from '../inputs.ts';
import { type Entry, isPassed, resultOf } from '../report/comment.ts';
import { REPORT_FILES } from '../report/files.ts';
import { type RenderContext, renderSummary } from '../report/markdown.ts';
import type { Ending } from '../report/view.ts';
import { connectHost, failureOf } from './host-api.ts';
import { findPullRequest } from './pull-request.ts';
import { adviceFor, putComment } from './put-comment.ts';
import { hash, isForFork, runUrl, type WorkflowRun } from './workflow-run.ts';

/** GitHub discards a job summary above 1 MiB, and one just below it may disappear without an error. */
const MAX_SUMMARY_BYTES = 900 * 1024;
/** A cancelled run has to end within 7 s of the signal. */
const CANCELLED_MS = 4_000;
const MAX_TRIES = 3;
const MAX_ABOUT_CHARS = 80;
/** Below the 4,096 characters at which GitHub cuts an annotation. */
const MAX_ANNOTATION_CHARS = 500;

export interface PublisherDeps {
  log: Log;
  redactor: Redactor;
  /** `GITHUB_STEP_SUMMARY`. */
  summaryFile: string | undefined;
  /** Created if it is missing. */
  reportDir: string;
  /** Absent outside of a workflow. */
  run: WorkflowRun | undefined;
  /** Absent if no comment is wanted. */
  comment: CommentInputs | undefined;
  cancelled: AbortSignal;
  clock?: Clock;
  connect?: typeof connectHost;
}

/** It never throws and never changes the verdict: a failure is a warning that says how to fix it. */
export class Publisher {
  readonly #deps: PublisherDeps;
  readonly #context: RenderContext;
  /** Before this run. A second report replaces the first one. */
  #summaryStart: number | undefined;

  constructor(deps: PublisherDeps) {
    const { run } = deps;
    this.#deps = deps;
    this.#context = { runUrl: run && runUrl(run, run), runLabel: run?.label };
  }

  /** Returns the paths of the files that were written, by name. */
  async files(ending: Ending): Promise<Record<string, string>> {
    const paths: Record<string, string> = {};
    for (const [name, render] of REPORT_FILES) {
      if (!('run' in ending)) break;
      const path = join(this.#deps.reportDir, name);
      try {
        // Without `..`, as in `out/../reports`, where `out` need not exist.
        await mkdir(dirname(path), { recursive: true });
        await writeFile(path, render(ending, this.#context));
        paths[name] = path;
      } catch (error) {
        const why = `${describeError(error)}; give another folder as "report-dir"`;
        this.#deps.log.warning(`could not write ${path}: ${why}`);
      }
    }
    await this.#writeSummary(ending);
    return paths;
  }

  async #writeSummary(ending: Ending): Promise<void> {
    const { log, summaryFile } = this.#deps;
    if (summaryFile === undefined || summaryFile === '') return;
    try {
      if (this.#summaryStart !== undefined) await truncate(summaryFile, this.#summaryStart);
      this.#summaryStart = statSync(summaryFile, { throwIfNoEntry: false })?.size ?? 0;
      // The file may end in the middle of a line of another program.
      const lead = this.#summaryStart === 0 ? '' : '\n\n';
      const room = MAX_SUMMARY_BYTES - this.#summaryStart - lead.length;
      const text = renderSummary(ending, this.#context, room);
      if (text === '')
        return log.warning('the job summary of this step is full; the report is only in its files');
      await appendFile(summaryFile, `${lead}${text}`);
    } catch (error) {
      log.warning(`could not write the job summary: ${describeError(error)}`);
    }
  }

  /** Writes the pull request comment. Returns its address, or an empty text. */
  async comment(ending: Ending): Promise<string> {
    const { comment, run, cancelled, log, redactor } = this.#deps;
    const { clock = systemClock, connect = connectHost } = this.#deps;
    // A cancelled run knows less than an existing comment.
    const knowsNothing = 'run' in ending && ending.run.outcome === 'cancelled';
    if (comment === undefined || knowsNothing) return '';
    const mayCreate = comment.mode === 'always' || !('run' in ending) || !isPassed(ending.run);
    const { namespaces, selector, token } = comment;
    if (run === undefined || token === '') {
      const missing =
        run === undefined
          ? 'GITHUB_REPOSITORY, GITHUB_EVENT_NAME and GITHUB_API_URL do not say where this runs'
          : 'the input "github-token" is empty';
      if (mayCreate) log.line(`no pull request comment: ${missing}`);
      return '';
    }
    const about = [...namespaces, selector].filter(Boolean).join(', ');
    const own: Entry = {
      ...resultOf(ending),
      ...{ run: run.id, attempt: run.attempt, number: run.number },
      scope: about === '' ? '' : hash([[...namespaces].sort(), selector]),
      about: shorten(redactor.redact(about), MAX_ABOUT_CHARS),
    };
    const content = {
      ...{ key: hash([run.job, comment.key]), job: redactor.redact(run.where), own, mayCreate },
      section: (maxBytes: number) => renderSummary(ending, this.#context, maxBytes),
      linkTo: ({ run: id, attempt }: Entry) => runUrl(run, { id, attempt }),
    };
    const limit = AbortSignal.timeout(cancelled.aborted ? CANCELLED_MS : publishingMs(ending));
    const signal = cancelled.aborted ? limit : AbortSignal.any([cancelled, limit]);
    const { apiUrl, event } = run;
    let tried = 'find the pull request';
    for (let tries = 1; ; tries++) {
      try {
        const api = await connect({ apiUrl, token, repository: event.repository, signal });
        const issue = await findPullRequest(event, comment.prNumber, api);
        if (typeof issue === 'string') {
          log.notice(`no pull request comment: ${issue}`);
          return '';
        }
        tried = `comment on pull request ${issue}`;
        return await putComment({ ...content, issue, api });
      } catch (error) {
        const failure = failureOf(error, signal);
        if (tries < MAX_TRIES && failure.retryMs !== undefined) {
          await clock.sleep(failure.retryMs, signal);
          continue;
        }
        if (signal.aborted && !limit.aborted) return '';
        const isFork = isForFork(run);
        const advice = upperFirst(adviceFor(failure, isFork));
        const trouble = `could not ${tried}: ${failure.message.replace(/\.$/, '')}. ${advice}.`;
        // A run that passed only looks for a red comment of an earlier run, which such a token has hardly written.
        const isExpected = isFork || (!mayCreate && failure.status === 403);
        log[isExpected ? 'notice' : 'warning'](trouble);
        return '';
      }
    }
  }
}

/** For the comment, in ms: 25 s less a pause of the client; less after a slow run, as the gate ends 60 s after its timeout. */
export function publishingMs(ending: Ending): number {
  const lateMs = 'run' in ending ? ending.run.elapsedMs - ending.run.timeoutMs : 0;
  return Math.min(24_000, Math.max(10_000, 59_000 - lateMs));
}

/** Creates the step log. The toolkit escapes line ends in commands but not `##[command]`; this log escapes both. */
export function createActionLog(redactor: Redactor): Log {
  const safe = (text: string): string => logLine(redactor.redact(text));
  const annotate = (write: typeof core.notice) => (message: string, title?: string) => {
    const text = shorten(safe(message), MAX_ANNOTATION_CHARS);
    write(text, title === undefined ? {} : { title: safe(title) });
  };
  return {
    line: (text) => core.info(safe(text)),
    group: (title, lines) => {
      core.startGroup(safe(title));
      for (const line of lines) core.info(safe(line));
      core.endGroup();
    },
    notice: annotate(core.notice),
    warning: annotate(core.warning),
    error: annotate(core.error),
    debug: (text) => core.debug(safe(text)),
  };
}
