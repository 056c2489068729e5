import { judge, type Target } from './judge.ts';
import {
  type BenchResults,
  EXPLAINERS,
  type Explainer,
  type ExplainSize,
  type Measured,
  type PeakMemory,
  type SweepSize,
  WAITERS,
  type Waiter,
} from './results.ts';
import { median } from './statistics.ts';

const EXPLAINER_WORDS: Record<Explainer, string> = {
  gate: 'the gate, `--now`',
  'bare-client': 'a bare client that discovers and lists the same',
  'one-get': 'one `kubectl get` of all types',
  'one-liner': 'the one-liner, a `kubectl get` per type',
};

const WAITER_WORDS: Record<Waiter, string> = {
  gate: 'the gate',
  'kubectl-wait': '`kubectl wait --for=delete`',
  'kubectl-delete': '`kubectl delete --wait`',
};

/** The parts of the report, by name; absent is what was not measured. */
export type Sections = Partial<Record<SectionName, string>>;
export type SectionName =
  | 'environment'
  | 'targets'
  | 'explain'
  | 'waiting'
  | 'bulk'
  | 'limits'
  | 'growth'
  | 'sweep';

export function renderSections(results: BenchResults): Sections {
  const { explain, latency, bulk, limits, growth, sweep } = results;
  return {
    environment: environmentLine(results),
    targets: targetTable(judge(results)),
    ...(explain === undefined ? {} : { explain: explainTable(explain) }),
    ...(latency === undefined ? {} : { waiting: waitingTable(results) }),
    ...(bulk === undefined ? {} : { bulk: bulkTable(results) }),
    ...(limits === undefined ? {} : { limits: limitTable(results) }),
    ...(growth === undefined ? {} : { growth: growthTables(results) }),
    ...(sweep === undefined ? {} : { sweep: sweepTable(sweep) }),
  };
}

export function renderMarkdown(results: BenchResults): string {
  const titles: Record<SectionName, string> = {
    environment: 'Environment',
    targets: 'Targets',
    explain: 'Explaining a stuck namespace',
    waiting: 'Noticing the end',
    bulk: '100,000 blocked objects',
    limits: 'Under limits',
    growth: 'Growth',
    sweep: 'Many namespaces in one run',
  };
  const sections = Object.entries(renderSections(results)) as [SectionName, string][];
  return sections.map(([name, text]) => `## ${titles[name]}\n\n${text}\n`).join('\n');
}

function environmentLine({ environment: env, mode, startedAt }: BenchResults): string {
  return [
    `${startedAt.slice(0, 10)}, ${mode} run, commit ${env.commit}.`,
    `${env.cores} cores (${env.cpu}), ${env.memoryGiB} GiB, ${env.platform};`,
    `load average at the start ${env.loadAverage.toFixed(2)}.`,
    `Node ${env.node}, Kubernetes ${env.kubernetes}, kubectl ${env.kubectl}.`,
  ].join(' ');
}

function targetTable(targets: readonly Target[]): string {
  return table(
    ['target', 'limit', 'measured', 'of', ''],
    targets.map(({ what, limit, is, unit, measured, met, from }) => [
      what,
      `${is} ${amount(limit, unit)}`,
      measured === undefined ? 'not measured' : amount(measured, unit),
      from,
      met === undefined ? '' : met ? 'met' : '**missed**',
    ]),
  );
}

function amount(value: number, unit: Target['unit']): string {
  const text = value.toFixed(Number.isInteger(value) || Math.abs(value) >= 100 ? 0 : 2);
  return `${text} ${unit}`;
}

function explainTable(sizes: readonly ExplainSize[]): string {
  const rows = sizes.flatMap((size) =>
    EXPLAINERS.flatMap((tool) => {
      const measured = size.tools[tool];
      if (measured === undefined) return [];
      const first = tool === 'gate' ? sizeWords(size) : '';
      return [[first, EXPLAINER_WORDS[tool], ...measuredCells(measured, size.tools.gate)]];
    }),
  );
  return table(['cluster', 'tool', ...MEASURED_HEAD], rows);
}

function sizeWords({ crds, objects, listableTypes }: ExplainSize): string {
  return `${crds === 0 ? 'bare' : `${crds} CRDs`} (${listableTypes} types), ${counted(objects, 'blocked object')}`;
}

function counted(count: number, what: string): string {
  return `${grouped(count)} ${what}${count === 1 ? '' : 's'}`;
}

const MEASURED_HEAD = 'time,ratio,processor,ratio,requests,answers,peak memory,runs'.split(',');

/** The ratio is to the one that everything is compared with. */
function measuredCells(measured: Measured, unit: Measured): string[] {
  const { cpuMs } = measured;
  return [
    duration(measured.wallMs),
    times(measured.wallMs, unit.wallMs),
    cpuMs === undefined ? 'not measured' : duration(cpuMs),
    cpuMs === undefined || unit.cpuMs === undefined ? '' : times(cpuMs, unit.cpuMs),
    grouped(measured.requests),
    bytes(measured.responseBytes),
    memory(measured.memory),
    String(measured.runs),
  ];
}

function times(one: number, other: number): string {
  return `${(one / other).toFixed(one / other < 10 ? 2 : 0)} ×`;
}

function waitingTable({ latency, waiting }: BenchResults): string {
  if (latency === undefined) return '';
  const gate = median(latency.tools.gate.latenciesMs);
  return table(
    ['tool', 'median', 'slowest', 'ratio', 'requests', 'in a minute of waiting', 'peak memory'],
    WAITERS.map((tool) => {
      const { latenciesMs, requests, memory: peak } = latency.tools[tool];
      const within = tool === 'kubectl-delete' ? undefined : waiting?.requests[tool];
      return [
        WAITER_WORDS[tool],
        `${median(latenciesMs).toFixed(1)} ms`,
        `${Math.max(...latenciesMs).toFixed(1)} ms`,
        `${(median(latenciesMs) / gate).toFixed(2)} ×`,
        String(requests),
        within === undefined ? '' : String(within),
        memory(peak),
      ];
    }),
  );
}

function bulkTable({ bulk }: BenchResults): string {
  if (bulk === undefined) return '';
  const row = (name: string, measured: Measured): string[] => [
    name,
    ...measuredCells(measured, bulk.bareClient),
  ];
  return table(
    ['program', ...MEASURED_HEAD],
    [row('a bare HTTP client', bulk.bareClient), row('the gate, the whole explanation', bulk.gate)],
  );
}

function limitTable({ limits = [] }: BenchResults): string {
  return table(
    ['what is in the way', 'time', 'requests', 'refused', 'explanation'],
    limits.map(({ what, wallMs, requests, refused, differences }) => [
      what,
      duration(wallMs),
      grouped(requests),
      grouped(refused),
      differences.length === 0 ? 'the same' : `${differences.length} lines differ`,
    ]),
  );
}

function growthTables({ growth = {} }: BenchResults): string {
  const axes = Object.entries(growth).map(([axis, points]) =>
    table(
      [axis === 'types' ? 'custom types' : axis, 'time', 'requests', 'peak memory'],
      points.map(({ at, wallMs, requests, memoryMiB }) => [
        grouped(at),
        duration(wallMs),
        grouped(requests),
        memoryMiB === undefined ? 'not measured' : `${memoryMiB} MiB`,
      ]),
    ),
  );
  return axes.join('\n\n');
}

function sweepTable(sizes: readonly SweepSize[]): string {
  const rows = sizes.flatMap(({ namespaces, objects, gate, alone, loop }) => [
    ['', 'the gate, one of them alone', ...measuredCells(alone, alone)],
    [
      `${namespaces} namespaces × ${counted(objects, 'blocked object')}`,
      'the gate, all of them',
      ...measuredCells(gate, alone),
    ],
    ...(loop === undefined
      ? []
      : [['', '`kubectl get` of all types, in a loop', ...measuredCells(loop, alone)]]),
  ]);
  return table(['stuck', 'tool', ...MEASURED_HEAD], rows);
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

function duration(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`;
}

function bytes(count: number): string {
  return count < 1_000_000
    ? `${Math.round(count / 1_000)} KB`
    : `${(count / 1_000_000).toFixed(1)} MB`;
}

function memory(peak: PeakMemory | undefined): string {
  if (peak === undefined) return 'not measured';
  const { largestMiB, sumMiB } = peak;
  const sum = sumMiB > largestMiB ? ` (${Math.round(sumMiB)} in all)` : '';
  return `${Math.round(largestMiB)} MiB${sum}`;
}

export function grouped(value: number): string {
  return value.toLocaleString('en-US');
}
