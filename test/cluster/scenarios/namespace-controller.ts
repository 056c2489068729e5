import { configMap, pod } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import { CONTENT_FAILURE, resourceType, stuck } from './links.ts';
import { rule } from './operator.ts';

/** The namespace controller itself is not there, or may not do its work. */

/** Nobody processes the namespace: its objects have not even been asked to go. */
const s44: Scenario = {
  id: 'S44',
  title: 'kube-controller-manager is stopped',
  own: 'new',
  setUp: async (world) => {
    await world.createNamespace();
    await world.createAll([configMap(world.namespace, 'settings'), pod(world.namespace, 'web')]);
    await world.plane?.controllerManager.stop();
  },
  settle: (world) => world.leaderLeaseExpires(),
  expect: (world) => ({
    ...stuck([{ code: 'namespace-controller-inactive', subject: world.namespaceRef }]),
    queued: { kinds: ['ConfigMap', 'Pod', 'ServiceAccount'], exactly: true },
  }),
  beyondCommands: 'kube-controller-manager has to be started where it runs',
  cure: async ({ plane }) => plane?.controllerManager.start(),
};

/** The namespace controller is there, but its rights were cut: seen after hand-made RBAC hardening. */
const deletionForbidden: Scenario = {
  id: 'deletion-forbidden',
  title: 'the namespace controller may not delete Leases',
  own: 'new',
  setUp: async (world) => {
    await world.createNamespace();
    const groups = ['', 'apps', 'autoscaling', 'batch', 'discovery.k8s.io', 'events.k8s.io'];
    const more = ['networking.k8s.io', 'policy', 'rbac.authorization.k8s.io', 'resource.k8s.io'];
    await world.client.patch(
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRole',
        name: 'system:controller:namespace-controller',
      },
      {
        rules: [
          rule(
            '',
            ['namespaces', 'namespaces/finalize', 'namespaces/status'],
            ['delete', 'get', 'list', 'update', 'watch'],
          ),
          {
            apiGroups: [...groups, ...more, 'storage.k8s.io'],
            resources: ['*'],
            verbs: ['delete', 'deletecollection', 'get', 'list'],
          },
        ],
      },
    );
  },
  settle: (world) => world.settled({ [CONTENT_FAILURE]: ['True', /leases.* is forbidden/] }),
  beyondCommands: 'a restart of kube-apiserver restores what was cut',
  cure: async ({ plane }) => plane?.restartApiServer(),
  expect: () =>
    stuck([
      {
        code: 'deletion-forbidden',
        subject: resourceType('coordination.k8s.io/v1', 'leases.coordination.k8s.io'),
        says: [/namespace-controller/],
      },
    ]),
};

export const namespaceController = [s44, deletionForbidden];
