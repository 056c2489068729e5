import { shellQuote } from '../../base/text.ts';
import { FINALIZE, KUBERNETES_FINALIZER } from '../../model/facts.ts';
import type { Remedy } from '../../model/finding.ts';
import type { NamespaceFacts } from '../../model/snapshot.ts';
import { kubectl, look, lookAt, role } from '../commands.ts';
import {
  type Context,
  countsOf,
  isAllRead,
  listed,
  listNames,
  namespaceSubject,
  type RuleResult,
  totalOf,
} from '../context.ts';
import { askedAbout } from '../guards.ts';
import { refusedEnd } from './types.ts';

const LEASE = { namespace: 'kube-system', name: 'kube-controller-manager' };
/** A leader renews its Lease every 2 s; after its duration anybody may take it (client-go, leader election). */
const LEASE_SECONDS = 15;
/** A backlog alone delays the first pass by minutes on a busy cluster; without a stale Lease, wait. */
const SILENCE_MS = 90_000;

interface ControllerManager {
  /** `unseen`: managed clusters hide its Lease. */
  state: 'fresh' | 'stale' | 'unseen';
  evidence: string;
}

/** Judged by its Lease and by what it did, never assumed to run. */
export function controllerManager({ now, nowMs }: Context): ControllerManager {
  const lease = listed(now.cluster.leases).find(
    ({ namespace, name }) => namespace === LEASE.namespace && name === LEASE.name,
  );
  const ageMs = nowMs - Date.parse(lease?.renewTime ?? '');
  const where = `Lease ${LEASE.namespace}/${LEASE.name}`;
  if (Number.isNaN(ageMs)) {
    const wrote = now.namespace.statusWrittenAt;
    const did = wrote === undefined ? '' : `; it wrote the namespace's status at ${wrote}`;
    return {
      state: 'unseen',
      evidence: `${where} could not be read; managed clusters hide it${did}`,
    };
  }
  return {
    state: ageMs > 1_000 * (lease?.durationSeconds ?? LEASE_SECONDS) ? 'stale' : 'fresh',
    evidence: `${where} was last renewed at ${lease?.renewTime}`,
  };
}

/**
 * Nobody processes the namespace: no conditions were ever written, or nothing goes on although its Lease is
 * stale. A stale Lease proves that kube-controller-manager is not there; silence alone only suggests it.
 */
export function namespaceControllerInactive(context: Context): RuleResult[] {
  const refused = isLeftAlone(context) ? refusedEnd(context) : [];
  if (refused.length > 0) return refused;
  if (!isUnprocessed(context)) return [];
  const { namespace } = context.now;
  const sinceMs = context.nowMs - Date.parse(namespace.deletionTimestamp ?? '');
  const isStale = controllerManager(context).state === 'stale';
  return isStale || sinceMs >= SILENCE_MS ? [unprocessed(context)] : [];
}

export function askedAboutEnd(context: Context) {
  const { namespace } = context.now;
  return askedAbout(context, 'UPDATE', FINALIZE, { ...namespace, namespace: '' }) ?? [];
}

/** Nothing of its content explains why it is still there. */
export function isLeftAlone(context: Context): boolean {
  const { now } = context;
  if (now.forecast !== undefined) return false;
  const isEmpty = isAllRead(now) && totalOf(now) === 0;
  return isUnprocessed(context) || (isWaitingForController(context) && isEmpty);
}

/** Also where it is too early to call that silence, and there is nothing else to say. */
export function unprocessed(context: Context): RuleResult {
  return {
    ...inactiveControllerManager(context, controllerManager(context)),
    blocksNamespace: 'only the namespace controller deletes its content and then the namespace',
  };
}

/** The finding as such: also the end of chains to what only kube-controller-manager removes. */
export function inactiveControllerManager(
  context: Context,
  { state, evidence }: ControllerManager,
): RuleResult {
  const { namespace } = context.now;
  const seen = hasQueue(context) ? 'nothing in it is marked for deletion' : 'nothing is left in it';
  return {
    code: 'namespace-controller-inactive',
    subject: namespaceSubject(namespace.name),
    message:
      state === 'stale'
        ? 'is not being processed: kube-controller-manager, which deletes the content of namespaces and removes the finalizers of Kubernetes itself, is not running'
        : `has not been processed${state === 'fresh' ? ', although kube-controller-manager runs' : ''}: the namespace controller has not written a condition yet`,
    evidence: [
      ...(context.conditions.present
        ? []
        : [
            `terminating since ${namespace.deletionTimestamp}, without any condition${isAllRead(context.now) ? `, and ${seen}` : ''}`,
          ]),
      evidence,
    ],
    since: namespace.deletionTimestamp,
    scope: 'cluster',
    remedies: [
      ...(state === 'fresh'
        ? []
        : [
            role('now', {
              text: `${state === 'stale' ? 'Start kube-controller-manager again' : 'If kube-controller-manager is not running, start it again'}: it then deletes all namespaces that wait`,
            }),
          ]),
      lookAt('See whether kube-controller-manager renews its Lease', { kind: 'Lease', ...LEASE }),
      look(
        'On clusters that run kube-controller-manager as a pod, read its log',
        controllerLog(100),
      ),
      ...(state === 'stale'
        ? []
        : [
            lookAgain(
              namespace,
              'If kube-controller-manager runs, it may have a backlog of minutes; a harmless write makes it process this namespace within 5 s',
            ),
          ]),
    ],
  };
}

function isWaitingForController({ now }: Context): boolean {
  return now.namespace.specFinalizers.includes(KUBERNETES_FINALIZER);
}

function hasQueue({ now }: Context): boolean {
  return countsOf(now).some(({ queued }) => queued > 0);
}

/** No conditions, and no object but what was asked to go by somebody before. */
export function isUnprocessed(context: Context): boolean {
  if (!isWaitingForController(context)) return false;
  if (totalOf(context.now) > 0 && !hasQueue(context)) return false;
  return !context.conditions.present || controllerManager(context).state === 'stale';
}

/** Clusters made with kubeadm, kind among them, run it as pods with this label. */
function controllerLog(lines: number): string {
  const label = 'component=kube-controller-manager';
  return kubectl('logs', '-n', 'kube-system', '-l', label, `--tail=${lines}`);
}

/** Any write to the Namespace puts it back into the controller's queue (namespace_controller.go). */
function lookAgain(namespace: Pick<NamespaceFacts, 'name'>, text: string): Remedy {
  const annotate = kubectl('annotate', 'namespace', namespace.name, '--overwrite');
  // A value of its own each time: a write that changes nothing is not a write.
  const command = `${annotate} "namespace-teardown-gate/look-again=$(date +%s)"`;
  return role('or', { text, command });
}

/** Everything could be read and no rule explains the hang: say what was looked at, and guess nothing. */
export function unexplained(context: Context): RuleResult {
  const { now } = context;
  const asked = askedAboutEnd(context);
  return {
    code: 'unexplained',
    subject: namespaceSubject(now.namespace.name),
    message: `is still there, and nothing that could be read explains why${asked.length === 0 ? '' : `, unless ${listNames(asked.map(({ text }) => text))} refuses the last step of its deletion`}`,
    evidence: [
      `inspected ${now.content.length} resource types: ${totalOf(now)} objects, none terminating with a finalizer`,
      `metadata.finalizers: ${now.namespace.finalizers.join(', ') || 'none'}; spec.finalizers: ${now.namespace.specFinalizers.join(', ') || 'none'}`,
      now.discovery.ok && now.discovery.value.failedGroups.length === 0
        ? 'every API group could be discovered'
        : 'not every API group could be discovered',
      ...asked.map(({ text }) => `admission asks ${text} before the namespace can end`),
      ...now.namespace.conditions.map(
        (condition) => `${condition.type}=${condition.status}: ${condition.message}`,
      ),
    ],
    scope: 'namespace',
    remedies: [
      lookAgain(
        now.namespace,
        'Make the namespace controller try again: by itself it retries within 60 s; after this harmless write, within 5 s',
      ),
      look(
        'See what kube-controller-manager says about the namespace',
        `${controllerLog(-1)} | grep -F ${shellQuote(now.namespace.name)} || true`,
      ),
    ],
    blocksNamespace: 'it is still there',
  };
}
