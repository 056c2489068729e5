import type { Finding, Subject } from '../diagnose/diagnosis.ts';
import type { Chain } from './chains.ts';
import { capitalized, formatCount, name, said, type Words } from './words.ts';

/** Longer chains are told by their two ends; the table of the chain has all links. */
const MAX_LINKS_TOLD = 4;

/** "Widget `db`", "Deployment `operators/widget-operator`", "type `configmaps`". */
export function subjectWords(subject: Subject, home: string): Words {
  if (subject.kind === 'APIResource') return ['type ', name(subject.name)];
  const isElsewhere = subject.namespace !== undefined && subject.namespace !== home;
  const path = isElsewhere ? `${subject.namespace}/${subject.name}` : subject.name;
  return [said(subject.kind), ' ', name(path)];
}

/** The subject of a finding, with how many more it stands for. */
export function findingSubject(finding: Finding, home: string): Words {
  if (finding.code === 'content-deleting') return ['objects of type ', name(finding.subject.name)];
  const more = (finding.count ?? 1) - 1;
  const words = subjectWords(finding.subject, home);
  return more > 0 ? [...words, ` (and ${formatCount(more)} more like it)`] : words;
}

/**
 * A finding as a link of a chain: what is waited for. A finalizer of the namespace, or an owner that
 * nobody could name, has the object that waits as its subject, and "x waits for x" tells nothing.
 */
export function linkWords(finding: Finding, home: string): Words {
  const { code, finalizer, subject } = finding;
  if (finalizer === undefined) return findingSubject(finding, home);
  if (code === 'namespace-finalizer' || code === 'namespace-spec-finalizer') {
    return ['finalizer ', name(finalizer)];
  }
  const isUnnamed = code.startsWith('owner-') && !WORKLOADS.has(subject.kind);
  return isUnnamed ? ['the owner of finalizer ', name(finalizer)] : findingSubject(finding, home);
}

const WORKLOADS = new Set([
  'Deployment',
  'StatefulSet',
  'DaemonSet',
  'ReplicaSet',
  'ReplicationController',
  'Job',
  'CronJob',
  'Pod',
]);

/** What a finding says, as a clause that follows its subject. */
export function messageWords(finding: Finding): Words {
  return [said(finding.message, finding.finalizer === undefined ? [] : [finding.finalizer])];
}

/** A finding on its own: "Widget db is held by …", "the owner of finalizer x: nothing shows who …". */
export function findingSentence(finding: Finding, home: string): Words {
  return clause(
    isPredicate(finding.message) ? findingSubject(finding, home) : linkWords(finding, home),
    finding,
  );
}

/** The clauses of a chain, each about one link, each readable after the one before it. */
export function chainClauses(chain: Chain, home: string): Words[] {
  const clauses: Words[] = [];
  let previous: Finding | undefined;
  for (const link of toldLinks(chain.links)) {
    if (link === 'gap') {
      clauses.push([
        `it waits, over ${chain.links.length - MAX_LINKS_TOLD + 1} more links, for what follows`,
      ]);
      continue;
    }
    clauses.push(previous === undefined ? opening(link, home) : following(previous, link, home));
    previous = link;
  }
  return clauses;
}

function toldLinks(links: readonly Finding[]): (Finding | 'gap')[] {
  if (links.length <= MAX_LINKS_TOLD) return [...links];
  return [...links.slice(0, MAX_LINKS_TOLD - 2), 'gap', ...links.slice(-1)];
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

function opening(finding: Finding, home: string): Words {
  return clause(findingSubject(finding, home), finding);
}

function following(previous: Finding, finding: Finding, home: string): Words {
  if (isSameSubject(previous.subject, finding.subject)) return clause(['it'], finding);
  const subject = findingSubject(finding, home);
  if (finding.code.startsWith('owner-')) {
    return clause([...ownerRole(previous, finding), ', ', ...subject, ','], finding);
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

function ownerRole(previous: Finding, owner: Finding): Words {
  if (owner.subject.kind === 'CustomResourceDefinition') return ['its type'];
  // "Its controller" beside a namespace would be read as the namespace controller.
  return [previous.subject.kind === 'Namespace' ? "the finalizer's controller" : 'its controller'];
}

function which(subject: Words, finding: Finding): Words {
  return isPredicate(finding.message)
    ? [...subject, ', which ', ...messageWords(finding)]
    : [...subject, ': ', ...messageWords(finding)];
}

function clause(subject: Words, finding: Finding): Words {
  if (isPredicate(finding.message)) return [...subject, ' ', ...messageWords(finding)];
  const isPronoun = subject.length === 1 && subject[0] === 'it';
  return isPronoun ? messageWords(finding) : [...subject, ': ', ...messageWords(finding)];
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
  'are were had have do did can cannot could may must will would still no never also'.split(' '),
);

function isSameSubject(a: Subject, b: Subject): boolean {
  return (
    a.kind === b.kind &&
    a.name === b.name &&
    a.namespace === b.namespace &&
    groupOf(a.apiVersion) === groupOf(b.apiVersion)
  );
}

function groupOf(apiVersion: string): string {
  return apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '';
}
