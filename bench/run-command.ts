import { type ChildProcess, spawn } from 'node:child_process';
import { delimiter, dirname } from 'node:path';
import { endChild, withFolder } from './leftovers.ts';
import { ProcessSampler } from './process-sampler.ts';
import type { PeakMemory } from './results.ts';

export interface Command {
  file: string;
  args: string[];
  env?: Record<string, string>;
}

export interface Ended {
  exitCode: number | null;
  wallMs: number;
  /** `performance.now()` at the end of the process. */
  endedAt: number;
  stdout: string;
  stderr: string;
  memory: PeakMemory | undefined;
  cpuMs: number | undefined;
}

export interface Started {
  process: ChildProcess;
  ended: Promise<Ended>;
}

/** In an empty home folder of its own: no cache of anybody else helps it. */
export function startCommand(command: Command): Promise<Started> {
  return new Promise((resolve, reject) => {
    const ended = withFolder((home) => {
      const started = start(command, home);
      resolve({ process: started.process, ended });
      return started.ended;
    });
    // After the start, whoever waits for the end hears of an error.
    ended.catch(reject);
  });
}

function start(command: Command, home: string): Started {
  const startedAt = performance.now();
  const child = spawn(command.file, command.args, {
    cwd: home,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: [dirname(process.execPath), process.env['PATH'] ?? ''].join(delimiter),
      HOME: home,
      ...command.env,
    },
  });
  endChild(child);
  const sampler = ProcessSampler.start(child.pid);
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
  let endedAt = 0;
  child.once('exit', () => {
    endedAt = performance.now();
  });
  const closed = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve(code));
  });
  const ended = closed.then(
    (exitCode): Ended => ({
      exitCode,
      wallMs: endedAt - startedAt,
      endedAt,
      stdout: Buffer.concat(stdout).toString('utf8'),
      stderr: Buffer.concat(stderr).toString('utf8'),
      ...(sampler?.stop() ?? { memory: undefined, cpuMs: undefined }),
    }),
  );
  return { process: child, ended };
}

export async function runCommand(command: Command): Promise<Ended> {
  return (await startCommand(command)).ended;
}
