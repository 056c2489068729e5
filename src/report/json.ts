import type { NamespaceResult, Report, ReportNamespace, RunResult } from '../model/result.ts';

/** report.json: what was found, word for word. Texts are not escaped here; secrets are taken out before. */
export function buildReport(result: RunResult): Report {
  return {
    schemaVersion: 1,
    generatedAt: result.finishedAt,
    gate: { version: result.gateVersion },
    cluster: { server: result.cluster.server, version: result.cluster.version },
    outcome: result.outcome,
    namespaces: result.namespaces.map(namespaceReport),
    sharedCauses: result.sharedCauses,
  };
}

function namespaceReport(namespace: NamespaceResult): ReportNamespace {
  const { diagnosis } = namespace;
  return {
    name: namespace.name,
    uid: namespace.uid,
    outcome: namespace.outcome,
    elapsedSeconds: Math.round(namespace.elapsedMs / 1_000),
    deletionTimestamp: namespace.deletionTimestamp ?? null,
    findings: diagnosis?.findings ?? [],
    blockers: diagnosis?.blockers ?? [],
    rootCauses: diagnosis?.rootCauses ?? [],
    deadlocks: diagnosis?.deadlocks ?? [],
    queued: diagnosis?.queued ?? [],
    notInspected: (diagnosis?.notInspected ?? []).map(({ what, reason }) => ({ what, reason })),
    conditions: namespace.conditions,
    timeline: namespace.timeline,
    forced: namespace.forced,
    leftBehind: (namespace.leftBehind ?? []).map(({ breaksOthers: _, ...entry }) => entry),
  };
}
