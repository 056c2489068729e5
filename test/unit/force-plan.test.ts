import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import { wantedFor } from '../../src/diagnose/wanted.ts';
import { type ForcePlan, nodeState, planForce, renderPlan } from '../../src/force/plan.ts';
import { webhookFacts } from '../../src/model/facts/admission.ts';
import { namespaceFacts } from '../../src/model/facts/metadata.ts';
import { podFacts } from '../../src/model/facts/workloads.ts';
import type { ActivePolicy } from '../../src/model/outcome.ts';
import { readFailed, readOk } from '../../src/model/read.ts';
import type { Baseline, NamespaceFacts, NodeFacts, Snapshot } from '../../src/model/snapshot.ts';
import { observe } from '../../src/observe/observe.ts';
import { WIDGETS } from '../stage/fake-cluster.ts';
import { CLAIMS, FINALIZER, Situation } from '../stage/force-situation.ts';
import { DEMO } from '../stage/gate-run.ts';

const LOOK_MS = 30_000;

const POLICY: ActivePolicy = {
  mode: 'namespace',
  namespaces: ['preview-*'],
  label: undefined,
  finalizers: [],
  pods: false,
  orphans: 'refuse',
};

interface Planning {
  policy?: Partial<ActivePolicy>;
  /** Between the two looks. */
  meanwhile?: (situation: Situation) => unknown;
  once?: boolean;
  startUid?: string;
  edit?: (snapshot: Snapshot) => void;
  baseline?: Baseline;
}

/** Two looks at the situation, as the gate takes them, and the plan that follows. */
async function plan(situation: Situation, given: Planning = {}): Promise<ForcePlan> {
  const { clock, cluster } = situation;
  const signal = new AbortController().signal;
  const look = async (before?: Snapshot): Promise<Snapshot> => {
    const facts = namespaceFacts(cluster.peek(`/api/v1/namespaces/${DEMO}`) ?? {});
    const wanted = (now: Snapshot) => {
      if (given.baseline !== undefined) now.baseline = given.baseline;
      return wantedFor(now, before);
    };
    const [seen] = await observe([facts], wanted, { api: cluster, clock, signal });
    return seen as Snapshot;
  };
  const before = given.once ? undefined : await look();
  await clock.run(clock.sleep(LOOK_MS));
  situation.lease('kube-system', 'kube-controller-manager', 1, 'control-plane-0');
  given.meanwhile?.(situation);
  const snapshot = await look(before);
  given.edit?.(snapshot);
  return planForce({
    snapshot,
    diagnosis: diagnose(snapshot, before),
    policy: { ...POLICY, ...given.policy },
    startUid: given.startUid ?? snapshot.namespace.uid,
    ownNamespace: 'ci',
  });
}

const held = (): Situation => new Situation().held(WIDGETS, 'db');
const freed = ({ actions }: ForcePlan): string[] =>
  actions.map(({ target, finalizer }) => `${target} ${finalizer}`.trim());
const refusals = ({ refused }: ForcePlan): string[] =>
  refused.map(({ target, reason }) => `${target}: ${reason}`);

const WIDGET = `widgets.example.com/db ${FINALIZER}`;
describe('a finalizer', () => {
  test('is removed if it is written out in full; the plan says why it stays', async () => {
    const planned = await plan(held(), { policy: { finalizers: [FINALIZER] } });
    expect(freed(planned)).toContain(WIDGET);
    expect(renderPlan(planned).join('\n')).toMatch(/why it stays: .*widget-operator/);
  });

  test.each(['*', '*.example.com/*', `${FINALIZER}*`, 'other.example.org/*'])(
    'is not removed by the pattern %s, which is refused, and the refusal has the value to write',
    async (pattern) => {
      const planned = await plan(held(), { policy: { finalizers: [pattern] } });
      expect(freed(planned)).not.toContain(WIDGET);
      expect(refusals(planned).join()).toContain(`${pattern} in force-finalizers is a pattern`);
      expect(refusals(planned)).toContainEqual(
        expect.stringMatching(new RegExp(`db: .*add to force-finalizers: ${FINALIZER}$`)),
      );
    },
  );
});

test('a queued object is planned for later, and only if its finalizer is named', async () => {
  const queued = new Situation();
  queued.cluster.object(WIDGETS, DEMO, 'db', { finalizers: [FINALIZER, 'x.io/y'] });
  const planned = await plan(queued, { policy: { finalizers: [FINALIZER], mode: 'objects' } });
  expect(planned.actions).toMatchObject([
    { target: 'widgets.example.com/db', finalizer: FINALIZER },
  ]);
  expect(planned.refused).toEqual([]);
});

describe('finalizers that even the exact name does not match', () => {
  const policy = { finalizers: [FINALIZER] };

  test.each<[string, RegExp, (s: Situation) => unknown, Planning?]>([
    [
      'a namespace that is another one now',
      ...([/its UID was other/, () => {}, { startUid: 'other' }] as const),
    ],
    [
      'a namespace that nobody has asked to go',
      /only a Terminating namespace is forced/,
      (s) => s.cluster.namespace(DEMO, { active: true }),
    ],
  ])('%s', async (_, reason, arrange, given) => {
    const situation = held();
    arrange(situation);
    const planned = await plan(situation, { policy, ...given });
    expect(freed(planned)).not.toContain(WIDGET);
    expect(refusals(planned).join('\n')).toMatch(reason);
  });

  test.each([
    ['default', /"default" belongs to the cluster/],
    ['kube-system', /begin with "kube-"/],
    ['openshift-monitoring', /begin with "openshift"/],
    ['ci', /the gate itself runs in a namespace of this name/],
    ['', /it has no name/],
  ])('protected namespace "%s", whatever the inputs say', async (name, reason) => {
    const everything = { namespaces: ['*', name], finalizers: ['*', FINALIZER, 'kubernetes'] };
    const planned = await plan(held(), {
      policy: { ...everything, orphans: 'accept' },
      edit: ({ namespace }) => {
        (namespace as NamespaceFacts).name = name;
      },
    });
    expect(planned.actions).toEqual([]);
    expect(refusals(planned)[0]).toMatch(reason);
  });

  test.each<[string, Partial<ActivePolicy>, RegExp]>([
    ['no pattern at all', { namespaces: [] }, /force-namespaces \(empty\)/],
    ['a pattern for others', { namespaces: ['staging-*'] }, /does not match its name/],
    ['a pattern that says nothing', { namespaces: ['**'] }, /allows every namespace/],
    [
      'a label that it lacks',
      { label: { key: 'a', value: 'b' } },
      /in the namespace it is not set/,
    ],
    [
      'another value of the label',
      { label: { key: 'ephemeral', value: 'yes' } },
      /in the namespace it is true/,
    ],
    [
      'no finalizers',
      { finalizers: [] },
      /force-finalizers does not allow it \(.*\); .*add to force-finalizers: widgets/,
    ],
    ['other finalizers', { finalizers: ['x.io/*'] }, /does not allow it \(.*: widgets/],
  ])('a namespace or finalizer that is not permitted: %s', async (_, over, reason) => {
    const planned = await plan(held(), { policy: { ...policy, ...over } });
    expect(freed(planned)).not.toContain(WIDGET);
    expect(refusals(planned).join('\n')).toMatch(reason);
  });

  test('`*` is accepted with a label', async () => {
    const label = { key: 'ephemeral', value: 'true' };
    const planned = await plan(held(), { policy: { ...policy, namespaces: ['*'], label } });
    expect(freed(planned)).toContain(WIDGET);
  });
});

describe('overdue pods', () => {
  const NOW = Date.parse('2026-03-02T12:00:00Z');
  const HOUR_AGO = '2026-03-02T11:00:00Z';
  const node = (ready: string | undefined, readySince?: string) =>
    readOk<NodeFacts>({
      ...{ name: 'n', ready, readyReason: undefined, readySince, deletionTimestamp: undefined },
    });

  test.each<[string, Parameters<typeof nodeState>[0], boolean]>([
    ['does not exist', readOk(undefined), true],
    ['Unknown for an hour', node('Unknown', HOUR_AGO), true],
    ['Unknown for 5 minutes and a second', node('Unknown', '2026-03-02T11:54:59Z'), true],
    ['Unknown for just 5 minutes', node('Unknown', '2026-03-02T11:55:00Z'), false],
    ['Unknown, nobody knows since when', node('Unknown'), false],
    ['not ready for an hour', node('False', HOUR_AGO), false],
    ['Ready', node('True', HOUR_AGO), false],
    ['without the condition', node(undefined, HOUR_AGO), false],
    ['not to be read', readFailed({ kind: 'forbidden', message: '403' }), false],
    ['not read', undefined, false],
  ])('node %s', (_, given, lost) => {
    expect(nodeState(given, NOW).lost).toBe(lost);
  });

  test('are deleted only with force-pods, and the plan names what that leaves behind', async () => {
    const lost = () => new Situation().overduePod();
    expect(refusals(await plan(lost())).join()).toContain('force-pods: true would delete');
    const planned = await plan(lost(), { policy: { pods: true } });
    expect(freed(planned)).toEqual(['pods/web', `namespaces/${DEMO} kubernetes`]);
    expect(renderPlan(planned).join()).toMatch(
      /containers that still run on node node-9, and the vol/,
    );
  });
});

describe('the namespace itself', () => {
  const own = (finalizers: string[], spec: string[] = []): Situation => {
    const situation = new Situation();
    const path = `/api/v1/namespaces/${DEMO}`;
    const object = situation.cluster.peek(path) as { metadata: object };
    situation.cluster.put(path, {
      ...object,
      metadata: { ...object.metadata, finalizers },
      spec: { finalizers: [...spec, 'kubernetes'] },
    });
    return situation;
  };
  const NAMESPACE = `namespaces/${DEMO}`;

  test('its own entries are removed one by one, `kubernetes` last', async () => {
    const planned = await plan(own(['a.example.com/x'], ['b.example.com/y']), {
      policy: { finalizers: ['a.example.com/x', 'b.example.com/y'] },
    });
    expect(freed(planned)).toEqual([
      `${NAMESPACE} a.example.com/x`,
      `${NAMESPACE} b.example.com/y`,
      `${NAMESPACE} kubernetes`,
    ]);
  });

  test('`kubernetes` is not removed while another entry remains', async () => {
    const planned = await plan(own(['other.io/x']));
    expect(planned.actions).toEqual([]);
    expect(refusals(planned).join()).toMatch(
      /kubernetes stays in spec.finalizers as long as other/,
    );
  });

  test.each([
    ['once', { once: true }, /examined only once.*or name kubernetes in force-finalizers/],
    ['twice', {}, undefined],
  ] as const)(
    '`kubernetes` of an empty namespace that was examined %s',
    async (_, given, reason) => {
      const planned = await plan(own([]), given);
      expect(freed(planned)).toEqual(reason === undefined ? [`${NAMESPACE} kubernetes`] : []);
      if (reason !== undefined) expect(refusals(planned).join()).toMatch(reason);
      const exactly = await plan(own([]), { ...given, policy: { finalizers: ['kubernetes'] } });
      expect(freed(exactly)).toEqual([`${NAMESPACE} kubernetes`]);
    },
  );

  test('mode objects does not remove them, and mode plan lists what mode namespace would do', async () => {
    const modes = ['plan', 'namespace', 'objects'] as const;
    const [first, second, objects] = await Promise.all(
      modes.map((mode) => plan(own(['a.example.com/x']).held(WIDGETS, 'db'), { policy: { mode } })),
    );
    expect(objects?.actions).toEqual([]);
    expect(objects?.refused.map(({ reason }) => reason).join()).toContain(
      'only force-finalize: namespace removes it',
    );
    expect([first?.actions, first?.refused]).toEqual([second?.actions, second?.refused]);
  });
});

test.each([
  ['https://hooks.preview-7.svc/ask', true],
  ['https://hooks.preview-7.svc:8443', true],
  ['https://hooks.preview-7.svc.cluster.local/ask', true],
  ['https://hooks.preview-7.svc.example.com/ask', false],
  ['https://hooks.preview-7.example.com/ask', false],
  ['https://hooks.preview-7.svcs/ask', false],
  ['https://preview-7.svc/ask', false],
  ['https://10.0.0.1:8443/ask', false],
])('a webhook at %s calls a Service of the namespace: %s', (url, isInside) => {
  const [webhook] = webhookFacts('ValidatingWebhookConfiguration')({
    webhooks: [{ name: 'guard.example.com', clientConfig: { url } }],
  });
  expect(webhook?.service).toBeUndefined();
  expect(webhook?.serviceInUrl).toEqual(
    isInside ? { namespace: 'preview-7', name: 'hooks' } : undefined,
  );
});

test('the protection of a claim stays while a pod that has not ended uses it', async () => {
  const protection = 'kubernetes.io/pvc-protection';
  const planned = (phase?: string) =>
    plan(new Situation().held(CLAIMS, 'data', { finalizers: [protection] }), {
      policy: { finalizers: [protection] },
      edit: (snapshot) => {
        const metadata = { namespace: DEMO, name: 'web', uid: 'web' };
        const volumes = [{ persistentVolumeClaim: { claimName: 'data' } }];
        const web = podFacts({
          metadata: { ...metadata, deletionTimestamp: snapshot.takenAt },
          ...{ spec: { nodeName: 'node-1', containers: [], volumes }, status: { phase } },
        } as JsonObject);
        const unread = readFailed({ kind: 'forbidden', message: '403 Forbidden' });
        snapshot.pods = phase === undefined ? unread : readOk([web]);
      },
    });
  const [running, ended, unread] = [
    await planned('Running'),
    await planned('Succeeded'),
    await planned(),
  ];
  expect(refusals(running).join()).toMatch(/claim data is still used by Pod web/);
  expect(refusals(unread).join()).toMatch(/uses a claim could not be read: 403/);
  for (const one of [running, unread]) expect(freed(one).join()).not.toContain(protection);
  expect(freed(ended)).toContain(`persistentvolumeclaims/data ${protection}`);
});
