import { ActionError } from './base/errors.ts';
import { plainText, shorten } from './base/text.ts';
import { FAIL_ON, type ForcePolicy, IF_NOT_FOUND, type Policy } from './model/outcome.ts';

const COMMENT_MODES = ['off', 'on-failure', 'always'] as const;
const FORCE_MODES = ['off', 'plan', 'objects', 'namespace'] as const;
const FORCE_ORPHANS = ['refuse', 'accept'] as const;

export const YES_OR_NO = ['true', 'false'] as const;

const FLAG = { default: 'false', legal: YES_OR_NO } as const;

/** An input. An input that is not given has the text `default`; with the default `'false'` it is a flag in a terminal. */
export interface InputRow {
  /** Empty if the table has none. */
  default: string;
  /** Plain text without a full stop, for action.yml, the README and `--help all`. */
  description: string;
  /** `--help` lists only these inputs, `--help all` lists all. */
  isCommon?: true;
  legal?: readonly string[];
  /** Placeholder in the help for a value that is free text. */
  value?: string;
  /** The input concerns the pull request of a workflow run, which a terminal does not have. */
  onlyInAction?: true;
  /** Expression in action.yml that the runner replaces by the value. */
  fromRunner?: string;
}

/**
 * All inputs by their names in action.yml; the terminal has options of the same names. `npm run docs` generates action.yml,
 * `--help all` in docs/terminal.md and the tables of the README from this table.
 */
export const INPUTS = {
  namespace: {
    description: 'Names of the namespaces, separated by newline or comma',
    value: 'LIST',
  },
  selector: {
    description: 'Label selector: adds every namespace that matches at the start',
    isCommon: true,
    value: 'LABELS',
  },
  terminating: {
    ...FLAG,
    description:
      'Adds every namespace that is terminating at the start (with a selector: and matches it)',
    isCommon: true,
  },
  'terminating-for': {
    description: 'With terminating: only those terminating for at least this long',
    value: '10m',
  },
  delete: {
    default: 'false',
    legal: [...YES_OR_NO, 'ordered'],
    description:
      'Request the deletion first, then wait; ordered: first delete objects that need their controller',
    isCommon: true,
  },
  'order-timeout': {
    description:
      'With delete ordered: how long to wait for those objects; by default half of timeout',
    value: '3m',
  },
  forecast: {
    ...FLAG,
    description: 'Change nothing: report what would hold the namespaces',
  },
  timeout: {
    default: '5m',
    description: 'How long to wait in all, with a unit (90s, 10m, 1h)',
    isCommon: true,
  },
  'fail-fast': {
    ...FLAG,
    description: 'Stop before the timeout if waiting cannot end the hang (unchanged for 90 s)',
    isCommon: true,
  },
  'fail-on': {
    default: 'not-deleted',
    legal: FAIL_ON,
    description: 'Which outcomes fail the step',
    isCommon: true,
  },
  'if-not-found': {
    default: 'ok',
    legal: IF_NOT_FOUND,
    description: 'Whether a namespace that does not exist is an error',
  },
  'fail-on-left-behind': {
    ...FLAG,
    description: 'Whether objects left behind outside of the namespaces fail the step',
  },
  kubeconfig: {
    description: 'Path of a kubeconfig file; by default as in kubectl',
    isCommon: true,
    value: 'FILE',
  },
  context: {
    description: 'Context of the kubeconfig; by default its current context',
    isCommon: true,
    value: 'NAME',
  },
  'report-dir': {
    description:
      'Folder for report.json, report.md, report.xml (JUnit) and metrics.prom; by default, in the action, below RUNNER_TEMP',
    isCommon: true,
    value: 'FOLDER',
  },
  comment: {
    default: 'on-failure',
    legal: COMMENT_MODES,
    description: 'When to comment on the pull request; an existing comment turns green in any case',
    onlyInAction: true,
  },
  'github-token': {
    fromRunner: 'github.token',
    description: 'Token for the comment; needs pull-requests write',
    onlyInAction: true,
  },
  'pr-number': {
    description: 'Pull request to comment on; by default found from the event',
    onlyInAction: true,
  },
  'comment-key': {
    description:
      'Tells two gates of one job apart; each job and matrix entry has a comment of its own anyway',
    onlyInAction: true,
  },
  matrix: {
    fromRunner: 'toJSON(matrix)',
    description: 'Set by the runner, not by you; distinguishes the jobs of a matrix',
    onlyInAction: true,
  },
  'owner-logs': {
    ...FLAG,
    description: 'Quote the logs of suspected controllers, also in the comment',
    isCommon: true,
  },
  'force-finalize': {
    default: 'off',
    legal: FORCE_MODES,
    description:
      "What to force after the timeout; plan: only report; objects: remove allowed finalizers from blocking objects; namespace: then also the namespace's own",
    isCommon: true,
  },
  'force-namespaces': {
    description:
      'Patterns (preview-*) of namespaces that may be forced; required for objects and namespace',
    value: 'LIST',
  },
  'force-label': {
    description: 'Label (ephemeral=true) that the namespace must have as well',
    value: 'KEY=VALUE',
  },
  'force-finalizers': {
    description:
      'Finalizers that may be removed from objects and from the namespace itself, each written out in full; a pattern is refused, with the values to write',
    value: 'LIST',
  },
  'force-pods': {
    ...FLAG,
    description: 'Whether overdue pods of a lost node may be deleted with grace period 0',
  },
  'force-orphans': {
    default: 'refuse',
    legal: FORCE_ORPHANS,
    description:
      'Whether the namespace may be finalized while content remains or could not be read',
  },
} as const satisfies Record<string, Omit<InputRow, 'default'> & { default?: string }>;

/** Inputs that left, and what replaces them. A workflow that sets one gets a warning and goes on. */
export const DROPPED_INPUTS: Record<string, string> = {
  'forecast-report': 'compare the report.json of the forecast with that of the teardown',
};

export type InputName = keyof typeof INPUTS;
/** The rows of `INPUTS`, with the optional fields that the constant type hides. */
export const INPUT_ROWS = Object.entries(INPUTS).map(([name, row]) => [
  name,
  { default: '', ...row },
]) as [InputName, InputRow][];

/** Returns the legal values of an input, or none for a plain flag. */
export function choicesOf({ legal }: InputRow): readonly string[] {
  return legal === undefined || legal === YES_OR_NO ? [] : legal;
}

export type Inputs = ReturnType<typeof readInputs>;

/** The inputs as they were written, by name. An empty or absent text means "not given". */
export type GivenInputs = Readonly<Partial<Record<InputName, string>>>;

/** Validates every input. The inputs of the comment are returned by `commentInputs`. */
export function readInputs(given: GivenInputs) {
  const raw = Object.fromEntries(
    INPUT_ROWS.map(([name, row]) => [name, given[name]?.trim() || row.default]),
  ) as Record<InputName, string>;
  const pick = <N extends InputName>(name: N): Choice<N> => {
    const { legal = [] }: Partial<InputRow> = INPUTS[name];
    // YAML has three spellings of each boolean.
    const value = raw[name].replace(/^(True|TRUE|False|FALSE)$/, (word) => word.toLowerCase());
    return legalValue(`input "${name}"`, value, legal) as Choice<N>;
  };
  const yes = (name: InputName): boolean => (pick(name) as string) === 'true';
  const shaped = (name: InputName, shape: RegExp, rule: string): string => {
    if (raw[name] === '' || shape.test(raw[name])) return raw[name];
    throw invalidInput(`input "${name}" is "${shortValue(raw[name])}"; ${rule}`);
  };
  const duration = (name: InputName, fallback: number): number =>
    raw[name] === '' ? fallback : parseDuration(name, raw[name]);
  const timeoutMs = duration('timeout', 0);
  const deletion = pick('delete');
  const isAsked = yes('terminating');
  const needs = (name: InputName, other: InputName, value: string): void => {
    if (raw[name] === '' || raw[other].toLowerCase() === value) return;
    throw invalidInput(
      `input "${name}" is "${shortValue(raw[name])}" but "${other}" is "${raw[other]}"; it needs ${other}: ${value}`,
    );
  };
  needs('terminating-for', 'terminating', 'true');
  needs('order-timeout', 'delete', 'ordered');
  pick('comment');
  shaped('pr-number', PR_NUMBER, 'use the number of a pull request, digits only');
  const [key = '', value = ''] = shaped(
    'force-label',
    /^[A-Za-z0-9][-A-Za-z0-9_./]*=[-A-Za-z0-9_.]*$/,
    'use one label as key=value, for example ephemeral=true',
  ).split('=');
  const inputs = {
    namespaces: [...new Set(splitList(raw.namespace).map(namespaceName))],
    // The API server checks the grammar. A text that can never be a selector is refused before any request.
    selector: shaped(
      'selector',
      /^[^\n;&?#]+$/,
      'use a label selector such as app=preview,pr=42 or "environment in (preview)"',
    ),
    /** Adds every namespace that has been terminating for at least this long. */
    terminating: isAsked ? { forMs: duration('terminating-for', 0) } : undefined,
    /** `ordered` first deletes the objects whose finalizers need a running controller. */
    delete: deletion === 'ordered' ? deletion : deletion === 'true',
    /** Time that an ordered deletion waits for those objects before it deletes the namespace. */
    orderTimeoutMs: duration('order-timeout', timeoutMs / 2),
    /** Whether the run changes nothing and reports what would hold the namespaces. */
    forecast: yes('forecast'),
    timeoutMs,
    failFast: yes('fail-fast'),
    policy: { failOn: pick('fail-on'), ifNotFound: pick('if-not-found') } satisfies Policy,
    kubeconfig: raw.kubeconfig,
    context: raw.context,
    force: {
      mode: pick('force-finalize'),
      namespaces: splitList(raw['force-namespaces']),
      label: key === '' ? undefined : { key, value },
      finalizers: splitList(raw['force-finalizers']),
      pods: yes('force-pods'),
      orphans: pick('force-orphans'),
    } satisfies ForcePolicy,
    /** Whether the logs of suspected controllers are read and quoted. */
    ownerLogs: yes('owner-logs'),
    failOnLeftBehind: yes('fail-on-left-behind'),
    reportDir: raw['report-dir'],
  };
  checkTogether(inputs);
  return inputs;
}

const PR_NUMBER = /^[1-9]\d{0,9}$/;

export type CommentInputs = NonNullable<ReturnType<typeof commentInputs>>;

/**
 * Returns how to comment on the pull request, or undefined for no comment. If another input is invalid, there are no `inputs`;
 * the comment then reports the error.
 */
export function commentInputs(given: GivenInputs, inputs: Inputs | undefined) {
  const mode = COMMENT_MODES.find((legal) => legal === given.comment) ?? INPUTS.comment.default;
  const number = given['pr-number'] ?? '';
  if (mode === 'off' || (number !== '' && !PR_NUMBER.test(number))) return undefined;
  return {
    mode,
    /** Empty if this run does not get the secret. */
    token: given['github-token'] ?? '',
    prNumber: Number(number) || undefined,
    key: given['comment-key'] ?? '',
    /** Namespaces as the workflow names them, without those that a selector matches; empty if the inputs are invalid. */
    namespaces: inputs?.namespaces ?? [],
    selector: inputs?.selector ?? '',
  };
}

const MS_PER_UNIT = { s: 1_000, m: 60_000, h: 3_600_000 } as const;
/** Five days: the limit of a job on a self-hosted runner. A hosted job ends after 6 h. */
const MAX_DURATION_MS = 5 * 24 * MS_PER_UNIT.h;

/**
 * Parses "90s", "10m" or "1h" into milliseconds. A number without a unit is refused because its unit would be a
 * guess.
 */
export function parseDuration(input: string, value: string): number {
  const match = /^(\d{1,6})(s|m|h)$/.exec(value);
  const ms = match ? Number(match[1]) * MS_PER_UNIT[match[2] as keyof typeof MS_PER_UNIT] : -1;
  if (ms >= 0 && ms <= MAX_DURATION_MS) return ms;
  throw invalidInput(
    `input "${input}" is "${shorten(plainText(value), 80)}"; write a whole number and a unit up to 120h, for example 90s, 10m or 1h`,
  );
}

/** Checks the rules that concern more than one input. Throws an `ActionError`. */
function checkTogether(inputs: Inputs): void {
  const isNamed = inputs.namespaces.length > 0 || inputs.selector !== '';
  if (!isNamed && inputs.terminating === undefined) {
    throw invalidInput(
      'inputs "namespace" and "selector" are both empty; name at least one namespace, or a label selector, or set "terminating" to true',
      'When the value comes from the output of an earlier step, check that the step ran and has set it.',
    );
  }
  if (inputs.forecast && (inputs.delete !== false || inputs.force.mode !== 'off')) {
    throw invalidInput(
      'input "forecast" is "true", and a forecast changes nothing; leave "delete" and "force-finalize" out',
    );
  }
  if (inputs.delete && inputs.selector !== '' && !hasPositiveTerm(inputs.selector)) {
    throw invalidInput(
      `input "selector" is "${shortValue(inputs.selector)}" and only excludes namespaces; to delete by it, name a label that they have, for example environment=preview`,
    );
  }
  const writes = inputs.force.mode === 'objects' || inputs.force.mode === 'namespace';
  if (writes && inputs.force.namespaces.length === 0) {
    throw invalidInput(
      `input "force-finalize" is "${inputs.force.mode}" but "force-namespaces" is empty; name the namespaces that may be forced, for example preview-*`,
    );
  }
  // In mode "namespace" an empty list still allows `kubernetes`, the entry that belongs to that mode.
  const { mode, finalizers, pods } = inputs.force;
  if (mode === 'objects' && finalizers.length === 0 && !pods) {
    throw invalidInput(
      'input "force-finalize" is "objects" but "force-finalizers" is empty; name the finalizers that may be removed, for example widgets.example.com/cleanup',
    );
  }
}

/** Reports whether a selector requires a label: `app!=keep`, `!keep` and `app notin (a)` also match unrelated namespaces. */
function hasPositiveTerm(selector: string): boolean {
  return selector
    .split(/,(?![^(]*\))/)
    .map((term) => term.trim())
    .some((term) => term !== '' && !/^!|!=|\snotin\s*\(/.test(term));
}

/** Returns the entries of a text that is separated by newlines or commas, without blanks and empty entries. */
export function splitList(value: string): string[] {
  return value
    .split(/[\n,]/)
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

type Choice<N extends InputName> = (typeof INPUTS)[N] extends { legal: readonly (infer T)[] }
  ? T
  : never;

/** Returns the value if it is legal; otherwise throws an `ActionError`. */
export function legalValue<T extends string>(
  what: string,
  value: string,
  legal: readonly T[],
  hint?: string,
): T {
  const found = legal.find((item) => item === value);
  if (found !== undefined) return found;
  throw invalidInput(`${what} is "${shortValue(value)}"; use one of: ${legal.join(', ')}`, hint);
}

/** Returns the value if it is a namespace name, a DNS label (apimachinery, validation.IsDNS1123Label). */
function namespaceName(value: string): string {
  if (/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(value)) return value;
  throw invalidInput(
    `input "namespace" has the entry "${shortValue(value)}", which is no namespace name; use lower-case letters, digits and -, at most 63 characters`,
    'Entries are separated by newline or comma. For patterns, label the namespaces and use "selector".',
  );
}

/** Returns a given value in one line of at most 80 characters: it may be a whole file that was pasted by mistake. */
function shortValue(value: string): string {
  const line = value.replace(/\s+/g, ' ');
  return line.length > 80 ? `${line.slice(0, 80)}…` : line;
}

function invalidInput(message: string, hint?: string): ActionError {
  return new ActionError('invalid-input', message, hint);
}
