import { randomBytes } from 'node:crypto';

/** Secrets that can be recognised wherever they turn up, whole, in halves and in base64. */
const MARK = 'pl4nt3d';

let count = 0;

/** Another one each time; long enough to be taken for a secret. */
export function plantedSecret(): string {
  count++;
  return `${MARK}${randomBytes(6).toString('hex')}x${count}x${MARK}`;
}

/** As it is, and as base64 has it in each of the three places it can have in a group of bytes. */
const FORMS = [
  MARK,
  ...[0, 1, 2].map((offset) => {
    const encoded = Buffer.from(`${'-'.repeat(offset)}${MARK}`).toString('base64');
    // Only the characters that do not depend on the neighbours.
    const end = Math.floor((8 * (offset + MARK.length)) / 6);
    return encoded.slice(Math.ceil((8 * offset) / 6), end);
  }),
];

/** Around each planted secret, and each of `more`, that is in the text. */
export function leaksIn(text: string, more: readonly string[] = []): string[] {
  return [...FORMS, ...more].flatMap((form) => {
    const at = text.indexOf(form);
    return at < 0 ? [] : [text.slice(Math.max(0, at - 60), at + form.length + 60)];
  });
}

/** What the runner hides by itself is the log's `add-mask` lines: they are commands, not text. */
export function withoutMasks(log: string): string {
  return log
    .split('\n')
    .filter((line) => !line.startsWith('::add-mask::'))
    .join('\n');
}
