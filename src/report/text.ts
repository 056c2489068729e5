import { plainText } from '../base/text.ts';
import type { NamespaceResult, RunResult } from '../model/result.ts';
import { chainLinks } from './chain-section.ts';
import { clusterWords, nothingToTell } from './headline.ts';
import { type Narrative, narrate } from './narrative.ts';
import { worstFirst } from './order.ts';
import type { RemedyWords } from './remedies.ts';
import { findingSentence } from './sentences.ts';
import { sameCauseAs } from './shared-cause.ts';
import { treeLines } from './tree.ts';
import { capitalized, formatCount, toPlain } from './words.ts';

const MAX_CAUSES = 20;
const MAX_EVIDENCE_LINES = 30;
const MAX_REMEDIES = 8;

/** The report for a terminal. */
export function renderText(result: RunResult): string {
  if (result.namespaces.length === 0) return `${nothingToTell(result)}\n`;
  const ordered = worstFirst(result.namespaces);
  const same = sameCauseAs(ordered);
  return `${ordered
    .map((namespace) => namespaceText(namespace, same.get(namespace), result).join('\n'))
    .join('\n\n')}\n`;
}

function namespaceText(
  namespace: NamespaceResult,
  same: NamespaceResult | undefined,
  run: RunResult,
): string[] {
  const told = narrate(namespace, run);
  const headline = `${toPlain(told.headline)}  (${toPlain(clusterWords(run))})`;
  const explanation = explanationLines(namespace, run, same);
  const proof = same === undefined ? evidenceLines(told, namespace.name) : [];
  const rest = proof.length === 0 ? [] : ['', 'What this rests on:', ...proof];
  return [headline, ...indented([...explanation, ...rest])];
}

/** Tree, why, whose fault, what to do, what could not be seen: for the terminal and for the log. */
export function explanationLines(
  namespace: NamespaceResult,
  run: RunResult,
  same?: NamespaceResult,
): string[] {
  const told = narrate(namespace, run);
  if (same !== undefined) {
    return [...whyLines(told), plainText(`The same as for ${same.name} above.`)];
  }
  const { diagnosis } = told;
  const paragraphs = [
    diagnosis === undefined ? [] : treeLines(diagnosis, namespace.name),
    whyLines(told),
    told.fault === undefined ? [] : [`${told.fault.answer} ${toPlain(told.fault.because)}`],
    remedyLines(told.remedies),
    [
      ...told.notSeen.map((words) => `Not inspected: ${toPlain(words)}`),
      ...(told.queued === undefined ? [] : [toPlain(told.queued)]),
      ...(diagnosis !== undefined && told.notSeen.length === 0
        ? ['Nothing was left uninspected.']
        : []),
    ],
    forcedLines(namespace),
  ];
  return paragraphs
    .filter((lines) => lines.length > 0)
    .flatMap((lines, at) => (at === 0 ? lines : ['', ...lines]));
}

/** What proves it: in the log this is in the group below, on a terminal there is none. */
function evidenceLines(told: Narrative, home: string): string[] {
  const lines = chainLinks(told.chains)
    .filter(({ evidence }) => evidence.length > 0)
    .flatMap((link) => [
      `${toPlain(capitalized(findingSentence(link, home)))}:`,
      ...link.evidence.map((line) => `  · ${plainText(line)}`),
    ]);
  return lines.slice(0, MAX_EVIDENCE_LINES);
}

function whyLines({ why, whyTitle }: Narrative): string[] {
  const lines = why.slice(0, MAX_CAUSES).map(toPlain);
  if (why.length > lines.length) {
    lines.push(`and ${formatCount(why.length - lines.length)} more causes in report.json`);
  }
  return whyTitle === 'Why' || lines.length === 0 ? lines : [`${whyTitle}:`, ...lines];
}

function remedyLines(remedies: readonly RemedyWords[]): string[] {
  const shown = remedies.slice(0, MAX_REMEDIES);
  const lines = shown.flatMap((remedy, at) => [
    `${at + 1}. ${toPlain(remedy.text)}${remedy.risk === undefined ? '' : ` (risk: ${toPlain(remedy.risk)})`}`,
    ...(remedy.command === undefined ? [] : [`   ${plainText(remedy.command)}`]),
    ...(remedy.rules ?? []).map((line) => `   ${plainText(line)}`),
  ]);
  const left = remedies.length - shown.length;
  return left > 0 ? [...lines, `and ${formatCount(left)} more in report.json`] : lines;
}

function forcedLines({ forced }: NamespaceResult): string[] {
  if (forced === null) return [];
  const title = forced.mode === 'plan' ? 'Force-finalize would do:' : 'Force-finalized:';
  return [
    ...(forced.actions.length === 0 ? [`${title} nothing`] : [title]),
    ...forced.actions.map(({ target, finalizer, result }) =>
      plainText(`  ${target}  ${finalizer}: ${result}`),
    ),
    ...forced.refused.map(({ target, reason }) => plainText(`  refused: ${target}: ${reason}`)),
    ...forced.orphans.map(({ kind, name, apiVersion, uid }) =>
      plainText(`  left behind: ${kind} ${name} (${apiVersion}, uid ${uid})`),
    ),
  ];
}

function indented(lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', ...lines.map((line) => (line === '' ? '' : `  ${line}`))];
}
