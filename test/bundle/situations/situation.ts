import type { FindingCode } from '../../../src/model/finding.ts';
import type { Outcome } from '../../../src/model/outcome.ts';
import type { Cluster } from '../../stub/api/cluster.ts';
import { type ApiServer, type ScriptStep, startApiServer } from '../../stub/api-server.ts';
import { type FaultRule, startFaultProxy } from '../../stub/fault-proxy.ts';
import type { Recording } from '../../stub/recording.ts';
import { readRecording } from '../../stub/recordings.ts';
import { type RunningStep, type StepRun, startStep } from '../../stub/runner.ts';
import type { Bench } from '../bench.ts';

/** A cluster that was recorded, brought to what a real control plane does not show. */
export interface Situation {
  /** A name that stays: `-t S12` runs it. */
  id: string;
  /** A clause, for people. */
  what: string;
  recording: string;
  /** Where the served cluster differs from the recorded one. */
  change?: (cluster: Cluster) => void;
  /** What somebody else did to it over HTTP, before the gate came. */
  before?: (server: ApiServer, token: string) => Promise<void>;
  version?: Recording['version'];
  plainDiscovery?: boolean;
  rules?: readonly FaultRule[];
  script?: readonly ScriptStep[];
  /** `namespace` is the one that was recorded, `timeout` 2 s unless given. */
  inputs?: Readonly<Record<string, string>>;
  /** What happens while the gate runs. */
  during?: (running: Running) => Promise<void>;
  outcome: Outcome | 'error';
  /** Codes from what the namespace waits for to the root cause, one list per chain. */
  chains: readonly (readonly FindingCode[])[];
  /** Each is part of a line of the log. */
  says: readonly string[];
  /** None of these is said anywhere, besides that it was deleted or empty. */
  saysNot?: readonly string[];
  /** What the gate may change; nothing unless given. */
  mutations?: readonly string[];
  /** More that has to be true, as a list of what is wrong. */
  check?: (run: StepRun) => string[];
}

export interface Running {
  server: ApiServer;
  step: RunningStep;
}

export interface Seen {
  run: StepRun;
  server: ApiServer;
}

const TOKEN = 'token-of-the-gate';

/** The shipped bundle against that cluster. */
export async function runSituation(situation: Situation, bench: Bench): Promise<Seen> {
  const recorded = readRecording(situation.recording);
  const server = await startApiServer({
    recording: { ...recorded, version: situation.version ?? recorded.version },
    script: situation.script ?? [],
    plainDiscovery: situation.plainDiscovery ?? false,
    tokens: { [TOKEN]: { username: 'admin', groups: ['system:masters'] } },
  });
  const proxy = await startFaultProxy({ target: server.url, rules: situation.rules ?? [] });
  try {
    server.mutate((cluster) => situation.change?.(cluster));
    await situation.before?.(server, TOKEN);
    server.requests.length = 0;
    const step = await startStep({
      inputs: {
        namespace: recorded.namespace,
        timeout: '2s',
        kubeconfig: bench.kubeconfig({ server: proxy.url, user: { token: TOKEN } }),
        ...situation.inputs,
      },
    });
    await Promise.all([step.ended, situation.during?.({ server, step })]);
    return { run: await step.ended, server };
  } finally {
    await proxy.close();
    await server.close();
  }
}
