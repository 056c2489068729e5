import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { TestSpecification } from 'vitest/node';
import { createVitest } from 'vitest/node';
import { type Mutant, mutantsIn } from './mutation/mutants.ts';

const USAGE = `npm run mutate                    random small faults, one at a time: do the tests notice?
npm run mutate -- FOLDER…         in these folders; diagnose, force, gate and publish unless given
   --count N                      how many faults; 200 unless given
   --minutes N                    starts no further fault after this time
   --seed N                       the same faults as in an earlier run
   --limit PERCENT                ends with 1 if more than this share survives`;

const FOLDERS = ['src/diagnose', 'src/force', 'src/gate', 'src/publish'];
/** Tests that run the sources themselves, not the bundle. */
const TESTS = ['test/unit/', 'test/stage/', 'test/adapter/'];

/** The tests of one fault take seconds. */
const LIMIT_MS = 120_000;
const CLOSING_MS = 10_000;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    count: { type: 'string', default: '200' },
    minutes: { type: 'string', default: '120' },
    seed: { type: 'string', default: String(Date.now() % 1e6) },
    limit: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  },
});
if (values.help) {
  console.log(USAGE);
  process.exit(0);
}

const all = (positionals.length > 0 ? positionals : FOLDERS)
  .flatMap((folder) => globSync(join(folder, '**/*.ts')).sort())
  .flatMap((file) => mutantsIn(readFileSync(file, 'utf8'), file));
const sample = sampleOf(all, Number(values.count), Number(values.seed));
console.log(`${sample.length} of ${all.length} faults, seed ${values.seed}`);

let current: Mutant | undefined;
const vitest = await createVitest(
  { watch: false, bail: 1, retry: 0, reporters: [{}], fsModuleCache: false },
  { plugins: [{ name: 'one-fault', enforce: 'pre', transform: withFault }] },
);
const testsOf = new Map<string, TestSpecification[]>();
const survivors: Mutant[] = [];
let tried = 0;
const end = Date.now() + Number(values.minutes) * 60_000;
for (const mutant of sample) {
  if (Date.now() > end) break;
  tried++;
  const survived = await Promise.race([survives(mutant), sleep(LIMIT_MS, 'endless' as const)]);
  if (survived === 'endless') {
    // A loop without an end cannot be interrupted, and its worker is lost: what was found so far is the result.
    console.log(`  ended early: ${mutant.file}:${mutant.line} never ends, which is noticed`);
    break;
  }
  if (survived) {
    survivors.push(mutant);
    const { file, line, original, replacement } = mutant;
    console.log(`  survived: ${file}:${line}: ${brief(original)} -> ${brief(replacement)}`);
  }
}
await Promise.race([vitest.close(), sleep(CLOSING_MS)]);
const share = (100 * survivors.length) / Math.max(1, tried);
console.log(`${tried} faults, ${survivors.length} (${share.toFixed(1)} %) survived`);
// Vitest sets an exit code for the tests that failed, which is what they are here for.
process.exit(values.limit !== undefined && share > Number(values.limit) ? 1 : 0);

function withFault(code: string, id: string): string | undefined {
  if (current === undefined || id !== join(process.cwd(), current.file)) return undefined;
  return code.slice(0, current.start) + current.replacement + code.slice(current.end);
}

async function survives(mutant: Mutant): Promise<boolean> {
  const file = join(process.cwd(), mutant.file);
  const tests = testsOf.get(file) ?? (await relevantTests(file));
  testsOf.set(file, tests);
  current = mutant;
  vitest.invalidateFile(file);
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(tests);
  current = undefined;
  vitest.invalidateFile(file);
  return unhandledErrors.length === 0 && testModules.every((one) => one.state() !== 'failed');
}

/** Returns the test files that import a file, also by way of others; small ones first, as they tell sooner. */
async function relevantTests(file: string): Promise<TestSpecification[]> {
  vitest.config.related = [file];
  return await vitest.getRelevantTestSpecifications(TESTS);
}

function brief(text: string): string {
  return text.replace(/\s+/g, ' ').trim().slice(0, 60) || 'nothing';
}

/** Returns a sample without repetition; the same seed gives the same one (mulberry32). */
function sampleOf<T>(from: readonly T[], count: number, seed: number): T[] {
  const rest = [...from];
  const sample: T[] = [];
  let state = seed;
  while (sample.length < count && rest.length > 0) {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    const random = ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    sample.push(...rest.splice(Math.floor(random * rest.length), 1));
  }
  return sample;
}
