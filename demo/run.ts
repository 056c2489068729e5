import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs, styleText } from 'node:util';
import { REPOSITORY } from '../test/stub/action-yml.ts';
import { recordedScenarios } from '../test/stub/recordings.ts';
import { play } from './play.ts';

/** Names for people; every other recording goes by the id of its scenario. */
const NAMES: Readonly<Record<string, string>> = { 'preview-pr-42': 'S4', 'dead-apiservice': 'S7' };

const USAGE = `npm run demo                            the namespace preview-pr-42, whose operator went first
npm run demo -- --scenario NAME         another recorded cluster: ${[...Object.keys(NAMES), ...recordedScenarios()].join(', ')}
npm run demo -- --out FOLDER            where the pages go; demo/out unless given`;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      scenario: { type: 'string', default: 'preview-pr-42' },
      out: { type: 'string', default: join(import.meta.dirname, 'out') },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const scenario = NAMES[values.scenario] ?? values.scenario;
  if (!recordedScenarios().includes(scenario)) {
    console.error(`there is no recording "${values.scenario}"\n\n${USAGE}`);
    return 1;
  }
  if (!existsSync(join(REPOSITORY, 'dist', 'index.js'))) {
    console.error('dist/index.js is not there; npm run build makes it');
    return 1;
  }
  const missed = await play(scenario, values.out, console.log);
  for (const what of missed) console.error(styleText('red', `The demo did not show that ${what}.`));
  return missed.length === 0 ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
