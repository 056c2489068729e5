import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { plotGrowth } from '../../bench/plots.ts';
import { renderSections } from '../../bench/render.ts';
import { type BenchResults, GROWTH_AXES } from '../../bench/results.ts';
import { REPOSITORY } from '../../test/stub/action-yml.ts';

/** Results of the last committed benchmark, written by `npm run bench -- --json` with this path. */
const RESULTS = 'docs/performance/bench.json';

interface Pages {
  /** Blocks of docs/measurements.md by the names of their markers. */
  blocks: Record<string, string>;
  /** Files that are generated as a whole: the plots. */
  files: Record<string, string>;
}

export function performancePages(): Pages {
  const path = join(REPOSITORY, RESULTS);
  if (!existsSync(path)) throw new Error(`${RESULTS} is not there; npm run bench makes it`);
  const results = JSON.parse(readFileSync(path, 'utf8')) as BenchResults;
  const { growth: tables = '', ...sections } = renderSections(results);
  const plots = GROWTH_AXES.map((axis) => {
    const points = results.growth?.[axis];
    if (points === undefined)
      throw new Error(`${RESULTS} has no growth of ${axis}: run it in full`);
    return { file: `growth-${axis}.svg`, ...plotGrowth(axis, points) };
  });
  const pictures = plots.map(({ file, alt }) => `![${alt}](performance/${file})`).join('\n\n');
  return {
    blocks: {
      sweep: 'Not measured in this run.',
      ...sections,
      growth: `${pictures}\n\n<details>\n<summary>The same as tables</summary>\n\n${tables}\n\n</details>`,
    },
    files: Object.fromEntries(
      plots.map(({ file, svg }) => [`docs/performance/${file}`, svg] as const),
    ),
  };
}
