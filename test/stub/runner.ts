import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { JsonObject } from '../../src/base/json.ts';
import type { Report } from '../../src/report/report-json.ts';
import { REPOSITORY, readActionYml } from './action-yml.ts';
import { parseFileCommands } from './file-commands.ts';

export interface StepOptions {
  /** `with:` of the step, by the names of action.yml, whose defaults fill the rest. */
  inputs: Readonly<Record<string, string>>;
  /** What triggered the workflow; an event without a payload unless given. */
  event?: { name: string; payload: JsonObject };
  /** Base address of GitHub's API; without it nothing listens, and every call fails at once. */
  githubApiUrl?: string;
  /** `github.token`. */
  token?: string;
  /** `matrix` of the job. */
  matrix?: JsonObject;
  runNumber?: number;
  runAttempt?: number;
  /** More environment variables, which override all others; undefined removes one. */
  env?: Readonly<Record<string, string | undefined>>;
  /** The file to run instead of the one that action.yml names. */
  main?: string;
  /** The Node executable to run instead of the one of the tests. */
  node?: string;
  /** Called with each line of standard output and standard error as it is written. */
  onLine?: (line: string) => void;
  /** The process is killed after this; 200 s unless given. */
  limitMs?: number;
}

/** What a step left behind. */
export interface StepRun {
  /** `null` when a signal ended it. */
  exitCode: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
  outputs: Record<string, string>;
  /** GITHUB_STATE and GITHUB_ENV: nothing should be in them. */
  state: Record<string, string>;
  environment: Record<string, string>;
  summary: string;
  /** Absent when there is none, as after an error. */
  report: Report | undefined;
  reportMarkdown: string | undefined;
  elapsedMs: number;
}

export interface RunningStep {
  /** Resolves when a line of the log matches; rejects when the step ends without one. */
  says(pattern: RegExp): Promise<void>;
  send(signal: NodeJS.Signals): void;
  readonly pid: number | undefined;
  readonly ended: Promise<StepRun>;
}

/** The Node executable that runs the bundle: GATE_NODE, or the one that runs the tests. */
export const GATE_NODE = process.env['GATE_NODE'] ?? process.execPath;

/** Hundreds of runs compile the bundle once. */
export const COMPILED = join(REPOSITORY, 'node_modules', '.cache', 'compiled-bundle');

/** `github.repository` of every run. */
export const REPOSITORY_NAME = 'octo-org/shop';

export async function runStep(options: StepOptions): Promise<StepRun> {
  return (await startStep(options)).ended;
}

/**
 * Starts the action as the runner does: the committed bundle in a process of its own, in an empty
 * folder, with the inputs and the runner's variables and nothing of this process's environment.
 */
export async function startStep(options: StepOptions): Promise<RunningStep> {
  const home = await mkdtemp(join(tmpdir(), 'gate-step-'));
  const files = await prepareFiles(home, options);
  const main = options.main ?? join(REPOSITORY, readActionYml().runs.main);
  const startedAt = Date.now();
  const child = spawn(options.node ?? GATE_NODE, [main], {
    cwd: files.workspace,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: environment(home, files, options),
  });
  const log = new StepLog(child, options.onLine);
  const limit = setTimeout(() => child.kill('SIGKILL'), options.limitMs ?? 200_000);
  const ended = log.ended.then(async ({ exitCode, signal }): Promise<StepRun> => {
    clearTimeout(limit);
    const elapsedMs = Date.now() - startedAt;
    const outputs = parseFileCommands(await readFile(files.outputs, 'utf8'));
    const report = await readIfThere(outputs['report-json']);
    const run: StepRun = {
      exitCode,
      signal,
      stdout: log.stdout,
      stderr: log.stderr,
      outputs,
      state: parseFileCommands(await readFile(files.state, 'utf8')),
      environment: parseFileCommands(await readFile(files.environment, 'utf8')),
      summary: await readFile(files.summary, 'utf8'),
      report: report === undefined ? undefined : (JSON.parse(report) as Report),
      reportMarkdown: await readIfThere(outputs['report-markdown']),
      elapsedMs,
    };
    await rm(home, { recursive: true, force: true });
    return run;
  });
  return {
    says: (pattern) => log.says(pattern),
    send: (name) => child.kill(name),
    pid: child.pid,
    ended,
  };
}

interface StepFiles {
  outputs: string;
  summary: string;
  state: string;
  environment: string;
  event: string;
  temp: string;
  workspace: string;
}

async function prepareFiles(home: string, options: StepOptions): Promise<StepFiles> {
  const files = {
    outputs: join(home, 'set_output'),
    summary: join(home, 'step_summary'),
    state: join(home, 'save_state'),
    environment: join(home, 'set_env'),
    event: join(home, 'event.json'),
    temp: join(home, 'temp'),
    workspace: join(home, 'workspace'),
  };
  await Promise.all([
    mkdir(files.temp),
    mkdir(files.workspace),
    ...[files.outputs, files.summary, files.state, files.environment].map((file) =>
      writeFile(file, ''),
    ),
    writeFile(files.event, JSON.stringify(options.event?.payload ?? {})),
  ]);
  return files;
}

function environment(home: string, files: StepFiles, options: StepOptions): NodeJS.ProcessEnv {
  const token = options.token ?? '';
  return {
    PATH: '/usr/local/bin:/usr/bin:/bin',
    NODE_COMPILE_CACHE: COMPILED,
    HOME: home,
    CI: 'true',
    GITHUB_ACTIONS: 'true',
    GITHUB_API_URL: options.githubApiUrl ?? 'http://127.0.0.1:9',
    GITHUB_GRAPHQL_URL: `${options.githubApiUrl ?? 'http://127.0.0.1:9'}/graphql`,
    GITHUB_SERVER_URL: 'https://github.com',
    GITHUB_REPOSITORY: REPOSITORY_NAME,
    GITHUB_REPOSITORY_OWNER: REPOSITORY_NAME.split('/')[0],
    GITHUB_EVENT_NAME: options.event?.name ?? 'workflow_dispatch',
    GITHUB_EVENT_PATH: files.event,
    GITHUB_SHA: '3b1c9f0d5e7a4c2b8f6d1e0a9c7b5d3f1a2e4c6b',
    GITHUB_REF: 'refs/heads/main',
    GITHUB_WORKFLOW: 'preview',
    GITHUB_JOB: 'teardown',
    GITHUB_ACTION: 'gate',
    GITHUB_ACTOR: 'octocat',
    GITHUB_RUN_ID: String(7_001_234_567 + (options.runNumber ?? 812) - 812),
    GITHUB_RUN_NUMBER: String(options.runNumber ?? 812),
    GITHUB_RUN_ATTEMPT: String(options.runAttempt ?? 1),
    GITHUB_WORKSPACE: files.workspace,
    GITHUB_OUTPUT: files.outputs,
    GITHUB_STEP_SUMMARY: files.summary,
    GITHUB_STATE: files.state,
    GITHUB_ENV: files.environment,
    RUNNER_OS: 'Linux',
    RUNNER_ARCH: 'X64',
    RUNNER_TEMP: files.temp,
    ...inputVariables(options.inputs, token, options.matrix),
    ...options.env,
  };
}

/** The `INPUT_` variables as the runner sets them, with the defaults of action.yml filled in. */
function inputVariables(
  inputs: Readonly<Record<string, string>>,
  token: string,
  matrix: JsonObject | undefined,
): Record<string, string> {
  const declared = readActionYml().inputs;
  for (const name of Object.keys(inputs)) {
    if (!Object.hasOwn(declared, name)) throw new Error(`action.yml has no input "${name}"`);
  }
  return Object.fromEntries(
    Object.entries(declared).map(([name, { default: fallback = '' }]) => {
      const value =
        inputs[name] ??
        String(fallback)
          .replace(/\$\{\{ github\.token \}\}/, () => token)
          .replace(/\$\{\{ toJSON\(matrix\) \}\}/, () => JSON.stringify(matrix ?? null, null, 2));
      return [`INPUT_${name.toUpperCase()}`, value];
    }),
  );
}

/** Both streams as the runner merges them, and who waits for a line. */
class StepLog {
  stdout = '';
  stderr = '';
  readonly ended: Promise<{ exitCode: number | null; signal: NodeJS.Signals | null }>;
  readonly #lines: string[] = [];
  readonly #listeners = new Set<() => void>();
  #isOver = false;

  constructor(child: ChildProcess, onLine: StepOptions['onLine']) {
    for (const stream of ['stdout', 'stderr'] as const) {
      let rest = '';
      const hear = (line: string): void => {
        this.#lines.push(line);
        onLine?.(line);
      };
      child[stream]?.setEncoding('utf8').on('data', (text: string) => {
        this[stream] += text;
        const lines = (rest + text).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) hear(line);
        this.#wake();
      });
      child[stream]?.on('end', () => {
        if (rest !== '') hear(rest);
      });
    }
    this.ended = new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (exitCode, signal) => {
        this.#isOver = true;
        this.#wake();
        resolve({ exitCode, signal });
      });
    });
  }

  async says(pattern: RegExp): Promise<void> {
    while (!this.#lines.some((line) => pattern.test(line))) {
      if (this.#isOver) throw new Error(`the step ended without saying ${pattern}`);
      await new Promise<void>((resolve) => this.#listeners.add(resolve));
    }
  }

  #wake(): void {
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    for (const listener of listeners) listener();
  }
}

async function readIfThere(path: string | undefined): Promise<string | undefined> {
  if (path === undefined || path === '') return undefined;
  return readFile(path, 'utf8').catch(() => undefined);
}
