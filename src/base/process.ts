import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { ActionError, describeError, errorCode } from './errors.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** A reader that stops reading (`| head`, `| grep -q`) is not a failure. */
export function writeOutput(text: string): Promise<void> {
  const { stdout } = process;
  // The stream emits the error a second time. Without a listener that would end the process with exit code 1.
  if (stdout.listenerCount('error') === 0) stdout.on('error', () => {});
  return new Promise((resolve, reject) => {
    stdout.write(text, (error) => {
      if (error == null || errorCode(error) === 'EPIPE') return resolve();
      const message = `cannot write to standard output: ${describeError(error)}`;
      reject(new ActionError(message));
    });
  });
}

export const NO_SUCH_FILE = 'no such file';

/** A device, a pipe or a very large file that somebody named could block the process for ever. */
export function readRegularFile(path: string, maxMb = 10): { bytes: Buffer } | { problem: string } {
  let descriptor: number | undefined;
  try {
    // Without O_NONBLOCK, opening a pipe waits for its writer. Windows has no such flag.
    descriptor = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    const stats = fstatSync(descriptor);
    if (stats.isDirectory()) return { problem: 'it is a folder' };
    if (!stats.isFile()) return { problem: 'it is a device or a pipe and not a file' };
    if (stats.size > maxMb * 1024 * 1024) return { problem: `it is larger than ${maxMb} MB` };
    return { bytes: readFileSync(descriptor) };
  } catch (error) {
    const code = errorCode(error) || 'unknown';
    if (code === 'ENOENT' || code === 'ENOTDIR') return { problem: NO_SUCH_FILE };
    return { problem: code === 'EACCES' ? 'permission denied' : `the system says ${code}` };
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/**
 * The runner sends SIGINT, waits 7.5 s, sends SIGTERM, waits 2.5 s and kills the process tree (actions/runner,
 * ProcessInvoker). The first signal makes the gate report what it knows; the second one ends the process.
 */
export function onCancel(): { signal: AbortSignal; dispose: () => void } {
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
