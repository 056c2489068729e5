/**
 * `npm run record:gitea`: lets a real Gitea start a workflow in every way that the gate knows, and writes
 * what its runner hands to an action to test/fixtures/gitea/<situation>.json: the environment and the
 * event, and in answers.json what Gitea's API answers to the job's own token. Addresses and folders of
 * this machine and secrets do not get into the files.
 */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Json, JsonObject } from '../../src/base/json.ts';
import { waitUntil } from '../cluster/wait-until.ts';
import { buildGitea, wantedVersion } from './binaries.ts';
import { type GiteaHost, startGitea } from './host.ts';
import { Repository } from './repository.ts';

const FOLDER = join(import.meta.dirname, '..', 'fixtures', 'gitea');
const SERVER = 'https://gitea.example.com';
const OWNER = 'team';

/** Runs in the job. What it writes holds the token still; `clean` takes it out. */
const RECORDER = `
import { readFileSync, writeFileSync } from 'node:fs';
const { env } = process;
const environment = Object.fromEntries(
  Object.entries(env).filter(([key]) => /^(GITHUB|GITEA|RUNNER|ACTIONS|CI$)/.test(key)).sort(),
);
const event = JSON.parse(readFileSync(env.GITHUB_EVENT_PATH, 'utf8'));
const name = [env.GITHUB_EVENT_NAME, env.GITHUB_RUN_ID, env.GITHUB_JOB].join('-');
const answers = [];
const ask = async (method, path, body) => {
  const response = await fetch(env.GITHUB_API_URL + path, {
    method,
    headers: { authorization: 'token ' + env.TOKEN, 'content-type': 'application/json' },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const text = await response.text();
  const headers = Object.fromEntries(
    ['link', 'x-total-count', 'content-type'].flatMap((key) =>
      response.headers.has(key) ? [[key, response.headers.get(key)]] : [],
    ),
  );
  let answer = text;
  try { answer = JSON.parse(text); } catch {}
  answers.push({ method, path, ...(body ? { sent: body } : {}), status: response.status, headers, body: answer });
  return answer;
};
if (event.action === 'closed' && env.GITHUB_EVENT_NAME === 'pull_request') {
  const repo = '/repos/' + env.GITHUB_REPOSITORY;
  const { number, head, merge_commit_sha: merged } = event.pull_request;
  await ask('GET', '/version');
  await ask('GET', '/user');
  await ask('GET', repo + '/pulls/' + number);
  await ask('GET', repo + '/pulls/4711');
  await ask('GET', repo + '/pulls?state=all&sort=recentupdate&limit=2');
  await ask('GET', repo + '/pulls?state=all&head=' + head.ref);
  for (const sha of [head.sha, merged].filter(Boolean)) {
    await ask('GET', repo + '/commits/' + sha + '/pull');
    await ask('GET', repo + '/commits/' + sha + '/pulls');
  }
  const made = await ask('POST', repo + '/issues/' + number + '/comments', { body: 'first' });
  await ask('POST', repo + '/issues/' + number + '/comments', { body: 'second' });
  await ask('GET', repo + '/issues/' + number + '/comments?per_page=1');
  if (made.id) {
    await ask('PATCH', repo + '/issues/comments/' + made.id, { body: 'edited' });
    await ask('GET', repo + '/issues/comments/' + made.id);
    await ask('DELETE', repo + '/issues/comments/' + made.id);
    await ask('GET', repo + '/issues/comments/' + made.id);
  }
  await ask('POST', '/graphql', { query: 'query { viewer { login } }' });
  await ask('GET', repo + '/issues/4711/comments');
}
writeFileSync(env.RECORDS + '/' + name + '.json', JSON.stringify({ environment, event, answers }));
`;

interface Record extends JsonObject {
  environment: { [key: string]: string };
  event: JsonObject;
  answers: Json[];
}

async function main(): Promise<void> {
  const version = wantedVersion();
  const host = await startGitea(await buildGitea(version, console.log));
  try {
    const records = join(host.folder, 'records');
    await mkdir(records);
    const recorder = join(host.folder, 'recorder.mjs');
    await writeFile(recorder, RECORDER);
    await rm(FOLDER, { recursive: true, force: true });
    await mkdir(FOLDER, { recursive: true });
    await act(host, { records, recorder });
    const names = await readdir(records);
    const written = new Set<string>();
    for (const file of names.sort()) {
      const record = JSON.parse(await readFile(join(records, file), 'utf8')) as Record;
      const situation = situationOf(record);
      if (written.has(situation)) continue;
      written.add(situation);
      const { environment, event, answers } = clean(record, host) as unknown as Record;
      await save(situation, { gitea: version, environment, event });
      if (answers.length > 0) await save(`${situation}.answers`, { gitea: version, answers });
    }
    console.log([...written].sort().join('\n'));
  } finally {
    await host.stop();
  }
}

async function save(name: string, content: JsonObject): Promise<void> {
  await writeFile(join(FOLDER, `${name}.json`), `${JSON.stringify(content, null, 1)}\n`);
}

/** "<event>.<action>" and what makes it another situation: "pull_request.closed.merged". */
function situationOf({ environment, event }: Record): string {
  const name = environment['GITHUB_EVENT_NAME'] ?? '';
  const has = (key: string, text: string): boolean =>
    JSON.stringify(event[key] ?? '').includes(text);
  const parts = [
    name,
    typeof event['action'] === 'string' ? event['action'] : '',
    has('pull_request', '"merged":true') ? 'merged' : '',
    has('pull_request', 'stranger/shop') ? 'fork' : '',
    name === 'push' && has('head_commit', 'Merge pull request') ? 'merge' : '',
    name === 'workflow_run' && has('workflow_run', '@refs/pull/') ? 'of-pull' : '',
  ];
  return parts.filter(Boolean).join('.');
}

async function act(host: GiteaHost, at: { records: string; recorder: string }): Promise<void> {
  const workflow = (name: string, on: string): string => `name: ${name}
on:
${on}
jobs:
  record:
    runs-on: ubuntu-latest
    steps:
      - run: node ${at.recorder}
        env:
          RECORDS: ${at.records}
          TOKEN: \${{ github.token }}
`;
  const team = await host.user(OWNER);
  const repository = await Repository.create(team, 'shop');
  const recorded = async (what: string): Promise<void> => {
    await waitUntil(what, async () =>
      (await readdir(at.records)).some((name) => name.startsWith(what)),
    );
  };
  await repository.commit({
    '.github/workflows/record.yml': workflow(
      'record',
      `  push:
    branches: [main]
  create:
  delete:
  pull_request:
    types: [opened, closed]
  pull_request_target:
    types: [closed]
  issue_comment:
  workflow_dispatch:
  schedule:
    - cron: '* * * * *'`,
    ),
    '.github/workflows/after.yml': workflow(
      'after',
      '  workflow_run:\n    workflows: [record]\n    types: [completed]',
    ),
  });

  const closed = await repository.openPull('feature/closed');
  await repository.api.post(`${repository.path}/issues/${closed.number}/comments`, {
    body: 'hello',
  });
  await recorded('issue_comment');
  await repository.dispatch('record.yml', 'feature/closed');
  await recorded('workflow_dispatch');
  await repository.closePull(closed.number);
  await repository.deleteBranch('feature/closed');
  await recorded('delete');
  const merged = await repository.openPull('feature/merged');
  await repository.mergePull(merged.number, { delete_branch_after_merge: true });

  const stranger = await host.user('stranger');
  await stranger.post(`${repository.path}/forks`);
  await waitUntil('the fork', async () => {
    return (await stranger.ask('GET', '/repos/stranger/shop/branches/main')).status === 200;
  });
  await stranger.post('/repos/stranger/shop/contents/change.txt', {
    content: Buffer.from('a change').toString('base64'),
    new_branch: 'topic',
    message: 'A change',
  });
  const outside = repository.as(stranger);
  const { number } = await outside.requestPull('stranger:topic');
  await outside.closePull(number);
  const waiting = await waitUntil('runs for the fork', async () => {
    const runs = await repository.runs();
    const found = runs.filter(({ path }) => path.endsWith(`@refs/pull/${number}/head`));
    return found.length >= 2 && found;
  });
  for (const { id } of waiting) {
    // Once somebody is approved, the other run needs it no more.
    await host
      .browse(OWNER, 'POST', `/${repository.fullName}/actions/runs/${id}/approve`)
      .catch(() => undefined);
  }
  let runs = await repository.runs();
  await waitUntil(
    () => `all runs have ended: ${runs.map(({ path, status }) => `${path} ${status}`)}`,
    async () => {
      runs = await repository.runs();
      return runs.every(({ status, event }) => status === 'completed' || event === 'schedule');
    },
  );
  await waitUntil('a schedule', () => recorded('schedule').then(() => true), {
    timeoutMs: 150_000,
  });
}

/** No secret, no address and no folder of this machine. */
function clean(value: Json, host: GiteaHost): Json {
  const secrets = [
    ...JSON.stringify(value).matchAll(
      /"(?:GIT[A-Z]+_TOKEN|ACTIONS_RUNTIME_TOKEN|ACTIONS_ID_TOKEN_REQUEST_TOKEN|TOKEN)":"([^"]+)"/g,
    ),
  ].map(([, secret]) => secret as string);
  let text = JSON.stringify(value);
  for (const secret of secrets) text = text.replaceAll(secret, '<secret>');
  text = text.replaceAll(host.url, SERVER).replaceAll(host.folder, '/home/gitea');
  text = text
    .replaceAll(/127\.0\.0\.1:\d+/g, 'gitea.example.com')
    .replaceAll(/192\.0\.2\.\d+:\d+/g, 'gitea.example.com');
  return JSON.parse(text) as Json;
}

await main();
