/** How a run ends early. */
export interface Cancellation {
  signal: AbortSignal;
  /** Stops listening, so that nothing of ours keeps or surprises the process. */
  dispose(): void;
}

/**
 * The runner sends SIGINT, waits 7.5 s, sends SIGTERM, waits 2.5 s and kills the process tree
 * (actions/runner, ProcessInvoker). The first signal asks the gate to write down what it knows; a
 * second one has the default effect and ends the process at once.
 */
export function onCancel(): Cancellation {
  const controller = new AbortController();
  const dispose = (): void => {
    process.off('SIGINT', cancel);
    process.off('SIGTERM', cancel);
  };
  const cancel = (): void => {
    dispose();
    controller.abort();
  };
  process.on('SIGINT', cancel);
  process.on('SIGTERM', cancel);
  return { signal: controller.signal, dispose };
}
