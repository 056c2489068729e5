// First: a library below reads the environment while it is being loaded.
import './publish/damaged-environment.ts';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as core from '@actions/core';
import { ActionError, describeError } from './base/errors.ts';
import type { Log } from './base/log.ts';
import { type Cancellation, homeDirectory, onCancel } from './base/process.ts';
import { createRedactor, type Redactor } from './base/redact.ts';
import { systemClock } from './base/time.ts';
import { runGate } from './gate/gate.ts';
import { type Inputs, readInputs } from './inputs.ts';
import { connect } from './kubernetes/connect.ts';
import type { RunResult } from './model/result.ts';
import { type OutputContext, outputsOf } from './outputs.ts';
import { createActionLog } from './publish/action-log.ts';
import { commentKey } from './publish/comment-key.ts';
import { createGithub } from './publish/octokit.ts';
import { type CommentDeps, type PublishDeps, type Published, publish } from './publish/publish.ts';
import { readGithubRun } from './publish/run-context.ts';
import { redactResult } from './report/json.ts';
import { renderLogLines } from './report/text.ts';
import { type View, viewOf } from './report/view.ts';
import { GATE_VERSION } from './version.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The runner kills the process 10 s after the cancel signal; the comment must fit in before that. */
const CANCEL_BUDGET_MS = 4_000;

interface Parts {
  env: Environment;
  redactor: Redactor;
  log: Log;
  cancellation: Cancellation;
  startedAt: number;
}

/** Reads the inputs, builds the real parts, runs the gate, publishes. Returns the exit code. */
export async function runAction(env: Environment = process.env): Promise<number> {
  const redactor = createRedactor();
  const parts: Parts = {
    env,
    redactor,
    log: createActionLog(redactor),
    cancellation: onCancel(),
    startedAt: systemClock.now(),
  };
  try {
    const inputs = readInputs((name) => core.getInput(name));
    redactor.add(inputs.githubToken);
    try {
      return await runInCluster(inputs, parts);
    } catch (error) {
      // Cancelled while it was still logging in: there is no cluster to tell about, but a run.
      if (!parts.cancellation.signal.aborted) throw error;
      return await finish(nothingRead(inputs, parts), publishDeps(inputs, '', parts), parts);
    }
  } catch (error) {
    return fail(error, parts);
  } finally {
    parts.cancellation.dispose();
  }
}

async function runInCluster(inputs: Inputs, parts: Parts): Promise<number> {
  const { env, redactor, log, cancellation } = parts;
  const { signal } = cancellation;
  const api = await connect({
    kubeconfig: inputs.kubeconfig,
    context: inputs.context,
    env,
    redactor,
    onSecret: core.setSecret,
    debug: log.debug,
    userAgent: `namespace-teardown-gate/${GATE_VERSION}`,
    homeDir: homeDirectory(),
    signal,
  });
  try {
    const publishing = publishDeps(inputs, api.target.server, parts);
    let announced: Published | undefined;
    const result = await runGate(inputs, {
      api,
      clock: systemClock,
      log,
      signal,
      gateVersion: GATE_VERSION,
      announce: async (planned) => {
        announced = await publish(planned, publishing, signal);
      },
    });
    const start = announced?.summaryStart;
    const again = start === undefined ? publishing : { ...publishing, summaryStart: start };
    return await finish(result, again, parts);
  } finally {
    await api.close();
  }
}

async function finish(given: RunResult, publishing: PublishDeps, parts: Parts): Promise<number> {
  const { signal } = parts.cancellation;
  // Before anything is encoded or cut: after that a secret no longer looks like itself.
  const result = redactResult(given, (text) => parts.redactor.redact(text));
  const view = viewOf(result);
  writeLog(view, parts.log);
  // A cancelled run may still use the seconds that the runner leaves it.
  const limit = signal.aborted ? AbortSignal.timeout(CANCEL_BUDGET_MS) : signal;
  const published = await publish(result, publishing, limit);
  setOutputs(view, published, parts);
  return result.verdict === 'fail' ? 1 : 0;
}

function nothingRead(inputs: Inputs, { startedAt }: Parts): RunResult {
  return {
    kind: 'teardown',
    gateVersion: GATE_VERSION,
    finishedAt: new Date(systemClock.now()).toISOString(),
    elapsedMs: systemClock.now() - startedAt,
    timeoutMs: inputs.timeoutMs,
    cluster: { server: '', version: 'unknown', uid: undefined },
    outcome: 'cancelled',
    verdict: 'fail',
    namespaces: [],
    sharedCauses: [],
  };
}

function publishDeps(inputs: Inputs, server: string, { env, log, redactor }: Parts): PublishDeps {
  const run = readGithubRun(env);
  return {
    log,
    redactor,
    summaryFile: env['GITHUB_STEP_SUMMARY'],
    reportDir: reportDir(inputs, env),
    run: run === undefined ? undefined : { url: run.url, label: run.label },
    comment: commentDeps(inputs, server, run),
  };
}

function writeLog(view: View, log: Log): void {
  const end = renderLogLines(view);
  for (const line of end.lines) log.line(line);
  for (const { title, lines } of end.groups) log.group(title, lines);
  for (const { level, message, title } of end.annotations) log[level](message, title);
}

function commentDeps(
  inputs: Inputs,
  server: string,
  run: ReturnType<typeof readGithubRun>,
): CommentDeps | undefined {
  if (run === undefined || inputs.githubToken === '' || inputs.comment === 'off') return undefined;
  const { repository, apiUrl, graphqlUrl, event } = run;
  return {
    mode: inputs.comment,
    key: commentKey({ ...inputs, server }),
    github: createGithub({ token: inputs.githubToken, repository, apiUrl, graphqlUrl }),
    event,
    prNumber: inputs.prNumber,
  };
}

/** Two gates in one job must not overwrite each other's report. */
function reportDir(inputs: Inputs, env: Environment): string {
  if (inputs.reportDir !== '') return inputs.reportDir;
  for (const parent of [env['RUNNER_TEMP'] || tmpdir(), tmpdir()]) {
    try {
      return mkdtempSync(join(parent, 'namespace-teardown-gate-'));
    } catch {
      // Not there, not ours, full: the next one may do.
    }
  }
  // Writing there fails as well, with a warning that says why.
  return join(tmpdir(), 'namespace-teardown-gate');
}

function setOutputs(
  view: View | undefined,
  context: OutputContext,
  { redactor, startedAt, log }: Parts,
): void {
  const elapsedMs = systemClock.now() - startedAt;
  try {
    for (const [name, value] of Object.entries(outputsOf(view, context, elapsedMs))) {
      core.setOutput(name, redactor.redact(value));
    }
  } catch (error) {
    log.warning(`could not set the outputs of this step: ${describeError(error)}`);
  }
}

/** The gate could not work at all: one sentence, what to do, and all outputs. */
function fail(error: unknown, parts: Parts): number {
  const { log } = parts;
  const message =
    error instanceof ActionError ? error.message : `internal error: ${describeError(error)}`;
  log.error(message, 'Namespace Teardown Gate could not work');
  if (error instanceof ActionError && error.hint !== undefined) log.line(error.hint);
  if (error instanceof Error) log.debug(error.stack ?? '');
  setOutputs(undefined, { reportJsonPath: '', reportMarkdownPath: '', commentUrl: '' }, parts);
  return 1;
}
