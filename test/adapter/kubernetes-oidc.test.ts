import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createRedactor } from '../../src/base/redact.ts';
import { connectTo, TestClock, type To, temporaryFolder, valueIn } from './connect-to.ts';
import { json, namespace, sendJson, text } from './servers/answers.ts';
import { base64, createAuthority, issue } from './servers/certificates.ts';
import { startConnectProxy } from './servers/connect-proxy.ts';
import {
  type Answer,
  type FakeServer,
  startServer,
  type TlsOptions,
} from './servers/http-server.ts';

/** The auth provider `oidc` of kubectl, with a provider of our own. */

const PATH = '/api/v1/namespaces/demo';
const answer = json(namespace('demo'));

/** Ends this many seconds from now. */
function idToken(name: string, seconds: number): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'RS256' })}.${part({ sub: name, exp: Math.floor(Date.now() / 1000) + seconds })}.${name}`;
}

interface Login {
  /** What the token endpoint answers; the last one goes on for ever. */
  answers?: { status?: number; body: object }[];
  /** How a client has to say who it is. */
  takes?: 'header' | 'form';
  tls?: TlsOptions;
}

async function startProvider({
  answers = [],
  takes = 'header',
  tls,
}: Login = {}): Promise<FakeServer & { forms: Record<string, string>[] }> {
  const forms: Record<string, string>[] = [];
  const serve: Answer = (request, response) => {
    if (request.url === '/realm/.well-known/openid-configuration') {
      const endpoint = new URL('/token', server.url).href;
      return sendJson(response, { issuer: `${server.url}/realm`, token_endpoint: endpoint });
    }
    const isInHeader = request.headers.authorization === `Basic ${base64('gate:very-secret-0001')}`;
    const form = Object.fromEntries(new URLSearchParams(request.body));
    const isInForm = form['client_secret'] === 'very-secret-0001';
    if (takes === 'header' ? !isInHeader : !isInForm) {
      return sendJson(response, { error: 'invalid_client' }, 401);
    }
    forms.push(form);
    const next = answers[Math.min(forms.length, answers.length) - 1];
    return sendJson(response, next?.body ?? {}, next?.status ?? 200);
  };
  const server = await startServer(serve, tls);
  return Object.assign(server, { forms });
}

async function connectWith(issuer: string, config: object = {}, to: To = {}) {
  const folder = to.folder ?? temporaryFolder();
  const server = await startServer(answer);
  const provider = {
    name: 'oidc',
    config: {
      'client-id': 'gate',
      'client-secret': 'very-secret-0001',
      'id-token': idToken('old', -60),
      'refresh-token': 'refresh-token-1',
      'idp-issuer-url': issuer,
      ...config,
    },
  };
  const api = await connectTo(server.url, { ...to, folder, user: { 'auth-provider': provider } });
  const sent = () => server.requests.map(({ headers }) => headers.authorization?.split('.')[2]);
  return { api, sent, kubeconfig: () => readFileSync(join(folder, 'config'), 'utf8') };
}

test('an id-token that is valid is sent as it is', async () => {
  const { api, sent } = await connectWith('https://127.0.0.1:1', { 'id-token': idToken('a', 600) });
  valueIn(await api.get(PATH));
  expect(sent()).toEqual(['a']);
});

test('an expired id-token is renewed, once, with the certificate authority of the provider', async () => {
  const authority = await createAuthority('idp-ca');
  const [first, second] = [idToken('first', 600), idToken('second', 1_200)];
  const provider = await startProvider({
    answers: [
      { body: { id_token: first } },
      { body: { id_token: second, refresh_token: 'refresh-token-2' } },
    ],
    tls: await issue(authority),
  });
  const clock = new TestClock();
  const trust = { 'idp-certificate-authority-data': base64(authority.cert) };
  const issuer = `${provider.url}/realm/`;
  const { api, sent } = await connectWith(issuer, trust, { options: { clock } });
  await Promise.all([api.get(PATH), api.get(PATH)]);
  clock.advance(595_000);
  await api.get(PATH);
  expect(sent()).toEqual(['first', 'first', 'second']);
  // The provider gave no new refresh token with the first answer: the old one is still good.
  const form = { grant_type: 'refresh_token', refresh_token: 'refresh-token-1' };
  expect(provider.forms).toEqual([form, form]);
});

test('new tokens are written to the kubeconfig', async () => {
  const fresh = idToken('fresh', 600);
  const body = { id_token: fresh, refresh_token: 'refresh-token-2' };
  const provider = await startProvider({ answers: [{ body }] });
  const folder = temporaryFolder();
  const old = idToken('old', -60);
  const { kubeconfig } = await connectWith(
    `${provider.url}/realm`,
    { 'id-token': old },
    { folder },
  );
  expect(kubeconfig()).toContain(fresh);
  expect(kubeconfig()).toContain('"refresh-token":"refresh-token-2"');
  expect(kubeconfig()).not.toContain(old);
});

test('the client secret is sent in the form if the provider requires that', async () => {
  const provider = await startProvider({
    answers: [{ body: { id_token: idToken('c', 600) } }],
    takes: 'form',
  });
  const { api, sent } = await connectWith(`${provider.url}/realm`);
  valueIn(await api.get(PATH));
  expect(sent()).toEqual(['c']);
  expect(provider.forms).toEqual([expect.objectContaining({ client_id: 'gate' })]);
});

test('a missing id-token is requested', async () => {
  const provider = await startProvider({ answers: [{ body: { id_token: idToken('d', 600) } }] });
  const { api, sent } = await connectWith(`${provider.url}/realm`, { 'id-token': '' });
  valueIn(await api.get(PATH));
  expect(sent()).toEqual(['d']);
});

test('new tokens and those of the kubeconfig are secrets', async () => {
  const heard: string[] = [];
  const fresh = idToken('e', 600);
  const provider = await startProvider({
    answers: [{ body: { id_token: fresh, refresh_token: 'refresh-token-2' } }],
  });
  const options = { redactor: createRedactor((line) => heard.push(line)) };
  await connectWith(`${provider.url}/realm`, {}, { options });
  expect(heard).toEqual(
    expect.arrayContaining(['refresh-token-1', 'very-secret-0001', fresh, 'refresh-token-2']),
  );
});

test('a token that is refused before its expiry is not renewed', async () => {
  const provider = await startProvider({ answers: [{ body: { id_token: idToken('f', 600) } }] });
  const server = await startServer(text(401, 'no'));
  const config = { 'id-token': idToken('valid', 600), 'refresh-token': 'refresh-token-1' };
  const user = {
    'auth-provider': {
      name: 'oidc',
      config: { ...config, 'client-id': 'gate', 'idp-issuer-url': provider.url },
    },
  };
  await (await connectTo(server.url, { user })).get(PATH);
  expect(server.requests).toHaveLength(1);
});

test('the provider is reached through the proxy of the environment', async () => {
  const proxy = await startConnectProxy({ refuse: 502 });
  const options = { env: { HTTPS_PROXY: proxy.url } };
  await expect(connectWith('https://idp.test', {}, { options })).rejects.toThrow(
    'https://idp.test: the proxy answered 502 when asked for a connection',
  );
  expect(proxy.asked).toEqual(['CONNECT idp.test:443']);
});

test.each([
  {
    what: 'no refresh token',
    config: { 'refresh-token': undefined },
    says: 'cannot renew the id-token of user "u": it has expired, and there is no refresh-token',
  },
  {
    what: 'a provider without TLS',
    config: { 'idp-issuer-url': 'http://idp.test' },
    says: 'the login provider of user "u" is http://idp.test: without TLS, credentials could be read on the way',
  },
  {
    what: 'a provider that nobody knows',
    config: { 'idp-issuer-url': undefined },
    says: 'the auth provider of user "u" has no "idp-issuer-url" or no "client-id"',
  },
])('$what is an error', async ({ config, says }) => {
  await expect(connectWith('https://127.0.0.1:1', config)).rejects.toThrow(says);
});

test.each([
  {
    what: 'refuses: its words are shown, without secrets',
    answers: [
      {
        status: 400,
        body: { error: 'invalid_grant', error_description: 'token refresh-token-1 is used up' },
      },
    ],
    says: 'answered 400: token *** is used up',
  },
  {
    what: 'gives no id-token',
    answers: [{ body: { access_token: 'x' } }],
    says: 'gave no id_token',
  },
])('a provider that $what', async ({ answers, says }) => {
  const provider = await startProvider({ answers });
  const issuer = `${provider.url}/realm`;
  await expect(
    connectWith(issuer, {}, { options: { redactor: createRedactor() } }),
  ).rejects.toMatchObject({
    code: 'kube-unauthorized',
    message: `cannot renew the id-token of user "u": ${issuer} ${says}`,
  });
});

test('an answer without a token endpoint is an error with the address', async () => {
  const server = await startServer(text(200, '<html>'));
  await expect(connectWith(server.url)).rejects.toThrow(`${server.url} names no token_endpoint`);
});
