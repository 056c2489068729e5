import { diagnose } from '../../src/diagnose/diagnose.ts';
import { orderEntry, orderOf } from '../../src/forecast/order.ts';
import { forecastOf } from '../../src/forecast/outcome.ts';
import { foresee } from '../../src/forecast/predict.ts';
import type { Diagnosis, Edge, Finding } from '../../src/model/finding.ts';
import { NAMESPACE_NODE } from '../../src/model/finding.ts';
import { outcomeOf } from '../../src/model/outcome.ts';
import type { NamespaceResult, RunResult } from '../../src/model/result.ts';
import {
  type RecordedForecast,
  type RecordedLooks,
  readRecordedForecast,
  readRecordedLook,
} from '../unit/recorded-looks.ts';
import { moveTimes } from './recordings.ts';

/**
 * Results of runs as the gate would hand them over. What a cluster looked like was recorded; only what no
 * cluster shows in a test (20,000 causes, hostile texts, ends without a diagnosis) is built by hand.
 */

export const FINISHED_AT = '2026-03-02T10:05:02.000Z';
const DELETED_AT = '2026-03-02T10:00:11Z';

/** What was foreseen of a namespace that nobody had deleted yet. */
export function foretold(scenario: string, name?: string): NamespaceResult {
  const { now, isPodsFirst } = asIfNow(readRecordedForecast(scenario), name);
  const found = foresee(now, isPodsFirst);
  const { namespace } = now;
  return namespaceResult({
    name: namespace.name,
    uid: namespace.uid,
    outcome: forecastOf(found),
    elapsedMs: 900,
    conditions: namespace.conditions,
    diagnosis: found,
    order: orderOf(now).map((step) => orderEntry(namespace.name, step)),
    timeline: [{ at: FINISHED_AT, event: `if it were deleted now: ${forecastOf(found)}` }],
  });
}

/** Under another name, at the end of these runs. */
function asIfNow<T extends RecordedForecast | RecordedLooks>(recording: T, name?: string): T {
  const text = JSON.stringify(recording);
  const renamed = name === undefined ? text : text.replaceAll(recording.now.namespace.name, name);
  const ms = Date.parse(FINISHED_AT) - Date.parse(recording.now.takenAt);
  return moveTimes(JSON.parse(renamed), ms) as T;
}

/** A recorded hang as the gate diagnoses it, as if the run had ended with the second look. */
export function recorded(scenario: string, name?: string): NamespaceResult {
  const { now, before } = asIfNow(readRecordedLook(scenario), name);
  const found = diagnose(now, before);
  const { deletionTimestamp = FINISHED_AT } = now.namespace;
  return namespaceResult({
    name: now.namespace.name,
    uid: now.namespace.uid,
    outcome: outcomeOf(found),
    elapsedMs: Date.parse(FINISHED_AT) - Date.parse(deletionTimestamp),
    deletionTimestamp,
    conditions: now.namespace.conditions,
    diagnosis: found,
    timeline: [
      { at: deletionTimestamp, event: 'terminating' },
      { at: FINISHED_AT, event: 'timeout' },
    ],
  });
}

/** An operator that was deleted together with the objects it had to clean up. */
export const deadlock = (name?: string): NamespaceResult => recorded('S4-watched', name);
/** A dead add-on that has held every namespace of the cluster since the morning. */
export function deadApiService(name = 'preview-pr-57'): NamespaceResult {
  const result = recorded('SEED-1d', name);
  const since = '2026-03-02T07:41:00Z';
  const { findings = [] } = result.diagnosis ?? {};
  return withDiagnosis(result, { findings: findings.map((found) => ({ ...found, since })) });
}
/** Two things that have nothing to do with each other. */
export const severalCauses = (name?: string): NamespaceResult => recorded('SEED-2c', name);
/** Nothing was found, and not everything could be read. */
export const notSeen = (name?: string): NamespaceResult => recorded('forbidden-all', name);

/** Gone, because the gate force-finalized it. */
export function forced(): NamespaceResult {
  const finalizer = 'widgets.example.com/cleanup';
  return {
    ...deadlock(),
    outcome: 'forced',
    verdict: 'warn',
    forced: {
      mode: 'objects',
      actions: [{ target: 'Widget db', finalizer, result: 'removed' }],
      orphans: [
        {
          ...{ apiVersion: 'example.com/v1', kind: 'Widget' },
          name: 'db',
          uid: '6a1c7be2',
          finalizers: [finalizer],
        },
      ],
      refused: [
        {
          target: 'Gadget g1',
          reason:
            'force-finalizers does not allow it (why it stays: the diagnosis found no reason); to remove it, add to force-finalizers: gadgets.example.com/release',
        },
      ],
    },
  };
}

/** A deleted namespace that objects outside of it still refer to. */
export function leavesBehind(): NamespaceResult {
  return {
    ...gone(),
    leftBehind: [
      {
        ...{ apiVersion: 'v1', kind: 'PersistentVolume' },
        name: 'pvc-7d1f0a6e',
        why: 'claimRef names PersistentVolumeClaim data; Released, policy Retain',
        namespace: 'preview-pr-42',
        breaksOthers: false,
        isGoing: false,
      },
      {
        ...{ apiVersion: 'apiregistration.k8s.io/v1', kind: 'APIService' },
        name: 'v1.ledger.example.com',
        why: 'its spec.service names Service preview-pr-42/ledger: until it responds, no namespace of the cluster can be deleted',
        namespace: 'preview-pr-42',
        breaksOthers: true,
        isGoing: false,
      },
    ],
  };
}

/** The same namespace before anybody deletes it. */
export function foreseen(result: NamespaceResult): NamespaceResult {
  return {
    ...result,
    outcome: 'would-hang',
    elapsedMs: 900,
    deletionTimestamp: undefined,
    timeline: [],
  };
}

function withDiagnosis(result: NamespaceResult, given: Partial<Diagnosis>): NamespaceResult {
  const found = result.diagnosis as Diagnosis;
  return { ...result, diagnosis: { ...found, ...given } };
}

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

/** Findings that no other waits for are blockers; those that wait for no other are root causes. */
export function diagnosis(findings: readonly Finding[], given: Partial<Diagnosis> = {}): Diagnosis {
  const waitedFor = new Set(findings.flatMap(({ waitsFor }) => waitsFor));
  const blockers =
    given.blockers ?? findings.map(({ id }) => id).filter((id) => !waitedFor.has(id));
  const edges: Edge[] = [
    ...blockers.map((to) => ({ from: NAMESPACE_NODE, to })),
    ...findings.flatMap(({ id, waitsFor }) => waitsFor.map((to) => ({ from: id, to }))),
  ];
  return {
    findings: [...findings],
    edges,
    blockers,
    rootCauses: findings.filter(({ waitsFor }) => waitsFor.length === 0).map(({ id }) => id),
    deadlocks: [],
    queued: [],
    notInspected: [],
    movement: { kind: 'none' },
    inspectedTypes: 38,
    ...given,
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
    timeline: [],
    forced: null,
    leftBehind: undefined,
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
    cluster: { server: 'https://kind.example:6443', version: 'v1.36.3' },
    outcome: worst?.outcome ?? 'not-found',
    verdict: worst?.verdict ?? 'pass',
    namespaces,
    ...given,
  };
}

export function gone(name = 'preview-pr-42', elapsedMs = 38_000): NamespaceResult {
  return namespaceResult({ name, outcome: 'deleted', verdict: 'pass', elapsedMs });
}

/** An end that needs no diagnosis. */
export function settled(
  outcome: NamespaceResult['outcome'],
  verdict: NamespaceResult['verdict'],
): NamespaceResult {
  return namespaceResult({ outcome, verdict, elapsedMs: 12_000, deletionTimestamp: undefined });
}

/** Every object held by a finalizer of its own, so that nothing folds. */
export function crowded(objects: number, name = 'crowded'): NamespaceResult {
  const findings = Array.from({ length: objects }, (_, at) => {
    const finalizer = `f.example/${name}-${at}`;
    const nobody = 'nothing in the cluster shows which controller should remove it';
    const [look, patch] = ['get', 'patch'].map((verb) => `kubectl ${verb} cm cm-${at} -n ${name}`);
    const of = {
      subject: { apiVersion: 'v1', kind: 'ConfigMap', namespace: name, name: `cm-${at}` },
      finalizer,
    };
    const owner = finding({
      ...{ code: 'owner-unknown', ...of, continuation: nobody },
      message: `has finalizer ${finalizer}, and ${nobody}`,
      remedies: [
        { role: 'look', text: 'Find out who wrote it', command: `${look}` },
        { role: 'or', text: 'Remove it', command: `${patch} -p '${'x'.repeat(250)}'` },
      ],
    });
    const held = finding({
      ...{ code: 'object-finalizer', ...of, message: `is held by finalizer ${finalizer}` },
      ...{ evidence: ['äöü '.repeat(50)], waitsFor: [owner.id] },
    });
    return [held, owner];
  }).flat();
  return namespaceResult({ name, diagnosis: diagnosis(findings) });
}
