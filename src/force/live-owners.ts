import type { Diagnosis, Finding } from '../model/finding.ts';
import { patternVeto } from '../model/outcome.ts';
import { type ActivePolicy, permissionFor } from '../model/policy.ts';
import { type ForceType, typeName } from './force-plan.ts';

const CLAIM_PROTECTION = 'kubernetes.io/pvc-protection';

/**
 * Why a finalizer may not come off, or `undefined` when it may. A wildcard reaches only what the
 * diagnosis blames and whose owner does not act: a running owner that still cleans up would be raced,
 * and what nobody blames goes by itself. Spelling the finalizer out says that this is known.
 */
export function refuseFinalizer(
  finalizer: string,
  policy: ActivePolicy,
  diagnosis: Diagnosis,
  subject: { type: ForceType } | 'Namespace',
): string | undefined {
  const permission = permissionFor(policy.finalizers, finalizer);
  if (permission === 'exactly') return undefined;
  if (permission === undefined) {
    return policy.finalizers.length === 0
      ? `force-finalizers is empty; to allow it, name ${finalizer}`
      : `force-finalizers does not allow ${finalizer}; to allow it, name it there`;
  }
  const held = findingsOf(diagnosis, finalizer, subject);
  const because = movingReason(diagnosis, finalizer, subject) ?? patternVeto(diagnosis, held);
  if (because !== undefined) {
    return `${because}; a wildcard does not override that, naming ${finalizer} in force-finalizers does`;
  }
  if (held.length === 0) {
    return `the diagnosis does not blame ${finalizer}; only naming it in force-finalizers, without a wildcard, removes it`;
  }
  return undefined;
}

function findingsOf(
  diagnosis: Diagnosis,
  finalizer: string,
  subject: { type: ForceType } | 'Namespace',
): Finding[] {
  return diagnosis.findings.filter((finding) => {
    if (finding.finalizer !== finalizer) return false;
    if (subject === 'Namespace') {
      return finding.code === 'namespace-finalizer' || finding.code === 'namespace-spec-finalizer';
    }
    return finding.code === 'object-finalizer' && isOfType(finding, subject.type);
  });
}

/** Content that visibly goes away has somebody at work, known or not. */
function movingReason(
  diagnosis: Diagnosis,
  finalizer: string,
  subject: { type: ForceType } | 'Namespace',
): string | undefined {
  if (subject === 'Namespace') return undefined;
  const moving = diagnosis.findings.find(
    ({ code, subject: { name } }) => code === 'content-deleting' && name === typeName(subject.type),
  );
  if (moving !== undefined) return `${moving.subject.name} ${moving.message}`;
  const used = diagnosis.findings.find(
    (finding) => finding.code === 'volume-in-use' && isOfType(finding, subject.type),
  );
  return used !== undefined && finalizer === CLAIM_PROTECTION
    ? `persistentvolumeclaims/${used.subject.name} ${used.message}`
    : undefined;
}

function isOfType(finding: Finding, type: ForceType): boolean {
  const { apiVersion, kind } = finding.subject;
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
  return kind === type.kind && group === type.group;
}
