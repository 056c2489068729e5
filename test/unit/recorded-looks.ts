import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Snapshot } from '../../src/model/snapshot.ts';

/**
 * What the gate's own look at a real control plane saw: `npm run record:snapshots` writes these files
 * and this reads them. Two looks at one hang, a few seconds apart, as during a wait.
 */
export interface RecordedLooks {
  scenario: string;
  title: string;
  /** Kubernetes version of the control plane. */
  version: string;
  /** Without what only a look of its own needs: types without content, details, nodes. */
  before: Snapshot;
  now: Snapshot;
  /** RBAC grants of Kubernetes' own controllers, which every cluster has. */
  leftOut: { grants: number };
}

export const SNAPSHOTS_FOLDER = join(import.meta.dirname, '..', 'fixtures', 'snapshots');

export function readRecordedLooks(): RecordedLooks[] {
  return readdirSync(SNAPSHOTS_FOLDER)
    .filter((file) => file.endsWith('.json'))
    .sort()
    .map((file) => readRecordedLook(file.slice(0, -'.json'.length)));
}

/** `id`: of the scenario, with what tells two recordings of it apart: "S4-watched". */
export function readRecordedLook(id: string): RecordedLooks {
  return JSON.parse(readFileSync(join(SNAPSHOTS_FOLDER, `${id}.json`), 'utf8')) as RecordedLooks;
}
