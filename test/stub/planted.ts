import { randomBytes } from 'node:crypto';

/** In every secret of the tests, at both ends, so that halves and base64 of it are found too. */
const MARK = 'pl4nt3d';

let count = 0;

/** Returns a new secret, long enough for the gate to treat it as one. */
export function plantedSecret(): string {
  count++;
  return `${MARK}${randomBytes(6).toString('hex')}x${count}x${MARK}`;
}

/** The mark as it is, and its base64 at each of the three offsets in a group of three bytes. */
const FORMS = [
  MARK,
  ...[0, 1, 2].map((offset) => {
    const encoded = Buffer.from(`${'-'.repeat(offset)}${MARK}`).toString('base64');
    // Only the characters that do not depend on the bytes before and after.
    const end = Math.floor((8 * (offset + MARK.length)) / 6);
    return encoded.slice(Math.ceil((8 * offset) / 6), end);
  }),
];

/** Returns the text around each planted secret, and around each of `more`, that it contains. */
export function leaksIn(text: string, more: readonly string[] = []): string[] {
  return [...FORMS, ...more].flatMap((form) => {
    const at = text.indexOf(form);
    return at < 0 ? [] : [text.slice(Math.max(0, at - 60), at + form.length + 60)];
  });
}

/** Removes the `add-mask` commands, which the runner does not show in the log. */
export function withoutMasks(log: string): string {
  return log
    .split('\n')
    .filter((line) => !line.startsWith('::add-mask::'))
    .join('\n');
}
