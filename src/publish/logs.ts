import * as core from '@actions/core';
import type { Log } from '../base/log.ts';
import type { Redactor } from '../base/redact.ts';
import { logLine, shorten } from '../base/text.ts';

/** GitHub cuts an annotation at 4,096 characters; nobody reads that far in one. */
const MAX_ANNOTATION_CHARS = 500;

/** The step log. The toolkit escapes line ends in commands, but lets `##[command]` through: we do not. */
export function createActionLog(redactor: Redactor): Log {
  const safe = (text: string): string => logLine(redactor.redact(text));
  const annotation = (text: string): string => shorten(safe(text), MAX_ANNOTATION_CHARS);
  const properties = (title: string | undefined): core.AnnotationProperties =>
    title === undefined ? {} : { title: safe(title) };
  return {
    line: (text) => core.info(safe(text)),
    group: (title, lines) => {
      core.startGroup(safe(title));
      for (const line of lines) core.info(safe(line));
      core.endGroup();
    },
    notice: (message, title) => core.notice(annotation(message), properties(title)),
    warning: (message, title) => core.warning(annotation(message), properties(title)),
    error: (message, title) => core.error(annotation(message), properties(title)),
    debug: (text) => core.debug(safe(text)),
  };
}
