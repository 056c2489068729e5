export const KUBESPHERE = 'finalizers.kubesphere.io/namespaces';

/** What KubeSphere writes on a namespace of its system workspace. */
export const KUBESPHERE_METADATA = {
  finalizers: [KUBESPHERE],
  labels: { 'kubesphere.io/workspace': 'system-workspace' },
  ownerReferences: [
    {
      apiVersion: 'tenant.kubesphere.io/v1alpha1',
      kind: 'Workspace',
      name: 'system-workspace',
      uid: '0a1b2c3d-0000-4000-8000-000000000000',
      controller: true,
      blockOwnerDeletion: true,
    },
  ],
};
