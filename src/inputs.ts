import { InputError } from './base/errors.ts';
import { shorten } from './base/text.ts';
import { FAIL_ON, type ForcePolicy, IF_NOT_FOUND, type Policy } from './model/outcome.ts';

export const YES_OR_NO = ['true', 'false'] as const;

/** With the default `'false'` it is a flag in a terminal. */
export interface InputRow {
  /** Plain text without a full stop, for action.yml, the README and `--help`. */
  description: string;
  default: string;
  legal?: readonly string[];
  value?: string;
  /** A terminal has no pull request. */
  onlyInAction?: true;
  /** Expression in action.yml that the runner replaces by the value. */
  fromRunner?: string;
}

const flag = (description: string) => ({ description, default: 'false', legal: YES_OR_NO });

const text = (value: string, description: string, preset = '') => ({
  ...{ value, description, default: preset },
});

const choice = <const L extends string>(legal: readonly L[], preset: L, description: string) => ({
  ...{ legal, description, default: preset },
});

const inAction = (description: string, fromRunner?: string) => ({
  ...({ description, default: '', onlyInAction: true, ...(fromRunner && { fromRunner }) } as const),
});

const COMMENT_MODES = ['off', 'on-failure', 'always'] as const;

/** `npm run docs` generates action.yml, `--help` in docs/terminal.md and the tables of the README from this table. */
export const INPUTS = {
  namespace: text('LIST', 'Names of the namespaces, separated by newline or comma'),
  selector: text('LABELS', 'Label selector: adds every namespace that matches at the start'),
  terminating: flag(
    'Adds every namespace that is terminating at the start (with a selector: and matches it)',
  ),
  'terminating-for': text('10m', 'With terminating: only those for at least this long'),
  delete: choice(
    [...YES_OR_NO, 'ordered'],
    'false',
    'Request the deletion first, then wait (ordered first deletes objects that need their controller)',
  ),
  'order-timeout': text(
    '3m',
    'With delete ordered: how long to wait for those objects; by default half of timeout',
  ),
  forecast: flag('Change nothing: report what would hold the namespaces'),
  timeout: text('5m', 'How long to wait in all, with a unit (90s, 10m, 1h)', '5m'),
  'fail-fast': flag('Stop before the timeout if waiting cannot end the hang (unchanged for 90 s)'),
  'fail-on': choice(FAIL_ON, 'not-deleted', 'Which outcomes fail the step'),
  'if-not-found': choice(IF_NOT_FOUND, 'ok', 'Whether a missing namespace is an error'),
  'fail-on-left-behind': flag('Whether objects left behind outside fail the step'),
  kubeconfig: text('FILE', 'Path of a kubeconfig file; by default as in kubectl'),
  context: text('NAME', 'Context of the kubeconfig; by default its current context'),
  'report-dir': text(
    'FOLDER',
    'Folder for report.json, report.md, report.xml (JUnit) and metrics.prom; by default, in the action, below RUNNER_TEMP',
  ),
  comment: {
    ...choice(
      COMMENT_MODES,
      'on-failure',
      'When to comment on the pull request; an existing comment turns green in any case',
    ),
    onlyInAction: true,
  },
  'github-token': inAction('Token for the comment; needs pull-requests write', 'github.token'),
  'pr-number': inAction('Pull request to comment on; by default found from the event'),
  'comment-key': inAction(
    'Tells two gates of one job apart; each job and matrix entry has a comment of its own anyway',
  ),
  matrix: inAction(
    'Set by the runner, not by you; distinguishes the jobs of a matrix',
    'toJSON(matrix)',
  ),
  'owner-logs': flag('Quote the logs of suspected controllers, also in the comment'),
  'force-finalize': choice(
    ['off', 'plan', 'objects', 'namespace'],
    'off',
    "What to force after the timeout (plan only reports, objects removes allowed finalizers from blocking objects, namespace then also the namespace's own)",
  ),
  'force-namespaces': text(
    'LIST',
    'Patterns (preview-*) of namespaces that may be forced; required for objects and namespace',
  ),
  'force-label': text('KEY=VALUE', 'Label (ephemeral=true) that the namespace must have as well'),
  'force-finalizers': text(
    'LIST',
    'Finalizers that may be removed from objects and from the namespace itself, each written out in full; a pattern is refused, with the values to write',
  ),
  'force-pods': flag('Whether overdue pods of a lost node may be deleted with grace period 0'),
  'force-orphans': choice(
    ['refuse', 'accept'],
    'refuse',
    'Whether the namespace may be finalized while content remains or could not be read',
  ),
} satisfies Record<string, InputRow>;

export type InputName = keyof typeof INPUTS;
export const INPUT_ROWS = Object.entries(INPUTS) as [InputName, InputRow][];

export function choicesOf({ legal = [] }: InputRow): readonly string[] {
  return legal === YES_OR_NO ? [] : legal;
}

export type Inputs = ReturnType<typeof readInputs>;

export type GivenInputs = Readonly<Partial<Record<InputName, string>>>;

const PR_NUMBER = /^[1-9]\d{0,9}$/;

/** The form of an input that is not one of a few values, and how to write it. */
const SHAPES: Partial<Record<InputName, [form: RegExp, rule: string]>> = {
  // The API server checks the grammar. A text that can never be a selector is refused before any request.
  selector: [
    /^[^\n;&?#]+$/,
    'use a label selector such as app=preview,pr=42 or "environment in (preview)"',
  ],
  'pr-number': [PR_NUMBER, 'use the number of a pull request, digits only'],
  'force-label': [
    /^[A-Za-z0-9][-A-Za-z0-9_./]*=[-A-Za-z0-9_.]*$/,
    'use one label as key=value, for example ephemeral=true',
  ],
};

export function readInputs(given: GivenInputs) {
  const raw = Object.fromEntries(
    INPUT_ROWS.map(([name, row]) => [name, given[name]?.trim() || row.default]),
  ) as Record<InputName, string>;
  const pick = <N extends InputName>(name: N): Choice<N> => {
    const { legal = [] }: InputRow = INPUTS[name];
    // YAML has three spellings of each boolean.
    const value = raw[name].replace(/^(True|TRUE|False|FALSE)$/, (word) => word.toLowerCase());
    return legalValue(`input "${name}"`, value, legal) as Choice<N>;
  };
  const yes = (name: InputName): boolean => (pick(name) as string) === 'true';
  const duration = (name: InputName, fallback: number): number =>
    raw[name] === '' ? fallback : parseDuration(name, raw[name]);
  for (const [name, [form, rule]] of Object.entries(SHAPES) as [InputName, [RegExp, string]][]) {
    if (raw[name] === '' || form.test(raw[name])) continue;
    throw new InputError(`input "${name}" is "${shortValue(raw[name])}"; ${rule}`);
  }
  pick('comment');
  const timeoutMs = duration('timeout', 0);
  const deletion = pick('delete');
  const [key = '', value = ''] = raw['force-label'].split('=');
  const isIdle = ([name, row]: [InputName, InputRow]): boolean =>
    /^force-(?!finalize$)/.test(name) && raw[name].toLowerCase() !== row.default;
  const inputs = {
    namespaces: [...new Set(splitList(raw.namespace).map(namespaceName))],
    selector: raw.selector,
    terminating: yes('terminating') ? { forMs: duration('terminating-for', 0) } : undefined,
    delete: deletion === 'ordered' ? deletion : deletion === 'true',
    orderTimeoutMs: duration('order-timeout', timeoutMs / 2),
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
    /** Given, but without effect. */
    unused: raw['force-finalize'] === 'off' ? INPUT_ROWS.filter(isIdle).map(([name]) => name) : [],
    ownerLogs: yes('owner-logs'),
    failOnLeftBehind: yes('fail-on-left-behind'),
    reportDir: raw['report-dir'],
  };
  checkTogether(inputs, raw);
  return inputs;
}

export type CommentInputs = NonNullable<ReturnType<typeof commentInputs>>;

/** Undefined for no comment. If another input is invalid, there are no `inputs`; the comment then reports the error. */
export function commentInputs(given: GivenInputs, inputs: Inputs | undefined) {
  const mode = COMMENT_MODES.find((legal) => legal === given.comment) ?? 'on-failure';
  const number = given['pr-number'] ?? '';
  if (mode === 'off' || (number !== '' && !PR_NUMBER.test(number))) return undefined;
  return {
    mode,
    /** Empty if this run does not get the secret. */
    token: given['github-token'] ?? '',
    prNumber: Number(number) || undefined,
    key: given['comment-key'] ?? '',
    /** Without those that a selector matches. */
    namespaces: inputs?.namespaces ?? [],
    selector: inputs?.selector ?? '',
  };
}

const MS_PER_UNIT = { s: 1_000, m: 60_000, h: 3_600_000 } as const;
/** Five days: the limit of a job on a self-hosted runner. A hosted job ends after 6 h. */
const MAX_DURATION_MS = 5 * 24 * MS_PER_UNIT.h;

/** Parses "90s", "10m" or "1h" into milliseconds. The unit of a bare number would be a guess. */
export function parseDuration(input: string, value: string): number {
  const match = /^(\d{1,6})(s|m|h)$/.exec(value);
  const ms = match ? Number(match[1]) * MS_PER_UNIT[match[2] as keyof typeof MS_PER_UNIT] : -1;
  if (ms >= 0 && ms <= MAX_DURATION_MS) return ms;
  throw new InputError(
    `input "${input}" is "${shortValue(value)}"; write a whole number and a unit up to 120h, for example 90s, 10m or 1h`,
  );
}

function checkTogether(inputs: Inputs, raw: Record<InputName, string>): void {
  const { force, forecast, namespaces, selector, terminating } = inputs;
  const said = (name: InputName): string => `input "${name}" is "${shortValue(raw[name])}"`;
  const lacks = (name: InputName, other: InputName, value: string): [boolean, string] => [
    raw[name] !== '' && raw[other].toLowerCase() !== value,
    `${said(name)} but "${other}" is "${raw[other]}"; it needs ${other}: ${value}`,
  ];
  const writes = force.mode === 'objects' || force.mode === 'namespace';
  const rules: [isBroken: boolean, message: string, hint?: string][] = [
    lacks('terminating-for', 'terminating', 'true'),
    lacks('order-timeout', 'delete', 'ordered'),
    [
      inputs.orderTimeoutMs > inputs.timeoutMs,
      `${said('order-timeout')} and "timeout", which includes it, is "${raw.timeout}"; give a longer "timeout"`,
    ],
    [
      namespaces.length === 0 && selector === '' && terminating === undefined,
      'inputs "namespace" and "selector" are both empty; name at least one namespace, or a label selector, or set "terminating" to true',
      'When the value comes from the output of an earlier step, check that the step ran and has set it.',
    ],
    [
      forecast && (inputs.delete !== false || force.mode !== 'off'),
      `${said('forecast')}, and a forecast changes nothing; leave "delete" and "force-finalize" out`,
    ],
    [
      inputs.delete !== false && selector !== '' && !hasPositiveTerm(selector),
      `${said('selector')} and only excludes namespaces; to delete by it, name a label that they have, for example environment=preview`,
    ],
    [
      writes && force.namespaces.length === 0,
      `${said('force-finalize')} but "force-namespaces" is empty; name the namespaces that may be forced, for example preview-*`,
    ],
    // In mode "namespace" an empty list still allows `kubernetes`, the entry that belongs to that mode.
    [
      force.mode === 'objects' && force.finalizers.length === 0 && !force.pods,
      `${said('force-finalize')} but "force-finalizers" is empty; name the finalizers that may be removed, for example widgets.example.com/cleanup`,
    ],
  ];
  for (const [isBroken, message, hint] of rules) if (isBroken) throw new InputError(message, hint);
}

/** Reports whether a selector requires a label: `app!=keep`, `!keep` and `app notin (a)` also match unrelated namespaces. */
function hasPositiveTerm(selector: string): boolean {
  return selector
    .split(/,(?![^(]*\))/)
    .map((term) => term.trim())
    .some((term) => term !== '' && !/^!|!=|\snotin\s*\(/.test(term));
}

export function splitList(value: string): string[] {
  const items = value.split(/[\n,]/).map((item) => item.trim());
  return items.filter((item) => item !== '');
}

type Choice<N extends InputName> = (typeof INPUTS)[N] extends { legal: readonly (infer T)[] }
  ? T
  : never;

export function legalValue<T extends string>(
  what: string,
  value: string,
  legal: readonly T[],
  hint?: string,
): T {
  const found = legal.find((item) => item === value);
  if (found !== undefined) return found;
  throw new InputError(`${what} is "${shortValue(value)}"; use one of: ${legal.join(', ')}`, hint);
}

/** Returns the value if it is a namespace name, a DNS label (apimachinery, validation.IsDNS1123Label). */
function namespaceName(value: string): string {
  if (/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(value)) return value;
  throw new InputError(
    `input "namespace" has the entry "${shortValue(value)}", which is no namespace name; use lower-case letters, digits and -, at most 63 characters`,
    'Entries are separated by newline or comma. For patterns, label the namespaces and use "selector".',
  );
}

/** Returns a given value in one line of at most 80 characters: it may be a whole file that was pasted by mistake. */
function shortValue(value: string): string {
  return shorten(value.replace(/\s+/g, ' '), 80);
}
