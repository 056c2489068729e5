import {
  appendTeardown,
  decodeHistory,
  encodeHistory,
  historyLine,
  lastFailure,
  type Teardown,
  teardownOf,
  teardownWords,
} from './history.ts';
import { bodySections, footer, longestThatFits, type RenderContext } from './markdown.ts';
import { folded, toMarkdown } from './markup.ts';
import type { View } from './view.ts';

/** The API refuses 65,536; counted with marker and footer. */
export const MAX_COMMENT_CHARS = 60_000;

const MARKER = 'namespace-teardown-gate:v1';

/** The first line of our comments. `key` is hexadecimal, so nothing in it can end the HTML comment. */
export function markerLine(key: string): string {
  return `<!-- ${MARKER} key=${key} -->`;
}

/** Whether a comment is one of ours for this key. Quotes of it start with "> ", so only the start counts. */
export function hasMarker(body: string, key: string): boolean {
  return body.startsWith(markerLine(key));
}

/** What an earlier comment of ours remembers; empty when somebody has edited it away. */
export function historyIn(body: string): Teardown[] {
  const match = /^<!-- history=([A-Za-z0-9+/=]*) -->\r?$/m.exec(body.slice(0, 20_000));
  return match?.[1] === undefined ? [] : decodeHistory(match[1]);
}

/** The comment: red with the whole story, or green with one line about what had been wrong. */
export function renderComment(
  view: View,
  context: RenderContext,
  key: string,
  earlier: readonly Teardown[],
  maxChars = MAX_COMMENT_CHARS,
): string {
  const history = appendTeardown(earlier, teardownOf(view, context.runLabel ?? ''));
  const head = `${markerLine(key)}\n<!-- history=${encodeHistory(history)} -->`;
  return longestThatFits(
    (detail, isShortened) =>
      `${[
        head,
        ...bodySections(view, detail, view.commentHeadline),
        ...historySections(view, history),
        footer(view, context, isShortened),
      ].join('\n\n')}\n`,
    (text) => text.length <= maxChars,
  );
}

function historySections({ run: result }: View, history: readonly Teardown[]): string[] {
  if (history.length < 2) return [];
  if (result.verdict === 'fail') {
    return [folded('Teardowns of this pull request', historyLine(history, true))];
  }
  const failure = lastFailure(history);
  const before =
    failure === undefined
      ? ''
      : `Earlier on this pull request: ${toMarkdown(teardownWords(failure))}. `;
  return [`${before}Teardowns: ${historyLine(history, false)}`];
}
