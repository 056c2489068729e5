import { codeHtml, plainText, shorten } from '../base/text.ts';

const MAX_COMMAND_CHARS = 4_000;

/** A table whose cells are Markdown already; every cell must be one line. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(header), `|${' --- |'.repeat(header.length)}`, ...rows.map(line)].join('\n');
}

/** Something to copy. A fence where that is safe, since GitHub gives it a copy button and colours. */
export function codeBlock(language: 'sh' | 'yaml', lines: readonly string[], indent = ''): string {
  const safe = lines.map((line) => shorten(plainText(line), MAX_COMMAND_CHARS));
  const isOrdinary = safe.every((line) => /^[ -~]*$/.test(line) && !/[`<]/.test(line));
  const block = isOrdinary
    ? [`\`\`\`${language}`, ...safe, '```']
    : // One line, whose entities leave nothing to parse.
      [`<pre>${safe.map((line) => codeHtml(line, MAX_COMMAND_CHARS)).join('&#10;')}</pre>`];
  return block.map((line) => `${indent}${line}`).join('\n');
}

/** `title` is Markdown of one line; blank lines around the content let Markdown work inside. */
export function folded(title: string, content: string): string {
  return `<details><summary>${title}</summary>\n\n${content}\n\n</details>`;
}

export function bullets(lines: readonly string[]): string {
  return lines.map((line) => `- ${line}`).join('\n');
}
