/** A line of a step's log as the runner understands it. */
export type LogLine =
  | { kind: 'text'; text: string }
  | { kind: 'group'; text: string }
  | { kind: 'endgroup' }
  | { kind: 'error' | 'warning' | 'notice'; text: string; title: string | undefined }
  | { kind: 'debug'; text: string }
  /** Any other command that the runner would obey; the gate must not print one. */
  | { kind: 'command'; command: string; text: string };

const COMMANDS =
  'add-mask|stop-commands|error|warning|notice|debug|group|endgroup|echo|add-matcher|remove-matcher|set-output|save-state|set-env|add-path';
/** `::command properties::text` at the start of the trimmed line. */
const NEW_FORM = new RegExp(`^\\s*::(${COMMANDS})(?: (.*?))?::(.*)$`, 's');
/** `##[command properties]text` anywhere in the line. */
const OLD_FORM = new RegExp(`##\\[(${COMMANDS})(?: ([^\\]]*))?\\](.*)$`, 's');

/** Parses one line of output as the runner does (a lone carriage return ends a line as well). */
export function parseLogLine(line: string): LogLine {
  const match = NEW_FORM.exec(line) ?? OLD_FORM.exec(line);
  if (match === null) return { kind: 'text', text: line };
  const [, command = '', properties = '', data = ''] = match;
  const text = unescapeData(data);
  switch (command) {
    case 'error':
    case 'warning':
    case 'notice':
      return { kind: command, text, title: titleOf(properties) };
    case 'group':
    case 'debug':
      return { kind: command, text };
    case 'endgroup':
      return { kind: 'endgroup' };
    default:
      return { kind: 'command', command, text };
  }
}

export function parseLog(log: string): LogLine[] {
  const lines = log.split(/\r\n|\n|\r/);
  if (lines.at(-1) === '') lines.pop();
  return lines.map(parseLogLine);
}

function titleOf(properties: string): string | undefined {
  const title = properties.split(',').find((property) => property.startsWith('title='));
  return title === undefined
    ? undefined
    : unescapeData(title.slice('title='.length).replaceAll('%3A', ':').replaceAll('%2C', ','));
}

function unescapeData(text: string): string {
  return text.replaceAll('%0D', '\r').replaceAll('%0A', '\n').replaceAll('%25', '%');
}
