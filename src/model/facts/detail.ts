import type { JsonObject } from '../../base/json.ts';
import type { Condition } from './metadata.ts';
import type { LabelRequirement } from './shape.ts';

/** Reads status, conditions and references of an object of any type. By which conventions, the diagnosis knows. */
export type DetailParser = (object: JsonObject) => ObjectDetail;

export interface ObjectDetail {
  conditions: Condition[];
  observedGeneration?: number | undefined;
  /** Texts of the status that may contain an error: `message`, `reason`, `error`, `lastError`. */
  texts: string[];
  /** Those of `texts` that the status itself calls errors, by the name of their field or by a failed state beside them. */
  errors?: string[];
  /** States that are not healthy, and the text beside them: `phase: Suspended (the licence has expired)`. */
  unhealthy?: string[];
  /** Time at which the work that the object describes ended, as for a Job or a backup: `status.completionTime`. */
  endedAt?: string | undefined;
  references: Reference[];
  /** Nodes that its spec or status names: `spec.nodeID`, `status.ownerID` (CSI drivers, Longhorn). */
  nodes?: string[];
  /** What may be the name of an object. */
  names?: { field: string; name: string; kind?: string }[];
  hasMoreNames?: boolean;
  selectors?: { field: string; requirements: LabelRequirement[] }[];
  /** Options that the first two levels of its spec or an annotation set: `spec.cleanPolicy=Delete`. */
  settings?: string[];
  /** Fields of its spec that forbid its deletion: `spec.lifecycle.preventDestroy: true`. */
  protections?: string[];
  /** Fields of its spec that contain a template for a Pod or Job in which its controller works. */
  templates?: string[];
}

/** A reference to another object. Without a namespace the object is cluster-scoped or in the same namespace. */
export interface Reference {
  group?: string | undefined;
  kind: string;
  namespace?: string | undefined;
  name: string;
  uid?: string | undefined;
  /** Path of the field: `status.boundVolumeSnapshotContentName`. */
  field: string;
  /** The field is a manifest: the controller of the object makes and deletes the other one. */
  isMade?: boolean | undefined;
  /** The field is an address, by which a program calls the Service. */
  isAddress?: boolean;
}
