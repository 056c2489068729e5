import type { Diagnosis, Finding, Remedy } from '../model/finding.ts';
import { protectedBecause } from '../model/outcome.ts';
import type { NamespaceResult } from '../model/result.ts';
import type { Root } from './causes.ts';

/** A title, a predicate about the namespace, what a person can do, and a text of somebody else that ends the predicate. */
type Situation = [title: string, message: string, look?: Remedy | undefined, quote?: string];

/** The cause of a namespace without a root cause, as a finding about the namespace itself. */
export function situationRoot(namespace: NamespaceResult): Root[] {
  const situation = situationOf(namespace);
  if (situation === undefined) return [];
  const [cause, message, look, quote = ''] = situation;
  const finding: Finding = {
    ...{ id: '', code: 'unexplained', scope: 'namespace', evidence: [], waitsFor: [], cause },
    subject: { apiVersion: 'v1', kind: 'Namespace', name: namespace.name },
    message: `${message}${quote}`,
    quote,
    remedies: look === undefined ? [] : [{ ...look, role: 'look' }],
  };
  return [{ namespace, finding, links: [finding], blockers: [], circle: [] }];
}

function situationOf(namespace: NamespaceResult): Situation | undefined {
  const { outcome, verdict, name, refusal } = namespace;
  if (outcome === 'not-terminating') {
    const command = `kubectl delete namespace ${name} --wait=false`;
    if (refusal !== undefined) {
      const isGuarded = /webhook "|AdmissionPolicy '/.test(refusal);
      const [text, what] = isGuarded
        ? ['See how to let it pass', `npx namespace-teardown-gate forecast ${name}`]
        : ['Resolve that, or use another identity', command];
      return ['deletion failed', 'was not deleted: ', { text, command: what }, refusal];
    }
    const text = 'Delete the namespace first, or set the input delete';
    const kept = protectedBecause(name);
    const look = kept
      ? { text: `Check the name: ${kept}, and the gate never deletes it` }
      : { text, command };
    return ['deletion not requested', 'is not being deleted, so the gate does not wait', look];
  }
  if (outcome === 'recreated')
    return ['created again', 'was created again meanwhile, for example by a deploy'];
  if (outcome === 'not-found' && verdict === 'fail') {
    const why = 'it was deleted before, its name is misspelt, or this is another cluster';
    const text = 'Check the name and the cluster, or set the input if-not-found to ok';
    return ['not there', `did not exist at the start: ${why}`, { text }];
  }
  const isOpen = ['stuck', 'progressing', 'inconclusive', 'would-hang'].includes(outcome);
  return isOpen ? withoutCause(namespace) : undefined;
}

function withoutCause(namespace: NamespaceResult): Situation | undefined {
  const { conditions, diagnosis, name, outcome, timeline } = namespace;
  const examine = {
    text: 'Run the gate again, or see what the namespace reports itself',
    command: `kubectl describe namespace ${name}`,
  };
  // The namespace controller may read more than the gate.
  const quote = conditions
    .filter(({ type, status }) => /^Namespace\w+Remaining$/.test(type) && status === 'True')
    .map(({ message }) => message)
    .join('; ');
  const reports = quote === '' ? '' : '. The namespace controller reports: ';
  if (diagnosis === undefined) {
    const why = timeline.at(-1)?.event ?? 'there was no time';
    return ['not examined', `was not examined: ${why}${reports}`, examine, quote];
  }
  const { notInspected, rootCauses } = diagnosis;
  const [first] = notInspected;
  if (rootCauses.length > 0) return undefined;
  if (first === undefined) {
    const moves = 'is still being deleted';
    return outcome === 'progressing' ? ['still being deleted', moves] : undefined;
  }
  if (isOpenOnly(diagnosis)) {
    const open = `may hang: it is not known ${first.what}: `;
    const text = 'Look at what the question names; only the deletion itself answers it for certain';
    return ['an open question', open, { text }, first.reason];
  }
  const text =
    'Allow the gate to read the rest: grant the permissions below by a ClusterRole (a Role inside the namespace is deleted with it)';
  const look = notInspected.some(({ grant }) => grant) ? { text } : examine;
  const message = `may be held by objects that could not be read${reports}`;
  return ['not everything could be read', message, look, quote];
}

/** Everything was read, and only the deletion can show the rest. */
export function isOpenOnly({ notInspected }: Pick<Diagnosis, 'notInspected'>): boolean {
  return notInspected.every(({ what }) => what.startsWith('whether '));
}
