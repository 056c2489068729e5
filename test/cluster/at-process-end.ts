/**
 * Ctrl-C, an uncaught error, process.exit(): runs `work`, at once and without waiting, so that no process
 * and no data of ours stays behind.
 */
export function atProcessEnd(work: () => void): void {
  process.once('exit', work);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      work();
      process.kill(process.pid, signal); // our handler is gone: this time it ends the process
    });
  }
}
