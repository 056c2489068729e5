import type { Details, WorkloadFacts } from '../../model/snapshot.ts';
import type { View } from '../draft.ts';
import { serviceAccounts } from './backends.ts';
import { type Clue, WEIGHT } from './clue.ts';
import { type Held, knownOwner, writerOf } from './held.ts';
import { grantedAccounts, mayChange, powerfulAccounts } from './rights.ts';
import { departed, present } from './workloads.ts';

/** A controller that may be the owner, and what speaks for it. */
export interface Candidate {
  serviceAccount: { namespace: string; name: string };
  /** Undefined: nothing in the cluster runs as this ServiceAccount. */
  workload: WorkloadFacts | undefined;
  /** The workload that was in the namespace when the gate began and is not there any more. */
  gone?: WorkloadFacts;
  /** How well it is proven; only for choosing among candidates. */
  weight: number;
  evidence: string[];
}

/** Owner candidates, best first. None without the workloads: nobody could say which of them runs. */
export function candidatesFor(view: View, held: Held): Candidate[] {
  const details = view.now.details;
  if (details?.workloads?.ok !== true) return [];
  const found = new Map<string, Candidate>();
  const add = (account: Candidate['serviceAccount'], weight: number, evidence: string): void => {
    for (const candidate of withWorkloads(view, details, account)) {
      const key = `${account.namespace}/${account.name} ${candidate.workload?.uid ?? ''}`;
      const known = found.get(key) ?? candidate;
      known.weight = Math.max(known.weight, weight);
      if (!known.evidence.includes(evidence)) known.evidence.push(evidence);
      found.set(key, known);
    }
  };
  for (const { account, weight, evidence } of [
    ...grantedAccounts(view, held, details),
    ...writingAccounts(view, held, details),
    ...powerfulAccounts(view, held, details),
    ...serviceAccounts(view, held, details),
    ...cataloguedAccounts(held, details),
  ]) {
    add(account, weight, evidence);
  }
  const writer = writerOf(held)?.manager;
  for (const candidate of found.values()) {
    if (writer !== undefined && isCalled(candidate, writer)) {
      candidate.weight += WEIGHT.writer;
      candidate.evidence.push(`the finalizer was written by field manager "${writer}"`);
    }
  }
  return [...found.values()].sort((a, b) => b.weight - a.weight || readiness(b) - readiness(a));
}

/** Where a default installation runs the well-known owner: a convention, so it has to be there. */
function cataloguedAccounts(held: Held, details: Details): Clue[] {
  const known = knownOwner(held);
  if (known === undefined || details.workloads?.ok !== true) return [];
  return details.workloads.value
    .filter(({ namespace, name }) =>
      known.workload.some((entry) => entry.namespace === namespace && entry.name === name),
    )
    .map((workload) => ({
      account: { namespace: workload.namespace, name: workload.serviceAccount },
      weight: WEIGHT.catalogue,
      evidence: `${held.finalizer} is a well-known finalizer of ${known.owner}, which runs as ${workload.kind} ${workload.namespace}/${workload.name} by default`,
    }));
}

/**
 * Workloads that are called as the field manager that wrote the finalizer. The name is the writer's
 * own (managedFields), not a pattern; names that every framework uses say nothing.
 */
function writingAccounts(view: View, held: Held, details: Details): Clue[] {
  const writer = writerOf(held)?.manager ?? '';
  if (!isTelling(writer)) return [];
  const isCalledSo = ({ name, containers }: WorkloadFacts): boolean =>
    name === writer || containers.includes(writer);
  // Elsewhere in the cluster a namesake is just that, unless it may change the object at all.
  const able = present(details).filter((workload) => mayChange(view, held, details, workload));
  const ours = departed(view, details);
  return [...able, ...ours].filter(isCalledSo).map((workload) => ({
    account: { namespace: workload.namespace, name: workload.serviceAccount },
    weight: 0, // what it weighs is added for every candidate that is called so
    evidence: `${workload.kind} ${workload.namespace}/${workload.name} is called as the writer of the finalizer`,
  }));
}

/** Whether the name of a field manager says who it is. */
export function isTelling(manager: string): boolean {
  return manager !== '' && !ANYBODY.test(manager);
}

/** Tools of people, and the names that frameworks give to any controller. */
const ANYBODY =
  /^(?:kubectl(?:-.*)?|helm|manager|controller|operator|main|app|server|node|python.*|java|unknown|Mozilla|OpenAPI-Generator|Go-http-client|kube-controller-manager)$/;

function withWorkloads(
  view: View,
  details: Details,
  account: Candidate['serviceAccount'],
): Candidate[] {
  const runsAs = ({ namespace, serviceAccount }: WorkloadFacts): boolean =>
    namespace === account.namespace && serviceAccount === account.name;
  const base = { serviceAccount: account, weight: 0 };
  const workloads = present(details).filter(runsAs);
  if (workloads.length > 0) {
    return workloads.map((workload) => ({
      ...base,
      workload,
      evidence: [
        `${workload.kind} ${workload.namespace}/${workload.name} runs as ServiceAccount ${account.name}`,
      ],
    }));
  }
  const gone = departed(view, details).find(runsAs);
  if (gone === undefined) return [{ ...base, workload: undefined, evidence: [] }];
  const evidence = `${gone.kind} ${gone.namespace}/${gone.name}, which ran as ServiceAccount ${account.name}, was there at ${view.now.rollCall?.at} and is not any more`;
  return [{ ...base, workload: undefined, gone, evidence: [evidence] }];
}

/** Not a search by name: it only corroborates a candidate that something else has pointed to. */
function isCalled(candidate: Candidate, manager: string): boolean {
  return (
    candidate.workload?.name === manager ||
    candidate.workload?.containers.includes(manager) === true ||
    candidate.gone?.name === manager ||
    candidate.gone?.containers.includes(manager) === true ||
    candidate.serviceAccount.name === manager
  );
}

function readiness(candidate: Candidate): number {
  return candidate.workload === undefined ? -1 : candidate.workload.ready;
}
