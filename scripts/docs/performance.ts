import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { renderSections } from '../../bench/render.ts';
import type { BenchResults } from '../../bench/results.ts';
import { REPOSITORY } from '../../test/stub/action-yml.ts';

/** Results of the last committed benchmark, written by `npm run bench -- --json` with this path. */
const RESULTS = 'docs/performance/bench.json';

/** Returns the blocks of docs/performance.md by the names of their markers. */
export function performanceBlocks(): Record<string, string> {
  const path = join(REPOSITORY, RESULTS);
  if (!existsSync(path)) throw new Error(`${RESULTS} is not there; npm run bench makes it`);
  const { environment = '', targets = '' } = renderSections(
    JSON.parse(readFileSync(path, 'utf8')) as BenchResults,
  );
  return { environment, targets };
}
