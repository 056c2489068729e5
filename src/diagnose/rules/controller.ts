import { KUBERNETES_FINALIZER } from '../../model/facts/metadata.ts';
import { itemsIn } from '../../model/read.ts';
import { guardsOf } from '../admission/guards.ts';
import { lastStep } from '../admission/judge.ts';
import { fixRemedy, kubectl, lookRemedy, withRole } from '../commands.ts';
import { countsOf, isContentRead, totalCount } from '../content.ts';
import type { Context } from '../context.ts';
import { namespaceSubject, type RuleResult } from '../results.ts';
import { refusedLastRequest } from './types.ts';

/** The Lease of kube-controller-manager, which also names its pods in findings. */
export const MANAGER_LEASE = { namespace: 'kube-system', name: 'kube-controller-manager' };
/** The time without a pass after which the controller counts as silent; a backlog alone may delay it by minutes. */
const SILENCE_MS = 90_000;

/** Judges kube-controller-manager by its Lease, which managed clusters hide; never assumes that it runs. */
export function controllerManager(context: Context) {
  const { namespace, name } = MANAGER_LEASE;
  const lease = itemsIn(context.now.cluster.leases).find(
    (one) => one.namespace === namespace && one.name === name,
  );
  const where = `Lease ${namespace}/${name}`;
  const unseen = `${where} could not be read; managed clusters hide it`;
  if (lease?.renewTime === undefined) return { state: 'unseen', evidence: unseen } as const;
  // A leader renews it every 2 s; after its duration any replica may take it (client-go).
  const { durationSeconds = 15, renewTime } = lease;
  const isFresh = context.nowMs - Date.parse(renewTime) <= 1_000 * durationSeconds;
  const evidence = `${where} was last renewed at ${renewTime}`;
  return { state: isFresh ? 'fresh' : 'stale', evidence } as const;
}

/** Finds that no controller processes the namespace. A stale Lease proves that kube-controller-manager does not run; silence only suggests it. */
export function namespaceControllerInactive(context: Context): RuleResult[] {
  const refused = isUnexplainedByContent(context) ? refusedLastRequest(context) : [];
  if (refused.length > 0 || !isUnprocessed(context)) return refused;
  const sinceMs = context.nowMs - Date.parse(context.now.namespace.deletionTimestamp ?? '');
  const isStale = controllerManager(context).state === 'stale';
  return isStale || sinceMs >= SILENCE_MS ? [unprocessedNamespace(context)] : [];
}

export function isUnexplainedByContent(context: Context): boolean {
  const { forecast, namespace } = context.now;
  const isWaiting = namespace.specFinalizers.includes(KUBERNETES_FINALIZER);
  const isEmpty = isContentRead(context.now) && totalCount(context.now) === 0;
  return forecast === undefined && (isUnprocessed(context) || (isWaiting && isEmpty));
}

/** Reports whether the namespace has no conditions, and no object was marked for deletion after it. */
function isUnprocessed(context: Context): boolean {
  const counts = countsOf(context.now).filter(({ total }) => total > 0);
  const isMarked = counts.length > 0 && counts.every(({ queued }) => queued === 0);
  const isSilent = !context.conditions.present || controllerManager(context).state === 'stale';
  const isWaiting = context.now.namespace.specFinalizers.includes(KUBERNETES_FINALIZER);
  return isWaiting && !isMarked && isSilent;
}

/** Clusters made with kubeadm, kind among them, run it as pods with this label. */
const LOG = lookRemedy(
  'On clusters that run kube-controller-manager as a pod, read its log',
  kubectl('logs', '-n', 'kube-system', '-l', 'component=kube-controller-manager', '--tail=100'),
);

/** Returns the finding that the namespace was not processed. It also ends chains to finalizers that only kube-controller-manager removes. */
export function unprocessedNamespace(context: Context): RuleResult {
  const { state, evidence } = controllerManager(context);
  const { name, deletionTimestamp: since } = context.now.namespace;
  const bare = `terminating since ${since}, without any condition`;
  const runs = state === 'fresh' ? ', although kube-controller-manager runs' : '';
  const start =
    'Start kube-controller-manager again if it is not running: it then deletes all namespaces that wait';
  return {
    code: 'namespace-controller-inactive',
    subject: namespaceSubject(name),
    message:
      state === 'stale'
        ? 'is not being processed: kube-controller-manager, which deletes the content of namespaces and removes the finalizers of Kubernetes itself, is not running'
        : `has not been processed${runs}: the namespace controller has not written a condition yet`,
    evidence: context.conditions.present ? [evidence] : [bare, evidence],
    ...{ since, blocksNamespace: true },
    remedies: [...(state === 'fresh' ? [] : [fixRemedy(start)]), LOG],
  };
}

/** Returns the finding where everything was read and no rule explains the hang: it lists what was inspected. */
export function unexplainedHang(context: Context): RuleResult {
  const { now } = context;
  const { conditions, finalizers, name, specFinalizers } = now.namespace;
  const asked = guardsOf(context, lastStep(context).request);
  const again =
    'Give it 5 minutes: after pods with a long grace period, Kubernetes looks at a namespace again only then';
  return {
    code: 'unexplained',
    subject: namespaceSubject(name),
    message: 'is still there, and nothing that could be read explains why',
    evidence: [
      `inspected ${now.content.length} resource types: ${totalCount(now)} objects, none terminating with a finalizer`,
      `finalizers of the namespace: ${[...finalizers, ...specFinalizers].join(', ')}`,
      ...asked.map(({ text }) => `admission asks ${text} before the namespace can end`),
      ...conditions.map(({ type, status, message }) => `${type}=${status}: ${message}`),
    ],
    scope: 'namespace',
    remedies: [LOG, withRole('or', { text: again })],
    blocksNamespace: true,
  };
}
