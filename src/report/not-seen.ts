import type { NotInspected } from '../model/finding.ts';
import { counted, listWords, name, said, type Words } from './words.ts';

const MAX_NAMED = 4;

/** What could not be read, grouped by reason: twelve types behind one 403 are one sentence. */
export function notSeenSentences(entries: readonly NotInspected[]): Words[] {
  const byReason = new Map<string, Words[]>();
  for (const { what, reason, grant } of entries) {
    // Resource types have the names that kubectl takes; other entries are phrases.
    const words: Words = [grant === undefined ? said(what) : name(what)];
    const key = commonReason(reason);
    byReason.set(key, [...(byReason.get(key) ?? []), words]);
  }
  return [...byReason].map(([reason, whats]) => [
    ...listWords(whats, MAX_NAMED),
    ': ',
    said(reason),
  ]);
}

/** A refusal names the type that was asked for, so that no two are the same text. */
function commonReason(reason: string): string {
  const match = /^(403 [^:]*): .*?\bUser "([^"]*)" cannot /s.exec(reason);
  return match === null ? reason : `${match[1]} for ${match[2]}`;
}

/** RBAC rules that would show what was hidden, one line of YAML each; equal verbs share a line. */
export function grantLines(entries: readonly NotInspected[]): string[] {
  const byVerb = new Map<string, { groups: Set<string>; resources: Set<string> }>();
  for (const { grant } of entries) {
    if (grant === undefined) continue;
    const key = `${grant.verb}\n${grant.apiGroup}`;
    const rule = byVerb.get(key) ?? { groups: new Set<string>(), resources: new Set<string>() };
    rule.groups.add(grant.apiGroup);
    rule.resources.add(grant.resource);
    byVerb.set(key, rule);
  }
  return [...byVerb].map(([key, rule]) => {
    const verb = key.split('\n')[0] ?? '';
    return `- { apiGroups: ${yamlList(rule.groups)}, resources: ${yamlList(rule.resources)}, verbs: ${yamlList([verb])} }`;
  });
}

/** JSON strings are YAML strings, so no name can leave its quotes. */
function yamlList(items: Iterable<string>): string {
  return `[${[...items].map((item) => JSON.stringify(item)).join(', ')}]`;
}

export function queuedSentence(
  queued: readonly { kind: string; count: number }[],
): Words | undefined {
  const total = queued.reduce((sum, { count }) => sum + count, 0);
  if (total === 0) return undefined;
  const plural = total === 1 ? 'waits' : 'wait';
  return [
    `${counted(total, 'other object')} ${plural} behind it; nobody has asked for their deletion yet.`,
  ];
}
