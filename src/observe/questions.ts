import type { ResourceType } from '../model/snapshot.ts';

/** What a diagnosis wants to know beyond the sweep. Reading it is the observer's. */
export interface Questions {
  /** CRDs by name. */
  crds: string[];
  /** Status of these objects. */
  statuses: ObjectRef[];
  /** Workloads of the whole cluster: who could remove a finalizer? */
  workloads: boolean;
  /** Which ServiceAccounts RBAC lets change what, by ClusterRoleBindings. */
  grants: boolean;
  /** And by RoleBindings of the namespace; those of others grant nothing in it. */
  namespaceGrants: boolean;
  webhooks: boolean;
  /** CRDs that convert through a webhook: an API server may not say which of them is broken. */
  conversions: boolean;
  apiServices: boolean;
  otherTerminating: boolean;
  /** As `namespace/name`. */
  services: string[];
  /** Namespaces whose warning events are wanted. */
  events: string[];
  /** Namespaces whose Leases are wanted. */
  leases: string[];
  /** Removals to try as dry runs. */
  trials: TrialRequest[];
  attachments: boolean;
  /** Whether the nodes belong to a cloud provider. */
  provider: boolean;
}

export interface ObjectRef {
  type: ResourceType;
  namespace: string;
  name: string;
  uid: string;
}

export interface TrialRequest extends ObjectRef {
  finalizer: string;
  /** Place of the finalizer in the list that was read. */
  index: number;
}

export function noQuestions(): Questions {
  return {
    crds: [],
    statuses: [],
    workloads: false,
    grants: false,
    namespaceGrants: false,
    webhooks: false,
    conversions: false,
    apiServices: false,
    otherTerminating: false,
    services: [],
    events: [],
    leases: [],
    trials: [],
    attachments: false,
    provider: false,
  };
}

export function hasQuestions(questions: Questions): boolean {
  return Object.values(questions).some((question) =>
    Array.isArray(question) ? question.length > 0 : question === true,
  );
}
