import type { TimelineEntry } from '../base/time.ts';
import type { Diagnosis, NotInspected } from './finding.ts';
import type { Outcome, Verdict } from './outcome.ts';
import type { Condition, Identity } from './snapshot.ts';

/** The result of a run, from which log, summary, comment, outputs and report.json are rendered. */
export interface RunResult {
  /** A forecast changes nothing and waits for nothing: its outcomes are clear, would-hang, inconclusive. */
  kind: 'teardown' | 'forecast';
  gateVersion: string;
  /** ISO 8601, by the API server's clock, so that ages are right on a runner whose clock is wrong. */
  finishedAt: string;
  elapsedMs: number;
  timeoutMs: number;
  /** The UID of namespace kube-system, which distinguishes two clusters behind one address. */
  cluster: { server: string; version: string; uid: string | undefined; createdAt?: string };
  outcome: Outcome;
  verdict: Verdict;
  namespaces: NamespaceResult[];
  /** Namespaces that would have belonged to the run and were not looked at. */
  leftOut?: NotInspected[];
}

/** Something outside of a namespace that still points into it. What report.json has of it comes first. */
export interface LeftBehind {
  apiVersion: string;
  kind: string;
  name: string;
  /** By which field it points there, and what that means. */
  why: string;
  /** Into which it points. */
  namespace: string;
  /** Whether something else in the cluster stops working because of it. */
  breaksOthers: boolean;
  /** Its controller takes it away in time, or has been asked to. */
  isGoing: boolean;
  /** When the phase of a volume changed after its claim was deleted (Kubernetes >= 1.29). */
  released?: { at: string | undefined };
  /** Of a volume: the claim that it is for; without a UID until it is bound. */
  claim?: Identity;
}

/** An object that an ordered deletion deleted before its namespace. */
export interface Deletion {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  /** "deletion requested", "deleted", or the error that came back. */
  result: string;
}

/** Objects that have to be deleted before the namespace, and why. */
export interface OrderEntry {
  why: string;
  command: string;
}

/** Whether an earlier forecast foresaw what became of a namespace. */
export interface Hindsight {
  /** When the forecast was made, ISO 8601, and what it said. */
  at: string;
  outcome: string;
  /** `open`: the forecast left the question open. `not-comparable`: it is about something else. */
  verdict: 'foreseen' | 'not-foreseen' | 'open' | 'not-comparable';
  because: string;
}

/** The evidence for a forecast, so that a reader can check `clear`. */
export interface ForecastBasis {
  objectsWithFinalizers: number;
  /** The first of these finalizers, each once. */
  finalizers: string[];
  /** Controllers that are expected to remove the finalizers; of several objects of one owner, the oldest sign of life. */
  owners: { owner: string; objects: number; evidence: string; aliveAt?: string }[];
  /** Requests that were tried and answered without changing anything. */
  dryRuns: { deletions: number; removals: number };
  notInspected: number;
  /** Where pods are deleted first and one of them is held: what would hold the namespace after them. */
  next: string[];
}

export interface NamespaceResult {
  name: string;
  /** Empty when it was not there at the start. */
  uid: string;
  outcome: Outcome;
  verdict: Verdict;
  elapsedMs: number;
  /** Of the Namespace, ISO 8601; what is older is not about it. */
  createdAt?: string | undefined;
  deletionTimestamp: string | undefined;
  conditions: Condition[];
  /** Absent when there was nothing to explain. */
  diagnosis: Diagnosis | undefined;
  timeline: TimelineEntry[];
  forced: ForceRecord | null;
  /** Undefined where nobody looked for it: the namespace is still there. */
  leftBehind: LeftBehind[] | undefined;
  /** Sources for `leftBehind` that could not be read. */
  leftBehindUnread?: NotInspected[];
  /** Only in a forecast: objects to delete first, in this order. */
  order?: OrderEntry[];
  /** Only of a forecast of a namespace that is not terminating. */
  basis?: ForecastBasis;
  /** Only where the report of a forecast was given. */
  hindsight?: Hindsight;
  /** Only of an ordered deletion: what it deleted inside. */
  deletions?: Deletion[];
  /** Requests and time that the explanation took. */
  examination: { requests: number; ms: number } | undefined;
  /** Why its deletion was refused, where the gate asked for it. */
  refusal?: string;
}

/** Changes that force-finalize made or would make; part of `report.json`. */
export interface ForceRecord {
  mode: 'plan' | 'objects' | 'namespace';
  actions: { target: string; finalizer: string; result: string }[];
  orphans: { apiVersion: string; kind: string; name: string; uid: string; finalizers: string[] }[];
  refused: { target: string; reason: string }[];
}
