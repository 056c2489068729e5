import { describe, expect, test } from 'vitest';
import { chooseProxy } from '../../src/kubernetes/connections.ts';

const PROXY = 'http://proxy.example:3128';

describe('which proxy', () => {
  test.each([
    {
      what: 'https takes HTTPS_PROXY',
      url: 'https://k8s.example',
      env: { HTTPS_PROXY: PROXY },
      want: PROXY,
    },
    {
      what: 'or https_proxy',
      url: 'https://k8s.example',
      env: { https_proxy: PROXY },
      want: PROXY,
    },
    {
      what: 'upper case first',
      url: 'https://k8s.example',
      env: { HTTPS_PROXY: PROXY, https_proxy: 'http://other:1' },
      want: PROXY,
    },
    {
      what: 'an empty variable is not set',
      url: 'https://k8s.example',
      env: { HTTPS_PROXY: '', https_proxy: PROXY },
      want: PROXY,
    },
    {
      what: 'https does not take HTTP_PROXY',
      url: 'https://k8s.example',
      env: { HTTP_PROXY: PROXY },
      want: undefined,
    },
    {
      what: 'http takes HTTP_PROXY',
      url: 'http://k8s.example',
      env: { HTTP_PROXY: PROXY },
      want: PROXY,
    },
    {
      what: 'nor ALL_PROXY',
      url: 'https://k8s.example',
      env: { ALL_PROXY: PROXY },
      want: undefined,
    },
    { what: 'none', url: 'https://k8s.example', env: {}, want: undefined },
    {
      what: 'without a scheme it is http',
      url: 'https://k8s.example',
      env: { HTTPS_PROXY: 'proxy.example:3128' },
      want: PROXY,
    },
    {
      what: 'localhost is direct',
      url: 'https://localhost:6443',
      env: { HTTPS_PROXY: PROXY },
      want: undefined,
    },
    {
      what: 'loopback is direct',
      url: 'https://127.9.9.9:6443',
      env: { HTTPS_PROXY: PROXY },
      want: undefined,
    },
    {
      what: 'loopback v6 is direct',
      url: 'https://[::1]:6443',
      env: { HTTPS_PROXY: PROXY },
      want: undefined,
    },
  ])('$what', ({ url, env, want }) => {
    const proxy = chooseProxy(new URL(url), env);
    expect(proxy?.origin).toBe(want);
  });

  test('one that cannot be read is refused, and not gone around', () => {
    const env = { HTTPS_PROXY: 'http://' };
    expect(() => chooseProxy(new URL('https://k8s.example'), env)).toThrow(
      'the proxy in the environment is not one of http://, https:// or socks5://',
    );
  });

  test('with a password that is no part of a URL is refused in words that do not repeat it', () => {
    const proxyUrl = 'http://ci:50%off@proxy.example:3128';
    expect(() => chooseProxy(new URL('https://k8s.example'), {}, proxyUrl)).toThrow(
      'the "proxy-url" of the cluster has a % in its name or password that must be written as %25',
    );
  });

  test('with a user and a password keeps them', () => {
    const env = { HTTPS_PROXY: 'ci:secret@proxy.example:3128' };
    expect(chooseProxy(new URL('https://k8s.example'), env)?.username).toBe('ci');
  });
});

describe('NO_PROXY', () => {
  test.each([
    { noProxy: '*', host: 'k8s.example', direct: true },
    { noProxy: 'other, *', host: 'k8s.example', direct: true },
    { noProxy: 'k8s.example', host: 'k8s.example', direct: true },
    { noProxy: 'K8S.Example', host: 'k8s.example', direct: true },
    { noProxy: 'example', host: 'k8s.example', direct: true },
    { noProxy: 'ample', host: 'k8s.example', direct: false },
    { noProxy: '.example', host: 'k8s.example', direct: true },
    { noProxy: '.k8s.example', host: 'k8s.example', direct: false },
    { noProxy: '*.k8s.example', host: 'api.k8s.example', direct: true },
    { noProxy: '*.k8s.example', host: 'k8s.example', direct: false },
    { noProxy: 'a.example, k8s.example ,b.example', host: 'k8s.example', direct: true },
    { noProxy: 'k8s.example:6443', host: 'k8s.example:6443', direct: true },
    { noProxy: 'k8s.example:6444', host: 'k8s.example:6443', direct: false },
    { noProxy: 'k8s.example:443', host: 'k8s.example', direct: true },
    { noProxy: '10.0.0.1', host: '10.0.0.1:6443', direct: true },
    { noProxy: '10.0.0.1:443', host: '10.0.0.1:6443', direct: false },
    { noProxy: '10.0.0.1', host: '10.0.0.10', direct: false },
    { noProxy: '10.0.0.0/8', host: '10.200.3.4:6443', direct: true },
    { noProxy: '10.1.2.3/8', host: '10.200.3.4', direct: true },
    { noProxy: '10.0.0.0/8', host: '11.0.0.1', direct: false },
    { noProxy: '10.0.0.0/8', host: 'k8s.example', direct: false },
    { noProxy: '0.0.0.0/0', host: '203.0.113.9', direct: true },
    { noProxy: '10.0.0.0/33', host: '10.0.0.1', direct: false },
    { noProxy: '10.0.0.0/x', host: '10.0.0.1', direct: false },
    { noProxy: '10.0.0.0/', host: '10.0.0.1', direct: false },
    { noProxy: 'fd00::/8', host: '[fd12::1]:6443', direct: true },
    { noProxy: 'fd00::/8', host: '[fe80::1]', direct: false },
    { noProxy: 'fd12::1', host: '[fd12:0:0::1]:6443', direct: true },
    { noProxy: '[fd12::1]:6443', host: '[fd12::1]:6443', direct: true },
    { noProxy: '[fd12::1]:6444', host: '[fd12::1]:6443', direct: false },
    { noProxy: '[fd12::1]', host: '[fd12::1]', direct: true },
    { noProxy: ',,:6443,', host: 'k8s.example:6443', direct: false },
    { noProxy: '', host: 'k8s.example', direct: false },
  ])('"$noProxy" covers $host: $direct', ({ noProxy, host, direct }) => {
    const env = { HTTPS_PROXY: PROXY, NO_PROXY: noProxy };
    expect(chooseProxy(new URL(`https://${host}`), env) === undefined).toBe(direct);
  });

  test('is read in lower case as well', () => {
    const env = { HTTPS_PROXY: PROXY, no_proxy: '10.0.0.0/8' };
    expect(chooseProxy(new URL('https://10.1.1.1'), env)).toBeUndefined();
  });
});
