import { arrayAt, type JsonObject, stringAt, stringsAt } from '../../../src/base/json.ts';
import { ApiError, type Client, type KubeObject, type Ref, refOf, versionsOf } from '../client.ts';
import { apiVersionOf } from '../inventory.ts';
import { whileLooking } from '../wait-until.ts';
import type { World } from '../world.ts';

/** Whose process it is. */
export interface Operator {
  /** API group of its type, and domain of its finalizer. */
  group: string;
  version: string;
  kind: string;
  /** Where its workload lives. */
  namespace: string;
  name: string;
  /** Labels of its pods; unless given, `app: <name>`. */
  selector?: JsonObject;
  /** As whom it writes. */
  manager: string;
  finalizer: string;
}

export interface OperatorBehaviour {
  /**
   * What its clean-up ends with, asked as the operator; undefined: it succeeds and the finalizer is
   * removed.
   */
  cleanUp?: (
    object: KubeObject,
    client: Client,
    operator: Operator,
  ) => string | undefined | Promise<string | undefined>;
  /** The instance that runs when this starts does nothing for ever; a restarted one works. */
  hangs?: boolean;
  /** It writes the whole object, as most controllers do, and needs another right than for a patch. */
  updates?: boolean;
  /** False: it tells nobody what went wrong. */
  tells?: boolean;
}

/**
 * What runs in an operator's pods: it removes its finalizer from terminating objects, with the token of
 * its own ServiceAccount, and tells in the object's status and in an Event what went wrong. It works as
 * long as a pod of the workload is Ready, so whoever scales it up or restarts it sees it work.
 */
export async function startOperatorProcess(
  world: World,
  operator: Operator,
  behaviour: OperatorBehaviour = {},
): Promise<void> {
  const stop = new AbortController();
  const hung = behaviour.hangs ? await readyPods(world.client, operator) : [];
  const working = work(world, operator, behaviour, new Set(hung.map(uidOf)), stop.signal);
  world.atEnd(async () => {
    stop.abort();
    await working;
  });
}

async function work(
  world: World,
  operator: Operator,
  behaviour: OperatorBehaviour,
  hung: ReadonlySet<string>,
  stop: AbortSignal,
): Promise<void> {
  const round: Round = { world, operator, behaviour, told: new Set() };
  let instance: { uid: string; client: Client } | undefined;
  await whileLooking(stop, async () => {
    const pods = await readyPods(world.client, operator).catch((): KubeObject[] => []); // a server that restarts
    const pod = pods.find((one) => !hung.has(uidOf(one)));
    if (pod === undefined || uidOf(pod) !== instance?.uid) {
      await instance?.client.close();
      instance = undefined;
    }
    if (pod === undefined) return versionsOf(pods);
    instance ??= await startInstance(world, pod).catch(() => undefined); // no such account any more
    return versionsOf(pods) + (instance ? await reconcile(round, instance.client) : '');
  });
  await instance?.client.close();
}

interface Round {
  world: World;
  operator: Operator;
  behaviour: OperatorBehaviour;
  /** Words that were told already. */
  told: Set<string>;
}

async function startInstance(world: World, pod: KubeObject) {
  const account = stringAt(pod, 'spec', 'serviceAccountName') ?? 'default';
  const token = await world.client.tokenOf(pod.metadata.namespace ?? 'default', account);
  return { uid: uidOf(pod), client: world.client.as(token) };
}

/** Returns what it has seen. */
async function reconcile(round: Round, client: Client): Promise<string> {
  const { world, operator, behaviour } = round;
  const { kind, finalizer } = operator;
  const objects = await client
    .list(apiVersionOf(operator), kind, world.namespace)
    .catch((): KubeObject[] => []); // it may not, or not yet
  for (const object of objects) {
    const held = stringsAt(object, 'metadata', 'finalizers').includes(finalizer);
    if (object.metadata['deletionTimestamp'] === undefined || !held) continue;
    const failed = await behaviour.cleanUp?.(object, client, operator);
    const problem = failed ?? (await removeFinalizer(client, object, finalizer, behaviour));
    const words = `${uidOf(object)} ${problem}`;
    if (problem === undefined || behaviour.tells === false || round.told.has(words)) continue;
    round.told.add(words);
    await tell(client, operator, refOf(object), problem);
  }
  return versionsOf(objects);
}

/** What the API server has against it, if anything. */
async function removeFinalizer(
  client: Client,
  object: KubeObject,
  finalizer: string,
  { updates }: OperatorBehaviour,
): Promise<string | undefined> {
  const finalizers = stringsAt(object, 'metadata', 'finalizers').filter((one) => one !== finalizer);
  const path = await client.pathOf(refOf(object));
  const answer = updates
    ? await client.call('PUT', path, { ...object, metadata: { ...object.metadata, finalizers } })
    : await client.call(
        'PATCH',
        path,
        { metadata: { finalizers } },
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
  about: Ref,
  problem: string,
): Promise<void> {
  const { apiVersion, kind, name } = about;
  const at = new Date().toISOString().replace(/\.\d+/, '');
  const message = `cannot clean up ${kind} ${about.namespace}/${name}: ${problem}`;
  const condition = {
    type: 'Ready',
    status: 'False',
    reason: 'CleanupFailed',
    message,
    lastTransitionTime: at,
  };
  await client
    .patchStatus(about, { conditions: [condition] }, { fieldManager: operator.manager })
    .catch(ignoreRefusal);
  await client
    .create({
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { namespace: operator.namespace, name: `${name}.${Date.now().toString(16)}` },
      involvedObject: { apiVersion, kind, namespace: operator.namespace, name },
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

export async function readyPods(client: Client, operator: Operator): Promise<KubeObject[]> {
  const pods = await client.list('v1', 'Pod', operator.namespace);
  const labels = Object.entries(operator.selector ?? { app: operator.name });
  return pods.filter(
    (pod) =>
      labels.every(([key, value]) => stringAt(pod, 'metadata', 'labels', key) === value) &&
      pod.metadata['deletionTimestamp'] === undefined &&
      arrayAt(pod, 'status', 'conditions').some(
        (condition) =>
          stringAt(condition, 'type') === 'Ready' && stringAt(condition, 'status') === 'True',
      ),
  );
}

function uidOf(object: KubeObject): string {
  return stringAt(object, 'metadata', 'uid') ?? '';
}
