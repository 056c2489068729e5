import { at } from '../base/json.ts';
import type { ForceAction } from './plan.ts';
import type { Run } from './step.ts';

/** One right that a write needs, in RBAC's words. */
export interface Right {
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
  const [type, subresource] = resource.split('/');
  return `${verb} ${type}${group === '' ? '' : `.${group}`}${subresource === undefined ? '' : `/${subresource}`}`;
}

/**
 * Those that the API server says we lack. Requests below a namespace, and those for a namespace itself,
 * are authorized in it. Where the question is not answered, the write itself will be.
 */
export async function missingRights(
  { api, signal, plan: { namespace } }: Run,
  actions: readonly ForceAction[],
): Promise<Right[]> {
  const rights = [...new Map(actions.map(rightFor).map((one) => [rightText(one), one])).values()];
  const answers = await Promise.all(
    rights.map(({ verb, group, resource: path }) => {
      const [resource, subresource] = path.split('/');
      const ofNamespace = resource === 'namespaces' ? { name: namespace.name } : {};
      const where = { namespace: namespace.name, verb, group, resource, ...ofNamespace };
      const resourceAttributes = subresource === undefined ? where : { ...where, subresource };
      return api.send(
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
    }),
  );
  return rights.filter((_, index) => {
    const answer = answers[index];
    return answer?.ok === true && at(answer.value, 'status', 'allowed') === false;
  });
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
