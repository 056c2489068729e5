import { groupOf } from '../model/facts/metadata.ts';
import type { Finding } from '../model/finding.ts';
import type { Outcome } from '../model/outcome.ts';
import type { NamespaceResult } from '../model/result.ts';

/** A root cause of one namespace, with the chain from the namespace to it. */
export interface Root {
  namespace: NamespaceResult;
  finding: Finding;
  /** The shortest chain, from the finding that holds the namespace itself to the root cause, which is the last. */
  links: Finding[];
  /** All findings that hold the namespace and whose chains end here, `links[0]` among them. */
  blockers: Finding[];
  /** The others of a circle in which the root cause itself waits; empty if it waits for no finding. */
  circle: Finding[];
}

/** In the diagnosis's order. A root cause without a blocker is a chain of its own. */
export function rootsOf(namespace: NamespaceResult): Root[] {
  const { diagnosis } = namespace;
  const { findings = [], rootCauses = [], blockers = [], deadlocks = [] } = diagnosis ?? {};
  const byId = new Map(findings.map((finding) => [finding.id, finding]));
  const edges = findings.flatMap((from) => from.waitsFor.map((to) => ({ from, to })));
  const waiting = Map.groupBy(edges, ({ to }) => to);
  const holding = new Set(blockers.map((id) => byId.get(id)));
  return rootCauses.flatMap((id) => {
    const finding = byId.get(id);
    if (finding === undefined) return [];
    // Breadth first, back to what holds the namespace; a Map is iterated in the order of insertion, meanwhile as well.
    const nextOf = new Map<Finding, Finding | undefined>([[finding, undefined]]);
    for (const link of nextOf.keys()) {
      for (const { from } of waiting.get(link.id) ?? []) {
        if (!nextOf.has(from)) nextOf.set(from, link);
      }
    }
    const held = [...nextOf.keys()].filter((one) => holding.has(one));
    const links: Finding[] = [];
    for (let link = held[0] ?? finding; ; ) {
      links.push(link);
      const next = nextOf.get(link);
      if (next === undefined) break;
      link = next;
    }
    const around = deadlocks.find((one) => one.includes(id)) ?? [];
    const isWaiting = finding.waitsFor.some((one) => around.includes(one));
    const others = isWaiting ? around.filter((one) => one !== id) : [];
    const circle = others.flatMap((one) => byId.get(one) ?? []);
    return [{ namespace, finding, links, blockers: held, circle }];
  });
}

/**
 * Equal for causes that need the same fix: an add-on of the cluster, an owner with all its finalizers, or in each namespace
 * an owner of its own. A subject inside the namespace counts by its message, since its name differs everywhere.
 */
function keyOf({ finding, links, namespace: { name: home } }: Root): string {
  const { cause, code, finalizer = '', message, subject } = finding;
  const { kind, name, namespace = '' } = subject;
  if (cause !== undefined) return [code, cause].join('\n');
  const isHome = kind === 'Namespace' && name === home;
  if (isHome || isOwnerOfItself(finding, links.at(-2))) return [code, finalizer].join('\n');
  const isOwner = code.startsWith('owner-');
  const isInside = namespace === home;
  // All finalizers of one workload are one cause.
  const holds = isOwner && kind !== 'CustomResourceDefinition' ? '' : finalizer;
  const who = isInside && !isOwner ? [message] : [kind, isInside ? '' : namespace, name];
  return [code, holds, ...who].join('\n');
}

/** No controller is known: a finding about an owner has the waiting object as its subject. */
function isOwnerOfItself(finding: Finding, waits: Finding | undefined): boolean {
  if (!finding.code.startsWith('owner-') || waits === undefined) return false;
  const [a, b] = [waits.subject, finding.subject];
  const isSameType = a.kind === b.kind && groupOf(a.apiVersion) === groupOf(b.apiVersion);
  return isSameType && a.name === b.name && a.namespace === b.namespace;
}

/** The waiting object and its finalizer were just named. */
export function needsNoSubject(finding: Finding, waits: Finding | undefined): boolean {
  const isOfType =
    finding.code === 'owner-missing' &&
    finding.subject.kind === 'CustomResourceDefinition' &&
    finding.finalizer === waits?.finalizer;
  return isOfType || isOwnerOfItself(finding, waits);
}

/** Equal root causes, in all namespaces. */
export type Cause = [Root, ...Root[]];

export function groupRoots(roots: readonly Root[]): Cause[] {
  return groupsBy(roots, keyOf);
}

export function groupsBy<T>(items: Iterable<T>, keyOf: (item: T) => string): [T, ...T[]][] {
  return [...Map.groupBy(items, keyOf).values()] as [T, ...T[]][];
}

export function namespacesOf(cause: Cause): NamespaceResult[] {
  return [...new Set(cause.map(({ namespace }) => namespace))];
}

const GONE: readonly Outcome[] = ['clear', 'deleted', 'not-found', 'recreated', 'forced'];

export function isStillHeld({ outcome }: Pick<NamespaceResult, 'outcome'>): boolean {
  return !GONE.includes(outcome);
}

/** Those that hold most namespaces first; then as the diagnosis ranks kinds of causes, then by how many objects wait. */
export function causesOf(namespaces: readonly NamespaceResult[]): Cause[] {
  const causes = groupRoots(namespaces.flatMap(rootsOf));
  const ranks = [...new Set(causes.map(([{ finding }]) => finding.code))];
  const waiting = (cause: Cause): number =>
    cause.flatMap(({ blockers }) => blockers).reduce((sum, { count = 1 }) => sum + count, 0);
  return causes.sort(
    (a, b) =>
      namespacesOf(b).length - namespacesOf(a).length ||
      ranks.indexOf(a[0].finding.code) - ranks.indexOf(b[0].finding.code) ||
      waiting(b) - waiting(a),
  );
}
