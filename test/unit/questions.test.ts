import { describe, expect, test } from 'vitest';
import { questionsOf } from '../../src/diagnose/ask.ts';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import { failed, type Read, read } from '../../src/model/read.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { type Details, noDetails } from '../../src/model/snapshot.ts';
import { hasQuestions, noQuestions, type Questions } from '../../src/observe/questions.ts';
import { readRecordedLooks } from './recorded-looks.ts';
import {
  apiService,
  CLAIMS,
  CLEANUP,
  CONFIG_MAPS,
  condition,
  conditions,
  contentOf,
  crd,
  DEMO,
  detailsOf,
  failureOf,
  grant,
  group,
  namespaceFacts,
  objectFacts,
  podFacts,
  service,
  snapshot,
  typeOf,
  unreadable,
  WIDGETS,
  webhook,
  withPods,
  workload,
  writer,
} from './snapshots.ts';

/** The questions that are asked, by name. */
function asked(now: Snapshot): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(questionsOf(now)).filter(([, question]) =>
      Array.isArray(question) ? question.length > 0 : question === true,
    ),
  );
}

const ROLE_BINDINGS = typeOf('rbac.authorization.k8s.io', 'rolebindings', 'RoleBinding');

const held = (over: Partial<Snapshot> = {}): Snapshot =>
  snapshot({
    content: [contentOf(WIDGETS, [group(WIDGETS, [CLEANUP], { names: ['db'] })])],
    ...over,
  });

describe('questionsOf', () => {
  test.each<{ what: string; now: Snapshot }>([
    { what: 'an empty namespace', now: snapshot() },
    {
      what: 'content that is still queued',
      now: snapshot({ content: [contentOf(CONFIG_MAPS, [], 40), contentOf(WIDGETS, [], 3)] }),
    },
    {
      what: 'objects that are going and that nothing holds',
      now: snapshot({ content: [contentOf(CONFIG_MAPS, [group(CONFIG_MAPS, [])])] }),
    },
    {
      what: 'a pod in its grace period',
      now: withPods([podFacts('web', { deletionTimestamp: '2026-03-02T10:09:00Z' })]),
    },
    { what: 'an overdue pod', now: withPods([podFacts('web')]) },
    {
      what: 'a finalizer that points nowhere: no group, no place, no telling writer',
      now: snapshot({
        content: [
          contentOf(CONFIG_MAPS, [
            group(CONFIG_MAPS, ['some.random/x'], { manager: 'kubectl-edit' }),
          ]),
        ],
      }),
    },
    {
      what: 'a type that may not be listed',
      now: snapshot({ content: [unreadable(CONFIG_MAPS)] }),
    },
    {
      what: 'the namespace controller at work',
      now: snapshot({
        namespace: namespaceFacts({
          conditions: conditions(
            condition(
              'NamespaceContentRemaining',
              'True',
              'Some resources are remaining: pods. has 1 resource instances',
            ),
          ),
        }),
      }),
    },
  ])('asks nothing about $what', ({ now }) => {
    expect(asked(now)).toEqual({});
    expect(hasQuestions(questionsOf(now))).toBe(false);
  });

  test.each<{ what: string; now: Snapshot; are: Record<string, unknown> }>([
    {
      what: 'a finalizer of a type of its own: its CRD, workloads and rights',
      now: held(),
      are: { crds: ['widgets.example.com'], workloads: true, grants: true },
    },
    {
      what: 'rights in the namespace, while it has RoleBindings',
      now: snapshot({
        content: [
          contentOf(WIDGETS, [group(WIDGETS, [CLEANUP], { names: ['db'] })]),
          contentOf(ROLE_BINDINGS, [], 1),
        ],
      }),
      are: { crds: ['widgets.example.com'], workloads: true, grants: true, namespaceGrants: true },
    },
    {
      what: 'rights in the namespace, when nobody could see its RoleBindings',
      now: snapshot({
        content: [
          contentOf(WIDGETS, [group(WIDGETS, [CLEANUP], { names: ['db'] })]),
          unreadable(ROLE_BINDINGS, { kind: 'timeout', message: 'no answer' }),
        ],
      }),
      are: { crds: ['widgets.example.com'], workloads: true, grants: true, namespaceGrants: true },
    },
    {
      what: 'nothing at all runs in the cluster: no webhooks, which lead to what serves them',
      now: held({
        details: detailsOf({ crds: crd(), workloads: read([]), grants: read([]) }),
      }),
      are: { statuses: [expect.objectContaining({ name: 'db' })] },
    },
    {
      what: 'nobody runs as the ServiceAccount that may remove it: Leases of its namespace',
      now: held({
        details: detailsOf({
          crds: crd(),
          workloads: read([]),
          grants: read([grant('ops/operator')]),
        }),
      }),
      are: { leases: ['ops'] },
    },
    {
      what: 'its owner runs: what was said about it, and whether the removal is refused',
      now: held({
        details: detailsOf({
          crds: crd(),
          workloads: read([workload('operator')]),
          grants: read([grant('ops/operator')]),
        }),
      }),
      are: {
        events: ['ops'],
        statuses: [expect.objectContaining({ name: 'db', namespace: DEMO })],
        webhooks: true,
        trials: [expect.objectContaining({ name: 'db', finalizer: CLEANUP, index: 0 })],
      },
    },
    {
      what: 'an owner that is scaled to zero: nothing more, that is the cause',
      now: held({
        details: detailsOf({
          crds: crd(),
          workloads: read([workload('operator', { wanted: 0, ready: 0 })]),
          grants: read([grant('ops/operator')]),
        }),
      }),
      are: {},
    },
    {
      what: 'nothing points to an owner: who serves and guards the type, who watches it',
      now: held({
        details: detailsOf({
          crds: crd({ conversionService: { namespace: 'ops', name: 'convert' } }),
          workloads: read([workload('bystander')]),
          grants: read([grant('audit/watcher', { verbs: ['watch'] })]),
        }),
      }),
      are: {
        webhooks: true,
        services: ['ops/convert'],
        events: ['audit'],
        statuses: [expect.objectContaining({ name: 'db' })],
      },
    },
    {
      what: 'webhooks in the way of a running owner: their Services',
      now: held({
        details: detailsOf({
          crds: crd(),
          workloads: read([workload('operator')]),
          grants: read([grant('ops/operator')]),
          events: { ops: read([]) },
          statuses: { 'uid-widgets-db': failed(failureOf()) },
          trials: { [`uid-widgets-db ${CLEANUP}`]: { answer: 'accepted' } },
          webhooks: read([
            webhook(),
            webhook({ name: 'elsewhere', rules: [] }),
            webhook({
              name: 'ignored',
              failurePolicy: 'Ignore',
              service: { namespace: 'x', name: 'y' },
            }),
            webhook({ name: 'by-url', service: undefined }),
          ]),
        }),
      }),
      are: { services: ['ops/guard'] },
    },
    {
      what: 'a group that cannot be discovered: APIServices, and who else waits',
      now: snapshot({
        discovery: read({
          namespacedTypes: 1,
          groups: [],
          failedGroups: [{ group: 'metrics.k8s.io', version: 'v1beta1', reason: 'stale' }],
        }),
      }),
      are: { apiServices: true, otherTerminating: true },
    },
    {
      what: 'a deletion that timed out somewhere: an extension API may be behind the type',
      now: snapshot({
        namespace: namespaceFacts({
          conditions: conditions(
            condition(
              'NamespaceDeletionContentFailure',
              'True',
              'Failed to delete all resource types, 1 remaining: context deadline exceeded',
            ),
          ),
        }),
      }),
      are: { apiServices: true },
    },
    {
      what: 'discovery that failed as a whole',
      now: snapshot({ discovery: failed(failureOf()) }),
      are: { apiServices: true, otherTerminating: true },
    },
    {
      what: 'a namespace that nobody has processed: the Lease of the controller',
      now: snapshot({
        namespace: namespaceFacts({ conditions: [] }),
        content: [contentOf(CONFIG_MAPS, [], 1)],
      }),
      are: { leases: ['kube-system'], otherTerminating: true },
    },
    {
      what: 'a webhook that refuses the deletion: the configurations',
      now: snapshot({
        namespace: namespaceFacts({
          conditions: conditions(
            condition(
              'NamespaceDeletionContentFailure',
              'True',
              'Failed to delete all resource types, 1 remaining: admission webhook "guard.example.com" denied the request: no',
            ),
          ),
        }),
      }),
      are: { webhooks: true },
    },
    {
      what: 'a claim whose volume does not come off: where it is attached',
      now: snapshot({
        content: [
          contentOf(CLAIMS, [
            group(CLAIMS, ['cns.vmware.com/pvc-protection'], { names: ['data'] }),
          ]),
        ],
      }),
      are: { attachments: true, statuses: [expect.objectContaining({ name: 'data' })] },
    },
    {
      what: 'a finalizer of the namespace with a writer that tells who it is',
      now: snapshot({
        namespace: namespaceFacts({
          finalizers: ['strange.example.org/x'],
          writers: [writer('strange.example.org/x', 'strange-operator')],
        }),
      }),
      are: { workloads: true, grants: true },
    },
  ])('asks, for $what', ({ now, are }) => {
    const questions = asked(now);
    expect(questions).toMatchObject(are);
    expect(Object.keys(questions).sort()).toEqual(Object.keys(are).sort());
  });

  test('what one finalizer needs is asked whatever stands beside it, in any order', () => {
    const details = detailsOf({
      crds: crd(),
      workloads: read([]),
      grants: read([]),
      webhooks: read([]),
    });
    const aggregated = contentOf(
      { ...WIDGETS, group: 'ledger.example.org', resource: 'entries', kind: 'Entry' },
      [group(WIDGETS, ['ledger.example.org/cleanup'])],
    );
    const invented = contentOf(CONFIG_MAPS, [
      group(CONFIG_MAPS, ['x/y'], { manager: 'strange-operator' }),
    ]);
    const ofCrd = contentOf(WIDGETS, [group(WIDGETS, [CLEANUP])]);
    for (const content of [
      [aggregated, invented, ofCrd],
      [invented, ofCrd, aggregated],
      [ofCrd, aggregated, invented],
    ]) {
      expect(asked(snapshot({ content, details })), content[0]?.type.kind).toMatchObject({
        apiServices: true,
      });
    }
  });

  test('looks at ten held objects more closely, not at ten thousand', () => {
    const groups = Array.from({ length: 50 }, (_, index) =>
      group(WIDGETS, [`widgets.example.com/${index}`], { names: [`db-${index}`] }),
    );
    const details = detailsOf({
      crds: crd(),
      workloads: read([workload('operator')]),
      grants: read([grant('ops/operator')]),
    });
    const { trials, statuses } = questionsOf(
      snapshot({ content: [contentOf(WIDGETS, groups)], details }),
    );
    expect(trials).toHaveLength(10);
    expect(statuses).toHaveLength(10);
  });
});

/** Answers everything with "not there" or "may not", as a cluster may. */
function answer(questions: Questions, known: Details, of: <T>(empty: T) => Read<T>): Details {
  const named = <T>(names: readonly string[], empty: T): Record<string, Read<T>> =>
    Object.fromEntries(names.map((name) => [name, of(empty)]));
  return {
    ...known,
    crds: { ...known.crds, ...named(questions.crds, undefined) },
    services: { ...known.services, ...named(questions.services, undefined) },
    events: { ...known.events, ...named(questions.events, []) },
    leases: { ...known.leases, ...named(questions.leases, []) },
    statuses: {
      ...known.statuses,
      ...named(
        questions.statuses.map(({ uid }) => uid),
        { conditions: [], texts: [], volumeName: undefined },
      ),
    },
    trials: {
      ...known.trials,
      ...Object.fromEntries(
        questions.trials.map(({ uid, finalizer }) => [
          `${uid} ${finalizer}`,
          { answer: 'unknown' as const, message: '' },
        ]),
      ),
    },
    ...(questions.workloads ? { workloads: of([workload('operator')]) } : {}),
    ...(questions.grants ? { grants: of([grant('ops/operator')]) } : {}),
    ...(questions.webhooks ? { webhooks: of([webhook()]) } : {}),
    ...(questions.apiServices ? { apiServices: of([apiService('v1.example.com')]) } : {}),
    ...(questions.otherTerminating ? { otherTerminating: of<string[]>([]) } : {}),
    ...(questions.attachments ? { attachments: of([]) } : {}),
    ...(questions.provider ? { isOnProvider: of(false) } : {}),
  };
}

function keysOf(questions: Questions): string[] {
  const { crds, services, events, leases, statuses, trials, ...flags } = questions;
  return [
    ...crds.map((name) => `crd ${name}`),
    ...services.map((name) => `service ${name}`),
    ...events.map((name) => `events ${name}`),
    ...leases.map((name) => `leases ${name}`),
    ...statuses.map(({ uid }) => `status ${uid}`),
    ...trials.map(({ uid, finalizer }) => `trial ${uid} ${finalizer}`),
    ...Object.entries(flags).flatMap(([name, isAsked]) => (isAsked ? [name] : [])),
  ];
}

describe('the rounds of questions', () => {
  const situations: { name: string; now: Snapshot }[] = [
    ...readRecordedLooks().map(({ scenario, version, now }) => {
      const { details: _known, ...fresh } = now;
      return { name: `${scenario} (${version})`, now: fresh };
    }),
    {
      name: 'objects without a UID',
      now: snapshot({
        content: [
          contentOf(WIDGETS, [
            {
              ...group(WIDGETS, [CLEANUP]),
              examples: [objectFacts(WIDGETS, 'a', { uid: '', finalizers: [CLEANUP] })],
            },
            {
              ...group(WIDGETS, [CLEANUP, 'x/y']),
              examples: [objectFacts(WIDGETS, 'b', { uid: '', finalizers: [CLEANUP, 'x/y'] })],
            },
          ]),
        ],
      }),
    },
  ];
  const worlds = [
    { world: 'answers', of: <T>(empty: T): Read<T> => read(empty) },
    { world: 'forbids', of: <T>(): Read<T> => failed(failureOf()) },
  ];

  test.each(situations.flatMap((one) => worlds.map((world) => ({ ...one, ...world }))))(
    '$name, in a cluster that $world: ends, and asks nothing twice',
    ({ now, of }) => {
      const seen = new Set<string>();
      let snapshotNow: Snapshot = { ...now, details: noDetails() };
      for (let round = 0; ; round++) {
        const questions = questionsOf(snapshotNow);
        const keys = keysOf(questions);
        expect(keys.filter((key) => seen.has(key))).toEqual([]);
        expect(new Set(keys).size).toBe(keys.length);
        for (const key of keys) seen.add(key);
        if (!hasQuestions(questions)) break;
        expect(round).toBeLessThan(6);
        const details = answer(questions, snapshotNow.details ?? noDetails(), of);
        snapshotNow = { ...snapshotNow, details };
      }
      // Whatever came of the questions, there is a diagnosis.
      expect(
        diagnose(snapshotNow).findings.length + diagnose(snapshotNow).notInspected.length,
      ).toBeGreaterThan(0);
    },
  );
});

test('no questions are no questions', () => {
  expect(hasQuestions(noQuestions())).toBe(false);
  expect(hasQuestions({ ...noQuestions(), provider: true })).toBe(true);
  expect(hasQuestions({ ...noQuestions(), services: Object.keys(service('a/b', {})) })).toBe(true);
});
