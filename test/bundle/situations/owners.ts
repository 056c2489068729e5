import { arrayAt, type JsonObject, stringAt } from '../../../src/base/json.ts';
import type { Cluster } from '../../stub/api/cluster.ts';
import { ask } from '../../stub/ask.ts';
import { failure } from '../../stub/faults.ts';
import type { Situation } from './situation.ts';

/** Controllers that do their work and cannot finish it. */

const POD = '/api/v1/namespaces/preview-s5/pods/provider-0';
const COLLECTOR = 'foregroundDeletion';

/** Its owner was deleted in the foreground, and a mesh had put a container into it. */
function collectedPod(cluster: Cluster): void {
  cluster.change(POD, (pod) => {
    const metadata = pod['metadata'] as JsonObject;
    metadata['finalizers'] = [COLLECTOR];
    metadata['managedFields'] = [];
    const sidecar = { name: 'istio-proxy', image: 'example.com/proxy:1', resources: {} };
    const spec = pod['spec'] as JsonObject;
    spec['containers'] = [...arrayAt(spec, 'containers'), sidecar];
  });
  cluster.create('/api/v1/namespaces/preview-s5/limitranges/defaults', {
    metadata: {
      name: 'defaults',
      namespace: 'preview-s5',
      uid: '0a1b2c3d-0000-4000-8000-000000000001',
      creationTimestamp: '2026-11-21T11:11:10Z',
    },
    spec: {
      limits: [{ type: 'Container', default: { cpu: '1' }, defaultRequest: { cpu: '100m' } }],
    },
  });
}

/**
 * The defaults of the LimitRange are filled in at every update, so each one changes what may not be
 * changed (apis/core/validation, ValidatePodUpdate). The difference of the specs follows.
 */
const IMMUTABLE = `Pod "provider-0" is invalid: spec: Forbidden: pod updates may not change fields other than \`spec.containers[*].image\`, \`spec.initContainers[*].image\`, \`spec.activeDeadlineSeconds\` or \`spec.tolerations\` (only additions to existing tolerations)
  core.PodSpec{
  \t... // 2 identical fields
  \tContainers: []core.Container{
- \t\t{Name: "istio-proxy", Resources: core.ResourceRequirements{}},
+ \t\t{Name: "istio-proxy", Resources: core.ResourceRequirements{Limits: core.ResourceList{s"cpu": {}}}},
  \t},
  }`;

const WIDGET = '/apis/example.com/v1/namespaces/preview-s46/widgets/db';
const AGAIN = 'widgets.example.com/again';

/** Nothing yet of what the operator will say. */
function silentOperator(cluster: Cluster): void {
  for (const version of ['/api/v1', '/apis/events.k8s.io/v1']) {
    cluster.remove(`${version}/namespaces/widget-system/events/db.1a1fe9d6287`);
  }
  cluster.change(WIDGET, (widget) => {
    delete widget['status'];
  });
}

export const OWNERS: readonly Situation[] = [
  {
    id: 'S24',
    what: 'the garbage collector may not update a pod, because each update would change its spec',
    recording: 'S5',
    change: collectedPod,
    rules: [
      { request: /^PATCH .*\/pods\/provider-0\?/, fault: failure(422, 'Invalid', IMMUTABLE) },
    ],
    outcome: 'stuck',
    chains: [['object-finalizer', 'owner-failing']],
    says: [
      `Pod provider-0 is held by finalizer ${COLLECTOR}. Its controller, Pod kube-system/kube-controller-manager, should remove the finalizer, but its requests`,
      'fail: 422 Unprocessable Entity: Pod "provider-0" is invalid: spec: Forbidden: pod updates may not change fields other than',
    ],
    saysNot: ['nothing shows that it fails', 'has no controller'],
  },
  {
    id: 'S46',
    what: 'the operator, refused by the server itself, tells why in the status of its object',
    recording: 'S46',
    change: silentOperator,
    before: async (server, token) => {
      const { status, body } = await ask(server, 'PATCH', WIDGET, {
        token,
        contentType: 'application/json-patch+json',
        body: [{ op: 'add', path: '/metadata/finalizers/-', value: AGAIN }],
      });
      const message = `cannot reconcile: ${stringAt(body, 'message')} (${status})`;
      server.mutate((cluster) =>
        cluster.change(WIDGET, (widget) => {
          const ready = { type: 'Ready', status: 'False', reason: 'ReconcileFailed', message };
          widget['status'] = {
            conditions: [{ ...ready, lastTransitionTime: '2026-11-21T14:58:09Z' }],
          };
        }),
      );
    },
    outcome: 'stuck',
    chains: [['object-finalizer', 'owner-failing']],
    says: [
      `no new finalizers can be added if the object is being deleted, found new finalizers []string{"${AGAIN}"}`,
    ],
    saysNot: ['nothing shows that it fails'],
  },
  {
    id: 'S26',
    what: 'a claim whose volume is never detached from its node',
    recording: 'S26',
    outcome: 'stuck',
    chains: [['object-finalizer', 'owner-unknown']],
    says: ['PersistentVolumeClaim data is held by finalizer cns.vmware.com/pvc-protection'],
    saysNot: ['external-attacher/csi-vsphere in'],
  },
];
