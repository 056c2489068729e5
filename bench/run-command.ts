import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { MemorySampler } from './process-memory.ts';
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
}

export interface Started {
  process: ChildProcess;
  ended: Promise<Ended>;
}

/** Runs a command in an empty home folder of its own: no cache of anybody else helps it. */
export async function startCommand(command: Command): Promise<Started> {
  const home = await mkdtemp(join(tmpdir(), 'teardown-gate-bench-home-'));
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
  const sampler = MemorySampler.start(child.pid);
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
  const ended = async (): Promise<Ended> => {
    try {
      const exitCode = await closed;
      return {
        exitCode,
        wallMs: endedAt - startedAt,
        endedAt,
        stdout: Buffer.concat(stdout).toString('utf8'),
        stderr: Buffer.concat(stderr).toString('utf8'),
        memory: sampler?.stop(),
      };
    } finally {
      sampler?.stop();
      await rm(home, { recursive: true, force: true });
    }
  };
  return { process: child, ended: ended() };
}

export async function runCommand(command: Command): Promise<Ended> {
  return (await startCommand(command)).ended;
}
