import { expect, test } from 'vitest';
import { objectDetail } from '../../src/diagnose/detail.ts';
import { namespacePath } from '../../src/kubernetes/paths.ts';
import { namespaceFacts } from '../../src/model/facts/metadata.ts';
import type { LogSource, Snapshot, Wanted } from '../../src/model/snapshot.ts';
import { observe } from '../../src/observe/observe.ts';
import { FakeClock } from './fake-clock.ts';
import { FakeCluster } from './fake-cluster.ts';

const SOURCE: LogSource = { namespace: 'ops', pod: 'op-0', container: 'main', isPrevious: false };
const AT = '2026-03-02T10:01:20Z';

async function look(isAllowed: boolean) {
  const cluster = new FakeCluster(new FakeClock());
  for (const name of ['one', 'two']) cluster.namespace(name);
  cluster.logs.set('ops/op-0/main', `${AT} about one\n${AT} about two\n${AT} token=abc of one\n`);
  const want = (snapshot: Snapshot): Wanted => {
    if (isAllowed) snapshot.logs ??= {};
    return {
      ...{ cluster: [], places: [], nodes: [], definitions: [], details: [], partners: [] },
      ...{ behind: [], trials: [], deletions: [] },
      logs: [SOURCE],
      parseDetail: objectDetail,
    };
  };
  const facts = ['one', 'two'].map((name) => namespaceFacts(cluster.peek(namespacePath(name))));
  const deps = { api: cluster, clock: new FakeClock(), signal: new AbortController().signal };
  const snapshots = await observe(facts, want, deps);
  const requests = cluster.requests.filter((request) => request.includes('/log?'));
  return { logs: snapshots.map(({ logs }) => logs), requests };
}

test('a log that several namespaces need is read once, and keeps what mentions one of them', async () => {
  const { logs, requests } = await look(true);
  expect(requests).toHaveLength(1);
  expect(requests[0]).toMatch(/tailLines=500.*limitBytes=262144/);
  expect(requests[0]).toMatch(/sinceTime=/);
  const key = 'ops/op-0/main';
  expect(logs.map((log) => log?.[key])).toEqual([
    { ok: true, value: [`${AT} about one`, `${AT} about two`, `${AT} token=*** of one`] },
    { ok: true, value: [`${AT} about one`, `${AT} about two`, `${AT} token=*** of one`] },
  ]);
});

test('no log is read unless owner-logs allows it', async () => {
  const { logs, requests } = await look(false);
  expect({ logs, requests }).toEqual({ logs: [undefined, undefined], requests: [] });
});
