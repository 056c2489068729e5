import { spawnSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { load } from 'js-yaml';
import { describe, expect, test } from 'vitest';
import { generateBlocks, generateFiles, insertBlock } from '../../scripts/docs/generate.ts';
import {
  anchors,
  documentedWorkflows,
  fences,
  headings,
  links,
} from '../../scripts/docs/markdown.ts';
import { REPOSITORY, readActionYml } from '../stub/action-yml.ts';

const FILES = [
  ...globSync('*.md', { cwd: REPOSITORY }),
  ...globSync(['{docs,.github}/**/*.md', 'test/*/README.md'], { cwd: REPOSITORY }),
].sort();

function read(file: string): string {
  return readFileSync(join(REPOSITORY, file), 'utf8');
}

test('the generated parts are as "npm run docs" writes them', async () => {
  for (const [file, blocks] of Object.entries(await generateBlocks())) {
    const text = read(file);
    for (const [name, block] of Object.entries(blocks)) {
      expect(insertBlock(text, name, block), `${file}, out of date: ${name}`).toBe(text);
    }
  }
  for (const [file, text] of Object.entries(generateFiles())) expect(read(file), file).toBe(text);
});

test('the README has at most 2,000 words', () => {
  expect(read('README.md').split(/\s+/).length).toBeLessThanOrEqual(2_000);
});

test.each(
  globSync(['docs/*.md', 'CONTRIBUTING.md', 'SECURITY.md'], { cwd: REPOSITORY }).filter(
    (file) => file !== join('docs', 'findings.md'),
  ),
)('%s has at most 800 words beside its generated parts', (file) => {
  const written = read(file).replaceAll(/<!-- ([\w-]+):begin[\s\S]*?<!-- \1:end -->/g, '');
  expect(written.trim().split(/\s+/).length).toBeLessThanOrEqual(800);
});

describe('the examples', () => {
  const all = ['README.md', ...globSync('docs/*.md', { cwd: REPOSITORY })].flatMap((file) =>
    fences(read(file), 'yaml'),
  );

  test('use only inputs and outputs that exist', () => {
    const { inputs, outputs } = readActionYml();
    const yaml = all.join('\n');
    // After our own `uses:`, and in excerpts that begin with `with:`.
    const blocks = yaml.matchAll(/(?:namespace-teardown-gate@.*|^)\n\s+with:\n((?: {8,}.*\n)+)/gm);
    const used = [...blocks]
      .flatMap(([, block = '']) => [...block.matchAll(/^ {8,10}([a-z-]+):/gm)])
      .map(([, name]) => name);
    const asked = [...yaml.matchAll(/steps\.gate\.outputs\.([a-z-]+)/g)].map(([, name]) => name);

    expect(used).toContain('force-finalizers');
    expect(used.filter((name) => !Object.hasOwn(inputs, name ?? ''))).toEqual([]);
    expect(asked.filter((name) => !Object.hasOwn(outputs, name ?? ''))).toEqual([]);
  });

  test('are YAML, the complete workflows among them', () => {
    expect(documentedWorkflows().length).toBeGreaterThanOrEqual(7);
    for (const text of all) expect(() => load(text), text).not.toThrow();
  });
});

describe('docs/troubleshooting.md', () => {
  /** Words of others, and a situation without a message. */
  const NOT_OURS = [
    'Resource not accessible by integration',
    'The gate was killed and wrote nothing',
  ];

  test('has headings that are messages of the program', () => {
    const sources = globSync('src/**/*.ts', { cwd: REPOSITORY }).map(read).join('\n');
    const messages = headings(read('docs/troubleshooting.md'))
      .slice(1)
      .map((heading) => heading.replaceAll('`', ''))
      .filter((heading) => !NOT_OURS.includes(heading));

    expect(messages.length).toBeGreaterThan(5);
    const pieces = messages.flatMap((message) => message.split(/…|\d+ Unauthorized|\d+ Forbidden/));
    const words = pieces.map((piece) => piece.replaceAll(/^[": ]+|[": ]+$/g, ''));
    expect(words.filter((text) => !isSaid(text, sources))).toEqual([]);
  });
});

/** A message in the sources has `${…}` where the heading has words: any three words of it have to be there. */
function isSaid(text: string, sources: string): boolean {
  const words = text.split(' ');
  const runs = words.map((_, at) => words.slice(at, at + 3).join(' '));
  return runs.some((run) => sources.includes(run));
}

describe.each(FILES)('%s', (file) => {
  test('links to files and headings that exist', () => {
    const broken = links(read(file)).filter((target) => !resolves(file, target));
    expect(broken).toEqual([]);
  });
});

function resolves(file: string, target: string): boolean {
  if (/^(https?|mailto):/.test(target)) return true;
  const [path = '', anchor] = target.split('#');
  const linked = path === '' ? file : join(dirname(file), path);
  if (!existsSync(join(REPOSITORY, linked))) return false;
  return anchor === undefined || anchors(read(linked)).has(anchor);
}

test('the recipe for deleted branches never uses one namespace for two branches', () => {
  const [script = ''] = documentedWorkflows().flatMap((text) =>
    text.includes('github.event.ref_type') ? [stepOf(text, 'name')] : [],
  );
  const branches = [
    ...['feature/x', 'feature-x', 'Feature/x', '日本', '中国', '-', 'a--b', 'x'.repeat(100)],
    ...[`${'x'.repeat(50)}-1`, `${'x'.repeat(50)}-2`],
  ];
  const nameOf = (BRANCH: string): string => {
    const printing = script.replace('>> "$GITHUB_OUTPUT"', '');
    return inBash(printing, { BRANCH })
      .stdout.trim()
      .replace(/^namespace=/, '');
  };
  const names = branches.map(nameOf);

  expect(names.filter((name) => !/^[a-z0-9][a-z0-9-]{0,61}[a-z0-9]$/.test(name))).toEqual([]);
  expect(new Set(names).size).toBe(branches.length);
});

/** bash reads its start-up files if it takes standard input for a network connection. */
function inBash(script: string, env: Record<string, string>) {
  const options = { encoding: 'utf8', env: { PATH: process.env['PATH'], ...env } } as const;
  return spawnSync('bash', ['-e', '-c', script], { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
}

/** The script of the step with this id in the only job of a workflow. */
function stepOf(workflow: string, id: string): string {
  const { jobs } = load(workflow) as { jobs: Record<string, { steps: Record<string, string>[] }> };
  const steps = Object.values(jobs).flatMap((job) => job.steps);
  return steps.find((step) => step['id'] === id)?.['run'] ?? '';
}

test('the recipe for inactive deployments sets each deployment, and only after a deletion', () => {
  const [workflow = ''] = documentedWorkflows().filter((text) => text.includes('state=inactive'));
  const { jobs } = load(workflow) as { jobs: Record<string, { steps: Record<string, string>[] }> };
  const step = Object.values(jobs)[0]?.steps.at(-1);
  const gh = `gh() { echo "gh $*" >&2; case "$*" in *GET*environment=preview-1*) printf '%s\\n' 7 8;; esac; }
`;
  const env = { GITHUB_REPOSITORY: 'o/r', ENVIRONMENT: 'preview-1' };
  const { status, stderr } = inBash(gh + step?.['run'], env);

  expect(step?.['if']).toMatch(/^\${{ steps\.gate\.outputs\.outcome == 'deleted' }}$/);
  expect([status, stderr.match(/POST.*/g)]).toEqual([
    0,
    [7, 8].map((id) => `POST repos/o/r/deployments/${id}/statuses -f state=inactive --silent`),
  ]);
});
