import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { forecastOf } from '../../src/forecast/outcome.ts';
import { foresee } from '../../src/forecast/predict.ts';
import { policyBindingFacts, policyFacts, webhookFacts } from '../../src/model/facts/admission.ts';
import { bindingFacts, roleFacts } from '../../src/model/facts/cluster.ts';
import { readOk } from '../../src/model/read.ts';
import type { Snapshot, Trial } from '../../src/model/snapshot.ts';
import { account } from './changes.ts';
import { CONFIG_MAPS, DEMO, namespaceFacts, objectFacts, snapshot } from './snapshots.ts';

/** What a forecast concludes from the answers to its dry runs, where several webhooks or bindings may have given them. */

const NAME = 'system:controller:namespace-controller';
const rules = [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }];
const controller = account('kube-system', 'namespace-controller');
const sample = objectFacts(CONFIG_MAPS, 'settings', { deletionTimestamp: undefined });
const read = readOk({ total: 1, queued: 1, terminating: [], guarded: [], sample });
const content = [{ type: CONFIG_MAPS, read }];

/** A namespace with one ConfigMap, whose deletion was refused with this text; without one, accepted, like its own. */
function forecastWith(
  cluster: Partial<Snapshot['cluster']>,
  message?: string,
  namespaces: Trial = { answer: 'accepted' },
) {
  const accepted = { answer: 'accepted' as const };
  const configmaps = message === undefined ? accepted : { answer: 'refused' as const, message };
  const namespace = namespaceFacts({ deletionTimestamp: undefined, conditions: [] });
  const now = snapshot({
    ...{ namespace, content },
    forecast: {
      deletions: { configmaps, namespaces },
      ...{ present: { content, pods: readOk([]) }, together: [] },
    },
  });
  Object.assign(now.cluster, {
    clusterRoles: readOk([roleFacts({ metadata: { name: NAME }, rules })]),
    clusterRoleBindings: readOk([
      bindingFacts({
        ...{ metadata: { name: NAME }, roleRef: { kind: 'ClusterRole', name: NAME } },
        subjects: [controller],
      }),
    ]),
    ...cluster,
  });
  const foreseen = foresee(now, false);
  return {
    outcome: forecastOf(foreseen),
    subjects: foreseen.findings.map(({ subject }) => `${subject.kind} ${subject.name}`),
    reasons: foreseen.notInspected.map(({ reason }) => reason).join(),
  };
}

const rule = (operation: string, resource: string): JsonObject => ({
  ...{ operations: [operation], resources: [resource], apiGroups: [''], apiVersions: ['v1'] },
});

const webhook = (configuration: string, of: JsonObject, expressions: string[] = []) =>
  webhookFacts('ValidatingWebhookConfiguration')({
    metadata: { name: configuration },
    webhooks: [
      {
        ...{ name: 'guard.acme.org', rules: [of] },
        matchConditions: expressions.map((expression) => ({ name: 'x', expression })),
      },
    ],
  });

test.each<[string, string[]]>([
  ['no condition', []],
  ['a condition about users', ['request.userInfo.username != "admin"']],
])(
  'of two webhooks of one name, the one is blamed that is asked, though the other has %s',
  (_, conditions) => {
    const first = webhook('first', rule('CREATE', 'pods'), conditions);
    const second = webhook('second', rule('DELETE', 'configmaps'));
    const { outcome, subjects } = forecastWith(
      { validatingWebhooks: readOk([...first, ...second]) },
      '403 Forbidden: admission webhook "guard.acme.org" denied the request: keep it',
    );
    expect({ outcome, subjects }).toEqual({
      outcome: 'would-hang',
      subjects: ['ValidatingWebhookConfiguration second'],
    });
  },
);

test('a refusal by a webhook whose rules do not fit is never passed over', () => {
  const conditions = ['request.userInfo.username != "admin"'];
  const { outcome } = forecastWith(
    { validatingWebhooks: readOk(webhook('only', rule('CREATE', 'pods'), conditions)) },
    '403 Forbidden: admission webhook "guard.acme.org" denied the request: keep it',
  );
  expect(outcome).not.toBe('clear');
});

const policies = (
  resource: string,
  bindings: JsonObject[],
  expression = 'false',
): Partial<Snapshot['cluster']> => ({
  validatingPolicies: readOk([
    policyFacts('ValidatingAdmissionPolicy')({
      metadata: { name: 'keep' },
      spec: {
        matchConstraints: { resourceRules: [rule('DELETE', resource)] },
        validations: [{ expression }],
      },
    }),
  ]),
  validatingPolicyBindings: readOk(
    bindings.map((spec, at) =>
      policyBindingFacts({
        metadata: { name: `binding-${at}` },
        spec: { policyName: 'keep', validationActions: ['Deny'], ...spec },
      }),
    ),
  ),
});

test('a refusal of a policy is that of the binding in its text', () => {
  const elsewhere = { matchResources: { namespaceSelector: { matchLabels: { env: 'prod' } } } };
  const { outcome, reasons } = forecastWith(
    policies('configmaps', [elsewhere, {}]),
    `403 Forbidden: configmaps "settings" is forbidden: ValidatingAdmissionPolicy 'keep' with binding 'binding-1' denied request: keep it`,
  );
  expect({ outcome, reasons }).toEqual({ outcome: 'would-hang', reasons: '' });
});

test('a binding that only warns is not asked', () => {
  const only = policies('configmaps', [{ validationActions: ['Warn'] }]);
  expect(forecastWith(only, '403 Forbidden: no').reasons).not.toContain('keep');
});

test('a refusal of a mutating policy counts, though it looks at who asks', () => {
  const { outcome, subjects } = forecastWith(
    {
      mutatingPolicies: readOk([
        policyFacts('MutatingAdmissionPolicy')({
          metadata: { name: 'sizes' },
          spec: {
            matchConstraints: { resourceRules: [rule('*', 'configmaps')] },
            variables: [{ name: 'who', expression: 'request.userInfo.username' }],
          },
        }),
      ]),
      mutatingPolicyBindings: readOk([
        policyBindingFacts({ metadata: { name: 'all' }, spec: { policyName: 'sizes' } }),
      ]),
    },
    `403 Forbidden: configmaps "settings" is forbidden: policy 'sizes' with binding 'all' denied request: no such key`,
  );
  expect({ outcome, subjects }).toEqual({
    outcome: 'would-hang',
    subjects: ['MutatingAdmissionPolicy sizes'],
  });
});

test.each([
  ['namespaces', 'clear'],
  ['configmaps', 'inconclusive'],
])('the parameters of a policy are there when %s are deleted: %s', (resource, outcome) => {
  const paramRef = { name: 'limits', namespace: DEMO, parameterNotFoundAction: 'Deny' };
  expect(forecastWith(policies(resource, [{ paramRef }])).outcome).toBe(outcome);
});

test.each<[Trial, string, string]>([
  [{ answer: 'accepted' }, 'namespaces', 'inconclusive'],
  [{ answer: 'unknown', message: '403 Forbidden: no' }, 'namespaces', 'would-hang'],
  [{ answer: 'accepted' }, 'configmaps', 'would-hang'],
])('a policy that lets one user delete, whose dry run is %j, about %s: %s', (trial, ...row) => {
  const [resource, outcome] = row;
  const only = policies(resource, [{}], 'request.userInfo.username == "ci"');
  expect(forecastWith(only, undefined, trial).outcome).toBe(outcome);
});
