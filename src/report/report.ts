import type { Diagnosis, Finding } from '../diagnose/diagnosis.ts';
import type { ForceRecord } from '../force/force-record.ts';
import type { Condition } from '../observe/snapshot.ts';
import type { Outcome, Verdict } from '../outcome.ts';
import type { TimelineEntry } from '../timeline.ts';

/** What one run found out: the one model behind log, summary, comment, outputs and report.json. */
export interface RunResult {
  gateVersion: string;
  /** ISO 8601, by the API server's clock, so that ages are right on a runner whose clock is wrong. */
  finishedAt: string;
  elapsedMs: number;
  timeoutMs: number;
  cluster: { server: string; version: string; identity: string | undefined };
  outcome: Outcome;
  verdict: Verdict;
  namespaces: NamespaceResult[];
}

export interface NamespaceResult {
  name: string;
  /** Empty when it was not there at the start. */
  uid: string;
  outcome: Outcome;
  verdict: Verdict;
  elapsedMs: number;
  deletionTimestamp: string | undefined;
  conditions: Condition[];
  /** Absent when there was nothing to explain. */
  diagnosis: Diagnosis | undefined;
  timeline: TimelineEntry[];
  forced: ForceRecord | null;
  /** Requests and time that the explanation took. */
  look: { requests: number; ms: number } | undefined;
}

/** report.json, version 1. `schema/report-v1.schema.json` says the same to other programs. */
export interface Report {
  schemaVersion: 1;
  generatedAt: string;
  gate: { version: string };
  cluster: { server: string; version: string };
  outcome: Outcome;
  namespaces: ReportNamespace[];
}

export interface ReportNamespace {
  name: string;
  uid: string;
  outcome: Outcome;
  elapsedSeconds: number;
  deletionTimestamp: string | null;
  findings: Finding[];
  blockers: string[];
  rootCauses: string[];
  deadlocks: string[][];
  queued: { apiVersion: string; kind: string; count: number }[];
  notInspected: { what: string; reason: string }[];
  conditions: Condition[];
  timeline: TimelineEntry[];
  forced: ForceRecord | null;
}
