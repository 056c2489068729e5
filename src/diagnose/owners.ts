import { shorten } from '../base/text.ts';
import type { Subject } from '../model/finding.ts';
import type { WorkloadFacts } from '../model/snapshot.ts';
import { type Draft, findingId, type View } from './draft.ts';
import { asObject, missing, withoutCandidate, workloadSubject } from './owner/absent.ts';
import { type Candidate, candidatesFor } from './owner/candidates.ts';
import { type Held, isOfControllerManager, knownOwner } from './owner/held.ts';
import { refusalsFor } from './owner/refusals.ts';
import {
  ownerFailingRemedies,
  ownerNotReadyRemedies,
  ownerRunningRemedies,
  ownerScaledToZeroRemedies,
} from './remedies/owners.ts';
import { refusingDrafts } from './rules/refusals.ts';

/** Of what a refusal says, in a sentence. */
const MAX_SAID_CHARS = 240;

/**
 * The controller that should remove a finalizer, and in what state it is. The first draft is the
 * owner's; others may follow, for what the owner waits for.
 */
export function ownerDrafts(view: View, held: Held): [Draft, ...Draft[]] {
  if (isOfControllerManager(held))
    return alive(view, held, CONTROLLER_MANAGER, [
      `${held.finalizer} is removed by the ${knownOwner(held)?.owner ?? 'kube-controller-manager'}`,
    ]);
  const best = candidatesFor(view, held)[0];
  if (best === undefined) return [withoutCandidate(view, held)];
  if (best.workload === undefined) return [missing(view, held, best)];
  return ofWorkload(view, held, best, best.workload);
}

/** The id of the finding that a held object waits for. */
export function ownerLink(draft: Draft): { id: string; because: string } {
  return {
    id: findingId(draft.code, draft.subject, draft.finalizer),
    because: 'only its owner removes the finalizer',
  };
}

const CONTROLLER_MANAGER: Subject = {
  apiVersion: 'v1',
  kind: 'Pod',
  namespace: 'kube-system',
  name: 'kube-controller-manager',
};

function ofWorkload(
  view: View,
  held: Held,
  candidate: Candidate,
  workload: WorkloadFacts,
): [Draft, ...Draft[]] {
  const subject = workloadSubject(workload);
  const common = { subject, finalizer: held.finalizer, scope: scopeOf(view, workload.namespace) };
  const state = `${workload.ready} of ${workload.wanted} replicas are ready`;
  const evidence = [...candidate.evidence, state];
  const target = { kind: workload.kind, namespace: workload.namespace, name: workload.name };
  if (workload.wanted === 0) {
    return [
      {
        ...common,
        code: 'owner-scaled-to-zero',
        message: `should remove ${held.finalizer}, but is scaled to zero`,
        evidence,
        remedies: ownerScaledToZeroRemedies({ workload: target, held: asObject(held) }),
      },
    ];
  }
  if (workload.ready === 0) {
    const why = workload.conditions.find(
      ({ status, message }) => status !== 'True' && message !== '',
    );
    return [
      {
        ...common,
        code: 'owner-not-ready',
        message: `should remove ${held.finalizer}, but none of its ${workload.wanted} replicas is ready`,
        evidence: [
          ...evidence,
          ...(why === undefined ? [] : [`${why.type}=${why.status}: ${why.message}`]),
        ],
        remedies: ownerNotReadyRemedies({ workload: target, held: asObject(held) }),
      },
    ];
  }
  return alive(view, held, subject, evidence, candidate.serviceAccount);
}

/** It runs: is what it must do refused, or is it only slow? */
function alive(
  view: View,
  held: Held,
  subject: Subject,
  evidence: string[],
  serviceAccount?: { namespace: string; name: string },
): [Draft, ...Draft[]] {
  const workload =
    subject === CONTROLLER_MANAGER
      ? undefined
      : { kind: subject.kind, namespace: subject.namespace ?? '', name: subject.name };
  const common = {
    subject,
    finalizer: held.finalizer,
    scope: scopeOf(view, subject.namespace ?? ''),
  };
  const refusals = refusalsFor(view, held);
  const first = refusals[0];
  const causes = refusingDrafts(view, held, refusals);
  if (first === undefined && causes.length === 0) {
    return [
      {
        ...common,
        code: 'owner-running',
        message: `runs and should remove ${held.finalizer}; nothing shows that it fails, so it may be slow or in back-off`,
        evidence,
        remedies:
          workload === undefined
            ? [{ text: 'Give it more time: raise the timeout' }]
            : ownerRunningRemedies({ workload }),
      },
    ];
  }
  // Validation errors quote whole specifications; the evidence has them.
  const said = shorten(first?.error.text ?? causes[0]?.message ?? '', MAX_SAID_CHARS);
  return [
    {
      ...common,
      code: 'owner-failing',
      message: `runs, but what it must do to remove ${held.finalizer} is refused: ${said}`,
      quote: said,
      evidence: [...evidence, ...refusals.map(({ source, error }) => `${source}: ${error.text}`)],
      remedies: ownerFailingRemedies({
        workload,
        error: first?.error ?? { kind: 'other' },
        serviceAccount,
      }),
      waitsFor: causes.map((cause) => ({
        id: findingId(cause.code, cause.subject, cause.finalizer),
        because: 'it refuses the update that removes the finalizer',
      })),
    },
    ...causes,
  ];
}

function scopeOf(view: View, namespace: string): 'namespace' | 'cluster' {
  return namespace === view.now.namespace.name ? 'namespace' : 'cluster';
}
