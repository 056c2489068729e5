import { readdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { withFolder } from '../leftovers.ts';
import type { Startup } from '../results.ts';
import { runCommand } from '../run-command.ts';
import { median } from '../statistics.ts';

const RUNS = 20;

/** `--help` against a Node program that does nothing, in turns. */
export function measureStartup(bundle: string): Promise<Startup> {
  return withFolder(async (folder) => {
    const empty = join(folder, 'empty.js');
    await writeFile(empty, '');
    const emptyMs: number[] = [];
    const helpMs: number[] = [];
    for (let run = 0; run < RUNS; run++) {
      emptyMs.push(await timeOf([empty]));
      helpMs.push(await timeOf([bundle, '--help']));
    }
    return {
      runs: RUNS,
      emptyMs: rounded(median(emptyMs)),
      helpMs: rounded(median(helpMs)),
      bundleBytes: await codeBytes(dirname(bundle)),
    };
  });
}

async function timeOf(args: string[]): Promise<number> {
  const ended = await runCommand({ file: process.execPath, args });
  if (ended.exitCode !== 0) throw new Error(`${args.join(' ')} failed: ${ended.stderr}`);
  return ended.wallMs;
}

async function codeBytes(folder: string): Promise<number> {
  const names = (await readdir(folder, { recursive: true })).filter((name) =>
    /\.[cm]?js$/.test(name),
  );
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(folder, name))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}

function rounded(ms: number): number {
  return Math.round(ms * 10) / 10;
}
