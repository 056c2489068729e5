import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadAll } from 'js-yaml';
import type { JsonObject } from '../../src/base/json.ts';
import { REPOSITORY } from '../stub/action-yml.ts';

/**
 * Who the gate is in the tests: users with as few rights as the feature under test needs. Never the
 * admin, who may read and write everything and would hide a missing permission.
 */
export const IDENTITIES = [
  'teardown-waiter', // may only get namespaces: no watch, no diagnosis
  'teardown-reader', // reads everything a diagnosis needs
  'teardown-logs', // the same, and the logs of pods
  'teardown-gate', // the same, and may delete namespaces
  'teardown-forecaster', // reads everything, and may ask for deletions as dry runs
  'teardown-force', // the same, and may do what force-finalize does
  'teardown-guest', // nothing but what a Role in some namespace grants
] as const;

export type Identity = (typeof IDENTITIES)[number];

/**
 * People who may do everything, as whoever follows a report may. One at a time is one scenario's, so
 * that the audit log tells what a command of that scenario has changed.
 */
export const PERSON = 'person';

/** Where their ServiceAccounts live on a cluster that was not started by these tests. */
export const IDENTITY_NAMESPACE = 'teardown-gate-identities';

interface Rule extends JsonObject {
  verbs: string[];
}

function rule(apiGroup: string, resources: string[], verbs: string[]): Rule {
  return { apiGroups: [apiGroup], resources, verbs };
}

function shipped(name: string): Rule[] {
  const text = readFileSync(join(REPOSITORY, 'rbac', `${name}.yaml`), 'utf8');
  return (loadAll(text) as { rules: Rule[] }[]).flatMap(({ rules }) => rules);
}

/** As shipped: whatever the gate reads in any scenario, these files have to grant. */
const READ = shipped('reader');
const LOGS = shipped('logs');
const DELETE = shipped('delete');
const FORCE = [
  rule('*', ['*'], ['patch']),
  rule('', ['namespaces/finalize'], ['update']),
  rule('', ['pods'], ['delete']),
];

const RULES: Record<Identity, Rule[]> = {
  'teardown-waiter': [rule('', ['namespaces'], ['get'])],
  'teardown-reader': READ,
  'teardown-logs': [...READ, ...LOGS],
  'teardown-gate': [...READ, ...DELETE],
  'teardown-forecaster': [...READ, rule('*', ['*'], ['delete', 'patch'])],
  'teardown-force': [...READ, ...DELETE, ...FORCE],
  'teardown-guest': [],
};

/**
 * Those that may change every object. On a control plane of these tests they are bound when a test asks for them: where
 * anybody else may change a type, no owner is proven to be missing.
 */
export const MAY_CHANGE: readonly Identity[] = ['teardown-forecaster', 'teardown-force'];

/** ClusterRoles and bindings, for users of these names and for ServiceAccounts of these names. */
export function identityObjects(identities: readonly Identity[] = IDENTITIES): JsonObject[] {
  return identities.flatMap((identity) => [
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: identity },
      rules: RULES[identity],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: identity },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: identity },
      subjects: identitySubjects(identity),
    },
  ]);
}

export function identitySubjects(identity: Identity): JsonObject[] {
  return [
    { apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: identity },
    { kind: 'ServiceAccount', namespace: IDENTITY_NAMESPACE, name: identity },
  ];
}
