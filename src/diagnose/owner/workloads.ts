import type { Details, WorkloadFacts } from '../../model/snapshot.ts';
import type { View } from '../draft.ts';

export function present(details: Details): WorkloadFacts[] {
  return details.workloads?.ok === true ? details.workloads.value : [];
}

/** What was in the namespace at the start and, by a complete read, is not there any more. */
export function departed(view: View, details: Details): WorkloadFacts[] {
  const rollCall = view.now.rollCall?.workloads;
  if (rollCall?.ok !== true || details.workloads?.ok !== true) return [];
  const here = new Set(details.workloads.value.map(({ uid }) => uid));
  return rollCall.value.filter(({ uid }) => !here.has(uid));
}
