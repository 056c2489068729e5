import { at } from '../base/json.ts';
import { typeName } from '../model/facts.ts';
import type { ForceAction } from './plan.ts';
import type { ForceRun } from './step.ts';

/** One right that a write needs, in RBAC's words. */
interface Right {
  verb: 'patch' | 'update' | 'delete';
  group: string;
  /** With its subresource, if any: `namespaces/finalize`. */
  resource: string;
}

export function rightFor(action: ForceAction): Right {
  switch (action.step) {
    case 'object-finalizer':
      return { verb: 'patch', group: action.type.group, resource: action.type.resource };
    case 'overdue-pods':
      return { verb: 'delete', group: '', resource: 'pods' };
    case 'namespace-finalizer':
      return { verb: 'patch', group: '', resource: 'namespaces' };
    case 'namespace-spec-finalizer':
      return { verb: 'update', group: '', resource: 'namespaces/finalize' };
  }
}

/** "patch widgets.example.com" */
export function rightText({ verb, group, resource }: Right): string {
  const [type = '', ...subresource] = resource.split('/');
  return `${verb} ${[typeName({ group, resource: type }), ...subresource].join('/')}`;
}

/**
 * Those that the API server says we lack. Requests below a namespace, and those for a namespace itself,
 * are authorized in it. Where the question is not answered, the write itself will be.
 */
export async function missingRights(
  { api, signal, plan: { namespace } }: ForceRun,
  actions: readonly ForceAction[],
): Promise<Right[]> {
  const rights = [...new Map(actions.map(rightFor).map((one) => [rightText(one), one])).values()];
  const isAllowed = async ({ verb, group, resource: path }: Right): Promise<boolean> => {
    const [resource, subresource] = path.split('/');
    const resourceAttributes = {
      ...{ namespace: namespace.name, verb, group, resource },
      ...(resource === 'namespaces' ? { name: namespace.name } : {}),
      ...(subresource === undefined ? {} : { subresource }),
    };
    const answer = await api.send(
      {
        method: 'POST',
        path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
        body: {
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SelfSubjectAccessReview',
          spec: { resourceAttributes },
        },
      },
      { signal },
    );
    return !answer.ok || at(answer.value, 'status', 'allowed') !== false;
  };
  const allowed = await Promise.all(rights.map(isAllowed));
  return rights.filter((_, index) => !allowed[index]);
}

/** The RBAC rules that grant just these, in YAML's flow style. */
export function grantRules(rights: readonly Right[]): string {
  const alike = Map.groupBy(rights, ({ group, verb }) => `${group} ${verb}`).values();
  const rules = Array.from(alike, (same) => {
    const { group, verb } = same[0] as Right;
    const resources = same.map(({ resource }) => JSON.stringify(resource));
    return `{apiGroups: ["${group}"], resources: [${resources.join(', ')}], verbs: ["${verb}"]}`;
  });
  return `[${rules.join(', ')}]`;
}
