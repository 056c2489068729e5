import {
  arrayAt,
  isObject,
  type Json,
  type JsonObject,
  numberAt,
  recordAt,
  stringAt,
  valueAt,
} from '../../base/json.ts';
import { shortQuote } from '../../base/text.ts';
import {
  type Condition,
  conditionsOf,
  INSTALLED,
  identity,
  lastWrite,
  objectFacts,
  ownerReferences,
  POD_TYPE,
  TIMES,
} from './metadata.ts';
import { templateFacts } from './programs.ts';
import { at, PLACED, shape } from './shape.ts';

type Run = { name: string; crashedAt?: string | undefined; restarts?: number };

const podState = shape({
  phase: at.textIfAny('status.phase'),
  ready: (pod) =>
    conditionsOf(pod).some(({ type, status }) => type === 'Ready' && status === 'True'),
  nodeName: at.textIfAny('spec.nodeName'),
  deletionGracePeriodSeconds: at.number('metadata.deletionGracePeriodSeconds'),
  graceSeconds: at.number('spec.terminationGracePeriodSeconds'),
  /** They have logs; of each its last crash. */
  containers: (pod): Run[] | undefined =>
    arrayAt(pod, 'spec', 'containers').map((container) => {
      const name = stringAt(container, 'name') ?? '';
      const statuses = arrayAt(pod, 'status', 'containerStatuses');
      const status = statuses.find((one) => stringAt(one, 'name') === name);
      const ended = valueAt(status, 'lastState', 'terminated');
      if (!isObject(ended) || numberAt(ended, 'exitCode') === 0) return { name };
      const restarts = numberAt(status, 'restartCount') ?? 0;
      return { name, crashedAt: stringAt(ended, 'finishedAt'), restarts };
    }),
  /** PersistentVolumeClaims that its volumes name, also of generic ephemeral volumes (component-helpers, storage/ephemeral). */
  claims: (pod) =>
    arrayAt(pod, 'spec', 'volumes').flatMap((volume) =>
      isObject(valueAt(volume, 'ephemeral'))
        ? `${stringAt(pod, 'metadata', 'name')}-${stringAt(volume, 'name')}`
        : (stringAt(volume, 'persistentVolumeClaim', 'claimName') ?? []),
    ),
  /** Whether no container runs (any more). The kubelet then releases network and devices, and last the volumes. */
  hasStopped: (pod): boolean | undefined => {
    const lists = ['containerStatuses', 'initContainerStatuses', 'ephemeralContainerStatuses'];
    const all = lists.flatMap((list) => arrayAt(pod, 'status', list));
    return all.length === 0
      ? undefined
      : !all.some((one) => isObject(valueAt(one, 'state', 'running')));
  },
  /** ResourceClaims, by which it has devices. */
  devices: (pod): string[] | undefined => {
    const made = arrayAt(pod, 'status', 'resourceClaimStatuses');
    return arrayAt(pod, 'spec', 'resourceClaims').flatMap((claim) => {
      const name = stringAt(claim, 'name');
      const status = made.find((one) => stringAt(one, 'name') === name);
      const given = stringAt(claim, 'resourceClaimName');
      return given ?? stringAt(status, 'resourceClaimName') ?? [];
    });
  },
  /** CSI drivers that its own volumes name. */
  drivers: (pod): string[] | undefined =>
    arrayAt(pod, 'spec', 'volumes').flatMap((volume) => stringAt(volume, 'csi', 'driver') ?? []),
  troubles: (pod) => [
    ...falseConditionTexts(pod, 'PodScheduled').map((text) => text.replace(/ preemption: .*/s, '')),
    ...['initContainerStatuses', 'containerStatuses'].flatMap((list) =>
      arrayAt(pod, 'status', list).flatMap(containerTroubles),
    ),
    ...(stringAt(pod, 'status', 'phase') === 'Failed'
      ? stateTexts('ended', valueAt(pod, 'status'))
      : []),
    ...falseConditionTexts(pod, 'Ready').map((words) => NOT_READY + words),
  ],
});

/** The beginning of the text of the condition Ready, which says that containers are not ready, and not why. */
export const NOT_READY = 'not ready: ';

export type PodFacts = ReturnType<typeof podFacts>;
export function podFacts(pod: JsonObject) {
  const facts = objectFacts(pod, POD_TYPE);
  return { ...facts, ...templateFacts(pod, facts.namespace, facts.name), ...podState(pod) };
}

/** Reports whether the containers of a pod have ended; an evicted pod stays until somebody deletes it. */
export function hasPodEnded({ phase = '' }: Pick<PodFacts, 'phase'>): boolean {
  return phase === 'Succeeded' || phase === 'Failed';
}

/** The time after its grace period in which the kubelet should confirm the end of a pod. */
const CONFIRMATION_MS = 5_000;

/** Reports whether the kubelet still waits for the containers; with grace 0, it has confirmed that they ended. */
export function isInGracePeriod(pod: PodFacts, nowMs: number): boolean {
  const { deletionGracePeriodSeconds = 0, deletionTimestamp = '', nodeName } = pod;
  const isShuttingDown = nodeName !== undefined && deletionGracePeriodSeconds > 0;
  return isShuttingDown && Date.parse(deletionTimestamp) + CONFIRMATION_MS > nowMs;
}

export function isOverdue(pod: PodFacts, nowMs: number): boolean {
  const isConfirmed = pod.deletionGracePeriodSeconds === 0;
  return pod.nodeName !== undefined && !isConfirmed && !isInGracePeriod(pod, nowMs);
}

function falseConditionTexts(pod: Json | undefined, condition: string): string[] {
  return conditionsOf(pod)
    .filter(({ type, status }) => type === condition && status === 'False')
    .map(({ reason, message }) => [reason, message].filter(Boolean).join(': '))
    .filter(Boolean);
}

/** Returns why a container does not run, the cause first: of a crash loop that is how the container ended the last time. */
function containerTroubles(container: Json): string[] {
  const ended = valueAt(container, 'lastState', 'terminated');
  const waiting = valueAt(container, 'state', 'waiting');
  const memory = stringAt(ended, 'reason') === OUT_OF_MEMORY ? ' for lack of memory' : '';
  const waits = stateTexts('waiting', waiting);
  const ends = stateTexts(`ended before${memory}`, ended);
  const isLooping = stringAt(waiting, 'reason') === 'CrashLoopBackOff';
  return isLooping ? [...ends, ...waits] : [...waits, ...ends];
}

/** The reason of a container that exceeded its memory limit (kubelet, and the runtimes). */
export const OUT_OF_MEMORY = 'OOMKilled';

function stateTexts(state: string, detail: Json | undefined): string[] {
  const code = numberAt(detail, 'exitCode');
  const said = [stringAt(detail, 'reason'), stringAt(detail, 'message')?.trim()];
  const words = said.filter(Boolean).join(': ');
  if (code === 0 || /^(?:|ContainerCreating|PodInitializing)$/.test(words)) return [];
  return [`${state}: ${shortQuote(words)}${code === undefined ? '' : `, exit code ${code}`}`];
}

const workloadState = shape({
  ...PLACED,
  ...TIMES,
  ...INSTALLED,
  conditions: conditionsOf,
  /** The object that controls this workload, as a Deployment controls its ReplicaSet. */
  owner: (object) => ownerReferences(object).find(({ controller }) => controller),
  /** The field manager that last set `spec.replicas`. */
  scaledBy: (object) => lastWrite(object, 'f:spec', 'f:replicas'),
  requires: (object): PlainRef[] | undefined => requiredBy(valueAt(object, 'spec')),
});

/** A workload. `wanted` and `ready` count replicas, nodes or runs; a suspended CronJob or Job wants none. */
export type WorkloadFacts = ReturnType<ReturnType<typeof workloadFacts>>;

export function workloadFacts(apiVersion: string, kind: string) {
  return (object: JsonObject) => {
    const path = kind === 'CronJob' ? ['jobTemplate', 'spec', 'template'] : ['template'];
    const template = valueAt(object, 'spec', ...path);
    const state = { ...workloadState(object), uid: identity(object).uid };
    const [wanted, ready] = replicasOf(object, kind, state.conditions);
    const nodeSelector = recordAt(template, 'spec', 'nodeSelector');
    return {
      ...templateFacts(template, state.namespace, state.name),
      ...{ ...state, apiVersion, kind, wanted, ready, nodeSelector },
    };
  };
}

/** A Secret or ConfigMap in the namespace of a workload. */
type PlainRef = { kind: string; name: string };

/** Returns the Secrets and ConfigMaps without which the kubelet starts no container: volumes, and variables of all containers. */
function requiredBy(part: Json | undefined): PlainRef[] {
  return Object.entries(part ?? {}).flatMap(([field, value]: [string, Json | undefined]) => {
    const kind = /^secret/.test(field) ? 'Secret' : /^configMap/.test(field) && 'ConfigMap';
    const name = stringAt(value, 'secretName') ?? stringAt(value, 'name');
    if (!kind || !name) return typeof value === 'object' ? requiredBy(value) : [];
    return valueAt(value, 'optional') === true ? [] : [{ kind, name }];
  });
}

function replicasOf(object: JsonObject, kind: string, conditions: Condition[]): [number, number] {
  const isOver = conditions.some(
    ({ type, status }) => /^(Complete|Failed)$/.test(type) && status === 'True',
  );
  const isOff = valueAt(object, 'spec', 'suspend') === true || (kind === 'Job' && isOver);
  const { spec, status } = object;
  const one = isOff ? 0 : 1;
  // A CronJob between two runs counts as ready.
  if (kind === 'CronJob') return [one, one];
  const [wanted, ready] =
    kind === 'DaemonSet'
      ? [numberAt(status, 'desiredNumberScheduled') ?? 0, numberAt(status, 'numberReady')]
      : kind === 'Job'
        ? [numberAt(spec, 'parallelism'), numberAt(status, 'ready')]
        : [numberAt(spec, 'replicas'), numberAt(status, 'readyReplicas')];
  return [isOff ? 0 : (wanted ?? 1), ready ?? 0];
}
