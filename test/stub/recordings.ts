import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Recording } from './recording.ts';

const FOLDER = join(import.meta.dirname, '..', 'fixtures', 'clusters');

/** The ids of the recorded scenarios. */
export function recordedScenarios(): string[] {
  return readdirSync(FOLDER)
    .filter((file) => file.endsWith('.json'))
    .map((file) => file.slice(0, -'.json'.length));
}

export function readRecording(scenario: string): Recording {
  return JSON.parse(readFileSync(join(FOLDER, `${scenario}.json`), 'utf8')) as Recording;
}

/**
 * The same cluster as if it had been recorded at `now`: every timestamp moves by the same whole
 * seconds. For demonstrations: readers expect the dates of today.
 */
export function recordedAt(recording: Recording, now: Date): Recording {
  const seconds = Math.round((now.getTime() - Date.parse(recording.recordedAt)) / 1_000);
  return moveTimes(recording, seconds * 1_000) as Recording;
}

/** `2026-03-02T10:00:11Z`, and with microseconds in Leases. */
const TIMESTAMP = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?Z$/;

/** Everything with its timestamps `ms` later. */
export function moveTimes(value: unknown, ms: number): unknown {
  if (typeof value === 'string') {
    const match = TIMESTAMP.exec(value);
    if (match === null) return value;
    const moved = new Date(Date.parse(`${match[1]}Z`) + ms).toISOString().slice(0, 19);
    return `${moved}${match[2] ?? ''}Z`;
  }
  if (Array.isArray(value)) return value.map((item) => moveTimes(item, ms));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, moveTimes(item, ms)]));
}
