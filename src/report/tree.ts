import type { Diagnosis, Finding } from '../diagnose/diagnosis.ts';
import { plainText } from '../safe-text.ts';
import { linkWords, messageWords } from './sentences.ts';
import { toPlain } from './words.ts';

const MAX_LINES = 60;
const MAX_SUBJECT_WIDTH = 44;

/** The wait-for graph as indented lines for a terminal or a log; a finding is unfolded once. */
export function treeLines(diagnosis: Diagnosis, namespace: string): string[] {
  const byId = new Map(diagnosis.findings.map((finding) => [finding.id, finding]));
  const rows: Row[] = [];
  const seen = new Set<string>();
  const walk = (ids: readonly string[], indent: string): void => {
    const known = ids.filter((id) => byId.has(id));
    known.forEach((id, at) => {
      if (rows.length >= MAX_LINES) return;
      const finding = byId.get(id) as Finding;
      const isLast = at === known.length - 1;
      const isRoot = diagnosis.rootCauses.includes(id);
      const again = seen.has(id);
      rows.push({
        ...rowOf(finding, namespace, `${indent}${isLast ? '└─ ' : '├─ '}`),
        isRoot,
        again,
      });
      if (again) return;
      seen.add(id);
      walk(finding.waitsFor, `${indent}${isLast ? '   ' : '│  '}`);
    });
  };
  walk(diagnosis.blockers, '');
  if (rows.length === 0) return [];
  const width = Math.min(MAX_SUBJECT_WIDTH, Math.max(...rows.map((row) => row.left.length)));
  const lines = rows.map(
    ({ left, right, isRoot, again }) =>
      `${left.padEnd(width)}  ${again ? '(see above)' : right}${isRoot && !again ? '   ← root cause' : ''}`,
  );
  if (rows.length >= MAX_LINES) lines.push('… more in report.json');
  return [plainText(`Namespace ${namespace}`), ...lines];
}

interface Row {
  left: string;
  right: string;
  isRoot: boolean;
  again: boolean;
}

function rowOf(finding: Finding, namespace: string, lead: string): { left: string; right: string } {
  return {
    left: `${lead}${toPlain(linkWords(finding, namespace))}`,
    right: toPlain(messageWords(finding)),
  };
}
