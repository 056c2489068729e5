import type { FindingCode } from '../../../src/model/finding.ts';
import type { Outcome } from '../../../src/model/outcome.ts';
import { type ApiServer, startApiServer } from '../../stub/api-server.ts';
import { type FaultProxy, type FaultRule, startFaultProxy } from '../../stub/fault-proxy.ts';
import type { Github } from '../../stub/github.ts';
import { plantedSecret } from '../../stub/planted.ts';
import { readRecording } from '../../stub/recordings.ts';
import { type RunningStep, type StepRun, startStep } from '../../stub/runner.ts';
import { type Bench, NAME } from '../bench.ts';

/** One fault, and what the gate makes of it. */
export interface FaultRow {
  /** A clause: "the API server answers 429 without Retry-After". */
  fault: string;
  phase: 'reading' | 'waiting' | 'diagnosing';
  rules?: readonly FaultRule[];
  inputs?: Readonly<Record<string, string>>;
  /** What happens in the cluster while the gate runs. */
  during?: (running: Running) => Promise<void>;
  outcome: Outcome | 'error';
  /** The sentence: in an annotation when the gate could not work, else anywhere in the log. */
  says: RegExp;
  /** Among what the report lists as not inspected. */
  notInspected?: RegExp;
  /** The codes of the root causes. */
  rootCauses?: FindingCode[];
  /** What the gate may change; nothing unless given. */
  mutations?: readonly string[];
  /** More that has to be true, as a list of what is wrong. */
  check?: (done: Done) => string[];
}

export interface Running {
  server: ApiServer;
  proxy: FaultProxy;
  step: RunningStep;
}

export interface Done {
  run: StepRun;
  server: ApiServer;
  proxy: FaultProxy;
  pull: number;
}

/** Where the comment of the next run goes. */
let pulls = 100;

/**
 * The shipped bundle behind a proxy that does what the row says, with debug logging and a comment, so
 * that everything that it can say is said.
 */
export async function runRow(row: FaultRow, bench: Bench, github: Github): Promise<Done> {
  const token = plantedSecret();
  const server = await startApiServer({
    recording: readRecording('S4'),
    token,
  });
  const { url: target } = server;
  const rules = row.rules ?? [];
  const pull = ++pulls;
  let proxy: FaultProxy | undefined;
  try {
    proxy = await startFaultProxy({ target, rules });
    const step = await startStep({
      inputs: {
        namespace: NAME,
        timeout: '2s',
        comment: 'always',
        kubeconfig: bench.kubeconfig({ server: proxy.url, user: { token } }),
        ...row.inputs,
      },
      event: { name: 'pull_request', payload: { pull_request: { number: pull } } },
      githubApiUrl: github.url,
      token: github.token,
      env: { RUNNER_DEBUG: '1' },
      limitMs: 150_000,
    });
    await Promise.all([step.ended, row.during?.({ server, proxy, step })]);
    return { run: await step.ended, server, proxy, pull };
  } finally {
    await proxy?.close();
    await server.close();
  }
}
