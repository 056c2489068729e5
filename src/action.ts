import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as core from '@actions/core';
import { describeError, describeFailure } from './base/errors.ts';
import type { Log } from './base/log.ts';
import { onCancel } from './base/process.ts';
import { createRedactor, type Redactor, redactDeep } from './base/redact.ts';
import { systemClock } from './base/time.ts';
import { runInCluster } from './in-cluster.ts';
import { commentInputs, type GivenInputs, INPUT_ROWS, type Inputs, readInputs } from './inputs.ts';
import type { RunResult } from './model/result.ts';
import { outputsOf } from './outputs.ts';
import { createActionLog, Publisher } from './publish/publish.ts';
import { readWorkflowRun, secretsHint, type WorkflowRun } from './publish/workflow-run.ts';
import { logReport } from './report/plain-text.ts';
import { type Ending, type View, viewOf } from './report/view.ts';
import { GATE_VERSION } from './version.ts';

interface Parts {
  given: GivenInputs;
  redactor: Redactor;
  log: Log;
  /** Aborts when the run is cancelled. */
  signal: AbortSignal;
  run: WorkflowRun | undefined;
  startedAt: number;
}

/** Runs the action: reads the inputs, connects, runs the gate, publishes. Returns the exit code. */
export async function runAction(): Promise<number> {
  const redactor = createRedactor(core.setSecret);
  const given: GivenInputs = Object.fromEntries(
    INPUT_ROWS.map(([name]) => [name, core.getInput(name)] as const),
  );
  redactor.add(given['github-token']);
  const { signal, dispose } = onCancel();
  const parts: Parts = {
    given,
    redactor,
    log: createActionLog(redactor),
    signal,
    run: readWorkflowRun(process.env, given.matrix ?? ''),
    startedAt: systemClock.now(),
  };
  let publisher = createPublisher(undefined, parts);
  try {
    const inputs = readInputs(given);
    publisher = createPublisher(inputs, parts);
    const current = publisher;
    const announce = async (planned: View): Promise<void> => {
      await current.files(planned);
      await current.comment(planned, true);
    };
    const noFiles = { reportJsonPath: '', reportMarkdownPath: '' };
    const concluded = (view: View): void =>
      setOutputs(outputsOf(view, noFiles, systemClock.now() - parts.startedAt), parts);
    const face = { ...parts, announce, concluded };
    return await runInCluster(inputs, face, (view) => finish(view, current, parts));
  } catch (error) {
    // The run was cancelled during the login: there is no cluster to report about, but there is a run.
    return signal.aborted
      ? await finish(viewOf(emptyResult(parts)), publisher, parts)
      : await fail(error, publisher, parts);
  } finally {
    dispose();
  }
}

async function finish(view: View, publisher: Publisher, parts: Parts): Promise<number> {
  logReport(view, parts.log);
  await publish(view, publisher, parts);
  return view.run.verdict === 'fail' ? 1 : 0;
}

/** Reports that the gate could not work: one sentence, a hint, and all outputs. */
async function fail(error: unknown, publisher: Publisher, parts: Parts): Promise<number> {
  const { log, redactor, run, startedAt } = parts;
  const { message, hint, frames } = describeFailure(error);
  const hints = [hint, run && secretsHint(run)].filter((text) => text !== undefined);
  log.error(message, 'Namespace Teardown Gate could not work');
  for (const text of hints) log.line(text);
  for (const frame of frames) log.debug(frame);
  const now = systemClock.now();
  const failure = { message, hints, at: new Date(now).toISOString(), elapsedMs: now - startedAt };
  await publish(redactDeep(failure, redactor.redact), publisher, parts);
  return 1;
}

/** Sets the outputs before the requests to the host, which may take long. */
async function publish(ending: Ending, publisher: Publisher, parts: Parts): Promise<void> {
  const view = 'run' in ending ? ending : undefined;
  const paths = await publisher.files(ending);
  setOutputs(outputsOf(view, paths, systemClock.now() - parts.startedAt), parts);
  const commentUrl = await publisher.comment(ending);
  if (commentUrl !== '') setOutputs({ 'comment-url': commentUrl }, parts);
}

function setOutputs(outputs: Record<string, string>, { redactor, log }: Parts): void {
  try {
    for (const [name, value] of Object.entries(outputs)) {
      core.setOutput(name, redactor.redact(value));
    }
  } catch (error) {
    log.warning(`could not set the outputs of this step: ${describeError(error)}`);
  }
}

function emptyResult({ startedAt }: Parts): RunResult {
  return {
    kind: 'teardown',
    gateVersion: GATE_VERSION,
    finishedAt: new Date(systemClock.now()).toISOString(),
    elapsedMs: systemClock.now() - startedAt,
    timeoutMs: 0,
    cluster: { server: '', version: 'unknown', uid: undefined },
    outcome: 'cancelled',
    verdict: 'fail',
    namespaces: [],
  };
}

function createPublisher(inputs: Inputs | undefined, parts: Parts): Publisher {
  const { given, log, redactor, run, signal } = parts;
  return new Publisher({
    log,
    redactor,
    summaryFile: process.env['GITHUB_STEP_SUMMARY'],
    reportDir: inputs === undefined ? '' : reportDir(inputs.reportDir),
    run,
    comment: commentInputs(given, inputs),
    cancelled: signal,
  });
}

/**
 * Returns the folder for reports. Each gate of a job gets its own, so that none overwrites the report of
 * another.
 */
function reportDir(given: string): string {
  if (given !== '') return given;
  for (const parent of [process.env['RUNNER_TEMP'] || tmpdir(), tmpdir()]) {
    try {
      return mkdtempSync(join(parent, 'namespace-teardown-gate-'));
    } catch {
      // The folder is missing, not writable or full; the next one may work.
    }
  }
  // Writing there will fail as well, with a warning that names the reason.
  return join(tmpdir(), 'namespace-teardown-gate');
}
