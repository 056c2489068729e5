import { spawn, spawnSync } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import type { JsonObject } from '../../src/base/json.ts';
import { REPOSITORY } from '../stub/action-yml.ts';
import { REPOSITORY_NAME } from '../stub/runner.ts';

/** Why workflows cannot be run here; undefined when they can. */
export const NO_ACT =
  spawnSync('act', ['--version']).status === 0
    ? undefined
    : 'act, which runs workflows without GitHub, is not installed (go install github.com/nektos/act@latest)';

export interface ActRun {
  exitCode: number | null;
  log: string;
}

export interface ActOptions {
  event: { name: string; payload: JsonObject };
  secrets: Record<string, string>;
  env: Record<string, string>;
}

/** A repository that has the action at its root, as `uses: ./` wants it, and one workflow. */
export class ActRepository {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async create(workflow: string): Promise<ActRepository> {
    const folder = await mkdtemp(join(tmpdir(), 'teardown-act-'));
    const repository = join(folder, 'repository');
    await mkdir(join(repository, '.github', 'workflows'), { recursive: true });
    await writeFile(join(repository, '.github', 'workflows', 'teardown.yml'), workflow);
    for (const part of ['action.yml', 'dist']) {
      await cp(join(REPOSITORY, part), join(repository, part), { recursive: true });
    }
    const git = (...args: string[]): void => {
      const identity = ['-c', 'user.name=test', '-c', 'user.email=test@example.com'];
      const run = spawnSync('git', [...identity, ...args], { cwd: repository, encoding: 'utf8' });
      if (run.status !== 0) throw new Error(`git ${args[0]}: ${run.stderr}`);
    };
    git('init', '--quiet', '--initial-branch=main');
    git('remote', 'add', 'origin', `https://github.com/${REPOSITORY_NAME}.git`);
    git('add', '.');
    git('commit', '--quiet', '-m', 'A repository with a teardown workflow');
    return new ActRepository(folder);
  }

  async run({ event, secrets, env }: ActOptions): Promise<ActRun> {
    const eventFile = join(this.#folder, 'event.json');
    await writeFile(eventFile, JSON.stringify(event.payload));
    const args = [
      event.name,
      ...['-P', 'ubuntu-latest=-self-hosted', '-e', eventFile],
      // Without a value, act takes it from its environment: values of several lines are possible.
      ...Object.keys(secrets).flatMap((name) => ['-s', name]),
      ...Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`]),
    ];
    const child = spawn('act', args, {
      cwd: join(this.#folder, 'repository'),
      env: {
        // act runs node actions with the first Node on the PATH, as the runner does with its own 24.
        PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH'] ?? ''}`,
        HOME: this.#folder,
        ...secrets,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 200_000,
    });
    let log = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        log += chunk;
      });
    }
    return new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (exitCode) => resolve({ exitCode, log }));
    });
  }

  async remove(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}
