import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Takes out of GitHub's own descriptions of its API what the gate asks for, so that the stub can hold
 * every request against it: `node scripts/host-api.ts`. The whole packages are 385 MB.
 */
const OPENAPI = '@octokit/openapi@23.0.2';
/** What GitHub calls its versions there; the oldest Enterprise Server whose runner has Node 24 and later. */
const GITHUB = ['api.github.com', 'ghes-3.17'];
const TARGET = 'test/fixtures/host-api';

const COMMENTS = '/repos/{owner}/{repo}/issues/{}/comments';
const COMMENT = '/repos/{owner}/{repo}/issues/comments/{}';
const ASKED = [
  `get ${COMMENTS}`,
  `post ${COMMENTS}`,
  `patch ${COMMENT}`,
  `delete ${COMMENT}`,
  'get /repos/{owner}/{repo}/pulls',
  'get /repos/{owner}/{repo}/commits/{}/pulls',
  'get /user',
];

type Node = Record<string, unknown>;

interface Operation {
  query: Node;
  body: unknown;
}

/** Parameters with their schemas, and the body, without references and prose. */
function extract(text: string): Record<string, Operation> {
  const api = JSON.parse(text) as Node & { paths: Record<string, Record<string, Node>> };
  const resolve = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(resolve);
    if (typeof value !== 'object' || value === null) return value;
    const ref = (value as Node)['$ref'];
    if (typeof ref === 'string') {
      const keys = ref.replace(/^#\//, '').split('/');
      return resolve(keys.reduce<unknown>((at, key) => (at as Node)[key], api));
    }
    return Object.fromEntries(
      Object.entries(value)
        .filter(([key]) => !/^(description|example|examples|externalDocs|x-.*)$/.test(key))
        .map(([key, item]) => [key, resolve(item)]),
    );
  };
  const found = Object.entries(api.paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, operation]) => {
      const generic = path.replace(/\{(?!owner\}|repo\})\w+\}/g, '{}');
      if (!ASKED.includes(`${method} ${generic}`)) return [];
      const parameters = (resolve([
        ...((item['parameters'] as unknown as Node[]) ?? []),
        ...((operation['parameters'] as Node[]) ?? []),
      ]) ?? []) as Node[];
      const query = parameters
        .filter((one) => one['in'] === 'query')
        .map(({ name, schema }) => [String(name), schema]);
      const request = resolve(operation['requestBody']) as Node | undefined;
      const content = (request?.['content'] as Node | undefined)?.['application/json'] as Node;
      const body = content?.['schema'] ?? null;
      return [[`${method.toUpperCase()} ${generic}`, { query: Object.fromEntries(query), body }]];
    }),
  );
  return Object.fromEntries(found) as Record<string, Operation>;
}

const folder = mkdtempSync(join(tmpdir(), 'host-api-'));
const run = (command: string, ...args: string[]): string =>
  execFileSync(command, args, {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
try {
  run('npm', 'pack', OPENAPI);
  run('tar', 'xzf', 'octokit-openapi-23.0.2.tgz', 'package/generated');
  for (const name of GITHUB) {
    const text = readFileSync(join(folder, 'package/generated', `${name}.json`), 'utf8');
    const content = JSON.stringify({ source: OPENAPI, operations: extract(text) }, null, 2);
    writeFileSync(join(TARGET, `${name}.json`), `${content}\n`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
