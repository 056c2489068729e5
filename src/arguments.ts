import { InputError } from './base/errors.ts';
import {
  choicesOf,
  type GivenInputs,
  INPUT_ROWS,
  type InputName,
  type InputRow,
  legalValue,
  splitList,
  YES_OR_NO,
} from './inputs.ts';

const FORMATS = ['text', 'markdown', 'json'] as const;

/** `cli.ts` runs it. */
export type Command =
  /** Without any argument the help is printed as an error. */
  | { run: 'help'; isMistake: boolean }
  | { run: 'version' }
  | { run: 'gate'; inputs: GivenInputs; format: (typeof FORMATS)[number]; now: boolean };

const IN_THE_TERMINAL = INPUT_ROWS.filter(([, row]) => !row.onlyInAction);

/** The legal values; any text if there is no list. Those with `true` are flags, which need no value. */
const OPTIONS = new Map<string, readonly string[] | undefined>([
  ...IN_THE_TERMINAL.map(([name, { legal }]) => [name, legal] as const),
  ['format', FORMATS],
  ...['now', 'version', 'help'].map((name) => [name, YES_OR_NO] as const),
]);

export function parseArguments(args: readonly string[]): Command {
  if (args.length === 0) return { run: 'help', isMistake: true };
  const { values, names } = parse(args);
  const isSet = (name: 'help' | 'now' | 'version'): boolean =>
    legalValue(`option --${name}`, values[name] ?? 'false', YES_OR_NO, HINT) === 'true';
  if (names[0] === 'help' || isSet('help')) return { run: 'help', isMistake: false };
  if (isSet('version')) return { run: 'version' };
  const isForecast = names[0] === 'forecast';
  const inputs: Partial<Record<InputName, string>> = isForecast ? { forecast: 'true' } : {};
  for (const [name] of IN_THE_TERMINAL) {
    const value = values[name];
    if (value === '') throw usageError(`option --${name} needs a value`);
    if (value !== undefined) inputs[name] = value;
  }
  const targets = [...names.slice(isForecast ? 1 : 0), ...splitList(inputs.namespace ?? '')];
  return {
    run: 'gate',
    inputs: { ...inputs, namespace: targets.join(',') },
    format: legalValue('option --format', values['format'] ?? FORMATS[0], FORMATS, HINT),
    now: isSet('now'),
  };
}

/** The words for a boolean in YAML 1.1 and in other tools. */
const BOOLEAN_WORD = /^(?:true|false|yes|no|on|off|y|n|1|0)$/i;

/** A word for a boolean behind a flag is its value: read as a namespace, `--delete no` would delete the namespace `no`. */
function parse(args: readonly string[]) {
  const values: Record<string, string | undefined> = {};
  const names: string[] = [];
  for (let index = 0; index < args.length; index++) {
    const arg = args[index] as string;
    if (arg === '--') return { values, names: [...names, ...args.slice(index + 1)] };
    const [, name, given] = /^--([^=]+)(?:=(.*))?$/s.exec(arg === '-h' ? '--help' : arg) ?? [];
    if (name === undefined) {
      if (arg.startsWith('-')) throw usageError(`unknown option ${arg}; namespaces need none`);
      names.push(arg);
      continue;
    }
    if (!OPTIONS.has(name)) {
      const isInput = INPUT_ROWS.some(([input]) => input === name);
      const only = `option --${name} exists only in the action: a terminal has no pull request`;
      throw usageError(isInput ? only : `unknown option --${name}`);
    }
    // Otherwise the last value would count, and a namespace that was never read would pass as deleted.
    if (values[name] !== undefined) throw usageError(`option --${name} is given more than once`);
    const legal = OPTIONS.get(name);
    const isFlag = legal?.includes('true') === true;
    const next = args[index + 1] ?? '';
    const isValue = isFlag ? legal.includes(next) || BOOLEAN_WORD.test(next) : !/^-/.test(next);
    if (given === undefined && isValue) index++;
    values[name] = given ?? (isValue ? next : isFlag ? 'true' : '');
  }
  return { values, names };
}

const HINT = '`npx namespace-teardown-gate --help` lists all options.';

function usageError(message: string): InputError {
  return new InputError(message, HINT);
}

export const EXIT_CODES = { passed: 0, failed: 1, couldNotTell: 2, usage: 3 } as const;

/** Column at which descriptions begin in the help. With their 54 characters it is that of a small terminal. */
const COLUMN = 26;

function optionHelp([name, row]: readonly [string, InputRow]): string {
  const isFlag = row.default === 'false';
  const choices = choicesOf(row);
  const value = isFlag
    ? choices.slice(2).map((choice) => `[=${choice}]`)
    : ` ${row.default || row.value}`;
  const legal = isFlag || choices.length === 0 ? '' : `: ${choices.join(', ')}`;
  const margin = `\n${' '.repeat(COLUMN)}`;
  const start = `  --${name}${value}`;
  const lines = `${row.description}${legal}`.match(/.{1,54}(?: |$)/g) ?? [];
  const text = lines.map((line) => line.trimEnd()).join(margin);
  return `${start.length + 2 > COLUMN ? `${start}${margin}` : start.padEnd(COLUMN)}${text}\n`;
}

const FORMAT_ROW = { description: 'What to print', default: FORMATS[0], legal: FORMATS };

export const HELP = `namespace-teardown-gate waits until Kubernetes namespaces are deleted. If a
deletion hangs, it explains what holds the namespace and what to do.

Usage
  npx namespace-teardown-gate NAMESPACE… [OPTION…]  wait, then explain
  npx namespace-teardown-gate NAMESPACE… --now      explain at once
  npx namespace-teardown-gate --terminating --now   explain the whole cluster
  npx namespace-teardown-gate forecast NAMESPACE…   would the deletion hang?

Options
${[...IN_THE_TERMINAL.slice(1), ['format', FORMAT_ROW] as const].map(optionHelp).join('')}
Exit codes: 0 passed, 1 failed, 2 inconclusive or could not work, 3 wrong usage
`;
