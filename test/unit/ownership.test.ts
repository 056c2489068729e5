import { describe, expect, test } from 'vitest';
import { viewOf } from '../../src/diagnose/ask.ts';
import type { Draft } from '../../src/diagnose/draft.ts';
import { candidatesFor, isTelling } from '../../src/diagnose/owner/candidates.ts';
import { groupsOf, isBuiltIn } from '../../src/diagnose/owner/held.ts';
import { ownerDrafts } from '../../src/diagnose/owners.ts';
import { heldObjects } from '../../src/diagnose/rules/object-finalizer.ts';
import { failed, read } from '../../src/model/read.ts';
import type { Details, ResourceType, RollCall, Snapshot } from '../../src/model/snapshot.ts';
import {
  apiService,
  CLAIMS,
  CLEANUP,
  CONFIG_MAPS,
  condition,
  contentOf,
  crd,
  DEMO,
  failureOf,
  grant,
  group,
  lookedEverywhere,
  PODS,
  service,
  snapshot,
  typeOf,
  WIDGETS,
  webhook,
  workload,
} from './snapshots.ts';

const OPERATOR = workload('operator');
const RIGHTS = grant('ops/operator');

interface Situation {
  type?: ResourceType;
  finalizer?: string;
  /** Field manager that wrote the finalizer. */
  manager?: string;
  details?: Partial<Details>;
  rollCall?: RollCall;
  groups?: string[];
}

function build(situation: Situation): Snapshot {
  const {
    type = WIDGETS,
    finalizer = CLEANUP,
    manager,
    details = {},
    rollCall,
    groups,
  } = situation;
  const content = [
    contentOf(type, [
      group(type, [finalizer], { names: ['db'], ...(manager === undefined ? {} : { manager }) }),
    ]),
  ];
  const isCustom = !isBuiltIn(type.group);
  return snapshot({
    content,
    details: lookedEverywhere({ ...(isCustom ? { crds: crd() } : {}), ...details }),
    ...(rollCall === undefined ? {} : { rollCall }),
    ...(groups === undefined
      ? {}
      : { discovery: read({ namespacedTypes: 1, groups, failedGroups: [] }) }),
  });
}

/** All drafts about the owner: its own first, then what it waits for. */
function owners(situation: Situation): [Draft, ...Draft[]] {
  const view = viewOf(build(situation));
  const held = heldObjects(view)[0]?.held;
  if (held === undefined) throw new Error('nothing is held');
  return ownerDrafts(view, held);
}

function blamed(situation: Situation): string {
  const [{ code, subject }] = owners(situation);
  return `${code} ${subject.kind}/${subject.name}`;
}

const evidence = (situation: Situation): string => owners(situation)[0].evidence.join('\n');

describe('the owner of a finalizer is found', () => {
  test.each<{ how: string; situation: Situation; is: string }>([
    {
      how: 'by RBAC on the finalizers of the type',
      situation: { details: { workloads: read([OPERATOR]), grants: read([RIGHTS]) } },
      is: 'owner-running Deployment/operator',
    },
    {
      how: 'by RBAC on the type, where nobody may change its finalizers by name',
      situation: {
        details: {
          workloads: read([OPERATOR]),
          grants: read([grant('ops/operator', { resources: ['widgets'] })]),
        },
      },
      is: 'owner-running Deployment/operator',
    },
    {
      how: 'by RBAC in this very namespace',
      situation: {
        details: {
          workloads: read([OPERATOR]),
          grants: read([grant('ops/operator', { namespace: DEMO, role: 'Role operator' })]),
        },
      },
      is: 'owner-running Deployment/operator',
    },
    {
      how: 'by the domain of the finalizer, on an object of another type',
      situation: {
        type: CONFIG_MAPS,
        groups: ['example.com'],
        details: { workloads: read([OPERATOR]), grants: read([RIGHTS]) },
      },
      is: 'owner-running Deployment/operator',
    },
    {
      how: 'by the Service that converts the type',
      situation: {
        details: {
          crds: crd({ conversionService: { namespace: 'ops', name: 'convert' } }),
          services: service('ops/convert', { app: 'operator' }),
          workloads: read([OPERATOR, workload('bystander')]),
        },
      },
      is: 'owner-running Deployment/operator',
    },
    {
      how: 'by the Service that serves the type',
      situation: {
        details: {
          crds: {},
          apiServices: read([
            apiService('v1.example.com', { service: { namespace: 'ops', name: 'api', port: 443 } }),
          ]),
          services: service('ops/api', { app: 'operator' }),
          workloads: read([OPERATOR]),
        },
      },
      is: 'owner-running Deployment/operator',
    },
    {
      how: 'by the webhook that guards the type',
      situation: {
        details: {
          webhooks: read([webhook()]),
          services: service('ops/guard', { app: 'operator' }),
          workloads: read([OPERATOR]),
        },
      },
      is: 'owner-running Deployment/operator',
    },
    {
      how: 'by the catalogue, where its default workload is there',
      situation: {
        type: typeOf('kiali.io', 'kialis', 'Kiali'),
        finalizer: 'kiali.io/finalizer',
        details: {
          crds: {},
          workloads: read([workload('kiali-operator', { namespace: 'kiali-operator' })]),
        },
      },
      is: 'owner-running Deployment/kiali-operator',
    },
    {
      how: 'by the writer, who has the name and the right',
      situation: {
        type: CONFIG_MAPS,
        finalizer: 'strange/x',
        manager: 'strange-operator',
        details: {
          workloads: read([workload('strange-operator')]),
          grants: read([
            grant('ops/strange-operator', { apiGroups: [''], resources: ['configmaps'] }),
          ]),
        },
      },
      is: 'owner-running Deployment/strange-operator',
    },
  ])('$how', ({ situation, is }) => {
    expect(blamed(situation)).toBe(is);
  });

  test.each<{ why: string; details: Partial<Details>; manager?: string }>([
    {
      why: 'a right to watch only',
      details: {
        workloads: read([OPERATOR]),
        grants: read([grant('ops/operator', { verbs: ['watch'] })]),
      },
    },
    {
      why: 'a right in another namespace',
      details: {
        workloads: read([OPERATOR]),
        grants: read([grant('ops/operator', { namespace: 'elsewhere', role: 'Role operator' })]),
      },
    },
    {
      why: 'a right on another type of the same group',
      details: {
        workloads: read([OPERATOR]),
        grants: read([grant('ops/operator', { resources: ['gadgets', 'gadgets/finalizers'] })]),
      },
    },
    {
      why: 'a right on another group',
      details: {
        workloads: read([OPERATOR]),
        grants: read([grant('ops/operator', { apiGroups: ['apps'], resources: ['*'] })]),
      },
    },
    {
      why: 'a Service that selects nothing',
      details: {
        webhooks: read([webhook()]),
        services: service('ops/guard', {}),
        workloads: read([OPERATOR]),
      },
    },
    {
      why: 'a webhook on everything',
      details: {
        webhooks: read([
          webhook({ rules: [{ apiGroups: ['*'], resources: ['*/*'], operations: ['*'] }] }),
        ]),
        services: service('ops/guard', { app: 'operator' }),
        workloads: read([OPERATOR]),
      },
    },
    {
      why: 'a name that sounds like it, without the right',
      manager: 'operator',
      details: { workloads: read([OPERATOR, workload('widget-operator'), workload('widgets')]) },
    },
    {
      why: 'a name that every framework uses',
      manager: 'manager',
      details: {
        workloads: read([workload('manager')]),
        grants: read([grant('ops/manager', { apiGroups: [''], resources: ['configmaps'] })]),
      },
    },
  ])('not by $why', ({ details, manager }) => {
    expect(blamed({ details, ...(manager === undefined ? {} : { manager }) })).toBe(
      'owner-missing CustomResourceDefinition/widgets.example.com',
    );
  });

  test.each([
    { role: 'ClusterRole cluster-admin', apiGroups: ['*'], resources: ['*'] },
    { role: 'ClusterRole admin' },
    { role: 'ClusterRole edit' },
  ])('is not called missing while something runs that $role lets change it', (given) => {
    const details: Partial<Details> = {
      workloads: read([OPERATOR]),
      grants: read([grant('ops/operator', given)]),
    };
    expect(blamed({ details })).toBe('owner-unknown Widget/db');
    expect(evidence({ details })).toContain('Deployment ops/operator runs and may change every');
    const asleep = { ...details, workloads: read([{ ...OPERATOR, ready: 0 }]) };
    expect(blamed({ details: asleep })).toMatch(/^owner-missing/);
  });

  test('prefers the right on finalizers by name to any other clue, and shows each', () => {
    const situation: Situation = {
      manager: 'namesake',
      details: {
        workloads: read([workload('general'), OPERATOR, workload('namesake')]),
        grants: read([
          grant('ops/general', { resources: ['*'] }),
          RIGHTS,
          grant('ops/namesake', { resources: ['widgets'] }),
        ]),
      },
    };
    expect(blamed(situation)).toBe('owner-running Deployment/operator');
    expect(evidence(situation)).toContain('may change widgets/finalizers of example.com');
  });

  test('prefers the writer among workloads with equal rights', () => {
    const same = { resources: ['widgets'] };
    const situation: Situation = {
      manager: 'second',
      details: {
        workloads: read([workload('first'), workload('second')]),
        grants: read([grant('ops/first', same), grant('ops/second', same)]),
      },
    };
    expect(blamed(situation)).toBe('owner-running Deployment/second');
    expect(evidence(situation)).toContain('was written by field manager "second"');
  });

  test('prefers a workload that runs among equals', () => {
    const details = {
      workloads: read([
        workload('asleep', { wanted: 0, ready: 0, serviceAccount: 'shared' }),
        workload('awake', { serviceAccount: 'shared' }),
      ]),
      grants: read([grant('ops/shared')]),
    };
    expect(blamed({ details })).toBe('owner-running Deployment/awake');
  });

  test('no candidate without anything that was read', () => {
    const view = viewOf(build({}));
    const held = heldObjects(view)[0]?.held;
    const { details: _none, ...blind } = view.now;
    expect(held && candidatesFor({ ...view, now: blind }, held)).toEqual([]);
  });
});

describe('the state of the owner', () => {
  const with_ = (over: Parameters<typeof workload>[1]): Situation => ({
    details: { workloads: read([workload('operator', over)]), grants: read([RIGHTS]) },
  });

  test.each<{ what: string; situation: Situation; is: string }>([
    {
      what: 'scaled to zero',
      situation: with_({ wanted: 0, ready: 0 }),
      is: 'owner-scaled-to-zero Deployment/operator',
    },
    {
      what: 'none ready',
      situation: with_({ ready: 0 }),
      is: 'owner-not-ready Deployment/operator',
    },
    {
      what: 'one of three ready',
      situation: with_({ wanted: 3, ready: 1 }),
      is: 'owner-running Deployment/operator',
    },
    {
      what: 'a StatefulSet',
      situation: with_({ kind: 'StatefulSet', ready: 0 }),
      is: 'owner-not-ready StatefulSet/operator',
    },
    {
      what: 'nothing runs as its ServiceAccount',
      situation: { details: { grants: read([RIGHTS]) } },
      is: 'owner-missing CustomResourceDefinition/widgets.example.com',
    },
    {
      what: 'nothing runs as its ServiceAccount, and there is no CRD to name',
      situation: {
        type: CONFIG_MAPS,
        groups: ['example.com'],
        details: { grants: read([RIGHTS]) },
      },
      is: 'owner-missing ConfigMap/db',
    },
    {
      what: 'unknown: no group, no name, no writer',
      situation: { type: CONFIG_MAPS, finalizer: 'some.random/x' },
      is: 'owner-unknown ConfigMap/db',
    },
    {
      what: 'unknown: workloads could not be read',
      situation: { details: { workloads: failed(failureOf()) } },
      is: 'owner-unknown Widget/db',
    },
    {
      what: 'unknown: its rights are known, and workloads could not be read',
      situation: { details: { workloads: failed(failureOf()), grants: read([RIGHTS]) } },
      is: 'owner-unknown Widget/db',
    },
    {
      what: 'unknown: RBAC could not be read',
      situation: { details: { grants: failed(failureOf()) } },
      is: 'owner-unknown Widget/db',
    },
    {
      what: 'unknown: the CRD could not be read either',
      situation: { details: { crds: { 'widgets.example.com': failed(failureOf()) } } },
      is: 'owner-unknown Widget/db',
    },
    {
      what: 'missing: well known, and its default place is empty',
      situation: {
        type: typeOf('kiali.io', 'kialis', 'Kiali'),
        finalizer: 'kiali.io/finalizer',
        details: { crds: {} },
      },
      is: 'owner-missing Kiali/db',
    },
    {
      what: 'a part of kube-controller-manager: no workload shows it',
      situation: { type: CLAIMS, finalizer: 'kubernetes.io/pvc-protection' },
      is: 'owner-running Pod/kube-controller-manager',
    },
  ])('$what: $is', ({ situation, is }) => {
    expect(blamed(situation)).toBe(is);
  });

  test('says why none is ready', () => {
    const why = condition('Available', 'False', 'Deployment does not have minimum availability.');
    expect(
      evidence(with_({ ready: 0, conditions: [condition('Progressing', 'True', 'fine'), why] })),
    ).toContain('Available=False: Deployment does not have minimum availability.');
  });

  test('is in the namespace when the owner lives in it: a deadlock', () => {
    const [draft] = owners({ details: { grants: read([grant(`${DEMO}/operator`)]) } });
    expect(draft).toMatchObject({ code: 'owner-missing', scope: 'namespace' });
    expect(draft.waitsForNamespace).toBeDefined();
    const [elsewhere] = owners({ details: { grants: read([RIGHTS]) } });
    expect(elsewhere.scope).toBe('cluster');
    expect(elsewhere.waitsForNamespace).toBeUndefined();
  });

  test('a cloud provider may run it where nobody can see', () => {
    const situation = (isOnProvider: Details['isOnProvider']): Situation => ({
      type: typeOf('', 'services', 'Service'),
      finalizer: 'service.kubernetes.io/load-balancer-cleanup',
      details: isOnProvider === undefined ? {} : { isOnProvider },
    });
    expect(blamed(situation(read(false)))).toMatch(/^owner-missing/);
    expect(blamed(situation(read(true)))).toMatch(/^owner-unknown/);
    expect(blamed(situation(failed(failureOf())))).toMatch(/^owner-unknown/);
  });
});

describe('the roll call', () => {
  const rollCall = (given: Partial<RollCall> = {}): RollCall => ({
    at: '2026-03-02T10:00:00Z',
    workloads: read([workload('operator', { namespace: DEMO })]),
    grants: read([grant(`${DEMO}/operator`, { namespace: DEMO, role: 'Role operator' })]),
    ...given,
  });

  test('names the workload that was there and went', () => {
    const [draft] = owners({ rollCall: rollCall() });
    expect(draft).toMatchObject({
      code: 'owner-missing',
      subject: { kind: 'Deployment', namespace: DEMO, name: 'operator' },
    });
    expect(draft.waitsForNamespace).toBeDefined();
    expect(draft.evidence.join()).toContain(
      'was there at 2026-03-02T10:00:00Z and is not any more',
    );
  });

  test('does not call gone what is still there', () => {
    const details = { workloads: read([workload('operator', { namespace: DEMO })]) };
    expect(blamed({ rollCall: rollCall(), details })).toBe('owner-running Deployment/operator');
  });

  test('does not call gone what cannot be read now', () => {
    const details = { workloads: failed(failureOf()) };
    const drafts = owners({ rollCall: rollCall(), details });
    expect(drafts[0].message).not.toContain('was deleted');
    expect(drafts[0].evidence.join()).not.toContain('is not any more');
  });

  test.each([
    { what: 'workloads', given: { workloads: failed(failureOf()) } },
    { what: 'grants', given: { grants: failed(failureOf()) } },
  ])('makes do without $what', ({ given }) => {
    expect(blamed({ rollCall: rollCall(given) })).toMatch(/^owner-missing/);
  });

  test('knows an operator that went with its namespace by the name that it wrote', () => {
    const situation: Situation = {
      type: PODS,
      finalizer: 'strange/x',
      manager: 'strange-operator',
      rollCall: rollCall({
        workloads: read([workload('strange-operator', { namespace: DEMO })]),
        grants: read([]),
      }),
    };
    expect(blamed(situation)).toBe('owner-missing Deployment/strange-operator');
  });
});

describe('a running owner that fails', () => {
  const running: Partial<Details> = { workloads: read([OPERATOR]), grants: read([RIGHTS]) };
  const UID = 'uid-widgets-db';
  const status = (given: { conditions?: ReturnType<typeof condition>[]; texts?: string[] }) => ({
    statuses: { [UID]: read({ conditions: [], texts: [], volumeName: undefined, ...given }) },
  });
  const event = (message: string, over = {}) => ({
    type: 'Warning',
    reason: 'CleanupFailed',
    message,
    regarding: { kind: 'Widget', namespace: DEMO, name: 'db', uid: 'other' },
    source: 'operator',
    at: undefined,
    ...over,
  });
  const FORBIDDEN = `widgets.example.com "db" is forbidden: User "system:serviceaccount:ops:operator" cannot patch resource "widgets" in API group "example.com" in the namespace "${DEMO}"`;

  test.each<{ what: string; details: Partial<Details>; says: string }>([
    {
      what: 'a condition of the object',
      details: status({ conditions: [condition('Ready', 'False', FORBIDDEN, 'CleanupFailed')] }),
      says: 'cannot patch resource "widgets"',
    },
    {
      what: 'a message in its status',
      details: status({ texts: ['cannot drop database: refused'] }),
      says: 'cannot drop database',
    },
    {
      what: 'an event about the object',
      details: {
        events: {
          ops: read([
            event('clean-up failed', {
              regarding: { kind: 'Widget', namespace: DEMO, name: 'db', uid: UID },
            }),
          ]),
        },
      },
      says: 'clean-up failed',
    },
    {
      what: 'an event that mentions it with its namespace',
      details: { events: { ops: read([event(`cannot clean up ${DEMO}/db: access denied`)]) } },
      says: 'access denied',
    },
    {
      what: 'a dry run of the removal',
      details: { trials: { [`${UID} ${CLEANUP}`]: { answer: 'refused', message: FORBIDDEN } } },
      says: 'cannot patch resource "widgets"',
    },
  ])('is known by $what', ({ details, says }) => {
    const [draft] = owners({ details: { ...running, ...details } });
    expect(draft.code).toBe('owner-failing');
    expect(draft.message).toContain(says);
  });

  test.each<{ what: string; details: Partial<Details> }>([
    {
      what: 'a condition that is fine',
      details: status({ conditions: [condition('Ready', 'True', 'all good', 'Ready')] }),
    },
    {
      what: 'words that are no failure',
      details: status({ texts: ['Deleting', 'waiting for the database'] }),
    },
    {
      what: 'an event about another object',
      details: { events: { ops: read([event(`cannot clean up ${DEMO}/db-2: refused`)]) } },
    },
    {
      what: 'an event that mentions a longer name',
      details: { events: { ops: read([event(`cannot clean up ${DEMO}/my-db.old: refused`)]) } },
    },
    { what: 'events that could not be read', details: { events: { ops: failed(failureOf()) } } },
    {
      what: 'a status that could not be read',
      details: { statuses: { [UID]: failed(failureOf()) } },
    },
    {
      what: 'a dry run that was accepted',
      details: { trials: { [`${UID} ${CLEANUP}`]: { answer: 'accepted' } } },
    },
    {
      what: 'a dry run that we may not make',
      details: {
        trials: { [`${UID} ${CLEANUP}`]: { answer: 'unknown', message: 'cannot patch resource' } },
      },
    },
  ])('is not concluded from $what', ({ details }) => {
    expect(blamed({ details: { ...running, ...details } })).toBe(
      'owner-running Deployment/operator',
    );
  });

  test('waits for the webhook that refuses the removal', () => {
    const message =
      'Internal error occurred: failed calling webhook "guard.example.com": failed to call webhook: Post "https://guard.ops.svc:443/x?timeout=5s": service "guard" not found';
    const [owner, cause] = owners({
      details: {
        ...running,
        webhooks: read([webhook()]),
        trials: { [`${UID} ${CLEANUP}`]: { answer: 'refused', message } },
      },
    });
    expect(owner).toMatchObject({ code: 'owner-failing' });
    expect(cause).toMatchObject({ code: 'admission-webhook-failing', subject: { name: 'guard' } });
    expect(owner.waitsFor).toHaveLength(1);
    expect(cause?.blocksNamespace).toBeUndefined();
  });

  test('waits for a dead webhook that matches, though nobody has said a word', () => {
    const [owner, cause] = owners({
      details: {
        ...running,
        webhooks: read([webhook()]),
        services: service('ops/guard', undefined),
      },
    });
    expect(owner.code).toBe('owner-failing');
    expect(cause?.code).toBe('admission-webhook-failing');
  });
});

describe('groupsOf', () => {
  const groups = (type: ResourceType, finalizer: string, served: string[]): string[] => {
    const view = viewOf(build({ type, finalizer, groups: served }));
    const held = heldObjects(view)[0]?.held;
    return held === undefined ? [] : groupsOf(view, held);
  };

  test.each<{ finalizer: string; type?: ResourceType; served: string[]; are: string[] }>([
    { finalizer: 'example.com/x', served: ['example.com', 'apps'], are: ['example.com'] },
    { finalizer: 'widgets.example.com/x', served: ['example.com'], are: ['example.com'] },
    { finalizer: 'example.com/x', served: ['db.example.com'], are: ['db.example.com'] },
    { finalizer: 'example.com/x', served: ['notexample.com'], are: [] },
    { finalizer: 'notexample.com/x', served: ['example.com'], are: [] },
    { finalizer: 'cleanup', served: ['example.com'], are: [] },
    { finalizer: 'com/x', served: ['example.com'], are: [] },
    { finalizer: 'kubernetes.io/x', served: ['networking.k8s.io', 'apps'], are: [] },
    {
      finalizer: 'x.io/y',
      type: WIDGETS,
      served: ['example.com', 'x.io'],
      are: ['example.com', 'x.io'],
    },
    { finalizer: 'other/y', type: WIDGETS, served: [], are: ['example.com'] },
  ])('$finalizer among $served: $are', ({ finalizer, type = CONFIG_MAPS, served, are }) => {
    expect(groups(type, finalizer, served)).toEqual(are);
  });
});

test.each([
  { group: '', is: true },
  { group: 'apps', is: true },
  { group: 'policy', is: true },
  { group: 'storage.k8s.io', is: true },
  { group: 'rbac.authorization.k8s.io', is: true },
  { group: 'gateway.networking.k8s.io', is: false },
  { group: 'snapshot.storage.k8s.io', is: false },
  { group: 'metrics.k8s.io', is: false },
  { group: 'example.com', is: false },
])('group "$group" is built in: $is', ({ group: name, is }) => {
  expect(isBuiltIn(name)).toBe(is);
});

test.each([
  { manager: 'widget-operator', is: true },
  { manager: 'rancher', is: true },
  { manager: '', is: false },
  { manager: 'kubectl', is: false },
  { manager: 'kubectl-client-side-apply', is: false },
  { manager: 'helm', is: false },
  { manager: 'manager', is: false },
  { manager: 'python-requests', is: false },
  { manager: 'kube-controller-manager', is: false },
])('field manager "$manager" tells who it is: $is', ({ manager, is }) => {
  expect(isTelling(manager)).toBe(is);
});
