import { parseArgs } from 'node:util';

export const PARTS = [
  'startup',
  'explain',
  'latency',
  'waiting',
  'limits',
  'growth',
  'objects',
  'sweep',
] as const;
export type Part = (typeof PARTS)[number];

export interface Options {
  mode: 'full' | 'quick' | 'part';
  parts: ReadonlySet<Part>;
  /** Where the results go. */
  json: string;
  latencyRounds: number;
  waitingSeconds: number;
}

export const USAGE = `npm run bench                        everything; takes about a quarter of an hour
npm run bench -- --quick             without the 100,000 objects, growth, sweep and the long wait
npm run bench -- --only PART[,PART]  ${PARTS.join(', ')}
   --json FILE                       where the results go; coverage/bench.json unless given`;

const QUICK_PARTS: readonly Part[] = ['startup', 'explain', 'latency', 'limits'];
const ROUNDS = { full: 20, quick: 5 };
const WAITING_SECONDS = 60;

export function parseOptions(args: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string' },
      json: { type: 'string', default: 'coverage/bench.json' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return 'help';
  const { quick, only, json } = values;
  const all = quick ? QUICK_PARTS : PARTS;
  return {
    mode: only === undefined ? (quick ? 'quick' : 'full') : 'part',
    parts: new Set(only === undefined ? all : only.split(',').map(part)),
    json,
    latencyRounds: quick ? ROUNDS.quick : ROUNDS.full,
    waitingSeconds: WAITING_SECONDS,
  };
}

function part(text: string): Part {
  const found = PARTS.find((name) => name === text);
  if (found === undefined) {
    throw new Error(`--only names "${text}"; the parts are ${PARTS.join(', ')}`);
  }
  return found;
}
