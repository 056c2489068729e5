import type { Remedy, Subject } from '../../model/finding.ts';
import type { CatalogueEntry } from '../catalogue.ts';
import { kindName, subjectText } from '../display.ts';
import type { ErrorDetail } from '../error-kinds.ts';
import { kubectl, named } from './commands.ts';
import {
  deleteFirstRemedy,
  type HeldObject,
  knownRemedies,
  removeFinalizerRemedies,
} from './object.ts';

/** A workload that is there: a Deployment, StatefulSet or DaemonSet. */
export interface WorkloadRef {
  kind: string;
  namespace: string;
  name: string;
}

interface Owned {
  /** What it should have finished, where that is an object; the last resort is then added. */
  held?: HeldObject | undefined;
}

/** The controller that would remove the finalizer is not in the cluster. */
export function ownerMissingRemedies(
  input: Owned & {
    finalizer: string;
    /** For people: "Deployment widget-operator", "Rancher". */
    owner: string;
    known?: CatalogueEntry | undefined;
    /** It was in the namespace that is being deleted: a circle. */
    insideNamespace: boolean;
  },
): Remedy[] {
  const { finalizer, owner, known, insideNamespace, held } = input;
  const elsewhere = insideNamespace ? ' in another namespace' : '';
  return [
    ...(insideNamespace && held !== undefined ? [deleteFirstRemedy(held, owner)] : []),
    {
      text: `Install ${owner} again${elsewhere}: it removes ${finalizer}, and the namespace then goes within 10 s`,
    },
    ...knownRemedies(known),
    ...lastResort(held),
  ];
}

/** It exists with 0 replicas. */
export function ownerScaledToZeroRemedies(input: Owned & { workload: WorkloadRef }): Remedy[] {
  const { workload, held } = input;
  return [
    {
      text: `Scale ${workload.kind} ${workload.namespace}/${workload.name} up; the namespace goes within 10 s after it has done its work`,
      command: kubectl('scale', ...target(workload), '--replicas=1'),
    },
    ...lastResort(held),
  ];
}

/** It exists, wants replicas and has none ready. */
export function ownerNotReadyRemedies(input: Owned & { workload: WorkloadRef }): Remedy[] {
  const { workload, held } = input;
  return [
    {
      text: `Make ${workload.kind} ${workload.namespace}/${workload.name} ready; see what keeps its pods from starting`,
      command: kubectl('describe', ...target(workload)),
    },
    {
      role: 'look',
      text: 'Its last words',
      command: kubectl('logs', ...logTarget(workload), '--all-containers', '--tail=50'),
    },
    ...lastResort(held),
  ];
}

/** It runs, but what it must do is refused. Forcing would race it, so that is not offered. */
export function ownerFailingRemedies(input: {
  workload: WorkloadRef | undefined;
  /** What is refused, as far as it was understood. */
  error: ErrorDetail;
  serviceAccount?: { namespace: string; name: string } | undefined;
}): Remedy[] {
  const { workload, error, serviceAccount } = input;
  return [cureOf(error, serviceAccount), ...(workload === undefined ? [] : [logRemedy(workload)])];
}

/** It runs: slow, or in back-off. */
export function ownerRunningRemedies(input: { workload: WorkloadRef }): Remedy[] {
  return [
    { text: 'Give it more time: raise the timeout' },
    logRemedy(input.workload),
    {
      text: 'If it is in back-off, a restart makes it try again at once',
      command: kubectl('rollout', 'restart', ...target(input.workload)),
    },
  ];
}

/** No evidence of who owns the finalizer. */
export function ownerUnknownRemedies(
  input: Owned & {
    finalizer: string;
    object: Subject;
    known: CatalogueEntry | undefined;
  },
): Remedy[] {
  const { finalizer, object, known, held } = input;
  const place = object.namespace === undefined ? [] : ['-n', object.namespace];
  return [
    ...knownRemedies(known),
    {
      role: 'look',
      text: `Find out who set ${finalizer} on ${subjectText(object)} and why; managedFields say who wrote what`,
      command: kubectl(
        'get',
        ...named(kindName(object), object.name),
        ...place,
        '-o',
        'yaml',
        '--show-managed-fields',
      ),
    },
    ...lastResort(held),
  ];
}

function cureOf(
  error: ErrorDetail,
  serviceAccount: { namespace: string; name: string } | undefined,
): Remedy {
  switch (error.kind) {
    case 'forbidden': {
      const account =
        serviceAccount &&
        `system:serviceaccount:${serviceAccount.namespace}:${serviceAccount.name}`;
      const user = error.user ?? account;
      if (user === undefined || error.verb === undefined || error.resource === '') break;
      const type = error.group === '' ? error.resource : `${error.resource}.${error.group}`;
      return {
        text: `Grant ${error.verb} on ${type} to ${user}; this shows whether it may`,
        command: kubectl('auth', 'can-i', error.verb, type, '--all-namespaces', `--as=${user}`),
      };
    }
    case 'not-found':
      return {
        text: `Restore what it looks for: ${error.resource} "${error.name}" is not there`,
      };
    case 'namespace-terminating':
      return {
        role: 'next',
        text: `It must create ${error.resource ?? 'something'} in the namespace, which a terminating namespace refuses: for the next run, delete its objects before the namespace`,
      };
    case 'new-finalizers-refused':
      return {
        text: 'A fault of the controller: it tries to add a finalizer to what is being deleted; update it to a version that does not',
      };
    case 'webhook-unreachable':
      return {
        text: `Make webhook ${error.webhook} answer again: it must pass the controller's update`,
      };
    case 'webhook-denied':
      return {
        text: `Meet the condition of webhook ${error.webhook}, or exempt the controller's update from it`,
      };
    case 'policy-denied':
      return {
        text: `Meet the condition of policy ${error.policy}, or exempt the controller's update from it`,
      };
    case 'unavailable':
    case 'timeout':
      return { text: 'Make the service answer that it needs for its clean-up' };
    default:
  }
  return { text: 'Remove what it says it fails at; it then finishes by itself' };
}

function logRemedy(workload: WorkloadRef): Remedy {
  return {
    role: 'look',
    text: `See what ${workload.kind} ${workload.namespace}/${workload.name} says`,
    command: kubectl('logs', ...logTarget(workload), '--all-containers', '--tail=50'),
  };
}

function lastResort(held: HeldObject | undefined): Remedy[] {
  return held === undefined ? [] : removeFinalizerRemedies(held);
}

function target({ kind, namespace, name }: WorkloadRef): string[] {
  return [...named(kind.toLowerCase(), name), '-n', namespace];
}

/** `kubectl logs` takes a type only with a slash. */
function logTarget({ kind, namespace, name }: WorkloadRef): string[] {
  return [`${kind.toLowerCase()}/${name}`, '-n', namespace];
}
