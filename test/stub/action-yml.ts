import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';

export const REPOSITORY = join(import.meta.dirname, '..', '..');

interface ActionYml {
  name: string;
  description: string;
  inputs: Record<string, { description: string; default?: string | boolean; required?: boolean }>;
  outputs: Record<string, { description: string }>;
  runs: { using: string; main: string };
}

/** action.yml as the runner reads it. */
export function readActionYml(): ActionYml {
  return load(readFileSync(join(REPOSITORY, 'action.yml'), 'utf8')) as ActionYml;
}
