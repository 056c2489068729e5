import { parseArgs } from 'node:util';
import { ActionError, describeError } from './base/errors.ts';
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

export const FORMATS = ['text', 'markdown', 'json'] as const;

/** The request of the arguments, as a value; `cli.ts` runs it. */
export type Command =
  /** Without any argument the help is printed as an error. */
  | { run: 'help'; isMistake: boolean; all: boolean }
  | { run: 'version' }
  | {
      run: 'gate';
      inputs: GivenInputs;
      format: (typeof FORMATS)[number];
      now: boolean;
    };

/** Options that are not inputs and need no value. */
const OWN_FLAGS: readonly string[] = ['now', 'help', 'version'];
const ONLY_IN_THE_ACTION = INPUT_ROWS.flatMap(([name, row]) => (row.onlyInAction ? [name] : []));
const IN_THE_TERMINAL = INPUT_ROWS.filter(([, row]) => !row.onlyInAction);

export function parseArguments(args: readonly string[]): Command {
  if (args.length === 0) return { run: 'help', isMistake: true, all: false };
  const { values, positionals } = parse(args);
  const [first, second] = positionals;
  const all = values['help'] === 'all' || (first === 'help' && second === 'all');
  if (all || first === 'help' || flag('help', values))
    return { run: 'help', isMistake: false, all };
  if (flag('version', values)) return { run: 'version' };
  const isForecast = first === 'forecast';
  if (isForecast) positionals.shift();
  const inputs: Partial<Record<InputName, string>> = isForecast ? { forecast: 'true' } : {};
  for (const [name] of IN_THE_TERMINAL) {
    const value = values[name];
    if (value === undefined) continue;
    if (value === '') throw usageError(`option --${name} needs a value`);
    inputs[name] = value;
  }
  const names = [...positionals, ...splitList(inputs.namespace ?? '')];
  return {
    run: 'gate',
    inputs: { ...inputs, namespace: names.join(',') },
    format: legalValue('option --format', values['format'] ?? FORMATS[0], FORMATS, HINT),
    now: flag('now', values),
  };
}

function parse(args: readonly string[]): {
  values: Record<string, string | undefined>;
  positionals: string[];
} {
  const names = IN_THE_TERMINAL.map(([name]) => name as string);
  const options = Object.fromEntries(
    [...names, 'format', ...OWN_FLAGS].map((name) => [
      name,
      { type: 'string' as const, ...(name === 'help' ? { short: 'h' } : {}) },
    ]),
  );
  try {
    const parsed = parseArgs({
      args: withFlagValues(args),
      options,
      allowPositionals: true,
      tokens: true,
    });
    // Otherwise the last value would count, and a namespace that was never read would pass as deleted.
    const given = parsed.tokens.flatMap((token) => (token.kind === 'option' ? token.name : []));
    const twice = given.find((name, index) => given.indexOf(name) !== index);
    if (twice !== undefined) throw usageError(`option --${twice} is given more than once`);
    return parsed;
  } catch (error) {
    if (error instanceof ActionError) throw error;
    const text = describeError(error).replace(/\s*\(ERR_PARSE_ARGS[^)]*\)/, '');
    const foreign = ONLY_IN_THE_ACTION.find((name) => text.includes(`'--${name}'`));
    if (foreign !== undefined) {
      throw usageError(
        `option --${foreign} exists only in the action: a terminal has no pull request`,
      );
    }
    throw usageError(text.replace(/\. To specify a positional.*$/s, ''));
  }
}

/** The words for a boolean in YAML 1.1 and in other tools. */
const BOOLEAN_WORD = /^(?:true|false|yes|no|on|off|y|n|1|0)$/i;

/**
 * Adds the value to flags: `--delete` becomes `--delete=true`. A word for a boolean behind a flag is its value, legal
 * or not: read as a namespace, `--delete no` would delete the namespace `no`.
 */
function withFlagValues(args: readonly string[]): string[] {
  const out: string[] = [];
  for (let index = 0; index < args.length; index++) {
    const arg = args[index] as string;
    if (arg === '--') return [...out, ...args.slice(index)];
    const option = arg === '-h' ? '--help' : arg;
    const legal = option.startsWith('--') ? valuesOfFlag(option.slice(2)) : undefined;
    if (legal === undefined) {
      out.push(arg);
      continue;
    }
    const next = args[index + 1] ?? '';
    const hasValue = legal.includes(next) || BOOLEAN_WORD.test(next);
    if (hasValue) index++;
    out.push(`${option}=${hasValue ? next : 'true'}`);
  }
  return out;
}

function valuesOfFlag(name: string): readonly string[] | undefined {
  if (name === 'help') return [...YES_OR_NO, 'all'];
  if (OWN_FLAGS.includes(name)) return YES_OR_NO;
  const row: InputRow | undefined = INPUT_ROWS.find(([input]) => input === name)?.[1];
  return row?.default === 'false' && !row.onlyInAction ? row.legal : undefined;
}

/** Reports whether a flag that is not an input is set. Throws for an illegal value. */
function flag(name: string, { [name]: value }: Record<string, string | undefined>): boolean {
  return value !== undefined && legalValue(`option --${name}`, value, YES_OR_NO, HINT) === 'true';
}

const HINT = '`npx namespace-teardown-gate --help all` lists all options.';

function usageError(message: string): ActionError {
  return new ActionError('invalid-input', message, HINT);
}

/** Exit codes of the process. */
export const EXIT_CODES = { passed: 0, failed: 1, couldNotTell: 2, usage: 3 } as const;

/** Column at which descriptions begin in the help, and its width: that of a small terminal. */
const COLUMN = 26;
const WIDTH = 80;

/** Returns an option with its description, wrapped. */
function optionLines(option: string, text: string): string {
  const lines = text.match(new RegExp(`.{1,${WIDTH - COLUMN}}(?: |$)`, 'g')) ?? [];
  const wrapped = lines.map((line) => line.trimEnd()).join(`\n${' '.repeat(COLUMN)}`);
  const start = `  --${option}`;
  const isLong = start.length + 2 > COLUMN;
  return `${isLong ? `${start}\n${' '.repeat(COLUMN)}` : start.padEnd(COLUMN)}${wrapped}\n`;
}

const FORMAT_HELP = optionLines(`format ${FORMATS[0]}`, `What to print: ${FORMATS.join(', ')}`);

/** Headings of `--help all`, by the first option below them. */
const GROUPS: Partial<Record<InputName, string>> = {
  selector: 'What to wait for\n',
  kubeconfig: 'Which cluster\n',
  'report-dir': `What to write\n${FORMAT_HELP}`,
  'force-finalize': 'Force-finalize (off by default; read the documentation first)\n',
};

function optionHelp([name, row]: [InputName, InputRow]): string {
  const isFlag = row.default === 'false';
  const choices = choicesOf(row);
  const value = isFlag
    ? choices.slice(2).map((choice) => `[=${choice}]`)
    : ` ${row.default || row.value}`;
  const legal = isFlag || choices.length === 0 ? '' : `: ${choices.join(', ')}`;
  return optionLines(`${name}${value}`, `${row.description}${legal}`);
}

const USAGE = `namespace-teardown-gate waits until Kubernetes namespaces are deleted. If a
deletion hangs, it explains what holds the namespace and what to do.

Usage
  npx namespace-teardown-gate NAMESPACE… [OPTION…]  wait, then explain
  npx namespace-teardown-gate NAMESPACE… --now      explain at once
  npx namespace-teardown-gate --terminating --now   explain the whole cluster
  npx namespace-teardown-gate forecast NAMESPACE…   would the deletion hang?
`;

const EXIT_CODES_HELP = `
Exit codes: 0 passed, 1 failed, 2 inconclusive or could not work, 3 wrong usage
`;

const OPTION_ROWS = IN_THE_TERMINAL.filter(([name]) => name !== 'namespace');

/** The text of `--help`: one screen with the common options. */
export const HELP = `${USAGE}
Common options
${OPTION_ROWS.map((row) => (row[1].isCommon ? optionHelp(row) : '')).join('')}${FORMAT_HELP}
--help all lists every option, such as those for forcing.
${EXIT_CODES_HELP}`;

/** The text of `--help all`. */
export const FULL_HELP = `${USAGE}${OPTION_ROWS.map((row) => {
  const heading = GROUPS[row[0]];
  return `${heading === undefined ? '' : `\n${heading}`}${optionHelp(row)}`;
}).join('')}${EXIT_CODES_HELP}`;
