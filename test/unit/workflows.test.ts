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

  test('grants nothing at the top, and gives every job an end', () => {
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

  test('passes nothing into a shell but by the environment', () => {
    expect(steps.filter(({ run }) => run?.includes('${{'))).toEqual([]);
  });
});

test('ci.yml has one job that needs all others', () => {
  const { jobs } = load(readFileSync(join(FOLDER, 'ci.yml'), 'utf8')) as Workflow;
  const others = Object.keys(jobs).filter((name) => name !== 'all-green');

  expect([jobs['all-green']?.needs ?? []].flat().sort()).toEqual(others.sort());
});
