import { plainText } from '../base/text.ts';
import type { Diagnosis, Finding } from '../model/finding.ts';
import { messageWords, sameSubjectWords } from './sentences.ts';
import { isOwnerOfItself, linkWords } from './subjects.ts';
import { toPlain } from './words.ts';

const MAX_LINES = 60;
const MAX_SUBJECT_WIDTH = 60;

interface Row {
  /** Lines of the tree, and the subject. */
  left: string;
  right: string;
}

/** The wait-for graph as indented lines for a terminal or a log; a finding is unfolded once. */
export function treeLines(diagnosis: Diagnosis, namespace: string): string[] {
  const rows = rowsOf(diagnosis, namespace);
  if (rows.length === 0) return [];
  const widths = rows.filter(({ right }) => right !== '').map(({ left }) => left.length);
  const width = Math.min(MAX_SUBJECT_WIDTH, Math.max(0, ...widths));
  const lines = rows.map(({ left, right }) =>
    right === '' ? left : `${left.padEnd(width)}  ${right}`,
  );
  if (rows.length >= MAX_LINES) lines.push('… more in report.json');
  return [plainText(`Namespace ${namespace}`), ...lines];
}

function rowsOf(diagnosis: Diagnosis, namespace: string): Row[] {
  const byId = new Map(diagnosis.findings.map((finding) => [finding.id, finding]));
  const roots = new Set(diagnosis.rootCauses);
  const rows: Row[] = [];
  const seen = new Set<string>();
  const walk = (ids: readonly string[], waits: Finding | undefined, indent: string): void => {
    const known = ids.flatMap((id) => byId.get(id) ?? []);
    for (const [at, finding] of known.entries()) {
      if (rows.length >= MAX_LINES) return;
      const isLast = at === known.length - 1;
      const lead = `${indent}${isLast ? '└─ ' : '├─ '}`;
      const subject = toPlain(linkWords(finding, namespace, waits));
      if (seen.has(finding.id)) {
        rows.push({ left: `${lead}${subject}`, right: '(see above)' });
        continue;
      }
      seen.add(finding.id);
      const mark = roots.has(finding.id) ? '   ← root cause' : '';
      rows.push(
        isOwnerOfItself(finding, waits)
          ? { left: `${lead}${toPlain(sameSubjectWords(finding))}${mark}`, right: '' }
          : { left: `${lead}${subject}`, right: `${toPlain(messageWords(finding))}${mark}` },
      );
      walk(finding.waitsFor, finding, `${indent}${isLast ? '   ' : '│  '}`);
    }
  };
  walk(diagnosis.blockers, undefined, '');
  return rows;
}
