import type { Json, JsonObject } from '../../../src/json.ts';
export interface Answer {
  status: number;
  contentType: string;
  body: Json;
}
export interface Recording {
  id: string;
  recordedAt: string;
  version: JsonObject;
  discovery: { aggregated: { api: JsonObject; apis: JsonObject }; legacy: Record<string, Answer> };
  objects: Record<string, JsonObject[]>;
}
