import { bullets, codeBlock } from './blocks.ts';
import type { Detail } from './detail.ts';
import { toMarkdown } from './markup.ts';
import type { Narrative } from './narrative.ts';
import type { RemedyWords } from './remedies.ts';
import { counted, formatCount } from './words.ts';

const MAX_REASONS = 3;

/** The part of a namespace's report that is seen without unfolding anything. */
export function leadSections(told: Narrative, detail: Detail, level: '###' | '####'): string[] {
  const isBlind = told.chains.length === 0;
  const notSeen = notSeenSection(told, detail);
  return [
    ...openingSections(told, detail, level),
    isBlind ? notSeen : '',
    remedySection(told.remedies, detail),
    isBlind ? '' : notSeen,
    told.queued === undefined ? '' : toMarkdown(told.queued),
    termsSection(told),
  ].filter((section) => section !== '');
}

/** Outcome, why, whose fault: what stands above everything else. */
export function openingSections(told: Narrative, detail: Detail, level: '###' | '####'): string[] {
  return [
    `${level} ${told.mark} ${toMarkdown(told.headline)}`,
    whySection(told, detail),
    told.fault === undefined ? '' : `**${told.fault.answer}** ${toMarkdown(told.fault.because)}`,
  ].filter((section) => section !== '');
}

function whySection(told: Narrative, detail: Detail): string {
  const shown = told.why.slice(0, detail.causes).map((words) => toMarkdown(words, detail.chars));
  const left = told.why.length - shown.length;
  const [only] = shown;
  if (only === undefined) return '';
  if (told.why.length === 1) return `**${told.whyTitle}.** ${only}`;
  if (left > 0) shown.push(`and ${counted(left, 'more cause')}`);
  return `**${told.whyTitle}.** ${told.chains.length > 1 ? `${formatCount(told.chains.length)} things hold it:` : ''}\n\n${bullets(shown)}`;
}

function remedySection(remedies: readonly RemedyWords[], detail: Detail): string {
  const shown = remedies.slice(0, detail.remedies);
  if (shown.length === 0) return '';
  const items = shown.map((remedy, at) => remedyItem(remedy, at + 1, detail));
  const left = remedies.length - shown.length;
  if (left > 0) items.push(`\nAnd ${formatCount(left)} more, in the full report.`);
  return `**What to do**\n\n${items.join('\n')}`;
}

function remedyItem(remedy: RemedyWords, number: number, detail: Detail): string {
  const text = toMarkdown(remedy.text, detail.chars);
  const risk =
    remedy.risk === undefined ? '' : ` **Risk:** ${toMarkdown(remedy.risk, detail.chars)}.`;
  const block = remedyBlock(remedy, ' '.repeat(`${number}. `.length));
  const end = block !== '' && risk === '' ? ':' : '.';
  return `${number}. ${text.replace(/[.:]$/, '')}${end}${risk}${block}`;
}

function remedyBlock(remedy: RemedyWords, indent: string): string {
  if (remedy.command !== undefined) return `\n${codeBlock('sh', [remedy.command], indent)}`;
  return remedy.rules === undefined ? '' : `\n${codeBlock('yaml', remedy.rules, indent)}`;
}

function notSeenSection(told: Narrative, detail: Detail): string {
  if (told.notSeen.length === 0) return '';
  const lines = told.notSeen.slice(0, MAX_REASONS).map((words) => toMarkdown(words, detail.chars));
  const left = told.notSeen.length - lines.length;
  if (left > 0) lines.push(`and ${left} more, for other reasons`);
  return lines.length === 1
    ? `**Not inspected:** ${lines[0]}`
    : `**Not inspected**\n\n${bullets(lines)}`;
}

function termsSection(told: Narrative): string {
  return told.terms.map((term) => `<sub>${toMarkdown(term)}</sub>`).join('<br>');
}
