import { statSync } from 'node:fs';
import { appendFile, truncate, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import * as core from '@actions/core';
import { describeError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { makeFolder } from '../base/process.ts';
import type { Redactor } from '../base/redact.ts';
import { logLine, shorten } from '../base/text.ts';
import { type Clock, systemClock } from '../base/time.ts';
import type { CommentInputs } from '../inputs.ts';
import type { RunResult } from '../model/result.ts';
import { isStillHeld } from '../report/causes.ts';
import { failureSection, sectionOf } from '../report/comment.ts';
import { isPassed, storedResult, type Teardown } from '../report/comment-state.ts';
import { REPORT_FILE_ROWS, type ReportFile } from '../report/files.ts';
import { type RenderContext, renderSummary } from '../report/markdown.ts';
import type { Ending } from '../report/view.ts';
import { commentTrouble } from './advice.ts';
import { type ApiFailure, connectHost, type HostApi } from './host-api.ts';
import { findPullRequest } from './pull-request.ts';
import { putComment } from './put-comment.ts';
import { commentKey, hash, namedAfterFile, runUrl, type WorkflowRun } from './workflow-run.ts';

/**
 * Limit for the job summary. GitHub discards a summary above 1 MiB, and one just below it may disappear without
 * an error.
 */
const MAX_SUMMARY_BYTES = 900 * 1024;
/**
 * Time for all requests about the comment. It is 25 s less one second for a pause of the client that may outlast
 * the limit.
 */
const PUBLISHING_MS = 24_000;
/**
 * Time for the requests about the comment that announces forcing. It is a part of PUBLISHING_MS, because the result
 * has to be published as well.
 */
const ANNOUNCING_MS = 10_000;
/** Time for the requests about the comment of a cancelled run, which has to end within 7 s of the signal. */
const CANCELLED_MS = 5_000;
const MAX_ABOUT_CHARS = 80;

export interface PublisherDeps {
  log: Log;
  redactor: Redactor;
  /** The file `GITHUB_STEP_SUMMARY`; undefined if there is none. */
  summaryFile: string | undefined;
  /** Folder for the report files; created if it is missing. */
  reportDir: string;
  /** The workflow run; absent outside of one. */
  run: WorkflowRun | undefined;
  /** The way to comment; absent if no comment is wanted. */
  comment: CommentInputs | undefined;
  /** Aborts when the run is cancelled. */
  cancelled: AbortSignal;
  clock?: Clock;
  connect?: typeof connectHost;
}

/**
 * Writes the report files, the job summary and the comment. It never throws and never changes the verdict: a
 * failure is a warning that says how to fix it.
 */
export class Publisher {
  readonly #deps: PublisherDeps;
  readonly #clock: Clock;
  readonly #context: RenderContext;
  #leftMs = PUBLISHING_MS;
  /** The time at which the run was cancelled, in milliseconds since the epoch. */
  #cancelledAt: number | undefined;
  /** Length of the summary before this run. A second report replaces the first one. */
  #summaryStart: number | undefined;
  /** Whether the job summary has the report: its file may be full, or not writable. */
  #isInSummary = false;

  constructor(deps: PublisherDeps) {
    const { clock = systemClock, run } = deps;
    this.#deps = deps;
    this.#clock = clock;
    this.#context = { runUrl: run && runUrl(run), runLabel: run?.label };
    const cancelled = (): void => {
      this.#cancelledAt = this.#clock.now();
    };
    if (deps.cancelled.aborted) cancelled();
    else deps.cancelled.addEventListener('abort', cancelled, { once: true });
  }

  /**
   * Writes the report files and the job summary. Returns the paths of the files; empty for a file that could not
   * be written.
   */
  async files(ending: Ending) {
    const paths: Partial<Record<ReportFile, string>> = {};
    if ('run' in ending) {
      for (const [name, render] of REPORT_FILE_ROWS) {
        paths[name] = await this.#writeReport(name, () => render(ending, this.#context));
      }
    }
    await this.#writeSummary(ending);
    return {
      reportJsonPath: paths['report.json'] ?? '',
      reportMarkdownPath: paths['report.md'] ?? '',
    };
  }

  /** Writes the pull request comment. Returns its address, or an empty text. */
  async comment(ending: Ending, isAnnouncement = false): Promise<string> {
    const { comment, run, cancelled } = this.#deps;
    // A cancelled run knows less than an existing comment.
    const knowsNothing = 'run' in ending && ending.run.outcome === 'cancelled';
    if (comment === undefined || knowsNothing) return '';
    if (run === undefined || comment.token === '') {
      const missing =
        run === undefined
          ? 'the environment does not say where this runs (GITHUB_REPOSITORY, GITHUB_EVENT_NAME)'
          : 'the input "github-token" is empty';
      if (mayCreate(ending, comment) && !isAnnouncement) {
        this.#deps.log.line(`no pull request comment: ${missing}`);
      }
      return '';
    }
    const startedAt = this.#clock.now();
    const unhurried = isAnnouncement ? ANNOUNCING_MS : PUBLISHING_MS;
    const most =
      this.#cancelledAt === undefined
        ? unhurried
        : Math.max(0, CANCELLED_MS - (startedAt - this.#cancelledAt));
    const limit = AbortSignal.timeout(Math.min(most, this.#leftMs));
    const signal = cancelled.aborted ? limit : AbortSignal.any([cancelled, limit]);
    try {
      return await this.#writeComment(ending, comment, run, isAnnouncement, signal);
    } catch (error) {
      this.#warn(`no pull request comment: ${describeError(error)}; ${this.#reportPlace(run)}`);
      return '';
    } finally {
      this.#leftMs = Math.max(0, this.#leftMs - (this.#clock.now() - startedAt));
    }
  }

  async #writeReport(name: string, text: () => string): Promise<string> {
    const path = join(this.#deps.reportDir, name);
    try {
      // Without `..`, as in `out/../reports`, where `out` need not exist.
      await makeFolder(dirname(path));
      await writeFile(path, text());
      return path;
    } catch (error) {
      this.#warn(
        `could not write ${path}: ${describeError(error)}; give another folder as "report-dir"`,
      );
      return '';
    }
  }

  async #writeSummary(ending: Ending): Promise<void> {
    const { summaryFile } = this.#deps;
    this.#isInSummary = false;
    if (summaryFile === undefined || summaryFile === '') return;
    try {
      const before = this.#summaryStart;
      if (before !== undefined) await truncate(summaryFile, before);
      const size = before ?? statSync(summaryFile, { throwIfNoEntry: false })?.size ?? 0;
      // The file may end in the middle of a line of another program.
      const lead = size === 0 ? '' : '\n\n';
      const room = MAX_SUMMARY_BYTES - size - lead.length;
      const text =
        'run' in ending
          ? renderSummary(ending, this.#context, room)
          : `${failureSection(ending, this.#context)}\n`;
      this.#summaryStart = size;
      if (text !== '') await appendFile(summaryFile, `${lead}${text}`);
      this.#isInSummary = text !== '';
      if (text === '')
        this.#warn('the job summary of this step is full; the report is only in its files');
    } catch (error) {
      this.#warn(`could not write the job summary: ${describeError(error)}`);
    }
  }

  async #writeComment(
    ending: Ending,
    inputs: CommentInputs,
    run: WorkflowRun,
    isAnnouncement: boolean,
    signal: AbortSignal,
  ): Promise<string> {
    const { host, event } = run;
    const { token, prNumber } = inputs;
    const { connect = connectHost } = this.#deps;
    const clock = this.#clock;
    const api = await connect({ host, token, repository: event.repository, signal, clock });
    const found = await findPullRequest(event, host.kind, prNumber, api);
    if (found.kind === 'none') {
      this.#deps.log.notice(`no pull request comment: ${found.reason}`);
      return '';
    }
    const tell = (tried: string, failure: ApiFailure): string => {
      const trouble = commentTrouble(tried, failure, run, this.#reportPlace(run));
      if (trouble?.level === 'notice') this.#deps.log.notice(trouble.message);
      else if (trouble !== undefined) this.#warn(trouble.message, trouble.fix);
      return '';
    };
    if (found.kind === 'failed') return tell(`could not read ${found.what}`, found.failure);
    const named = await withWorkflowName(run, api);
    const own = this.#teardown(ending, inputs, named);
    const isGuarded = inputs.key !== '' && !own.isPass && !isAnnouncement;
    const namespaces = 'run' in ending ? ending.run.namespaces : [];
    const end = await putComment({
      key: commentKey(inputs.key, named),
      own,
      gone: namespaces.flatMap((one) => (isStillHeld(one) ? [] : one.name)),
      section: (maxChars) => sectionOf(ending, this.#context, maxChars),
      linkTo: ({ run: id, number, attempt }) => runUrl({ host, event, id, number, attempt }),
      issue: found.number,
      mayCreate: mayCreate(ending, inputs),
      ...{ isGuarded, token, host, api, clock, signal },
    });
    if ('url' in end) return end.url;
    return tell(`could not ${end.what} the comment on pull request ${found.number}`, end.failure);
  }

  /** Returns where the report can be read without the comment. */
  #reportPlace({ host }: WorkflowRun): string {
    return host.hasSummary && this.#isInSummary
      ? 'the job summary has the report'
      : 'the step log has the report';
  }

  #teardown(ending: Ending, inputs: CommentInputs, run: WorkflowRun): Teardown {
    const { namespaces, selector } = inputs;
    const { id, attempt, number, workflow, job, where, startedAt } = run;
    const isKnown = namespaces.length > 0 || selector !== '';
    const { redact } = this.#deps.redactor;
    const about = redact([...namespaces, selector].filter(Boolean).join(', '));
    return {
      ...storedResult(ending),
      ...{ run: id, attempt, number, workflow, job },
      where: redact(where),
      scope: isKnown ? hash([[...namespaces].sort(), selector]) : '',
      about: shorten(about, MAX_ABOUT_CHARS),
      address: 'run' in ending ? hash(ending.run.cluster.server) : '',
      isOwnCluster: 'run' in ending && isClusterOfJob(ending.run, startedAt),
    };
  }

  #warn(message: string, fix: readonly string[] = []): void {
    this.#deps.log.warning(message);
    for (const line of fix) this.#deps.log.line(`    ${line}`);
  }
}

/** Reports whether a new comment may be created. */
function mayCreate(ending: Ending, { mode }: CommentInputs): boolean {
  return mode === 'always' || !('run' in ending) || !isPassed(ending.run);
}

/**
 * Returns the run with the name of its workflow. Otherwise two workflows without a name and with equal job names
 * would be the same.
 */
async function withWorkflowName(run: WorkflowRun, api: HostApi): Promise<WorkflowRun> {
  const { host, id, names } = run;
  if (names.workflow !== '' || host.kind === 'github' || id === '') return run;
  const file = await api.workflowFile(id);
  return file.ok ? namedAfterFile(file.value, run) : run;
}

/**
 * Reports whether the cluster was created after the job started. The age of the cluster is measured by its own
 * clock.
 */
function isClusterOfJob(
  { cluster, finishedAt }: RunResult,
  startedAt: number | undefined,
): boolean {
  const age = Date.parse(finishedAt) - Date.parse(cluster.createdAt ?? '');
  return startedAt !== undefined && age < Date.now() - startedAt;
}

/** Limit for an annotation, below the 4,096 characters at which GitHub cuts it. */
const MAX_ANNOTATION_CHARS = 500;

/**
 * Creates the step log. The toolkit escapes line ends in commands but not `##[command]`; this log escapes both.
 */
export function createActionLog(redactor: Redactor): Log {
  const safe = (text: string): string => logLine(redactor.redact(text));
  const annotation = (text: string): string => shorten(safe(text), MAX_ANNOTATION_CHARS);
  const properties = (title: string | undefined): core.AnnotationProperties =>
    title === undefined ? {} : { title: safe(title) };
  return {
    line: (text) => core.info(safe(text)),
    group: (title, lines) => {
      core.startGroup(safe(title));
      for (const line of lines) core.info(safe(line));
      core.endGroup();
    },
    notice: (message, title) => core.notice(annotation(message), properties(title)),
    warning: (message, title) => core.warning(annotation(message), properties(title)),
    error: (message, title) => core.error(annotation(message), properties(title)),
    debug: (text) => core.debug(safe(text)),
  };
}
