import { expect, test } from 'vitest';
import { ActionError, describeError } from '../../src/base/errors.ts';
import { chooseProxy } from '../../src/kubernetes/connections.ts';
import { expectPairs } from '../stub/pairs.ts';

test('the proxy for each server, or none', () =>
  expectPairs('proxies.txt', (line) => {
    const { url, env, proxyUrl } = JSON.parse(line);
    try {
      const proxy = chooseProxy(new URL(url), env, proxyUrl);
      return proxy === undefined ? 'direct' : `${proxy.origin} ${proxy.username}`.trim();
    } catch (error) {
      expect(error).toBeInstanceOf(ActionError);
      return describeError(error);
    }
  }));
