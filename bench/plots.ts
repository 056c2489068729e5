import type { GrowthAxis, GrowthPoint } from './results.ts';

/** One picture: how time, requests and memory grow along one axis, side by side. */
export interface Plot {
  svg: string;
  /** What the picture shows, for those who do not see it. */
  alt: string;
}

const AXIS_WORDS: Record<GrowthAxis, string> = {
  types: 'custom types in the cluster',
  objects: 'blocked objects in the namespace',
  namespaces: 'namespaces in one run',
};

interface Panel {
  title: string;
  unit: string;
  valueOf(point: GrowthPoint): number | undefined;
}

const PANELS: readonly Panel[] = [
  { title: 'time', unit: 's', valueOf: ({ wallMs }) => wallMs / 1_000 },
  { title: 'requests', unit: '', valueOf: ({ requests }) => requests },
  { title: 'peak memory', unit: 'MiB', valueOf: ({ memoryMiB }) => memoryMiB },
];

const PANEL = { width: 250, height: 210, left: 56, right: 20, top: 34, bottom: 48 };
const TICKS = 4;

/** Its own background in both modes: a picture cannot know on which one it is shown. */
const STYLE = `
  :root { --back: #ffffff; --ink: #1f2328; --faint: #d1d9e0; --line: #0969da; }
  @media (prefers-color-scheme: dark) {
    :root { --back: #0d1117; --ink: #e6edf3; --faint: #3d444d; --line: #58a6ff; }
  }
  .back { fill: var(--back); }
  text { fill: var(--ink); font: 11px system-ui, sans-serif; }
  .title { font-weight: 600; font-size: 12px; }
  .grid { stroke: var(--faint); stroke-width: 1; }
  .line { fill: none; stroke: var(--line); stroke-width: 2; }
  .dot { fill: var(--line); }`;

export function plotGrowth(axis: GrowthAxis, points: readonly GrowthPoint[]): Plot {
  const panels = PANELS.filter((panel) =>
    points.every((point) => panel.valueOf(point) !== undefined),
  );
  const width = PANEL.width * panels.length;
  const alt = describeGrowth(axis, points, panels);
  const body = panels.map((panel, index) => drawPanel(panel, axis, points, index * PANEL.width));
  const svg = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${PANEL.height}" width="${width}" height="${PANEL.height}" role="img" aria-labelledby="title">`,
    `<title id="title">${alt}</title>`,
    `<style>${STYLE}\n</style>`,
    `<rect class="back" width="${width}" height="${PANEL.height}" rx="6"/>`,
    ...body,
    '</svg>\n',
  ].join('\n');
  return { svg, alt };
}

function describeGrowth(
  axis: GrowthAxis,
  points: readonly GrowthPoint[],
  panels: readonly Panel[],
): string {
  const first = points[0];
  const last = points.at(-1);
  if (first === undefined || last === undefined) throw new Error(`no points for ${axis}`);
  const changes = panels.map((panel) => {
    const [from = 0, to = 0] = [panel.valueOf(first), panel.valueOf(last)];
    return `${panel.title} from ${label(from)} to ${withUnit(label(to), panel.unit)}`;
  });
  const range = `${label(first.at)} to ${label(last.at)} ${AXIS_WORDS[axis]}`;
  return `One explanation with ${range}: ${changes.join(', ')}.`;
}

function drawPanel(
  panel: Panel,
  axis: GrowthAxis,
  points: readonly GrowthPoint[],
  left: number,
): string {
  const values = points.map((point) => panel.valueOf(point) ?? 0);
  const [xs, ys] = [ticksTo(Math.max(...points.map(({ at }) => at))), ticksTo(Math.max(...values))];
  const [xEnd, yEnd] = [xs.at(-1) ?? 1, ys.at(-1) ?? 1];
  const [x0, x1] = [left + PANEL.left, left + PANEL.width - PANEL.right];
  const [y0, y1] = [PANEL.height - PANEL.bottom, PANEL.top];
  const x = (at: number): number => round(x0 + ((x1 - x0) * at) / xEnd);
  const y = (value: number): number => round(y0 - ((y0 - y1) * value) / yEnd);
  const dots = points.map(({ at }, index): [number, number] => [x(at), y(values[index] ?? 0)]);
  return [
    `<text class="title" x="${x0}" y="18">${withUnit(panel.title, panel.unit && `(${panel.unit})`)}</text>`,
    ...ys.map(
      (value) =>
        `<path class="grid" d="M${x0} ${y(value)}H${x1}"/><text x="${x0 - 6}" y="${y(value) + 4}" text-anchor="end">${label(value)}</text>`,
    ),
    ...xs.map((at) => `<text x="${x(at)}" y="${y0 + 16}" text-anchor="middle">${short(at)}</text>`),
    `<text x="${(x0 + x1) / 2}" y="${y0 + 36}" text-anchor="middle">${AXIS_WORDS[axis]}</text>`,
    `<polyline class="line" points="${dots.map(([cx, cy]) => `${cx},${cy}`).join(' ')}"/>`,
    ...dots.map(([cx, cy]) => `<circle class="dot" cx="${cx}" cy="${cy}" r="3"/>`),
  ].join('\n');
}

/** Round numbers from 0 to at least the largest value. */
export function ticksTo(largest: number): number[] {
  if (largest <= 0) return [0, 1];
  const rough = largest / TICKS;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough) ?? 10);
  const count = Math.ceil(largest / step);
  return Array.from({ length: count + 1 }, (_, index) => Number((index * step).toPrecision(6)));
}

function withUnit(text: string, unit: string): string {
  return unit === '' ? text : `${text} ${unit}`;
}

function label(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: value < 10 ? 2 : 0 });
}

function short(value: number): string {
  return value >= 1_000 ? `${value / 1_000}k` : String(value);
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
