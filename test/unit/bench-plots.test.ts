import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseFragment } from 'parse5';
import { expect, test } from 'vitest';
import { plotGrowth, ticksTo } from '../../bench/plots.ts';
import { generateFiles } from '../../scripts/docs/generate.ts';
import { REPOSITORY } from '../stub/action-yml.ts';

const POINTS = [
  { at: 0, wallMs: 500, requests: 40, memoryMiB: 80 },
  { at: 300, wallMs: 1_500, requests: 342, memoryMiB: 95.5 },
];

test('a plot has a description in words', () => {
  const { alt, svg } = plotGrowth('types', POINTS);

  expect(alt).toBe(
    'One explanation with 0 to 300 custom types in the cluster: time from 0.5 to 1.5 s, requests from 40 to 342, peak memory from 80 to 96 MiB.',
  );
  expect(svg).toContain(`<title id="title">${alt}</title>`);
});

test('a plot has labelled axes and colours for light and dark', () => {
  const { svg } = plotGrowth('types', POINTS);

  expect(svg).toContain('prefers-color-scheme: dark');
  expect(svg.match(/custom types in the cluster<\/text>/g)).toHaveLength(3);
  for (const title of ['time (s)', 'requests', 'peak memory (MiB)']) {
    expect(svg).toContain(`>${title}</text>`);
  }
  expect(parseFragment(svg).childNodes.map(({ nodeName }) => nodeName)).toEqual(['svg', '#text']);
});

test('memory that was not measured is left out, not drawn as zero', () => {
  const points = POINTS.map(({ at, wallMs, requests }) => ({ at, wallMs, requests }));

  expect(plotGrowth('objects', points).svg).not.toContain('memory');
});

test.each([
  { largest: 0, ticks: [0, 1] },
  { largest: 300, ticks: [0, 100, 200, 300] },
  { largest: 342, ticks: [0, 100, 200, 300, 400] },
  { largest: 1.3, ticks: [0, 0.5, 1, 1.5] },
  { largest: 100_000, ticks: [0, 25_000, 50_000, 75_000, 100_000] },
])('ticks up to $largest are $ticks', ({ largest, ticks }) => {
  expect(ticksTo(largest)).toEqual(ticks);
});

test('the committed plots are as "npm run docs" draws them', () => {
  for (const [file, text] of Object.entries(generateFiles())) {
    const path = join(REPOSITORY, file);
    expect(existsSync(path) && readFileSync(path, 'utf8') === text, file).toBe(true);
  }
});
