import type { JsonObject } from '../../../src/base/json.ts';
import type { Cluster } from '../../stub/api/cluster.ts';
import { reply } from '../../stub/faults.ts';
import type { Situation } from './situation.ts';

/** What the API servers know, and in which words they say it. */

/** Built in since Kubernetes 1.34: the server that is still older does not know it. */
const NEW = 'resource.k8s.io/v1';
const OF_NEW = /^GET \/apis\/resource\.k8s\.io\/v1(\?|$)/;
/** Of a path that no handler was installed for; not a Status (apiserver, routes). */
const unknownPath = reply(404, '404 page not found\n');

/** client-go's words for it, as the namespace controller passes them on (discovery_client.go). */
const UNDISCOVERED = `Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: ${NEW}: the server could not find the requested resource`;

const EMPTY = 'preview-s7';

/** S7 after `kubectl delete apiservice`, with another complaint: nothing holds the empty namespace. */
function emptyNamespace(condition: JsonObject): (cluster: Cluster) => void {
  return (cluster) => {
    cluster.removeApiService('v1beta1.metrics.example.com');
    cluster.change(`/api/v1/namespaces/${EMPTY}`, (namespace) => {
      const status = namespace['status'] as JsonObject;
      status['conditions'] = (status['conditions'] as JsonObject[]).map((known) =>
        known['type'] === condition['type'] ? { ...known, ...condition } : known,
      );
    });
  };
}

const rollingUpgrade: Pick<Situation, 'recording' | 'plainDiscovery' | 'change'> = {
  recording: 'S7',
  plainDiscovery: true,
  change: emptyNamespace({ type: 'NamespaceDeletionDiscoveryFailure', message: UNDISCOVERED }),
};

/** Kubernetes 1.15 had no conditions on namespaces, and elected its leaders with Endpoints. */
function asOn115(cluster: Cluster): void {
  cluster.change(`/api/v1/namespaces/${EMPTY}`, ({ metadata, status }) => {
    delete (status as JsonObject)['conditions'];
    delete (metadata as JsonObject)['managedFields'];
  });
  cluster.remove(
    '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager',
  );
}

export const API_SERVERS: readonly Situation[] = [
  {
    id: 'S12',
    what: 'in a rolling upgrade, the API server that answers does not know a built-in group yet',
    ...rollingUpgrade,
    rules: [{ request: OF_NEW, fault: unknownPath }],
    outcome: 'stuck',
    chains: [['discovery-failed']],
    says: [
      'APIService v1.resource.k8s.io cannot be discovered',
      'no APIService for it could be read',
      'If the control plane is being upgraded, wait',
      `Not inspected: API group ${NEW}`,
    ],
    saysNot: ['kubectl delete apiservice'],
  },
  {
    id: 'S12-between',
    what: 'the look before the timeout met the old API server, the last one a new one',
    ...rollingUpgrade,
    rules: [{ request: OF_NEW, times: 1, fault: unknownPath }],
    outcome: 'progressing',
    chains: [],
    says: ['The error that Kubernetes reported is fixed; it tries again within a minute'],
    saysNot: ['is stuck'],
  },
  {
    id: 'S12-over',
    what: 'the upgrade ends while the gate waits',
    ...rollingUpgrade,
    rules: [{ request: OF_NEW, times: 1, fault: unknownPath }],
    inputs: { timeout: '20s' },
    during: async ({ server, step }) => {
      await step.says(/cannot be discovered/);
      server.mutate((cluster) => cluster.removeNamespace(EMPTY));
    },
    outcome: 'deleted',
    chains: [],
    says: [`${EMPTY} was deleted`],
    saysNot: ['is stuck'],
  },
  {
    id: 'SEED-3b',
    what: 'a dead APIService on a server of long ago, which writes no conditions',
    recording: 'S7',
    version: { major: '1', minor: '15', gitVersion: 'v1.15.12' },
    plainDiscovery: true,
    change: asOn115,
    outcome: 'stuck',
    chains: [['apiservice-unavailable']],
    says: [
      'APIService v1beta1.metrics.example.com does not respond: its backend is Service default/gone, which does not exist',
      'Not inspected: API group metrics.example.com/v1beta1',
    ],
    saysNot: ['has not been processed'],
  },
];
