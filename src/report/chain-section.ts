import { formatDuration } from '../base/time.ts';
import { type Diagnosis, type Finding, NAMESPACE } from '../model/finding.ts';
import type { RunResult } from '../model/result.ts';
import { bullets, folded, table } from './blocks.ts';
import type { Chain } from './chains.ts';
import type { Detail } from './detail.ts';
import { diagram } from './diagram.ts';
import { prose, toMarkdown } from './markup.ts';
import type { Narrative } from './narrative.ts';
import { findingSentence, messageWords, sameSubjectWords } from './sentences.ts';
import { isOwnerOfItself, linkWords } from './subjects.ts';
import { capitalized, name, type Words } from './words.ts';

const MAX_EVIDENCE = 20;
const MAX_CONTRADICTIONS = 10;

/** Every link of every chain with its reason, what proves it, and the graph as a picture. */
export function chainSection(
  home: string,
  told: Narrative,
  diagnosis: Diagnosis,
  run: RunResult,
  detail: Detail,
): string {
  if (!detail.hasEvidence || told.chains.length === 0) return '';
  const rows = chainRows(told.chains, diagnosis, home)
    .slice(0, detail.rows)
    .map(({ from, to, because }) => [
      toMarkdown(from),
      to === undefined ? '*nothing further: the root cause*' : toMarkdown(to),
      toMarkdown(because, detail.chars),
    ]);
  const parts = [
    table(['', 'waits for', 'because'], rows),
    bullets(evidence(told.chains, home, run, detail)),
    bullets(
      diagnosis.contradictions
        .slice(0, MAX_CONTRADICTIONS)
        .map((line) => prose(line, [], detail.chars)),
    ),
    detail.hasDiagram ? diagram(diagnosis, home) : '',
  ];
  return folded('The chain, with evidence', parts.filter((part) => part !== '').join('\n\n'));
}

/** The links of all chains, once each. */
export function chainLinks(chains: readonly Chain[]): Finding[] {
  return [...new Map(chains.flatMap(({ links }) => links).map((link) => [link.id, link])).values()];
}

interface Row {
  from: Words;
  to: Words | undefined;
  because: Words;
}

function chainRows(chains: readonly Chain[], diagnosis: Diagnosis, home: string): Row[] {
  const because = new Map(
    diagnosis.edges.map((edge) => [`${edge.from}\n${edge.to}`, edge.because]),
  );
  const rows = new Map<string, Row>();
  for (const { links } of chains) {
    let from: Words = ['Namespace ', name(home)];
    let waits: Finding | undefined;
    for (const link of links) {
      const key = `${waits?.id ?? NAMESPACE}\n${link.id}`;
      const reason = because.get(key);
      const to = linkWords(link, home, waits);
      rows.set(key, {
        from,
        to,
        because: reason === undefined ? messageWords(link) : [{ said: reason }],
      });
      const isLast = link === links.at(-1);
      if (isLast) rows.set(link.id, { from: to, to: undefined, because: ending(link, waits) });
      from = to;
      waits = link;
    }
  }
  return [...rows.values()];
}

function ending(link: Finding, waits: Finding | undefined): Words {
  return isOwnerOfItself(link, waits) ? sameSubjectWords(link) : messageWords(link);
}

function evidence(
  chains: readonly Chain[],
  home: string,
  run: RunResult,
  detail: Detail,
): string[] {
  return chainLinks(chains)
    .filter((link) => link.evidence.length > 0)
    .slice(0, detail.rows)
    .map((link) => {
      const sentence = toMarkdown(capitalized(findingSentence(link, home)), detail.chars);
      const lines = link.evidence
        .slice(0, MAX_EVIDENCE)
        .map((line) => `\n  - ${prose(line, [], detail.chars)}`);
      return `${sentence}${ageOf(link, run)}:${lines.join('')}`;
    });
}

/** ", for 4m 51s", where it is known since when. */
export function ageOf(finding: Finding, run: RunResult): string {
  const age = Date.parse(run.finishedAt) - Date.parse(finding.since ?? '');
  return Number.isNaN(age) ? '' : `, for ${formatDuration(age)}`;
}
