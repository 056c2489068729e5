import { parseArgs } from 'node:util';
import { ActionError, describeError } from './base/errors.ts';
import { INPUT_DEFAULTS, type InputName, list } from './inputs.ts';

export const FORMATS = ['text', 'markdown', 'json'] as const;
export const STATS_FORMATS = ['text', 'markdown', 'csv'] as const;

/** What the arguments ask for, as a value; running it is the terminal's. */
export type Command =
  /** Of nothing but the name of the program, it is a mistake. */
  | { run: 'help'; isMistake: boolean }
  | { run: 'version' }
  | { run: 'stats'; files: string[]; format: (typeof STATS_FORMATS)[number] }
  | {
      run: 'gate';
      inputs: Partial<Record<InputName, string>>;
      format: (typeof FORMATS)[number];
      now: boolean;
    };

/** These concern the pull request of a workflow run, which a terminal does not have. */
const ONLY_IN_THE_ACTION: readonly string[] = [
  'comment',
  'github-token',
  'pr-number',
  'comment-key',
  'matrix',
];
const FLAGS: readonly string[] = [
  'delete',
  'fail-fast',
  'force-pods',
  'forecast',
  'terminating',
  'fail-on-left-behind',
  'now',
  'help',
  'version',
];

export function parseArguments(args: readonly string[]): Command {
  if (args.length === 0) return { run: 'help', isMistake: true };
  const { values, positionals } = parse(args);
  if (flag('help', values)) return { run: 'help', isMistake: false };
  if (flag('version', values)) return { run: 'version' };
  if (positionals[0] === 'stats') {
    const files = positionals.slice(1);
    if (files.length === 0) throw usage('"stats" needs at least one report.json file');
    return { run: 'stats', files, format: choice(values['format'], STATS_FORMATS, 'text') };
  }
  const isForecast = positionals[0] === 'forecast';
  if (isForecast) positionals.shift();
  const inputs: Partial<Record<InputName, string>> = isForecast ? { forecast: 'true' } : {};
  for (const name of Object.keys(INPUT_DEFAULTS) as InputName[]) {
    const value = values[name];
    if (value === undefined) continue;
    if (value === '') throw usage(`option --${name} needs a value`);
    inputs[name] = value;
  }
  const names = [...positionals, ...list(inputs.namespace ?? '')];
  return {
    run: 'gate',
    inputs: { ...inputs, namespace: names.join(',') },
    format: choice(values['format'], FORMATS, 'text'),
    now: flag('now', values),
  };
}

function parse(args: readonly string[]): {
  values: Record<string, string | undefined>;
  positionals: string[];
} {
  const names = Object.keys(INPUT_DEFAULTS).filter((name) => !ONLY_IN_THE_ACTION.includes(name));
  const options = Object.fromEntries(
    [...names, 'format', 'now', 'help', 'version'].map((name) => [
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
    // The last one would win, and a namespace that nobody looked at would pass for gone.
    const given = parsed.tokens.flatMap((token) => (token.kind === 'option' ? token.name : []));
    const twice = given.find((name, index) => given.indexOf(name) !== index);
    if (twice !== undefined) throw usage(`option --${twice} is given more than once`);
    return parsed;
  } catch (error) {
    if (error instanceof ActionError) throw error;
    const text = describeError(error).replace(/\s*\(ERR_PARSE_ARGS[^)]*\)/, '');
    const foreign = ONLY_IN_THE_ACTION.find((name) => text.includes(`'--${name}'`));
    if (foreign !== undefined) {
      throw usage(`option --${foreign} exists only in the action: a terminal has no pull request`);
    }
    throw usage(text.replace(/\. To specify a positional.*$/s, ''));
  }
}

/** `--delete` is `--delete=true`; `--delete false` is understood too, not taken for a namespace. */
function withFlagValues(args: readonly string[]): string[] {
  const out: string[] = [];
  for (let index = 0; index < args.length; index++) {
    const arg = args[index] as string;
    if (arg === '--') return [...out, ...args.slice(index)];
    const isFlag = arg === '-h' || (arg.startsWith('--') && FLAGS.includes(arg.slice(2)));
    if (!isFlag) {
      out.push(arg);
      continue;
    }
    const next = args[index + 1];
    const hasValue =
      next === 'true' || next === 'false' || (arg === '--delete' && next === 'ordered');
    out.push(`${arg === '-h' ? '--help' : arg}=${hasValue ? next : 'true'}`);
    if (hasValue) index++;
  }
  return out;
}

function choice<T extends string>(value: string | undefined, legal: readonly T[], fallback: T): T {
  if (value === undefined) return fallback;
  const found = legal.find((item) => item === value);
  if (found === undefined) {
    throw usage(`option --format is "${value}"; use one of: ${legal.join(', ')}`);
  }
  return found;
}

/** Flags that are no inputs, so nobody else judges their value. */
function flag(name: string, values: Record<string, string | undefined>): boolean {
  const value = values[name];
  if (value === undefined || value === 'true' || value === 'false') return value === 'true';
  throw usage(`option --${name} is "${value}"; use one of: true, false`);
}

function usage(message: string): ActionError {
  return new ActionError('invalid-input', message, {
    hint: 'namespace-teardown-gate --help lists what there is.',
  });
}

/** Of the process, as the help says. */
export const EXIT = { passed: 0, failed: 1, couldNotTell: 2, usage: 3 } as const;

export const HELP = `namespace-teardown-gate waits until Kubernetes namespaces are really gone and,
when one hangs, says what holds it and who should have dealt with it.

Usage
  namespace-teardown-gate NAMESPACE… [OPTION…]     wait, then explain
  namespace-teardown-gate NAMESPACE… --now         do not wait: explain at once
  namespace-teardown-gate forecast NAMESPACE…      change nothing: say what would hold it (as --forecast)
  namespace-teardown-gate stats FILE…              which causes hang how often, from report.json files

What to wait for
  --selector LABELS          also every namespace with these labels
  --terminating              also every namespace that is terminating (with a selector: both must hold)
  --terminating-for 10m      of those, the ones that are terminating for at least so long
  --delete                   ask for the deletion first; --delete=ordered: before that, delete inside the
                             namespace what needs a living controller to go
  --order-timeout 2m30s      how long that may take; half of the timeout unless given
  --timeout 5m               90s, 10m, 1h
  --fail-fast                stop early once the hang is proven permanent
  --fail-on not-deleted      not-deleted, stuck, never
  --if-not-found ok          ok, error
  --fail-on-left-behind      fail when something outside of a namespace that went still points into it

Which cluster (otherwise as kubectl: KUBECONFIG, ~/.kube/config, in-cluster)
  --kubeconfig FILE
  --context NAME

What to write
  --format text              text, markdown, json (stats: text, markdown, csv); goes to standard output
  --report-dir DIR           also write report.json and report.md there

Force-finalize: off unless asked for; read the documentation first
  --force-finalize off       off, plan, objects, namespace
  --force-namespaces LIST    patterns of namespaces that may be forced
  --force-label KEY=VALUE    label that the namespace must carry as well
  --force-finalizers LIST    patterns of finalizers that may be removed
  --force-pods               also delete overdue pods whose node is gone
  --force-orphans refuse     refuse, accept

Exit codes: 0 the gate passed, 1 it failed, 2 inconclusive or could not work, 3 wrong usage.
`;
