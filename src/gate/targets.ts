import { ActionError, type ErrorCode } from '../base/errors.ts';
import { isAdmissionError } from '../diagnose/admission.ts';
import { classifyErrorText } from '../diagnose/error-texts.ts';
import { isProtectedNamespace } from '../force/policy.ts';
import type { Inputs } from '../inputs.ts';
import type { KubernetesApi } from '../kubernetes/api.ts';
import { namespacePath } from '../kubernetes/paths.ts';
import type { FailureKind, ReadFailure } from '../model/read.ts';
import type { NamespaceFacts, RollCall } from '../model/snapshot.ts';
import { namespaceFacts } from '../observe/facts.ts';
import { readNamespace } from './wait.ts';

/** A namespace to wait for; `first` is undefined when the name does not exist at the start. */
export interface Target {
  name: string;
  first: NamespaceFacts | undefined;
  /** It was asked to go, and was gone or replaced when it was looked at again. */
  wentAtOnce?: boolean;
  /** Who was in it, asked before its content goes; never rejects. */
  rollCall?: Promise<RollCall>;
}

/**
 * Names from the input and from the selector, each read once: this pins the UIDs. A run that is
 * cancelled meanwhile has no targets.
 */
export async function findTargets(
  inputs: Inputs,
  api: KubernetesApi,
  signal: AbortSignal,
): Promise<Target[]> {
  const selected = await select(inputs.selector, api, signal);
  const names = inputs.namespaces.filter((name) => !selected.some((facts) => facts.name === name));
  const named = await Promise.all(
    names.map(async (name) => ({ name, got: await readNamespace(api, name, signal) })),
  );
  if (signal.aborted) return [];
  const targets = named.map(({ name, got }): Target => {
    if (!got.ok) throw cannot('get', `namespace "${name}"`, got.failure, api);
    return { name, first: got.value };
  });
  return [...targets, ...selected.map((first) => ({ name: first.name, first }))];
}

async function select(
  selector: string,
  api: KubernetesApi,
  signal: AbortSignal,
): Promise<NamespaceFacts[]> {
  if (selector === '') return [];
  const found: NamespaceFacts[] = [];
  const end = await api.list('/api/v1/namespaces', {
    signal,
    labelSelector: selector,
    onItem: (item) => found.push(namespaceFacts(item)),
    onRestart: () => {
      found.length = 0;
    },
  });
  if (end.ok || signal.aborted) return found;
  if (end.failure.status === 400) {
    throw new ActionError(
      'invalid-input',
      `input "selector" is "${selector}", which the API server does not understand: ${end.failure.message}`,
    );
  }
  throw cannot('list', `namespaces with the labels "${selector}"`, end.failure, api);
}

/** Before anything is deleted: a run that may not do all of it does nothing. */
export function refuseProtected({ name, first }: Target, api: KubernetesApi): void {
  if (first === undefined || first.deletionTimestamp !== undefined) return;
  const reason = isProtectedNamespace(name, api.target.ownNamespace);
  if (reason === undefined) return;
  throw new ActionError('invalid-input', `namespace "${name}" is never deleted: ${reason}`);
}

/** A namespace that changes all the time is not chased for ever. */
const MAX_DELETE_TRIES = 3;

/**
 * Asks for the deletion of exactly the namespace that was read, in exactly the state that was read. An
 * answered DELETE is not the end of the namespace: the wait decides that.
 */
export async function requestDeletion(
  target: Target,
  api: KubernetesApi,
  signal: AbortSignal,
): Promise<Target> {
  const { name, first } = target;
  if (first === undefined || first.deletionTimestamp !== undefined) return target;
  refuseProtected(target, api);
  let current = first;
  for (let attempt = 1; ; attempt++) {
    const sent = await api.send(
      {
        method: 'DELETE',
        path: namespacePath(name),
        body: {
          apiVersion: 'v1',
          kind: 'DeleteOptions',
          preconditions: { uid: current.uid, resourceVersion: current.resourceVersion },
        },
      },
      { signal },
    );
    // The answer may have been lost, the namespace changed or replaced, or (before 1.20) the 409 means
    // "being removed already". What is there now tells.
    const now = await readNamespace(api, name, signal);
    if (signal.aborted) return { ...target, first: current };
    if (!now.ok) throw cannot('get', `namespace "${name}"`, now.failure, api);
    const isSame = now.value?.uid === first.uid;
    // Gone or replaced: the follower, pinned to the old UID, says which.
    if (!isSame) return { ...target, first: current, wentAtOnce: true };
    current = now.value ?? current;
    if (current.deletionTimestamp !== undefined) return { ...target, first: current };
    if (sent.ok) return { ...target, first: current };
    if (sent.failure.kind !== 'conflict' || attempt === MAX_DELETE_TRIES) {
      throw cannot('delete', `namespace "${name}"`, sent.failure, api);
    }
  }
}

const CODES: Partial<Record<FailureKind, ErrorCode>> = {
  forbidden: 'kube-forbidden',
  unauthorized: 'kube-unauthorized',
  timeout: 'kube-timeout',
  network: 'kube-unreachable',
  unreadable: 'kube-unreachable',
};

/** The gate cannot start: what was tried, on what, what came back, what to do. */
export function cannot(
  verb: string,
  what: string,
  failure: ReadFailure,
  api: KubernetesApi,
): ActionError {
  const isRefused = classifyErrorText(failure.message).some(isAdmissionError);
  return new ActionError(
    isRefused ? 'kube-forbidden' : (CODES[failure.kind] ?? 'kube-unreachable'),
    `cannot ${verb} ${what} on ${api.target.server}: ${failure.message}`,
    { hint: isRefused ? REFUSED_HINT : hintFor(verb, failure.kind, api) },
  );
}

/** No right of this identity would help. */
const REFUSED_HINT =
  'An admission webhook or policy stands in the way: mend it, or fulfil what it asks for, and run the gate again.';

function hintFor(verb: string, kind: FailureKind, api: KubernetesApi): string {
  switch (kind) {
    case 'forbidden':
      return `Grant this identity "${verb}" on namespaces by a ClusterRole and a ClusterRoleBinding; a Role inside the namespace is deleted together with it.`;
    case 'unauthorized':
      return `The credentials of context "${api.target.context}" are refused: they may have expired, or belong to another cluster.`;
    case 'network':
    case 'timeout':
      return 'Check that the runner can reach this address (firewall, VPN, proxy, a cluster that was already removed) and that the kubeconfig names the right cluster.';
    case 'unreadable':
      return 'Check the address in the kubeconfig: something else than a Kubernetes API server answers there, a proxy or a login page perhaps.';
    default:
      return 'Try again; if it persists, look at the state of the API server.';
  }
}
