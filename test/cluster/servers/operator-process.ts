import { setTimeout as sleep } from 'node:timers/promises';
import { stringAt, stringsAt } from '../../../src/base/json.ts';
import { ApiError, type Client, type Ref } from '../client.ts';
import { pluralOf } from '../objects.ts';
import type { Operator } from '../scenarios/operator.ts';
import type { World } from '../world.ts';

export interface OperatorBehaviour {
  /** What its clean-up ends with; undefined: it succeeds and the finalizer is removed. */
  cleanUp?: () => string | undefined;
  /** Works only after this long, as in a back-off. */
  afterMs?: number;
}

const STEP_MS = 300;

/**
 * An operator's controller: removes its finalizer from terminating objects, with the token of its own
 * ServiceAccount, and tells in the object's status and in an Event what went wrong. Its Deployment is
 * played by the stand-in; this is what runs in the pod.
 */
export async function startOperatorProcess(
  world: World,
  operator: Operator,
  behaviour: OperatorBehaviour = {},
): Promise<void> {
  const client = world.client.as(await world.tokenOf(operator.namespace, operator.name));
  const stop = new AbortController();
  const working = reconcile(world, client, operator, behaviour, stop.signal);
  world.atEnd(async () => {
    stop.abort();
    await working;
    await client.close();
  });
}

async function reconcile(
  world: World,
  client: Client,
  operator: Operator,
  { cleanUp, afterMs = 0 }: OperatorBehaviour,
  stop: AbortSignal,
): Promise<void> {
  await sleep(afterMs, undefined, { signal: stop }).catch(() => {});
  const { group, kind, finalizer } = operator;
  const path = `/apis/${group}/v1/namespaces/${world.namespace}/${pluralOf(kind)}`;
  const told = new Set<string>();
  while (!stop.aborted) {
    const objects = await client.list(`${group}/v1`, kind, world.namespace).catch(() => []);
    for (const { metadata } of objects) {
      const held = stringsAt(metadata, 'finalizers').includes(finalizer);
      if (metadata['deletionTimestamp'] === undefined || !held) continue;
      const problem = cleanUp?.() ?? (await removeFinalizer(client, `${path}/${metadata.name}`));
      if (problem !== undefined && !told.has(metadata.name)) {
        told.add(metadata.name);
        await tell(client, operator, world.namespace, metadata.name, problem);
      }
    }
    await sleep(STEP_MS, undefined, { signal: stop }).catch(() => {});
  }
}

/** What the API server has against it, if anything. */
async function removeFinalizer(client: Client, path: string): Promise<string | undefined> {
  const answer = await client.call(
    'PATCH',
    path,
    { metadata: { finalizers: null } },
    { 'content-type': 'application/merge-patch+json' },
  );
  return answer.status < 300 || answer.status === 404
    ? undefined
    : (stringAt(answer.body, 'message') ?? answer.text);
}

/** The object's status, and an Event where Events can still be created: in the operator's namespace. */
export async function tell(
  client: Client,
  operator: Operator,
  namespace: string,
  name: string,
  problem: string,
): Promise<void> {
  const { group, kind } = operator;
  const at = new Date().toISOString().replace(/\.\d+/, '');
  const message = `cannot clean up ${kind} ${namespace}/${name}: ${problem}`;
  const ref: Ref = { apiVersion: `${group}/v1`, kind, namespace, name };
  const condition = {
    type: 'Ready',
    status: 'False',
    reason: 'CleanupFailed',
    message,
    lastTransitionTime: at,
  };
  await client
    .patchStatus(ref, { conditions: [condition] }, { fieldManager: operator.name })
    .catch(ignoreRefusal);
  await client
    .create({
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { namespace: operator.namespace, name: `${name}.${Date.now().toString(16)}` },
      involvedObject: { apiVersion: `${group}/v1`, kind, namespace: operator.namespace, name },
      type: 'Warning',
      reason: 'CleanupFailed',
      message,
      source: { component: operator.name },
      firstTimestamp: at,
      lastTimestamp: at,
      count: 1,
    })
    .catch(ignoreRefusal);
}

/** An operator that may not even complain is part of some situations. */
function ignoreRefusal(error: unknown): void {
  if (!(error instanceof ApiError)) throw error;
}
