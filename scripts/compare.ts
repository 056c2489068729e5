import { execFileSync, spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { EVERYDAY } from '../test/cluster/scenarios/everyday.ts';
import type { Answer, Look } from './compare/look.ts';
import { CLASSES, type Move, movesBetween } from './compare/moves.ts';

/**
 * Every recording is diagnosed by the engine of the working tree and by that of a commit, as the hang and as the
 * forecast before its deletion. What moved is listed, worst first; a person says whether that is right.
 */
const USAGE = `npm run compare -- COMMIT [ID…]   what this working tree says of the recordings that COMMIT does not
   --only CLASS                   one class of differences
   --text                         whole sentences, before and after`;

const DRIVER = join('scripts', 'compare', 'look.ts');
const RECORDINGS = join('test', 'fixtures', 'snapshots');
const COMMON = join(RECORDINGS, 'common.json');

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: 'string' },
    text: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  },
});
const [commit, ...ids] = positionals;
if (values.help || commit === undefined) {
  console.log(USAGE);
  process.exit(values.help ? 0 : 2);
}
const folder = mkdtempSync(join(tmpdir(), 'compare-'));
try {
  checkOut(commit, folder);
  const [old, now] = await Promise.all([looksOf(folder), looksOf(process.cwd())]);
  print(movesBetween(old, now, values.text), now.size);
  const [before, after] = [old, now].map(namedRight);
  console.log(`everyday: ${before} → ${after} of ${EVERYDAY.length} named with the right state`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Writes the sources and recordings of the commit to the folder, with the recordings that only the working tree has. */
function checkOut(commit: string, to: string): void {
  const files = join(to, 'files.tar');
  const paths = ['src', 'test', 'scripts', 'package.json'];
  execFileSync('git', ['archive', `--output=${files}`, commit, ...paths]);
  execFileSync('tar', ['-xf', files, '-C', to]);
  symlinkSync(join(process.cwd(), 'node_modules'), join(to, 'node_modules'));
  if (!existsSync(join(to, DRIVER))) cpSync(DRIVER, join(to, DRIVER), { recursive: true });
  const shared = [COMMON, join(to, COMMON)].map((file) => JSON.parse(readFileSync(file, 'utf8')));
  cpSync(RECORDINGS, join(to, RECORDINGS), { recursive: true, force: false });
  writeFileSync(join(to, COMMON), JSON.stringify(Object.assign({}, ...shared)));
}

/** Runs the driver of one side in a process of its own; without a driver that works there is no answer. */
async function looksOf(root: string): Promise<Map<string, Look>> {
  const child = spawn(process.execPath, [join(root, DRIVER), ...ids], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const looks = new Map<string, Look>();
  for await (const line of createInterface({ input: child.stdout })) {
    const look = JSON.parse(line) as Look;
    looks.set(look.id, look);
  }
  return looks;
}

/** Returns of how many everyday situations the one root cause is the right owner in the right state. */
function namedRight(looks: Map<string, Look>): number {
  return EVERYDAY.filter(({ id, code, workload }) => {
    const roots = looks.get(id)?.answers.filter(({ isRoot }) => isRoot) ?? [];
    const isRight = (one: Answer): boolean =>
      one.code === code &&
      one.certainty !== 'unknown' &&
      (workload === undefined || one.who.endsWith(`/${workload}`));
    return roots.length > 0 && roots.every(isRight);
  }).length;
}

function print(moves: readonly Move[], total: number): void {
  const rows = CLASSES.map((kind) => ({ kind, moves: moves.filter((one) => one.kind === kind) }));
  const isWanted = (kind: string): boolean =>
    values.only === undefined ? kind !== 'text' || values.text === true : kind === values.only;
  for (const { kind, moves: some } of rows) {
    if (some.length === 0 || !isWanted(kind)) continue;
    console.log(`\n${kind}`);
    const between = values.text ? '\n      ' : '; ';
    for (const { id, lines } of some) console.log(`  ${id}: ${lines.join(between)}`);
  }
  console.log(`\n${moves.length} of ${total} answers moved against ${commit}`);
  for (const { kind, moves: some } of rows) {
    console.log(`${String(some.length).padStart(5)} ${kind}`);
  }
}
