import { describe, expect, test } from 'vitest';
import { type Actor, actorsOf } from '../../src/diagnose/actors.ts';
import { contextOf, shortQuote } from '../../src/diagnose/context.ts';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import { unknownOwner } from '../../src/diagnose/owner/absent.ts';
import { heldObjects } from '../../src/diagnose/owner/finalizers.ts';
import type { Held } from '../../src/diagnose/owner/held.ts';
import type { Suspect } from '../../src/diagnose/owner/suspects.ts';
import { findOwner, type Ownership } from '../../src/diagnose/owner/verdict.ts';
import { wantedFor } from '../../src/diagnose/wanted.ts';
import { webhookFacts } from '../../src/model/facts/admission.ts';
import { workloadFacts } from '../../src/model/facts/workloads.ts';
import type { Finding, Remedy } from '../../src/model/finding.ts';
import { readOk } from '../../src/model/read.ts';
import type { PodFacts, Snapshot } from '../../src/model/snapshot.ts';
import { isOpenOnly } from '../../src/report/sentences.ts';
import { readRecordedLook, readRecordedLooks } from './recorded-looks.ts';

/** What a report advises about a recorded hang that differs in one thing. */

function rootOf(scenario: string, change: (now: Snapshot) => void): Finding {
  const { before, now } = readRecordedLook(scenario);
  change(now);
  const { findings, rootCauses } = diagnose(now, before);
  return findings.find(({ id }) => id === rootCauses[0]) as Finding;
}

const daemonSet = (namespace: string, name: string, image: string) =>
  workloadFacts(
    'apps/v1',
    'DaemonSet',
  )({
    metadata: { namespace, name, uid: name },
    spec: { template: { spec: { containers: [{ name: 'agent', image }] } } },
    status: { desiredNumberScheduled: 3, numberReady: 2 },
  });

const AGENTS = [
  daemonSet('kube-system', 'calico-node', 'calico/node:v3'),
  daemonSet('kube-system', 'aws-node', 'amazon-k8s-cni:v1'),
  daemonSet('kube-system', 'ebs-csi-node', 'aws-ebs-csi-driver:v1'),
  daemonSet('gpus', 'nvidia-dra-driver-gpu-kubelet-plugin', 'k8s-dra-driver-gpu:v25'),
];

const saysKubelet =
  (text: string, agents = AGENTS) =>
  (now: Snapshot): void => {
    now.cluster.daemonSets = readOk(agents);
    for (const { events } of Object.values(now.places)) {
      for (const one of events?.ok ? events.value : []) {
        if (one.reason === 'FailedUnmount') one.message = text;
      }
    }
  };

const SANDBOX =
  'error killing pod: failed to "KillPodSandbox" for "7f1" with KillPodSandboxError: "rpc error: code = Unknown desc = failed to destroy network for sandbox \\"9ab\\": plugin type=\\"calico\\" failed (delete): error getting ClusterInformation: connection is unauthorized: Unauthorized"';
const CSI =
  'UnmountVolume.TearDown failed for volume "data" (UniqueName: "kubernetes.io/csi/ebs.csi.aws.com^vol-1") pod "7f1": rpc error: device is busy';
const DRA =
  'unprepare dynamic resources: NodeUnprepareResources failed for claim team/gpu: DRA driver gpu.nvidia.com is not registered';

test.each<[string, string, RegExp]>([
  [
    'a network plugin',
    SANDBOX,
    /^Repair network plugin calico on node node-ready, which DaemonSet kube-system\/calico-node runs \(2 of 3 ready\): it does not release the pod's network$/,
  ],
  [
    'a volume',
    CSI,
    /^Repair CSI driver ebs\.csi\.aws\.com .* DaemonSet kube-system\/ebs-csi-node runs .*: it does not unmount volume data$/,
  ],
  [
    'claimed devices',
    DRA,
    /^Repair DRA driver gpu\.nvidia\.com .* DaemonSet gpus\/nvidia-dra-\S+ runs .*: it does not release claim team\/gpu$/,
  ],
  ['something else', 'cgroup is busy', /^Resolve what the kubelet of node node-ready reports$/],
])('an overdue pod whose kubelet waits for %s', (_, text, fix) => {
  const { code, quote, remedies } = rootOf('unmount-fails', saysKubelet(text));
  expect(code).toBe('pod-not-confirmed');
  expect(remedies[0]?.text).toMatch(fix);
  expect(quote).toContain(text.slice(-20));
  // A restart of the kubelet is the last advice.
  expect(remedies.at(-1)?.text).toMatch(/^If nothing else helps, restart .*kubelet/);
});

test('a driver that no DaemonSet, or more than one, can be is named alone', () => {
  const two = [...AGENTS, daemonSet('other', 'calico-node', 'x')];
  for (const agents of [[], two]) {
    const [fix] = rootOf('unmount-fails', saysKubelet(SANDBOX, agents)).remedies;
    expect(fix?.text).toMatch(/^Repair network plugin calico on node node-ready: it does not/);
  }
});

test('the DaemonSets are read, and the pods of the one that is meant', () => {
  const { now } = readRecordedLook('unmount-fails');
  saysKubelet(SANDBOX)(now);
  const { cluster, places } = wantedFor(now);
  expect(cluster).toContain('daemonSets');
  expect(places).toContainEqual({ namespace: 'kube-system', sources: ['pods'] });
});

const crowd = (count: number, others: number) => (now: Snapshot) => {
  const [first] = now.pods.ok ? (now.pods.value as [PodFacts]) : [];
  if (first === undefined) throw new Error('no pod');
  const named = (name: string) => ({ ...structuredClone(first), name, uid: name });
  const overdue = Array.from({ length: count }, (_, index) => named(`web-${index}`));
  const alive = { deletionTimestamp: undefined };
  const rest = Array.from({ length: others }, (_, index) => ({
    ...named(`new-${index}`),
    ...alive,
  }));
  now.pods = readOk([...overdue, ...rest] as PodFacts[]);
};

test.each<[string, number, number, RegExp]>([
  ['a few', 2, 0, /^kubectl delete pod web-0 web-1 -n \S+ --grace-period=0 --force$/],
  ['all of a node', 30, 0, /^kubectl delete pods --field-selector spec.nodeName=node-ready -n /],
  ['many of a node', 30, 1, /^kubectl delete pod web-0 (?:web-\d+ ){28}web-29 -n /],
])('the command for pods, %s, reaches each of them and no other', (_, count, others, command) => {
  const { remedies } = rootOf('SEED-5a', crowd(count, others));
  expect(remedies.flatMap((one) => one.command ?? [])).toContainEqual(
    expect.stringMatching(command),
  );
});

test('a grace period of a week is shortened, not waited for', () => {
  const week = 7 * 24 * 3_600;
  const { code, remedies } = rootOf('S30', (now) => {
    const until = new Date(Date.parse(now.takenAt) + 1_000 * week).toISOString();
    for (const pod of now.pods.ok ? now.pods.value : []) {
      Object.assign(pod, { deletionGracePeriodSeconds: week, deletionTimestamp: until });
    }
  });
  expect(code).toBe('pod-grace-period');
  expect(JSON.stringify(remedies)).not.toContain('timeout');
  expect(remedies.find(({ role }) => role === 'now')?.command).toMatch(
    /^kubectl delete pod \S+ .*--grace-period=1/,
  );
});

const sidecar = (name: string) =>
  webhookFacts('MutatingWebhookConfiguration')({
    metadata: { name, uid: name },
    webhooks: [
      {
        name: `${name}.example.com`,
        clientConfig: { url: 'https://example.com' },
        rules: [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*'] }],
      },
    ],
  });

test.each<[string[], string, string]>([
  [['sidecar'], 'likely', 'most likely changes a field'],
  [['sidecar', 'mesh'], 'unknown', 'may be what changes a field'],
])(
  'a refused field that the change does not touch is of the mutating webhooks %j',
  (names, certainty, says) => {
    const { before, now } = readRecordedLook('put-back');
    now.cluster.mutatingPolicies = readOk([]);
    now.cluster.mutatingWebhooks = readOk(names.flatMap(sidecar));
    for (const trial of Object.values(now.trials)) {
      const message =
        'Widget.example.com "db" is invalid: spec.replicas: Forbidden: field is immutable';
      Object.assign(trial, { answer: 'refused', message });
    }
    const found = diagnose(now, before).findings.filter(({ code }) => code === 'admission-denied');
    expect(found.map((one) => one.subject.name).toSorted()).toEqual(names.toSorted());
    for (const one of found) {
      expect(one).toMatchObject({ certainty });
      expect(one.message).toContain(says);
      expect(one.remedies[0]?.text).toMatch(/^Limit webhook \S+ of \S+ to CREATE$/);
      expect(one.remedies[0]?.command).toContain('/webhooks/0/rules/0/operations');
    }
  },
);

test('a forecast leaves a question open if nothing but the deletion can answer it', () => {
  const open = { what: 'whether admission lets pods be deleted', reason: 'it looks at who asks' };
  expect(isOpenOnly({ notInspected: [open, open] })).toBe(true);
  expect(isOpenOnly({ notInspected: [open, { what: 'Secrets', reason: '403' }] })).toBe(false);
});

describe('the advice in every recording', () => {
  const all = readRecordedLooks().map(({ scenario, now, before }) => {
    const { findings } = diagnose(now, before);
    return { scenario, now, findings, actors: actorsOf(contextOf(now)) };
  });
  const wrong = (isWrong: (one: Remedy, of: Finding, now: Snapshot) => boolean): string[] =>
    all.flatMap(({ scenario, now, findings }) =>
      findings.flatMap((of) =>
        of.remedies
          .filter((one) => isWrong(one, of, now))
          .map(({ text }) => `${scenario}: ${text}`),
      ),
    );

  test('asks no author of a program, and starts nothing again in a terminating namespace', () => {
    expect(wrong(({ text }) => /\bauthor\b/.test(text))).toEqual([]);
    const isLost = ({ code, scope, subject }: Finding, { namespace }: Snapshot): boolean =>
      code === 'owner-missing' && (scope === 'namespace' || subject.namespace === namespace.name);
    expect(
      wrong(
        ({ text }, of, now) =>
          isLost(of, now) && /^Install\b/.test(text) && !text.includes('in another namespace'),
      ),
    ).toEqual([]);
  });

  test('reads no log of a workload without a pod that has started', () => {
    const logs = all.flatMap(({ scenario, findings, actors }) =>
      findings.flatMap(({ remedies }) =>
        remedies.flatMap(({ command = '' }) => {
          const [, kind, name, place] = /^kubectl logs (\w+)\/(\S+) -n (\S+)/.exec(command) ?? [];
          const actor = actors.find(
            (one) =>
              one.kind.toLowerCase() === kind && one.name === name && one.namespace === place,
          );
          return actor === undefined ? [] : [{ scenario, actor }];
        }),
      ),
    );
    expect(logs.length).toBeGreaterThan(50);
    expect(logs.filter(({ actor }) => actor.wanted === 0 && actor.pods.length === 0)).toEqual([]);
  });

  test('is not for the platform team if what is gone was in the namespace', () => {
    const hopeless = all.flatMap(({ findings }) =>
      findings.filter(({ message }) => message.includes('can never succeed')),
    );
    expect(hopeless.length).toBeGreaterThan(10);
    expect(hopeless.filter(({ scope }) => scope !== 'namespace')).toEqual([]);
  });

  test('begins with the log of an owner that runs and shows no reason, and time comes after it', () => {
    const silent = all.flatMap(({ findings }) =>
      findings.filter(({ message }) => /nothing that was read shows why/.test(message)),
    );
    expect(silent.length).toBeGreaterThan(10);
    for (const { remedies } of silent) {
      const log = remedies.findIndex(({ command = '' }) => command.startsWith('kubectl logs'));
      const time = remedies.findIndex(({ text }) => text.endsWith('raise the timeout'));
      if (log >= 0) expect(remedies[log]?.role).toBe('now');
      expect(time).toBeGreaterThan(log);
    }
  });
});

test('an unknown owner is told with as many suspects as a sentence takes, and all of them as evidence', () => {
  const { before, now } = readRecordedLook('status-of-the-powerless');
  const context = contextOf(now, before);
  const [held] = heldObjects(context) as [Held];
  const ownership = findOwner(context, held);
  const [first] = ownership.suspects as [Suspect];
  const suspects = Array.from({ length: 5 }, (_, at) => ({
    ...first,
    actor: { ...(first.actor as Actor), name: `operator-${at}` },
  }));
  const unknown = { ...ownership, verdict: 'unknown', owner: undefined, excluded: [], suspects };
  const { message, evidence } = unknownOwner(context, held, unknown as Ownership, []);
  expect(message).toMatch(/one of: Deployment \S+\/operator-0 \(running\), .* or \d more/);
  expect(evidence.filter((one) => one.startsWith('suspect '))).toHaveLength(5);
});

test('a condition that was False before the deletion is quoted, with its age', () => {
  const found = rootOf('old-words', () => {});
  expect(found.message).toMatch(
    /The status of Widget db, last written at \S+, before the deletion, says: cannot create the schema/,
  );
});

test('a controller that crashes again and again is told with how it ended', () => {
  const found = rootOf('everyday-kubebuilder-v4-crashing', () => {});
  expect(found.message).toContain('CrashLoopBackOff, ended before: Error, exit code 1');
});

test('a quotation keeps its end', () => {
  const text = `reconcile failed: ${'wrapped: '.repeat(60)}connection is unauthorized`;
  const quote = shortQuote(text);
  expect(quote.length).toBeLessThanOrEqual(300);
  expect(quote).toMatch(/^reconcile failed: .* … .*connection is unauthorized$/);
});

test('a resource of the cloud that its controller no longer finds cannot be leaked', () => {
  const said = (message: string): string | undefined => {
    const { remedies } = rootOf('old-words', ({ details, takenAt }) => {
      for (const read of Object.values(details)) {
        for (const one of read.ok ? (read.value?.conditions ?? []) : []) {
          Object.assign(one, { message, lastTransitionTime: takenAt });
        }
      }
    });
    return remedies.find(({ text }) => text.startsWith('Remove '))?.risk;
  };
  expect(said('api error NoSuchBucket: the bucket does not exist')).toMatch(/nothing is leaked/);
  expect(said('api error AccessDenied')).toMatch(/may be leaked/);
});
