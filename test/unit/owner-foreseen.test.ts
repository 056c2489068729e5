import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { contextOf } from '../../src/diagnose/context.ts';
import { objectDetail } from '../../src/diagnose/detail.ts';
import { needsOfOwner, wantedInputs } from '../../src/diagnose/owner/needs.ts';
import { forecastOf } from '../../src/forecast/outcome.ts';
import { foresee, predict } from '../../src/forecast/predict.ts';
import { readOk } from '../../src/model/read.ts';
import { partnerKey, type ResourceType } from '../../src/model/snapshot.ts';
import { type Change, deployment, listed, named, role, rule } from './changes.ts';
import { readRecordedLook, rewound } from './recorded-looks.ts';
import {
  CLEANUP,
  CONFIG_MAPS,
  contentOf,
  DEMO,
  heldWidget,
  objectFacts,
  podFacts,
  snapshot,
  typeOf,
  WIDGETS,
} from './snapshots.ts';

const GROUP = 'external-secrets.io';
const PUSH = typeOf(GROUP, 'pushsecrets', 'PushSecret');
const STORE = { ...typeOf(GROUP, 'clustersecretstores', 'ClusterSecretStore'), namespaced: false };
const SECRETS = typeOf('', 'secrets', 'Secret');
const SERVICES = typeOf('', 'services', 'Service');

/** A forecast of the hang, after the recording was changed. */
function forecast(scenario: string, change: Change = () => {}) {
  const now = rewound(readRecordedLook(scenario));
  change(now);
  const foreseen = foresee(now, false);
  return { outcome: forecastOf(foreseen), codes: foreseen.findings.map(({ code }) => code) };
}

test.each([
  ['widget-operator-cainjector', true],
  ['widget-operator', false],
])('a Lease %s of another program with a longer name takes the lead from nobody: %s', (...row) => {
  const [lease, isClear] = row;
  const { outcome } = forecast('not-leading', (now) => {
    const operator = named(listed(now, 'deployments'), 'widget-operator');
    const own = named(listed(now, 'leases'), 'widget-operator');
    const { namespace } = operator;
    const name = 'widget-operator-cainjector';
    const by = { apiVersion: 'apps/v1', kind: 'Deployment', name, uid: name, controller: true };
    const given = { namespace, uid: 'pod', account: name, ownerReferences: [by] };
    const other = { ...operator, name, uid: name, account: name, programs: [name] };
    listed(now, 'deployments').push(other);
    const pods = now.places[namespace]?.pods;
    if (pods?.ok) pods.value.push(podFacts(`${name}-0`, given));
    const held = { ...own, name: lease, holder: `${name}-0_1`, renewTime: now.takenAt };
    now.cluster.leases = readOk([held]);
  });
  expect(outcome === 'clear').toBe(isClear);
});

test.each([
  ['widget-operator', 'since a pod of today ran', 1, 'would-hang'],
  // Left of an earlier version, which used another Lease.
  ['widget-operator', 'before any pod of today', -1, 'clear'],
  ['web', 'since a pod of today ran', 1, 'clear'],
])('a Lease of any name that a pod of %s left, %s, says who leads no more', (...row) => {
  const [name, , minutes, outcome] = row;
  const found = forecast('not-leading', (now) => {
    const lease = named(listed(now, 'leases'), 'widget-operator');
    const left = { name: '80807133.acme.dev', holder: `${name}-7d5f8c9b6d-old42_1`, writers: [] };
    const began = Date.parse(lease.renewTime ?? '') - minutes * 60_000;
    const pods = now.places[lease.namespace]?.pods;
    if (!pods?.ok) throw new Error('no pods');
    for (const pod of pods.value) pod.creationTimestamp = new Date(began).toISOString();
    Object.assign(lease, left);
  });
  expect(found.outcome).toBe(outcome);
});

/** A status that somebody wrote so many seconds after the Lease had expired. */
const written =
  (seconds: number, manager = 'widget-operator'): Change =>
  (now) => {
    const lease = named(listed(now, 'leases'), 'widget-operator');
    const expired = Date.parse(lease.renewTime ?? '') + 1_000 * (lease.durationSeconds ?? 15);
    const time = new Date(expired + 1_000 * seconds).toISOString();
    for (const { read } of now.content)
      for (const { examples } of read.ok ? read.value.guarded : [])
        for (const object of examples) object.statusWriters.push({ manager, time } as never);
  };
// Go's own flags have one hyphen.
const dryRun: Change = (now) => {
  written(1)(now);
  for (const read of [now.cluster.deployments, ...Object.values(now.places).map((one) => one.pods)])
    if (read?.ok) for (const one of read.value) one.limits = ['-dry-run'];
};

const failing: Change = (now) => {
  written(1)(now);
  const guarded = now.content.flatMap(({ read }) => (read.ok ? read.value.guarded : []));
  const [regarding] = guarded.flatMap(({ examples }) => examples);
  const event = { type: 'Warning', message: 'no database yet', component: 'widget-operator' };
  const events = readOk([{ ...event, regarding, at: now.takenAt }]);
  Object.assign(now.places[now.namespace.name] ?? {}, { events });
};

test.each<[what: string, change: Change, outcome: string]>([
  ['the owner, which has failed for seconds,', failing, 'inconclusive'],
  ['nobody', () => {}, 'would-hang'],
  ['the owner, before its Lease had expired,', written(-1), 'would-hang'],
  ['the owner, after its Lease had expired,', written(1), 'clear'],
  ['somebody else', written(1, 'kubelet'), 'would-hang'],
  ['the owner, which only tries,', dryRun, 'inconclusive'],
])('%s has written the status, which shows whether it leads', (_, change, outcome) => {
  expect(forecast('not-leading', change).outcome).toBe(outcome);
});

/** A finalizer on this object, in a forecast, and what was read by name. */
function heldIn(
  type: ResourceType,
  given: JsonObject,
  {
    finalizer = CLEANUP,
    namespace = DEMO,
    read = [] as [ResourceType, string, JsonObject?][],
  } = {},
) {
  const facts = { ...objectFacts(type, 'db', { finalizers: [finalizer] }), namespace };
  const content = [type, STORE, SECRETS, SERVICES].map((one) => contentOf(one, []));
  const metadata = { name: 'db', namespace, ...(given['metadata'] as JsonObject) };
  const now = snapshot({
    content,
    details: { [facts.uid]: readOk(objectDetail({ ...given, metadata })) },
    forecast: { deletions: {}, present: { content, pods: readOk([]) }, together: [] },
  });
  for (const [of, name, spec] of read) {
    const place = of.namespaced ? DEMO : undefined;
    const object = { ...objectFacts(of, name), namespace: place ?? '' };
    const key = partnerKey({ ...of, namespace: place, name });
    now.partners[key] = readOk(name === 'absent' ? undefined : object);
    if (spec !== undefined) now.details[object.uid] = readOk(objectDetail({ ...object, spec }));
  }
  const held = heldWidget({ finalizer, type, subject: facts, objects: [facts] });
  return { context: contextOf(now), held };
}

test('of a known product, what an object names needs what the catalogue lists', () => {
  const secretStoreRefs = [{ kind: 'ClusterSecretStore', name: 'aws' }];
  const secretRef = { accessKeyIDSecretRef: { name: 'aws-creds', namespace: DEMO, key: 'id' } };
  const spec = { secretStoreRefs, selector: { secret: { name: 'app' } } };
  const { context, held } = heldIn(
    PUSH,
    { spec },
    {
      finalizer: 'pushsecret.externalsecrets.io/finalizer',
      read: [
        [STORE, 'aws', { provider: { aws: { secretRef } } }],
        [SECRETS, 'aws-creds'],
        [SECRETS, 'app'],
      ],
    },
  );
  const text = 'Secret aws-creds (which ClusterSecretStore aws names)';
  const needs = needsOfOwner(context, held);
  const says = `it may need ${text}, deleted with this namespace`;
  expect(needs).toEqual([{ says, certainty: 'likely', lost: text }]);
});

test('what an owner needs of the cluster, and what does not exist there, can be created again', () => {
  const spec = { secretStoreRefs: [{ kind: 'ClusterSecretStore', name: 'absent' }] };
  const { context, held } = heldIn(PUSH, { spec }, { read: [[STORE, 'absent']] });
  const [doubt] = needsOfOwner(context, held);
  expect(doubt?.fix).toMatch(/^Create ClusterSecretStore absent \(.*\) again/);
});

test.each<[string, JsonObject, string[]]>([
  ['a Secret', { secretRef: { name: 'creds' } }, ['Secret creds (spec.secretRef)']],
  ['the address of a Service', { host: `nats.${DEMO}:4222` }, ['Service nats (spec.host)']],
  ['the name of a Service', { host: 'nats' }, ['Service nats (spec.host)']],
  ['the same in an address', { url: 'tcp://u:p@nats:4222' }, ['Service nats (spec.url)']],
  ['variables of its pods', { env: [{ valueFrom: { secretKeyRef: { name: 'creds' } } }] }, []],
  ['a Secret that does not exist', { secretRef: { name: 'absent' } }, []],
])('an owner may need what the object names, but not what its pods use: %s', (_, spec, needs) => {
  const read: [ResourceType, string][] = [
    [SECRETS, 'creds'],
    [SERVICES, 'nats'],
    [SECRETS, 'absent'],
  ];
  const { context, held } = heldIn(WIDGETS, { spec }, { read });
  expect(needsOfOwner(context, held).map(({ lost }) => lost)).toEqual(needs);
});

test.each([
  [DEMO, 1],
  ['elsewhere', 0],
])('what is created beside an object in %s is refused: %i', (namespace, count) => {
  const type = typeOf('hive.openshift.io', 'clusterdeployments', 'ClusterDeployment');
  const { context, held } = heldIn(
    type,
    { spec: {} },
    { finalizer: 'hive.openshift.io/deprovision', namespace },
  );
  const created = needsOfOwner(context, held).filter(({ created }) => created?.startsWith('a Job'));
  expect(created).toHaveLength(count);
});

test('an owner in the namespace is deleted with it, and a cloud controller in the cluster is no part of a managed control plane', () => {
  expect(forecast('S4').outcome).toBe('would-hang');
  const asleep = { ...deployment('kube-system', 'cloud-controller-manager'), wanted: 0, ready: 0 };
  const here: Change = ({ cluster }) => Object.assign(cluster, { deployments: readOk([asleep]) });
  expect(forecast('cloud-nodes').outcome).toBe('clear');
  expect(forecast('cloud-nodes', here).outcome).not.toBe('clear');
});

test('a role of a controller that is bound to nobody frees nothing', () => {
  const left = role('left', [rule('cache.acme.dev', ['memcacheds', 'memcacheds/status'], '*')]);
  const change: Change = (now) => listed(now, 'clusterRoles').push(left);
  expect(forecast('everyday-kubebuilder-v4-uninstalled', change).outcome).toBe('would-hang');
});

test.each([
  ['PodGroup', true],
  ['pods', false],
])('a ResourceClaim that is reserved for %s may be used afterwards: %s', (kind, isAsked) => {
  const { codes } = forecast('claim-reserved', ({ details, forecast: ahead }) => {
    const [pod] = ahead?.present.pods.ok ? ahead.present.pods.value : [];
    for (const detail of Object.values(details)) {
      if (!detail?.ok || !detail.value) continue;
      detail.value.names = [];
      for (const one of detail.value.references ?? [])
        Object.assign(one, { kind, uid: kind === 'pods' ? pod?.uid : 'group' });
    }
  });
  expect(codes.includes('owner-running')).toBe(isAsked);
});

test.each([
  ['spec.deletionPolicy=Delete', 'would-hang'],
  ['spec.deletionPolicy=Retain', 'clear'],
  ['no policy, like the composite of a claim', 'would-hang'],
])('the content of a snapshot with %s: %s', (setting, outcome) => {
  const now = rewound(readRecordedLook('S83'));
  const [partner] = Object.values(now.partners).flatMap((one) => (one.ok && one.value) || []);
  delete partner?.deletionTimestamp;
  const detail = now.details[partner?.uid ?? ''];
  if (detail?.ok && detail.value) detail.value.settings = [setting];
  const by = { apiVersion: '', kind: '', name: '', uid: partner?.uid ?? '', controller: true };
  const part = objectFacts(WIDGETS, 'part', { ownerReferences: [by] });
  now.partners['part'] = readOk({ ...part, deletionTimestamp: undefined });
  expect(forecastOf(foresee(now, false))).toBe(outcome);
  const read = predict(now).partners['part'];
  expect(read?.ok && read.value?.deletionTimestamp !== undefined).toBe(outcome !== 'clear');
});

test.each<[string, ResourceType, string, boolean]>([
  ['a ConfigMap with its name in front', CONFIG_MAPS, 'db-settings', true],
  ['a custom object with its name in front', typeOf('x.org', 'gs', 'G'), 'db-nightly', false],
  ['a Secret that a reference to a Secret names', SECRETS, 'creds', true],
  ['a ConfigMap with the name of that Secret', CONFIG_MAPS, 'creds', false],
  ['a ConfigMap with the name of the Helm release', CONFIG_MAPS, 'shop', false],
])('a forecast reads as inputs: %s', (_, type, name, isInput) => {
  const annotations = { 'meta.helm.sh/release-name': 'shop' };
  const spec = { uses: { kind: 'Secret', name: 'creds' } };
  const { context, held } = heldIn(WIDGETS, { metadata: { annotations }, spec });
  const candidate = { ...objectFacts(type, name), deletionTimestamp: undefined };
  const [wanted] = wantedInputs(context, [held], type);
  expect(wanted?.isMeant(candidate)).toBe(isInput);
});
