import { type Environment, homeDirectory } from './base/process.ts';
import type { Redactor } from './base/redact.ts';
import { systemClock } from './base/time.ts';
import { runGate } from './gate/gate.ts';
import type { GateDeps } from './gate/run.ts';
import type { Inputs } from './inputs.ts';
import { connect } from './kubernetes/connect.ts';
import { type View, viewOf } from './report/view.ts';
import { GATE_VERSION } from './version.ts';

/** What either face of the program gives to a run. */
interface Face extends Pick<GateDeps, 'log' | 'signal'> {
  env: Environment;
  redactor: Redactor;
  /** Hears what is known before the first forced write. */
  announce?: (planned: View) => Promise<void>;
}

/** Connects, runs the gate, and hands over what there is to tell about it, without secrets. */
export async function runInCluster<T>(
  inputs: Inputs,
  { env, redactor, log, signal, announce }: Face,
  tell: (view: View) => Promise<T>,
): Promise<T> {
  const { kubeconfig, context } = inputs;
  const api = await connect({
    ...{ kubeconfig, context, env, redactor, signal },
    debug: log.debug,
    homeDir: homeDirectory(),
    userAgent: `namespace-teardown-gate/${GATE_VERSION}`,
  });
  try {
    const result = await runGate(inputs, {
      ...{ api, clock: systemClock, log, signal, gateVersion: GATE_VERSION },
      announce: async (planned) => announce?.(viewOf(planned, redactor.redact)),
    });
    return await tell(viewOf(result, redactor.redact));
  } finally {
    await api.close();
  }
}
