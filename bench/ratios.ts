import {
  type BenchResults,
  EXPLAINERS,
  type Explainer,
  type ExplainSize,
  type Measured,
  WAITERS,
  type Waiter,
} from './results.ts';
import { median } from './statistics.ts';

export interface Ratio {
  time: number;
  cpu?: number;
  requests: number;
  responseBytes: number;
  largestMemory?: number;
}

/** How often each has what the gate has; for programs that do not want to divide. */
export interface Ratios {
  explain?: {
    crds: number;
    objects: number;
    toGate: Record<Exclude<Explainer, 'gate'>, Ratio>;
  }[];
  latencyToGate?: Record<Exclude<Waiter, 'gate'>, number>;
  bulkToBareClient?: Ratio;
}

export function ratiosOf({ explain, latency, bulk }: BenchResults): Ratios {
  return {
    ...(explain === undefined ? {} : { explain: explain.map(explainRatios) }),
    ...(latency === undefined ? {} : { latencyToGate: latencyRatios(latency) }),
    ...(bulk === undefined ? {} : { bulkToBareClient: ratio(bulk.gate, bulk.bareClient) }),
  };
}

type ExplainRatios = NonNullable<Ratios['explain']>[number];
type LatencyRatios = NonNullable<Ratios['latencyToGate']>;

function explainRatios({ crds, objects, tools }: ExplainSize): ExplainRatios {
  const toGate = Object.fromEntries(
    EXPLAINERS.flatMap((tool) => {
      const measured = tools[tool];
      return tool === 'gate' || measured === undefined ? [] : [[tool, ratio(measured, tools.gate)]];
    }),
  ) as ExplainRatios['toGate'];
  return { crds, objects, toGate };
}

function latencyRatios({ tools }: NonNullable<BenchResults['latency']>): LatencyRatios {
  const gate = median(tools.gate.latenciesMs);
  return Object.fromEntries(
    WAITERS.filter((tool) => tool !== 'gate').map((tool) => [
      tool,
      rounded(median(tools[tool].latenciesMs) / gate),
    ]),
  ) as LatencyRatios;
}

function ratio(one: Measured, other: Measured): Ratio {
  return {
    time: rounded(one.wallMs / other.wallMs),
    ...(one.cpuMs === undefined || other.cpuMs === undefined
      ? {}
      : { cpu: rounded(one.cpuMs / other.cpuMs) }),
    requests: rounded(one.requests / other.requests),
    responseBytes: rounded(one.responseBytes / other.responseBytes),
    ...(one.memory === undefined || other.memory === undefined
      ? {}
      : { largestMemory: rounded(one.memory.largestMiB / other.memory.largestMiB) }),
  };
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}
