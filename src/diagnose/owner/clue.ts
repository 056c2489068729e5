/** Something that points to a ServiceAccount as the owner's. */
export interface Clue {
  account: { namespace: string; name: string };
  weight: number;
  evidence: string;
}

/**
 * How much each kind of evidence says. RBAC that a manifest author wrote for exactly this type is
 * the best there is: who may not change an object cannot remove its finalizer.
 */
export const WEIGHT = {
  refusedByName: 40,
  grantedFinalizers: 30,
  service: 25,
  grantedStatus: 20,
  catalogue: 15,
  grantedChange: 10,
  writer: 5,
  powerful: 2,
} as const;
