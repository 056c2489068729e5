import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { atProcessEnd } from '../cluster/at-process-end.ts';
import { freePorts, type Server } from '../cluster/processes.ts';
import { waitUntil } from '../cluster/wait-until.ts';
import { GiteaApi } from './api.ts';
import type { GiteaBinaries } from './binaries.ts';
import { startLeashed } from './leashed.ts';

const run = promisify(execFile);
const ADMIN = 'keeper';
const PASSWORD = 'only-for-tests-1';
const POLITE_MS = 5_000;
const JOBS_AT_ONCE = 4;

/** A Gitea with one runner in host mode, both on loopback, with a data folder of their own. */
export interface GiteaHost {
  readonly url: string;
  /** As the site's administrator. */
  readonly admin: GiteaApi;
  readonly folder: string;
  /** A new account, with a token of these scopes. */
  user(name: string, scopes?: readonly string[]): Promise<GiteaApi>;
  token(user: string, scopes: readonly string[]): Promise<string>;
  /** What only the pages offer, as somebody who has signed in. */
  browse(user: string, method: string, path: string): Promise<Response>;
  /** What the servers have said last. */
  logTail(): string;
  stop(): Promise<void>;
}

const ALL = ['all'];

export async function startGitea(binaries: GiteaBinaries): Promise<GiteaHost> {
  const folder = await mkdtemp(join(tmpdir(), 'teardown-gitea-'));
  const [port = 0] = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  const config = join(folder, 'app.ini');
  // Git reads the configuration of whoever runs it; this is nobody's.
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: folder,
    GITEA_I_AM_BEING_UNSAFE_RUNNING_AS_ROOT: 'true',
  };
  await writeFile(config, settings({ folder, port, staticRoot: binaries.staticRoot }));
  // What it makes is a token on a line of its own; as root it warns as well, before or after that.
  const gitea = async (...args: string[]): Promise<string> => {
    const { stdout } = await run(binaries.gitea, ['--config', config, ...args], { env });
    return /^\w{40}$/m.exec(stdout)?.[0] ?? '';
  };

  const servers: Server[] = [];
  const end = (): void => {
    for (const server of servers) server.kill();
    rmSync(folder, { recursive: true, force: true });
  };
  atProcessEnd(end);
  const host: GiteaHost = {
    url,
    folder,
    admin: new GiteaApi(url, ''),
    token: (user, scopes) => newToken(gitea, user, scopes),
    user: async (name, scopes = ALL) => {
      await newAccount(gitea, name);
      return new GiteaApi(url, await newToken(gitea, name, scopes));
    },
    browse: async (user, method, path) => {
      const response = await fetch(`${url}${path}`, {
        method,
        headers: { cookie: await signIn(url, user) },
      });
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status}`);
      return response;
    },
    logTail: () => servers.map((server) => `${server.logFile}:\n${server.logTail()}`).join('\n'),
    stop: async () => {
      for (const server of servers.reverse()) await server.stop(POLITE_MS);
      await rm(folder, { recursive: true, force: true, maxRetries: 3 });
    },
  };
  try {
    await gitea('migrate');
    servers.push(
      startLeashed(
        'gitea',
        [binaries.gitea, '--config', config, 'web'],
        env,
        join(folder, 'gitea.log'),
      ),
    );
    await waitUntil(
      () => `Gitea\n${host.logTail()}`,
      () =>
        fetch(`${url}/api/healthz`).then(
          ({ ok }) => ok,
          () => false,
        ),
      { timeoutMs: 120_000 },
    );
    await newAccount(gitea, ADMIN, '--admin');
    const admin = new GiteaApi(url, await newToken(gitea, ADMIN, ALL));
    servers.push(await startRunner({ binaries, folder, url, gitea }));
    return { ...host, admin };
  } catch (error) {
    await host.stop();
    throw error;
  }
}

function settings(of: { folder: string; port: number; staticRoot: string }): string {
  return `
APP_NAME = Gitea
RUN_MODE = prod
WORK_PATH = ${of.folder}
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = ${of.port}
ROOT_URL = http://127.0.0.1:${of.port}/
DISABLE_SSH = true
OFFLINE_MODE = true
STATIC_ROOT_PATH = ${of.staticRoot}
[database]
DB_TYPE = sqlite3
SQLITE_JOURNAL_MODE = WAL
[security]
INSTALL_LOCK = true
SECRET_KEY = only-for-tests
[actions]
ENABLED = true
DEFAULT_ACTIONS_URL = self
[log]
LEVEL = Info
[cron.update_checker]
ENABLED = false
[webhook]
ALLOWED_HOST_LIST = loopback
[repository]
DEFAULT_BRANCH = main
[service]
DISABLE_REGISTRATION = true
`;
}

type Gitea = (...args: string[]) => Promise<string>;

async function newAccount(gitea: Gitea, name: string, ...more: string[]): Promise<void> {
  await gitea(
    ...['admin', 'user', 'create', '--username', name, '--email', `${name}@example.com`],
    ...['--password', PASSWORD, '--must-change-password=false', ...more],
  );
}

async function newToken(gitea: Gitea, user: string, scopes: readonly string[]): Promise<string> {
  const name = `${scopes.join('-').replaceAll(':', '-')}-${Date.now()}`;
  for (let attempt = 1; ; attempt++) {
    try {
      return await gitea(
        ...['admin', 'user', 'generate-access-token', '--username', user, '--token-name', name],
        ...['--scopes', scopes.join(','), '--raw'],
      );
    } catch (error) {
      // The server writes to the same SQLite file.
      if (attempt === 10 || !String(error).includes('database is locked')) throw error;
      await sleep(500);
    }
  }
}

async function signIn(url: string, user: string): Promise<string> {
  const response = await fetch(`${url}/user/login`, {
    method: 'POST',
    body: new URLSearchParams({ user_name: user, password: PASSWORD }),
    redirect: 'manual',
  });
  if (response.status !== 303) throw new Error(`signing in as ${user}: ${response.status}`);
  // A name may be set twice: the session begins anew when somebody signs in.
  const cookies = new Map(
    response.headers.getSetCookie().map((cookie) => {
      const [pair = ''] = cookie.split(';');
      return [pair.split('=')[0], pair];
    }),
  );
  return [...cookies.values()].join('; ');
}

async function startRunner(of: {
  binaries: GiteaBinaries;
  folder: string;
  url: string;
  gitea: Gitea;
}): Promise<Server> {
  const home = join(of.folder, 'runner');
  await mkdir(home);
  const config = join(home, 'config.yaml');
  await writeFile(
    config,
    JSON.stringify({
      runner: {
        file: join(home, 'registration'),
        capacity: JOBS_AT_ONCE,
        fetch_interval: '1s',
        fetch_interval_max: '1s',
        log_report_interval: '1s',
        log_report_max_latency: '500ms',
        state_report_interval: '1s',
      },
      cache: { enabled: false },
      host: { workdir_parent: join(home, 'work') },
    }),
  );
  const env = {
    // In host mode an action runs on the first Node of the PATH.
    PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH'] ?? ''}`,
    HOME: home,
  };
  const token = await of.gitea('actions', 'generate-runner-token');
  const { runner } = of.binaries;
  await run(
    runner,
    [
      ...['register', '--no-interactive', '--config', config, '--name', 'host'],
      ...['--instance', of.url, '--token', token, '--labels', 'ubuntu-latest:host'],
    ],
    { env, cwd: home },
  );
  return startLeashed(
    'runner',
    [runner, 'daemon', '--config', config],
    env,
    join(home, 'runner.log'),
  );
}

/** For what a test cannot see from outside. */
export function readLog(host: GiteaHost, file: 'gitea.log' | 'runner/runner.log'): Promise<string> {
  return readFile(join(host.folder, file), 'utf8');
}
