import type { Remedy } from '../../model/finding.ts';
import { type TypeRef, typeName } from '../display.ts';
import type { ServiceRef } from '../error-kinds.ts';
import { kubectl } from './commands.ts';
import { serviceRemedy } from './services.ts';

/** With and without `--use-service-account-credentials`. */
const CONTROLLER = 'system:serviceaccount:kube-system:namespace-controller';
const ROLE = 'system:controller:namespace-controller';

/** The namespace controller may not list or delete a type. */
export function deletionForbiddenRemedies(input: {
  type: Pick<TypeRef, 'group' | 'resource'>;
  namespace: string;
  /** As the error names them; absent when an extension API server answered in its own words. */
  user?: string | undefined;
  verb?: string | undefined;
  /** Backend of an extension API. */
  backend?: ServiceRef | undefined;
}): Remedy[] {
  const { type, namespace, user, verb, backend } = input;
  const can = kubectl(
    'auth',
    'can-i',
    verb ?? 'deletecollection',
    typeName(type),
    '-n',
    namespace,
    `--as=${user ?? CONTROLLER}`,
  );
  if (user === undefined && backend !== undefined) {
    return [
      serviceRemedy(
        backend,
        `The extension API behind Service ${backend.namespace}/${backend.name} refuses: give the namespace controller (${CONTROLLER}) list and deletecollection there`,
      ),
    ];
  }
  return [
    {
      text: `Give ${user ?? CONTROLLER} the right back; this shows whether it has it`,
      command: can,
    },
    {
      role: 'look',
      text: `Kubernetes grants it by ClusterRole and ClusterRoleBinding ${ROLE}; a restart of kube-apiserver restores both unless their annotation rbac.authorization.kubernetes.io/autoupdate is false`,
      command: kubectl('get', 'clusterrole,clusterrolebinding', ROLE, '-o', 'yaml'),
    },
  ];
}
