import type { Finding } from '../model/finding.ts';
import type { Chain } from './chains.ts';
import { findingSubject, isSameSubject } from './subjects.ts';
import { capitalized, said, type Words } from './words.ts';

/** Longer chains are told by their two ends; the table of the chain has all links. */
const MAX_LINKS_TOLD = 4;

/** What a finding says, as a clause that follows its subject. */
export function messageWords(finding: Finding): Words {
  return quoted(finding.message, finding);
}

/** A finding on its own: "Widget db is held by …". */
export function findingSentence(finding: Finding, home: string): Words {
  return clause(findingSubject(finding, home), finding);
}

/** Sentences for prose: "Widget db is held by … Its controller, Deployment x, was deleted …". */
export function chainSentences(chain: Chain, home: string): Words {
  return chainClauses(chain, home).flatMap((clause, at) => [
    at === 0 ? '' : ' ',
    ...capitalized(clause),
    '.',
  ]);
}

/** One sentence for outputs and annotations: "Widget db is held by …; its controller, …, was …". */
export function chainSentence(chain: Chain, home: string): Words {
  return chainClauses(chain, home).flatMap((clause, at) => (at === 0 ? clause : ['; ', ...clause]));
}

/** The clauses of a chain, each about one link, each readable after the one before it. */
function chainClauses({ links }: Chain, home: string): Words[] {
  const clauses: Words[] = [];
  let previous: Finding | undefined;
  for (const link of toldLinks(links)) {
    if (link === 'gap') {
      const left = links.length - MAX_LINKS_TOLD + 1;
      clauses.push([`it waits, over ${left} more links, for what follows`]);
      continue;
    }
    clauses.push(
      previous === undefined ? findingSentence(link, home) : following(previous, link, home),
    );
    previous = link;
  }
  return clauses;
}

function toldLinks(links: readonly Finding[]): (Finding | 'gap')[] {
  if (links.length <= MAX_LINKS_TOLD) return [...links];
  return [...links.slice(0, MAX_LINKS_TOLD - 2), 'gap', ...links.slice(-1)];
}

function following(previous: Finding, finding: Finding, home: string): Words {
  if (isSameSubject(previous.subject, finding.subject)) return sameSubjectWords(finding);
  const subject = findingSubject(finding, home);
  if (finding.code.startsWith('owner-')) {
    return clause([ownerRole(previous, finding), ', ', ...subject, ','], finding);
  }
  switch (finding.code) {
    case 'pod-node-unavailable':
      return ['it runs on ', ...which(subject, finding)];
    case 'admission-webhook-failing':
    case 'admission-denied':
      return ['it is stopped by ', ...which(subject, finding)];
    default:
      return ['it waits for ', ...which(subject, finding)];
  }
}

/** More about the same thing; that it has this finalizer was just said. */
export function sameSubjectWords(finding: Finding): Words {
  const again = `has finalizer ${finding.finalizer ?? ''}, `;
  if (finding.message.startsWith(`${again}and `)) {
    return quoted(finding.message.slice(`${again}and `.length), finding);
  }
  if (finding.message.startsWith(`${again}which `)) {
    const rest = finding.message.slice(`${again}which `.length);
    return ['that finalizer ', ...quoted(rest, finding)];
  }
  return isPredicate(finding.message) ? ['it ', ...messageWords(finding)] : messageWords(finding);
}

function ownerRole(previous: Finding, owner: Finding): string {
  if (owner.subject.kind === 'CustomResourceDefinition') return 'its type';
  // "Its controller" beside a namespace would be read as the namespace controller.
  return previous.subject.kind === 'Namespace' ? "the finalizer's controller" : 'its controller';
}

function which(subject: Words, finding: Finding): Words {
  const link = isPredicate(finding.message) ? ', which ' : ': ';
  return [...subject, link, ...messageWords(finding)];
}

function clause(subject: Words, finding: Finding): Words {
  const link = isPredicate(finding.message) ? ' ' : ': ';
  return [...subject, link, ...messageWords(finding)];
}

function quoted(text: string, { finalizer }: Finding): Words {
  return [said(text, finalizer === undefined ? [] : [finalizer])];
}

/**
 * Messages are clauses about the subject ("is held by …"). Some bring a subject of their own ("nothing
 * shows who …", "its backend does not answer") and would make no sentence after another one.
 */
function isPredicate(message: string): boolean {
  const first = /^[a-z]+(?=[ ,:])/.exec(message)?.[0];
  if (first === undefined || NOT_VERBS.has(first)) return false;
  return AUXILIARIES.has(first) || first.endsWith('s');
}

const NOT_VERBS = new Set(['its', 'this', 'his', 'objects', 'pods', 'nodes', 'resources', 'types']);
const AUXILIARIES = new Set(
  'are were had have do did can cannot could may must will would still never also'.split(' '),
);
