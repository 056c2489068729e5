import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type AdmissionRequest,
  evaluateCondition,
} from '../../src/diagnose/admission/expressions.ts';
import { NAMESPACE_TYPE } from '../../src/model/facts/metadata.ts';
import { expectPairs } from '../stub/pairs.ts';

const CONTROLLER = 'system:serviceaccount:kube-system:namespace-controller';

const DELETE: AdmissionRequest = {
  operation: 'DELETE',
  type: {
    ...{ group: 'apps', version: 'v1', resource: 'deployments', kind: 'Deployment' },
    ...{ namespaced: true, verbs: [] },
  },
  object: {
    name: 'web',
    namespace: 'preview-1',
    labels: { tier: 'front', constructor: 'none' },
  },
  namespaceLabels: { ephemeral: 'true' },
  requester: { username: CONTROLLER, groups: ['system:serviceaccounts', 'system:authenticated'] },
};
const UPDATE: AdmissionRequest = { ...DELETE, operation: 'UPDATE' };
const SOMEBODY: AdmissionRequest = { ...DELETE, requester: 'unnamed' };
const UNKNOWN: AdmissionRequest = { ...DELETE, requester: undefined };
const NAMESPACE: AdmissionRequest = {
  ...SOMEBODY,
  type: NAMESPACE_TYPE,
  object: { name: 'preview-1', namespace: '', labels: {} },
};

const VARIABLES = Object.entries({
  later: 'variables.here',
  labels: 'oldObject.metadata.?labels.orValue({})',
  kept: '"tier" in variables.labels',
  here: `request.namespace == 'preview-1'`,
  unsupported: 'size(oldObject) > 3',
  deleted: 'object == null',
}).map(([name, expression]) => ({ name, expression }));

const REQUESTS = { DELETE, UPDATE, SOMEBODY, UNKNOWN, NAMESPACE, VARIABLES: DELETE };

describe('evaluateCondition', () => {
  test('is true or false where the request decides, else unknown', () =>
    expectPairs('admission-expressions.txt', (line) => {
      const [, of = '', expression = ''] = /^(\w+): ?(.*)$/.exec(line) ?? [];
      const request = REQUESTS[of as keyof typeof REQUESTS];
      const variables = of === 'VARIABLES' ? VARIABLES : [];
      return evaluateCondition(expression, request, variables) ?? 'unknown';
    }));

  test.each([
    ['parentheses', `${'('.repeat(4_000)}true${')'.repeat(4_000)}`],
    ['negations', `${'!'.repeat(9_000)}true`],
    ['a long text', `true && ${'true && '.repeat(20_000)} true`],
    ['a string that does not end', `'${'a'.repeat(9_000)}`],
  ])('%s', (_, expression) => {
    expect(evaluateCondition(expression, DELETE)).toBe(undefined);
  });

  test('never throws', () => {
    const words = `request . userInfo username == != ! && || in ( ) [ ] { } ? : , 'a' "b" 1 has exists all x true null __proto__`;
    const text = fc.array(fc.constantFrom(...words.split(' '))).map((parts) => parts.join(' '));
    fc.assert(
      fc.property(fc.oneof(text, fc.string()), (expression) => {
        expect([true, false, undefined]).toContain(evaluateCondition(expression, DELETE));
      }),
    );
  });
});
