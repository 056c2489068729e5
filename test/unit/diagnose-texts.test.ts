import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { actorsOf } from '../../src/diagnose/actors.ts';
import { podRemedies } from '../../src/diagnose/commands.ts';
import { contextOf, shortQuote } from '../../src/diagnose/context.ts';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import { podFacts } from '../../src/model/facts/workloads.ts';
import type { Finding, FindingCode } from '../../src/model/finding.ts';
import { readOk } from '../../src/model/read.ts';
import type { PodFacts, Snapshot } from '../../src/model/snapshot.ts';
import { readRecordedLook } from './recorded-looks.ts';
import { typeOf } from './snapshots.ts';

/** What a held object, an Event about it or the answer to its controller says, in a recorded hang. */

function findingIn(scenario: string, code: FindingCode, change: (now: Snapshot) => void): Finding {
  const { before, now } = readRecordedLook(scenario);
  change(now);
  const { findings } = diagnose(now, before);
  const found = findings.find((one) => one.code === code);
  if (found === undefined) throw new Error(`only ${findings.map((one) => one.code).join()}`);
  return found;
}

const saying =
  (text: string) =>
  ({ details }: Snapshot): void => {
    for (const detail of Object.values(details ?? {})) {
      if (detail.ok) for (const one of detail.value?.conditions ?? []) one.message = text;
    }
  };

/** The operator runs, and its object says this since the deletion. */
const failing = (text: string): Finding =>
  findingIn('status-of-older-generation', 'owner-failing', saying(text));

const advice = ({ remedies }: Finding): string => remedies.map(({ text }) => text).join('\n');

test('a cluster-scoped object that is missing was not in this namespace', () => {
  const lost = advice(failing('namespaces "letsencrypt" not found'));
  expect(lost).toContain('Create Namespace letsencrypt again, which the controller needs');
});

test('an impersonated ServiceAccount of this namespace was deleted with it', () => {
  const { name } = readRecordedLook('status-of-older-generation').now.namespace;
  const impersonating = (place: string): string =>
    failing(
      `serviceaccounts "deployer" is forbidden: User "system:serviceaccount:flux-system:kustomize-controller" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "${place}"`,
    ).message;
  expect(impersonating(name)).toMatch(/can never succeed: ServiceAccount deployer, as which/);
  expect(impersonating('kube-system')).not.toContain('can never succeed');
});

test('an Event since the deletion is quoted if the owner is no workload', () => {
  const change = (component: string, later: number) => (now: Snapshot) => {
    const groups = now.content.flatMap(({ read }) => (read.ok ? read.value.terminating : []));
    const [object] = groups.flatMap(({ examples }) => examples);
    if (object === undefined) throw new Error('nothing is held');
    const { uid, kind, namespace, name, deletionTimestamp = '' } = object;
    const event = {
      ...{ type: 'Warning', reason: 'SyncLoadBalancerFailed', component, instance: '' },
      message: 'AuthorizationFailed: no permission to delete the address',
      regarding: { uid, kind, namespace, name },
      at: new Date(Date.parse(deletionTimestamp) + later).toISOString(),
    };
    for (const place of Object.values(now.places)) place.events = { ok: true, value: [event] };
  };
  const known = findingIn('cloud-nodes', 'owner-unknown', change('service-controller', 1_000));
  expect(known.message).toMatch(/its controller is not known.* says: AuthorizationFailed/);
  expect(advice(known)).toMatch(
    /^Resolve what Event SyncLoadBalancerFailed about Service \S+ says, if that is why/,
  );
  const early = findingIn('cloud-nodes', 'owner-unknown', change('service-controller', -120_000));
  expect(early.message).not.toContain('AuthorizationFailed');
});

test('what a text calls missing is hopeless only if it was in this namespace, and is not the object itself', () => {
  const { name } = readRecordedLook('status-of-older-generation').now.namespace;
  const isHopeless = (text: string): boolean => /can never succeed/.test(failing(text).message);
  expect(isHopeless(`secrets "login" not found in namespace ${name}`)).toBe(true);
  expect(isHopeless('secrets "login" not found in namespace elsewhere')).toBe(false);
  expect(isHopeless(`widgets.example.com "db" not found in namespace ${name}`)).toBe(false);
  const unreachable = `dial tcp: lookup nats.${name}.svc: no such host`;
  const services = (total: number) => (now: Snapshot) => {
    saying(unreachable)(now);
    const type = typeOf('', 'services', 'Service');
    const read = readOk({ total, queued: total, terminating: [], guarded: [] });
    now.content = [
      ...now.content.filter((one) => one.type.kind !== type.kind),
      { type, read } as never,
    ];
  };
  const about = (total: number): string =>
    findingIn('status-of-older-generation', 'owner-failing', services(total)).message;
  expect(about(0)).toContain('Service nats does not exist');
  expect(about(1)).not.toContain('does not exist');
});

test('what is reported is to be resolved, and a conflict that heals by itself is no reason', () => {
  expect(advice(failing('cannot delete the volume: AccessDenied'))).toMatch(
    /^Resolve what is reported/,
  );
  const conflict =
    'Operation cannot be fulfilled on widgets "db": the object has been modified; please apply your changes to the latest version and try again';
  const { message } = findingIn('status-of-older-generation', 'owner-running', saying(conflict));
  expect(message).toContain('nothing that was read shows why');
});

/** The recorded API, whose backend runs, fails with another text. */
const unavailable = (message: string, change: (now: Snapshot) => void = () => {}): Finding =>
  findingIn('api-untrusted', 'apiservice-unavailable', (now) => {
    const { apiServices } = now.cluster;
    for (const one of apiServices?.ok ? apiServices.value : []) {
      if (one.available?.status === 'False') one.available.message = message;
    }
    change(now);
  });

test('the fix for a backend depends on the fault of the call', () => {
  const url = 'https://10.0.0.1:443/apis/ledger.example.com/v1';
  const failed = `failing or missing response from ${url}: Get "${url}":`;
  const fixes: [text: string, cause: RegExp, fix: RegExp][] = [
    [
      `${failed} tls: failed to verify certificate: x509: certificate signed by unknown authority`,
      /no CA of the caBundle has signed/,
      /^Let the backend of Service \S+ have a certificate that a CA of the caBundle signed, or/,
    ],
    [
      `${failed} tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-01-01T00:00:00Z is after 2025-01-01T00:00:00Z`,
      /has expired or is not yet valid/,
      /^Let the backend of Service \S+ have a certificate that is valid now/,
    ],
    [
      `${failed} tls: failed to verify certificate: x509: certificate is valid for localhost, not extension-api.ledger-system.svc`,
      /for other names/,
      /^Let the backend of Service \S+ respond/,
    ],
    [
      `${failed} http: server gave HTTP response to HTTPS client`,
      /does not use TLS/,
      /^Let the backend/,
    ],
    [
      `failing or missing response from ${url}: bad status from ${url}: 404`,
      /^is not available: .* responds, but does not serve/,
      /^Let the backend/,
    ],
    [
      `failing or missing response from ${url}: bad status from ${url}: 503`,
      /responds with an error: .* 503$/,
      /^Let the backend/,
    ],
    [`${failed} remote error: tls: bad certificate`, /does not respond as expected/, /^Let the/],
    // A URL is no reason: this path only has the word.
    [
      'failing or missing response from https://10.0.0.1/apis/certificates.example.com/v1: EOF',
      /does not respond as expected/,
      /^Let the backend of Service \S+ respond/,
    ],
  ];
  for (const [text, cause, fix] of fixes) {
    const found = unavailable(text);
    expect(found.message).toMatch(cause);
    expect(found.remedies[0]?.text).toMatch(fix);
  }
});

test('a webhook whose namespace does not exist is a leftover, and its configuration is deleted', () => {
  const guard = (change: (now: Snapshot) => void): Finding =>
    findingIn('S19', 'admission-webhook-failing', (now) => {
      for (const place of Object.values(now.places)) {
        if (place.services?.ok) place.services.value = [];
      }
      change(now);
    });
  const withoutHooks = (now: Snapshot): void => {
    const { namespaces } = now.cluster;
    if (namespaces?.ok) namespaces.value = namespaces.value.filter(({ name }) => name !== 'hooks');
  };
  const left = guard(withoutHooks);
  expect(left.message).toContain('Service hooks/guard, whose namespace does not exist');
  expect(left.remedies[0]).toMatchObject({
    role: 'now',
    text: 'Delete ValidatingWebhookConfiguration guard',
    command: 'kubectl delete validatingwebhookconfiguration guard',
    risk: 'all its webhooks stop for the whole cluster',
  });
  expect(left.remedies.filter(({ role }) => role === 'now')).toHaveLength(1);
  expect(JSON.stringify(left.remedies)).not.toContain('get all');
  // It exists, or nobody knows.
  const unknown = (now: Snapshot): void => {
    now.cluster.namespaces = {
      ok: false,
      failure: { kind: 'forbidden', status: 403, message: '403 Forbidden' },
    };
  };
  for (const change of [() => {}, unknown]) {
    const { message, remedies } = guard(change);
    expect(message).toContain('Service hooks/guard, which does not exist');
    expect(remedies[0]?.text).toMatch(/^Install the software behind Service hooks\/guard again/);
  }
});

test('a container that is started again and again says first why it ended', () => {
  const pod = (reason: string, terminated: JsonObject) =>
    podFacts({
      metadata: { name: 'guard-0', namespace: 'hooks' },
      status: {
        containerStatuses: [
          {
            name: 'main',
            state: { waiting: { reason, message: 'back-off 5m0s' } },
            lastState: { terminated },
          },
        ],
      },
    });
  const killed = pod('CrashLoopBackOff', { reason: 'OOMKilled', exitCode: 137 });
  expect(killed.troubles).toEqual([
    'ended before for lack of memory: OOMKilled, exit code 137',
    'waiting: CrashLoopBackOff: back-off 5m0s',
  ]);
  expect(pod('CreateContainerConfigError', { reason: 'Error', exitCode: 1 }).troubles[0]).toBe(
    'waiting: CreateContainerConfigError: back-off 5m0s',
  );

  const [actor] = actorsOf(contextOf(readRecordedLook('S3').now));
  if (actor === undefined) throw new Error('there is no workload');
  const fixWith = (troubled: PodFacts): string | undefined =>
    podRemedies({ ...actor, pods: [troubled] }, 'it', 'it then runs')[0]?.text;
  expect(fixWith(killed)).toBe('Raise the memory limit of it; it then runs');
});

test('a quotation keeps the end, where nested errors have their cause, and is cut between words', () => {
  const wrapped = `cannot delete: ${'reconcile: '.repeat(60)}connection is unauthorized`;
  const quote = shortQuote(wrapped);
  expect(quote.length).toBeLessThanOrEqual(300);
  expect(quote).toMatch(
    /^cannot delete: (?:reconcile: )+reconcile: … (?:reconcile: )+connection is unauthorized$/,
  );
  expect(shortQuote('😀'.repeat(400)).isWellFormed()).toBe(true);
});
