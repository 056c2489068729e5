import { shellQuote } from '../../base/text.ts';
import type { Remedy } from '../../model/finding.ts';
import type { NamespaceFacts } from '../../model/snapshot.ts';
import { lookUpFinalizer } from '../catalogue.ts';
import { kubectl, patchCommand, removalPatch } from './commands.ts';
import { knownRemedies, leakText } from './object.ts';

const NAMESPACE_KIND = { kind: 'Namespace', group: '' };

/** Clusters made with kubeadm, kind among them, run it as pods with this label. */
function controllerLog(lines: number): string {
  const label = 'component=kube-controller-manager';
  return kubectl('logs', '-n', 'kube-system', '-l', label, `--tail=${lines}`);
}

/**
 * An entry of the namespace's own `metadata.finalizers`: an ordinary finalizer, so an ordinary patch.
 * /finalize would do it too, and would drop whatever its body leaves out.
 */
export function namespaceFinalizerRemedies(input: {
  namespace: Pick<NamespaceFacts, 'name' | 'uid'>;
  finalizer: string;
  index: number;
}): Remedy[] {
  const { namespace, finalizer, index } = input;
  const known = lookUpFinalizer(finalizer, NAMESPACE_KIND);
  return [
    ...(known === undefined ? [bringBack(finalizer)] : knownRemedies(known)),
    {
      role: 'or',
      text: 'Remove this one entry from metadata.finalizers of the namespace',
      command: patchCommand(
        ['namespace', namespace.name],
        removalPatch({ uid: namespace.uid, finalizer, index }),
      ),
      risk: leakText(known),
    },
  ];
}

/**
 * An entry of `spec.finalizers` besides `kubernetes`. Writes to the namespace itself keep the stored
 * list without an error; only PUT /finalize changes it (kubernetes
 * pkg/registry/core/namespace/strategy.go). The body carries uid and resourceVersion as just read,
 * which the server takes as preconditions.
 */
export function namespaceSpecFinalizerRemedies(input: {
  namespace: Pick<NamespaceFacts, 'name' | 'uid'>;
  finalizer: string;
}): Remedy[] {
  const { namespace, finalizer } = input;
  const known = lookUpFinalizer(finalizer, NAMESPACE_KIND);
  return [
    ...(known === undefined ? [bringBack(finalizer)] : knownRemedies(known)),
    {
      role: 'or',
      text: 'Remove this one entry; only PUT /finalize can change spec.finalizers',
      command: [
        kubectl('get', 'namespace', namespace.name, '-o', 'json'),
        `jq ${shellQuote(removeSpecFinalizer(namespace.uid, finalizer))}`,
        kubectl('replace', '--raw', `/api/v1/namespaces/${namespace.name}/finalize`, '-f', '-'),
      ].join(' | '),
      risk: leakText(known),
    },
  ];
}

function bringBack(finalizer: string): Remedy {
  return { text: `Bring back the controller that set ${finalizer}: it removes the entry` };
}

/** A namespace that was made again under the same name must not be touched: jq then prints nothing. */
function removeSpecFinalizer(uid: string, finalizer: string): string {
  const removal = `del(.spec.finalizers[] | select(. == ${JSON.stringify(finalizer)}))`;
  return `if .metadata.uid == ${JSON.stringify(uid)} then ${removal} else error("not this namespace") end`;
}

/** kube-controller-manager has not touched the namespace. */
export function namespaceControllerInactiveRemedies(input: {
  namespace: Pick<NamespaceFacts, 'name'>;
}): Remedy[] {
  return [
    {
      role: 'look',
      text: 'See whether kube-controller-manager renews its Lease; if not, start it: it finishes all namespaces that wait',
      command: kubectl(
        'get',
        'lease',
        'kube-controller-manager',
        '-n',
        'kube-system',
        '-o',
        'yaml',
      ),
    },
    {
      role: 'look',
      text: 'On clusters that run it as a pod, see its log',
      command: controllerLog(100),
    },
    lookAgainRemedy(
      input.namespace,
      'If it runs, it may have a backlog of minutes; a harmless write makes it look at this namespace within 5 s',
    ),
  ];
}

/** What holds the namespace is not known. */
export function unexplainedRemedies(input: { namespace: Pick<NamespaceFacts, 'name'> }): Remedy[] {
  const { namespace } = input;
  return [
    lookAgainRemedy(
      namespace,
      'Make the namespace controller look again; it retries at most every 60 s, and this harmless write shortens that to 5 s',
    ),
    {
      role: 'look',
      text: 'See what kube-controller-manager says about the namespace',
      command: `${controllerLog(-1)} | grep -F ${shellQuote(namespace.name)}`,
    },
  ];
}

/** Any write to the Namespace puts it back into the controller's queue (namespace_controller.go). */
export function lookAgainRemedy(namespace: Pick<NamespaceFacts, 'name'>, text: string): Remedy {
  const annotate = kubectl('annotate', 'namespace', namespace.name, '--overwrite');
  // A value of its own each time: a write that changes nothing is not a write.
  return { text, command: `${annotate} "namespace-teardown-gate/look-again=$(date +%s)"` };
}
