import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { describe, expect, test } from 'vitest';
import { REPOSITORY } from '../stub/action-yml.ts';

interface Workflow {
  permissions: Record<string, string>;
  jobs: Record<string, Job>;
}

interface Job {
  name?: string;
  strategy?: { matrix: { include?: Record<string, string>[] } };
  'timeout-minutes'?: number;
  needs?: string | string[];
  steps: { uses?: string; run?: string; with?: Record<string, unknown> }[];
}

const FOLDER = join(REPOSITORY, '.github', 'workflows');

describe.each(globSync('*.yml', { cwd: FOLDER }))('%s', (file) => {
  const text = readFileSync(join(FOLDER, file), 'utf8');
  const workflow = load(text) as Workflow;
  const jobs = Object.values(workflow.jobs);
  const steps = jobs.flatMap((job) => job.steps);

  test('grants no permission at the top, and limits the time of every job', () => {
    expect(workflow.permissions).toEqual({});
    expect(jobs.filter((job) => job['timeout-minutes'] === undefined)).toEqual([]);
  });

  test('pins every action to a commit, with its version beside it', () => {
    const uses = [...text.matchAll(/uses: (\S+)(.*)$/gm)].filter(([, name]) => name !== './');
    expect(
      uses.map(([line]) => line).filter((line) => !/@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(line)),
    ).toEqual([]);
  });

  test('keeps no credentials in a checkout', () => {
    const checkouts = steps.filter(({ uses }) => uses?.startsWith('actions/checkout@'));
    expect(checkouts.filter((step) => step.with?.['persist-credentials'] !== false)).toEqual([]);
  });

  test('passes values to a shell only by the environment', () => {
    expect(steps.filter(({ run }) => run?.includes('${{'))).toEqual([]);
  });
});

test('ci.yml has one job that needs all others', () => {
  const { jobs } = load(readFileSync(join(FOLDER, 'ci.yml'), 'utf8')) as Workflow;
  const others = Object.keys(jobs).filter((name) => name !== 'all-green');

  expect([jobs['all-green']?.needs ?? []].flat().sort()).toEqual(others.sort());
});

test('release.yml waits for checks that exist', () => {
  const release = load(readFileSync(join(FOLDER, 'release.yml'), 'utf8')) as Workflow;
  const run = release.jobs['check']?.steps.map(({ run }) => run ?? '').join('\n') ?? '';
  const [, list = ''] = /for name in (.*); do/.exec(run) ?? [];
  const wanted = [...list.matchAll(/'([^']+)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain);

  expect(wanted.length).toBeGreaterThan(2);
  expect(wanted.filter((name) => !checkNames().has(name ?? ''))).toEqual([]);
});

/** What GitHub calls the checks of each push to main: a job's name, one per entry of its matrix. */
function checkNames(): Set<string> {
  const names = globSync('*.yml', { cwd: FOLDER }).flatMap((file) => {
    const { jobs } = load(readFileSync(join(FOLDER, file), 'utf8')) as Workflow;
    return Object.entries(jobs).flatMap(([id, { name = id, strategy }]) =>
      (strategy?.matrix.include ?? [{}]).map((entry) =>
        name.replaceAll(/\$\{\{ matrix\.(\w+) \}\}/g, (_, key: string) => entry[key] ?? ''),
      ),
    );
  });
  return new Set(names);
}
