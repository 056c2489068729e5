import { plainText, shorten } from '../base/text.ts';
import { type Diagnosis, NAMESPACE } from '../model/finding.ts';
import { linkWords } from './subjects.ts';
import { toPlain } from './words.ts';

const MAX_NODES = 40;
/** Mermaid breaks lines itself; a namespaced name with its kind has mostly less. */
const MAX_LABEL_CHARS = 90;
/** A border that is seen on GitHub's light and dark page; the label says the same in words. */
const ROOT_CAUSE_STYLE = '  classDef rootCause stroke:#d1242f,stroke-width:3px';

/** The wait-for graph for Mermaid, below the text that says the same; empty without edges. */
export function diagram(diagnosis: Diagnosis, namespace: string): string {
  const source = diagramSource(diagnosis, namespace);
  return source === '' ? '' : `\`\`\`mermaid\n${source}\n\`\`\``;
}

export function diagramSource(diagnosis: Diagnosis, namespace: string): string {
  const order = nodesInOrder(diagnosis);
  if (order.length < 2) return '';
  const shown = order.slice(0, order.length > MAX_NODES ? MAX_NODES - 1 : MAX_NODES);
  const idOf = new Map(shown.map((id, at) => [id, `n${at}`]));
  const labels = labelsOf(diagnosis, namespace);
  const lines = ['graph TD'];
  for (const id of shown) {
    const label = id === NAMESPACE ? `Namespace ${namespace}` : (labels.get(id) ?? '');
    const prefix = diagnosis.rootCauses.includes(id) ? 'root cause: ' : '';
    lines.push(`  ${idOf.get(id)}["${prefix}${mermaidText(label)}"]`);
  }
  if (order.length > shown.length) lines.push(`  more["and ${order.length - shown.length} more"]`);
  for (const { from, to } of diagnosis.edges) {
    const [a, b] = [idOf.get(from), idOf.get(to)];
    if (a !== undefined && b !== undefined) lines.push(`  ${a} --> ${b}`);
  }
  const roots = shown.filter((id) => diagnosis.rootCauses.includes(id)).map((id) => idOf.get(id));
  if (roots.length > 0) lines.push(ROOT_CAUSE_STYLE, `  class ${roots.join(',')} rootCause`);
  return [...new Set(lines)].join('\n');
}

function labelsOf(diagnosis: Diagnosis, namespace: string): ReadonlyMap<string, string> {
  const byId = new Map(diagnosis.findings.map((finding) => [finding.id, finding]));
  const waits = new Map(diagnosis.edges.map(({ from, to }) => [to, byId.get(from)]));
  return new Map(
    diagnosis.findings.map((finding) => [
      finding.id,
      toPlain(linkWords(finding, namespace, waits.get(finding.id))),
    ]),
  );
}

/** In the order of the walk from the namespace, so that what is left out is what is far away. */
function nodesInOrder(diagnosis: Diagnosis): string[] {
  const next = new Map<string, string[]>();
  for (const { from, to } of diagnosis.edges) {
    const list = next.get(from);
    if (list === undefined) next.set(from, [to]);
    else list.push(to);
  }
  // A Set is walked in the order of insertion, and what is added on the way is walked as well.
  const order = new Set([NAMESPACE]);
  for (const id of order) for (const to of next.get(id) ?? []) order.add(to);
  return [...order];
}

/** Labels are built from an allow-list: what Mermaid gives a meaning never reaches it. */
export function mermaidText(text: string): string {
  const kept = shorten(plainText(text), MAX_LABEL_CHARS).replace(
    /[^\p{L}\p{N} .,/:+_()=…-]/gu,
    ' ',
  );
  return kept.trim() === '' ? '(no name)' : kept;
}
