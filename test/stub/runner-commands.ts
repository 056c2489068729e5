/**
 * The commands of the runners that the documentation names. Those of GitHub's runner, as its code parses them (actions/runner, ActionCommand.cs and
 * ActionCommandManager.cs): the form `::name props::data` after leading white space, else the form
 * `##[name props]data` anywhere in the line. Names are compared without regard to case.
 */
const REGISTERED = new Set([
  'add-mask',
  'stop-commands',
  'error',
  'warning',
  'notice',
  'debug',
  'group',
  'endgroup',
  'echo',
  'add-matcher',
  'remove-matcher',
  'set-output',
  'save-state',
  'set-env',
  'add-path',
  'internal-set-repo-path',
]);

const PREFIX_NEW = '::';
const PREFIX_OLD = '##[';

/**
 * Commands of others. The agent of Azure Pipelines and TeamCity search the whole line (azure-pipelines-agent,
 * Command.cs); Buildkite reads its start (docs: managing log output); Jenkins's notes begin with
 * a control character.
 */
const OTHERS = [
  '##vso\\[',
  '##teamcity\\[',
  '^(?:---|\\+\\+\\+|~~~|\\^\\^\\^) ',
  '\u001b\\[8mha:',
].map((start) => new RegExp(start, 'i'));

/** The name of the command in a line; `undefined` for plain text. */
function commandIn(line: string): string | undefined {
  return newForm(line) ?? oldForm(line) ?? OTHERS.find((other) => other.test(line))?.source;
}

function newForm(line: string): string | undefined {
  // String.TrimStart() of .NET removes all Unicode white space.
  const text = line.replace(/^[\p{White_Space}]+/u, '');
  if (!text.startsWith(PREFIX_NEW)) return undefined;
  const end = text.indexOf(PREFIX_NEW, PREFIX_NEW.length);
  return end < 0 ? undefined : registered(text.slice(PREFIX_NEW.length, end));
}

function oldForm(line: string): string | undefined {
  const start = line.indexOf(PREFIX_OLD);
  const end = start < 0 ? -1 : line.indexOf(']', start);
  return end < 0 ? undefined : registered(line.slice(start + PREFIX_OLD.length, end));
}

function registered(info: string): string | undefined {
  const space = info.indexOf(' ');
  const name = (space < 0 ? info : info.slice(0, space)).toLowerCase();
  return REGISTERED.has(name) ? name : undefined;
}

/** Every command in what a process has printed; a lone carriage return ends a line as well. */
export function commandsIn(output: string): string[] {
  return output.split(/\r\n|\r|\n/).flatMap((line) => commandIn(line) ?? []);
}
