import { plainText, shorten } from '../base/text.ts';
import { formatDuration } from '../base/time.ts';
import { OUTCOMES, type Outcome } from '../model/outcome.ts';
import { toMarkdown } from './markup.ts';
import { markOf } from './sentences.ts';
import { worstNamespace } from './text.ts';
import type { View } from './view.ts';
import { name, type Words } from './words.ts';

/** One teardown of this pull request, as the comment remembers it. */
export interface Teardown {
  /** "run 812, attempt 1". */
  run: string;
  at: string;
  outcome: Outcome;
  isPass: boolean;
  seconds: number;
  /** Code and subject of the first root cause; absent when there was none. */
  code?: string;
  subject?: string;
}

export const MAX_TEARDOWNS = 20;
const MAX_TEXT_CHARS = 120;

export function teardownOf(view: View, run: string): Teardown {
  const result = view.run;
  const worst = worstNamespace(view)?.result;
  const rootId = worst?.diagnosis?.rootCauses[0];
  const root = worst?.diagnosis?.findings.find(({ id }) => id === rootId);
  // The blocking object says more to the reader of a history than the controller behind it.
  const blockerId = worst?.diagnosis?.blockers[0];
  const blocker = worst?.diagnosis?.findings.find(({ id }) => id === blockerId) ?? root;
  return {
    run: shorten(run, MAX_TEXT_CHARS),
    at: result.finishedAt,
    outcome: result.outcome,
    isPass: result.verdict !== 'fail',
    seconds: Math.round(result.elapsedMs / 1_000),
    ...(root === undefined ? {} : { code: root.code }),
    ...(blocker === undefined
      ? {}
      : {
          subject: shorten(
            plainText(`${blocker.subject.kind} ${blocker.subject.name}`),
            MAX_TEXT_CHARS,
          ),
        }),
  };
}

/** The last ones, oldest first. Publishing the same run again replaces its entry. */
export function appendTeardown(history: readonly Teardown[], next: Teardown): Teardown[] {
  return [...history.filter(({ run }) => run !== next.run || run === ''), next].slice(
    -MAX_TEARDOWNS,
  );
}

/** Base64 has no character that could end the HTML comment it lies in, or mean anything to Markdown. */
export function encodeHistory(history: readonly Teardown[]): string {
  const bytes = new TextEncoder().encode(JSON.stringify(history));
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
}

/** People can edit comments: whatever is not a history is an empty one, whatever is no entry is dropped. */
export function decodeHistory(text: string): Teardown[] {
  try {
    const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
    const parsed: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return Array.isArray(parsed) ? parsed.flatMap(readTeardown).slice(-MAX_TEARDOWNS) : [];
  } catch {
    return [];
  }
}

function readTeardown(value: unknown): Teardown[] {
  if (typeof value !== 'object' || value === null) return [];
  const entry = value as Record<string, unknown>;
  const outcome = OUTCOMES.find((known) => known === entry['outcome']);
  const { run, at, seconds, isPass, code, subject } = entry;
  if (outcome === undefined || typeof run !== 'string' || typeof at !== 'string') return [];
  if (typeof seconds !== 'number' || !Number.isFinite(seconds) || typeof isPass !== 'boolean')
    return [];
  const text = (given: unknown): string | undefined =>
    typeof given === 'string' ? shorten(given, MAX_TEXT_CHARS) : undefined;
  const [knownCode, knownSubject] = [text(code), text(subject)];
  return [
    {
      run: shorten(run, MAX_TEXT_CHARS),
      at: shorten(at, MAX_TEXT_CHARS),
      outcome,
      isPass,
      seconds,
      ...(knownCode === undefined ? {} : { code: knownCode }),
      ...(knownSubject === undefined ? {} : { subject: knownSubject }),
    },
  ];
}

/** "🔴 5m 02s `owner-missing` (`Widget db`)". */
export function teardownWords(entry: Teardown): Words {
  const { code, subject } = entry;
  if (code === undefined) return briefWords(entry);
  const where: Words = subject === undefined ? [] : [' (', name(subject), ')'];
  return [...markAndTime(entry), ' ', name(code), ...where];
}

/** "🔴 5m 02s stuck", "✅ 38 s". */
function briefWords(entry: Teardown): Words {
  return entry.outcome === 'deleted'
    ? markAndTime(entry)
    : [...markAndTime(entry), ` ${entry.outcome}`];
}

function markAndTime({ outcome, isPass, seconds }: Teardown): Words {
  return [`${markOf(outcome, isPass ? 'pass' : 'fail')} ${formatDuration(seconds * 1_000)}`];
}

/** The last teardown that did not pass, before this one. */
export function lastFailure(history: readonly Teardown[]): Teardown | undefined {
  return history.findLast(({ isPass }) => !isPass);
}

/** All of them in one line; with their causes where there is room to read them. */
export function historyLine(history: readonly Teardown[], hasCauses: boolean): string {
  const words = hasCauses ? teardownWords : briefWords;
  const items = history.map((entry) => toMarkdown(words(entry)));
  return `${items.join(' · ')} ← this run`;
}
