import { beforeAll, describe, expect, test } from 'vitest';
import { createRedactor } from '../../src/base/redact.ts';
import type { KubernetesApi } from '../../src/kubernetes/api.ts';
import { base64, createAuthority, issue, type KeyPair } from '../stub/certificates.ts';
import { connectTo, failureIn, type To, valueIn } from './connect-to.ts';
import { json, namespace } from './servers/answers.ts';
import { startConnectProxy } from './servers/connect-proxy.ts';
import { type FakeServer, startServer } from './servers/http-server.ts';
import { closedPort } from './servers/raw-server.ts';

const PATH = '/api/v1/namespaces/demo';

let authority: KeyPair;
let pair: KeyPair;
beforeAll(async () => {
  authority = await createAuthority('cluster-ca');
  pair = await issue(authority, { hosts: ['127.0.0.1', 'kubernetes.test'] });
});

/** Loopback is never proxied by the environment, so these tests name the proxy in the kubeconfig. */
async function through(
  proxyUrl: string,
  to: To = {},
): Promise<{ api: KubernetesApi; server: FakeServer }> {
  const server = await startServer(json(namespace('demo')), pair);
  const cluster = {
    'certificate-authority-data': base64(authority.cert),
    'proxy-url': proxyUrl,
    ...to.cluster,
  };
  return { api: await connectTo(server.url, { ...to, cluster }), server };
}

test('requests use a tunnel through the proxy of the kubeconfig', async () => {
  const proxy = await startConnectProxy();
  const { api, server } = await through(proxy.url);
  valueIn(await api.get(PATH));
  expect(proxy.asked).toEqual([`CONNECT 127.0.0.1:${server.port}`]);
  expect(server.requests).toHaveLength(1);
});

test('the certificate of the server is also verified through a proxy', async () => {
  const proxy = await startConnectProxy();
  const stranger = await createAuthority('other-ca');
  const cluster = { 'certificate-authority-data': base64(stranger.cert) };
  const { api } = await through(proxy.url, { cluster });
  expect(failureIn(await api.get(PATH)).message).toBe(
    `unknown certificate authority (through the proxy ${proxy.url})`,
  );
});

test('name and password of the proxy are sent to it and appear nowhere else', async () => {
  const proxy = await startConnectProxy();
  const redactor = createRedactor();
  const lines: string[] = [];
  const options = { redactor, debug: (line: string) => lines.push(line) };
  const withPassword = proxy.url.replace('://', '://ci:p%40ssw0rd-1@');
  const { api, server } = await through(withPassword, { options });
  valueIn(await api.get(PATH));
  expect(proxy.authorizations).toEqual([`Basic ${base64('ci:p@ssw0rd-1')}`]);
  expect(server.requests[0]?.headers['proxy-authorization']).toBeUndefined();
  expect(lines.join('\n')).not.toContain('ssw0rd');
  expect(redactor.redact('p@ssw0rd-1')).toBe('***');
});

describe('a proxy that fails', () => {
  test('refuses the tunnel', async () => {
    const proxy = await startConnectProxy({ refuse: 407 });
    const { api } = await through(proxy.url);
    expect(failureIn(await api.get(PATH))).toEqual({
      kind: 'network',
      message: `the proxy answered 407 when asked for a connection (through the proxy ${proxy.url})`,
    });
    expect(proxy.asked).toHaveLength(1);
  });

  test('does not listen', async () => {
    const url = `http://127.0.0.1:${await closedPort()}`;
    const { api } = await through(url);
    expect(failureIn(await api.get(PATH)).message).toBe(
      `connection refused (through the proxy ${url})`,
    );
  });
});

describe('the proxy of the environment', () => {
  test('is used for a host that is not on loopback', async () => {
    const proxy = await startConnectProxy({ refuse: 502 });
    const options = { env: { HTTPS_PROXY: proxy.url } };
    const api = await connectTo('https://kubernetes.test:6443', { options });
    const result = failureIn(await api.get(PATH, { retries: 0 }));
    expect(result.message).toBe(
      `the proxy answered 502 when asked for a connection (through the proxy ${proxy.url})`,
    );
    expect(proxy.asked).toEqual(['CONNECT kubernetes.test:6443']);
  });
});
