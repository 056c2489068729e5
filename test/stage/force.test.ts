import { describe, expect, test } from 'vitest';
import { arrayAt, type JsonObject, stringAt, valueAt } from '../../src/base/json.ts';
import { runGate } from '../../src/gate/gate.ts';
import { type InputName, readInputs } from '../../src/inputs.ts';
import { objectPath } from '../../src/kubernetes/paths.ts';
import { type ReadFailure, readFailed } from '../../src/model/read.ts';
import type { NamespaceResult, RunResult } from '../../src/model/result.ts';
import { BROKEN, NOT_FOUND, PODS, WIDGETS } from './fake-cluster.ts';
import { FINALIZER, OPS, Situation } from './force-situation.ts';
import { DEMO, recordTo } from './gate-run.ts';

const TIMEOUT_MS = 60_000;
const BUDGET_MS = 120_000;
const NAMESPACE = `/api/v1/namespaces/${DEMO}`;
const pathOf = (name: string, type = WIDGETS): string => objectPath(type, DEMO, name);
const patchOf = (name: string, type = WIDGETS): string => `PATCH ${pathOf(name, type)}`;
const held = (...names: string[]): Situation =>
  names.reduce((situation, name) => situation.held(WIDGETS, name), new Situation());

interface Ran {
  run: RunResult;
  one: NamespaceResult;
  lines: string[];
  /** What the last report before the first write said. */
  announced: RunResult[];
}

interface Options {
  namespaces?: string[];
  cancel?: AbortController;
  announce?: () => Promise<void>;
  lines?: string[];
}

/** The whole gate, in virtual time, over the API server in memory; its controllers act 5 s after a write. */
async function force(
  { clock, cluster }: Situation,
  inputs: Partial<Record<InputName, string>> = {},
  { namespaces = [DEMO], cancel = new AbortController(), announce, lines = [] }: Options = {},
): Promise<Ran> {
  const announced: RunResult[] = [];
  const afterWrite = cluster.afterWrite;
  let isDue = false;
  cluster.afterWrite = (request) => {
    afterWrite(request);
    if (isDue) return;
    isDue = true;
    clock.at(clock.elapsed + 5_000, () => {
      isDue = false;
      for (const name of namespaces) cluster.settle(name);
    });
  };
  const all: Partial<Record<InputName, string>> = {
    namespace: namespaces.join(),
    timeout: `${TIMEOUT_MS / 1_000}s`,
    'force-finalize': 'objects',
    'force-namespaces': 'preview-*',
    'force-finalizers': FINALIZER,
    ...inputs,
  };
  const run = await clock.run(
    runGate(readInputs(all), {
      api: cluster,
      clock,
      log: recordTo(lines),
      signal: cancel.signal,
      gateVersion: '1.0.0',
      announce: async (result) => {
        announced.push(result);
        expect(cluster.writes).toEqual([]);
        await announce?.();
      },
    }),
  );
  return { run, one: run.namespaces[0] as NamespaceResult, lines, announced };
}

function results({ forced }: NamespaceResult): string[] {
  return (forced?.actions ?? []).map(({ target, finalizer, result }) =>
    `${target} ${finalizer}: ${result}`.replace(' :', ':'),
  );
}

const refusals = ({ forced }: NamespaceResult): string =>
  (forced?.refused ?? []).map(({ target, reason }) => `${target}: ${reason}`).join('\n');

/** The server said no, and what was asked for is so: a repetition may have been refused. */
const AS_OURS = /: removed; perhaps by another client, since the answer was: /;

describe('objects', () => {
  test('are patched with tests of the values that were read, after the plan was reported', async () => {
    const situation = held('db');
    const { one, announced } = await force(situation);
    expect(one.outcome).toBe('forced');
    expect(situation.cluster.writes).toEqual([patchOf('db')]);
    expect(situation.cluster.bodies).toEqual([
      [
        { op: 'test', path: '/metadata/uid', value: 'uid-widgets-db' },
        { op: 'test', path: '/metadata/finalizers/0', value: FINALIZER },
        { op: 'remove', path: '/metadata/finalizers/0' },
      ],
    ]);
    expect(results(one)).toEqual([`widgets.example.com/db ${FINALIZER}: removed`]);
    expect(announced.map(({ namespaces: [first] }) => first?.forced?.actions)).toEqual([
      [{ target: 'widgets.example.com/db', finalizer: FINALIZER, result: 'planned' }],
    ]);
  });

  test('after a write of which nothing is known any more, an end counts as forced', async () => {
    const situation = held('db');
    const { clock, cluster } = situation;
    cluster.answers.set(patchOf('db'), readFailed(BROKEN));
    cluster.beforeWrite = () => {
      cluster.drop(pathOf('db'));
      situation.failing(`LIST /apis/example.com/v1/namespaces/${DEMO}/widgets`, 500);
      clock.at(clock.elapsed + 500, () => cluster.settle(DEMO));
    };
    const { one } = await force(situation);
    expect(results(one).join()).toMatch(/not done: 500.*could not be listed again/);
    expect(one.outcome).toBe('forced');
  });

  test('those that are queued behind a pod are freed once they are terminating', async () => {
    const situation = new Situation().held(PODS, 'web');
    const finalizers = [FINALIZER];
    situation.cluster.object(WIDGETS, DEMO, 'db', { finalizers });
    const planned = await force(situation, { 'force-finalize': 'plan' });
    expect(results(planned.one)).toContain(`widgets.example.com/db ${FINALIZER}: would be done`);
    const asked: unknown[] = [];
    situation.cluster.beforeWrite = ({ path }) =>
      void asked.push(valueAt(situation.cluster.peek(path), 'metadata', 'deletionTimestamp'));
    const { one } = await force(situation);
    expect(one.outcome).toBe('forced');
    expect(situation.cluster.writes).toEqual([patchOf('web', PODS), patchOf('db')]);
    expect(asked).not.toContain(undefined);
  });

  test('an object of another namespace in a list of this one is not written to', async () => {
    const situation = held('db');
    const foreign = { namespace: OPS, deletionTimestamp: situation.at(0), finalizers: [FINALIZER] };
    situation.cluster.object(WIDGETS, DEMO, 'theirs', foreign);
    await force(situation);
    expect(situation.cluster.writes).toEqual([patchOf('db')]);
  });

  test('after a conflict the object is read again, and the write is tried once more', async () => {
    const situation = held('moves', 'never-rests');
    situation.cluster.beforeWrite = ({ path }, count) => {
      const isFirst = path === pathOf('moves') && count < 1;
      if (!isFirst && path !== pathOf('never-rests')) return;
      const object = situation.cluster.peek(path) as { metadata: { finalizers: string[] } };
      const finalizers = [`a.io/n${count}`, ...object.metadata.finalizers];
      situation.cluster.put(path, { ...object, metadata: { ...object.metadata, finalizers } });
    };
    const { one } = await force(situation);
    expect(results(one)).toEqual([
      `widgets.example.com/moves ${FINALIZER}: removed`,
      expect.stringMatching(/never-rests .*: not done: 422 .*\(tried twice\)$/),
    ]);
    expect(situation.cluster.writes).toHaveLength(2 + 2);
  });

  /** A proxy sends the request twice, or answers in the server's place: the change is made, and the gate reads an error. */
  test.each<[kind: ReadFailure['kind'], status?: number]>([
    ['conflict', 409],
    ['invalid', 422],
    ['not-found', 404],
    ['forbidden', 403],
    ['throttled', 429],
    ['server-error', 502],
    ['unreadable', 200],
    ['timeout'],
    ['network'],
  ])(
    'a change that was made and answered with %s is reported, and the outcome is forced',
    async (kind, status) => {
      const situation = held('db');
      const { clock, cluster } = situation;
      const failure = { kind, message: `an answer of kind ${kind}`, ...(status && { status }) };
      cluster.answers.set(patchOf('db'), { ok: false, failure });
      cluster.beforeWrite = () => {
        cluster.drop(pathOf('db'));
        clock.at(clock.elapsed + 5_000, () => cluster.settle(DEMO));
      };
      const { one } = await force(situation);
      expect(cluster.writes).toHaveLength(1);
      expect(results(one)).toEqual([expect.stringMatching(AS_OURS)]);
      expect(one.outcome).toBe('forced');
    },
  );

  test('each write is announced in the log before it is sent', async () => {
    const situation = held('a', 'b');
    const lines: string[] = [];
    const announced = (name: string): string =>
      `${DEMO}: removing ${FINALIZER} from widgets.example.com/${name} (UID uid-widgets-${name})`;
    situation.cluster.beforeWrite = ({ path }) =>
      expect(lines).toContain(announced(path.split('/').at(-1) ?? ''));
    await force(situation, {}, { lines });
    expect(lines.filter((line) => line.includes(': removing '))).toHaveLength(2);
  });

  test('force-label is read again before every write', async () => {
    const names = Array.from({ length: 100 }, (_, index) => `w-${index}`);
    const situation = held(...names);
    const { cluster } = situation;
    cluster.slownessMs = 100;
    cluster.beforeWrite = (_, count) => {
      if (count === 20) cluster.namespace(DEMO, { metadata: { labels: {} } });
    };
    const { one } = await force(situation, { 'force-label': 'ephemeral=true' });
    // Those that were under way.
    expect(cluster.writes.length).toBeLessThanOrEqual(20 + 8);
    expect(results(one).join()).toContain(
      'force-label asks for ephemeral=true, and in the namespace it is not set',
    );
  });

  test.each([
    ['takes away the label that permits it', 'ephemeral', {}, ' 422', 'force-label asks for'],
    ['changes its status', 'example.com/ephemeral', undefined, '', ': removed'],
  ])('another client that %s in the moment of the write', async (_, key, labels, answer, words) => {
    const situation = new Situation();
    const { cluster } = situation;
    const metadata = { finalizers: ['own.example.com/x'], labels: { [key]: 'true' } };
    cluster.namespace(DEMO, { metadata });
    cluster.beforeWrite = () =>
      cluster.namespace(DEMO, { metadata: { ...metadata, ...(labels && { labels }) } });
    const given = { 'force-finalize': 'namespace', 'force-finalizers': 'own.example.com/x' };
    const { one } = await force(situation, { ...given, 'force-label': `${key}=true` });
    expect(cluster.writes[0]).toBe(`PATCH ${NAMESPACE}${answer}`);
    expect(results(one)[0]).toContain(words);
  });

  test('an owner that adds the finalizer again is named, and the removal is not repeated', async () => {
    const situation = held('db').held(WIDGETS, 'other', { finalizers: ['x.io/y'] });
    situation.held(WIDGETS, 'db', { finalizers: [FINALIZER, 'x.io/y'] });
    situation.cluster.afterWrite = () => {
      situation.held(WIDGETS, 'db', {
        finalizers: ['x.io/y', FINALIZER],
        manager: 'tenant-operator',
      });
    };
    const { one } = await force(situation);
    expect(situation.cluster.writes).toHaveLength(1);
    expect(results(one)).toEqual([
      `widgets.example.com/db ${FINALIZER}: removed, and added again by manager tenant-operator`,
    ]);
    expect(one.outcome).toBe('stuck');
  });

  test.each<[string, string, ReadFailure['kind'], string]>([
    ['a webhook', ' (tried twice)', 'forbidden', 'admission webhook "guard" denied the request: x'],
    ['a policy', ' (tried twice)', 'invalid', "ValidatingAdmissionPolicy 'p' denied request: x"],
    ['a missing permission', '', 'forbidden', 'User "ci" cannot patch resource "widgets"'],
  ])('a refusal by %s is quoted once for all objects%s', async (_, end, kind, words) => {
    const situation = held('db', 'web');
    const messageOf = (name: string): string => `widgets "${name}" is forbidden: ${words}`;
    for (const name of ['db', 'web'])
      situation.cluster.answers.set(patchOf(name), readFailed({ kind, message: messageOf(name) }));
    const { one } = await force(situation);
    expect(situation.cluster.writes).toHaveLength(end === '' ? 2 : 4);
    expect(results(one)).toEqual([
      `2 objects of widgets.example.com (db, web) ${FINALIZER}: not done: ${messageOf('db')}${end}`,
    ]);
    expect(one.outcome).toBe('stuck');
  });

  test('a removed finalizer is not reported as the cause, and its time is reported', async () => {
    const situation = held('db').held(WIDGETS, 'other', { finalizers: ['x.io/y'] });
    const { one } = await force(situation);
    expect(one.outcome).toBe('stuck');
    const named = (one.diagnosis?.findings ?? []).flatMap(({ subject }) => subject.name);
    expect(named).toContain('other');
    expect(named).not.toContain('db');
    const gone = held('db');
    const { one: forced } = await force(gone);
    expect(forced.elapsedMs).toBeGreaterThan(TIMEOUT_MS);
    expect(forced.timeline.map(({ at }) => at)).toEqual(
      forced.timeline.map(({ at }) => at).toSorted(),
    );
  });
});

test('mode off warns of the inputs that need another mode', async () => {
  const { lines } = await force(held('db'), { 'force-finalize': 'off', 'force-pods': 'False' });
  const unused = 'force-namespaces and force-finalizers';
  expect(lines).toContain(`no effect while "force-finalize" is "off": ${unused}`);
});

test('mode plan writes nothing, and says what would be done', async () => {
  const situation = held('db');
  const inputs = { 'force-finalize': 'plan', 'force-finalizers': `${FINALIZER},kubernetes` };
  const { one } = await force(situation, inputs);
  expect(situation.cluster.writes).toEqual([]);
  expect(results(one)).toEqual([
    `widgets.example.com/db ${FINALIZER}: would be done`,
    `namespaces/${DEMO} kubernetes: would be done if nothing is left in it`,
  ]);
});

test('mode namespace examines a second time before it removes `kubernetes`', async () => {
  const situation = new Situation();
  const inputs = { 'force-finalize': 'namespace', timeout: '0s' };
  const { one, lines } = await force(situation, inputs);
  expect(lines.join('\n')).toContain('examining a second time');
  expect(one.outcome).toBe('forced');
});

describe('time', () => {
  test('the budget holds on a slow server, and skipped actions are reported', async () => {
    const names = Array.from({ length: 2_000 }, (_, index) => `w-${index}`);
    const situation = held(...names);
    situation.cluster.slownessMs = 2_000;
    const { one } = await force(situation);
    expect(situation.clock.elapsed).toBeLessThanOrEqual(TIMEOUT_MS + BUDGET_MS);
    const done = situation.cluster.writes.length;
    expect(done).toBeGreaterThan(150);
    expect(done).toBeLessThan(500);
    expect(results(one)).toEqual([
      expect.stringMatching(new RegExp(`^${done} objects .*: removed$`)),
      expect.stringMatching(
        new RegExp(`^${2_000 - done} objects .*: not done: the 120 s for forcing are over$`),
      ),
    ]);
    expect(one.outcome).toBe('stuck');
  });

  test('a write without an answer is aborted when the budget ends', async () => {
    const situation = held('db');
    situation.cluster.slownessMs = 3_600_000;
    const { one } = await force(situation);
    expect(situation.clock.elapsed).toBeLessThanOrEqual(TIMEOUT_MS + BUDGET_MS);
    expect(results(one).join()).toContain(
      'interrupted while it was being sent: it may have been done',
    );
  });

  test('after a cancellation, running writes are reported and none begins', async () => {
    const names = Array.from({ length: 100 }, (_, index) => `w-${index}`);
    const situation = held(...names);
    const cancel = new AbortController();
    situation.cluster.slownessMs = 1_000;
    situation.cluster.beforeWrite = (_, count) => {
      if (count === 20) cancel.abort();
    };
    const { one } = await force(situation, {}, { cancel });
    expect(situation.cluster.writes.length).toBeLessThan(35);
    expect(one.outcome).toBe('cancelled');
    const text = results(one).join('\n');
    expect(text).toContain('interrupted while it was being sent: it may have been done');
    expect(text).toContain('not done: the run was cancelled');
  });
});

describe('overdue pods', () => {
  const inputs = { 'force-pods': 'true', 'force-finalizers': 'x.io/none' };

  test('of a node that does not exist are deleted, with the version that was read as precondition', async () => {
    const situation = new Situation().overduePod();
    const path = pathOf('web', PODS);
    const version = stringAt(situation.cluster.peek(path), 'metadata', 'resourceVersion');
    const { one } = await force(situation, inputs);
    expect(situation.cluster.writes).toEqual([`DELETE ${path}`]);
    expect(situation.cluster.bodies[0]).toMatchObject({
      gracePeriodSeconds: 0,
      preconditions: { uid: 'uid-pods-web', resourceVersion: version },
    });
    expect(results(one)).toEqual([
      'pods/web: deleted with grace period 0; may be left behind: containers that still run on node node-9, and the volumes attached to it',
    ]);
    expect(one.outcome).toBe('forced');
  });

  test('are not deleted if the node is ready again right before the write', async () => {
    const situation = new Situation().overduePod();
    const announce = async (): Promise<void> => {
      situation.cluster.put('/api/v1/nodes/node-9', {
        metadata: { name: 'node-9' },
        status: { conditions: [{ type: 'Ready', status: 'False', reason: 'NetworkNotReady' }] },
      });
    };
    const { one } = await force(situation, inputs, { announce });
    expect(situation.cluster.writes).toEqual([]);
    expect(results(one)[0]).toMatch(
      /pods\/web: not done: node node-9 is Ready=False .*NetworkNotReady/,
    );
  });
});

describe('the namespace itself', () => {
  const inputs = { 'force-finalize': 'namespace', 'force-orphans': 'accept' };

  test('is removed last, and all orphans are listed before the write and after it', async () => {
    const situation = held('db').held(WIDGETS, 'kept', { finalizers: ['x.io/y'] });
    const { one, lines } = await force(situation, inputs);
    expect(situation.cluster.writes).toEqual([patchOf('db'), `PUT ${NAMESPACE}/finalize`]);
    expect(one.outcome).toBe('forced');
    expect(one.forced?.orphans).toEqual([
      {
        apiVersion: 'example.com/v1',
        kind: 'Widget',
        name: 'kept',
        uid: 'uid-widgets-kept',
        finalizers: ['x.io/y'],
      },
    ]);
    const told = lines.findIndex((line) => line.includes('May be left behind: 1 objects'));
    expect(told).toBeGreaterThan(0);
    expect(told).toBeLessThan(lines.findIndex((line) => /kubernetes: removed/.test(line)));
    expect(results(one).at(-1)).toContain('only a new namespace of this name');
  });

  test('content that appears after the plan prevents the removal', async () => {
    const situation = new Situation();
    const announce = async (): Promise<void> => {
      situation.held(WIDGETS, 'late', { finalizers: ['x.io/y'] });
    };
    const { one } = await force(situation, { 'force-finalize': 'namespace' }, { announce });
    expect(situation.cluster.writes).toEqual([]);
    expect(refusals(one)).toContain('content remains: Widget late (x.io/y)');
  });

  test('is not gone if the address leads to another cluster after the write', async () => {
    const situation = held('db').held(WIDGETS, 'kept', { finalizers: ['x.io/y'] });
    const { cluster } = situation;
    cluster.afterWrite = () => {
      cluster.answers.set('GET /api/v1/namespaces', readFailed(NOT_FOUND));
    };
    const { one } = await force(situation, { 'force-finalize': 'objects' });
    expect(cluster.writes).toEqual([patchOf('db')]);
    expect(cluster.peek(NAMESPACE)).toBeDefined();
    expect(one.verdict).toBe('fail');
    expect(one.outcome).not.toBe('forced');
  });

  const REMAINING: JsonObject = {
    type: 'NamespaceContentRemaining',
    status: 'True',
    reason: 'SomeResourcesRemain',
    message: 'Some resources are remaining: widgets.example.com has 1 resource instances',
  };
  const hides = (situation: Situation): void => {
    situation.cluster.types = situation.cluster.types.filter(({ group }) => group === '');
  };

  test.each<[string, (s: Situation) => unknown, RegExp]>([
    [
      'discovery does not have the type of a CRD',
      hides,
      /widgets.example.com \(defined by a CRD, and not in discovery\)/,
    ],
    [
      'the CRDs could not be listed',
      (s) => s.failing('LIST /apis/apiextensions.k8s.io/v1/customresourcedefinitions', 403),
      /CustomResourceDefinitions/,
    ],
    [
      'the server is not ready',
      ({ cluster }) => cluster.answers.set('GET /readyz', readFailed(BROKEN)),
      /the API server \(not ready: 500/,
    ],
  ])('is not finalized if %s, although nothing was found in it', async (_, arrange, words) => {
    for (const orphans of ['refuse', 'accept']) {
      const situation = new Situation();
      const announce = async (): Promise<void> => void arrange(situation);
      const given = { 'force-finalize': 'namespace', 'force-orphans': orphans };
      const { one, lines } = await force(situation, given, { announce });
      expect(situation.cluster.writes).toHaveLength(orphans === 'refuse' ? 0 : 1);
      expect(orphans === 'refuse' ? refusals(one) : lines.join('\n')).toMatch(words);
    }
  });

  test('a condition that names content at the last moment prevents the removal', async () => {
    const situation = new Situation();
    situation.cluster.beforeWrite = (_, count) => {
      if (count === 0) situation.cluster.namespace(DEMO, { conditions: [REMAINING] });
    };
    const { one } = await force(situation, { 'force-finalize': 'namespace' });
    expect(situation.cluster.writes).toEqual([`PUT ${NAMESPACE}/finalize 409`]);
    expect(results(one).join()).toMatch(/not done: its condition NamespaceContentRemaining says/);
  });

  test('a namespace that changed is read again; one that was replaced is not changed', async () => {
    const moved = new Situation();
    moved.cluster.beforeWrite = (_, count) => {
      if (count === 0) moved.cluster.put(NAMESPACE, moved.cluster.peek(NAMESPACE) ?? {});
    };
    expect((await force(moved, inputs)).one.outcome).toBe('forced');
    expect(moved.cluster.writes).toEqual([
      `PUT ${NAMESPACE}/finalize 409`,
      `PUT ${NAMESPACE}/finalize`,
    ]);
    const replaced = new Situation();
    replaced.cluster.beforeWrite = () => replaced.cluster.namespace(DEMO, { uid: 'new' });
    const { one } = await force(replaced, inputs);
    expect(replaced.cluster.writes).toEqual([`PUT ${NAMESPACE}/finalize 409`]);
    expect(one.outcome).toBe('forced');
    expect(results(one)[0]).toMatch(AS_OURS);
    expect(arrayAt(replaced.cluster.peek(NAMESPACE), 'spec', 'finalizers')).toEqual(['kubernetes']);
  });

  test('objects of a type that can no longer be listed still count as left behind', async () => {
    const situation = held().held(WIDGETS, 'kept', { finalizers: ['x.io/y'] });
    situation.cluster.afterWrite = () => {
      const failure = { ...NOT_FOUND, kind: 'server-error', status: 500, message: '500' } as const;
      situation.cluster.answers.set(`LIST /apis/example.com/v1/namespaces/${DEMO}/widgets`, {
        ok: false,
        failure,
      });
    };
    const { one } = await force(situation, inputs);
    expect(one.forced?.orphans.map(({ name }) => name)).toEqual(['kept']);
    expect(one.diagnosis?.notInspected).toContainEqual({
      what: 'widgets.example.com',
      reason: '500',
    });
  });
});
