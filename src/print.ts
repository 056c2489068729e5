import { ActionError, describeError } from './errors.ts';

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
