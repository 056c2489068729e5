import { expect, test } from 'vitest';
import { type Actor, actorsOf, actorText } from '../../src/diagnose/actors.ts';
import { contextOf } from '../../src/diagnose/context.ts';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import { isHolder } from '../../src/diagnose/owner/leases.ts';
import {
  containsName,
  isSameName,
  matchesReporter,
  workloadsOfProgram,
} from '../../src/diagnose/owner/names.ts';
import type { Finding } from '../../src/model/finding.ts';
import { readOk } from '../../src/model/read.ts';
import type { EventFacts, LeaseFacts } from '../../src/model/snapshot.ts';
import { type RecordedLooks, readRecordedLook } from './recorded-looks.ts';
import { podFacts } from './snapshots.ts';

test.each<[string, string, boolean]>([
  ['WidgetOperator', 'widget-operator', true],
  ['', '', false],
  ['-', '', false],
  ['widget', '', false],
])('of %j and %j, the names of one program: %s', (a, b, isSame) => {
  expect(isSameName(a, b)).toBe(isSame);
  expect(isSameName(b, a)).toBe(isSame);
  if (b === '') expect(containsName(a, b)).toBe(false);
});

const actor = (name: string, pod: string, kind = 'Deployment'): Actor =>
  ({
    ...{ kind, name, namespace: 'ops', programs: [name, ''], labels: {}, annotations: {} },
    account: { namespace: 'ops', name: 'default' },
    pods: [podFacts(pod, { namespace: 'ops', nodeName: '' })],
  }) as unknown as Actor;

test.each<[string, boolean, string, string?]>([
  ['keda-operator', true, 'keda-operator'],
  ['rook', true, 'rook-ceph-operator'],
  ['cert-manager-challenges', true, 'cert-manager'],
  ['crossplane-helm-provider', true, 'provider-helm'],
  ['cnrm-controller-manager', false, 'cnrm-controller-manager-preview'],
  ['cert-manager-controller', false, 'cert-controller-manager'],
  ['postgres-operator', false, 'postgres-operator-ui'],
  ['keda', false, 'keda-operator-metrics-apiserver'],
  ['percona-xtradb-cluster-operator', false, 'rabbitmq', 'cluster-operator'],
  ['dns-zone-controller', true, 'zones', 'dns-zone-controller'],
  ['', false, 'keda-operator'],
])(
  'field manager %j is a program of the workload: %s, %s',
  (manager, isIts, name, account = name) => {
    const one = { ...actor(name, 'x-0'), account: { namespace: 'ops', name: account } };
    expect(workloadsOfProgram([one], manager)).toEqual(isIts ? [one] : []);
  },
);

test.each<[string, Actor, string, string, boolean]>([
  ['a bare hostname', actor('x', 'x-0'), 'other', 'x-0', true],
  ['<component>-<hostname>', actor('x', 'x-0'), 'widget-controller', 'widget-controller-x-0', true],
  ['the end of another pod', actor('operator', 'operator-0'), '', 'widget-operator-0', false],
  ['no name at all', actor('x', 'x-0'), '', '', false],
])('an Event with %s', (_, one, component, instance, isOf) => {
  expect(matchesReporter(one, component, instance)).toBe(isOf);
});

test.each<[string, Actor, string, boolean]>([
  ['its pod', actor('web', 'web', 'Pod'), 'web_4f9c', true],
  ['a pod whose name begins alike', actor('web', 'web', 'Pod'), 'web-operator-7c9f-x2_4f9c', false],
  ["cert-manager's words", actor('cm', 'cm-1'), 'cm-1-external-cert-manager-controller', true],
  ['nobody', actor('web', 'web', 'Pod'), '', false],
])('a Lease that is held by %s', (_, one, holder, isHeld) => {
  expect(isHolder(one, { holder } as LeaseFacts)).toBe(isHeld);
});

const ownersIn = ({ now, before }: RecordedLooks) =>
  diagnose(now, before)
    .findings.filter(({ code }) => code.startsWith('owner-'))
    .map(({ code, certainty, subject: { kind, name } }: Finding) => ({
      code,
      certainty,
      kind,
      name,
    }));

test.each([['S89', 'console']])('in %s, no Event makes %s the owner', (scenario, innocent) => {
  const looks = readRecordedLook(scenario);
  const { now } = looks;
  const about = now.content.flatMap(({ read }) =>
    read.ok ? read.value.terminating.flatMap(({ examples }) => examples) : [],
  );
  const [pod] =
    actorsOf(contextOf(now)).find((one) => actorText(one).endsWith(`/${innocent}`))?.pods ?? [];
  const instance = pod?.name ?? `${innocent}-7c9f8d6b5-x2x4z`;
  const events = about.flatMap(({ kind, name, uid }) =>
    ['', innocent].map((component) => ({
      ...{
        type: 'Normal',
        reason: 'Synced',
        message: `"system:serviceaccount:tools:${innocent}" cannot patch`,
      },
      ...{ regarding: { kind, name, uid, namespace: now.namespace.name }, component, instance },
      at: now.takenAt,
    })),
  ) as unknown as EventFacts[];
  const own = now.places[now.namespace.name];
  const places = { ...now.places, [now.namespace.name]: { ...own, events: readOk(events) } };

  expect(events.length).toBeGreaterThan(0);
  const owners = ownersIn({ ...looks, now: { ...now, places } });
  expect(owners.map(({ name }) => name)).not.toContain(innocent);
  expect(owners.filter(({ certainty }) => certainty === 'proven')).toEqual([]);
});
