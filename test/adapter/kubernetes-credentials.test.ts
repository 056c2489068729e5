import { describe, expect, test } from 'vitest';
import { createRedactor } from '../../src/base/redact.ts';
import {
  connectTo,
  failureIn,
  TestClock,
  temporaryFolder,
  valueIn,
  writeFile,
} from './connect-to.ts';
import { accepting, json, namespace, unauthorized } from './servers/answers.ts';
import { type Recorded, startServer } from './servers/http-server.ts';

const PATH = '/api/v1/namespaces/demo';
const answer = json(namespace('demo'));

function sentTokens(requests: readonly Recorded[]): (string | undefined)[] {
  return requests.map((request) => request.headers.authorization?.replace('Bearer ', ''));
}

describe('a token', () => {
  test('with a line break inside is refused before it is sent', async () => {
    const connecting = connectTo('http://127.0.0.1:1', { user: { token: 'token-00\n01-token' } });
    await expect(connecting).rejects.toMatchObject({
      message: 'the token of user "u" is empty or has characters in it that no token has',
    });
  });

  test('that is refused is a failed read of kind unauthorized, without a retry', async () => {
    const server = await startServer(unauthorized);
    const api = await connectTo(server.url, { user: { token: 'token-0001' } });
    expect(failureIn(await api.get(PATH))).toMatchObject({
      kind: 'unauthorized',
      status: 401,
      message: '401 Unauthorized',
    });
    expect(server.requests).toHaveLength(1);
  });

  test('nothing is sent for a user without credentials', async () => {
    const server = await startServer(answer);
    await (await connectTo(server.url)).get(PATH);
    expect(server.requests[0]?.headers.authorization).toBeUndefined();
  });
});

describe('a token file', () => {
  test('is read relative to the kubeconfig and trimmed', async () => {
    const folder = temporaryFolder();
    writeFile(folder, 'token', 'token-0001\n');
    const server = await startServer(accepting('token-0001'));
    const api = await connectTo(server.url, { folder, user: { tokenFile: 'token' } });
    valueIn(await api.get(PATH));
  });

  test('is read again after a minute', async () => {
    const folder = temporaryFolder();
    const clock = new TestClock();
    writeFile(folder, 'token', 'token-0001');
    const server = await startServer(answer);
    const user = { tokenFile: 'token' };
    const api = await connectTo(server.url, { folder, user, options: { clock } });
    await api.get(PATH);
    writeFile(folder, 'token', 'token-0002');
    await api.get(PATH);
    clock.advance(61_000);
    await api.get(PATH);
    expect(sentTokens(server.requests)).toEqual(['token-0001', 'token-0001', 'token-0002']);
  });

  test('is read again after a 401, for mutations too', async () => {
    const folder = temporaryFolder();
    writeFile(folder, 'token', 'token-0001');
    const server = await startServer(accepting('token-0002'));
    const api = await connectTo(server.url, { folder, user: { tokenFile: 'token' } });
    writeFile(folder, 'token', 'token-0002');
    valueIn(await api.send({ method: 'DELETE', path: PATH }));
    expect(sentTokens(server.requests)).toEqual(['token-0001', 'token-0002']);
  });

  test.each([
    { tokenFile: 'q7Zr2kX9vB4mN8tL1pW6' },
    { tokenFile: '/dev/null' },
    {
      'client-certificate': 'me.crt',
      'client-key': `LS0tLS1CRUdJTiBFQyBQUklWQVRF${'K'.repeat(300)}`,
    },
  ])('that is a device, or whose path is its content, is not shown: %j', async (user) => {
    const folder = temporaryFolder();
    writeFile(folder, 'me.crt', '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n');
    await expect(connectTo('http://127.0.0.1:1', { folder, user })).rejects.toMatchObject({
      message: expect.stringMatching(
        /^cannot read a file that .* names in \S+\/config: (?:no such|it is a device|the system says E)/,
      ),
    });
  });
});

test('impersonation of a name is sent', async () => {
  const server = await startServer(answer);
  await (await connectTo(server.url, { user: { token: 'token-0001', as: 'robot' } })).get(PATH);
  expect(server.requests[0]?.headers['impersonate-user']).toBe('robot');
});

test.each([
  ['auth-provider', { name: 'oidc', config: { 'id-token': 'token-0001' } }],
  ['username', 'ci'],
  ['as-groups', ['system:masters']],
])('%s is refused, with what to use instead', async (field, value) => {
  const connecting = connectTo('http://127.0.0.1:1', { user: { [field]: value } });
  await expect(connecting).rejects.toMatchObject({
    message: `user "u" has "${field}", which is not supported`,
    hint: expect.stringMatching(/exec credential plugin .*kubelogin.*gke-gcloud-auth-plugin/),
  });
});

test('every secret of at least 8 characters is registered', async () => {
  const heard: string[] = [];
  const redactor = createRedactor((line) => heard.push(line));
  const options = { redactor };
  await connectTo('http://127.0.0.1:1', { user: { token: 'token-0001' }, options });
  await connectTo('http://127.0.0.1:1', { user: { token: 'short' }, options });
  expect(heard).toEqual(['token-0001']);
  expect(redactor.redact('a token-0001 b short')).toBe('a *** b short');
});
