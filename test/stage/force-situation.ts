import type { JsonObject } from '../../src/base/json.ts';
import type { ResourceType } from '../../src/model/snapshot.ts';
import { FakeClock } from './fake-clock.ts';
import { FakeCluster, PODS, WIDGETS } from './fake-cluster.ts';
import { DEMO } from './gate-run.ts';

/** Who could have removed the finalizer, told as manifests: what a test of forcing builds with. */
export const FINALIZER = 'widgets.example.com/cleanup';
export const OPS = 'ops';
export const CLAIMS: ResourceType = {
  group: '',
  version: 'v1',
  resource: 'persistentvolumeclaims',
  kind: 'PersistentVolumeClaim',
  namespaced: true,
  verbs: ['get', 'list', 'watch', 'patch', 'delete'],
};

export class Situation {
  readonly clock = new FakeClock();
  readonly cluster = new FakeCluster(this.clock);

  /**
   * A Widget that terminates and is held; its type is defined, and whoever wrote the finalizer
   * (`widget-operator`) is gone without a trace.
   */
  constructor() {
    const { cluster } = this;
    cluster.types = [PODS, WIDGETS, CLAIMS];
    for (const name of ['default', 'kube-system', OPS]) cluster.namespace(name, { active: true });
    cluster.namespace(DEMO, { metadata: { labels: { ephemeral: 'true' } } });
    cluster.put('/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com', {
      metadata: { name: 'widgets.example.com' },
      spec: { group: 'example.com', names: { kind: 'Widget' } },
    });
    cluster.put('/apis/apiregistration.k8s.io/v1/apiservices/v1.example.com', {
      metadata: { name: 'v1.example.com' },
      spec: { group: 'example.com', version: 'v1' },
      status: { conditions: [{ type: 'Available', status: 'True', reason: 'Local' }] },
    });
    this.lease('kube-system', 'kube-controller-manager', 1, 'control-plane-0');
    this.cluster.answers.set('DRY PATCH', { ok: true, value: {} });
  }

  at(offsetMs: number): string {
    return new Date(this.clock.now() + offsetMs).toISOString().replace(/\.\d+/, '');
  }

  /** A terminating object with these finalizers, the last of them written by this manager. */
  held(type: ResourceType, name: string, given: Held = {}): this {
    const { finalizers = [FINALIZER], manager = 'widget-operator', rest = {} } = given;
    const fields = Object.fromEntries(finalizers.map((one) => [`v:"${one}"`, {}]));
    this.cluster.object(
      type,
      DEMO,
      name,
      {
        deletionTimestamp: this.at(-50_000),
        finalizers,
        managedFields: [
          {
            manager,
            operation: 'Update',
            time: this.at(-3_000_000),
            fieldsV1: { 'f:metadata': { 'f:finalizers': fields } },
          },
        ],
      },
      rest,
    );
    return this;
  }

  /** A pod that should have ended, on a node that does not exist. */
  overduePod(): this {
    const metadata = { deletionTimestamp: this.at(-60_000), deletionGracePeriodSeconds: 30 };
    this.cluster.object(PODS, DEMO, 'web', metadata, { spec: { nodeName: 'node-9' } });
    return this;
  }

  lease(namespace: string, name: string, ageSeconds: number, holder: string): this {
    this.cluster.put(`/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${name}`, {
      metadata: { namespace, name },
      spec: {
        holderIdentity: holder,
        leaseDurationSeconds: 15,
        renewTime: this.at(-ageSeconds * 1_000),
      },
    });
    return this;
  }

  /** Reads that fail: `LIST /apis/apps/v1/daemonsets`. */
  failing(request: string, status: 403 | 500): this {
    const kind = status === 403 ? 'forbidden' : 'server-error';
    const message = `${status} ${status === 403 ? 'Forbidden: no' : 'Internal Server Error: etcd'}`;
    this.cluster.answers.set(request, { ok: false, failure: { kind, status, message } });
    return this;
  }
}

export interface Held {
  finalizers?: string[];
  manager?: string;
  rest?: JsonObject;
}
