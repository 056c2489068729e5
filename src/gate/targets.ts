import { ActionError, type ErrorCode } from '../base/errors.ts';
import { formatDuration } from '../base/time.ts';
import { classifyErrorText, isAdmissionError } from '../diagnose/errors.ts';
import type { Inputs } from '../inputs.ts';
import type { KubernetesApi, Mutation } from '../kubernetes/api.ts';
import { deletion, namespacePath } from '../kubernetes/paths.ts';
import { namespaceFacts } from '../model/facts.ts';
import type { NotInspected } from '../model/finding.ts';
import { protectedBecause } from '../model/policy.ts';
import type { FailureKind, ReadFailure } from '../model/read.ts';
import type { Baseline, NamespaceFacts } from '../model/snapshot.ts';
import { inParallel, readList } from '../observe/collections.ts';
import type { Ordered } from './order.ts';
import type { GateDeps } from './run.ts';
import { readNamespace, readNamespaces } from './wait.ts';

/** A namespace to wait for; `first` is undefined when the name does not exist at the start. */
export interface Target {
  name: string;
  first: NamespaceFacts | undefined;
  /** It was asked to go, and was gone or replaced when it was looked at again. */
  wentAtOnce?: boolean;
  /** Why its deletion was refused: then nobody has asked for it. */
  refusal?: string;
  /** What was deleted in it before. */
  ordered?: Ordered;
  /** Who was in it, asked before its content goes. */
  baseline?: Baseline;
}

type TargetDeps = Pick<GateDeps, 'api' | 'log' | 'signal'>;

/** More would be no report that anybody reads. */
const MAX_TARGETS = 1_000;

export interface Found {
  targets: Target[];
  /** What a limit left out. */
  leftOut: NotInspected[];
}

/**
 * Names from the input, and what the selector and `terminating` ask for (both must hold), each read once:
 * this pins the UIDs. A run that is cancelled meanwhile has no targets.
 */
export async function findTargets(
  inputs: Inputs,
  serverNow: number,
  { api, log, signal }: TargetDeps,
): Promise<Found> {
  const selected = await select(inputs, serverNow, api, signal);
  const names = inputs.namespaces.filter((name) => !selected.some((facts) => facts.name === name));
  const wanted = names.map((name) => ({ name }));
  const read = await readNamespaces(api, wanted, signal);
  if (signal.aborted) return { targets: [], leftOut: [] };
  const named = [...read].map(([name, got]): Target => {
    if (!got.ok) throw cannot('get', `namespace "${name}"`, got.failure, api);
    return { name, first: got.value };
  });
  if (inputs.terminating !== undefined && selected.length === 0) {
    log.notice(`${described(inputs)} were not found: none has to be looked at`);
  }
  const all = [...named, ...selected.map((first) => ({ name: first.name, first }))];
  if (all.length <= MAX_TARGETS) return { targets: all, leftOut: [] };
  const what = `${all.length - MAX_TARGETS} more namespaces`;
  const reason = `of ${all.length} only ${MAX_TARGETS} are looked at in one run`;
  log.warning(`${what}: ${reason}`);
  return { targets: all.slice(0, MAX_TARGETS), leftOut: [{ what, reason }] };
}

async function select(
  inputs: Inputs,
  serverNow: number,
  api: KubernetesApi,
  signal: AbortSignal,
): Promise<NamespaceFacts[]> {
  const { selector, terminating } = inputs;
  if (selector === '' && terminating === undefined) return [];
  const isWanted = ({ deletionTimestamp }: NamespaceFacts): boolean =>
    terminating === undefined ||
    (deletionTimestamp !== undefined &&
      serverNow - Date.parse(deletionTimestamp) >= terminating.forMs);
  const listed = await readList(api, '/api/v1/namespaces', namespaceFacts, {
    signal,
    ...(selector === '' ? {} : { labelSelector: selector }),
  });
  if (listed.ok) return listed.value.items.filter(isWanted);
  const { failure } = listed;
  if (!signal.aborted) {
    if (failure.status === 400) {
      throw new ActionError(
        'invalid-input',
        `input "selector" is "${selector}", which the API server does not understand: ${failure.message}`,
      );
    }
    throw cannot('list', described(inputs), failure, api);
  }
  return [];
}

/** "namespaces with the labels "app=preview" that are terminating for at least 10m" */
function described({ selector, terminating }: Inputs): string {
  const labels = selector === '' ? '' : ` with the labels "${selector}"`;
  if (terminating === undefined) return `namespaces${labels}`;
  const { forMs } = terminating;
  const age = forMs === 0 ? '' : ` for at least ${formatDuration(forMs)}`;
  return `namespaces${labels} that are terminating${age}`;
}

/** Before anything is deleted: a run that may not do all of it does nothing. */
function refuseProtected(targets: readonly Target[], api: KubernetesApi): void {
  for (const { name, first } of targets) {
    if (first === undefined || first.deletionTimestamp !== undefined) continue;
    const reason = protectedBecause(name, api.target.ownNamespace);
    if (reason === undefined) continue;
    throw new ActionError('invalid-input', `namespace "${name}" is never deleted: ${reason}`);
  }
}

/**
 * Rights and admission of all deletions, tried as dry runs before the first real one; a refusal is the result of
 * that namespace, not the end of the others.
 */
export async function tryDeletions(
  targets: readonly Target[],
  { api, log, signal }: TargetDeps,
): Promise<Target[]> {
  refuseProtected(targets, api);
  if (!targets.some(({ first }) => first !== undefined)) {
    log.notice('no namespace existed, so nothing was deleted: check the names, or the selector');
  }
  return inParallel(targets, async (target) => {
    if (!isDeletable(target)) return target;
    const refusal = await tryDeletion(target, api, signal);
    return refusal === undefined ? target : { ...target, refusal };
  });
}

/** Asks for the deletion of all that nobody has asked to go yet. */
export async function requestDeletions(
  targets: readonly Target[],
  { api, log, signal }: TargetDeps,
): Promise<Target[]> {
  return inParallel(targets, async (target) => {
    if (!isDeletable(target) || signal.aborted) return target;
    const asked = await requestDeletion(target, api, signal);
    if (asked.refusal === undefined) log.line(`${target.name}: asked for its deletion`);
    return asked;
  });
}

/** It is there, nobody has asked it to go, and nothing refuses that. */
export function isDeletable({ first, refusal }: Target): boolean {
  return first !== undefined && first.deletionTimestamp === undefined && refusal === undefined;
}

function deletionOf({ name, uid, resourceVersion }: NamespaceFacts): Mutation {
  return deletion(namespacePath(name), { preconditions: { uid, resourceVersion } });
}

/** Only what the real request would meet as well; a webhook that knows no dry runs says nothing. */
async function tryDeletion(
  target: Target,
  api: KubernetesApi,
  signal: AbortSignal,
): Promise<string | undefined> {
  const request = deletionOf(target.first as NamespaceFacts);
  const sent = await api.send({ ...request, dryRun: true }, { signal });
  if (sent.ok) return undefined;
  const { kind, message } = sent.failure;
  const errors = classifyErrorText(message);
  if (errors.some((error) => error.kind === 'dry-run-unsupported')) return undefined;
  return kind === 'forbidden' || errors.some(isAdmissionError) ? message : undefined;
}

/** A namespace that changes all the time is not chased for ever. */
const MAX_DELETE_TRIES = 3;

/**
 * Asks for the deletion of exactly the namespace that was read, in exactly the state that was read. An
 * answered DELETE is not the end of the namespace: the wait decides that.
 */
async function requestDeletion(
  target: Target,
  api: KubernetesApi,
  signal: AbortSignal,
): Promise<Target> {
  const first = target.first as NamespaceFacts;
  let current = first;
  for (let attempt = 1; ; attempt++) {
    const sent = await api.send(deletionOf(current), { signal });
    // The answer may have been lost, the namespace changed or replaced, or (before 1.20) the 409 means
    // "being removed already". What is there now tells.
    const now = await readNamespace(api, target.name, signal);
    if (signal.aborted) return { ...target, first: current };
    if (!now.ok) throw cannot('get', `namespace "${target.name}"`, now.failure, api);
    const isSame = now.value?.uid === first.uid;
    // Gone or replaced: the follower, pinned to the old UID, says which.
    if (!isSame) return { ...target, first: current, wentAtOnce: true };
    current = now.value ?? current;
    if (current.deletionTimestamp !== undefined || sent.ok) return { ...target, first: current };
    if (sent.failure.kind !== 'conflict' || attempt === MAX_DELETE_TRIES) {
      return { ...target, first: current, refusal: sent.failure.message };
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
  return new ActionError(
    CODES[failure.kind] ?? 'kube-unreachable',
    `cannot ${verb} ${what} on ${api.target.server}: ${failure.message}`,
    { hint: hintFor(verb, failure.kind, api) },
  );
}

function hintFor(verb: string, kind: FailureKind, api: KubernetesApi): string {
  switch (kind) {
    case 'forbidden':
      return `Grant this identity "${verb}" on namespaces by a ClusterRole and a ClusterRoleBinding, with the rule { apiGroups: [""], resources: ["namespaces"], verbs: ["get", "list", "watch"] }; a Role inside the namespace is deleted together with it.`;
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
