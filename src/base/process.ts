import { mkdir, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname } from 'node:path';
import { ActionError, describeError } from './errors.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Writes to standard output. A reader that has read enough (`| head`, `| grep -q`) is no failure of ours
 * and must not look like a verdict. Throws an `ActionError` when it cannot be written for another reason.
 */
export function print(text: string): Promise<void> {
  const { stdout } = process;
  // The stream says it twice; without a listener the second time ends the process with exit code 1.
  if (stdout.listenerCount('error') === 0) stdout.on('error', () => {});
  return new Promise((resolve, reject) => {
    stdout.write(text, (error) => {
      if (error == null || isClosed(error)) return resolve();
      reject(
        new ActionError('internal', `cannot write to standard output: ${describeError(error)}`, {
          cause: error,
        }),
      );
    });
  });
}

function isClosed(error: Error): boolean {
  return 'code' in error && error.code === 'EPIPE';
}

/** Containers may run as a user that has neither HOME nor an entry in /etc/passwd. */
export function homeDirectory(): string {
  try {
    return homedir() || '/';
  } catch {
    return '/';
  }
}

/**
 * Makes a folder and those above it. Node's own `recursive` tries for ever where a file system refuses
 * every new folder with ENOENT, as /proc does.
 */
export async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path);
  } catch (error) {
    if (await isFolder(path)) return;
    const parent = dirname(path);
    const isParentMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    if (!isParentMissing || parent === path) throw error;
    await makeFolder(parent);
    await mkdir(path);
  }
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}

/**
 * The runner sends SIGINT, waits 7.5 s, sends SIGTERM, waits 2.5 s and kills the process tree
 * (actions/runner, ProcessInvoker). The first signal asks the gate to write down what it knows; a
 * second one has the default effect and ends the process at once. `dispose` stops listening, so that nothing of ours
 * keeps or surprises the process.
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
