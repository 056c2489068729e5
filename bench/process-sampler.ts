import { existsSync, readFileSync } from 'node:fs';
import type { PeakMemory } from './results.ts';

const EVERY_MS = 10;
const KIB_PER_MIB = 1_024;
/** Of /proc/PID/stat: USER_HZ is 100 everywhere (man 5 proc). */
const MS_PER_TICK = 10;

interface Sampled {
  memory: PeakMemory;
  /** In the program and in the kernel; what is used after the last sample is missing. */
  cpuMs: number;
}

/** Watches a process and its descendants; the kernel's own peak and clock of each process are what counts. */
export class ProcessSampler {
  readonly #root: number;
  readonly #timer: NodeJS.Timeout;
  #largestKib = 0;
  #sumKib = 0;
  #ticks = 0;

  static start(pid: number | undefined): ProcessSampler | undefined {
    if (pid === undefined || !existsSync('/proc/self/status')) return undefined;
    return new ProcessSampler(pid);
  }

  private constructor(pid: number) {
    this.#root = pid;
    this.#timer = setInterval(() => this.#sample(), EVERY_MS);
    this.#sample();
  }

  stop(): Sampled {
    clearInterval(this.#timer);
    return {
      memory: {
        largestMiB: Math.round((this.#largestKib / KIB_PER_MIB) * 10) / 10,
        sumMiB: Math.round((this.#sumKib / KIB_PER_MIB) * 10) / 10,
      },
      cpuMs: this.#ticks * MS_PER_TICK,
    };
  }

  #sample(): void {
    const tree = treeOf(this.#root);
    const peaks = tree.map(peakKib);
    this.#largestKib = Math.max(this.#largestKib, ...peaks);
    this.#sumKib = Math.max(this.#sumKib, sum(peaks));
    this.#ticks = Math.max(this.#ticks, sum(tree.map(ticksOf)));
  }
}

function treeOf(pid: number): number[] {
  const children = readProc(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean);
  return [pid, ...children.flatMap((child) => treeOf(Number(child)))];
}

function peakKib(pid: number): number {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readProc(`/proc/${pid}/status`))?.[1] ?? 0);
}

/** `utime`, `stime`, and `cutime` and `cstime` of the children that have ended, which follow 11 fields after the name. */
function ticksOf(pid: number): number {
  const fields = readProc(`/proc/${pid}/stat`).split(') ').at(-1)?.split(' ') ?? [];
  return sum(fields.slice(11, 15).map(Number));
}

function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0);
}

/** Empty when the process has ended meanwhile. */
function readProc(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
