import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as core from '@actions/core';
import { describeError, describeFailure } from './base/errors.ts';
import { onCancel } from './base/process.ts';
import { createRedactor, redactDeep } from './base/redact.ts';
import { systemClock } from './base/time.ts';
import { runInCluster } from './in-cluster.ts';
import { commentInputs, INPUT_ROWS, type InputName, type Inputs, readInputs } from './inputs.ts';
import type { RunResult } from './model/result.ts';
import { outputsOf } from './outputs.ts';
import { createActionLog, Publisher } from './publish/publish.ts';
import { lackOfSecrets, readWorkflowRun } from './publish/workflow-run.ts';
import { logReport } from './report/plain-text.ts';
import { type Ending, type View, viewOf } from './report/view.ts';
import { GATE_VERSION } from './version.ts';

export async function runAction(): Promise<number> {
  const redactor = createRedactor(core.setSecret);
  const given = Object.fromEntries(
    INPUT_ROWS.map(([name]) => [name, core.getInput(name)]),
  ) as Record<InputName, string>;
  redactor.add(given['github-token']);
  const { signal, dispose } = onCancel();
  const log = createActionLog(redactor);
  const run = readWorkflowRun(process.env, given.matrix);
  const startedAt = systemClock.now();
  const elapsedMs = (): number => systemClock.now() - startedAt;

  const createPublisher = (inputs?: Inputs): Publisher =>
    new Publisher({
      ...{ log, redactor, run, cancelled: signal },
      summaryFile: process.env['GITHUB_STEP_SUMMARY'],
      reportDir: inputs ? reportDir(inputs.reportDir) : '',
      comment: commentInputs(given, inputs),
    });
  /** Their texts are redacted already: the JSON of `reset-password` looks like a password. */
  const setOutputs = (outputs: Record<string, string>): void => {
    try {
      for (const [name, value] of Object.entries(outputs)) core.setOutput(name, value);
    } catch (error) {
      log.warning(`could not set the outputs of this step: ${describeError(error)}`);
    }
  };
  /** The outputs come first: requests to the host may take long. */
  const publish = async (ending: Ending): Promise<void> => {
    const view = 'run' in ending ? ending : undefined;
    setOutputs(outputsOf(view, await publisher.files(ending), elapsedMs()));
    const commentUrl = await publisher.comment(ending);
    if (commentUrl !== '') setOutputs({ 'comment-url': redactor.redact(commentUrl) });
  };
  const finish = async (view: View): Promise<number> => {
    logReport(view, log);
    await publish(view);
    return view.run.verdict === 'fail' ? 1 : 0;
  };
  const fail = async (error: unknown): Promise<number> => {
    const { message, hint, frames } = describeFailure(error);
    const hints = [hint, run && lackOfSecrets(run)].filter((text) => text !== undefined);
    log.error(message, 'Namespace Teardown Gate could not work');
    for (const text of hints) log.line(text);
    for (const frame of frames) log.debug(frame);
    const at = new Date(systemClock.now()).toISOString();
    await publish(redactDeep({ message, hints, at }, redactor.redact));
    return 1;
  };

  let publisher = createPublisher();
  try {
    const inputs = readInputs(given);
    publisher = createPublisher(inputs);
    const face = {
      ...{ redactor, log, signal },
      announce: async (planned: View): Promise<void> => void (await publisher.files(planned)),
      concluded: (view: View): void => setOutputs(outputsOf(view, {}, elapsedMs())),
    };
    return await runInCluster(inputs, face, finish);
  } catch (error) {
    // The run was cancelled during the login: there is no cluster to report about, but there is a run.
    return signal.aborted ? await finish(viewOf(cancelledRun(elapsedMs()))) : await fail(error);
  } finally {
    dispose();
  }
}

function cancelledRun(elapsedMs: number): RunResult {
  return {
    ...{ kind: 'teardown', gateVersion: GATE_VERSION, elapsedMs, timeoutMs: 0, namespaces: [] },
    finishedAt: new Date(systemClock.now()).toISOString(),
    cluster: { server: '', version: 'unknown' },
    ...{ outcome: 'cancelled', verdict: 'fail' },
  };
}

/** Each gate of a job gets its own folder, so that none overwrites the report of another. */
function reportDir(given: string): string {
  if (given !== '') return given;
  try {
    return mkdtempSync(join(process.env['RUNNER_TEMP'] || tmpdir(), 'namespace-teardown-gate-'));
  } catch {
    // The folder is missing, not writable or full. Should the next one fail too, a warning names the reason.
    return join(tmpdir(), 'namespace-teardown-gate');
  }
}
