import { existsSync, readFileSync } from 'node:fs';
import type { PeakMemory } from './results.ts';

const EVERY_MS = 10;
const KIB_PER_MIB = 1_024;

/** Watches a process and its descendants; the kernel's own peak of each process is what counts. */
export class MemorySampler {
  readonly #root: number;
  readonly #timer: NodeJS.Timeout;
  #largestKib = 0;
  #sumKib = 0;

  static start(pid: number | undefined): MemorySampler | undefined {
    if (pid === undefined || !existsSync('/proc/self/status')) return undefined;
    return new MemorySampler(pid);
  }

  private constructor(pid: number) {
    this.#root = pid;
    this.#timer = setInterval(() => this.#sample(), EVERY_MS);
    this.#sample();
  }

  stop(): PeakMemory {
    clearInterval(this.#timer);
    return {
      largestMiB: Math.round((this.#largestKib / KIB_PER_MIB) * 10) / 10,
      sumMiB: Math.round((this.#sumKib / KIB_PER_MIB) * 10) / 10,
    };
  }

  #sample(): void {
    const peaks = treeOf(this.#root).map(peakKib);
    this.#largestKib = Math.max(this.#largestKib, ...peaks);
    this.#sumKib = Math.max(
      this.#sumKib,
      peaks.reduce((sum, kib) => sum + kib, 0),
    );
  }
}

function treeOf(pid: number): number[] {
  const children = readProc(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean);
  return [pid, ...children.flatMap((child) => treeOf(Number(child)))];
}

function peakKib(pid: number): number {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readProc(`/proc/${pid}/status`))?.[1] ?? 0);
}

/** Empty when the process has ended meanwhile. */
function readProc(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
