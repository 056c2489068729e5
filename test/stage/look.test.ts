import { describe, expect, test } from 'vitest';
import { look } from '../../src/gate/examine.ts';
import { failed, type ReadFailure } from '../../src/model/read.ts';
import { MAX_POD_FACTS, noDetails, type Snapshot, type Trial } from '../../src/model/snapshot.ts';
import { namespaceFacts } from '../../src/observe/facts.ts';
import { investigate } from '../../src/observe/investigate.ts';
import { noQuestions, type TrialRequest } from '../../src/observe/questions.ts';
import { callRoll, isWorthwhile } from '../../src/observe/roll-call.ts';
import { sweepableTypes } from '../../src/observe/sweep.ts';
import { FakeClock } from './fake-clock.ts';
import {
  BROKEN,
  CONFIG_MAPS,
  CONFLICT,
  EVENTS,
  FakeCluster,
  FORBIDDEN,
  NEW_EVENTS,
  NOT_FOUND,
  PODS,
  pathOf,
  REFUSED,
  WIDGETS,
} from './fake-cluster.ts';
import { DEMO } from './gate-run.ts';

function scene() {
  const clock = new FakeClock();
  const cluster = new FakeCluster(clock);
  const over = new AbortController();
  const deps = { api: cluster, clock, signal: over.signal };
  cluster.namespace(DEMO);
  const see = async (): Promise<Snapshot> => {
    const got = await cluster.get(pathOf.namespace(DEMO));
    cluster.requests.length = 0;
    return look(namespaceFacts(got.ok ? got.value : {}), undefined, undefined, deps);
  };
  return { clock, cluster, over, deps, see };
}

/** Totals by resource, or the reason why there is none. */
function totals({ content }: Snapshot): Record<string, number | string> {
  return Object.fromEntries(
    content.map(({ type, read }) => [
      type.resource,
      read.ok ? read.value.total : read.failure.message,
    ]),
  );
}

describe('a look at a namespace', () => {
  test('costs one request per type and one for discovery when nothing is wrong, pods first', async () => {
    const { cluster, see } = scene();
    await see();
    expect(cluster.requests).toEqual([
      'DISCOVER',
      `LIST ${pathOf.all(PODS, DEMO)}`,
      `LIST ${pathOf.all(CONFIG_MAPS, DEMO)}`,
      `LIST ${pathOf.all(WIDGETS, DEMO)}`,
    ]);
    expect(cluster.metadataOnly).toEqual([
      pathOf.all(CONFIG_MAPS, DEMO),
      pathOf.all(WIDGETS, DEMO),
    ]);
  });

  test('counts what is there, and takes a failed list for what it is', async () => {
    const { cluster, see } = scene();
    cluster.object(CONFIG_MAPS, DEMO, 'a');
    cluster.held(CONFIG_MAPS, DEMO, 'b', 'x/y');
    cluster.answers.set(`LIST ${pathOf.all(WIDGETS, DEMO)}`, failed(FORBIDDEN));
    expect(totals(await see())).toEqual({
      pods: 0,
      configmaps: 2,
      widgets: '403 Forbidden: you may not',
    });
  });

  test('does not count what a broken extension API lists of other namespaces', async () => {
    const { cluster, see } = scene();
    cluster.put(`${pathOf.all(WIDGETS, DEMO)}/foreign`, {
      metadata: { name: 'foreign', namespace: 'elsewhere', uid: 'u' },
    });
    expect(totals(await see())).toMatchObject({ widgets: 0 });
  });

  test('forgets the first pages when a list starts again', async () => {
    const { cluster, see } = scene();
    for (const type of [PODS, CONFIG_MAPS]) {
      cluster.held(type, DEMO, 'a', 'x/y');
      cluster.restarts.add(pathOf.all(type, DEMO));
    }
    const seen = await see();
    expect(totals(seen)).toMatchObject({ pods: 1, configmaps: 1 });
    expect(seen.pods.ok && seen.pods.value).toHaveLength(1);
  });

  test('keeps terminating pods in full, up to a limit, and counts the others', async () => {
    const { cluster, see } = scene();
    for (let index = 0; index < MAX_POD_FACTS + 5; index++) {
      cluster.held(PODS, DEMO, `web-${index}`, 'x/y');
    }
    cluster.object(PODS, DEMO, 'queued');
    const seen = await see();
    expect(seen.pods.ok && seen.pods.value).toHaveLength(MAX_POD_FACTS);
    expect(totals(seen)).toMatchObject({ pods: MAX_POD_FACTS + 6 });
  });

  test('reads the nodes of overdue pods only; one that does not exist is a fact', async () => {
    const { clock, cluster, see } = scene();
    const pod = (name: string, node: string, endsInMs: number): void =>
      cluster.object(
        PODS,
        DEMO,
        name,
        {
          deletionTimestamp: new Date(clock.now() + endsInMs).toISOString(),
          deletionGracePeriodSeconds: 30,
        },
        { spec: { nodeName: node } },
      );
    pod('a', 'ready', -60_000);
    pod('b', 'gone', -60_000);
    pod('c', 'secret', -60_000);
    pod('d', 'not-asked', 60_000);
    cluster.put('/api/v1/nodes/ready', {
      metadata: { name: 'ready' },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    });
    cluster.answers.set('GET /api/v1/nodes/secret', failed(FORBIDDEN));
    const { nodes = {} } = await see();
    expect(Object.keys(nodes).sort()).toEqual(['gone', 'ready', 'secret']);
    expect(nodes['ready']).toMatchObject({ ok: true, value: { ready: 'True', exists: true } });
    expect(nodes['gone']).toMatchObject({ ok: true, value: { exists: false } });
    expect(nodes['secret']).toMatchObject({ ok: false });
  });

  test('says so when nothing can be discovered', async () => {
    const { cluster, see } = scene();
    cluster.answers.set('DISCOVER', failed(BROKEN));
    const seen = await see();
    expect(seen.discovery.ok).toBe(false);
    expect(seen.pods.ok).toBe(false);
    expect(seen.content).toEqual([]);
  });

  test('ends with what it has when its time is over', async () => {
    const { cluster, over, see } = scene();
    cluster.held(WIDGETS, DEMO, 'db', 'widgets.example.com/cleanup');
    cluster.answers.set(`LIST ${pathOf.all(CONFIG_MAPS, DEMO)}`, () => {
      over.abort();
      return undefined;
    });
    const seen = await see();
    expect(totals(seen)['widgets']).toBe('the run was ended');
    expect(seen.details).toBeUndefined();
  });

  test('changes nothing, also where it tries', async () => {
    const { cluster, see } = scene();
    cluster.held(PODS, DEMO, 'job', 'batch.kubernetes.io/job-tracking');
    await see();
    expect(cluster.mutations).toEqual([]);
    expect(cluster.dryRuns).toEqual([`PATCH ${pathOf.all(PODS, DEMO)}/job`]);
  });
});

describe('sweepableTypes', () => {
  const resources = (types: Parameters<typeof sweepableTypes>[0]): string[] =>
    sweepableTypes(types).map(({ group, resource }) => `${resource}.${group}`);

  test.each([
    { what: 'cluster-scoped types', types: [{ ...WIDGETS, namespaced: false }], are: [] },
    {
      what: 'types that cannot be deleted',
      types: [{ ...WIDGETS, verbs: ['get', 'list'] }],
      are: [],
    },
    { what: 'types that cannot be listed', types: [{ ...WIDGETS, verbs: ['delete'] }], are: [] },
    { what: 'events a second time', types: [EVENTS, NEW_EVENTS], are: ['events.'] },
    {
      what: 'events where only the new group has them',
      types: [NEW_EVENTS],
      are: ['events.events.k8s.io'],
    },
    { what: 'nothing else', types: [PODS, WIDGETS], are: ['pods.', 'widgets.example.com'] },
  ])('leaves out $what', ({ types, are }) => {
    expect(resources(types)).toEqual(are);
  });
});

describe('the dry run of a removal', () => {
  const REQUEST: TrialRequest = {
    type: WIDGETS,
    namespace: DEMO,
    name: 'db',
    uid: 'u',
    finalizer: 'x/y',
    index: 0,
  };
  async function trial(failure: ReadFailure): Promise<Trial | undefined> {
    const { cluster, deps } = scene();
    cluster.answers.set('DRY PATCH', failed(failure));
    const questions = { ...noQuestions(), trials: [REQUEST] };
    const details = await investigate(DEMO, questions, noDetails(), cluster, deps.signal);
    expect(cluster.mutations).toEqual([]);
    return details.trials['u x/y'];
  }
  const invalid = (message: string): ReadFailure => ({ kind: 'invalid', status: 422, message });

  test.each<{ what: string; failure: ReadFailure; is: Trial['answer'] }>([
    {
      what: 'a webhook says no',
      failure: {
        ...FORBIDDEN,
        message: '403 Forbidden: admission webhook "g" denied the request: no',
      },
      is: 'refused',
    },
    {
      what: 'a webhook cannot be called',
      failure: {
        ...BROKEN,
        message: '500: Internal error occurred: failed calling webhook "g": EOF',
      },
      is: 'refused',
    },
    {
      what: 'validation says no',
      failure: invalid(
        '422: Pod "db" is invalid: spec: Forbidden: pod updates may not change fields',
      ),
      is: 'refused',
    },
    {
      what: 'we may not patch',
      failure: {
        ...FORBIDDEN,
        message: '403: widgets "db" is forbidden: User "ci" cannot patch resource "widgets"',
      },
      is: 'unknown',
    },
    {
      what: 'a webhook does not support dry runs',
      failure: invalid('400: admission webhook "g" does not support dry run'),
      is: 'unknown',
    },
    {
      what: 'the object has changed since it was read: a test of the patch failed',
      failure: invalid(
        '422 Unprocessable Entity: the server rejected our request due to an error in our request',
      ),
      is: 'unknown',
    },
    { what: 'the object is gone', failure: NOT_FOUND, is: 'unknown' },
    { what: 'the object has changed (409)', failure: CONFLICT, is: 'unknown' },
    { what: 'nobody answers', failure: REFUSED, is: 'unknown' },
  ])('is "$is" when $what', async ({ failure, is }) => {
    expect((await trial(failure))?.answer).toBe(is);
  });
});

describe('the roll call', () => {
  test('keeps what could be read, and the reason for what could not', async () => {
    const { cluster, deps } = scene();
    cluster.put(`/apis/apps/v1/namespaces/${DEMO}/deployments/web`, {
      metadata: { name: 'web', namespace: DEMO, uid: 'u' },
    });
    cluster.answers.set('LIST /apis/rbac.authorization.k8s.io', failed(FORBIDDEN));
    const { workloads, grants } = await callRoll(DEMO, deps);
    expect(workloads).toMatchObject({ ok: true, value: [{ kind: 'Deployment', name: 'web' }] });
    expect(grants).toEqual(failed(FORBIDDEN));
  });

  test.each([
    { deletion: undefined, is: true },
    { deletion: '2026-03-02T09:59:55Z', is: true },
    { deletion: '2026-03-02T09:59:25Z', is: false },
    { deletion: 'nonsense', is: false },
  ])('is worth it for a deletion at $deletion: $is', ({ deletion, is }) => {
    expect(isWorthwhile(deletion, Date.parse('2026-03-02T10:00:00Z'))).toBe(is);
  });
});
