import { bullets, codeBlock } from './blocks.ts';
import type { Detail } from './detail.ts';
import { toMarkdown } from './markup.ts';
import type { Narrative } from './narrative.ts';
import type { RemedyWords } from './remedies.ts';

/** The part of a namespace's report that is seen without unfolding anything. */
export function leadSections(told: Narrative, detail: Detail, level: '###' | '####'): string[] {
  return [
    ...openingSections(told, detail, level),
    remedySection(told.remedies, detail),
    notSeenSection(told, detail),
    told.queued === undefined ? '' : toMarkdown(told.queued),
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
  if (told.why.length === 1) return `**Why.** ${only}`;
  if (left > 0) shown.push(`and ${left} more ${left === 1 ? 'cause' : 'causes'}`);
  return `**Why.** ${told.chains.length > 1 ? `${told.chains.length} things hold it:` : ''}\n\n${bullets(shown)}`;
}

function remedySection(remedies: readonly RemedyWords[], detail: Detail): string {
  const shown = remedies.slice(0, detail.remedies);
  if (shown.length === 0) return '';
  const items = shown.map((remedy, at) => remedyItem(remedy, at + 1, detail));
  const left = remedies.length - shown.length;
  if (left > 0) items.push(`\nAnd ${left} more, in the full report.`);
  return `**What to do**\n\n${items.join('\n')}`;
}

function remedyItem(remedy: RemedyWords, number: number, detail: Detail): string {
  const risk =
    remedy.risk === undefined ? '' : ` **Risk:** ${toMarkdown(remedy.risk, detail.chars)}.`;
  const text = toMarkdown(remedy.text, detail.chars);
  const end = /[.:;!?]$/.test(text) ? '' : '.';
  const indent = ' '.repeat(`${number}. `.length);
  const command =
    remedy.command === undefined ? '' : `\n${codeBlock('sh', [remedy.command], indent)}`;
  return `${number}. ${text}${risk === '' && command !== '' ? ':' : end}${risk}${command}`.replace(
    '.:',
    ':',
  );
}

function notSeenSection(told: Narrative, detail: Detail): string {
  if (told.notSeen.length === 0) return '';
  const lines = told.notSeen.slice(0, 3).map((words) => toMarkdown(words, detail.chars));
  const left = told.notSeen.length - lines.length;
  if (left > 0) lines.push(`and ${left} more, for other reasons`);
  const seen =
    lines.length === 1
      ? `**Not inspected:** ${lines[0]}`
      : `**Not inspected**\n\n${bullets(lines)}`;
  if (told.grants.length === 0) return seen;
  return `${seen}\n\nTo see it, give this identity these rights:\n\n${codeBlock('yaml', told.grants.slice(0, 20))}`;
}
