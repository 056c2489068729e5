import { mkdtempSync, readFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import * as core from '@actions/core';
import { createActionLog } from './action-log.ts';
import { onCancel } from './cancel.ts';
import { systemClock } from './clock.ts';
import { ActionError, describeError } from './errors.ts';
import { type GateDeps, runGate } from './gate.ts';
import { type Inputs, readInputs } from './inputs.ts';
import { connect } from './kubernetes/connect.ts';
import type { Log } from './log.ts';
import { outputsOf } from './outputs.ts';
import { createRedactor, type Redactor } from './redact.ts';
import type { RunResult } from './report/report.ts';
import { GATE_VERSION } from './version.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Reads the inputs, builds the real parts, runs the gate, publishes. Returns the exit code. */
export async function runAction(env: Environment = process.env): Promise<number> {
  const startedAt = systemClock.now();
  const redactor = createRedactor();
  const log = createActionLog(redactor);
  const cancellation = onCancel();
  try {
    const inputs = readInputs((name) => core.getInput(name));
    redactor.add(inputs.githubToken);
    const result = await gate(inputs, env, { redactor, log, signal: cancellation.signal });
    return await report(result, inputs, env, { redactor, log, startedAt });
  } catch (error) {
    return fail(error, { redactor, log, startedAt });
  } finally {
    cancellation.dispose();
  }
}
