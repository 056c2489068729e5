import type { Diagnosis, Edge, Finding, HeldNamespace } from '../../src/model/finding.ts';
import { NAMESPACE } from '../../src/model/finding.ts';
import type { NamespaceResult, RunResult } from '../../src/model/result.ts';
import type { Condition } from '../../src/model/snapshot.ts';

/** Results of runs as the gate would hand them over, for tests of everything that tells about them. */

export const FINISHED_AT = '2026-03-02T10:05:02.000Z';
const DELETED_AT = '2026-03-02T10:00:11Z';

export function finding(
  given: Partial<Finding> & Pick<Finding, 'code' | 'subject' | 'message'>,
): Finding {
  const { kind, namespace, name } = given.subject;
  const suffix = given.finalizer === undefined ? '' : `:${given.finalizer}`;
  return {
    id: `${given.code}:${kind}/${namespace === undefined ? '' : `${namespace}/`}${name}${suffix}`,
    evidence: [],
    scope: 'namespace',
    waitsFor: [],
    remedies: [],
    ...given,
  };
}

/** Ties findings as the graph does: what nothing waits for blocks, what waits for nothing is a root cause. */
export function diagnosis(
  findings: readonly Finding[],
  given: Partial<Diagnosis> & { because?: Record<string, string> } = {},
): Diagnosis {
  const { because = {}, ...rest } = given;
  const waitedFor = new Set(findings.flatMap(({ waitsFor }) => waitsFor));
  const blockers = rest.blockers ?? findings.map(({ id }) => id).filter((id) => !waitedFor.has(id));
  const edges: Edge[] = [
    ...blockers.map((to) => ({ from: NAMESPACE, to, because: because[to] ?? 'it is still there' })),
    ...findings.flatMap(({ id, waitsFor }) =>
      waitsFor.map((to) => ({ from: id, to, because: because[to] ?? 'only its owner removes it' })),
    ),
  ];
  return {
    findings: [...findings],
    edges,
    blockers,
    rootCauses: findings.filter(({ waitsFor }) => waitsFor.length === 0).map(({ id }) => id),
    deadlocks: [],
    queued: [],
    notInspected: [],
    conditions: [],
    contradictions: [],
    alsoHeld: [],
    reservations: {},
    namespaceUnread: false,
    movement: { kind: 'none', comparedMs: 60_000 },
    inspectedTypes: 38,
    ...rest,
  };
}

export function namespaceResult(given: Partial<NamespaceResult> = {}): NamespaceResult {
  return {
    name: 'preview-pr-42',
    uid: '7d1f0a6e-58a4-4d43-9d64-1fb6b7a3f0c2',
    outcome: 'stuck',
    verdict: 'fail',
    elapsedMs: 302_000,
    deletionTimestamp: DELETED_AT,
    conditions: [],
    diagnosis: undefined,
    timeline: [
      { at: '2026-03-02T10:00:00Z', event: 'terminating since 11 s' },
      { at: FINISHED_AT, event: 'timeout' },
    ],
    forced: null,
    leftBehind: undefined,
    examination: { requests: 51, ms: 900 },
    ...given,
  };
}

export function runOf(namespaces: NamespaceResult[], given: Partial<RunResult> = {}): RunResult {
  const worst = namespaces.find(({ verdict }) => verdict === 'fail') ?? namespaces[0];
  return {
    kind: 'teardown',
    gateVersion: '1.0.0',
    finishedAt: FINISHED_AT,
    elapsedMs: Math.max(0, ...namespaces.map(({ elapsedMs }) => elapsedMs)),
    timeoutMs: 300_000,
    cluster: {
      server: 'https://kind.example:6443',
      version: 'v1.36.3',
      uid: undefined,
    },
    outcome: worst?.outcome ?? 'not-found',
    verdict: worst?.verdict ?? 'pass',
    namespaces,
    sharedCauses: [],
    ...given,
  };
}

/** Namespaces that wait for the same, for longer than any run. */
export function heldSince(...names: string[]): HeldNamespace[] {
  return names.map((name) => ({ name, since: '2026-02-27T08:00:00Z' }));
}

const HOME = 'preview-pr-42';
const WIDGET = { apiVersion: 'example.com/v1', kind: 'Widget', namespace: HOME, name: 'db' };
const CLEANUP = 'widgets.example.com/cleanup';

const CONTENT_CONDITIONS: Condition[] = [
  {
    type: 'NamespaceDeletionDiscoveryFailure',
    status: 'False',
    reason: 'ResourcesDiscovered',
    message: 'All resources successfully discovered',
    lastTransitionTime: DELETED_AT,
  },
  {
    type: 'NamespaceContentRemaining',
    status: 'True',
    reason: 'SomeResourcesRemain',
    message: 'Some resources are remaining: widgets.example.com has 1 resource instances',
    lastTransitionTime: DELETED_AT,
  },
  {
    type: 'NamespaceFinalizersRemaining',
    status: 'True',
    reason: 'SomeFinalizersRemain',
    message: `Some content in the namespace has finalizers remaining: ${CLEANUP} in 1 resource instances`,
    lastTransitionTime: DELETED_AT,
  },
];

/** An operator that was deleted together with what it had to clean up. */
export function deadlock(): NamespaceResult {
  const owner = finding({
    code: 'owner-missing',
    subject: {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      namespace: HOME,
      name: 'widget-operator',
    },
    finalizer: CLEANUP,
    message: 'was deleted with the namespace, so nobody is left to remove the finalizer',
    evidence: [
      'its Lease widget-operator-leader was last renewed 5m 00s ago by pod widget-operator-7c9f-x2x',
      'the pod was in this namespace',
    ],
    since: '2026-03-02T10:00:14Z',
    remedies: [
      {
        text: 'For the next run: delete the Widgets before the operator, and only then the namespace',
        command: `kubectl delete widgets.example.com --all -n ${HOME} --wait`,
      },
      {
        text: 'Now: install the operator again, in any namespace; it removes the finalizer, and the namespace goes within 10 s',
      },
    ],
  });
  const held = finding({
    code: 'object-finalizer',
    subject: WIDGET,
    finalizer: CLEANUP,
    message: `is held by finalizer ${CLEANUP}`,
    evidence: [
      `deletionTimestamp 2026-03-02T10:00:11Z, finalizers ${CLEANUP}`,
      'managedFields: "widget-operator" wrote the finalizer (Update, 2026-02-28T09:12:44Z)',
    ],
    since: DELETED_AT,
    waitsFor: [owner.id],
    remedies: [
      {
        text: 'If that is not possible: remove this one finalizer',
        command: `kubectl patch widgets.example.com db -n ${HOME} --type=json -p '[{"op":"test","path":"/metadata/uid","value":"6a1c7be2"},{"op":"test","path":"/metadata/finalizers/0","value":"${CLEANUP}"},{"op":"remove","path":"/metadata/finalizers/0"}]'`,
        risk: 'what it protects may leak: the external database that db created',
      },
    ],
  });
  return namespaceResult({
    conditions: CONTENT_CONDITIONS,
    diagnosis: diagnosis([held, owner], {
      deadlocks: [[held.id, owner.id]],
      queued: [
        { apiVersion: 'v1', kind: 'ConfigMap', count: 9 },
        { apiVersion: 'v1', kind: 'Secret', count: 8 },
        { apiVersion: 'v1', kind: 'ServiceAccount', count: 24 },
      ],
      conditions: CONTENT_CONDITIONS,
      because: {
        [held.id]: `it is terminating since ${DELETED_AT} and has finalizer ${CLEANUP}`,
        [owner.id]:
          'only its controller removes the finalizer: it wrote it, and its ServiceAccount may update widgets/finalizers',
      },
    }),
  });
}

/** A dead add-on that holds every namespace of the cluster. */
export function deadApiService(): NamespaceResult {
  const dead = finding({
    code: 'apiservice-unavailable',
    subject: {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      name: 'v1beta1.metrics.k8s.io',
    },
    message:
      'does not answer: its backend is Service monitoring/prometheus-adapter, which does not exist',
    evidence: [
      'Available=False (ServiceNotFound): service/prometheus-adapter in "monitoring" is not present',
    ],
    since: '2026-03-02T07:41:00Z',
    scope: 'cluster',
    remedies: [
      {
        text: 'Bring Service monitoring/prometheus-adapter back (install again what served it); namespaces then go by themselves within 90 s',
        command: 'kubectl get all -n monitoring',
      },
      {
        text: 'If its software was removed for good, delete the APIService',
        command: 'kubectl delete apiservice v1beta1.metrics.k8s.io',
        risk: 'metrics.k8s.io/v1beta1 disappears for the whole cluster: kubectl top and autoscaling on CPU and memory stop',
      },
    ],
  });
  return namespaceResult({
    name: 'preview-pr-57',
    elapsedMs: 300_000,
    diagnosis: diagnosis([dead], {
      alsoHeld: heldSince('preview-pr-51', 'preview-pr-55', 'load-test'),
      because: {
        [dead.id]:
          'no namespace is finished before every API group answers, and metrics.k8s.io/v1beta1 does not',
      },
    }),
  });
}

/** Nothing was found, and not everything could be looked at. */
export function notSeen(): NamespaceResult {
  const entry = (apiGroup: string, resource: string) => {
    const what = apiGroup === '' ? resource : `${resource}.${apiGroup}`;
    return {
      what,
      reason: `403 Forbidden: ${what} is forbidden: User "system:serviceaccount:ci:preview" cannot list resource "${resource}" in API group "${apiGroup}" in the namespace "preview-pr-60"`,
      grant: { apiGroup, resource, verb: 'list' },
    };
  };
  return namespaceResult({
    name: 'preview-pr-60',
    outcome: 'inconclusive',
    elapsedMs: 300_000,
    diagnosis: diagnosis([], {
      notInspected: [
        entry('', 'secrets'),
        entry('example.com', 'widgets'),
        entry('example.com', 'gadgets'),
        entry('example.com', 'ledgers'),
        entry('coordination.k8s.io', 'leases'),
        { what: 'API group broken.example.com/v1', reason: 'no answer within 15 s' },
      ],
      inspectedTypes: 33,
    }),
  });
}

/** Content that still goes away. */
export function shrinking(): NamespaceResult {
  const going = finding({
    code: 'content-deleting',
    subject: { apiVersion: 'v1', kind: 'APIResource', name: 'configmaps' },
    message: 'are still going away: 1200 objects 10 s ago, 900 now',
    evidence: ['1200 then, 900 now, 1800 a minute; about 30 s left at this rate'],
    count: 900,
  });
  return namespaceResult({
    name: 'load-test',
    outcome: 'progressing',
    diagnosis: diagnosis([going], {
      movement: { kind: 'shrinking', before: 1_200, now: 900, comparedMs: 10_000 },
    }),
  });
}

/** A pod that takes the time it was given. */
export function gracePeriod(): NamespaceResult {
  const until = '2026-03-02T10:10:00Z';
  const pod = finding({
    code: 'pod-grace-period',
    subject: { apiVersion: 'v1', kind: 'Pod', namespace: 'preview-pr-61', name: 'worker-0' },
    message: `is still shutting down: its grace period of 600 s runs until ${until}`,
    evidence: [`deletionTimestamp ${until}, deletionGracePeriodSeconds 600, node node-1`],
  });
  return namespaceResult({
    name: 'preview-pr-61',
    outcome: 'progressing',
    diagnosis: diagnosis([pod], { movement: { kind: 'grace-period', until } }),
  });
}

/** A claim, the pod that uses it, and the node that is gone. */
export function lostNode(): NamespaceResult {
  const home = 'preview-pr-70';
  const node = finding({
    code: 'pod-node-unavailable',
    subject: { apiVersion: 'v1', kind: 'Node', name: 'node-7' },
    message: 'is not ready, so nobody confirms that Pod web-0 has ended',
    evidence: [
      'Pod web-0 should have ended at 2026-03-02T10:00:41Z',
      'Ready=Unknown (NodeStatusUnknown)',
    ],
    since: '2026-03-02T09:50:00Z',
    scope: 'cluster',
    remedies: [
      {
        text: 'Bring the node back, or see why it is away',
        command: 'kubectl describe node node-7',
      },
      {
        text: 'If the machine is gone for good, delete its Node; its pods then go by themselves',
        command: 'kubectl delete node node-7',
        risk: 'if the machine still runs, its containers run on, and volumes may be mounted twice',
      },
    ],
  });
  const claim = finding({
    code: 'volume-in-use',
    subject: {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      namespace: home,
      name: 'data-web-0',
    },
    finalizer: 'kubernetes.io/pvc-protection',
    message: 'is still used by Pod web-0',
    evidence: [
      'finalizer kubernetes.io/pvc-protection stays while a scheduled pod names the claim: web-0',
    ],
    waitsFor: [node.id],
  });
  return namespaceResult({
    name: home,
    diagnosis: diagnosis([claim, node], {
      blockers: [node.id, claim.id],
      because: {
        [node.id]: 'Pod web-0 on it is terminating and only its kubelet can confirm the end',
        [claim.id]: 'it is terminating and Pod web-0 still uses it',
      },
    }),
  });
}

/** Nobody is known to remove the finalizer. */
export function ownerUnknown(): NamespaceResult {
  const home = 'preview-pr-71';
  const subject = { apiVersion: 'v1', kind: 'ConfigMap', namespace: home, name: 'state' };
  const owner = finding({
    code: 'owner-unknown',
    subject,
    finalizer: 'some.random/finalizer',
    message:
      'has finalizer some.random/finalizer, and nothing in the cluster shows who should remove it',
    evidence: [
      'managedFields: written by "kubectl-patch" (Update)',
      'no CRD or API group fits its name',
    ],
    remedies: [
      {
        text: 'Find out who wrote it; a controller that is not installed any more would have to come back',
        command: `kubectl get configmap state -n ${home} -o yaml --show-managed-fields`,
      },
    ],
  });
  const held = finding({
    code: 'object-finalizer',
    subject,
    finalizer: 'some.random/finalizer',
    message: 'is held by finalizer some.random/finalizer',
    since: DELETED_AT,
    count: 20_000,
    examples: Array.from({ length: 10 }, (_, at) => ({ ...subject, name: `state-${at}` })),
    waitsFor: [owner.id],
  });
  return namespaceResult({ name: home, diagnosis: diagnosis([held, owner]) });
}

/** Several causes at once, one of them not this change's fault. */
export function severalCauses(): NamespaceResult {
  const home = 'preview-pr-72';
  const apiService = deadApiService().diagnosis?.findings[0] as Finding;
  const failing = finding({
    code: 'owner-failing',
    subject: {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      namespace: 'gadgets',
      name: 'gadget-controller',
    },
    finalizer: 'gadgets.example.com/release',
    message:
      'runs, but is refused what it must do: gadgets.example.com is forbidden: User "system:serviceaccount:gadgets:ctl" cannot patch resource "gadgets"',
    evidence: ['condition Ready=False of Gadget g1: cannot patch resource "gadgets"'],
    scope: 'cluster',
    remedies: [
      {
        text: 'Give its ServiceAccount patch on gadgets.example.com',
        command:
          'kubectl auth can-i patch gadgets.example.com --as=system:serviceaccount:gadgets:ctl',
      },
    ],
  });
  const held = (name: string): Finding =>
    finding({
      code: 'object-finalizer',
      subject: { apiVersion: 'example.com/v1', kind: 'Gadget', namespace: home, name },
      finalizer: 'gadgets.example.com/release',
      message: 'is held by finalizer gadgets.example.com/release',
      waitsFor: [failing.id],
    });
  const own = finding({
    code: 'owner-missing',
    subject: { apiVersion: 'v1', kind: 'Namespace', name: home },
    finalizer: 'controller.cattle.io/namespace-auth',
    message:
      'has finalizer controller.cattle.io/namespace-auth, which belongs to Rancher; that is not in this cluster',
    remedies: [
      {
        text: 'If Rancher was removed for good, take the entry out of the namespace',
        command: `kubectl edit namespace ${home}`,
        risk: "what it protects stays: Rancher's roles for this namespace",
      },
    ],
  });
  const namespaceHeld = finding({
    code: 'namespace-finalizer',
    subject: { apiVersion: 'v1', kind: 'Namespace', name: home },
    finalizer: 'controller.cattle.io/namespace-auth',
    message:
      'is held by the entry controller.cattle.io/namespace-auth of its own metadata.finalizers',
    waitsFor: [own.id],
  });
  return namespaceResult({
    name: home,
    diagnosis: diagnosis([apiService, held('g1'), held('g2'), failing, namespaceHeld, own], {
      rootCauses: [apiService.id, failing.id, own.id],
      alsoHeld: heldSince('load-test'),
    }),
  });
}

/** Everything could be read, and nothing explains the hang. */
export function unexplained(): NamespaceResult {
  const home = 'preview-pr-73';
  return namespaceResult({
    name: home,
    diagnosis: diagnosis([
      finding({
        code: 'unexplained',
        subject: { apiVersion: 'v1', kind: 'Namespace', name: home },
        message: 'is not gone, and nothing that could be read explains why',
        evidence: ['looked at 38 resource types: 0 objects, none terminating with a finalizer'],
        remedies: [
          {
            text: 'See what the namespace controller says: the log of kube-controller-manager names this namespace',
            command: 'kubectl logs -n kube-system -l component=kube-controller-manager --tail=200',
          },
        ],
      }),
    ]),
  });
}

/** Gone, because the gate force-finalized it. */
export function forced(): NamespaceResult {
  return {
    ...deadlock(),
    outcome: 'forced',
    verdict: 'warn',
    elapsedMs: 312_000,
    forced: {
      mode: 'objects',
      actions: [{ target: 'Widget db', finalizer: CLEANUP, result: 'removed' }],
      orphans: [
        {
          apiVersion: 'example.com/v1',
          kind: 'Widget',
          name: 'db',
          uid: '6a1c7be2',
          finalizers: [CLEANUP],
        },
      ],
      refused: [
        {
          target: 'Gadget g1',
          reason: 'finalizer gadgets.example.com/release is in no pattern of force-finalizers',
        },
      ],
    },
  };
}

export function gone(name = HOME, elapsedMs = 38_000): NamespaceResult {
  return namespaceResult({ name, outcome: 'deleted', verdict: 'pass', elapsedMs, examination: undefined });
}

export function settled(
  outcome: NamespaceResult['outcome'],
  verdict: NamespaceResult['verdict'],
): NamespaceResult {
  return namespaceResult({
    outcome,
    verdict,
    elapsedMs: 12_000,
    deletionTimestamp: undefined,
    examination: undefined,
  });
}

/** Everything that has something to explain, by the name of its golden report. */
export const EXPLAINED: Readonly<Record<string, () => NamespaceResult>> = {
  deadlock,
  'dead-apiservice': deadApiService,
  'not-seen': notSeen,
  shrinking,
  'grace-period': gracePeriod,
  'lost-node': lostNode,
  'owner-unknown-20000-objects': ownerUnknown,
  'several-causes': severalCauses,
  unexplained,
  forced,
};
