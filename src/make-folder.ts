import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

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
