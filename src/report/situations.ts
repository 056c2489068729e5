import type { Finding, Remedy } from '../model/finding.ts';
import { protectedBecause } from '../model/outcome.ts';
import type { NamespaceResult } from '../model/result.ts';
import type { Root } from './causes.ts';
import { isOpenOnly } from './sentences.ts';

/** A title, a predicate about the namespace, what a person can do, and a text of somebody else that ends the predicate. */
type Situation = [title: string, message: string, look?: Remedy | undefined, quote?: string];

/** Returns the cause of a namespace without a root cause, as a finding about the namespace itself. */
export function situationRoot(namespace: NamespaceResult): Root | undefined {
  const situation = situationOf(namespace);
  if (situation === undefined) return undefined;
  const [cause, message, look, quote = ''] = situation;
  const finding: Finding = {
    ...{ id: '', code: 'unexplained', scope: 'namespace', evidence: [], waitsFor: [], cause },
    subject: { apiVersion: 'v1', kind: 'Namespace', name: namespace.name },
    message: `${message}${quote}`,
    quote,
    remedies: look === undefined ? [] : [{ ...look, role: 'look' }],
  };
  return { namespace, finding, links: [finding], blockers: [], circle: [] };
}

function situationOf(namespace: NamespaceResult): Situation | undefined {
  const { outcome, verdict, name, refusal } = namespace;
  switch (outcome) {
    case 'not-terminating': {
      const command = `kubectl delete namespace ${name} --wait=false`;
      // The gate requested the deletion, and RBAC or admission refused it, or the namespace changed all the time.
      if (refusal !== undefined) {
        const text = 'Fix what refuses the deletion, or use another identity, and delete it again';
        return ['deletion refused', 'was not deleted: ', { text, command }, refusal];
      }
      const kept = protectedBecause(name);
      const text = 'Delete the namespace first, or set the input delete: then the gate deletes it';
      const check = { text: `Check the name: ${kept}, and the gate never deletes it` };
      const message = 'is not being deleted, so the gate does not wait';
      return ['deletion not requested', message, kept === undefined ? { text, command } : check];
    }
    case 'recreated':
      return [
        'created again',
        'was created again while it was being deleted, for example by a deploy that ran at the same time, or by a controller',
      ];
    case 'not-found': {
      if (verdict !== 'fail') return undefined;
      const text =
        'Check the name and the cluster. If a missing namespace is no error, set the input if-not-found to ok';
      return [
        'not there',
        'did not exist at the start: it was deleted before, its name is misspelt, or this is another cluster',
        { text },
      ];
    }
    case 'stuck':
    case 'progressing':
    case 'inconclusive':
    case 'would-hang':
      return withoutCause(namespace);
    default:
      return undefined;
  }
}

function withoutCause(namespace: NamespaceResult): Situation | undefined {
  const { diagnosis, name, outcome, timeline } = namespace;
  const quote = remainingContent(namespace);
  const reports = quote === '' ? '' : '. The namespace controller reports: ';
  const examine = {
    text: 'Run the gate again, or see what the namespace reports itself',
    command: `kubectl describe namespace ${name}`,
  };
  if (diagnosis === undefined) {
    const why = timeline.at(-1)?.event ?? 'there was no time';
    return ['not examined', `was not examined: ${why}${reports}`, examine, quote];
  }
  const { notInspected, rootCauses } = diagnosis;
  if (rootCauses.length > 0) return undefined;
  const [first] = notInspected;
  if (first === undefined) {
    return outcome === 'progressing'
      ? ['still being deleted', 'is still being deleted']
      : undefined;
  }
  if (isOpenOnly(diagnosis)) {
    const message = `may hang: it is not known ${first.what}: `;
    return ['an open question', message, undefined, first.reason];
  }
  const text =
    'Allow the identity of the gate to read the rest: add the permissions below to its role';
  const look = notInspected.some(({ grant }) => grant) ? { text } : examine;
  const message = `may be held by objects that could not be read${reports}`;
  return ['not everything could be read', message, look, quote];
}

/** Quotes the counts of the namespace controller, which may read more than the gate. */
function remainingContent({ conditions }: NamespaceResult): string {
  const counts = ['NamespaceContentRemaining', 'NamespaceFinalizersRemaining'];
  return conditions
    .filter(({ type, status }) => counts.includes(type) && status === 'True')
    .map(({ message }) => message)
    .join('; ');
}
