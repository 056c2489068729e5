import { mkdtempSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import * as core from '@actions/core';
import { createActionLog } from './action-log.ts';
import { type Cancellation, onCancel } from './cancel.ts';
import { systemClock } from './clock.ts';
import { ActionError, describeError } from './errors.ts';
import { runGate } from './gate.ts';
import { commentKey } from './github/comment-key.ts';
import { createGithub } from './github/octokit.ts';
import { readGithubRun } from './github/run-context.ts';
import { type Inputs, readInputs } from './inputs.ts';
import { connect } from './kubernetes/connect.ts';
import type { Log } from './log.ts';
import { type OutputContext, outputsOf } from './outputs.ts';
import { createRedactor, type Redactor } from './redact.ts';
import { renderLogLines } from './report/log-lines.ts';
import { type CommentDeps, publish } from './report/publish.ts';
import type { RunResult } from './report/report.ts';
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
    const { result, server } = await runInCluster(inputs, parts);
    return await report(result, server, inputs, parts);
  } catch (error) {
    return fail(error, parts);
  } finally {
    parts.cancellation.dispose();
  }
}

async function runInCluster(
  inputs: Inputs,
  { env, redactor, log, cancellation }: Parts,
): Promise<{ result: RunResult; server: string }> {
  const api = await connect({
    kubeconfig: inputs.kubeconfig,
    context: inputs.context,
    env,
    redactor,
    onSecret: core.setSecret,
    debug: log.debug,
    userAgent: `namespace-teardown-gate/${GATE_VERSION}`,
    homeDir: homedir(),
  });
  try {
    const { signal } = cancellation;
    const result = await runGate(inputs, {
      api,
      clock: systemClock,
      log,
      signal,
      gateVersion: GATE_VERSION,
    });
    return { result, server: api.target.server };
  } finally {
    await api.close();
  }
}

async function report(
  result: RunResult,
  server: string,
  inputs: Inputs,
  parts: Parts,
): Promise<number> {
  const { env, log, redactor, cancellation, startedAt } = parts;
  writeLog(result, log);
  const run = readGithubRun(env);
  const published = await publish(
    result,
    {
      log,
      redactor,
      summaryFile: env['GITHUB_STEP_SUMMARY'],
      reportDir: reportDir(inputs, env),
      run: run === undefined ? undefined : { url: run.url, label: run.label },
      comment: commentDeps(inputs, server, run),
    },
    cancellation.signal.aborted ? AbortSignal.timeout(CANCEL_BUDGET_MS) : cancellation.signal,
  );
  setOutputs(result, published, parts, systemClock.now() - startedAt);
  return result.verdict === 'fail' ? 1 : 0;
}

function writeLog(result: RunResult, log: Log): void {
  const end = renderLogLines(result);
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
  return mkdtempSync(join(env['RUNNER_TEMP'] || tmpdir(), 'namespace-teardown-gate-'));
}

function setOutputs(
  result: RunResult | undefined,
  context: OutputContext,
  { redactor }: Parts,
  elapsedMs: number,
): void {
  for (const [name, value] of Object.entries(outputsOf(result, context, elapsedMs))) {
    core.setOutput(name, redactor.redact(value));
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
  try {
    const none = { reportJsonPath: '', reportMarkdownPath: '', commentUrl: '' };
    setOutputs(undefined, none, parts, systemClock.now() - parts.startedAt);
  } catch (outputError) {
    log.warning(`could not set the outputs: ${describeError(outputError)}`);
  }
  return 1;
}
