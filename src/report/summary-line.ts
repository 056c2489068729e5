import { plainText, shorten } from '../base/text.ts';
import { formatDuration } from '../base/time.ts';
import type { NamespaceResult, RunResult } from '../model/result.ts';
import { nothingToTell, stateWords } from './headline.ts';
import { type Narrative, narrate } from './narrative.ts';
import { chainSentence } from './sentences.ts';
import { counted, toPlain, type Words } from './words.ts';

const MAX_ROOT_CAUSE_CHARS = 1_000;
const MAX_CHAT_CHARS = 500;

/** One sentence that follows the chain of the worst namespace to its end; empty without one. */
export function rootCauseSentence(run: RunResult): string {
  const worst = worstNamespace(run);
  return worst === undefined ? '' : shorten(plainCause(worst, run), MAX_ROOT_CAUSE_CHARS);
}

/** Why one namespace is not gone, as one sentence without a full stop; empty when nothing explains. */
export function causeOf(told: Narrative, home: string): Words {
  if (told.diagnosis === undefined) return [];
  const [first, ...others] = told.chains;
  if (first !== undefined) {
    const more = others.length === 0 ? [] : [` (and ${counted(others.length, 'more cause')})`];
    return [...chainSentence(first, home), ...more];
  }
  const [notSeen] = told.notSeen;
  if (notSeen !== undefined) return ['could not look at ', ...notSeen];
  return told.why[0] ?? [];
}

function plainCause(namespace: NamespaceResult, run: RunResult): string {
  return toPlain(causeOf(narrate(namespace, run), namespace.name));
}

/** One line for chat; what chat programs take for mark-up or mentions is taken out. */
export function summaryText(run: RunResult): string {
  return shorten(chatSafe(summaryLine(run)), MAX_CHAT_CHARS);
}

function summaryLine(run: RunResult): string {
  const [only] = run.namespaces;
  if (only !== undefined && run.namespaces.length === 1) return namespaceLine(only, run);
  if (only === undefined) return nothingToTell(run);
  const left = run.namespaces.filter(({ verdict }) => verdict === 'fail');
  const took = formatDuration(run.elapsedMs);
  const worst = worstNamespace(run);
  if (worst === undefined || left.length === 0) {
    return `all ${run.namespaces.length} namespaces passed (${took})`;
  }
  return `${left.length} of ${run.namespaces.length} namespaces did not pass (${took}): ${namespaceLine(worst, run)}`;
}

/** "preview-pr-42 is stuck: Widget db is held by …", "preview-pr-42 is gone after 38 s". */
export function namespaceLine(namespace: NamespaceResult, run: RunResult): string {
  const cause = plainCause(namespace, run);
  const state = `${namespace.name} ${stateWords(namespace)}`;
  return cause === '' ? plainText(state) : plainText(`${state}: ${cause}`);
}

/** The namespace that gave the run its outcome. */
export function worstNamespace(run: RunResult): NamespaceResult | undefined {
  return (
    run.namespaces.find(
      ({ outcome, verdict }) => outcome === run.outcome && verdict === run.verdict,
    ) ??
    run.namespaces.find(({ outcome }) => outcome === run.outcome) ??
    run.namespaces[0]
  );
}

function chatSafe(text: string): string {
  return text.replace(/[<>@`$\\|*~]/g, ' ');
}
