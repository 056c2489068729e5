import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { shortQuote } from '../../src/base/text.ts';
import { actorsOf } from '../../src/diagnose/actors.ts';
import { podRemedies } from '../../src/diagnose/commands.ts';
import { contextOf } from '../../src/diagnose/context.ts';
import { foresee } from '../../src/forecast/predict.ts';
import { podFacts } from '../../src/model/facts/workloads.ts';
import type { Finding, FindingCode } from '../../src/model/finding.ts';
import { readFailed, readOk } from '../../src/model/read.ts';
import type { PodFacts, Snapshot } from '../../src/model/snapshot.ts';
import { expectPairs } from '../stub/pairs.ts';
import { type Change, drop, heldIn, listed, told } from './changes.ts';
import { readRecordedLook, rewound } from './recorded-looks.ts';
import { contentOf, typeOf } from './snapshots.ts';

/** What a held object, an Event about it or the answer to its controller says, in a recorded hang. */

function findingIn(recording: string, code: FindingCode, change: Change): Finding {
  const { findings } = told(recording, change);
  const found = findings.find((one) => one.code === code);
  if (found === undefined) throw new Error(`only ${findings.map((one) => one.code).join()}`);
  return found;
}

const SAYS = 'status-of-older-generation';
const saying =
  (text: string): Change =>
  ({ details }: Snapshot) => {
    for (const detail of Object.values(details ?? {}))
      if (detail.ok) for (const one of detail.value?.conditions ?? []) one.message = text;
  };

/** The operator runs, and its object says this since the deletion. */
const failing = (text: string): Finding =>
  findingIn(SAYS, 'owner-failing', (now) => {
    const read = Object.values(now.details ?? {}).find(({ ok }) => ok);
    const named = { field: 'spec.login', kind: 'Secret', name: 'token' };
    if (read?.ok) read.value?.references.push(named);
    saying(text)(now);
  });
const advice = ({ remedies }: Finding): string => remedies.map(({ text }) => text).join('\n');
const HOPELESS = /can never succeed/;

test.each([
  ['secrets "login" not found in namespace HERE', true],
  ['secrets "login" not found in namespace elsewhere', false],
  ['secrets "token" not found', true],
  // The held object itself.
  ['widgets.example.com "db" not found in namespace HERE', false],
  ['credential "HERE/login" was not found', true],
  ['widget "HERE/db" was not found', false],
])('%j is hopeless: %s', (text, isHopeless) => {
  const { name } = readRecordedLook(SAYS).now.namespace;
  expect(HOPELESS.test(failing(text.replace('HERE', name)).message)).toBe(isHopeless);
});

test.each([0, 1])(
  'where there are %i Services, a host that is not found is one of them',
  (total) => {
    const { message } = findingIn(SAYS, 'owner-failing', (now) => {
      saying(`dial tcp: lookup nats.${now.namespace.name}.svc: no such host`)(now);
      drop(now.content, ({ type }) => type.kind === 'Service');
      now.content.push(contentOf(typeOf('', 'services', 'Service'), [], total));
    });
    expect(message.includes('Service nats does not exist')).toBe(total === 0);
  },
);

test('an object that cannot be read is told where the gate may not list its type', () => {
  const { findings } = told(SAYS, (now) => {
    const message = 'unable to transform key "/registry/secrets/x/login": no matching prefix found';
    now.namespace.conditions = now.namespace.conditions.map((one) =>
      one.type === 'NamespaceDeletionContentFailure' ? { ...one, status: 'True', message } : one,
    );
    for (const name of ['ledgers', 'secrets']) {
      const kind = name === 'ledgers' ? 'server-error' : 'forbidden';
      drop(now.content, ({ type }) => type.resource === name);
      now.content.push({ type: typeOf('', name, name), read: readFailed({ kind, message: 'no' }) });
    }
  });
  const found = findings.find(({ code }) => code === 'storage-unreadable');
  expect(found?.subject.kind).toBe('Namespace');
});

test('a cluster-scoped object that is missing was not in this namespace; what is reported is to be resolved', () => {
  expect(advice(failing('namespaces "letsencrypt" not found'))).toContain(
    'Create Namespace letsencrypt again, which the controller needs',
  );
  expect(advice(failing('cannot delete the volume: AccessDenied'))).toMatch(
    /^Resolve the reported error/,
  );
});

test('a conflict that heals by itself is no reason', () => {
  const conflict =
    'Operation cannot be fulfilled on widgets "db": the object has been modified; please apply your changes to the latest version and try again';
  const { message } = findingIn(SAYS, 'owner-running', saying(conflict));
  expect(message).toContain('nothing that was read shows why');
});

test('an Event since the deletion is quoted if the owner is no workload', () => {
  const found = (later: number) =>
    findingIn('cloud-nodes', 'owner-unknown', (now) => {
      const [object] = heldIn(now);
      const event = {
        ...{ type: 'Warning', reason: 'SyncLoadBalancerFailed', component: 'service-controller' },
        ...{ message: 'AuthorizationFailed: no permission to delete the address', instance: '' },
        regarding: object,
        at: new Date(Date.parse(object?.deletionTimestamp ?? '') + later).toISOString(),
      };
      for (const place of Object.values(now.places)) place.events = readOk([event as never]);
    });
  expect(found(1_000).message).toMatch(/its controller is not known.* says: AuthorizationFailed/);
  expect(advice(found(1_000))).toMatch(
    /^Resolve what Event SyncLoadBalancerFailed about Service \S+ says, if that is why/,
  );
  expect(found(-120_000).message).not.toContain('AuthorizationFailed');
});

test.each([
  ['was never checked', undefined],
  ['is not available without a text', ''],
])('nothing is quoted of an API that %s', (_, message) => {
  const { message: said, quote } = findingIn('api-untrusted', 'apiservice-unavailable', (now) => {
    for (const api of listed(now, 'apiServices'))
      if (api.available?.status === 'False')
        api.available = message === undefined ? undefined : { ...api.available, message };
  });
  expect(said).toMatch(/does not respond as expected$/);
  expect(quote).toBeUndefined();
});

test('of an API that will stop responding, nothing is quoted that says how well it is now', () => {
  const now = rewound(readRecordedLook('api-untrusted'));
  for (const api of listed(now, 'apiServices')) {
    if (api.service === undefined) continue;
    api.service.namespace = now.namespace.name;
    const passed = { status: 'True', reason: 'Passed', message: 'all checks passed' };
    if (api.available) Object.assign(api.available, passed);
  }
  const { findings } = foresee(now, false);
  const { message } = findings.find(({ code }) => code === 'apiservice-unavailable') as Finding;
  expect(message).toMatch(/^will stop responding: .* would be deleted with it$/);
});

test('the fix for a backend depends on the fault of the call', () =>
  expectPairs('backend-faults.txt', (text) => {
    const { message, remedies } = findingIn('api-untrusted', 'apiservice-unavailable', (now) => {
      for (const { available } of listed(now, 'apiServices'))
        if (available?.status === 'False') available.message = text;
    });
    return { message, fix: remedies[0]?.text };
  }));

test.each<[string, Change, boolean]>([
  ['does not exist', (now) => drop(listed(now, 'namespaces'), (one) => one.name === 'hooks'), true],
  ['exists', () => {}, false],
  [
    'may exist',
    ({ cluster }) => {
      cluster.namespaces = readFailed({ kind: 'forbidden', status: 403, message: '403 Forbidden' });
    },
    false,
  ],
])('a webhook whose namespace %s is a leftover, and its configuration is deleted: %s', (...row) => {
  const [, change, isLeft] = row;
  const { message, remedies } = findingIn('S19', 'admission-webhook-failing', (now) => {
    for (const place of Object.values(now.places))
      if (place.services?.ok) place.services.value = [];
    change(now);
  });
  if (!isLeft) {
    expect(message).toContain('Service hooks/guard, which does not exist');
    expect(remedies[0]?.text).toMatch(/^Install the software behind Service hooks\/guard again/);
    return;
  }
  expect(message).toContain('Service hooks/guard, whose namespace does not exist');
  expect(remedies[0]).toMatchObject({
    role: 'now',
    text: 'Delete ValidatingWebhookConfiguration guard',
    command: 'kubectl delete validatingwebhookconfiguration guard',
    risk: 'all its webhooks stop for the whole cluster',
  });
  expect(remedies.filter(({ role }) => role === 'now')).toHaveLength(1);
});

test('a container that is started again and again says first why it ended', () => {
  const pod = (reason: string, terminated: JsonObject): PodFacts => {
    const waiting = { reason, message: 'back-off 5m0s' };
    const main = { name: 'main', state: { waiting }, lastState: { terminated } };
    const metadata = { name: 'guard-0', namespace: 'hooks' };
    const message = '0/1 nodes are available: 1 Insufficient memory. preemption: 0/1 nodes';
    const conditions = [
      { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message },
    ];
    return podFacts({ metadata, status: { containerStatuses: [main], conditions } });
  };
  const killed = pod('CrashLoopBackOff', { reason: 'OOMKilled', exitCode: 137 });
  expect(killed.troubles).toEqual([
    'Unschedulable: 0/1 nodes are available: 1 Insufficient memory.',
    'ended before for lack of memory: OOMKilled, exit code 137',
    'waiting: CrashLoopBackOff: back-off 5m0s',
  ]);
  expect(pod('CreateContainerConfigError', { reason: 'Error', exitCode: 1 }).troubles[1]).toBe(
    'waiting: CreateContainerConfigError: back-off 5m0s',
  );
  const [actor] = actorsOf(contextOf(readRecordedLook('S3').now));
  const owner = { ...(actor as NonNullable<typeof actor>), pods: [killed] };
  const [fix] = podRemedies(owner, 'it then runs');
  expect(fix?.text).toMatch(/^Raise the memory limit of .*; it then runs$/);
});

test('a quotation keeps the end, where nested errors have their cause, and is cut between words', () => {
  const quote = shortQuote(`cannot delete: ${'reconcile: '.repeat(60)}connection is unauthorized`);
  expect(quote.length).toBeLessThanOrEqual(300);
  expect(quote).toMatch(
    /^cannot delete: (?:reconcile: )+reconcile: … (?:reconcile: )+connection is unauthorized$/,
  );
  expect(shortQuote('😀'.repeat(400)).isWellFormed()).toBe(true);
});
