import {
  type Diagnosis,
  type Edge,
  FINDING_CODES,
  type Finding,
  type FindingCode,
  NAMESPACE,
} from './diagnosis.ts';
import { type Draft, idOf } from './draft.ts';

export type WaitForGraph = Pick<
  Diagnosis,
  'findings' | 'edges' | 'blockers' | 'rootCauses' | 'deadlocks'
>;

/**
 * Ties drafts into the wait-for graph that starts at the namespace. Findings that nothing waits for
 * stay in the list (they may contribute) but are neither blockers nor root causes.
 */
export function buildGraph(drafts: readonly Draft[]): WaitForGraph {
  const byId = new Map<string, Draft>();
  for (const draft of drafts) {
    const id = idOf(draft);
    const known = byId.get(id);
    byId.set(id, known === undefined ? draft : merge(known, draft));
  }
  const edges = edgesOf(byId);
  const next = adjacency(edges);
  const reachable = reach(NAMESPACE, next);
  const circles = circlesOf([NAMESPACE, ...byId.keys()], next).filter((circle) =>
    circle.some((id) => reachable.has(id)),
  );
  const findings = [...byId].map(([id, draft]) => toFinding(id, draft, targets(next, id)));
  const rank = rankBy(byId);
  return {
    findings: findings.sort((a, b) => rank(a.id) - rank(b.id) || compare(a.id, b.id)),
    edges,
    blockers: targets(next, NAMESPACE).sort((a, b) => rank(a) - rank(b) || compare(a, b)),
    rootCauses: [...byId.keys()]
      .filter((id) => reachable.has(id) && isRootCause(id, next, circles))
      .sort((a, b) => rank(a) - rank(b) || compare(a, b)),
    deadlocks: circles.map((circle) => circle.filter((id) => id !== NAMESPACE)),
  };
}

function edgesOf(byId: ReadonlyMap<string, Draft>): Edge[] {
  const edges: Edge[] = [];
  for (const [id, draft] of byId) {
    if (draft.blocksNamespace !== undefined) {
      edges.push({ from: NAMESPACE, to: id, because: draft.blocksNamespace });
    }
    for (const { id: to, because } of draft.waitsFor ?? []) {
      if (byId.has(to)) edges.push({ from: id, to, because });
    }
    if (draft.waitsForNamespace !== undefined) {
      edges.push({ from: id, to: NAMESPACE, because: draft.waitsForNamespace });
    }
  }
  return edges;
}

function adjacency(edges: readonly Edge[]): Map<string, string[]> {
  const next = new Map<string, string[]>();
  for (const { from, to } of edges) {
    const list = next.get(from);
    if (list === undefined) next.set(from, [to]);
    else if (!list.includes(to)) list.push(to);
  }
  return next;
}

function targets(next: ReadonlyMap<string, string[]>, from: string): string[] {
  return (next.get(from) ?? []).filter((id) => id !== NAMESPACE);
}

function reach(start: string, next: ReadonlyMap<string, string[]>): Set<string> {
  const seen = new Set([start]);
  const open = [start];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    for (const to of next.get(id) ?? []) {
      if (!seen.has(to)) {
        seen.add(to);
        open.push(to);
      }
    }
  }
  return seen;
}

/**
 * A chain ends where nothing further is waited for. In a circle it ends at the link that leads back
 * to the namespace (what was deleted with it), or at every link of a circle without the namespace.
 */
function isRootCause(
  id: string,
  next: ReadonlyMap<string, string[]>,
  circles: readonly string[][],
): boolean {
  const onward = targets(next, id);
  if (onward.length === 0) return true;
  const circle = circles.find((members) => members.includes(id) && !members.includes(NAMESPACE));
  if (circle === undefined) return false;
  return onward.every((to) => circle.includes(to)) && circle[0] === id;
}

/**
 * Strongly connected components with more than one member (Tarjan, iterative: a hostile cluster must
 * not overflow the stack), each in the order of the walk from the namespace.
 */
function circlesOf(nodes: readonly string[], next: ReadonlyMap<string, string[]>): string[][] {
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const onStack = new Set<string>();
  const circles: string[][] = [];
  for (const root of nodes) {
    if (index.has(root)) continue;
    const work: { id: string; at: number }[] = [{ id: root, at: 0 }];
    while (work.length > 0) {
      const frame = work[work.length - 1] as { id: string; at: number };
      if (frame.at === 0) {
        index.set(frame.id, index.size);
        low.set(frame.id, index.size - 1);
        stack.push(frame.id);
        onStack.add(frame.id);
      }
      const to = next.get(frame.id)?.[frame.at++];
      if (to !== undefined) {
        if (!index.has(to)) work.push({ id: to, at: 0 });
        else if (onStack.has(to)) lower(low, frame.id, index.get(to) as number);
        continue;
      }
      work.pop();
      const parent = work[work.length - 1];
      if (parent !== undefined) lower(low, parent.id, low.get(frame.id) as number);
      if (low.get(frame.id) === index.get(frame.id)) {
        const circle = stack.splice(stack.indexOf(frame.id));
        for (const id of circle) onStack.delete(id);
        if (circle.length > 1) circles.push(circle);
      }
    }
  }
  return circles;
}

function lower(low: Map<string, number>, id: string, value: number): void {
  if (value < (low.get(id) ?? Number.POSITIVE_INFINITY)) low.set(id, value);
}

function toFinding(id: string, draft: Draft, waitsFor: string[]): Finding {
  const { blocksNamespace: _a, waitsFor: _b, waitsForNamespace: _c, ...finding } = draft;
  return { id, ...finding, waitsFor };
}

/** Two rules may find the same thing from different sides: their evidence adds up. */
function merge(a: Draft, b: Draft): Draft {
  const blocksNamespace = a.blocksNamespace ?? b.blocksNamespace;
  const waitsForNamespace = a.waitsForNamespace ?? b.waitsForNamespace;
  return {
    ...a,
    evidence: [...new Set([...a.evidence, ...b.evidence])],
    waitsFor: [...(a.waitsFor ?? []), ...(b.waitsFor ?? [])],
    ...(blocksNamespace === undefined ? {} : { blocksNamespace }),
    ...(waitsForNamespace === undefined ? {} : { waitsForNamespace }),
  };
}

/**
 * What a person has to mend first: the namespace's own finalizers, then what stops every namespace of
 * the cluster, then pods (nothing else goes before them), then single objects, the largest first.
 */
const ORDER: readonly FindingCode[] = [
  'namespace-controller-inactive',
  'apiservice-unavailable',
  'discovery-failed',
  'conversion-webhook-failing',
  'storage-unreadable',
  'api-failing',
  'pod-node-unavailable',
  'pod-not-confirmed',
  'admission-webhook-failing',
  'admission-denied',
  'deletion-forbidden',
  'owner-failing',
  'owner-missing',
  'owner-scaled-to-zero',
  'owner-not-ready',
  'owner-unknown',
  'owner-running',
  'namespace-finalizer',
  'namespace-spec-finalizer',
  'object-finalizer',
  'volume-in-use',
  'crd-terminating',
  'pod-grace-period',
  'content-deleting',
  'unexplained',
];

function rankBy(byId: ReadonlyMap<string, Draft>): (id: string) => number {
  return (id) => {
    const draft = byId.get(id);
    const place = draft === undefined ? FINDING_CODES.length : ORDER.indexOf(draft.code);
    return place - (1 - 1 / (draft?.count ?? 1));
  };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
