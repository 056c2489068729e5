import { ActionError } from './base/errors.ts';
import { parseDuration } from './base/time.ts';
import { FAIL_ON, IF_NOT_FOUND, type Policy } from './model/outcome.ts';
import type { ForcePolicy } from './model/policy.ts';

export const COMMENT_MODES = ['off', 'on-failure', 'always'] as const;
export const FORCE_MODES = ['off', 'plan', 'objects', 'namespace'] as const;
export const FORCE_ORPHANS = ['refuse', 'accept'] as const;

/** Every input by its name in action.yml; the terminal takes the same words as options. */
export const INPUT_DEFAULTS = {
  namespace: '',
  selector: '',
  terminating: 'false',
  'terminating-for': '',
  delete: 'false',
  'order-timeout': '',
  forecast: 'false',
  timeout: '5m',
  'fail-fast': 'false',
  'fail-on': 'not-deleted',
  'if-not-found': 'ok',
  kubeconfig: '',
  context: '',
  comment: 'on-failure',
  'github-token': '',
  'pr-number': '',
  'comment-key': '',
  matrix: '',
  'force-finalize': 'off',
  'force-namespaces': '',
  'force-label': '',
  'force-finalizers': '',
  'force-pods': 'false',
  'force-orphans': 'refuse',
  'fail-on-left-behind': 'false',
  'report-dir': '',
} as const;

export type InputName = keyof typeof INPUT_DEFAULTS;
export type RawInputs = Record<InputName, string>;

export interface Inputs {
  namespaces: string[];
  selector: string;
  /** Every namespace that is terminating for at least this long joins. */
  terminating: { forMs: number } | undefined;
  /** `ordered`: inside the namespace first what needs a living controller to go. */
  delete: boolean | 'ordered';
  /** How long an ordered deletion waits inside before it asks for the namespace's. */
  orderTimeoutMs: number;
  /** Change nothing and wait for nothing: say what would hold the namespaces. */
  forecast: boolean;
  timeoutMs: number;
  failFast: boolean;
  policy: Policy;
  kubeconfig: string;
  context: string;
  comment: (typeof COMMENT_MODES)[number];
  githubToken: string;
  prNumber: number | undefined;
  commentKey: string;
  force: ForcePolicy;
  failOnLeftBehind: boolean;
  reportDir: string;
}

/** Reads every input through `get` (an empty text means "not given") and validates them all. */
export function readInputs(get: (name: InputName) => string): Inputs {
  const raw = Object.fromEntries(
    Object.entries(INPUT_DEFAULTS).map(([name, fallback]) => [
      name,
      get(name as InputName).trim() || fallback,
    ]),
  ) as RawInputs;
  const timeoutMs = parseDuration('timeout', raw.timeout);
  const inputs: Inputs = {
    namespaces: [...new Set(list(raw.namespace).map(namespaceName))],
    selector: selector(raw.selector),
    terminating: terminating(raw.terminating, raw['terminating-for']),
    delete: raw.delete === 'ordered' ? 'ordered' : boolean('delete', raw.delete),
    orderTimeoutMs:
      raw['order-timeout'] === ''
        ? timeoutMs / 2
        : parseDuration('order-timeout', raw['order-timeout']),
    forecast: boolean('forecast', raw.forecast),
    timeoutMs,
    failFast: boolean('fail-fast', raw['fail-fast']),
    policy: {
      failOn: choice('fail-on', raw['fail-on'], FAIL_ON),
      ifNotFound: choice('if-not-found', raw['if-not-found'], IF_NOT_FOUND),
    },
    kubeconfig: raw.kubeconfig,
    context: raw.context,
    comment: choice('comment', raw.comment, COMMENT_MODES),
    githubToken: raw['github-token'],
    prNumber: prNumber(raw['pr-number']),
    commentKey: raw['comment-key'],
    force: {
      mode: choice('force-finalize', raw['force-finalize'], FORCE_MODES),
      namespaces: list(raw['force-namespaces']),
      label: label(raw['force-label']),
      finalizers: list(raw['force-finalizers']),
      pods: boolean('force-pods', raw['force-pods']),
      orphans: choice('force-orphans', raw['force-orphans'], FORCE_ORPHANS),
    },
    failOnLeftBehind: boolean('fail-on-left-behind', raw['fail-on-left-behind']),
    reportDir: raw['report-dir'],
  };
  checkTogether(inputs);
  return inputs;
}

/** Rules that concern more than one input. */
function checkTogether(inputs: Inputs): void {
  const isNamed = inputs.namespaces.length > 0 || inputs.selector !== '';
  if (!isNamed && inputs.terminating === undefined) {
    throw invalid(
      'inputs "namespace" and "selector" are both empty; name at least one namespace, or a label selector, or set "terminating" to true',
      'When the value comes from the output of an earlier step, check that the step ran and has set it.',
    );
  }
  if (inputs.forecast && (inputs.delete !== false || inputs.force.mode !== 'off')) {
    throw invalid(
      'input "forecast" is "true", and a forecast changes nothing; leave "delete" and "force-finalize" out',
    );
  }
  if (inputs.delete && inputs.selector !== '' && !hasPositiveTerm(inputs.selector)) {
    throw invalid(
      `input "selector" is "${shown(inputs.selector)}" and only says what namespaces are not; to delete by it, say what they are, for example environment=preview`,
    );
  }
  const writes = inputs.force.mode === 'objects' || inputs.force.mode === 'namespace';
  if (writes && inputs.force.namespaces.length === 0) {
    throw invalid(
      `input "force-finalize" is "${inputs.force.mode}" but "force-namespaces" is empty; name the namespaces that may be forced, for example preview-*`,
    );
  }
  // In mode "namespace" an empty list still allows `kubernetes`, the entry that belongs to that mode.
  const { mode, finalizers, pods } = inputs.force;
  if (mode === 'objects' && finalizers.length === 0 && !pods) {
    throw invalid(
      'input "force-finalize" is "objects" but "force-finalizers" is empty; name the finalizers that may be removed, for example widgets.example.com/*',
    );
  }
}

/** `app!=keep`, `!keep` and `app notin (a)` match every namespace that nobody thought of. */
function hasPositiveTerm(selector: string): boolean {
  return selector
    .split(/,(?![^(]*\))/)
    .map((term) => term.trim())
    .some((term) => term !== '' && !/^!|!=|\snotin\s*\(/.test(term));
}

/** Newline or comma separated; blanks and empty entries do not count. */
export function list(value: string): string[] {
  return value
    .split(/[\n,]/)
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

function choice<T extends string>(name: InputName, value: string, legal: readonly T[]): T {
  const found = legal.find((item) => item === value);
  if (found === undefined) {
    throw invalid(`input "${name}" is "${shown(value)}"; use one of: ${legal.join(', ')}`);
  }
  return found;
}

function boolean(name: InputName, value: string): boolean {
  if (/^(true|True|TRUE)$/.test(value)) return true;
  if (/^(false|False|FALSE)$/.test(value)) return false;
  throw invalid(`input "${name}" is "${shown(value)}"; use one of: true, false`);
}

/** Namespace names are DNS labels (apimachinery, validation.IsDNS1123Label). */
function namespaceName(value: string): string {
  if (/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(value)) return value;
  throw invalid(
    `input "namespace" has the entry "${shown(value)}", which is no namespace name; use lower-case letters, digits and -, at most 63 characters`,
    'Entries are separated by newline or comma. For patterns, label the namespaces and use "selector".',
  );
}

/** The API server judges the grammar; what can never be a selector is refused before any request. */
function selector(value: string): string {
  if (/[\n;&?#]/.test(value)) {
    throw invalid(
      `input "selector" is "${shown(value)}"; use a label selector such as app=preview,pr=42 or "environment in (preview)"`,
    );
  }
  return value;
}

function terminating(value: string, atLeast: string): Inputs['terminating'] {
  if (boolean('terminating', value)) {
    return { forMs: atLeast === '' ? 0 : parseDuration('terminating-for', atLeast) };
  }
  if (atLeast === '') return undefined;
  throw invalid(`input "terminating-for" is "${shown(atLeast)}" but "terminating" is false`);
}

function prNumber(value: string): number | undefined {
  if (value === '') return undefined;
  if (/^[1-9]\d{0,9}$/.test(value)) return Number(value);
  throw invalid(
    `input "pr-number" is "${shown(value)}"; use the number of a pull request, digits only`,
  );
}

function label(value: string): ForcePolicy['label'] {
  if (value === '') return undefined;
  const match = /^([A-Za-z0-9][-A-Za-z0-9_./]*)=([-A-Za-z0-9_.]*)$/.exec(value);
  if (match?.[1] === undefined || match[2] === undefined) {
    throw invalid(
      `input "force-label" is "${shown(value)}"; use one label as key=value, for example ephemeral=true`,
    );
  }
  return { key: match[1], value: match[2] };
}

/** What was given, in one line and bounded: it may be a whole file pasted by mistake. */
function shown(value: string): string {
  const line = value.replace(/\s+/g, ' ');
  return line.length > 80 ? `${line.slice(0, 80)}…` : line;
}

function invalid(message: string, hint?: string): ActionError {
  return new ActionError('invalid-input', message, hint === undefined ? {} : { hint });
}
