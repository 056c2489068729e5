import { arrayAt, type JsonObject, stringAt } from '../../../src/base/json.ts';
import { createWebhook, refusesUpdate, webhookRef } from '../admission.ts';
import { type KubeObject, type Ref, refOf } from '../client.ts';
import { podSpec } from '../objects.ts';
import type { Scenario } from '../scenario.ts';
import { containerStatus, startStandIn } from '../servers/stand-in.ts';
import { startWebhook } from '../servers/webhook.ts';
import { waitUntil } from '../wait-until.ts';
import type { World } from '../world.ts';
import { objectFinalizer, podRef, stuck } from './links.ts';
import { settledWithPod } from './pods.ts';

/** Finished Job pods: the job controller would take its finalizer off, and may not. */

const TRACKING = 'batch.kubernetes.io/job-tracking';
/** Part of the control plane: this is how it appears where it runs as a static pod. */
const CONTROLLER_MANAGER: Ref = {
  apiVersion: 'v1',
  kind: 'Pod',
  namespace: 'kube-system',
  name: 'kube-controller-manager',
};

type Words = [deny: string] | [patch: JsonObject];

function refusedUpdate(id: string, title: string, ...[words]: Words): Scenario {
  const isDenied = typeof words === 'string';
  const verdict = isDenied ? { deny: words } : { patch: [words] };
  const says = isDenied ? [new RegExp(words)] : [/changes a field at every update/];
  const kind = isDenied ? 'ValidatingWebhookConfiguration' : 'MutatingWebhookConfiguration';
  const guard = (world: World): Ref => webhookRef(world, kind);
  return {
    id,
    title,
    identity: 'teardown-force', // may try the removal as a dry run: nobody else hears the refusal
    setUp: async (world) => {
      const node = world.name('node-1');
      await world.createNamespace();
      await startStandIn(world, { node, namespaces: [world.namespace] });
      const clientConfig = await startWebhook(world, () => verdict);
      await world.create({
        apiVersion: 'batch/v1',
        kind: 'Job',
        metadata: { namespace: world.namespace, name: 'migrate' },
        spec: { template: { spec: { ...podSpec(), restartPolicy: 'Never' } } },
      });
      const running = await runningPod(world);
      await createWebhook(world, {
        operations: ['CREATE', 'UPDATE'],
        apiGroup: '',
        resource: 'pods',
        clientConfig,
        kind,
      });
      await refusesUpdate(world, refOf(running));
      await finish(world, running);
    },
    settle: settledWithPod,
    cure: (world) => world.client.delete(guard(world)),
    mayChange: (world) => [guard(world)],
    expect: async (world) => {
      const [finished] = await world.client.list('v1', 'Pod', world.namespace);
      const subject = podRef(world.namespace, finished?.metadata.name ?? 'none');
      return stuck([
        objectFinalizer(subject, TRACKING),
        { code: 'owner-failing', subject: CONTROLLER_MANAGER, finalizer: TRACKING },
        {
          code: 'admission-denied',
          subject: guard(world),
          says,
          ...(isDenied ? {} : { advises: [/^Limit webhook .* to CREATE/] }),
        },
      ]);
    },
  };
}

function runningPod(world: World): Promise<KubeObject> {
  return waitUntil('the pod of the Job to run', async () => {
    const pods = await world.client.list('v1', 'Pod', world.namespace);
    return pods.find((pod) => stringAt(pod, 'status', 'phase') === 'Running');
  });
}

/** As the kubelet reports it; from here on the job controller wants to let the pod go. */
async function finish(world: World, running: KubeObject): Promise<void> {
  await world.client.patchStatus(refOf(running), {
    phase: 'Succeeded',
    conditions: arrayAt(running, 'status', 'conditions'),
    containerStatuses: [containerStatus({ terminated: { exitCode: 0, reason: 'Completed' } })],
  });
}

const s21 = refusedUpdate(
  'S21',
  'a webhook on pod UPDATE fails because its ServiceAccount is gone',
  'serviceaccounts "workload" not found',
);
export const jobPods = [s21];
