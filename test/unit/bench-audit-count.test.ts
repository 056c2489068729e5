import { expect, test } from 'vitest';
import { collectionsRead, requestsOf } from '../../bench/audit-count.ts';

test('counts the finished requests of one user', () => {
  const lines = [
    event({}),
    event({ stage: 'RequestReceived' }),
    event({ stage: 'Panic' }),
    event({ user: { username: 'somebody', groups: ['teardown-gate'] } }),
    event({ responseStatus: { code: 429 } }),
    event({}).slice(0, -20), // being written
    '',
  ];

  const [first, ...others] = requestsOf(lines, 'teardown-gate');
  expect(others.map(({ status }) => status)).toEqual([200, 429]);
  expect(first).toEqual({
    ...{ at: Date.UTC(2026, 0, 2, 3, 4, 5, 678), verb: 'list', status: 200 },
    ...{ uri: '/api/v1/namespaces/stuck/configmaps?limit=500', userAgent: 'kubectl/v1.36.3' },
  });
});

test('collects the pages of each collection in the namespace, ordered by time', () => {
  const lines = [
    page('/api/v1/namespaces/stuck/configmaps?limit=1000&continue=b', 3),
    page('/api/v1/namespaces/stuck/configmaps?limit=500', 1),
    page('/api/v1/namespaces/stuck/secrets?limit=500', 2),
    page('/api/v1/namespaces/stuck/pods', 4),
    page('/api/v1/namespaces/stuck/events?limit=500&fieldSelector=a%3Db', 5),
    page('/api/v1/namespaces/other/secrets?limit=500', 6),
    page('/apis/apps/v1/deployments?limit=500', 7),
    event({ verb: 'get', requestURI: '/api/v1/namespaces/stuck/configmaps/x' }),
  ];

  expect(collectionsRead(requestsOf(lines, 'teardown-gate'), 'stuck')).toEqual([
    { path: '/api/v1/namespaces/stuck/configmaps', limits: [500, 1_000] },
    { path: '/api/v1/namespaces/stuck/secrets', limits: [500] },
    { path: '/api/v1/namespaces/stuck/pods', limits: [0] },
  ]);
});

function page(requestURI: string, second: number): string {
  return event({ requestURI, requestReceivedTimestamp: `2026-01-02T03:04:0${second}.000000Z` });
}

function event(fields: Record<string, unknown>): string {
  return JSON.stringify({
    kind: 'Event',
    stage: 'ResponseComplete',
    requestURI: '/api/v1/namespaces/stuck/configmaps?limit=500',
    verb: 'list',
    user: { username: 'teardown-gate' },
    userAgent: 'kubectl/v1.36.3',
    responseStatus: { metadata: {}, code: 200 },
    requestReceivedTimestamp: '2026-01-02T03:04:05.678901Z',
    ...fields,
  });
}
