import { type BenchResults, type ExplainSize, type LimitRun, SOME_OBJECTS } from './results.ts';
import { median } from './statistics.ts';

/** One promise and what was measured of it. Pure: the same results always get the same answer. */
export interface Target {
  what: string;
  limit: number;
  is: 'at least' | 'at most';
  unit: 'times' | 'requests' | 'ms' | 's' | 'MiB' | 'KB' | 'MB' | 'differences';
  /** Absent when this run did not measure it. */
  measured: number | undefined;
  met: boolean | undefined;
  /** What the ratio is made of. */
  from: string;
}

const LIMITS = {
  fasterThanOneLiner: 50,
  fasterThanOneGet: 6,
  bareClientTimes: 1.25,
  bareClientCpuTimes: 1.4,
  /** With 20,000 objects in the namespace. */
  bareClientTimesOfObjects: 2,
  /** Whoever may own a finalizer is looked for in every source of the cluster, each read once. */
  requestsBesideLists: 32,
  /** What stayed behind is read after the end. */
  latencyBehindWaitMs: 50,
  waitingPerTenSeconds: 1,
  bulkTimes: 1.3,
  bulkMiB: 160,
  reportKb: 100,
  startupTimes: 2.7,
  bundleMb: 3,
  delayedSeconds: 10,
  sweepRequests: 1.5,
  sweepTimes: 3,
  sweepMiB: 160,
};

type Asked = Omit<Target, 'met' | 'measured' | 'from'> & { answer: Answer | undefined };
type Answer = Pick<Target, 'from'> & { measured: number };

export function judge(results: BenchResults): Target[] {
  return [...explainTargets(results), ...waitTargets(results), ...bulkTargets(results)]
    .concat(startTargets(results), limitTargets(results), sweepTargets(results))
    .map(({ answer, ...asked }) => ({
      ...asked,
      measured: answer?.measured,
      from: answer?.from ?? '',
      met: answer === undefined ? undefined : isMet(asked, answer.measured),
    }));
}

export function missed(targets: readonly Target[]): Target[] {
  return targets.filter(({ met }) => met === false);
}

function isMet({ is, limit }: Pick<Target, 'is' | 'limit'>, measured: number): boolean {
  return is === 'at least' ? measured >= limit : measured <= limit;
}

function explainTargets({ explain = [] }: BenchResults): Asked[] {
  const manyTypes = explain.find(({ crds, objects }) => crds > 0 && objects === 1);
  const faster = (tool: 'one-liner' | 'one-get'): Answer | undefined =>
    quotient(manyTypes?.tools[tool].wallMs, manyTypes?.tools.gate.wallMs);
  const manyObjects = explain.find(({ objects }) => objects === SOME_OBJECTS);
  const ofBare = (size: ExplainSize | undefined, field: 'wallMs' | 'cpuMs') => {
    const { 'bare-client': bare, gate } = size?.tools ?? {};
    return quotient(gate?.[field], bare?.[field]);
  };
  const held = explain.filter(({ objects }) => objects === 1);
  return [
    {
      what: 'Explanation with 300 CRDs: faster than the one-liner',
      limit: LIMITS.fasterThanOneLiner,
      is: 'at least',
      unit: 'times',
      answer: faster('one-liner'),
    },
    {
      what: 'Explanation with 300 CRDs: faster than one `kubectl get` of all types',
      limit: LIMITS.fasterThanOneGet,
      is: 'at least',
      unit: 'times',
      answer: faster('one-get'),
    },
    {
      what: 'Explanation with 300 CRDs: time of a bare client that discovers and lists the same',
      limit: LIMITS.bareClientTimes,
      is: 'at most',
      unit: 'times',
      answer: ofBare(manyTypes, 'wallMs'),
    },
    {
      what: "Explanation with 300 CRDs: that bare client's time of the processor",
      limit: LIMITS.bareClientCpuTimes,
      is: 'at most',
      unit: 'times',
      answer: ofBare(manyTypes, 'cpuMs'),
    },
    {
      what: 'Explanation with 300 CRDs and 20,000 blocked objects: time of such a bare client',
      limit: LIMITS.bareClientTimesOfObjects,
      is: 'at most',
      unit: 'times',
      answer: ofBare(manyObjects, 'wallMs'),
    },
    ...(held.length === 0 ? [undefined] : held).map(requestsTarget),
  ];
}

function requestsTarget(size: ExplainSize | undefined): Asked {
  const requests = size?.tools.gate.requests ?? 0;
  const types = size?.listableTypes ?? 0;
  return {
    what: `Requests beside one per listable type${size === undefined ? '' : `, ${size.crds} CRDs`}`,
    limit: LIMITS.requestsBesideLists,
    is: 'at most',
    unit: 'requests',
    answer: size && { measured: requests - types, from: `${requests} - ${types} types` },
  };
}

function waitTargets({ latency, waiting }: BenchResults): Asked[] {
  const gate = latency && median(latency.tools.gate.latenciesMs);
  const wait = latency && median(latency.tools['kubectl-wait'].latenciesMs);
  return [
    {
      what: 'The end is noticed, and what stayed behind read, after `kubectl wait` ends',
      limit: LIMITS.latencyBehindWaitMs,
      is: 'at most',
      unit: 'ms',
      answer:
        gate === undefined || wait === undefined
          ? undefined
          : { measured: gate - wait, from: `${ms(gate)} - ${ms(wait)}` },
    },
    {
      what: 'Requests per 10 s while a watch works',
      limit: LIMITS.waitingPerTenSeconds,
      is: 'at most',
      unit: 'requests',
      answer: waiting && {
        measured: (waiting.requests.gate / waiting.seconds) * 10,
        from: `${waiting.requests.gate} in ${waiting.seconds} s`,
      },
    },
  ];
}

function bulkTargets({ bulk }: BenchResults): Asked[] {
  const memory = bulk?.gate.memory;
  return [
    {
      what: '100,000 blocked objects: time of a bare client that reads the same pages',
      limit: LIMITS.bulkTimes,
      is: 'at most',
      unit: 'times',
      answer: quotient(bulk?.gate.wallMs, bulk?.bareClient.wallMs),
    },
    {
      what: '100,000 blocked objects: peak memory',
      limit: LIMITS.bulkMiB,
      is: 'at most',
      unit: 'MiB',
      answer: memory && { measured: memory.largestMiB, from: 'VmHWM of the process' },
    },
    {
      what: '100,000 blocked objects: size of report.json',
      limit: LIMITS.reportKb,
      is: 'at most',
      unit: 'KB',
      answer: bulk && { measured: bulk.reportBytes / 1_000, from: `${bulk.reportBytes} bytes` },
    },
  ];
}

function startTargets({ startup }: BenchResults): Asked[] {
  return [
    {
      what: 'Start-up (`--help`) of an empty Node program',
      limit: LIMITS.startupTimes,
      is: 'at most',
      unit: 'times',
      answer: quotient(startup?.helpMs, startup?.emptyMs),
    },
    {
      what: 'Size of the bundle',
      limit: LIMITS.bundleMb,
      is: 'at most',
      unit: 'MB',
      answer: startup && {
        measured: startup.bundleBytes / 1_000_000,
        from: `${startup.bundleBytes} bytes`,
      },
    },
  ];
}

function limitTargets({ limits }: BenchResults): Asked[] {
  const delayed = limits?.find(({ limit }) => limit === 'delay');
  const others: Pick<LimitRun, 'limit' | 'what'>[] = [
    { limit: 'delay', what: 'Explanation with 100 ms per request: as without' },
    { limit: 'refused-at-random', what: 'Explanation through random 429s: as without' },
    {
      limit: 'refused-by-priority-and-fairness',
      what: "Explanation through the API server's 429s: as without",
    },
  ];
  return [
    {
      what: 'Explanation with 300 CRDs and 100 ms more per request',
      limit: LIMITS.delayedSeconds,
      is: 'at most',
      unit: 's',
      answer: delayed && {
        measured: delayed.wallMs / 1_000,
        from: `${delayed.requests} requests`,
      },
    },
    ...others.map(({ limit, what }): Asked => {
      const run = limits?.find((each) => each.limit === limit);
      return {
        what,
        limit: 0,
        is: 'at most',
        unit: 'differences',
        answer: run && {
          measured: run.differences.length,
          from: `${run.refused} of ${run.requests} requests refused, ${ms(run.wallMs)}`,
        },
      };
    }),
  ];
}

function sweepTargets({ sweep }: BenchResults): Asked[] {
  const many = sweep?.[0];
  const what = `${many?.namespaces ?? 50} stuck namespaces with 300 CRDs`;
  const memory = many?.gate.memory;
  return [
    {
      what: `${what}: requests of one`,
      limit: LIMITS.sweepRequests,
      is: 'at most',
      unit: 'times',
      answer: many && {
        measured: many.gate.requests / many.alone.requests,
        from: `${many.gate.requests} / ${many.alone.requests} requests`,
      },
    },
    {
      what: `${what}: time of one`,
      limit: LIMITS.sweepTimes,
      is: 'at most',
      unit: 'times',
      answer: quotient(many?.gate.wallMs, many?.alone.wallMs),
    },
    {
      what: `${what}: peak memory`,
      limit: LIMITS.sweepMiB,
      is: 'at most',
      unit: 'MiB',
      answer: memory && { measured: memory.largestMiB, from: 'VmHWM of the process' },
    },
  ];
}

function quotient(oneMs: number | undefined, otherMs: number | undefined): Answer | undefined {
  if (oneMs === undefined || otherMs === undefined) return undefined;
  return { measured: oneMs / otherMs, from: `${ms(oneMs)} / ${ms(otherMs)}` };
}

function ms(value: number): string {
  return value >= 10_000 ? `${(value / 1_000).toFixed(1)} s` : `${Math.round(value)} ms`;
}
