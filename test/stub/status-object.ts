import type { JsonObject } from '../../src/base/json.ts';

/** A failure as the API server words it. */
export function statusObject(
  code: number,
  reason: string,
  message: string,
  details?: JsonObject,
): JsonObject {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    ...(details === undefined ? {} : { details }),
    code,
  };
}
