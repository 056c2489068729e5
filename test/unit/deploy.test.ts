import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { load, loadAll } from 'js-yaml';
import { describe, expect, test } from 'vitest';
import { fences } from '../../scripts/docs/markdown.ts';
import { parseArguments } from '../../src/arguments.ts';
import type { JsonObject } from '../../src/base/json.ts';
import { readInputs } from '../../src/inputs.ts';
import { REPOSITORY } from '../stub/action-yml.ts';

/** What runs the program outside of GitHub: the container, the CronJob, the examples for other CI servers. */

const read = (file: string): string => readFileSync(join(REPOSITORY, file), 'utf8');
const PAGE = read('docs/other-ci.md');
const AUDIT = loadAll(read('deploy/audit/audit.yaml')) as JsonObject[];

/** Every value under a key, however deep. */
function deepOf(key: string, value: unknown): unknown[] {
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([name, inner]) =>
    name === key ? [inner] : deepOf(key, inner),
  );
}
const listsOf = (key: string, value: unknown) => deepOf(key, value) as string[][];

const GITLAB = read('deploy/gitlab/namespace-teardown.yml');
const LINES = [
  ...`${PAGE}${GITLAB}`.matchAll(/npx --yes namespace-teardown-gate@\S+ ([^'\n]*)/g),
].map(([, line = '']) =>
  line
    .replaceAll('"', '')
    .replace('$[[ inputs.timeout ]]', '10m')
    .replace(/\$\{\w+:\+([^}]*)\}/, '$1')
    .split(' '),
);
const LISTS = [...fences(PAGE, 'yaml').map((text) => load(text)), ...AUDIT].flatMap((one) =>
  listsOf('args', one),
);

describe('the examples for other CI servers', () => {
  test('exist for each server and the CronJob', () => {
    expect([LINES.length, LISTS.length]).toEqual([3, 3]);
  });

  test('name every input of the component for GitLab, with its default and meaning', () => {
    const { inputs } = (loadAll(GITLAB)[0] as { spec: { inputs: Record<string, JsonObject> } })
      .spec;
    const rows = Object.entries(inputs).map(
      ([name, input]) => `| \`${name}\` | \`${input['default']}\` | ${input['description']} |`,
    );
    expect(PAGE).toContain(`| --- | --- | --- |\n${rows.join('\n')}\n\n`);
  });

  test.each([...LINES, ...LISTS].map((args) => ({ args })))(
    'give valid arguments: $args',
    ({ args }) => {
      const filled = args.map((arg) =>
        arg.replace(/^(\$\w+|\$\(params.*|\{\{inputs.*)$/, 'preview-1'),
      );
      const command = parseArguments(filled);
      expect(command).toMatchObject({ run: 'gate' });
      if (command.run !== 'gate') return;
      expect(readInputs(command.inputs).reportDir).not.toBe('');
    },
  );
});

describe('the container', () => {
  const dockerfile = read('Dockerfile');

  test('copies the program that it starts, and starts it without a shell', () => {
    expect(dockerfile).toContain('COPY --chown=65532:65532 dist/index.js ');
    expect(dockerfile).toMatch(/^ENTRYPOINT \["node", "\/app\/index.js"\]$/m);
    const pages = fences(PAGE, 'yaml').map((text) => load(text));
    const commands = new Set(listsOf('command', pages).map(String));
    expect(commands).toEqual(new Set(['node,/app/index.js']));
  });

  test('has a numeric user, so that Kubernetes sees that it is not root', () => {
    expect(dockerfile).toMatch(/^USER [1-9]\d*:[1-9]\d*$/m);
    expect(dockerfile).not.toMatch(/^RUN /m);
  });
});

describe('deploy/audit', () => {
  test('has a pod that fulfils the Pod Security Standard "restricted" with a read-only file system', () => {
    const job = AUDIT.find(({ kind }) => kind === 'CronJob');
    const [template] = deepOf('template', job) as [{ spec: JsonObject }];
    expect(template.spec).toMatchObject({
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          securityContext: {
            ...{ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true },
            capabilities: { drop: ['ALL'] },
          },
        },
      ],
    });
  });

  const isThere = spawnSync('kubectl', ['version', '--client']).status === 0;
  const why = isThere ? '' : ' (skipped: there is no kubectl)';
  const title = `is built by kustomize, and its binding names the shipped role and the ServiceAccount${why}`;
  test.skipIf(!isThere)(title, () => {
    const folder = mkdtempSync(join(tmpdir(), 'gate-audit-'));
    try {
      cpSync(join(REPOSITORY, 'deploy', 'audit'), folder, { recursive: true });
      cpSync(join(REPOSITORY, 'rbac', 'reader.yaml'), join(folder, 'reader.yaml'));
      const built = loadAll(
        execFileSync('kubectl', ['kustomize', folder], { encoding: 'utf8' }),
      ) as JsonObject[];
      const role = built.find(({ kind }) => kind === 'ClusterRole');
      const account = built.find(({ kind }) => kind === 'ServiceAccount');
      expect(built.find(({ kind }) => kind === 'ClusterRoleBinding')).toMatchObject({
        roleRef: { name: (role?.['metadata'] as JsonObject | undefined)?.['name'] },
        subjects: [account?.['metadata']],
      });
      expect(JSON.stringify(built)).toContain('"image":"REGISTRY/namespace-teardown-gate:1.0.0"');
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
