import { execFile } from 'node:child_process';
import { tmpdir } from 'node:os';
import { promisify } from 'node:util';
import { cachedBinary } from '../cluster/build.ts';

const run = promisify(execFile);

interface Module {
  path: string;
  version: string;
  /** The module's checksum as in go.sum; those of its dependencies are in its own go.sum. */
  sum: string;
}

const RUNNER: Module = {
  path: 'gitea.com/gitea/runner',
  version: 'v1.0.8',
  sum: 'h1:zKfC4+zyyGIDagqhII3WVw52P+A9iAa63It0lniN4SI=',
};

interface GiteaRelease extends Module {
  tags: string;
  /** Its SQLite is in C. */
  needsCompiler: boolean;
  ldflags: string;
}

const GITEA = {
  '1.26.0': {
    path: 'code.gitea.io/gitea',
    version: 'v1.26.0',
    sum: 'h1:fJP9dqLbzKrKWUVnCVTfVersZdVDuyJQLEDzCAOmKKA=',
    tags: 'sqlite sqlite_unlock_notify',
    needsCompiler: true,
    ldflags: '-s -w -X main.Version=1.26.0 -X "main.Tags=sqlite sqlite_unlock_notify"',
  },
  '1.27.3': {
    path: 'code.gitea.io/gitea',
    version: 'v1.27.3',
    sum: 'h1:SRnjvw24ASELKCqyYvAWIlzwOqyFMgfD+UkqQ9SE5eU=',
    tags: '',
    needsCompiler: false,
    ldflags: '-s -w -X main.Version=1.27.3',
  },
} as const satisfies Record<string, GiteaRelease>;

export type GiteaVersion = keyof typeof GITEA;

/** `GITEA_VERSION`; 1.26 unless given. */
export function wantedVersion(text = process.env['GITEA_VERSION'] || '1.26.0'): GiteaVersion {
  if (Object.hasOwn(GITEA, text)) return text as GiteaVersion;
  throw new Error(`GITEA_VERSION is "${text}"; use one of: ${Object.keys(GITEA).join(', ')}`);
}

export interface GiteaBinaries {
  gitea: string;
  /** What Gitea reads at run time: templates, locales. */
  staticRoot: string;
  runner: string;
}

/** Gitea and its runner from the Go module proxy; minutes the first time, then cached. */
export async function buildGitea(
  version: GiteaVersion,
  say: (line: string) => void = () => {},
): Promise<GiteaBinaries> {
  const release: GiteaRelease = GITEA[version];
  const staticRoot = await download(release);
  const gitea = await cachedBinary(`gitea-${version}`, async (output) => {
    say(`building Gitea ${version}: many minutes the first time, then cached`);
    const { tags, ldflags, needsCompiler } = release;
    await goBuild(staticRoot, { tags, ldflags, cgo: needsCompiler, output });
  });
  const runner = await cachedBinary(`gitea-runner-${RUNNER.version}`, async (output) => {
    say(`building Gitea's runner ${RUNNER.version}`);
    const ldflags = `-s -w -X ${RUNNER.path}/internal/pkg/ver.version=${RUNNER.version}`;
    await goBuild(await download(RUNNER), { tags: '', ldflags, cgo: false, output });
  });
  return { gitea, staticRoot, runner };
}

/** Why Gitea cannot be built here; undefined when nothing is known to be in the way. */
export async function whyNotBuildable(version: GiteaVersion): Promise<string | undefined> {
  const go = await run('go', ['env', 'CC'], { cwd: tmpdir() }).catch(() => undefined);
  if (go === undefined) return 'there is no "go" on the PATH';
  if (!GITEA[version].needsCompiler) return undefined;
  const compiler = go.stdout.trim() || 'gcc';
  const found = await run(compiler, ['--version']).catch(() => undefined);
  return found === undefined ? `the SQLite of Gitea ${version} needs a C compiler` : undefined;
}

/** Folder of the module's files in Go's module cache. */
async function download({ path, version, sum }: Module): Promise<string> {
  const { stdout } = await run('go', ['mod', 'download', '-json', `${path}@${version}`], {
    cwd: tmpdir(), // outside of any module
  });
  const got = JSON.parse(stdout) as { Dir: string; Sum: string };
  if (got.Sum !== sum) throw new Error(`${path}@${version} is ${got.Sum}, expected ${sum}`);
  return got.Dir;
}

async function goBuild(
  folder: string,
  build: { tags: string; ldflags: string; cgo: boolean; output: string },
): Promise<void> {
  const { tags, ldflags, cgo, output } = build;
  const args = ['build', '-trimpath', '-tags', tags, '-ldflags', ldflags, '-o', output, '.'];
  await run('go', args, {
    cwd: folder,
    env: { ...process.env, CGO_ENABLED: cgo ? '1' : '0', GOFLAGS: '-buildvcs=false' },
    maxBuffer: 64 * 1024 * 1024,
  });
}
