import { setTimeout as sleep } from 'node:timers/promises';
import { configMap, pod } from '../objects.ts';
import type { Scenario, Seen } from '../scenario.ts';
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

/** What a backlog of the namespace controller looks like from outside: everything else goes on. */
const backlog: Scenario = {
  id: 'backlog',
  title: 'kube-controller-manager runs, and its namespace controller has not got there yet',
  own: 'new',
  setUp: async (world) => {
    await world.createNamespace();
    await world.create(configMap(world.namespace, 'settings'));
    await world.plane?.controllerManager.stop();
    await world.plane?.controllerManager.start(['*', '-namespace-controller']);
  },
  settle: async (world) => {
    await world.leaderLeaseIsRenewed();
    await sleep(16_000); // longer than its first pass has to wait
  },
  expect: (world) => ({
    ...stuck([
      {
        code: 'namespace-controller-inactive',
        subject: world.namespaceRef,
        says: [/although kube-controller-manager runs/],
      },
    ]),
    queued: { kinds: ['ConfigMap', 'ServiceAccount'], exactly: true },
    also: accusesNobody,
  }),
  beyondCommands: 'a backlog takes its time',
  cure: async ({ plane }) => {
    await plane?.controllerManager.stop();
    await plane?.controllerManager.start();
  },
};

/** Nothing shows that kube-controller-manager has to be started. */
const accusesNobody = ({ namespace }: Seen): void => {
  const wrong = namespace.findings
    .flatMap(({ remedies }) => remedies)
    .filter(({ role, text }) => role === 'now' && /^Start/.test(text));
  if (wrong.length > 0) throw new Error(`a duty without a reason: ${JSON.stringify(wrong)}`);
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

/** All conditions are green, and it is empty: only its rights show why it is still there. */
const endForbidden: Scenario = {
  ...deletionForbidden,
  id: 'end-forbidden',
  title: 'the namespace controller may not end namespaces',
  setUp: async (world) => {
    await world.createNamespace();
    const all = ['delete', 'deletecollection', 'get', 'list', 'watch'];
    const role = 'system:controller:namespace-controller';
    await world.client.patch(
      { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', name: role },
      { rules: [rule('', ['namespaces/status'], ['update']), rule('*', ['*'], all)] },
    );
  },
  settle: async (world) => {
    await world.settled();
    await sleep(10_000);
  },
  expect: () =>
    stuck([
      {
        code: 'deletion-forbidden',
        subject: resourceType('v1', 'namespaces'),
        says: [/no rule lets \S+ update namespaces\/finalize/],
      },
    ]),
};

export const namespaceController = [s44, backlog, deletionForbidden, endForbidden];
