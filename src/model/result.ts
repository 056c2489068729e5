import type { TimelineEntry } from '../base/time.ts';
import type { Diagnosis, NotInspected, Subject } from './finding.ts';
import type { Outcome, Verdict } from './outcome.ts';
import type { Condition } from './snapshot.ts';

export interface RunResult {
  /** A forecast changes nothing and waits for nothing. */
  kind: 'teardown' | 'forecast';
  gateVersion: string;
  /** ISO 8601, by the API server's clock, so that ages are right even if the runner's clock is wrong. */
  finishedAt: string;
  elapsedMs: number;
  timeoutMs: number;
  cluster: { server: string; version: string };
  outcome: Outcome;
  verdict: Verdict;
  namespaces: NamespaceResult[];
  /** Namespaces that match the inputs and were not examined. */
  leftOut?: NotInspected[];
}

/** An object outside of a namespace that still points into it. */
export interface LeftBehind extends Subject {
  /** The field that points there, and what that means. */
  why: string;
  namespace: string;
  breaksOthers: boolean;
  /** Whether its controller deletes it in time, or its deletion was requested. */
  isGoing: boolean;
  /** The time at which the phase of a volume changed after its claim was deleted (Kubernetes >= 1.29). */
  released?: { at: string | undefined };
}

/** `result`: "deletion requested", "deleted", or the error that came back. */
export type Deletion = Subject & { uid: string; result: string };

/** `isByHand`: `delete: ordered` leaves it to a person. */
export type OrderEntry = { why: string; command: string; isByHand?: true };

/** What a forecast rests on, so that a reader can check `clear`. */
export interface ForecastBasis {
  objectsWithFinalizers: number;
  /** Controllers that are expected to remove the finalizers, or `unknown`. */
  owners: string[];
  notInspected: number;
}

export interface NamespaceResult {
  name: string;
  /** UID; empty if the namespace did not exist at the start. */
  uid: string;
  outcome: Outcome;
  verdict: Verdict;
  elapsedMs: number;
  createdAt?: string | undefined;
  deletionTimestamp: string | undefined;
  conditions: Condition[];
  /** It could not be read at the end: the rest is from before, and it may have been deleted. */
  isUnread?: boolean;
  diagnosis: Diagnosis | undefined;
  timeline: TimelineEntry[];
  forced: ForceRecord | null;
  /** Objects that were left behind; undefined while the namespace is still there. */
  leftBehind?: LeftBehind[] | undefined;
  leftBehindUnread?: NotInspected[];
  order?: OrderEntry[];
  basis?: ForecastBasis;
  deletions?: Deletion[];
  refusal?: string;
}

export interface ForceRecord {
  mode: 'plan' | 'objects' | 'namespace';
  actions: { target: string; finalizer: string; result: string }[];
  orphans: (Subject & { uid: string; finalizers: string[] })[];
  refused: { target: string; reason: string }[];
}
