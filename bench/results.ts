/** What one run of the benchmark measured: plain data, as it is written to the JSON file. */
export interface BenchResults {
  schemaVersion: 1;
  startedAt: string;
  finishedAt: string;
  mode: 'full' | 'quick' | 'part';
  environment: Environment;
  startup?: Startup;
  /** One per size of the cluster. */
  explain?: ExplainSize[];
  latency?: Latency;
  waiting?: Waiting;
  bulk?: Bulk;
  limits?: LimitRun[];
  growth?: Growth;
  /** One per size, smallest first. */
  sweep?: SweepSize[];
}

export interface Environment {
  cores: number;
  cpu: string;
  memoryGiB: number;
  platform: string;
  node: string;
  kubernetes: string;
  kubectl: string;
  /** Of the last minute, when the run began. */
  loadAverage: number;
  commit: string;
}

/** Of a process tree, by the peaks that the kernel keeps; absent where there is no /proc. */
export interface PeakMemory {
  largestMiB: number;
  /** The most that processes which were there at the same time had. */
  sumMiB: number;
}

export interface Measured {
  runs: number;
  /** Median of the runs; the others too. Process start included. */
  wallMs: number;
  fastestMs: number;
  slowestMs: number;
  /** Of the processor, in the process and its descendants; the median. Absent where there is no /proc. */
  cpuMs?: number;
  /** Counted by the API server: its audit log. */
  requests: number;
  /** Bodies of answers to GET and LIST, as sent; counted by the API server: its metrics. */
  responseBytes: number;
  memory?: PeakMemory;
}

export interface Startup {
  runs: number;
  emptyMs: number;
  helpMs: number;
  /** All JavaScript that the bundle consists of. */
  bundleBytes: number;
}

/** In a namespace of the cluster with all CRDs. */
export const SOME_OBJECTS = 20_000;
export const EXPLAINERS = ['gate', 'bare-client', 'one-get', 'one-liner'] as const;
export type Explainer = (typeof EXPLAINERS)[number];

export interface ExplainSize {
  crds: number;
  /** Blocked objects in the namespace. */
  objects: number;
  /** Namespaced types that can be listed. */
  listableTypes: number;
  tools: Record<Exclude<Explainer, 'bare-client'>, Measured> &
    Partial<Record<'bare-client', Measured>>;
}

export const WAITERS = ['gate', 'kubectl-wait', 'kubectl-delete'] as const;
export type Waiter = (typeof WAITERS)[number];

export interface Latency {
  /** From the DELETED event, as another client sees it, to the end of the process; one per round. */
  tools: Record<Waiter, WaiterRounds>;
}

export interface WaiterRounds {
  latenciesMs: number[];
  /** Of one whole round, the median. */
  requests: number;
  memory?: PeakMemory;
}

export interface Waiting {
  seconds: number;
  /** Requests within these seconds; the first `skippedSeconds` are the start. */
  skippedSeconds: number;
  requests: Record<'gate' | 'kubectl-wait', number>;
}

export interface Bulk {
  objects: number;
  pages: number;
  gate: Measured;
  bareClient: Measured;
  reportBytes: number;
}

export interface LimitRun {
  limit: 'delay' | 'refused-at-random' | 'refused-by-priority-and-fairness';
  what: string;
  wallMs: number;
  requests: number;
  /** Answers with status 429. */
  refused: number;
  /** Lines of the explanation that are not those of a run without limits. */
  differences: string[];
}

/** Many stuck namespaces in one run, beside one of them and beside `kubectl` in a loop. */
export interface SweepSize {
  namespaces: number;
  /** Blocked objects in each. */
  objects: number;
  gate: Measured;
  /** The same gate, asked about the first of them alone. */
  alone: Measured;
  /** `kubectl get` of all types, one namespace after the other. */
  loop?: Measured;
}

export interface GrowthPoint {
  at: number;
  wallMs: number;
  requests: number;
  memoryMiB?: number;
}

export const GROWTH_AXES = ['types', 'objects', 'namespaces'] as const;
export type GrowthAxis = (typeof GROWTH_AXES)[number];
export type Growth = Partial<Record<GrowthAxis, GrowthPoint[]>>;
