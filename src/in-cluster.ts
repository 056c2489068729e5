import type { Redactor } from './base/redact.ts';
import { systemClock } from './base/time.ts';
import { runGate } from './gate/gate.ts';
import type { GateDeps } from './gate/run.ts';
import type { Inputs } from './inputs.ts';
import { connect } from './kubernetes/connect.ts';
import { type View, viewOf } from './report/view.ts';
import { GATE_VERSION } from './version.ts';

/** The parts of a run that differ between the action and the terminal. */
interface Face extends Pick<GateDeps, 'log' | 'signal'> {
  redactor: Redactor;
  announce?: (planned: View) => Promise<void>;
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
    // Containers may run as a user without HOME and without an entry in /etc/passwd.
    homeDir: process.env['HOME'] || process.env['USERPROFILE'] || '/',
    userAgent: `namespace-teardown-gate/${GATE_VERSION}`,
  });
  try {
    const result = await runGate(inputs, {
      ...{ api, clock: systemClock, log, signal, gateVersion: GATE_VERSION },
      announce: async (planned) => announce?.(viewOf(planned, redactor.redact)),
      concluded: (result) => concluded?.(viewOf(result, redactor.redact)),
    });
    return await handle(viewOf(result, redactor.redact));
  } finally {
    await api.close();
  }
}
