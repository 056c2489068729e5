import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { commentKey } from '../../src/publish/comment-key.ts';
import { readGithubRun } from '../../src/publish/run-context.ts';

const ENV = {
  GITHUB_REPOSITORY: 'octo-org/shop',
  GITHUB_EVENT_NAME: 'pull_request',
  GITHUB_SERVER_URL: 'https://github.com',
  GITHUB_API_URL: 'https://api.github.com',
  GITHUB_GRAPHQL_URL: 'https://api.github.com/graphql',
  GITHUB_RUN_ID: '9001',
  GITHUB_RUN_NUMBER: '812',
  GITHUB_RUN_ATTEMPT: '2',
};

describe('the workflow run', () => {
  test.each([
    {
      what: 'on GitHub',
      env: ENV,
      url: 'https://github.com/octo-org/shop/actions/runs/9001/attempts/2',
      label: 'run 812, attempt 2',
    },
    {
      what: 'on a server of their own',
      env: { ...ENV, GITHUB_SERVER_URL: 'https://ghes.example/' },
      url: 'https://ghes.example/octo-org/shop/actions/runs/9001/attempts/2',
      label: 'run 812, attempt 2',
    },
    {
      what: 'on Gitea, which counts runs per repository',
      env: { ...ENV, GITEA_ACTIONS: 'true', GITHUB_SERVER_URL: 'https://gitea.example' },
      url: 'https://gitea.example/octo-org/shop/actions/runs/812',
      label: 'run 812, attempt 2',
    },
    {
      what: 'with next to nothing known',
      env: { GITHUB_REPOSITORY: 'o/r', GITHUB_EVENT_NAME: 'x', GITHUB_RUN_ID: '1) [x](http://h' },
      url: 'https://github.com/o/r/actions/runs/',
      label: 'run ?, attempt 1',
    },
  ])('$what', ({ env, url, label }) => {
    expect(readGithubRun(env)).toMatchObject({ url, label });
  });

  test.each([
    { what: 'outside of a workflow', env: {} },
    { what: 'without an event', env: { ...ENV, GITHUB_EVENT_NAME: '' } },
    { what: 'without a repository', env: { ...ENV, GITHUB_REPOSITORY: 'nonsense' } },
  ])('is none $what', ({ env }) => {
    expect(readGithubRun(env)).toBeUndefined();
  });

  test('has no GraphQL where none is named', () => {
    expect(readGithubRun({ ...ENV, GITHUB_GRAPHQL_URL: '' })?.graphqlUrl).toBeUndefined();
  });

  test('reads the payload of the event, and does without when it cannot', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'event-'));
    try {
      const path = join(folder, 'event.json');
      await writeFile(path, '{"action":"closed"}');
      const payload = (file: string | undefined): unknown =>
        readGithubRun({ ...ENV, GITHUB_EVENT_PATH: file })?.event.payload;
      expect(payload(path)).toEqual({ action: 'closed' });
      expect(payload(join(folder, 'none.json'))).toBeNull();
      await writeFile(path, 'not JSON');
      expect(payload(path)).toBeNull();
      expect(payload(undefined)).toBeNull();
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

describe('the key of the comment', () => {
  const GATE = { server: 'https://s', namespaces: ['a', 'b'], selector: '', commentKey: '' };

  test('is 16 hexadecimal characters, whatever goes in', () => {
    expect(commentKey({ ...GATE, commentKey: '--> <!-- \n' })).toMatch(/^[0-9a-f]{16}$/);
  });

  test.each([
    { what: 'the order of names', other: { ...GATE, namespaces: ['b', 'a'] }, isSame: true },
    { what: 'the server', other: { ...GATE, server: 'https://t' }, isSame: false },
    { what: 'the names', other: { ...GATE, namespaces: ['a'] }, isSame: false },
    { what: 'the selector', other: { ...GATE, selector: 'x=y' }, isSame: false },
    { what: 'the input comment-key', other: { ...GATE, commentKey: 'x' }, isSame: false },
    {
      what: 'where one ends and the next begins',
      other: { ...GATE, selector: 'x', commentKey: '' },
      isSame: false,
    },
  ])('with another: $what; the same: $isSame', ({ other, isSame }) => {
    expect(commentKey(other) === commentKey(GATE)).toBe(isSame);
  });
});
