import { maskSecretShapes } from './redact.ts';

// Text from elsewhere leaves the program only through these encodings. Encode at the last moment; never store it encoded.

/** What prints as something else than it is: control, format and bidirectional characters, and all that shows as nothing. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

export function plainText(text: string): string {
  return text.replace(UNSAFE, ' ');
}

/** A command anywhere in a line: `##[error]` (GitHub, Gitea, Azure Pipelines), `##vso[task.…]` (Azure), `##teamcity[…]`. */
const IN_LINE = /##(\w*)\[/g;
/** The start of a line that is a command: `::error::` (GitHub, Gitea), `--- title` and its like (Buildkite). */
const AT_START = /^(\s*)(:(?=:)|-(?=-- )|\+(?=\+\+ )|~(?=~~ )|\^(?=\^\^ ))/;

/** Returns one line that no runner interprets as a command. Those of GitLab and Jenkins contain control characters. */
export function logLine(text: string): string {
  return plainText(text).replace(IN_LINE, '# #$1[').replace(AT_START, '$1$2 ');
}

export function logLines(text: string): string {
  return text.replace(/[^\r\n]+/g, (line) => logLine(line));
}

/** Writes JSON that prints as `logLine` does and remains the same value. A line of JSON never starts with a text. */
export function printableJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent)
    .replace(UNSAFE, (char) => {
      const units = char.split('').map((unit) => unit.charCodeAt(0).toString(16).padStart(4, '0'));
      return char === '\n' ? char : units.map((unit) => `\\u${unit}`).join('');
    })
    .replace(IN_LINE, '##$1\\u005b');
}

/** Cuts a text by code points, so that no emoji is split, and marks the cut. */
export function shorten(text: string, maxChars: number): string {
  // Fast path: splitting 100,000 characters into code points is slow, and most texts are short.
  if (text.length <= maxChars) return text;
  const chars = Array.from(text.slice(0, maxChars * 2));
  return chars.length <= maxChars ? text : `${chars.slice(0, maxChars - 1).join('')}…`;
}

/**
 * Shortens a quotation to one line: first rulers, addresses and resource ids, then its middle, because nested errors begin
 * with what was tried and end with the cause.
 */
export function shortQuote(text: string, maxChars = 300): string {
  const whole = text
    .replace(/([-=*_])\1{9,}/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  if (whole.length <= maxChars) return whole;
  const line = maskSecretShapes(whole).replace(/[!-~]{64,}/g, (one) =>
    one.includes('/') ? `${one.slice(0, 32)}…${one.slice(-24)}` : one,
  );
  if (line.length <= maxChars) return line;
  const half = Math.floor((maxChars - 3) / 2);
  const begin = Array.from(line.slice(0, maxChars)).slice(0, half).join('');
  const end = Array.from(line.slice(-maxChars)).slice(-half).join('');
  return `${begin.replace(/ \S{0,40}$/, '')} … ${end.replace(/^\S{0,40} /, '')}`;
}

export function upperFirst(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function lowerFirst(text: string): string {
  return text.replace(/^[A-Z](?=[a-z]*\b)/, (letter) => letter.toLowerCase());
}

/** Reports whether a version such as "v1.33.2+k3s1" is at least `major.minor`. An unknown version is not. */
export function isVersionFrom(version: string, major: number, minor: number): boolean {
  const [, first, second] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  return Number(first) > major || (Number(first) === major && Number(second) >= minor);
}

/**
 * Encodes text for summaries and comments: entities are decoded after Markdown was parsed, and GitHub's filters skip
 * `<code>`. Only addresses are searched later, so "@" is cut off (cmark-gfm, extensions/autolink.c, postprocess_text).
 */
export function codeHtml(text: string, maxChars = 300): string {
  const encoded = Array.from(shorten(plainText(text), maxChars)).map((char) => {
    if (/[A-Za-z0-9 ,/=+-]/.test(char)) return char;
    return `${char === '@' ? '<wbr>' : ''}&#${char.codePointAt(0)};`;
  });
  return `<code>${encoded.join('')}</code>`;
}

export function shellQuote(word: string): string {
  return /^[A-Za-z0-9._:/=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Matches `*` with any text. A regular expression could backtrack endlessly on hostile names. */
export function matchesGlob(pattern: string, text: string): boolean {
  let at = pattern.indexOf('*');
  if (at < 0) return pattern === text;
  if (!text.startsWith(pattern.slice(0, at))) return false;
  const parts = pattern.slice(at + 1).split('*');
  const last = parts.pop() ?? '';
  for (const part of parts) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return text.length - last.length >= at && text.endsWith(last);
}

/** `RegExp.escape` needs Node 24. */
export function escapeForRegExp(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}

export function listNames(names: readonly string[], most = 5): string {
  const more = names.length - most;
  return names.slice(0, most).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

/** "a, b and c"; beyond `most` the rest is counted. */
export function listWords(items: readonly string[], most = items.length): string {
  const left = items.length - most;
  const all = left > 0 ? [...items.slice(0, most), `${formatCount(left)} more`] : items;
  return all.length < 2 ? all.join('') : `${all.slice(0, -1).join(', ')} and ${all.at(-1)}`;
}

/** Formats 20000 as "20,000". Not by locale: a report must not depend on the machine that wrote it. */
export function formatCount(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',');
}
