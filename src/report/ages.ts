import { formatDuration } from '../base/time.ts';
import type { Diagnosis, Finding } from '../model/finding.ts';

const TIMESTAMP = /\b(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}:\d{2})(?:\.\d+)?Z/g;
const DAY_MS = 24 * 3_600_000;

/**
 * "2026-03-02T10:00:11Z" to "10:00:11 UTC (4m 51s ago)", seen from the end of the run: nobody can tell
 * from a bare timestamp whether it is long ago. report.json keeps the timestamps as they were read.
 */
export function withAges(text: string, nowIso: string): string {
  const now = Date.parse(nowIso);
  return text.replace(TIMESTAMP, (stamp: string, date: string, time: string) => {
    const age = now - Date.parse(stamp);
    if (Number.isNaN(age)) return stamp;
    const isSameDay = Math.abs(age) < DAY_MS / 2;
    const clock = isSameDay ? `${time} UTC` : `${date} ${time.slice(0, 5)} UTC`;
    if (Math.abs(age) < 1_000) return clock;
    return `${clock} (${age < 0 ? `in ${distance(-age)}` : `${distance(age)} ago`})`;
  });
}

function distance(ms: number): string {
  if (ms >= 2 * DAY_MS) return `${Math.floor(ms / DAY_MS)} days`;
  return formatDuration(ms);
}

/** "2026-03-02 10:05 UTC", for the foot of a report. */
export function clockTime(iso: string): string {
  const at = Date.parse(iso);
  if (Number.isNaN(at)) return iso;
  return `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

/** Every sentence of a diagnosis; commands and names stay as they are. */
export function diagnosisWithAges(diagnosis: Diagnosis, nowIso: string): Diagnosis {
  const human = (text: string): string => withAges(text, nowIso);
  return {
    ...diagnosis,
    findings: diagnosis.findings.map(
      (finding): Finding => ({
        ...finding,
        message: human(finding.message),
        evidence: finding.evidence.map(human),
        remedies: finding.remedies.map((remedy) => ({
          ...remedy,
          text: human(remedy.text),
          ...(remedy.risk === undefined ? {} : { risk: human(remedy.risk) }),
        })),
      }),
    ),
    edges: diagnosis.edges.map((edge) => ({ ...edge, because: human(edge.because) })),
    contradictions: diagnosis.contradictions.map(human),
    notInspected: diagnosis.notInspected.map((entry) => ({
      ...entry,
      reason: human(entry.reason),
    })),
  };
}
