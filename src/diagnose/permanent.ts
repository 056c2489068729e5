import type { Diagnosis, FindingCode } from './diagnosis.ts';

/**
 * Causes that no retry of Kubernetes or of a controller mends: somebody has to act. A node may come
 * back, a controller in back-off may finish, a group may be discovered again after a rolling upgrade.
 */
const PERMANENT: ReadonlySet<FindingCode> = new Set<FindingCode>([
  'owner-missing',
  'owner-scaled-to-zero',
  'owner-unknown',
  'apiservice-unavailable',
  'conversion-webhook-failing',
  'admission-webhook-failing',
  'admission-denied',
  'deletion-forbidden',
  'storage-unreadable',
]);

/** Only when one of the causes is permanent does more waiting achieve nothing. */
export function isPermanent(diagnosis: Diagnosis): boolean {
  const { kind } = diagnosis.movement;
  if (kind !== 'none' && kind !== 'unknown') return false;
  const roots = new Set(diagnosis.rootCauses);
  return diagnosis.findings.some(({ id, code }) => roots.has(id) && PERMANENT.has(code));
}
