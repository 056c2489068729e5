/** `name=value` lines and `name<<delimiter` blocks of a GITHUB_OUTPUT, GITHUB_ENV or GITHUB_STATE file. */
export function parseFileCommands(text: string): Record<string, string> {
  const values: Record<string, string> = {};
  const lines = text.split(/\r?\n/);
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index] ?? '';
    if (line === '') continue;
    const equals = line.indexOf('=');
    const arrows = line.indexOf('<<');
    if (arrows >= 0 && (equals < 0 || arrows < equals)) {
      const end = lines.indexOf(line.slice(arrows + 2), index + 1);
      if (end < 0) throw new Error(`the block of "${line}" is not closed`);
      values[line.slice(0, arrows)] = lines.slice(index + 1, end).join('\n');
      index = end;
    } else if (equals >= 0) {
      values[line.slice(0, equals)] = line.slice(equals + 1);
    } else {
      throw new Error(`the runner refuses the line "${line}"`);
    }
  }
  return values;
}
