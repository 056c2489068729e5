import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { keyOf, modeOf } from '../../src/force/force-plan.ts';
import { planForce } from '../../src/force/plan.ts';
import { recordPlan, renderPlan } from '../../src/force/render-plan.ts';
import { failed, read } from '../../src/model/read.ts';
import type { NodeFacts } from '../../src/model/snapshot.ts';
import { CONFIG_MAPS, PODS, WIDGETS } from '../stage/force-fake.ts';
import {
  chain,
  content,
  diagnosis,
  finding,
  namespaceFacts,
  planInput,
  podFacts,
  policy,
  snapshot,
} from './force-builders.ts';

const CLEANUP = 'example.com/cleanup';
const HELD = snapshot([content(WIDGETS, [CLEANUP])]);
const DEAD = diagnosis(chain(CLEANUP, { code: 'owner-missing' }));
const UNREAD = failed({ kind: 'forbidden', status: 403, message: '403 Forbidden: no' });

function plan(over: Parameters<typeof planInput>[0]): ReturnType<typeof planForce> {
  return planForce(planInput({ diagnosis: DEAD, ...over }));
}

function reasons(over: Parameters<typeof planInput>[0]): string {
  return plan(over)
    .refused.map(({ target, reason }) => `${target}: ${reason}`)
    .join('\n');
}

describe('what a plan does', () => {
  test('takes allowed finalizers off objects first, the namespace own entries last', () => {
    const namespace = namespaceFacts({
      finalizers: ['example.com/ns'],
      specFinalizers: ['kubernetes', 'example.com/spec'],
    });
    const findings = [
      finding({ id: 'a', code: 'namespace-finalizer', finalizer: 'example.com/ns' }),
      finding({ id: 'b', code: 'namespace-spec-finalizer', finalizer: 'example.com/spec' }),
    ];
    const { actions, refused } = plan({
      snapshot: { ...HELD, namespace },
      diagnosis: diagnosis([...DEAD.findings, ...findings]),
    });
    expect(actions.map(keyOf)).toEqual([
      'object-finalizer widgets.example.com example.com/cleanup',
      'namespace-finalizer example.com/ns',
      'namespace-spec-finalizer example.com/spec',
      'namespace-spec-finalizer kubernetes',
    ]);
    expect(refused).toEqual([]);
  });

  test('names a folded type once, with its count and ten examples', () => {
    const { actions } = plan({ snapshot: snapshot([content(WIDGETS, [CLEANUP], 5_000)]) });
    expect(actions[0]).toMatchObject({ step: 'object-finalizer', count: 5_000 });
    expect(renderPlan(plan({ snapshot: snapshot([content(WIDGETS, [CLEANUP], 5_000)]) }))[1]).toBe(
      '  1. remove finalizer example.com/cleanup from 5000 objects of widgets.example.com (widgets-0, widgets-1, widgets-2, widgets-3, widgets-4, widgets-5, widgets-6, widgets-7, widgets-8, widgets-9 and 4990 more), where terminating',
    );
  });

  test.each(['objects', 'namespace'] as const)(
    'is the same in mode plan and in mode %s, as far as that mode goes',
    (mode) => {
      const input = { snapshot: { ...HELD, namespace: namespaceFacts({ labels: {} }) } };
      const shown = plan({ ...input, policy: policy({ mode: 'plan' }) });
      const real = plan({ ...input, policy: policy({ mode }) });
      const upTo = shown.actions.filter(
        (action) => mode === 'namespace' || modeOf(action) === mode,
      );
      expect(real.actions).toEqual(upTo);
      expect(shown.actions).toHaveLength(2);
    },
  );

  test('says for each action what it may leave behind', () => {
    const made = plan({
      snapshot: HELD,
      leakOf: (name) => (name === CLEANUP ? 'a database' : undefined),
    });
    expect(renderPlan(made)).toContain('     may be left behind: a database');
  });

  test('stands in a report before anything is changed', () => {
    const record = recordPlan(plan({ snapshot: HELD, policy: policy({ mode: 'objects' }) }));
    expect(record).toEqual({
      mode: 'objects',
      actions: [{ target: 'widgets.example.com/widgets-0', finalizer: CLEANUP, result: 'planned' }],
      orphans: [],
      refused: [],
    });
  });
});

describe('a namespace that is not forced, whatever the inputs say', () => {
  const everything = policy({
    namespaces: ['*', 'kube-system', 'default'],
    label: { key: 'ephemeral', value: 'true' },
    finalizers: ['*', CLEANUP, 'kubernetes'],
    orphans: 'accept',
    pods: true,
  });

  test.each([
    ['default', 'protected'],
    ['kube-system', 'protected'],
    ['kube-node-lease', 'protected'],
    ['openshift-monitoring', 'protected'],
    ['ci', 'the gate itself runs in it'],
  ])('%s: %s', (name, reason) => {
    const namespace = namespaceFacts({ name, finalizers: ['finalizers.kubesphere.io/namespaces'] });
    const made = plan({ snapshot: { ...HELD, namespace }, policy: everything });
    expect(made.actions).toEqual([]);
    expect(made.refused[0]?.reason).toContain(reason);
  });

  test('no policy at all leads to an action on a protected one', () => {
    const anyPattern = fc.array(
      fc.constantFrom('*', 'kube-*', 'default', 'kube-system', 'openshift*', CLEANUP, 'kubernetes'),
    );
    const anyPolicy = fc.record({
      mode: fc.constantFrom('plan' as const, 'objects' as const, 'namespace' as const),
      namespaces: anyPattern,
      label: fc.constantFrom(undefined, { key: 'ephemeral', value: 'true' }),
      finalizers: anyPattern,
      pods: fc.boolean(),
      orphans: fc.constantFrom('refuse' as const, 'accept' as const),
    });
    const anyName = fc.oneof(
      fc.constantFrom('default', 'kube-system', 'openshift', 'ci'),
      fc.stringMatching(/^(kube-|openshift)[a-z0-9-]{0,20}$/),
    );
    fc.assert(
      fc.property(anyPolicy, anyName, (given, name) => {
        const namespace = namespaceFacts({ name, finalizers: [CLEANUP] });
        expect(plan({ snapshot: { ...HELD, namespace }, policy: given }).actions).toEqual([]);
      }),
    );
  });

  test.each([
    ['an Active one', { phase: 'Active', deletionTimestamp: undefined }],
    ['one without deletionTimestamp', { deletionTimestamp: undefined }],
    ['one whose phase is not Terminating', { phase: 'Active' }],
  ])('%s', (_, over) => {
    const made = plan({
      snapshot: { ...HELD, namespace: namespaceFacts(over) },
      policy: everything,
    });
    expect(made.actions).toEqual([]);
    expect(made.refused[0]?.reason).toContain('only a Terminating namespace');
  });

  test('another one of the same name than at the start', () => {
    const made = plan({ snapshot: HELD, policy: everything, startUid: 'earlier' });
    expect(made.actions).toEqual([]);
    expect(made.refused[0]?.reason).toContain('its UID was earlier and is ns-uid');
  });

  test('one that holds the Service of a webhook that others need', () => {
    const backends = {
      usedElsewhere: [{ what: 'APIService v1.metrics', evidence: 'the whole cluster needs it' }],
      unread: [],
    };
    const made = plan({ snapshot: HELD, policy: everything, backends });
    expect(made.actions).toEqual([]);
    expect(made.refused[0]?.reason).toContain('it holds the Service of APIService v1.metrics');
  });

  test('one of which nobody could read whether it holds such a Service', () => {
    const backends = {
      usedElsewhere: [],
      unread: [{ what: 'apiservices', reason: '403 Forbidden' }],
    };
    const made = plan({ snapshot: HELD, policy: everything, backends });
    expect(made.actions).toEqual([]);
    expect(made.refused[0]?.reason).toContain('could not be read (apiservices: 403 Forbidden)');
  });
});

describe('refusals that name the input which lifts them', () => {
  test.each([
    ['no pattern for the namespace', policy({ namespaces: [] }), 'force-namespaces is empty'],
    [
      'another pattern',
      policy({ namespaces: ['review-*'] }),
      'force-namespaces (review-*) does not match',
    ],
    ['a pattern that allows everything', policy({ namespaces: ['*'] }), 'allows every namespace'],
    ['a missing label', policy({ label: { key: 'pr', value: '1' } }), 'it has no such label'],
    [
      'a wrong label',
      policy({ label: { key: 'ephemeral', value: 'yes' } }),
      'it has ephemeral=true',
    ],
  ])('%s', (_, given, reason) => {
    const made = plan({ snapshot: HELD, policy: given });
    expect(made.actions).toEqual([]);
    expect(made.refused[0]).toEqual({
      target: 'namespaces/preview-1',
      reason: expect.stringContaining(reason),
    });
    // What would be done with the permission is still told.
    expect(made.refused[1]?.target).toBe('widgets.example.com/widgets-0');
  });

  test('* with a label is specific enough', () => {
    const label = { key: 'ephemeral', value: 'true' };
    expect(
      plan({ snapshot: HELD, policy: policy({ namespaces: ['*'], label }) }).actions,
    ).toHaveLength(2);
  });

  test('a finalizer that is not in the list is left alone, the others are not', () => {
    const both = snapshot([content(WIDGETS, [CLEANUP, 'other.io/x'])]);
    const made = plan({ snapshot: both, policy: policy({ mode: 'objects' }) });
    expect(made.actions.map(keyOf)).toEqual([
      'object-finalizer widgets.example.com example.com/cleanup',
    ]);
    expect(made.refused).toEqual([
      {
        target: 'widgets.example.com/widgets-0',
        reason: 'force-finalizers does not allow other.io/x; to allow it, name it there',
      },
    ]);
  });

  test('objects that nobody asked to delete are named and left alone', () => {
    const queued = snapshot([
      content(WIDGETS, [CLEANUP]),
      content(CONFIG_MAPS, [], 0, { queued: 2 }),
    ]);
    expect(reasons({ snapshot: queued })).toContain('2 configmaps: not terminating');
  });

  test('mode objects does not touch the namespace itself', () => {
    const namespace = namespaceFacts({ finalizers: ['example.com/ns'] });
    const made = plan({ snapshot: { ...HELD, namespace }, policy: policy({ mode: 'objects' }) });
    expect(made.actions.map(modeOf)).toEqual(['objects']);
    expect(made.refused[0]?.reason).toContain('only force-finalize: namespace removes it');
  });
});

describe('a live owner', () => {
  test.each(['owner-running', 'owner-failing'] as const)(
    'is not raced by a wildcard: %s',
    (code) => {
      const input = { snapshot: HELD, diagnosis: diagnosis(chain(CLEANUP, { code })) };
      expect(plan(input).actions.map(modeOf)).not.toContain('objects');
      expect(reasons(input)).toContain(
        `its owner is alive (${code}): Deployment ops/operator runs`,
      );
      const exact = { ...input, policy: policy({ finalizers: [CLEANUP] }) };
      expect(plan(exact).actions.map(modeOf)).toContain('objects');
    },
  );

  test('further down the chain counts as well', () => {
    const findings = chain(CLEANUP, { code: 'admission-webhook-failing', waitsFor: ['deep'] });
    const deep = finding({ id: 'deep', code: 'owner-running' });
    const input = { snapshot: HELD, diagnosis: diagnosis([...findings, deep]) };
    expect(plan(input).actions.map(modeOf)).not.toContain('objects');
  });

  test('of one of two finalizers protects only its own', () => {
    const both = snapshot([content(WIDGETS, [CLEANUP, 'example.com/other'])]);
    const findings = [
      ...chain(CLEANUP, { code: 'owner-running' }),
      ...chain('example.com/other', { code: 'owner-missing' }),
    ];
    const made = plan({
      snapshot: both,
      diagnosis: diagnosis(findings),
      policy: policy({ mode: 'objects', finalizers: ['*'] }),
    });
    expect(made.actions.map(keyOf)).toEqual([
      'object-finalizer widgets.example.com example.com/other',
    ]);
  });

  test('is assumed where objects go one by one', () => {
    const moving = finding({
      id: 'm',
      code: 'content-deleting',
      subject: { apiVersion: 'v1', kind: 'APIResource', name: 'widgets.example.com' },
      message: 'are still going away',
    });
    const input = { snapshot: HELD, diagnosis: diagnosis([...DEAD.findings, moving]) };
    expect(plan(input).actions.map(modeOf)).not.toContain('objects');
    expect(reasons(input)).toContain('widgets.example.com are still going away');
  });

  test('a wildcard removes nothing that the diagnosis does not blame', () => {
    const input = { snapshot: HELD, diagnosis: diagnosis([]) };
    expect(plan(input).actions).toEqual([]);
    expect(reasons(input)).toContain('the diagnosis does not blame example.com/cleanup');
  });

  test('a claim that a pod still uses keeps its protection', () => {
    const claims = { ...PODS, resource: 'persistentvolumeclaims', kind: 'PersistentVolumeClaim' };
    const finalizer = 'kubernetes.io/pvc-protection';
    const subject = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', name: 'data' };
    const findings = [
      finding({ id: 'used', code: 'volume-in-use', subject, message: 'is still used by Pod a' }),
      finding({ id: 'held', code: 'object-finalizer', subject, finalizer }),
    ];
    const input = {
      snapshot: snapshot([content(claims, [finalizer], 2)]),
      diagnosis: diagnosis(findings),
      policy: policy({ finalizers: ['*'] }),
    };
    expect(reasons(input)).toContain('persistentvolumeclaims/data is still used by Pod a');
  });

  test.each([
    [{ kind: 'shrinking', before: 9, now: 4, comparedMs: 1_000 }, 'content still goes away'],
    [
      { kind: 'grace-period', until: '2026-01-01T00:20:00Z' },
      'the grace period of a pod runs until',
    ],
  ] as const)('the namespace controller at work keeps its entry: %o', (movement, reason) => {
    const input = { snapshot: snapshot([]), diagnosis: diagnosis([], { movement }) };
    expect(plan(input).actions).toEqual([]);
    expect(reasons(input)).toContain(reason);
    const exact = { ...input, policy: policy({ finalizers: ['kubernetes'] }) };
    expect(plan(exact).actions.map(keyOf)).toEqual(['namespace-spec-finalizer kubernetes']);
  });
});

describe('the namespace own entries', () => {
  test('kubernetes needs no entry in force-finalizers: the mode is the permission', () => {
    const made = plan({ snapshot: snapshot([]), policy: policy({ finalizers: [] }) });
    expect(made.actions.map(keyOf)).toEqual(['namespace-spec-finalizer kubernetes']);
  });

  test('kubernetes stays while an entry stays that is not allowed', () => {
    const namespace = namespaceFacts({ specFinalizers: ['kubernetes', 'openshift.io/origin'] });
    const made = plan({ snapshot: snapshot([], { namespace }) });
    expect(made.actions).toEqual([]);
    expect(made.refused.map(({ reason }) => reason)).toEqual([
      'force-finalizers does not allow openshift.io/origin; to allow it, name it there',
      expect.stringContaining('its content would never be deleted'),
    ]);
  });

  test.each([
    [
      'an object whose finalizer is not allowed',
      snapshot([
        content({ ...WIDGETS, resource: 'kialis', group: 'kiali.io', kind: 'Kiali' }, [
          'kiali.io/finalizer',
        ]),
      ]),
      'content remains: kialis.kiali.io/kialis-0 (kiali.io/finalizer)',
    ],
    [
      'queued objects that nothing will move',
      snapshot([content(CONFIG_MAPS, [], 0, { queued: 3 })]),
      'content remains: configmaps (3 not terminating)',
    ],
    ['a pod that nobody confirms', snapshot([content(PODS, [])]), 'content remains: pods/pods-0'],
    [
      'a type that cannot be read',
      snapshot([{ type: WIDGETS, read: UNREAD }]),
      'not everything could be read: widgets.example.com (403 Forbidden: no)',
    ],
    [
      'a dead API group',
      snapshot([], {
        discovery: read({
          namespacedTypes: 0,
          groups: [],
          failedGroups: [{ group: 'm.io', version: 'v1', reason: 'Stale' }],
        }),
      }),
      'not everything could be read: m.io/v1 (Stale)',
    ],
    ['an unread list of types', snapshot([], { discovery: UNREAD }), 'the list of resource types'],
  ])('are refused over %s, unless orphans are accepted', (_, given, reason) => {
    expect(plan({ snapshot: given }).actions).toEqual([]);
    expect(reasons({ snapshot: given })).toContain(reason);
    const accepting = plan({ snapshot: given, policy: policy({ orphans: 'accept' }) });
    expect(accepting.actions.map(keyOf)).toEqual(['namespace-spec-finalizer kubernetes']);
    expect(accepting.forecast).toContain(reason);
  });

  test('are planned when everything that remains is freed before', () => {
    const behindAPod = snapshot([
      content(WIDGETS, [CLEANUP]),
      content(CONFIG_MAPS, [], 0, { queued: 3 }),
    ]);
    expect(plan({ snapshot: behindAPod }).actions).toHaveLength(2);
  });
});

describe('overdue pods', () => {
  const absent = {
    name: 'node-1',
    exists: false,
    ready: undefined,
    readyReason: undefined,
    readySince: undefined,
    taints: [],
  };
  const gone = read<NodeFacts>(absent);
  const pods = (over = {}, nodes: object = { 'node-1': gone }) =>
    snapshot([content(PODS, [])], {
      pods: read([podFacts(PODS, 'web', over)]),
      nodes: nodes as NonNullable<ReturnType<typeof snapshot>['nodes']>,
    });
  const allowed = policy({ mode: 'objects', pods: true });

  test('are deleted when their node does not exist and force-pods is set', () => {
    expect(plan({ snapshot: pods(), policy: allowed }).actions).toMatchObject([
      {
        step: 'overdue-pods',
        node: 'node-1',
        nodeState: 'does not exist',
        count: 1,
        examples: ['web'],
      },
    ]);
  });

  test('are left alone without force-pods', () => {
    expect(reasons({ snapshot: pods(), policy: policy() })).toContain(
      'force-pods: true would delete',
    );
  });

  test.each([
    ['its grace period still runs', pods({ deletionTimestamp: '2026-01-01T00:09:58Z' })],
    ['it is on no node', pods({ nodeName: undefined })],
    ['nobody asked for it', pods({ deletionTimestamp: undefined })],
  ])('a pod is not one while %s', (_, given) => {
    expect(plan({ snapshot: given, policy: allowed }).actions).toEqual([]);
  });

  test.each([
    ['is Ready', read({ ...absent, exists: true, ready: 'True' }), 'the node is Ready'],
    ['could not be read', UNREAD, 'the node could not be read'],
    ['was not read', undefined, 'the node was not read'],
    ['has no Ready condition', read({ ...absent, exists: true }), 'no Ready condition'],
  ])('a pod is refused when its node %s', (_, node, reason) => {
    const given = pods({}, node === undefined ? {} : { 'node-1': node });
    expect(plan({ snapshot: given, policy: allowed }).actions).toEqual([]);
    expect(reasons({ snapshot: given, policy: allowed })).toContain(reason);
  });

  test('a node that is not ready is as good as gone', () => {
    const node = read({
      ...absent,
      exists: true,
      ready: 'Unknown',
      readySince: '2026-01-01T00:00:00Z',
    });
    const made = plan({ snapshot: pods({}, { 'node-1': node }), policy: allowed });
    expect(made.actions).toMatchObject([
      { nodeState: 'is not ready (Ready=Unknown since 2026-01-01T00:00:00Z)' },
    ]);
  });
});
