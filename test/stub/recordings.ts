import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Recording } from './recording.ts';

const FOLDER = join(import.meta.dirname, '..', 'fixtures', 'clusters');

/** Ids of the scenarios that were recorded. */
export function recordedScenarios(): string[] {
  return readdirSync(FOLDER)
    .filter((file) => file.endsWith('.json'))
    .map((file) => file.slice(0, -'.json'.length));
}

export function readRecording(scenario: string): Recording {
  return JSON.parse(readFileSync(join(FOLDER, `${scenario}.json`), 'utf8')) as Recording;
}
