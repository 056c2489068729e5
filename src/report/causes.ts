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

/** Returns every root cause, in the diagnosis's order. A root cause without a blocker is a chain of its own. */
export function rootsOf(namespace: NamespaceResult): Root[] {
  const { diagnosis: graph } = namespace;
  if (graph === undefined) return [];
  const byId = new Map(graph.findings.map((finding) => [finding.id, finding]));
  const cameFrom = new Map<string, string | undefined>(graph.blockers.map((id) => [id, undefined]));
  const edges: { from: string; to: string }[] = [];
  // A Map is iterated in the order of insertion, including entries that are added meanwhile.
  for (const from of cameFrom.keys()) {
    for (const to of byId.get(from)?.waitsFor ?? []) {
      if (!cameFrom.has(to)) cameFrom.set(to, from);
      edges.push({ from, to });
    }
  }
  const waiting = Map.groupBy(edges, ({ to }) => to);
  const blockers = new Set(graph.blockers);
  return graph.rootCauses.flatMap((id) => {
    const finding = byId.get(id);
    if (finding === undefined) return [];
    const links = [finding];
    for (let at = cameFrom.get(id); at !== undefined; at = cameFrom.get(at)) {
      const link = byId.get(at);
      if (link !== undefined) links.push(link);
    }
    links.reverse();
    const reaching = new Set([id]);
    for (const one of reaching) for (const { from } of waiting.get(one) ?? []) reaching.add(from);
    const held = [...reaching].filter((one) => blockers.has(one));
    const around = graph.deadlocks.find((one) => one.includes(id)) ?? [];
    const isWaiting = finding.waitsFor.some((one) => around.includes(one));
    const others = isWaiting ? around.filter((one) => one !== id) : [];
    const findingsOf = (ids: readonly string[]) => ids.flatMap((one) => byId.get(one) ?? []);
    return [{ namespace, finding, links, blockers: findingsOf(held), circle: findingsOf(others) }];
  });
}

/**
 * Returns a key that is equal for causes that need the same fix: an add-on of the cluster, an owner whatever
 * the number of its finalizers, or in each namespace an owner of its own that was deleted in the same way.
 * A subject inside the namespace counts by its message, since its name differs everywhere.
 */
function keyOf({ finding, links, namespace: { name: home } }: Root): string {
  const { cause, code, finalizer = '', message, subject } = finding;
  if (cause !== undefined) return [code, cause].join('\n');
  const isOwner = code.startsWith('owner-') && subject.kind !== 'CustomResourceDefinition';
  const parts = (): string[] => {
    if (isOwnerOfItself(finding, links.at(-2))) return ['itself'];
    if (subject.kind === 'Namespace' && subject.name === home) return ['the namespace'];
    if (subject.namespace !== home) return [subject.kind, subject.namespace ?? '', subject.name];
    return code.startsWith('owner-') ? [subject.kind, '', subject.name] : [message];
  };
  const [first = '', ...rest] = parts();
  // All finalizers of one workload are one cause.
  const holds = isOwner && first !== 'itself' ? '' : finalizer;
  return [code, holds, first, ...rest].join('\n');
}

/**
 * Reports whether a finding about an owner has the waiting object as its subject. This is so if no controller is
 * known.
 */
function isOwnerOfItself(finding: Finding, waits: Finding | undefined): boolean {
  if (!finding.code.startsWith('owner-') || waits === undefined) return false;
  const [a, b] = [waits.subject, finding.subject];
  const isSameType = a.kind === b.kind && groupOf(a.apiVersion) === groupOf(b.apiVersion);
  return isSameType && a.name === b.name && a.namespace === b.namespace;
}

/** Reports whether the sentence need not name its subject: the waiting object and its finalizer were just named. */
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

/** Returns the items with equal keys together; no group is empty. */
export function groupsBy<T>(items: Iterable<T>, keyOf: (item: T) => string): [T, ...T[]][] {
  return [...Map.groupBy(items, keyOf).values()] as [T, ...T[]][];
}

/** Returns the namespaces that a cause holds. */
export function namespacesOf(cause: Cause): NamespaceResult[] {
  return [...new Set(cause.map(({ namespace }) => namespace))];
}

const GONE: readonly Outcome[] = ['clear', 'deleted', 'not-found', 'recreated', 'forced'];

/** Reports whether the findings still hold the namespace. */
export function isStillHeld({ outcome }: Pick<NamespaceResult, 'outcome'>): boolean {
  return !GONE.includes(outcome);
}

/**
 * Returns the causes of these namespaces: those that hold most namespaces first; then as the diagnosis ranks kinds
 * of causes, and within a kind by how many objects wait.
 */
export function causesOf(namespaces: readonly NamespaceResult[]): Cause[] {
  const causes = groupRoots(namespaces.flatMap((namespace) => rootsOf(namespace)));
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
