import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { access, mkdir, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Kubernetes versions that the control plane can be built in, with the go.mod that pins each. */
const MODULES = { '1.36.3': 'go.mod', '1.32.2': 'go-1.32.2.mod' } as const;

export type KubernetesVersion = keyof typeof MODULES;
export const KUBERNETES_VERSIONS = Object.keys(MODULES) as KubernetesVersion[];
export const NEWEST_VERSION: KubernetesVersion = '1.36.3';

const CACHE = join(
  process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'),
  'namespace-teardown-gate',
);
const SOURCE = join(import.meta.dirname, 'control-plane');
const TOOLCHAINS_SINCE = '1.21'; // from here on, Go fetches the version a module asks for

export function isKubernetesVersion(text: string): text is KubernetesVersion {
  return Object.hasOwn(MODULES, text);
}

/** Path of the control-plane binary; built when it is not in the user's cache folder yet. */
export async function buildControlPlane(
  version: KubernetesVersion,
  say: (line: string) => void = () => {},
): Promise<string> {
  return cached(`control-plane-${version}-${await sourceHash(version)}`, async (output) => {
    await checkGo(version);
    say(`building the control plane, Kubernetes ${version}: minutes the first time, then cached`);
    await goBuild(version, output);
  });
}

/** Path of a file or folder in the user's cache folder; `build` writes it where it is not there yet. */
export async function cached(name: string, build: (to: string) => Promise<void>): Promise<string> {
  const path = join(CACHE, name);
  if (await isThere(path)) return path;
  await mkdir(dirname(path), { recursive: true });
  // Renamed into place when it is complete: test processes may build side by side.
  const unfinished = `${path}.${process.pid}.tmp`;
  try {
    await build(unfinished);
    await rename(unfinished, path);
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
  return path;
}

async function goBuild(version: KubernetesVersion, output: string): Promise<void> {
  const [major, minor] = version.split('.');
  const stamp = 'k8s.io/component-base/version';
  const ldflags = [
    '-s -w',
    `-X ${stamp}.gitVersion=v${version}`,
    `-X ${stamp}.gitMajor=${major}`,
    `-X ${stamp}.gitMinor=${minor}`,
    `-X ${stamp}.gitTreeState=clean`,
  ].join(' ');
  const module = `-modfile=${MODULES[version]}`;
  await run('go', ['build', '-trimpath', module, '-ldflags', ldflags, '-o', output, '.'], {
    cwd: SOURCE,
    env: { ...process.env, CGO_ENABLED: '0' },
    maxBuffer: 64 * 1024 * 1024,
  });
}

async function sourceHash(version: KubernetesVersion): Promise<string> {
  const module = MODULES[version];
  const hash = createHash('sha256');
  for (const file of ['main.go', module, module.replace(/\.mod$/, '.sum')]) {
    hash.update(await readFile(join(SOURCE, file)));
  }
  return hash.digest('hex').slice(0, 12);
}

async function checkGo(version: KubernetesVersion): Promise<void> {
  const module = await readFile(join(SOURCE, MODULES[version]), 'utf8');
  const needed = /^go (\S+)$/m.exec(module)?.[1] ?? '0';
  const why = `to build the Kubernetes ${version} control plane that these tests run on`;
  const found = await run('go', ['env', 'GOVERSION', 'GOTOOLCHAIN'], { cwd: homedir() }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') {
        throw new Error(`Go ${needed} or newer is needed ${why}; there is no "go" on the PATH`);
      }
      throw error;
    },
  );
  const [goVersion = '', toolchain = ''] = found.stdout.split('\n');
  const has = goVersion.replace(/^go/, '');
  const fetchesNewer = isAtLeast(has, TOOLCHAINS_SINCE) && toolchain.includes('auto');
  if (!isAtLeast(has, needed) && !fetchesNewer) {
    throw new Error(`Go ${needed} or newer is needed ${why}; "go" on the PATH is ${has}`);
  }
}

function isAtLeast(version: string, wanted: string): boolean {
  return version.localeCompare(wanted, 'en', { numeric: true }) >= 0;
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
