import type { Json, JsonObject } from '../../src/base/json.ts';
import type { ResourceType } from '../../src/model/snapshot.ts';

/**
 * A cluster in which a namespace hangs, as a real API server showed it: what it serves and every
 * object in it. `npm run record` makes these files; the embedded API server answers from them.
 */
export interface Recording {
  format: 1;
  /** The scenario of test/cluster/scenarios that was recorded. */
  scenario: string;
  title: string;
  /** The namespace that hangs. */
  namespace: string;
  /** ISO 8601, the server's clock when the last object was read: "now" of all timestamps inside. */
  recordedAt: string;
  /** The document of `/version`. */
  version: JsonObject;
  discovery: RecordedDiscovery;
  /** One per listable resource type, in its preferred version. */
  collections: RecordedCollection[];
}

export interface RecordedDiscovery {
  /**
   * Answers of `/api` and `/apis` to
   * `Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList`.
   */
  aggregated: Record<string, RecordedAnswer>;
  /** Answers to plain JSON: `/api`, `/api/v1`, `/apis` and each `/apis/<group>/<version>`. */
  legacy: Record<string, RecordedAnswer>;
}

/** An answer verbatim; errors (a dead APIService) are answers too. */
export interface RecordedAnswer {
  status: number;
  contentType: string;
  /** Parsed if it is JSON, else the text as it came. */
  body: Json;
}

export interface RecordedCollection extends ResourceType {
  /** The resourceVersion of the list. */
  resourceVersion: string;
  /** The objects of all namespaces, in the server's order, complete (with managedFields). */
  objects: JsonObject[];
  /** Why the type could not be listed; then there are no objects. */
  error?: RecordedAnswer;
  /**
   * How many objects that every cluster has (default RBAC, flow control, unused certificates) were
   * left out to keep the file small.
   */
  leftOut: number;
}
