import type { Remedy } from '../../model/finding.ts';
import type { NodeFacts, ObjectFacts, PodFacts } from '../../model/snapshot.ts';
import { kubectl, named } from './commands.ts';
import { removeFinalizerRemedies } from './object.ts';

type PodName = Pick<PodFacts, 'namespace' | 'name'>;

/** More would not be read; the rest follows the same command. */
const MAX_NAMES = 10;

const FORCE_RISK =
  'the object goes although containers of the pod may still run and hold their volumes';

/** The grace period still runs. */
export function podGraceRemedies(input: {
  pod: Pick<PodFacts, 'namespace' | 'name' | 'deletionTimestamp' | 'deletionGracePeriodSeconds'>;
}): Remedy[] {
  const { pod } = input;
  const seconds = pod.deletionGracePeriodSeconds;
  return [
    {
      text: `Give it more time: a timeout above the grace period${seconds === undefined ? '' : ` of ${seconds} s`}`,
    },
    {
      role: 'next',
      text: 'Let the container end on SIGTERM, or lower terminationGracePeriodSeconds of the pod',
    },
    {
      role: 'or',
      text: 'Shorten the grace period of this pod now',
      command: kubectl(
        'delete',
        ...named('pod', pod.name),
        '-n',
        pod.namespace,
        '--grace-period=1',
        '--wait=false',
      ),
      risk: 'its containers are killed before they have finished shutting down',
    },
  ];
}

/** The node that would have to confirm is not ready or gone. */
export function nodeUnavailableRemedies(input: {
  node: Pick<NodeFacts, 'name' | 'exists'>;
  pods: readonly PodName[];
}): Remedy[] {
  const { node, pods } = input;
  if (!node.exists) {
    return [
      {
        text: 'Wait: the pod garbage collector removes pods of a node that no longer exists within about a minute (not those with finalizers)',
      },
      forceDelete(pods, 'If they stay, delete them without the confirmation of a kubelet'),
    ];
  }
  return [
    {
      text: 'Bring the node back: start its machine or its kubelet, which then confirms by itself',
      command: kubectl('describe', ...named('node', node.name)),
    },
    {
      role: 'or',
      text: 'If the machine is gone for good, delete its Node object; the pod garbage collector then removes its pods within about a minute',
      command: kubectl('delete', ...named('node', node.name)),
      risk: 'if the machine does run, its pods run on unseen',
    },
    {
      role: 'or',
      text: 'If the machine is off but will return, mark it as out of service; its pods and volume attachments are then removed',
      command: kubectl(
        'taint',
        'nodes',
        node.name,
        'node.kubernetes.io/out-of-service=nodeshutdown:NoExecute',
      ),
      risk: 'if the machine does run, two nodes may write to one volume; take the taint off again afterwards',
    },
    forceDelete(pods, 'Delete the pods without the confirmation of a kubelet'),
  ];
}

/**
 * Overdue on a ready node. The kubelet lets a pod go when no container may run any more, its status is
 * reported, its volumes are unmounted and its cgroup is gone (kubernetes pkg/kubelet/kubelet_pods.go).
 */
export function podNotConfirmedRemedies(input: { pod: PodName; nodeName: string }): Remedy[] {
  const { pod, nodeName } = input;
  return [
    {
      role: 'look',
      text: `See what the kubelet of node ${nodeName} waits for: a container, a volume to unmount, or a cgroup`,
      command: kubectl('describe', ...named('pod', pod.name), '-n', pod.namespace),
    },
    {
      text: `Restart the container runtime or the kubelet on node ${nodeName} (with containerd: systemctl restart containerd kubelet); its other pods go on running`,
    },
    forceDelete([pod], 'Delete the pod without the confirmation of the kubelet'),
  ];
}

/** A claim that a scheduled pod names. */
export function volumeInUseRemedies(input: {
  claim: Pick<ObjectFacts, 'kind' | 'namespace' | 'name' | 'uid' | 'finalizers'>;
  pods: readonly Pick<PodFacts, 'namespace' | 'name' | 'deletionTimestamp'>[];
}): Remedy[] {
  const { claim, pods } = input;
  const finalizer = 'kubernetes.io/pvc-protection';
  const staying = pods.filter((pod) => pod.deletionTimestamp === undefined);
  const names = (list: readonly PodName[]) => list.slice(0, MAX_NAMES).map(({ name }) => name);
  const free: Remedy =
    staying.length > 0
      ? {
          text: 'Delete the pods that use the claim; finished pods count too. The claim then goes by itself',
          command: kubectl('delete', ...named('pod', ...names(staying)), '-n', claim.namespace),
        }
      : {
          text: `The claim goes by itself when ${pods.length === 1 ? 'the pod that uses it has' : 'the pods that use it have'} ended: see what holds ${names(pods).join(', ')}`,
        };
  const index = claim.finalizers.indexOf(finalizer);
  if (index < 0) return [free];
  const type = { group: '', version: 'v1', resource: 'persistentvolumeclaims' };
  return [free, ...removeFinalizerRemedies({ object: claim, type, finalizer, index, count: 1 })];
}

function forceDelete(pods: readonly PodName[], text: string): Remedy {
  const names = pods.slice(0, MAX_NAMES).map(({ name }) => name);
  const more = pods.length > names.length ? ` (the first ${names.length} of ${pods.length})` : '';
  return {
    role: 'or',
    text: text + more,
    command: kubectl(
      'delete',
      ...named('pod', ...names),
      '-n',
      pods[0]?.namespace ?? '',
      '--grace-period=0',
      '--force',
    ),
    risk: FORCE_RISK,
  };
}
