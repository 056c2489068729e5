import { spawn } from 'node:child_process';

export interface Ended {
  /** Null: it had to be ended. */
  exitCode: number | null;
  stdout: string;
  /** Both streams, as a terminal shows them. */
  output: string;
}

/** Runs a program that sees only these variables, and ends it with all that it has started after so long. */
export function runProgram(
  program: string,
  args: readonly string[],
  { env, cwd, limitMs }: { env: Record<string, string>; cwd: string; limitMs: number },
): Promise<Ended> {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      ...{ cwd, env },
      detached: true, // a group of its own
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let stdout = '';
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
      output += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    const limit = setTimeout(() => {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    }, limitMs);
    child.once('close', (exitCode) => {
      clearTimeout(limit);
      resolve({ exitCode, stdout, output });
    });
  });
}
