import { describe, expect, test } from 'vitest';
import { ActionError, InputError } from '../../src/base/errors.ts';
import { type ReadFailure, readFailed } from '../../src/model/read.ts';
import type { NamespaceResult } from '../../src/model/result.ts';
import {
  BROKEN,
  CONFIG_MAPS,
  FORBIDDEN,
  pathOf,
  REFUSED,
  UNAUTHORIZED,
  type WatchMode,
  WIDGETS,
} from './fake-cluster.ts';
import { causes, DEMO, events, stage } from './gate-run.ts';

const GET = `GET ${pathOf.namespace(DEMO)}`;
const MINUTES = 60_000;

describe('deleted', () => {
  test('is reported as soon as the watch reports it, before leftovers are read', async () => {
    const { clock, cluster, concluded, runOne } = stage(DEMO);
    clock.at(47_000, () => cluster.remove(DEMO));
    const result = await runOne();
    expect(result).toMatchObject({ outcome: 'deleted', verdict: 'pass', elapsedMs: 47_000 });
    expect(events(result).at(-1)).toBe('deleted');
    expect(result.diagnosis).toBeUndefined();
    const readLater = cluster.requests.slice(concluded[0]?.requests);
    expect(concluded).toMatchObject([{ outcome: 'deleted' }]);
    expect(readLater).toContainEqual(expect.stringMatching(/^LIST .*persistentvolumes/));
    expect(cluster.requests.slice(0, -readLater.length).join()).not.toMatch(/persistentvolumes/);
  });

  test.each<{ mode: WatchMode; withinMs: number; most: number }>([
    { mode: 'fed', withinMs: 0, most: 25 },
    { mode: 'silent', withinMs: 30_000, most: 25 },
    { mode: 'mute', withinMs: 5_000, most: 75 },
    { mode: 'forbidden', withinMs: 5_000, most: 100 },
    { mode: 'ends', withinMs: 5_000, most: 120 },
  ])(
    'is noticed within $withinMs ms, and costs at most $most requests in 5 minutes, with a watch that is $mode',
    async ({ mode, withinMs, most }) => {
      const { clock, cluster, runOne } = stage(DEMO);
      cluster.watchMode = mode;
      clock.at(5 * MINUTES - 31_000, () => cluster.remove(DEMO));
      const { outcome, elapsedMs } = await runOne();
      expect(outcome).toBe('deleted');
      expect(elapsedMs).toBeGreaterThanOrEqual(5 * MINUTES - 31_000);
      expect(elapsedMs).toBeLessThanOrEqual(5 * MINUTES - 31_000 + withinMs);
      const waiting = cluster.requests.filter((line) => line === GET || line.startsWith('WATCH'));
      expect(waiting.length).toBeLessThanOrEqual(most);
    },
  );

  test('is reported within 5 s of the first answer after errors, which are no end', async () => {
    const { clock, cluster, runOne } = stage(DEMO);
    cluster.answers.set(GET, () =>
      clock.elapsed > 30_000 && clock.elapsed < 75_000 ? readFailed(BROKEN) : undefined,
    );
    clock.at(60_000, () => cluster.remove(DEMO));
    const result = await runOne();
    expect(result.outcome).toBe('deleted');
    expect(result.elapsedMs).toBeLessThanOrEqual(80_000);
    expect(events(result).join('\n')).toContain('which does not mean that it was deleted');
  });
});

test('one refusal (401) of the last read does not mean that the credentials ended', async () => {
  const { clock, cluster, runOne } = stage(DEMO);
  cluster.held(CONFIG_MAPS, DEMO, 'x', 'some.random/finalizer');
  let refusals = 0;
  cluster.answers.set(GET, () =>
    clock.elapsed >= 60_000 && refusals++ === 0 ? readFailed(UNAUTHORIZED) : undefined,
  );
  cluster.watchMode = 'silent';
  expect((await runOne({ timeout: '60s' })).outcome).toBe('stuck');
  expect(refusals).toBeGreaterThan(0);
});

describe('at the start', () => {
  test.each([
    { given: 'ok', verdict: 'pass' },
    { given: 'error', verdict: 'fail' },
  ])('a name that does not exist, with if-not-found: $given', async ({ given, verdict }) => {
    const { clock, cluster, run } = stage();
    const result = await run({ 'if-not-found': given });
    expect(result).toMatchObject({ outcome: 'not-found', verdict });
    expect(clock.elapsed).toBe(1_000);
    expect(cluster.requests.some((line) => line.startsWith('WATCH'))).toBe(false);
  });

  test('a namespace whose deletion was not requested fails at once', async () => {
    const { clock, cluster, run } = stage();
    cluster.namespace(DEMO, { active: true });
    expect(await run()).toMatchObject({ outcome: 'not-terminating', verdict: 'fail' });
    expect(clock.elapsed).toBe(0);
    expect(cluster.mutations).toEqual([]);
  });

  test.each([
    { failure: FORBIDDEN, hint: /ClusterRole/ },
    { failure: UNAUTHORIZED, hint: /expired/ },
    { isAnonymous: true, failure: UNAUTHORIZED, hint: /no credentials/ },
    { isAnonymous: true, failure: FORBIDDEN, hint: /ClusterRole/ },
    {
      isAnonymous: true,
      failure: { ...FORBIDDEN, message: 'User "system:anonymous" cannot get' },
      hint: /no credentials/,
    },
    { failure: REFUSED, hint: /authority of the right cluster, that the runner can reach it/ },
    { failure: BROKEN, hint: /Try again/ },
    {
      failure: { kind: 'unreadable' as const, message: 'a login page' },
      hint: /API server answers there/,
    },
  ])('an error when the namespace cannot be read ($failure.kind)', async (row) => {
    const { failure, hint, isAnonymous = false } = row;
    const { cluster, run } = stage();
    Object.assign(cluster.target, { isAnonymous });
    cluster.answers.set(GET, readFailed(failure));
    await expect(run()).rejects.toMatchObject({
      message: `cannot get namespace "${DEMO}" on https://cluster.example: ${failure.message}`,
      hint: expect.stringMatching(hint),
    });
  });
});

describe('at the timeout', () => {
  test('stuck, with what holds it', async () => {
    const { clock, cluster, runOne } = stage(DEMO);
    cluster.held(CONFIG_MAPS, DEMO, 'precious', 'some.random/finalizer');
    const result = await runOne({ timeout: '90s' });
    expect(result).toMatchObject({ outcome: 'stuck', verdict: 'fail', elapsedMs: 90_000 });
    expect(causes(result)).toEqual(['owner-unknown']);
    expect(clock.elapsed).toBe(90_000);
    expect(cluster.mutations).toEqual([]);
  });

  test('progressing, while the number of objects falls', async () => {
    const { clock, cluster, runOne } = stage(DEMO);
    for (let index = 0; index < 20; index++) {
      cluster.held(CONFIG_MAPS, DEMO, `item-${index}`, 'slow.example.com/cleanup');
      clock.at(index * 10_000, () => cluster.take(CONFIG_MAPS, DEMO, `item-${index}`));
    }
    const result = await runOne({ timeout: '60s' });
    expect(result).toMatchObject({ outcome: 'progressing', verdict: 'fail' });
    expect(causes(result)).toEqual(['content-deleting']);
  });

  test('inconclusive, when too little can be read', async () => {
    const { cluster, runOne } = stage(DEMO);
    cluster.answers.set('LIST', readFailed(FORBIDDEN));
    const result = await runOne({ timeout: '60s' });
    expect(result).toMatchObject({ outcome: 'inconclusive', verdict: 'fail' });
    expect(result.diagnosis?.notInspected.map(({ what }) => what)).toEqual([
      'pods',
      'configmaps',
      'widgets.example.com',
    ]);
  });

  test('explains at once with a timeout of 0, and does not wait', async () => {
    const { clock, cluster, runOne } = stage(DEMO);
    cluster.held(CONFIG_MAPS, DEMO, 'precious', 'some.random/finalizer');
    const result = await runOne({ timeout: '0s' });
    expect(result.outcome).toBe('stuck');
    expect(clock.elapsed).toBe(0);
    expect(cluster.requests.some((line) => line.startsWith('WATCH'))).toBe(false);
  });

  test('the GET at the end decides: the namespace was deleted during the examination', async () => {
    const { clock, cluster, runOne } = stage(DEMO);
    cluster.watchMode = 'silent';
    cluster.answers.set(`LIST ${pathOf.all(WIDGETS, DEMO)}`, () => {
      if (clock.elapsed >= 60_000) cluster.remove(DEMO);
      return undefined;
    });
    expect((await runOne({ timeout: '60s' })).outcome).toBe('deleted');
  });
});

describe('a namespace that cannot be read is never reported as deleted', () => {
  test.each<[string, ReadFailure, number, string[], string]>([
    ['401 before the first look', UNAUTHORIZED, 20_000, [], ''],
    ['401 after it', UNAUTHORIZED, 100_000, ['owner-unknown'], '2026-03-02T10:01:30'],
    ['401 during the last look', UNAUTHORIZED, 119_000, ['owner-unknown'], '2026-03-02T10:01:30'],
    ['no server after it', REFUSED, 100_000, ['owner-unknown'], '2026-03-02T10:01:30'],
    ['403 after it', FORBIDDEN, 100_000, ['owner-unknown'], '2026-03-02T10:01:30'],
  ])(
    '%s: inconclusive, with what was seen, and when; credentials that end, end the run',
    async (_, failure, fromMs, roots, at) => {
      const { clock, cluster, runOne } = stage(DEMO);
      cluster.held(CONFIG_MAPS, DEMO, 'precious', 'some.random/finalizer');
      for (const start of ['GET', 'LIST', 'WATCH', 'DISCOVER']) {
        cluster.answers.set(start, () =>
          clock.elapsed > fromMs ? readFailed(failure) : undefined,
        );
      }
      clock.at(fromMs, () => cluster.closeWatches());
      const result = await runOne({ timeout: '2m' });
      const unread = result.diagnosis?.notInspected.map(({ what, reason }) => `${what}: ${reason}`);

      expect(result).toMatchObject({ outcome: 'inconclusive', verdict: 'fail', isUnread: true });
      expect(causes(result)).toEqual(roots);
      expect(events(result).at(-1)).toContain(`could not be read at the end: ${failure.message}`);
      if (failure === UNAUTHORIZED) expect(result.elapsedMs - fromMs).toBeLessThanOrEqual(5_000);
      if (at === '') return;
      expect(unread?.[0]).toContain(`namespace ${DEMO}: ${failure.message}; the report shows`);
      expect(unread?.[0]).toContain(at);
      expect(result.diagnosis?.notInspected[0]?.grant !== undefined).toBe(failure === FORBIDDEN);
      expect(result.diagnosis?.findings[0]?.message).toContain('some.random/finalizer');
    },
  );

  test('401 for one of two namespaces ends its wait, and leaves nothing that still waits', async () => {
    const { clock, cluster, run } = stage(DEMO);
    cluster.namespace('preview-8');
    cluster.watchMode = 'forbidden';
    cluster.answers.set(GET, () => (clock.elapsed > 20_000 ? readFailed(UNAUTHORIZED) : undefined));
    const { namespaces } = await run({ namespace: `${DEMO},preview-8` });
    expect(namespaces.map(({ outcome }) => outcome)).toEqual(['inconclusive', 'stuck']);
    const asked = cluster.requests.length;
    // Whoever still sleeps would wake up, ask, and keep the process alive.
    await clock.run(clock.sleep(10 * MINUTES));
    expect(cluster.requests.length).toBe(asked);
    expect(clock.sleepers).toBe(0);
  });
});

describe('cancelled', () => {
  test('while waiting: at once, with the diagnosis known so far', async () => {
    const { clock, cluster, cancel, runOne } = stage(DEMO);
    cluster.held(CONFIG_MAPS, DEMO, 'precious', 'some.random/finalizer');
    clock.at(4 * MINUTES + 45_000, () => cancel.abort());
    const result = await runOne();
    expect(result).toMatchObject({ outcome: 'cancelled', verdict: 'fail' });
    expect(result.elapsedMs).toBe(4 * MINUTES + 45_000);
    expect(causes(result)).toEqual(['owner-unknown']);
    expect(events(result).at(-1)).toBe('the run was cancelled');
  });

  test('before the first examination: the report says that nothing is known', async () => {
    const { clock, cancel, runOne } = stage(DEMO);
    clock.at(5_000, () => cancel.abort());
    const result = await runOne();
    expect(result).toMatchObject({ outcome: 'cancelled', elapsedMs: 5_000, diagnosis: undefined });
  });

  test('while reading the namespaces', async () => {
    const { cluster, cancel, run } = stage(DEMO);
    cluster.answers.set(GET, () => {
      cancel.abort();
      return undefined;
    });
    expect(await run()).toMatchObject({ outcome: 'cancelled', verdict: 'fail', namespaces: [] });
  });
});

describe('several namespaces', () => {
  test('each has its outcome; the run has the worst', async () => {
    const { clock, cluster, run } = stage();
    for (const name of ['goes', 'stays', 'comes-back']) cluster.namespace(name);
    cluster.held(CONFIG_MAPS, 'stays', 'precious', 'some.random/finalizer');
    clock.at(30_000, () => cluster.remove('goes'));
    clock.at(40_000, () => cluster.namespace('comes-back', { uid: 'another', active: true }));
    const result = await run({ namespace: 'goes, stays, comes-back, never-was' });
    expect(result.namespaces.map(({ name, outcome }) => `${name} ${outcome}`)).toEqual([
      'goes deleted',
      'stays stuck',
      'comes-back recreated',
      'never-was not-found',
    ]);
    expect(result).toMatchObject({ outcome: 'stuck', verdict: 'fail' });
    const [, , recreated] = result.namespaces as [
      NamespaceResult,
      NamespaceResult,
      NamespaceResult,
    ];
    expect(recreated).toMatchObject({ verdict: 'warn', uid: 'uid-of-comes-back' });
    expect(events(recreated).at(-1)).toContain('another');
    expect(cluster.mutations).toEqual([]);
  });

  test('by selector: every matching and every named namespace, each once', async () => {
    const { clock, cluster, run } = stage();
    const labels = { app: 'preview' };
    cluster.namespace('a', { metadata: { labels } });
    cluster.namespace('b', { metadata: { labels } });
    cluster.namespace('c', { metadata: { labels: { app: 'other' } } });
    for (const name of ['a', 'b', 'c']) clock.at(10_000, () => cluster.remove(name));
    const result = await run({ namespace: 'a,c', selector: 'app=preview' });
    expect(result.namespaces.map(({ name }) => name).sort()).toEqual(['a', 'b', 'c']);
    expect(result.outcome).toBe('deleted');
  });

  test.each([
    {
      failure: {
        kind: 'invalid' as const,
        status: 400,
        message: '400: unable to parse requirement',
      },
      kind: InputError,
      message: /input "selector" is "app in"/,
    },
    { failure: FORBIDDEN, kind: ActionError, message: /namespaces with the labels "app in"/ },
    { failure: UNAUTHORIZED, kind: ActionError, message: /401/ },
  ])(
    'a selector that the API server answers with $failure.kind: $kind.name',
    async ({ failure, kind, message }) => {
      const { cluster, run } = stage();
      cluster.answers.set(`LIST ${pathOf.namespaces}`, readFailed(failure));
      const error = await run({ namespace: '', selector: 'app in' }).catch((one) => one);
      expect(error.constructor).toBe(kind);
      expect(error.message).toMatch(message);
    },
  );
});
