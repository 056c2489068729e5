import type { ForceRecord } from '../model/result.ts';
import { folded, table } from './blocks.ts';
import type { Detail } from './detail.ts';
import { prose, toMarkdown } from './markup.ts';
import { counted, name } from './words.ts';

/** What force-finalizing did, would do, refused, and left behind. Leftovers are never folded away. */
export function forcedSection(forced: ForceRecord | null, detail: Detail): string {
  if (forced === null) return '';
  return [actions(forced, detail), orphans(forced, detail), refused(forced, detail)]
    .filter((part) => part !== '')
    .join('\n\n');
}

function actions(forced: ForceRecord, detail: Detail): string {
  const title = forced.mode === 'plan' ? 'Force-finalize would do this (plan)' : 'Force-finalized';
  if (forced.actions.length === 0) return `**${title}:** nothing.`;
  const rows = forced.actions
    .slice(0, Math.max(1, detail.rows))
    .map(({ target, finalizer, result }) => [
      toMarkdown([name(target)]),
      toMarkdown([name(finalizer)]),
      prose(result, [], detail.chars),
    ]);
  return `**${title}:**\n\n${table(['object', 'finalizer', 'result'], rows)}`;
}

function orphans(forced: ForceRecord, detail: Detail): string {
  if (forced.orphans.length === 0) return '';
  const rows = forced.orphans
    .slice(0, Math.max(1, detail.rows))
    .map(({ apiVersion, kind, name: object, uid, finalizers }) => [
      toMarkdown([name(kind), ' ', name(object)]),
      toMarkdown([name(apiVersion)]),
      toMarkdown([name(uid)]),
      toMarkdown([name(finalizers.join(', '))]),
    ]);
  return `**Left behind: ${counted(forced.orphans.length, 'object')}**\n\n${table(['object', 'apiVersion', 'uid', 'finalizers'], rows)}`;
}

function refused(forced: ForceRecord, detail: Detail): string {
  if (forced.refused.length === 0 || detail.rows === 0) return '';
  const rows = forced.refused
    .slice(0, detail.rows)
    .map(({ target, reason }) => [toMarkdown([name(target)]), prose(reason, [], detail.chars)]);
  return folded(`Refused to force (${forced.refused.length})`, table(['object', 'reason'], rows));
}
