import { plainText, shorten } from '../base/text.ts';
import { NAMESPACE } from '../model/finding.ts';
import type { Row } from './view.ts';
import { toPlain } from './words.ts';

const MAX_NODES = 40;
/** Mermaid breaks lines itself; a namespaced name with its kind has mostly less. */
const MAX_LABEL_CHARS = 90;
/** A border that is seen on GitHub's light and dark page; the label says the same in words. */
const ROOT_CAUSE_STYLE = '  classDef rootCause stroke:#d1242f,stroke-width:3px';

/** The wait-for graph for Mermaid, below the text that says the same. */
export function diagramSource(rows: readonly Row[]): string {
  const [first] = rows;
  if (first === undefined) return '';
  const labels = new Map([[NAMESPACE, toPlain(first.fromWords)]]);
  const roots = new Set<string>();
  for (const { to, toWords, isRootCause } of rows) {
    if (isRootCause) roots.add(to);
    if (!labels.has(to)) labels.set(to, toPlain(toWords));
  }
  const all = [...labels];
  const shown = all.slice(0, all.length > MAX_NODES ? MAX_NODES - 1 : MAX_NODES);
  const idOf = new Map(shown.map(([id], at) => [id, `n${at}`]));
  const lines = ['graph TD'];
  for (const [id, label] of shown) {
    const prefix = roots.has(id) ? 'root cause: ' : '';
    lines.push(`  ${idOf.get(id)}["${prefix}${mermaidText(label)}"]`);
  }
  if (all.length > shown.length) lines.push('  more["and more"]');
  for (const { from, to } of rows) {
    const [a, b] = [idOf.get(from), idOf.get(to)];
    if (a !== undefined && b !== undefined) lines.push(`  ${a} --> ${b}`);
  }
  const marked = [...roots].flatMap((id) => idOf.get(id) ?? []);
  if (marked.length > 0) lines.push(ROOT_CAUSE_STYLE, `  class ${marked.join(',')} rootCause`);
  return [...new Set(lines)].join('\n');
}

/** Labels are built from an allow-list: what Mermaid gives a meaning never reaches it. */
function mermaidText(text: string): string {
  const kept = shorten(plainText(text), MAX_LABEL_CHARS).replace(
    /[^\p{L}\p{N} .,/:+_()=…-]/gu,
    ' ',
  );
  return kept.trim() === '' ? '(no name)' : kept;
}
