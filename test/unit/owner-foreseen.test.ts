import { expect, test } from 'vitest';
import { contextOf } from '../../src/diagnose/context.ts';
import type { Held } from '../../src/diagnose/owner/held.ts';
import { needsOfOwner, wantedInputs } from '../../src/diagnose/owner/needs.ts';
import { foresee } from '../../src/forecast/predict.ts';
import { objectDetail } from '../../src/model/facts/detail.ts';
import { workloadFacts } from '../../src/model/facts/workloads.ts';
import { forecastOf } from '../../src/model/outcome.ts';
import { readOk } from '../../src/model/read.ts';
import { partnerKey, type ResourceType, type Snapshot } from '../../src/model/snapshot.ts';
import { readRecordedLook, rewound } from './recorded-looks.ts';
import {
  CONFIG_MAPS,
  contentOf,
  DELETED_AT,
  DEMO,
  objectFacts,
  podFacts,
  snapshot,
  typeOf,
} from './snapshots.ts';

const GROUP = 'external-secrets.io';
const PUSH = typeOf(GROUP, 'pushsecrets', 'PushSecret');
const STORE = { ...typeOf(GROUP, 'clustersecretstores', 'ClusterSecretStore'), namespaced: false };
const SECRETS = typeOf('', 'secrets', 'Secret');
const SERVICES = typeOf('', 'services', 'Service');
const GADGETS = typeOf('example.org', 'gadgets', 'Gadget');

test('the catalogue does not hide what a field that it lists names in another kind', () => {
  const finalizers = ['pushsecret.externalsecrets.io/finalizer'];
  const push = objectFacts(PUSH, 'app', { finalizers });
  const store = { ...objectFacts(STORE, 'aws'), namespace: '' };
  const [credentials, source] = [objectFacts(SECRETS, 'aws-creds'), objectFacts(SECRETS, 'app')];
  const content = [PUSH, STORE, SECRETS].map((type) => contentOf(type, []));
  const pushed = {
    secretStoreRefs: [{ kind: 'ClusterSecretStore', name: 'aws' }],
    selector: { secret: { name: 'app' } },
  };
  const secretRef = { accessKeyIDSecretRef: { name: 'aws-creds', namespace: DEMO, key: 'id' } };
  const now = snapshot({
    content,
    details: {
      [push.uid]: readOk(objectDetail({ ...push, spec: pushed })),
      [store.uid]: readOk(objectDetail({ ...store, spec: { provider: { aws: { secretRef } } } })),
    },
    partners: {
      [partnerKey({ ...STORE, namespace: undefined, name: 'aws' })]: readOk(store),
      [partnerKey({ ...SECRETS, namespace: DEMO, name: 'aws-creds' })]: readOk(credentials),
      [partnerKey({ ...SECRETS, namespace: DEMO, name: 'app' })]: readOk(source),
    },
    forecast: { deletions: {}, present: { content, pods: readOk([]) }, together: [] },
  });
  const held: Held = {
    ...{ finalizer: finalizers[0] as string, type: PUSH, subject: { ...push }, objects: [push] },
    ...{ count: 1, since: DELETED_AT, writers: [] },
  };
  expect(needsOfOwner(contextOf(now), held)).toEqual([
    {
      kind: 'object',
      text: 'Secret aws-creds (which ClusterSecretStore aws names)',
      clause:
        'it may need Secret aws-creds (which ClusterSecretStore aws names), deleted with this namespace',
      certainty: 'unknown',
    },
  ]);
});

/** A forecast of the hang, after the recording was changed. */
function forecast(scenario: string, change: (now: Snapshot) => void = () => {}) {
  const now = rewound(readRecordedLook(scenario));
  change(now);
  const foreseen = foresee(now, false);
  return { outcome: forecastOf(foreseen), codes: foreseen.findings.map(({ code }) => code) };
}

test('a Lease of another program beside it, with a longer name, takes the lead from nobody', () => {
  const named = (lease: string) => (now: Snapshot) => {
    const { leases, deployments } = now.cluster;
    if (!leases?.ok || !deployments?.ok) throw new Error('unread');
    const [operator] = deployments.value;
    const own = leases.value.find(({ name }) => name === 'widget-operator');
    if (operator === undefined || own === undefined) throw new Error('no operator');
    const name = 'widget-operator-cainjector';
    const { namespace } = operator;
    const ownerReferences = [
      { apiVersion: 'apps/v1', kind: 'Deployment', name, uid: name, controller: true },
    ];
    const pod = podFacts(`${name}-0`, { namespace, uid: 'pod', account: name, ownerReferences });
    deployments.value.push({ ...operator, name, uid: name, account: name, programs: [name] });
    const pods = now.places[namespace]?.pods;
    if (pods?.ok) pods.value.push(pod);
    leases.value = [{ ...own, name: lease, holder: `${name}-0_1`, renewTime: now.takenAt }];
  };
  expect(forecast('not-leading', named('widget-operator-cainjector')).outcome).toBe('clear');
  expect(forecast('not-leading', named('widget-operator')).outcome).not.toBe('clear');
});

test('a status that the owner wrote after its Lease had expired shows that it leads', () => {
  const written =
    (seconds: number, manager = 'widget-operator') =>
    (now: Snapshot) => {
      const { leases } = now.cluster;
      const lease = (leases?.ok ? leases.value : []).find(({ name }) => name === 'widget-operator');
      const expired = Date.parse(lease?.renewTime ?? '') + 1_000 * (lease?.durationSeconds ?? 15);
      const time = new Date(expired + 1_000 * seconds).toISOString();
      for (const { read } of now.content) {
        const groups = read.ok ? read.value.guarded : [];
        for (const object of groups.flatMap(({ examples }) => examples)) {
          object.statusWriters.push({ manager, operation: 'Update', time } as never);
        }
      }
    };
  expect(forecast('not-leading').outcome).toBe('would-hang');
  expect(forecast('not-leading', written(-1)).outcome).toBe('would-hang');
  expect(forecast('not-leading', written(1)).outcome).toBe('clear');
  expect(forecast('not-leading', written(1, 'kubelet')).outcome).toBe('would-hang');
  // Go's own flags have one hyphen.
  const trying = (now: Snapshot): void => {
    written(1)(now);
    const { deployments } = now.cluster;
    const pods = Object.values(now.places).map((place) => place.pods);
    for (const read of [deployments, ...pods]) {
      if (read?.ok) for (const one of read.value) one.limits = ['-dry-run'];
    }
  };
  expect(forecast('not-leading', trying).outcome).toBe('inconclusive');
});

test('an owner in the namespace is deleted with it, whether or not that is proven', () => {
  expect(forecast('S4').outcome).toBe('would-hang');
});

/** The needs of a finalizer of this object, beside a Secret and a Service that exist. */
function needsOf(finalizer: string, type: ResourceType, spec: object, namespace = DEMO) {
  const object = { ...objectFacts(type, 'db', { finalizers: [finalizer] }), namespace };
  const others = [objectFacts(SECRETS, 'creds'), objectFacts(SERVICES, 'nats')];
  const content = [type, SECRETS, SERVICES].map((one) => contentOf(one, []));
  const types = [SECRETS, SERVICES];
  const now = snapshot({
    content,
    details: {
      [object.uid]: readOk(objectDetail({ ...object, metadata: { namespace }, spec: { ...spec } })),
    },
    partners: Object.fromEntries([
      ...others.map((one, index) => [
        partnerKey({ ...(types[index] as ResourceType), namespace: DEMO, name: one.name }),
        readOk(one),
      ]),
      [partnerKey({ ...SECRETS, namespace: DEMO, name: 'absent' }), readOk(undefined)],
    ]),
    forecast: { deletions: {}, present: { content, pods: readOk([]) }, together: [] },
  });
  const held: Held = {
    ...{ finalizer, type, subject: { ...object }, objects: [object] },
    ...{ count: 1, since: DELETED_AT, writers: [] },
  };
  return needsOfOwner(contextOf(now), held).map(({ text }) => text);
}

const WIDGET = typeOf('example.com', 'widgets', 'Widget');
const CLEANUP = 'widgets.example.com/cleanup';

test.each<[string, object, string[]]>([
  ['a Secret', { secretRef: { name: 'creds' } }, ['Secret creds (spec.secretRef)']],
  ['the address of a Service', { host: `nats.${DEMO}:4222` }, ['Service nats (spec.host)']],
  ['the name of a Service', { host: 'nats' }, ['Service nats (spec.host)']],
  [
    'the name of a Service in an address',
    { url: 'tcp://u:p@nats:4222' },
    ['Service nats (spec.url)'],
  ],
  ['variables of its pods', { env: [{ valueFrom: { secretKeyRef: { name: 'creds' } } }] }, []],
  ['a Secret that does not exist', { secretRef: { name: 'absent' } }, []],
])('an owner may need what the object names, but not what its pods use: %s', (_, spec, needs) => {
  expect(needsOf(CLEANUP, WIDGET, spec)).toEqual(needs);
});

test('what is created beside an object of another namespace is not refused', () => {
  const type = typeOf('hive.openshift.io', 'clusterdeployments', 'ClusterDeployment');
  const created = (namespace?: string) =>
    needsOf('hive.openshift.io/deprovision', type, {}, namespace).filter((text) =>
      text.startsWith('a Job'),
    );
  expect(created()).toHaveLength(1);
  expect(created('elsewhere')).toEqual([]);
});

test('a cloud controller that runs in the cluster is no part of a managed control plane', () => {
  const inCluster = (now: Snapshot): void => {
    const deployment = { name: 'cloud-controller-manager', namespace: 'kube-system', uid: 'ccm' };
    const containers = [{ name: 'cloud-controller-manager' }];
    const spec = { replicas: 0, template: { spec: { containers } } };
    now.cluster.deployments = readOk([
      workloadFacts('apps/v1', 'Deployment')({ metadata: deployment, spec }),
    ]);
  };
  expect(forecast('cloud-nodes').outcome).toBe('clear');
  expect(forecast('cloud-nodes', inCluster).outcome).not.toBe('clear');
});

test.each([
  ['PodGroup', true],
  ['pods', false],
])(
  'a ResourceClaim that is reserved for %s may be used after the deletion: %s',
  (kind, isAsked) => {
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
  },
);

test.each([
  ['Delete', 'would-hang'],
  ['Retain', 'clear'],
])(
  'the content of a snapshot, deletionPolicy %s, is bound to the namespace: %s',
  (policy, outcome) => {
    const isPresent = (now: Snapshot): void => {
      const partners = Object.values(now.partners).flatMap((one) => (one.ok && one.value) || []);
      expect(partners).toHaveLength(1);
      for (const partner of partners) {
        delete partner.deletionTimestamp;
        const detail = now.details[partner.uid];
        if (detail?.ok && detail.value) detail.value.settings = [`spec.deletionPolicy=${policy}`];
      }
    };
    expect(forecast('S83', isPresent).outcome).toBe(outcome);
  },
);

test.each<[string, ResourceType, string, boolean]>([
  ['a ConfigMap with its name in front', CONFIG_MAPS, 'db-settings', true],
  ['a custom object with its name in front', GADGETS, 'db-nightly', false],
  ['a Secret that a reference to a Secret names', SECRETS, 'creds', true],
  ['a ConfigMap with the name of that Secret', CONFIG_MAPS, 'creds', false],
  ['a ConfigMap with the name of the Helm release', CONFIG_MAPS, 'shop', false],
])('a forecast reads as inputs: %s', (_, type, name, isInput) => {
  const annotations = { 'meta.helm.sh/release-name': 'shop' };
  const spec = { uses: { kind: 'Secret', name: 'creds' } };
  const object = objectFacts(WIDGET, 'db', { finalizers: [CLEANUP] });
  const metadata = { name: 'db', namespace: DEMO, annotations };
  const now = snapshot({
    details: { [object.uid]: readOk(objectDetail({ metadata, spec })) },
  });
  const held: Held = {
    ...{ finalizer: CLEANUP, type: WIDGET, subject: { ...object }, objects: [object] },
    ...{ count: 1, since: DELETED_AT, writers: [] },
  };
  const candidate = { ...objectFacts(type, name), deletionTimestamp: undefined };
  const [wanted] = wantedInputs(contextOf(now), [held], type);
  expect(wanted?.isMeant(candidate)).toBe(isInput);
});
