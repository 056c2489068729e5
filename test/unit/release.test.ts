import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { load } from 'js-yaml';
import { afterEach, describe, expect, test } from 'vitest';
import { REPOSITORY } from '../stub/action-yml.ts';

/**
 * The shell steps of release.yml, as a runner runs them, with a `gh` that answers from a folder and
 * keeps its tags in a bare repository.
 */
interface Step {
  name?: string;
  run?: string;
  env?: Record<string, string>;
}

const release = load(
  readFileSync(join(REPOSITORY, '.github', 'workflows', 'release.yml'), 'utf8'),
) as { jobs: Record<string, { steps: Step[] }> };

function stepOf(job: string, name: string | undefined): Required<Step> {
  const found = release.jobs[job]?.steps.find((step) => step.run && step.name === name);
  if (!found) throw new Error(`release.yml has no step "${name}" in job "${job}"`);
  return found as Required<Step>;
}

const GH = `#!/usr/bin/env bash
set -eu
printf '%s\\n' "gh $*" >> "$HOME/calls"
for last; do :; done
git="git -C $HOME/remote.git"
value() { local key=$1; shift; for arg; do case $arg in "$key="*) echo "\${arg#*=}";; esac; done; }
filter() { local seen=''; for arg; do [ -n "$seen" ] && echo "$arg" && return; [ "$arg" = --jq ] && seen=1; done; }
case "$*" in
  'api repos/o/r/commits/'*) jq -r "$(filter "$@" "")" "$HOME/checks.json" ;;
  'api repos/o/r/git/matching-refs/tags/v'*) $git for-each-ref --format='{"ref":"%(refname)"}' 'refs/tags/v*' | jq -s . | jq -r '.[].ref' ;;
  'api repos/o/r/git/ref/tags/'*) $git rev-parse -q --verify "refs/tags/\${2##*/}" > /dev/null ;;
  'api --method PATCH repos/o/r/git/refs/tags/'*)
    ref=refs/tags/\${4##*/}
    $git rev-parse -q --verify "$ref" > /dev/null || { echo 'HTTP 422: Reference does not exist' >&2; exit 1; }
    $git update-ref "$ref" "$(value sha "$@")" ;;
  'api --method POST repos/o/r/git/refs'*) $git update-ref "$(value ref "$@")" "$(value sha "$@")" ;;
  'release view '*) grep -qx "$3" "$HOME/drafts" ;;
  'release create '*) echo "$3" >> "$HOME/drafts" ;;
  *) echo "this gh does not know: $*" >&2; exit 99 ;;
esac
`;

const DOCKER = `#!/usr/bin/env bash
printf '%s\\n' "docker $*" >> "$HOME/calls"
[ "$1" = login ] && { read -r token; echo "token $token" >> "$HOME/calls"; }
[ "$1 $2" = 'buildx build' ] && echo '{"containerimage.digest":"sha256:abc"}' > "$RUNNER_TEMP/image.json"
true
`;

/** The real npm, but for what leaves the machine. */
const NPM = `#!/usr/bin/env bash
[ "$1" = publish ] || exec "$REAL_NPM" "$@"
echo "npm $* of $(jq -r '.version + " " + .repository.url' package.json)" >> "$HOME/calls"
`;

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A remote with two commits, the tags given, and a checkout of the second. */
function rehearsal(tags: readonly string[] = []) {
  const home = mkdtempSync(join(tmpdir(), 'release-'));
  folders.push(home);
  const work = join(home, 'work');
  const git = (...args: string[]): string =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.com', ...args], {
      encoding: 'utf8',
      env: { ...process.env, HOME: home },
    }).trim();
  git('init', '-q', '--bare', join(home, 'remote.git'));
  git('init', '-q', work);
  for (const text of ['one', 'two']) git('-C', work, 'commit', '-q', '--allow-empty', '-m', text);
  const [sha = '', older = ''] = git('-C', work, 'log', '--format=%H').split('\n');
  git('-C', work, 'push', '-q', join(home, 'remote.git'), 'HEAD:refs/heads/main');
  for (const tag of tags) git('-C', join(home, 'remote.git'), 'tag', tag, older);
  const files = { calls: '', drafts: '', output: '', gh: GH, docker: DOCKER, npm: NPM };
  for (const [name, text] of Object.entries(files))
    writeFileSync(join(home, name), text, { mode: 0o755 });
  const run = (job: string, name: string | undefined, env: Record<string, string> = {}) => {
    // As the runner starts a step without `shell:`.
    writeFileSync(join(home, 'step.sh'), stepOf(job, name).run);
    const result = spawnSync('bash', ['-e', join(home, 'step.sh')], {
      cwd: work,
      encoding: 'utf8',
      env: {
        PATH: [home, join(REPOSITORY, 'node_modules', '.bin'), process.env['PATH']].join(delimiter),
        HOME: home,
        RUNNER_TEMP: home,
        GITHUB_OUTPUT: join(home, 'output'),
        GITHUB_REPOSITORY: 'o/r',
        GITHUB_SHA: sha,
        ...env,
      },
    });
    return { code: result.status, said: `${result.stdout}${result.stderr}` };
  };
  const tag = (name: string): string => git('-C', join(home, 'remote.git'), 'rev-parse', name);
  const calls = (): string => readFileSync(join(home, 'calls'), 'utf8');
  return { home, work, sha, older, run, tag, calls };
}

const CHECKS = {
  ...{ all: 'success', 'all-green': 'success', dist: 'success', 'scenarios on 1.37': 'success' },
  ...{ 'the action, as a workflow uses it': 'success', 'floating-tags': 'skipped', check: null },
};

/** What the steps call besides git and coreutils; GitHub's runners have them. */
const MISSING = ['jq', 'grep', 'sed', 'awk'].filter((tool) => spawnSync(tool, ['--help']).error);
const title =
  MISSING.length === 0
    ? 'release.yml (it runs on Linux alone)'
    : `release.yml (skipped: there is no ${MISSING.join(', ')})`;
describe.skipIf(process.platform !== 'linux' || MISSING.length > 0)(title, () => {
  const VERSION = 'The version is new and the changelog knows it';
  const GREEN = 'Every check of this commit is green';

  function prepare(work: string, version: string, heading: string): void {
    execFileSync('mkdir', ['-p', join(work, 'dist')]);
    writeFileSync(join(work, 'package.json'), JSON.stringify({ version: '1.1.0' }));
    writeFileSync(join(work, 'dist', 'index.js'), `console.log('${version}')`);
    writeFileSync(
      join(work, 'CHANGELOG.md'),
      `# Changelog\n\n${heading}\n\n- New.\n\n## 1.0.0 (2026-11-30)\n\n- Old.\n`,
    );
  }

  test.each([
    { why: 'all is well', code: 0, says: '' },
    { why: 'dist/ has another version', dist: '1.0.0', code: 1, says: 'npm run build' },
    { why: 'the changelog has no date', heading: '## 1.1.0 (unreleased)', code: 1, says: 'YYYY' },
    { why: 'the tag exists', tags: ['v1.1.0'], code: 1, says: 'v1.1.0 is released already' },
  ])('checks the version: $why', ({ dist, heading, tags, code, says }) => {
    const { home, work, run } = rehearsal(tags);
    prepare(work, dist ?? '1.1.0', heading ?? '## 1.1.0 (2026-12-24)');
    expect(run('check', VERSION)).toEqual({ code, said: expect.stringContaining(says) });
    const output = readFileSync(join(home, 'output'), 'utf8');
    expect(output).toBe(code === 0 ? 'version=1.1.0\n' : '');
  });

  test.each<[why: string, changes: Record<string, string | null>, code: number, says: string]>([
    ['all passed', {}, 0, ''],
    ['an earlier try of this workflow failed', { draft: 'failure' }, 0, ''],
    ['CI failed', { 'all-green': 'failure' }, 1, '"all-green" has not'],
    ['kind still runs', { 'scenarios on 1.37': null }, 1, 'scenarios on'],
    ['another one failed', { zizmor: 'failure' }, 1, 'failure zizmor'],
  ])('requires that every check of the commit passed: %s', (_, changes, code, says) => {
    const { home, run } = rehearsal();
    const runs = Object.entries<string | null>({ ...CHECKS, ...changes });
    const check_runs = runs.map(([name, conclusion]) => ({ name, conclusion }));
    writeFileSync(join(home, 'checks.json'), JSON.stringify({ check_runs }));
    expect(run('check', GREEN)).toEqual({ code, said: expect.stringContaining(says) });
  });

  test('creates one draft, with the notes of this version only', () => {
    const { home, calls, work, sha, run } = rehearsal();
    prepare(work, '1.1.0', '## 1.1.0 (2026-12-24)');
    const env = { VERSION: '1.1.0' };
    const isFree = (): unknown => run('draft', 'No draft of this version is there yet', env).code;

    expect(isFree()).toBe(0);
    expect(run('draft', 'Draft', env)).toEqual({ code: 0, said: '' });
    expect(readFileSync(join(home, 'notes.md'), 'utf8').trim()).toBe('- New.');
    expect(calls()).toContain(`gh release create v1.1.0 --draft --target ${sha} --title v1.1.0`);
    expect(isFree()).toBe(1);
  });

  test.each<[tag: string, there: string, moved: string, stay: string]>([
    ['v1.0.0', 'v1.0.0', 'v1 v1.0', ''],
    ['v1.1.0', 'v1 v1.0 v1.0.0 v1.1.0', 'v1 v1.1', 'v1.0'],
    ['v1.0.5', 'v1 v1.0 v1.0.4 v1.0.5 v1.1.0', 'v1.0', 'v1'],
    ['v1.0.10', 'v1 v1.0 v1.0.9 v1.0.10', 'v1 v1.0', ''],
    ['v2.0.0', 'v1 v1.9.0 v2.0.0', 'v2 v2.0', 'v1'],
    ['v1.0.0', 'v1 v1.0.0 v10.0.0 v1.1.0-rc.1', 'v1 v1.0', ''],
  ])('publishing %s beside %s moves %s and leaves %s', (TAG, ...lists) => {
    const [there, moved, stay] = lists.map((list) => list.split(' ').filter(Boolean)) as string[][];
    const { run, tag, sha, older } = rehearsal(there);
    expect(run('floating-tags', undefined, { TAG }).code).toBe(0);
    expect(moved?.map(tag)).toEqual(moved?.map(() => sha));
    expect(stay?.map(tag)).toEqual(stay?.map(() => older));
  });

  test('publishes only the package of the tag, with the name of the publishing repository', () => {
    const { calls, work, run } = rehearsal();
    prepare(work, '1.1.0', '');
    const REAL_NPM = execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim();
    const publish = (TAG: string) => run('npm', 'Publish the package', { TAG, REAL_NPM }).code;
    expect([publish('v1.1.1'), calls()]).toEqual([1, '']);
    const told = 'npm publish of 1.1.0 git+https://github.com/o/r.git\n';
    expect([publish('v1.1.0'), calls()]).toEqual([0, told]);
  });

  test('pushes an image for two platforms and outputs its digest for the attestation', () => {
    const { home, calls, work, sha, run } = rehearsal();
    prepare(work, '1.1.0', '');
    const env = {
      ...{ IMAGE: 'registry.example/o/gate', GH_TOKEN: 'secret', GITHUB_ACTOR: 'me' },
      GITHUB_SERVER_URL: 'https://example.com',
    };
    const build = (TAG: string) => run('image', 'Build and push the image', { ...env, TAG });
    expect([build('v1.1.1').code, calls()]).toEqual([1, '']);
    expect(build('v1.1.0')).toEqual({ code: 0, said: '' });
    expect(calls().split('\n')).toEqual([
      'docker login registry.example --username me --password-stdin',
      'token secret',
      'docker buildx create --use',
      'docker buildx build --push --platform linux/amd64,linux/arm64 --tag registry.example/o/gate:1.1.0' +
        ` --build-arg VERSION=1.1.0 --build-arg REVISION=${sha}` +
        ` --build-arg SOURCE=https://example.com/o/r --metadata-file ${home}/image.json .`,
      '',
    ]);
    expect(readFileSync(join(home, 'output'), 'utf8')).toBe('digest=sha256:abc\n');
  });

  test.each(['1.0.0', 'v1', 'v1.0.0-rc.1', 'v1.0.0;id'])('refuses the tag %s', (TAG) => {
    const { calls, run } = rehearsal();
    expect(run('floating-tags', undefined, { TAG }).code).not.toBe(0);
    expect(calls()).toBe('');
  });
});
