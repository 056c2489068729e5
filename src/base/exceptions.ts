/** Puts the lines of an exception together with the log line above them, which names the object. */

const WRITTEN_AT = /^\S+T\S+Z /;
const TRACEBACK = /^Traceback \(most recent call last\)/;
/** `java.lang.IllegalStateException: no session`; what frames follow is one. */
const EXCEPTION = /^(?:[\w$]+\.){0,20}[A-Z][\w$]*[a-z][\w$]*(?::|$)/;
const FRAME = /^\s+(?:at \S|---> )/;
/** The cause of an exception, in Java, .NET and JavaScript. What Java indents belongs to a suppressed exception. */
const CAUSE = /^(?:Caused by: |\s+---> |\s+\[cause\]: )(.*)/;
/** Lines between the parts of one exception. "Wrapped by" follows a cause that is printed first. */
const BETWEEN = /^$|^During handling |^The above exception |^Wrapped by: |^\s/;

/**
 * Replaces the lines of each exception by its cause, which it moves to the log line above. The cause is the last `Caused
 * by`, whatever headline stands before it; in Python, the exception that was raised last.
 */
export function withExceptions(written: readonly string[]): string[] {
  const lines = withMessages(written);
  const words = lines.map((line) => line.replace(WRITTEN_AT, ''));
  const kept: string[] = [];
  let cause: string | undefined;
  let isInside = false;
  let isTraceback = false;
  const end = (): void => {
    if (cause !== undefined) kept.push(`${kept.pop() ?? ''} ${cause}`);
    cause = undefined;
    isInside = false;
  };
  for (const [index, line] of lines.entries()) {
    const text = words[index] ?? '';
    const isHeadline = EXCEPTION.test(text) && FRAME.test(words[index + 1] ?? '');
    const [, named] = CAUSE.exec(text) ?? [];
    if (TRACEBACK.test(text)) {
      isInside = true;
      isTraceback = true;
    } else if (isTraceback) {
      if (BETWEEN.test(text)) continue;
      cause = text;
      isTraceback = false;
    } else if (named !== undefined || isHeadline) {
      cause = named ?? text;
      isInside = true;
    } else if (FRAME.test(text)) {
      isInside = true;
    } else if (!isInside || !BETWEEN.test(text)) {
      end();
      kept.push(line);
    }
  }
  end();
  return kept;
}

/** The first line of .NET's console logger, with level, category and number; the message is indented below. */
const CATEGORY = /^(?:trce|dbug|info|warn|fail|crit): \S+\[\d+\]\s*$/;

/** Puts a message that stands below its level behind it, without the frames of an exception. */
function withMessages(lines: readonly string[]): string[] {
  const joined: string[] = [];
  let isOpen = false;
  for (const line of lines) {
    const text = line.replace(WRITTEN_AT, '');
    if (!isOpen || !/^\s{6}/.test(text)) {
      isOpen = CATEGORY.test(text);
      joined.push(line);
    } else if (!FRAME.test(text)) joined.push(`${joined.pop()?.trimEnd()} ${text.trim()}`);
  }
  return joined;
}
