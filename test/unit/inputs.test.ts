import { describe, expect, test } from 'vitest';
import { ActionError } from '../../src/base/errors.ts';
import { INPUTS, type InputName, readInputs } from '../../src/inputs.ts';

type Given = Partial<Record<InputName, string>>;

function inputs(given: Given) {
  return readInputs((name) => given[name] ?? '');
}

/** With a namespace, so that only the input under test can be wrong. */
function refusal(given: Given): ActionError {
  try {
    inputs({ namespace: 'preview-7', ...given });
  } catch (error) {
    if (error instanceof ActionError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

const LONG = 'x'.repeat(500);
const NAMESPACE_RULE =
  'which is no namespace name; use lower-case letters, digits and -, at most 63 characters';
const DURATION_RULE = 'write a whole number and a unit up to 120h, for example 90s, 10m or 1h';
const SELECTOR_RULE =
  'use a label selector such as app=preview,pr=42 or "environment in (preview)"';
const LABEL_RULE = 'use one label as key=value, for example ephemeral=true';
const PR_RULE = 'use the number of a pull request, digits only';

describe('readInputs', () => {
  test('takes the documented defaults for everything that is not given', () => {
    expect(inputs({ namespace: 'preview-7' })).toEqual({
      namespaces: ['preview-7'],
      selector: '',
      terminating: undefined,
      delete: false,
      orderTimeoutMs: 150_000,
      forecast: false,
      timeoutMs: 300_000,
      failFast: false,
      policy: { failOn: 'not-deleted', ifNotFound: 'ok' },
      kubeconfig: '',
      context: '',
      force: {
        mode: 'off',
        namespaces: [],
        label: undefined,
        finalizers: [],
        pods: false,
        orphans: 'refuse',
      },
      failOnLeftBehind: false,
      reportDir: '',
    });
  });

  test('reads every input of the table', () => {
    const asked: string[] = [];
    readInputs((name) => {
      asked.push(name);
      return name === 'namespace' ? 'preview-7' : '';
    });
    expect(asked.sort()).toEqual(Object.keys(INPUTS).sort());
  });

  test.each<{ what: string; given: Given; path: string; value: unknown }>([
    {
      what: 'names separated by comma',
      given: { namespace: 'a,b' },
      path: 'namespaces',
      value: ['a', 'b'],
    },
    {
      what: 'names on lines, with blanks, empty lines and Windows line ends',
      given: { namespace: '  a \r\n\r\n b ,, c\n' },
      path: 'namespaces',
      value: ['a', 'b', 'c'],
    },
    {
      what: 'a name that is given twice once',
      given: { namespace: 'a,b,a' },
      path: 'namespaces',
      value: ['a', 'b'],
    },
    {
      what: 'a name of 63 characters',
      given: { namespace: 'n'.repeat(63) },
      path: 'namespaces.0',
      value: 'n'.repeat(63),
    },
    { what: 'a name that is a digit', given: { namespace: '7' }, path: 'namespaces.0', value: '7' },
    {
      what: 'a selector with commas whole',
      given: { selector: 'app=preview,pr in (1,2)' },
      path: 'selector',
      value: 'app=preview,pr in (1,2)',
    },
    { what: 'TRUE as true', given: { delete: 'TRUE' }, path: 'delete', value: true },
    { what: 'True as true', given: { 'fail-fast': 'True' }, path: 'failFast', value: true },
    { what: 'False as false', given: { 'fail-fast': 'False' }, path: 'failFast', value: false },
    {
      what: 'a value with blanks around',
      given: { timeout: ' 90s ' },
      path: 'timeoutMs',
      value: 90_000,
    },
    { what: 'no time at all', given: { timeout: '0s' }, path: 'timeoutMs', value: 0 },
    { what: 'fail-on', given: { 'fail-on': 'stuck' }, path: 'policy.failOn', value: 'stuck' },
    {
      what: 'if-not-found',
      given: { 'if-not-found': 'error' },
      path: 'policy.ifNotFound',
      value: 'error',
    },
    {
      what: 'a label with a domain',
      given: { 'force-label': 'example.com/ephemeral=true' },
      path: 'force.label',
      value: { key: 'example.com/ephemeral', value: 'true' },
    },
    {
      what: 'a label without a value',
      given: { 'force-label': 'ephemeral=' },
      path: 'force.label',
      value: { key: 'ephemeral', value: '' },
    },
    {
      what: 'force-finalize plan without patterns: it changes nothing',
      given: { 'force-finalize': 'plan' },
      path: 'force.mode',
      value: 'plan',
    },
    {
      what: 'force-finalize namespace without finalizers: `kubernetes` belongs to that mode',
      given: { 'force-finalize': 'namespace', 'force-namespaces': 'preview-*' },
      path: 'force.finalizers',
      value: [],
    },
    {
      what: 'force-pods in the place of finalizers',
      given: {
        'force-finalize': 'objects',
        'force-namespaces': 'preview-*',
        'force-pods': 'true',
      },
      path: 'force.pods',
      value: true,
    },
  ])('reads $what', ({ given, path, value }) => {
    expect(inputs({ namespace: 'preview-7', ...given })).toHaveProperty(path, value);
  });

  test('a selector alone is enough', () => {
    expect(inputs({ selector: 'app=preview' }).namespaces).toEqual([]);
  });
});

describe('readInputs refuses, with one sentence that names the input, the value and what is legal:', () => {
  const forcing = { 'force-namespaces': 'preview-*', 'force-finalizers': 'example.com/*' };

  test.each<{ why: string; given: Given; message: string }>([
    ...[
      ['a capital letter', 'Preview-7'],
      ['an underscore', 'preview_7'],
      ['a dot', 'preview.7'],
      ['a leading dash', '-preview'],
      ['a trailing dash', 'preview-'],
      ['a pattern', 'preview-*'],
      ['a path', 'preview/7'],
      ['two names with a blank between', 'preview-7 preview-8'],
      ['a quote', '"preview-7"'],
      ['a letter that is not ASCII', 'prévue'],
      ['64 characters', 'n'.repeat(64)],
      ['a name after a good one', 'preview-8,Preview-9'],
      ['a list in JSON', '["preview-7"]'],
    ].map(([why = '', value = '']) => {
      const entry = value.split(',').at(-1) ?? '';
      return {
        why: `namespace: ${why}`,
        given: { namespace: value },
        message: `input "namespace" has the entry "${entry}", ${NAMESPACE_RULE}`,
      };
    }),
    ...[
      ['two lines', 'app=preview\npr=42'],
      ['a semicolon', 'app=preview;pr=42'],
      ['an ampersand', 'app=preview&watch=1'],
      ['a question mark', 'app=preview?'],
      ['a hash', '#app=preview'],
    ].map(([why = '', value = '']) => ({
      why: `selector: ${why}`,
      given: { selector: value },
      message: `input "selector" is "${value.replace('\n', ' ')}"; ${SELECTOR_RULE}`,
    })),
    ...[
      ['no unit', '300'],
      ['a fraction', '1.5m'],
      ['a sign', '-5m'],
      ['a blank', '5 m'],
      ['two units', '1m30s'],
      ['a unit that nobody knows', '5d'],
      ['a capital unit', '5M'],
      ['words', 'five minutes'],
      ['seven digits', '1000000s'],
      ['more than a job can last', '121h'],
      ['nothing but a unit', 'm'],
    ].map(([why = '', value = '']) => ({
      why: `timeout: ${why}`,
      given: { timeout: value },
      message: `input "timeout" is "${value}"; ${DURATION_RULE}`,
    })),
    ...(['terminating', 'fail-fast', 'force-pods'] as const).flatMap((name) =>
      ['yes', '1', 'tRuE'].map((value) => ({
        why: `${name}: ${value}`,
        given: { [name]: value },
        message: `input "${name}" is "${value}"; use one of: true, false`,
      })),
    ),
    ...(
      [
        ['delete', 'yes', 'true, false, ordered'],
        ['fail-on', 'always', 'not-deleted, stuck, never'],
        ['fail-on', 'Stuck', 'not-deleted, stuck, never'],
        ['if-not-found', 'fail', 'ok, error'],
        ['comment', 'true', 'off, on-failure, always'],
        ['force-finalize', 'true', 'off, plan, objects, namespace'],
        ['force-finalize', 'all', 'off, plan, objects, namespace'],
        ['force-orphans', 'yes', 'refuse, accept'],
      ] as const
    ).map(([name, value, legal]) => ({
      why: `${name}: ${value}`,
      given: { [name]: value },
      message: `input "${name}" is "${value}"; use one of: ${legal}`,
    })),
    ...['#42', '0', '-1', '4.2', '042', 'refs/pull/42/merge', '12345678901'].map((value) => ({
      why: `pr-number: ${value}`,
      given: { 'pr-number': value },
      message: `input "pr-number" is "${value}"; ${PR_RULE}`,
    })),
    ...['ephemeral', '=true', 'a=b=c', 'a=b,c=d', 'a==b', 'a != b', '-a=b'].map((value) => ({
      why: `force-label: ${value}`,
      given: { 'force-label': value },
      message: `input "force-label" is "${value}"; ${LABEL_RULE}`,
    })),
    ...(['objects', 'namespace'] as const).map((mode) => ({
      why: `force-finalize ${mode} without namespaces`,
      given: { 'force-finalize': mode, ...forcing, 'force-namespaces': '' },
      message: `input "force-finalize" is "${mode}" but "force-namespaces" is empty; name the namespaces that may be forced, for example preview-*`,
    })),
    {
      why: 'force-finalize objects without finalizers',
      given: { 'force-finalize': 'objects', ...forcing, 'force-finalizers': ' , ' },
      message:
        'input "force-finalize" is "objects" but "force-finalizers" is empty; name the finalizers that may be removed, for example widgets.example.com/*',
    },
    {
      why: 'nothing to wait for',
      given: { namespace: ' ,\n, ' },
      message:
        'inputs "namespace" and "selector" are both empty; name at least one namespace, or a label selector, or set "terminating" to true',
    },
  ])('$why', ({ given, message }) => {
    const error = refusal(given);
    expect(error.code).toBe('invalid-input');
    expect(error.message).toBe(message);
  });

  test.each<InputName>([
    'namespace',
    'delete',
    'timeout',
    'fail-on',
    'comment',
    'pr-number',
    'force-label',
  ])('%s: a file pasted by mistake, in one short line', (name) => {
    const { message } = refusal({ [name]: `${LONG}\n::error::${LONG}` });
    expect(message).not.toContain('\n');
    expect(message.length).toBeLessThan(300);
    expect(message).toContain(`"${name}"`);
  });

  test('says where a missing value may come from', () => {
    expect(refusal({ namespace: '' }).hint).toContain('output of an earlier step');
  });
});
