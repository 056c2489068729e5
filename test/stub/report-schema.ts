import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';

const SCHEMA = join(import.meta.dirname, '..', '..', 'schema', 'report-v1.schema.json');

let validate: ReturnType<Ajv2020['compile']> | undefined;

/** Returns how a report breaks the published schema; empty if it is valid. */
export function schemaErrors(report: unknown): string[] {
  validate ??= new Ajv2020({ allErrors: true, strict: true, allowUnionTypes: true }).compile(
    readSchema(),
  );
  if (validate(report)) return [];
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

export function readSchema(): { $defs: Record<string, { enum?: string[] } & object> } {
  return JSON.parse(readFileSync(SCHEMA, 'utf8'));
}
