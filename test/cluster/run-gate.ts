import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Report } from '../../src/report/report-json.ts';
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

export interface GateRun {
  exitCode: number | null;
  stdout: string;
  stderr: string;
  /** Absent when the gate could not work. */
  report: Report | undefined;
  reportMarkdown: string;
  outputs: Record<string, string>;
  summary: string;
  elapsedMs: number;
}

/** The shipped bundle as the runner starts it: a process of its own that sees only these variables. */
export async function runGate(
  inputs: Record<string, string>,
  { meanwhile, limitMs }: { meanwhile?: (gate: RunningGate) => Promise<unknown>; limitMs: number },
): Promise<GateRun> {
  const script = await theBundle();
  const home = await mkdtemp(join(tmpdir(), 'teardown-gate-run-'));
  const outputFile = join(home, 'outputs');
  const summaryFile = join(home, 'summary.md');
  await Promise.all([writeFile(outputFile, ''), writeFile(summaryFile, '')]);
  const started = Date.now();
  const child = spawn(process.execPath, [script], {
    cwd: home,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: home,
      GITHUB_ACTIONS: 'true',
      GITHUB_OUTPUT: outputFile,
      GITHUB_STEP_SUMMARY: summaryFile,
      RUNNER_TEMP: home,
      // Hundreds of runs compile it once: half of a second of CPU for each.
      NODE_COMPILE_CACHE: join(dirname(script), 'compiled'),
      ...Object.fromEntries(
        // The runner keeps the hyphens of input names.
        Object.entries(inputs).map(([name, value]) => [`INPUT_${name.toUpperCase()}`, value]),
      ),
    },
  });
  const log = new Log();
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => log.add(text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const limit = setTimeout(() => child.kill('SIGKILL'), limitMs);
  const ended = new Promise<number | null>((resolve) => {
    child.once('close', (code) => resolve(code));
  });
  const [exitCode] = await Promise.all([
    ended.finally(() => log.close()),
    meanwhile?.(log) ?? Promise.resolve(),
  ]);
  clearTimeout(limit);
  const elapsedMs = Date.now() - started;
  const outputs = parseOutputs(await readFile(outputFile, 'utf8'));
  const text = await readFile(outputs['report-json'] ?? join(home, 'none'), 'utf8').catch(() => '');
  const run: GateRun = {
    exitCode,
    stdout: log.text,
    stderr,
    report: text === '' ? undefined : (JSON.parse(text) as Report),
    reportMarkdown: await readFile(outputs['report-markdown'] ?? join(home, 'none'), 'utf8').catch(
      () => '',
    ),
    outputs,
    summary: await readFile(summaryFile, 'utf8'),
    elapsedMs,
  };
  await rm(home, { recursive: true, force: true });
  return run;
}

/** The step log as it grows. */
class Log implements RunningGate {
  text = '';
  #closed = false;
  #waiting: (() => void)[] = [];

  add(text: string): void {
    this.text += text;
    this.#wake();
  }

  close(): void {
    this.#closed = true;
    this.#wake();
  }

  async says(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.text)) {
      if (this.#closed) throw new Error(`the gate ended without saying ${pattern}:\n${this.text}`);
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}

/** `name=value` lines and `name<<delimiter` blocks of a GITHUB_OUTPUT file. */
function parseOutputs(text: string): Record<string, string> {
  const outputs: Record<string, string> = {};
  const lines = text.split('\n');
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index] ?? '';
    const block = /^([^=<]+)<<(.+)$/.exec(line);
    if (block) {
      const end = lines.indexOf(block[2] ?? '', index + 1);
      outputs[block[1] ?? ''] = lines.slice(index + 1, end).join('\n');
      index = end;
    } else if (line.includes('=')) {
      outputs[line.slice(0, line.indexOf('='))] = line.slice(line.indexOf('=') + 1);
    }
  }
  return outputs;
}
