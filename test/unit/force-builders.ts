import type { HostedBackends } from '../../src/force/backends.ts';
import type { ForceType } from '../../src/force/force-plan.ts';
import type { PlanInput } from '../../src/force/plan.ts';
import type { Diagnosis, Finding } from '../../src/model/finding.ts';
import type { ActivePolicy } from '../../src/model/policy.ts';
import { read } from '../../src/model/read.ts';
import type {
  NamespaceFacts,
  ObjectFacts,
  PodFacts,
  Snapshot,
  TypeContent,
} from '../../src/model/snapshot.ts';

export const NO_BACKENDS: HostedBackends = { usedElsewhere: [], unread: [] };

export function policy(over: Partial<ActivePolicy> = {}): ActivePolicy {
  return {
    mode: 'namespace',
    namespaces: ['preview-*'],
    label: undefined,
    finalizers: ['example.com/*'],
    pods: false,
    orphans: 'refuse',
    ...over,
  };
}

export function namespaceFacts(over: Partial<NamespaceFacts> = {}): NamespaceFacts {
  return {
    name: 'preview-1',
    uid: 'ns-uid',
    resourceVersion: '1',
    phase: 'Terminating',
    creationTimestamp: '2025-12-31T00:00:00Z',
    deletionTimestamp: '2026-01-01T00:00:00Z',
    labels: { ephemeral: 'true' },
    finalizers: [],
    writers: [],
    specFinalizers: ['kubernetes'],
    conditions: [],
    statusWrittenAt: undefined,
    ...over,
  };
}

/** Terminating objects of one type with the same finalizers. */
export function content(
  type: ForceType,
  finalizers: string[],
  count = 1,
  over: { queued?: number } = {},
): TypeContent {
  const examples = Array.from({ length: Math.min(count, 10) }, (_, index) =>
    objectFacts(type, `${type.resource}-${index}`, finalizers),
  );
  const { queued = 0 } = over;
  const terminating =
    count === 0
      ? []
      : [{ finalizers, managers: {}, count, since: '2026-01-01T00:00:00Z', examples }];
  return { type, read: read({ total: count + queued, queued, terminating }) };
}

export function objectFacts(type: ForceType, name: string, finalizers: string[]): ObjectFacts {
  return {
    apiVersion: type.group === '' ? type.version : `${type.group}/${type.version}`,
    kind: type.kind,
    namespace: 'preview-1',
    name,
    uid: `uid-${name}`,
    resourceVersion: '1',
    creationTimestamp: undefined,
    deletionTimestamp: '2026-01-01T00:00:00Z',
    finalizers,
    labels: {},
    ownerReferences: [],
    writers: [],
  };
}

export function podFacts(type: ForceType, name: string, over: Partial<PodFacts> = {}): PodFacts {
  return {
    ...objectFacts(type, name, []),
    phase: 'Running',
    nodeName: 'node-1',
    deletionGracePeriodSeconds: 30,
    serviceAccountName: 'default',
    claims: [],
    ...over,
  };
}

export function snapshot(contents: TypeContent[], over: Partial<Snapshot> = {}): Snapshot {
  return {
    takenAt: '2026-01-01T00:10:00Z',
    namespace: namespaceFacts(),
    discovery: read({ namespacedTypes: contents.length, groups: [], failedGroups: [] }),
    content: contents,
    pods: read([]),
    ...over,
  };
}

export function finding(over: Partial<Finding> & Pick<Finding, 'id' | 'code'>): Finding {
  return {
    subject: { apiVersion: 'example.com/v1', kind: 'Widget', namespace: 'preview-1', name: 'db' },
    message: '',
    evidence: [],
    scope: 'namespace',
    waitsFor: [],
    remedies: [],
    ...over,
  };
}

/** The chain `object-finalizer` → owner, as the diagnosis reports it. */
export function chain(
  finalizer: string,
  owner: Partial<Finding> & Pick<Finding, 'code'>,
): Finding[] {
  return [
    finding({
      id: `held:${finalizer}`,
      code: 'object-finalizer',
      finalizer,
      waitsFor: [`owner:${finalizer}`],
    }),
    finding({
      id: `owner:${finalizer}`,
      subject: { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'ops', name: 'operator' },
      message: 'runs',
      ...owner,
    }),
  ];
}

export function diagnosis(findings: Finding[], over: Partial<Diagnosis> = {}): Diagnosis {
  return {
    findings,
    edges: [],
    blockers: [],
    rootCauses: [],
    deadlocks: [],
    queued: [],
    notInspected: [],
    conditions: [],
    contradictions: [],
    alsoHeld: [],
    reservations: {},
    movement: { kind: 'none', comparedMs: 30_000 },
    inspectedTypes: 3,
    ...over,
  };
}

export function planInput(over: Partial<PlanInput> & Pick<PlanInput, 'snapshot'>): PlanInput {
  return {
    diagnosis: diagnosis([]),
    policy: policy(),
    startUid: 'ns-uid',
    ownNamespace: 'ci',
    backends: NO_BACKENDS,
    leakOf: () => undefined,
    ...over,
  };
}
