/**
 * The only ways out for text that somebody else wrote: names, finalizers, condition messages, event
 * payloads, HTTP answers. Encode at the last moment; encoded text is never stored.
 */

// biome-ignore lint/suspicious/noControlCharactersInRegex: removing control characters is the point
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Control, bidi and zero-width characters become spaces: what is left prints as it reads. */
export function plainText(text: string): string {
  return text.replace(UNSAFE, ' ');
}

/** One line that the runner cannot take for a command, however the cluster words it. */
export function logLine(text: string): string {
  return plainText(text)
    .replaceAll('##[', '# #[')
    .replace(/^\s*::/, ': :');
}

/** The same for a whole text, which keeps its own line breaks. */
export function logLines(text: string): string {
  return text.replace(/[^\r\n]+/g, (line) => logLine(line));
}

/** JSON that stays the same value: nothing but an old command can be in the middle of a line. */
export function logJson(json: string): string {
  return json.replaceAll('##[', '##\\u005b');
}

/** Cuts by code point, so that no emoji is halved, and says that it was cut. */
export function shorten(text: string, maxChars: number): string {
  // Most texts are short; splitting 100,000 characters into code points is only for those that are not.
  if (text.length <= maxChars) return text;
  const chars = Array.from(text.slice(0, maxChars * 2));
  return chars.length <= maxChars ? text : `${chars.slice(0, maxChars - 1).join('')}…`;
}

export function upperFirst(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Whether a version such as "v1.33.2+k3s1" is at least this one; unknown is not. */
export function isVersionFrom(version: string, major: number, minor: number): boolean {
  const [, first, second] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  return Number(first) > major || (Number(first) === major && Number(second) >= minor);
}

/**
 * For summaries and comments. Entities are decoded after Markdown was parsed, so nothing in them is
 * parsed again; GitHub's mention and reference filters skip `<code>`. The dot is encoded on purpose:
 * "www.example" would become a link.
 */
export function codeHtml(text: string, maxChars = 300): string {
  const encoded = Array.from(shorten(plainText(text), maxChars)).map((char) =>
    /[A-Za-z0-9 ,/=+-]/.test(char) ? char : `&#${char.codePointAt(0)};`,
  );
  return `<code>${encoded.join('')}</code>`;
}

/** A word for a shell command in a remedy. */
export function shellQuote(word: string): string {
  return /^[A-Za-z0-9._:/=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/**
 * `*` stands for any text, also for none and for `/`; everything else for itself, from end to end. Looks
 * for the parts one after the other: a regular expression would backtrack for ever on hostile names.
 */
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

/** Returns an expression that matches this text. `RegExp.escape` needs Node 24. */
export function escapeForRegExp(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}
