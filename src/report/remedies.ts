import type { Diagnosis, Finding, Remedy } from '../model/finding.ts';
import type { Chain } from './chains.ts';
import { name, said, type Words } from './words.ts';

export interface RemedyWords {
  text: Words;
  command?: string;
  /** Lines of YAML to put into a role. */
  rules?: string[];
  risk?: Words;
}

/** What to do, safest first: without a risk before with one, the root cause before what waits for it. */
export function remediesOf(diagnosis: Diagnosis, chains: readonly Chain[]): RemedyWords[] {
  const onChains = chains.flatMap((chain) => [...chain.links].reverse());
  const known = new Map<string, RemedyWords & { isRisky: boolean }>();
  for (const finding of unique([...onChains, ...diagnosis.findings])) {
    for (const remedy of finding.remedies) {
      const key = JSON.stringify([remedy.text, remedy.command]);
      if (!known.has(key))
        known.set(key, { ...remedyWords(finding, remedy), isRisky: remedy.risk !== undefined });
    }
  }
  const all = [...known.values()];
  return [...all.filter((one) => !one.isRisky), ...all.filter((one) => one.isRisky)].map(
    ({ isRisky: _, ...remedy }) => remedy,
  );
}

function unique(findings: readonly Finding[]): Finding[] {
  return [...new Map(findings.map((finding) => [finding.id, finding])).values()];
}

function remedyWords(finding: Finding, remedy: Remedy): RemedyWords {
  const names = finding.finalizer === undefined ? [] : [finding.finalizer];
  return {
    text: [said(remedy.text, names)],
    ...(remedy.command === undefined ? {} : { command: remedy.command }),
    ...(remedy.risk === undefined ? {} : { risk: [said(remedy.risk, names)] }),
  };
}

/** Where there is no finding to carry a remedy. */
export function deleteFirst(namespace: string): RemedyWords {
  return {
    text: ['Delete it first, or let the gate do so with ', name('delete: true')],
    command: `kubectl delete namespace ${namespace} --wait=false`,
  };
}
