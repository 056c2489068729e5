import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { isObject, type Json, type JsonObject } from '../../src/base/json.ts';
import { REPOSITORY } from './action-yml.ts';

/** An API description of a Git host, cut to what the gate calls; see scripts/host-api.ts. */
export type Description = 'api.github.com' | 'ghes-3.17';

interface Operation {
  query: Record<string, JsonObject>;
  body: JsonObject | null;
}

// Query parameters arrive as strings. Formats are not checked.
const ajv = new Ajv({ coerceTypes: true, strict: false, logger: false });
const known = new Map<Description, Record<string, Operation>>();

/** Returns how a request breaks the description: an unknown path, parameter, member or value. */
export function violationOf(
  description: Description,
  repository: string,
  method: string,
  path: string,
  body: Json | undefined,
): string | undefined {
  const url = new URL(path, 'http://host');
  const inside = url.pathname.replace(`/repos/${repository}/`, '/repos/{owner}/{repo}/');
  const generic = inside.replace(/\/(\d+|[0-9a-f]{3,64})(?=\/|$)/g, '/{}');
  const operation = operationsOf(description)[`${method} ${generic}`];
  const tell = (problem: string): string => `${description}: ${method} ${path}: ${problem}`;
  if (operation === undefined) return tell('there is no such operation');
  for (const [name, value] of url.searchParams) {
    // The host chooses the address of the next page.
    if (name === 'page') continue;
    const schema = operation.query[name];
    if (schema === undefined) return tell(`there is no parameter "${name}"`);
    if (!ajv.validate({ type: 'object', properties: { value: schema } }, { value })) {
      return tell(`${name}: ${ajv.errorsText()}`);
    }
  }
  if (operation.body === null) return body === undefined ? undefined : tell('it takes no body');
  const { properties } = operation.body;
  const members = isObject(body) ? Object.keys(body) : [];
  const strange = members.find((key) => !isObject(properties) || !(key in properties));
  if (strange !== undefined) return tell(`there is no member "${strange}"`);
  return ajv.validate(operation.body, structuredClone(body)) ? undefined : tell(ajv.errorsText());
}

function operationsOf(description: Description): Record<string, Operation> {
  let found = known.get(description);
  if (found === undefined) {
    const path = join(REPOSITORY, 'test/fixtures/host-api', `${description}.json`);
    found = (JSON.parse(readFileSync(path, 'utf8')) as { operations: Record<string, Operation> })
      .operations;
    known.set(description, found);
  }
  return found;
}
