import { type ChildProcess, spawn } from 'node:child_process';

/** A credential is a few kilobytes; more is a plugin gone wild. */
const MAX_OUTPUT_BYTES = 1024 * 1024;
/** Far more than is shown, so that no secret is cut in half where it can be seen. */
const MAX_STDERR_CHARS = 8_000;
/** A helper that the plugin left behind may keep its output open for ever. */
const LEFTOVER_MS = 500;

export interface PluginCall {
  command: string;
  args: readonly string[];
  env: Record<string, string>;
  timeoutMs: number;
  signal: AbortSignal;
}

export type PluginEnd =
  | { ended: 'exited'; code: number | undefined; stdout: string; stderr: string }
  | { ended: 'not-started'; reason: string }
  | { ended: 'timed-out'; stderr: string }
  | { ended: 'stopped' }
  | { ended: 'too-much-output'; stderr: string };

/**
 * Runs a credential plugin without a terminal. A login that waits for a person would hang unseen, so
 * it is killed after a while, with everything that it started.
 */
export function runPlugin(call: PluginCall): Promise<PluginEnd> {
  return new Promise((resolve) => {
    const child = spawn(call.command, call.args, {
      env: call.env,
      stdio: ['ignore', 'pipe', 'pipe'],
      // A process group of its own, so that one kill reaches the whole tree.
      detached: process.platform !== 'win32',
      windowsHide: true,
    });
    const stdout: Buffer[] = [];
    let bytes = 0;
    let stderr = '';
    let leftover: NodeJS.Timeout | undefined;

    const finish = (end: PluginEnd): void => {
      clearTimeout(timer);
      clearTimeout(leftover);
      call.signal.removeEventListener('abort', stop);
      child.stdout.destroy();
      child.stderr.destroy();
      resolve(end);
    };
    const kill = (end: PluginEnd): void => {
      killTree(child);
      finish(end);
    };
    const stop = (): void => kill({ ended: 'stopped' });
    const timer = setTimeout(() => kill({ ended: 'timed-out', stderr }), call.timeoutMs);
    if (call.signal.aborted) stop();
    call.signal.addEventListener('abort', stop, { once: true });

    child.stdout.on('data', (chunk: Buffer) => {
      stdout.push(chunk);
      bytes += chunk.length;
      if (bytes > MAX_OUTPUT_BYTES) kill({ ended: 'too-much-output', stderr });
    });
    child.stderr.on('data', (chunk: Buffer) => {
      stderr = (stderr + chunk.toString('utf8')).slice(-MAX_STDERR_CHARS);
    });
    child.on('error', (error) => {
      const code = 'code' in error ? String(error.code) : error.message;
      finish({ ended: 'not-started', reason: code });
    });
    const exited = (code: number | null): void =>
      finish({
        ended: 'exited',
        code: code ?? undefined,
        stdout: Buffer.concat(stdout).toString('utf8'),
        stderr,
      });
    child.on('close', exited);
    child.on('exit', (code) => {
      leftover = setTimeout(() => exited(code), LEFTOVER_MS);
    });
  });
}

function killTree(child: ChildProcess): void {
  if (child.pid === undefined) return;
  if (process.platform === 'win32') {
    spawn('taskkill', ['/pid', String(child.pid), '/T', '/F'], { stdio: 'ignore' }).on(
      'error',
      () => child.kill(),
    );
    return;
  }
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // It ended by itself in the meantime.
  }
}
