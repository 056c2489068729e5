import { describeError } from './base/errors.ts';
import { homeDirectory, readRegularFile } from './base/process.ts';
import type { Redactor } from './base/redact.ts';
import { systemClock } from './base/time.ts';
import { hindsightOf } from './forecast/hindsight.ts';
import { runGate } from './gate/gate.ts';
import type { GateDeps } from './gate/run.ts';
import type { Inputs } from './inputs.ts';
import { connect } from './kubernetes/connect.ts';
import type { RunResult } from './model/result.ts';
import { type Report, reportFrom } from './report/report-json.ts';
import { type View, viewOf } from './report/view.ts';
import { GATE_VERSION } from './version.ts';

/** The parts of a run that differ between the action and the terminal. */
interface Face extends Pick<GateDeps, 'log' | 'signal'> {
  redactor: Redactor;
  /** Receives what is known before the first forced write. */
  announce?: (planned: View) => Promise<void>;
  /** Receives the outcomes before what stayed behind is read. */
  concluded?: (view: View) => void;
}

/** Connects, runs the gate, and passes its report, without secrets, to `handle`. */
export async function runInCluster<T>(
  inputs: Inputs,
  { redactor, log, signal, announce, concluded }: Face,
  handle: (view: View) => Promise<T>,
): Promise<T> {
  const { kubeconfig, context } = inputs;
  const api = await connect({
    ...{ kubeconfig, context, env: process.env, redactor, signal },
    debug: log.debug,
    homeDir: homeDirectory(),
    userAgent: `namespace-teardown-gate/${GATE_VERSION}`,
  });
  try {
    const result = await runGate(inputs, {
      ...{ api, clock: systemClock, log, signal, gateVersion: GATE_VERSION },
      announce: async (planned) => announce?.(viewOf(planned, redactor.redact)),
      concluded: (result) => concluded?.(viewOf(result, redactor.redact)),
    });
    const compared = withHindsight(result, inputs.forecastReport, log);
    return await handle(viewOf(compared, redactor.redact));
  } finally {
    await api.close();
  }
}

const MAX_REPORT_MB = 100;

/** Reads a report.json. Throws an error if it cannot be read, or is none. */
export function readReportFile(path: string): Report {
  const read = readRegularFile(path, MAX_REPORT_MB);
  if ('problem' in read) throw new Error(read.problem);
  return reportFrom(read.bytes.toString('utf8'));
}

/** Compares the result with an earlier forecast. A report that cannot be used is only a warning. */
export function withHindsight(result: RunResult, path: string, log: GateDeps['log']): RunResult {
  if (path === '' || result.kind === 'forecast') return result;
  try {
    const report = readReportFile(path);
    const earlier = new Map(report.namespaces.map((one) => [one.name, one]));
    const namespaces = result.namespaces.map((namespace) => {
      const forecast = earlier.get(namespace.name);
      if (forecast === undefined) return namespace;
      const hindsight = hindsightOf(namespace, { ...forecast, at: report.generatedAt });
      if (hindsight === undefined) return namespace;
      const { verdict, outcome, because } = hindsight;
      const event = `forecast of ${hindsight.at} (${outcome}): ${verdict}, because ${because}`;
      log.line(`${namespace.name}: ${event}`);
      const timeline = [...namespace.timeline, { at: result.finishedAt, event }];
      return { ...namespace, hindsight, timeline };
    });
    return { ...result, namespaces };
  } catch (error) {
    log.warning(`the forecast report "${path}" cannot be used: ${describeError(error)}`);
    return result;
  }
}
