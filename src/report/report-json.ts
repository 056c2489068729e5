import { printableJson } from '../base/text.ts';
import type { Finding, NotInspected } from '../model/finding.ts';
import type { NamespaceResult, RunResult } from '../model/result.ts';
import { causesOf, isStillHeld, namespacesOf } from './causes.ts';
import type { View } from './view.ts';

export function reportJson({ run }: View): string {
  return `${printableJson(buildReport(run), 2)}\n`;
}

/** The content of report.json, version 1, as in `schema/report-v1.schema.json`. */
export type Report = ReturnType<typeof buildReport>;
export type ReportNamespace = Report['namespaces'][number];

/** Texts are not escaped here; secrets were removed before. */
export function buildReport(result: RunResult) {
  const { cluster, leftOut } = result;
  return {
    schemaVersion: 1 as const,
    generatedAt: result.finishedAt,
    gate: { version: result.gateVersion },
    cluster: { server: cluster.server, version: cluster.version },
    outcome: result.outcome,
    namespaces: result.namespaces.map(namespaceReport),
    // Causes of more than one namespace, the most namespaces first.
    sharedCauses: causesOf(result.namespaces.filter(isStillHeld))
      .map((cause) => ({
        finding: findingReport(cause[0].finding),
        namespaces: namespacesOf(cause).map(({ name }) => name),
      }))
      .filter(({ namespaces }) => namespaces.length > 1),
    // Namespaces that a limit excluded from the run; absent if there are none.
    ...(leftOut === undefined ? {} : { leftOut: leftOut.map(withoutGrant) }),
  };
}

function withoutGrant({ what, reason }: NotInspected) {
  return { what, reason };
}

function namespaceReport(namespace: NamespaceResult) {
  const { diagnosis, deletions, leftBehind = [], leftBehindUnread = [], order } = namespace;
  return {
    name: namespace.name,
    uid: namespace.uid,
    outcome: namespace.outcome,
    elapsedSeconds: Math.round(namespace.elapsedMs / 1_000),
    deletionTimestamp: namespace.deletionTimestamp ?? null,
    findings: (diagnosis?.findings ?? []).map(findingReport),
    blockers: diagnosis?.blockers ?? [],
    rootCauses: diagnosis?.rootCauses ?? [],
    deadlocks: diagnosis?.deadlocks ?? [],
    queued: diagnosis?.queued ?? [],
    notInspected: [...(diagnosis?.notInspected ?? []), ...leftBehindUnread].map(withoutGrant),
    conditions: namespace.conditions,
    timeline: namespace.timeline,
    forced: namespace.forced,
    leftBehind: leftBehind.map(({ apiVersion, kind, name, why }) => {
      return { apiVersion, kind, name, why };
    }),
    ...(order === undefined ? {} : { order }),
    ...(namespace.basis === undefined ? {} : { basis: namespace.basis }),
    ...(deletions === undefined ? {} : { deletions }),
  };
}

/** Without the properties that are only for renderers. */
function findingReport(given: Finding): Finding {
  const { continuation: _c, quote: _q, cause: _o, remedies, ...finding } = given;
  return { ...finding, remedies: remedies.map((remedy) => ({ role: 'now', ...remedy })) };
}
