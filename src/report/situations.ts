import type { Finding, Remedy } from '../model/finding.ts';
import { protectedBecause } from '../model/outcome.ts';
import type { NamespaceResult } from '../model/result.ts';
import type { Root } from './causes.ts';
import { isOpenOnly } from './sentences.ts';

/** What is wrong with a namespace without a root cause. */
interface Situation {
  title: string;
  /** A predicate about the namespace; `quote` follows it. */
  message: string;
  quote?: string;
  /** What a person can do. */
  text?: string;
  command?: string;
}

/** Returns the cause of a namespace without a root cause, as a finding about the namespace itself. */
export function situationRoot(namespace: NamespaceResult): Root | undefined {
  const situation = situationOf(namespace);
  if (situation === undefined) return undefined;
  const { title: cause, message, quote = '', text, command } = situation;
  const remedy: Remedy | undefined =
    text === undefined ? undefined : { role: 'look', text, ...(command && { command }) };
  const finding: Finding = {
    ...{ id: '', code: 'unexplained', scope: 'namespace', evidence: [], waitsFor: [], cause },
    subject: { apiVersion: 'v1', kind: 'Namespace', name: namespace.name },
    message: `${message}${quote}`,
    quote,
    remedies: remedy === undefined ? [] : [remedy],
  };
  return { namespace, finding, links: [finding], blockers: [], circle: [] };
}

function situationOf(namespace: NamespaceResult): Situation | undefined {
  switch (namespace.outcome) {
    case 'not-terminating':
      return notTerminating(namespace);
    case 'recreated':
      return {
        title: 'created again',
        message:
          'was created again while it was being deleted, for example by a deploy that ran at the same time, or by a controller',
      };
    case 'not-found':
      if (namespace.verdict !== 'fail') return undefined;
      return {
        title: 'not there',
        message:
          'did not exist at the start: it was deleted before, its name is misspelt, or this is another cluster',
        text: 'Check the name and the cluster. If a missing namespace is no error, set the input if-not-found to ok',
      };
    case 'stuck':
    case 'progressing':
    case 'inconclusive':
    case 'would-hang':
      return unexplained(namespace);
    default:
      return undefined;
  }
}

function notTerminating({ name, refusal }: NamespaceResult): Situation {
  const command = `kubectl delete namespace ${name} --wait=false`;
  // The gate requested the deletion, and RBAC or admission refused it, or the namespace changed all the time.
  if (refusal !== undefined) {
    const text = 'Fix what refuses the deletion, or use another identity, and delete it again';
    return {
      title: 'deletion refused',
      message: 'was not deleted: ',
      quote: refusal,
      text,
      command,
    };
  }
  const message = 'is not being deleted, so the gate does not wait';
  const kept = protectedBecause(name);
  const fix =
    kept === undefined
      ? {
          text: 'Delete the namespace first, or set the input delete: then the gate deletes it',
          command,
        }
      : { text: `Check the name: ${kept}, and the gate never deletes it` };
  return { title: 'deletion not requested', message, ...fix };
}

function unexplained(namespace: NamespaceResult): Situation | undefined {
  const { diagnosis, name, outcome, timeline } = namespace;
  const quote = remainingContent(namespace);
  const reports = quote === '' ? '' : '. The namespace controller reports: ';
  const examine = {
    text: 'Run the gate again, or see what the namespace reports itself',
    command: `kubectl describe namespace ${name}`,
  };
  if (diagnosis === undefined) {
    const message = `was not examined: ${timeline.at(-1)?.event ?? 'there was no time'}${reports}`;
    return { title: 'not examined', message, quote, ...examine };
  }
  if (diagnosis.rootCauses.length > 0) return undefined;
  const [first] = diagnosis.notInspected;
  if (first === undefined) {
    const isMoving = outcome === 'progressing';
    return isMoving
      ? { title: 'still being deleted', message: 'is still being deleted' }
      : undefined;
  }
  if (isOpenOnly(diagnosis)) {
    const message = `may hang: it is not known ${first.what}: `;
    return { title: 'an open question', message, quote: first.reason };
  }
  return {
    title: 'not everything could be read',
    message: `may be held by objects that could not be read${reports}`,
    quote,
    ...(diagnosis.notInspected.some(({ grant }) => grant)
      ? {
          text: 'Allow the identity of the gate to read the rest: add the permissions below to its role',
        }
      : examine),
  };
}

/** Quotes the counts of the namespace controller, which may read more than the gate. */
function remainingContent({ conditions }: NamespaceResult): string {
  const counts = ['NamespaceContentRemaining', 'NamespaceFinalizersRemaining'];
  return conditions
    .filter(({ type, status }) => counts.includes(type) && status === 'True')
    .map(({ message }) => message)
    .join('; ');
}
