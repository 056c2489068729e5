import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type AdmissionRequest,
  evaluateCondition,
} from '../../src/diagnose/admission/expressions.ts';
import { NAMESPACE_TYPE } from '../../src/model/facts/metadata.ts';

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

const USER = 'request.userInfo.username';

describe('evaluateCondition', () => {
  test.each<[string, AdmissionRequest, boolean | undefined]>([
    // The user.
    [`${USER} == '${CONTROLLER}'`, DELETE, true],
    [`${USER} != "${CONTROLLER}"`, DELETE, false],
    [`!(${USER} == '${CONTROLLER}')`, DELETE, false],
    [`${USER} in ['a', '${CONTROLLER}']`, DELETE, true],
    [`!(${USER} in ['a', 'b'])`, DELETE, true],
    [`${USER}.startsWith('system:serviceaccount:kube-system:')`, DELETE, true],
    [`${USER}.endsWith('-controller') && ${USER}.contains('kube')`, DELETE, true],
    [`'system:masters' in request.userInfo.groups`, DELETE, false],
    [`request.userInfo.groups.exists(g, g == 'system:masters')`, DELETE, false],
    [`request.userInfo.groups.all(g, g.startsWith('system:'))`, DELETE, true],
    [`request.userInfo["username"] == 'x'`, DELETE, false],
    // A user whom the policy does not name.
    [`${USER} == 'alice'`, SOMEBODY, false],
    [`${USER} != 'alice'`, SOMEBODY, true],
    [`${USER} in ['alice', 'bob']`, SOMEBODY, false],
    [`${USER}.startsWith('system:')`, SOMEBODY, undefined],
    [`'system:masters' in request.userInfo.groups`, SOMEBODY, undefined],
    // No user is known: the other half may decide.
    [`${USER} == 'alice'`, UNKNOWN, undefined],
    [`${USER} == 'alice' && request.operation == 'UPDATE'`, UNKNOWN, false],
    [`request.operation == 'DELETE' || ${USER} == 'alice'`, UNKNOWN, true],
    // The request.
    [`request.operation in ['CREATE', "UPDATE"]`, DELETE, false],
    [`request.kind.group == 'apps' && request.kind.kind == 'Deployment'`, DELETE, true],
    [`request.resource.resource == 'deployments'`, DELETE, true],
    [`!(request.resource.group in ['authorization.k8s.io'])`, DELETE, true],
    [`request.namespace == 'preview-1'`, DELETE, true],
    [`request.namespace == 'preview-1'`, NAMESPACE, true],
    [
      `!(request.operation == 'DELETE' && request.resource.resource == 'namespaces')`,
      NAMESPACE,
      false,
    ],
    [`request.name == 'web'`, UPDATE, true],
    [`request.name == 'web'`, DELETE, undefined],
    // A dry run, and its options.
    [`request.?dryRun.orValue(false)`, DELETE, false],
    [`has(request.dryRun) && request.dryRun == true`, DELETE, false],
    [`has(request.options.dryRun)`, DELETE, false],
    [`has(request.options.preconditions)`, DELETE, false],
    [`has(request.options.dryRun)`, NAMESPACE, undefined],
    // Whether something is being deleted.
    [`has(oldObject.metadata.deletionTimestamp)`, DELETE, false],
    [`has(object.metadata.deletionTimestamp)`, UPDATE, true],
    [`!has(oldObject.metadata.deletionTimestamp)`, UPDATE, false],
    [`object.metadata.?deletionTimestamp.orValue('') == ''`, UPDATE, false],
    [`object.metadata.deletionTimestamp == oldObject.metadata.deletionTimestamp`, UPDATE, true],
    [`has(namespaceObject.metadata.deletionTimestamp)`, DELETE, true],
    [`namespaceObject.status.phase == 'Terminating'`, DELETE, true],
    [`namespaceObject == null`, NAMESPACE, true],
    [`namespaceObject.metadata.name.startsWith('preview-')`, DELETE, true],
    // The object and its namespace.
    [`object == null`, DELETE, true],
    [`oldObject.metadata.labels['tier'] == 'front'`, DELETE, true],
    [`oldObject.metadata.labels.tier == 'front'`, DELETE, true],
    [`has(oldObject.metadata.labels) && 'tier' in oldObject.metadata.labels`, DELETE, true],
    [`has(oldObject.metadata.labels.app)`, DELETE, false],
    [`has(oldObject.metadata.labels)`, NAMESPACE, false],
    [`oldObject.metadata.labels[?'app'].orValue('none') == 'none'`, DELETE, true],
    [`oldObject.metadata.?labels['app'].orValue('none') == 'none'`, NAMESPACE, true],
    [`oldObject.metadata.?labels.orValue({})[?'app'].orValue('') == ''`, NAMESPACE, true],
    [`object.metadata.labels.app == 'x'`, UPDATE, undefined],
    [`has(oldObject.metadata.annotations)`, DELETE, undefined],
    [`namespaceObject.metadata.labels['ephemeral'] == 'true'`, DELETE, true],
    // Names that every JavaScript object has.
    [`'toString' in oldObject.metadata.labels`, DELETE, false],
    [`oldObject.metadata.labels.constructor == 'none'`, DELETE, true],
    [`oldObject.metadata.labels[?'__proto__'].orValue('') == ''`, DELETE, true],
    // An object that the request does not have, and one that is only partly known.
    [`has(object.metadata)`, DELETE, undefined],
    [`object.?metadata.?name.orValue('') == ''`, DELETE, undefined],
    [`object == null || has(object.metadata.labels)`, DELETE, true],
    [`object == oldObject`, UPDATE, undefined],
    [`oldObject.spec == oldObject.spec`, UPDATE, undefined],
    [`oldObject.?spec.?paused.orValue(false)`, UPDATE, undefined],
    [`has(oldObject.spec) || request.operation == 'UPDATE'`, UPDATE, true],
    // Other syntax.
    [`${USER}.endsWith(r'-controller')`, DELETE, true],
    [`${USER} == 'alice' ? true : false`, DELETE, false],
    [`true // always`, DELETE, true],
    [`oldObject.metadata.labels.exists(key, key == 'tier')`, DELETE, true],
    [`size(${USER}) > 3`, DELETE, true],
    // What is not supported, or may take long, is unknown, and may still not matter.
    [`['a'].all(a, ['b'].all(b, ['c'].all(c, true)))`, DELETE, undefined],
    [`cel.bind(x, 'a', x == 'a')`, DELETE, undefined],
    [`has(oldObject.metadata.labels.app.name)`, DELETE, undefined],
    [`${USER}.matches('^system:.*')`, DELETE, undefined],
    [`authorizer.group('').resource('pods').check('delete').allowed()`, DELETE, undefined],
    [`false && authorizer`, DELETE, false],
    [`${USER} + 'x' == 'yx'`, DELETE, undefined],
    [`request.operation`, DELETE, undefined],
    [`request.operation ==`, DELETE, undefined],
    [`'open`, DELETE, undefined],
    [``, DELETE, undefined],
  ])('%s', (expression, request, expected) => {
    expect(evaluateCondition(expression, request)).toBe(expected);
  });

  test.each<[string, boolean | undefined]>([
    ['variables.kept', true],
    ['!variables.kept && variables.here', false],
    ['variables.none', undefined],
    ['variables.unsupported', undefined],
    ['variables.later', undefined],
    ['variables.constructor', undefined],
    ['variables.absent == null', undefined],
    ['variables.deleted', true],
  ])('%s, with variables', (expression, expected) => {
    const variables = [
      { name: 'later', expression: 'variables.here' },
      { name: 'labels', expression: 'oldObject.metadata.?labels.orValue({})' },
      { name: 'kept', expression: '"tier" in variables.labels' },
      { name: 'here', expression: `request.namespace == 'preview-1'` },
      { name: 'unsupported', expression: 'size(oldObject) > 3' },
      { name: 'deleted', expression: 'object == null' },
    ];
    expect(evaluateCondition(expression, DELETE, variables)).toBe(expected);
  });

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
