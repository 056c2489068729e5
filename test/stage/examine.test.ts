import { describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../src/base/time.ts';
import { objectDetail } from '../../src/diagnose/detail.ts';
import { examine } from '../../src/gate/examine.ts';
import { namespaceFacts } from '../../src/model/facts/metadata.ts';
import { outcomeOf } from '../../src/model/outcome.ts';
import { readFailed, readOk } from '../../src/model/read.ts';
import { oneAfterAnother } from '../../src/observe/collections.ts';
import { readPartner, readSamples } from '../../src/observe/objects.ts';
import { CONFIG_MAPS, FORBIDDEN, PODS, pathOf, WIDGETS } from './fake-cluster.ts';
import { DEMO, type Stage, stage } from './gate-run.ts';

/** What an examination within 30 s sees in this namespace. */
async function look({ clock, cluster: api, cancel }: Stage, ahead?: Parameters<typeof examine>[3]) {
  const namespace = namespaceFacts(api.peek(pathOf.namespace('a')) ?? {});
  const deps = { api, clock, signal: cancel.signal };
  const [seen] = await clock.run(examine([{ namespace }], 30_000, deps, ahead));
  return seen;
}

test('computing stops when the signal aborts, and the rest is undefined', async () => {
  const over = new AbortController();
  const work = (item: number): number => {
    if (item === 2) over.abort();
    return item * 10;
  };
  expect(
    await oneAfterAnother([1, 2, 3, 4], work, { clock: systemClock, signal: over.signal }),
  ).toEqual([10, 20, undefined, undefined]);
});

test('computing lets other work run in between', async () => {
  let isOtherDone = false;
  setTimeout(() => {
    isOtherDone = true;
  }, 0);
  const busy = (): boolean => {
    const end = performance.now() + 60;
    while (performance.now() < end);
    return isOtherDone;
  };
  expect(
    await oneAfterAnother([1, 2], busy, {
      clock: systemClock,
      signal: new AbortController().signal,
    }),
  ).toEqual([false, true]);
});

test('a namespace that could not be explained in time is reported as not inspected', async () => {
  const names = ['a', 'b'];
  const { clock, cluster } = stage(...names);
  const over = new AbortController();
  for (const name of names) cluster.held(CONFIG_MAPS, name, 'x', 'some.random/finalizer');
  cluster.answers.set('LIST /api/v1/configmaps', () => {
    over.abort();
    return undefined;
  });
  const namespaces = names.map((name) => ({
    namespace: namespaceFacts(cluster.peek(pathOf.namespace(name)) ?? {}),
  }));
  const seen = await examine(namespaces, 1_000, { api: cluster, clock, signal: over.signal });
  expect(seen).toHaveLength(2);
  for (const { diagnosis } of seen) {
    expect(diagnosis.notInspected).toContainEqual(
      expect.objectContaining({ reason: 'the time for explaining was over' }),
    );
    expect(outcomeOf(diagnosis)).toBe('inconclusive');
  }
});

test.each([
  ['some.random/finalizer', true],
  ['kubernetes.io/pvc-protection', false],
])(
  'while the content is read, sources of owners are, if it must have one: %s',
  async (name, early) => {
    const given = stage('a');
    const { cluster } = given;
    const message = `Some content in the namespace has finalizers remaining: ${name} in 1 resource instances`;
    const condition = { type: 'NamespaceFinalizersRemaining', status: 'True', message };
    cluster.namespace('a', { conditions: [condition] });
    cluster.held(PODS, 'a', 'x', 'some.random/finalizer');
    await look(given);
    const ofPods = cluster.requests.flatMap((one, at) => (one.endsWith('/a/pods') ? at : []));
    const podsInFull = ofPods[1] as number;
    expect(cluster.requests.indexOf('LIST /apis/apps/v1/deployments') < podsInFull).toBe(early);
    expect(cluster.requests.filter((one) => one === 'LIST /api/v1/namespaces')).toHaveLength(1);
  },
);

test('a forecast knows the nodes of the pods that were read: a lost one would hold the namespace', async () => {
  const given = stage();
  const { cluster } = given;
  cluster.namespace('a', { active: true });
  cluster.object(PODS, 'a', 'x', {}, { spec: { nodeName: 'n1' }, status: { phase: 'Running' } });
  const lost = { type: 'Ready', status: 'Unknown', lastTransitionTime: '2020-01-01T00:00:00Z' };
  cluster.put('/api/v1/nodes/n1', { metadata: { name: 'n1' }, status: { conditions: [lost] } });
  const seen = await look(given, { isPodsFirst: true });
  expect(seen?.diagnosis.findings.map(({ code }) => code)).toContain('pod-node-unavailable');
});

test.each([
  ['who holds nothing after all is not asked for', false, false, []],
  ['who holds it is', true, false, ['Deployments of the cluster']],
  ['the time ended before it was known', false, true, ['Deployments of the cluster']],
])(
  'what an early reading could not read is told if it is needed: %s',
  async (_, held, late, told) => {
    const given = stage('a');
    const { cluster } = given;
    const message =
      'Some content in the namespace has finalizers remaining: x.io/y in 1 resource instances';
    const condition = { type: 'NamespaceFinalizersRemaining', status: 'True', message };
    cluster.namespace('a', { conditions: [condition] });
    if (held) cluster.held(CONFIG_MAPS, 'a', 'x', 'x.io/y');
    else cluster.object(CONFIG_MAPS, 'a', 'x');
    cluster.answers.set('LIST /apis/apps/v1/deployments', () => {
      if (late) given.cancel.abort();
      return readFailed(FORBIDDEN);
    });
    const seen = await look(given);
    const names = seen?.snapshot.unread.map(({ what }) => what);
    expect(names?.filter((what) => what.startsWith('Deployments'))).toEqual(told);
  },
);

test.each([
  [103, 'more nodes of overdue pods', 'only 100 are read in one run'],
  [2_001, 'more pods in namespace a', 'only the first 2000 are read'],
])('what a limit leaves out is reported as not inspected: %d pods', async (many, what, reason) => {
  const given = stage('a');
  const deletionTimestamp = '2026-03-02T09:00:00Z';
  const metadata = { deletionTimestamp, deletionGracePeriodSeconds: 30 };
  for (let i = 0; i < many; i++)
    given.cluster.object(PODS, 'a', `p-${i}`, metadata, { spec: { nodeName: `node-${i}` } });
  const seen = await look(given);
  expect(seen?.diagnosis.notInspected).toContainEqual(expect.objectContaining({ what, reason }));
});

test('a mistake of this program while it reads further hides nothing that was read before', async () => {
  const given = stage('a');
  const { cluster } = given;
  cluster.held(CONFIG_MAPS, 'a', 'x', 'some.random/finalizer');
  const list = cluster.list.bind(cluster);
  cluster.list = (path, ...rest) => {
    if (path.includes('rolebindings')) throw new TypeError('"" cannot be part of an API path');
    return list(path, ...rest);
  };
  const seen = await look(given);
  const reason = expect.stringContaining('this gate failed to read it ("" cannot be part of');
  expect(seen?.diagnosis.notInspected).toContainEqual(expect.objectContaining({ reason }));
  expect(seen?.diagnosis.findings.map(({ code }) => code)).toContain('object-finalizer');
});

describe('an extension API server', () => {
  test('that omits the namespace of an object hides nothing', async () => {
    const given = stage('a');
    const deletionTimestamp = '2026-03-02T09:59:00Z';
    const finalizers = ['some.random/finalizer'];
    given.cluster.object(WIDGETS, 'a', 'db', { namespace: null, deletionTimestamp, finalizers });
    const seen = await look(given);
    expect(seen?.diagnosis.findings.map(({ code }) => code)).not.toContain('unexplained');
    expect(seen?.diagnosis.findings[0]?.subject).toMatchObject({ name: 'db', namespace: 'a' });
  });

  test('that ignores the name in a request does not make the object missing', async () => {
    const given = stage('a');
    const { cluster } = given;
    cluster.list = async (_path, begin) => {
      const fold = begin();
      fold.add({ metadata: { name: 'another', namespace: 'a', uid: '1' } });
      return readOk({ kept: fold.kept, complete: false });
    };
    const wanted = { type: WIDGETS, namespace: 'a', name: 'db', parseDetail: objectDetail };
    const { value, unread } = await readPartner(wanted, {
      api: cluster,
      signal: given.cancel.signal,
    });
    expect(value.ok).toBe(false);
    expect(unread).toMatchObject([{ what: 'Widget db' }]);
  });
});

test.each<[string, number, (staged: Stage) => void, RegExp | undefined]>([
  ['all were searched', 5_000, () => {}, undefined],
  ['there are too many', 5_001, () => {}, /^only the first 5000 are searched$/],
  [
    'they cannot be listed',
    0,
    ({ cluster }) => void cluster.answers.set('LIST', readFailed(FORBIDDEN)),
    /^403/,
  ],
])(
  'objects that an owner may need count as absent only if %s',
  async (_, many, arrange, reason) => {
    const staged = stage();
    for (let i = 0; i < many; i++) staged.cluster.object(CONFIG_MAPS, DEMO, `c-${i}`);
    arrange(staged);
    const wish = { type: CONFIG_MAPS, namespace: DEMO, isMeant: () => false };
    const wishes = ['a', 'b'].map((key) => ({ ...wish, key }));
    const deps = { api: staged.cluster, signal: new AbortController().signal };
    const found = await readSamples(wishes, deps);
    // The list is told once, although two owners need it.
    const unread = new Set([...found.values()].flatMap((one) => one.unread ?? []));
    expect([...unread].map((one) => one.reason)).toEqual(
      reason === undefined ? [] : [expect.stringMatching(reason)],
    );
  },
);

test('an examination before the timeout ends 5 s after it at the latest, the last GET within 10 s', async () => {
  const limits = vi.spyOn(AbortSignal, 'timeout');
  const { cluster, runOne } = stage(DEMO);
  cluster.held(CONFIG_MAPS, DEMO, 'x', 'some.random/finalizer');
  // The first one begins after 3 s.
  expect((await runOne({ timeout: '9s' })).outcome).toBe('stuck');
  expect(limits.mock.calls.flat()).toContain(11_000);
  // The GET before the verdict.
  expect(limits.mock.calls.flat().at(-1)).toBe(10_000);
  limits.mockRestore();
});
