import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { REPOSITORY, readActionYml } from './action-yml.ts';
import { COMPILED, GATE_NODE } from './runner.ts';

export interface TerminalRun {
  /** `null` when a signal ended it. */
  exitCode: number | null;
  stdout: string;
  stderr: string;
}

/** Starts the bundle as in a terminal, with none of this process's environment variables. */
export function runTerminal(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>> = {},
): Promise<TerminalRun> {
  const child = spawn(GATE_NODE, [join(REPOSITORY, readActionYml().runs.main), ...args], {
    cwd: tmpdir(),
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: '/usr/local/bin:/usr/bin:/bin',
      HOME: '/nonexistent',
      NODE_COMPILE_CACHE: COMPILED,
      ...env,
    },
  });
  const limit = setTimeout(() => child.kill('SIGKILL'), 200_000);
  const text = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (chunk: string) => {
      text[stream] += chunk;
    });
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (exitCode) => {
      clearTimeout(limit);
      resolve({ exitCode, ...text });
    });
  });
}
