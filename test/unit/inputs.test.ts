import { describe, expect, test } from 'vitest';
import { InputError } from '../../src/base/errors.ts';
import { type InputName, readInputs } from '../../src/inputs.ts';
import { expectPairs } from '../stub/pairs.ts';

type Given = Partial<Record<InputName, string>>;

/** With a namespace, so that only the input under test can be wrong. */
function refusal(given: Given): InputError {
  try {
    readInputs({ namespace: 'preview-7', ...given });
  } catch (error) {
    if (error instanceof InputError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

describe('readInputs', () => {
  const DEFAULTS = readInputs({ namespace: 'preview-7' });

  test('takes the documented defaults for everything that is not given', () => {
    expect(DEFAULTS).toEqual({
      ...{ namespaces: ['preview-7'], selector: '', terminating: undefined, delete: false },
      ...{ timeoutMs: 300_000, orderTimeoutMs: 150_000, forecast: false, failFast: false },
      policy: { failOn: 'not-deleted', ifNotFound: 'ok' },
      ...{ kubeconfig: '', context: '', ownerLogs: false, failOnLeftBehind: false, reportDir: '' },
      unused: [],
      force: {
        ...{ mode: 'off', namespaces: [], label: undefined, finalizers: [] },
        ...{ pods: false, orphans: 'refuse' },
      },
    });
  });

  test('reads valid values, and refuses others with one sentence: the value, and the valid ones', () =>
    expectPairs('inputs.txt', (line) => {
      const given: Given = { namespace: 'preview-7', ...JSON.parse(line) };
      try {
        return Object.fromEntries(
          Object.entries(readInputs(given)).filter(
            ([name, value]) =>
              JSON.stringify(value) !== JSON.stringify(DEFAULTS[name as keyof typeof DEFAULTS]),
          ),
        );
      } catch {
        return refusal(given).message;
      }
    }));

  const NAMES: InputName[] = ['namespace', 'delete', 'timeout', 'fail-on', 'comment', 'pr-number'];
  test.each(NAMES)('refuses a whole file as the value of %s, in one short line', (name) => {
    const long = 'x'.repeat(500);
    const { message } = refusal({ [name]: `${long}\n::error::${long}` });
    expect(message).not.toContain('\n');
    expect(message.length).toBeLessThan(300);
    expect(message).toContain(`"${name}"`);
  });

  test('names the likely source of a missing value, and accepts a selector without names', () => {
    expect(readInputs({ selector: 'app=preview' }).namespaces).toEqual([]);
    expect(refusal({ namespace: '' }).hint).toContain('output of an earlier step');
  });
});
