import type { JsonObject } from '../../../src/base/json.ts';
import type { Cluster } from '../../stub/api/cluster.ts';
import type { Fault } from '../../stub/fault-proxy.ts';
import { failure } from '../../stub/faults.ts';
import { KUBESPHERE, KUBESPHERE_METADATA } from '../../stub/kubesphere.ts';
import { readRecording } from '../../stub/recordings.ts';
import type { Situation } from './situation.ts';

/** What becomes of the namespace object itself. */

const HELD = 'preview-s7';
const HELD_PATH = `/api/v1/namespaces/${HELD}`;

/** As it was before anybody asked for its deletion. */
function active(cluster: Cluster): void {
  cluster.change(HELD_PATH, (namespace) => {
    delete (namespace['metadata'] as JsonObject)['deletionTimestamp'];
    namespace['status'] = { phase: 'Active' };
  });
}

/** As recorded: somebody else's DELETE came first, and the namespace controller has begun. */
function terminating(cluster: Cluster): void {
  const namespaces = readRecording('S7').collections.find(
    ({ resource }) => resource === 'namespaces',
  );
  const recorded = namespaces?.objects.find(
    ({ metadata }) => (metadata as JsonObject)['name'] === HELD,
  );
  if (recorded === undefined) throw new Error(`${HELD} was not recorded`);
  cluster.create(HELD_PATH, recorded);
}

/** Until Kubernetes 1.19, to every DELETE but the first (registry/core/namespace/storage). */
const conflict = failure(
  409,
  'Conflict',
  `Operation cannot be fulfilled on namespaces "${HELD}": The system is ensuring all content is removed from this namespace.  Upon completion, this namespace will automatically be purged by the system.`,
  { details: { name: HELD, kind: 'namespaces' } },
);
/** The server hears of it, so that what it does meanwhile can be scripted. */
const alreadyRemoving: Fault = async (exchange) => {
  await exchange.ask();
  return conflict(exchange);
};

const secondDelete: Pick<
  Situation,
  'recording' | 'change' | 'script' | 'rules' | 'inputs' | 'mutations'
> = {
  recording: 'S7',
  change: active,
  script: [{ when: { request: /^DELETE / }, change: terminating }],
  rules: [{ request: /^DELETE /, fault: alreadyRemoving }],
  inputs: { delete: 'true' },
  mutations: [`DELETE ${HELD_PATH}`],
};

const LEASES = 'kube-node-lease';

/** What an uninstalled KubeSphere left on it, and all that was in it has gone. */
function heldByKubeSphere(cluster: Cluster): void {
  cluster.remove(`/api/v1/namespaces/${LEASES}/configmaps/kube-root-ca.crt`);
  cluster.remove(`/api/v1/namespaces/${LEASES}/serviceaccounts/default`);
  const example = cluster.read('/api/v1/namespaces/preview-s5');
  cluster.change(`/api/v1/namespaces/${LEASES}`, (namespace) => {
    const metadata = namespace['metadata'] as JsonObject;
    metadata['deletionTimestamp'] = '2026-11-21T11:11:10Z';
    const { labels, ...rest } = KUBESPHERE_METADATA;
    Object.assign(metadata, rest, { labels: { 'kubernetes.io/metadata.name': LEASES, ...labels } });
    namespace['spec'] = {};
    // All five False, with and without a finalizer of the namespace itself.
    namespace['status'] = example?.['status'] ?? {};
  });
}

/** Every permission that there is. */
const ALL_ALLOWED = {
  namespace: LEASES,
  'force-namespaces': LEASES,
  'force-label': 'kubesphere.io/workspace=system-workspace',
  'force-finalizers': `${KUBESPHERE}, kubernetes, *`,
  'force-pods': 'true',
  'force-orphans': 'accept',
};

function protectedFrom(mode: 'plan' | 'objects' | 'namespace'): Situation {
  return {
    id: `SEED-1b-${mode}`,
    what: `kube-node-lease is never forced, whatever force-finalize: ${mode} is allowed`,
    recording: 'S5',
    change: heldByKubeSphere,
    inputs: { ...ALL_ALLOWED, 'force-finalize': mode },
    outcome: 'stuck',
    chains: [['namespace-finalizer', 'owner-missing']],
    says: [
      'it is protected: names that begin with "kube-" belong to Kubernetes; no input overrides that',
    ],
    check: ({ outputs, report }) => {
      const actions = report?.namespaces[0]?.forced?.actions ?? [];
      return [...(outputs['forced'] === 'false' ? [] : ['forced']), ...actions.map(String)];
    },
  };
}

export const NAMESPACES: readonly Situation[] = [
  {
    id: 'SEED-3c',
    what: 'the second DELETE is answered 409, and the namespace hangs',
    ...secondDelete,
    outcome: 'stuck',
    chains: [['apiservice-unavailable']],
    says: [
      'APIService v1beta1.metrics.example.com does not respond: its backend is Service default/gone, which does not exist',
    ],
    saysNot: ['cannot delete', 'The system is ensuring'],
  },
  {
    id: 'SEED-3c-ends',
    what: 'the second DELETE is answered 409, and the namespace goes',
    ...secondDelete,
    inputs: { delete: 'true', timeout: '20s' },
    during: async ({ server, step }) => {
      await step.says(/waiting up to/);
      server.mutate((cluster) => cluster.removeNamespace(HELD));
    },
    outcome: 'deleted',
    chains: [],
    says: [`${HELD} was deleted`],
    saysNot: ['is stuck', 'cannot delete', 'The system is ensuring'],
  },
  protectedFrom('plan'),
  protectedFrom('objects'),
  protectedFrom('namespace'),
  {
    id: 'SEED-1b-delete',
    what: 'kube-node-lease, which a server would delete, is never asked to go',
    recording: 'S5',
    inputs: { namespace: LEASES, delete: 'true' },
    outcome: 'error',
    chains: [],
    says: ['namespace "kube-node-lease" is never deleted: names that begin with "kube-" belong'],
    saysNot: ['requested its deletion'],
  },
];
