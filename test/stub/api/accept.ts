import type { JsonObject } from '../../../src/base/json.ts';
import { notAcceptable } from './status.ts';

/** The form of an answer that a client accepts: the first in its Accept header that is served. */
export type Form = 'full' | 'metadata' | 'aggregated-discovery';

const WANTED: Record<string, Form> = {
  'PartialObjectMetadata/meta.k8s.io/v1': 'metadata',
  'PartialObjectMetadataList/meta.k8s.io/v1': 'metadata',
  'APIGroupDiscoveryList/apidiscovery.k8s.io/v2': 'aggregated-discovery',
};

/** Skips clauses that are not served (Table, protobuf, v2beta1), as the real server does. */
export function negotiate(accept: string | undefined, served: readonly Form[]): Form {
  if (accept === undefined || accept.trim() === '') return 'full';
  for (const clause of accept.split(',')) {
    const [type = '', ...rest] = clause.split(';').map((part) => part.trim());
    const parameters = Object.fromEntries(rest.map((part) => part.split('=', 2)));
    if (!['application/json', 'application/*', '*/*'].includes(type)) continue;
    const as: string | undefined = parameters['as'];
    if (as === undefined) return 'full';
    const form = WANTED[`${as}/${parameters['g']}/${parameters['v']}`];
    if (form !== undefined && served.includes(form)) return form;
  }
  throw notAcceptable();
}

export function metadataOnly(object: JsonObject): JsonObject {
  return {
    kind: 'PartialObjectMetadata',
    apiVersion: 'meta.k8s.io/v1',
    metadata: object['metadata'] ?? {},
  };
}
