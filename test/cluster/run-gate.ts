import { existsSync } from 'node:fs';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type StepRun, startStep } from '../stub/runner.ts';
import type { RunningGate } from './scenario.ts';

/** `CLUSTER_BUNDLE`: another build than the shipped one, while somebody works on that. */
const DIST = process.env['CLUSTER_BUNDLE'] ?? join(import.meta.dirname, '..', '..', 'dist');

/** The bundle as it was at the first run of this process: a build meanwhile must not change tests. */
let bundle: Promise<string> | undefined;

export function theBundle(): Promise<string> {
  bundle ??= copyBundle();
  return bundle;
}

/** Workers of a test runner are ended by a signal: no exit handler would clean up after them. */
export async function dropBundle(): Promise<void> {
  const copy = await bundle?.catch(() => undefined);
  bundle = undefined;
  if (copy !== undefined) await rm(dirname(copy), { recursive: true, force: true });
}

async function copyBundle(): Promise<string> {
  if (!existsSync(join(DIST, 'index.js'))) {
    throw new Error(`${DIST}/index.js is not there; npm run build makes it`);
  }
  const copy = await mkdtemp(join(tmpdir(), 'teardown-gate-dist-'));
  await cp(DIST, copy, { recursive: true });
  return join(copy, 'index.js');
}

export type GateRun = StepRun;

/** The shipped bundle as the runner starts it: a process of its own that sees only these variables. */
export async function runGate(
  inputs: Record<string, string>,
  { meanwhile, limitMs }: { meanwhile?: (gate: RunningGate) => Promise<unknown>; limitMs: number },
): Promise<GateRun> {
  const main = await theBundle();
  const env = { NODE_COMPILE_CACHE: join(dirname(main), 'compiled') };
  const step = await startStep({ inputs, main, env, limitMs });
  const [run] = await Promise.all([step.ended, meanwhile?.(step)]);
  return run;
}
