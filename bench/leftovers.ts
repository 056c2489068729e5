import type { ChildProcess } from 'node:child_process';
import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { atProcessEnd } from '../test/cluster/at-process-end.ts';

/** Processes and folders of this run: none stays behind, also not after Ctrl-C. */
const children = new Set<ChildProcess>();
const folders = new Set<string>();
let endsWithProcess = false;

export function endChild(child: ChildProcess): void {
  endWithProcess();
  children.add(child);
  child.once('exit', () => children.delete(child));
}

export async function withFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  endWithProcess();
  const folder = await mkdtemp(join(tmpdir(), 'teardown-gate-bench-'));
  folders.add(folder);
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
    folders.delete(folder);
  }
}

function endWithProcess(): void {
  if (endsWithProcess) return;
  endsWithProcess = true;
  atProcessEnd(() => {
    for (const child of children) child.kill('SIGKILL');
    for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
    folders.clear();
  });
}
