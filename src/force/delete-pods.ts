import { type JsonObject, stringAt, stringsAt } from '../base/json.ts';
import type { Mutation } from '../kubernetes/api.ts';
import { type Read, read } from '../model/read.ts';
import type { NodeFacts } from '../model/snapshot.ts';
import { nodeFacts } from '../observe/parse.ts';
import type { PodAction } from './force-plan.ts';
import { checkNamespace } from './guard.ts';
import type { Done, Journal } from './journal.ts';
import { isOverdue, nodeState } from './plan-pods.ts';
import type { Worth } from './remove-finalizer.ts';
import { describeTarget } from './render-plan.ts';
import { inBatches, type Run } from './run.ts';
import { type Reread, type Written, write } from './write.ts';

interface OverduePod {
  name: string;
  uid: string;
  resourceVersion: string;
}

/** Deletes the overdue pods of one node with grace period 0, while the node is still not there. */
export async function deletePods(run: Run, action: PodAction, journal: Journal): Promise<Worth> {
  const listed = await listOverdue(run, action);
  if (!listed.ok || listed.value.length === 0) {
    const result = listed.ok
      ? 'nothing to do: no overdue pod is left on the node'
      : `not done: pods could not be listed: ${listed.failure.message}`;
    journal.act(describeTarget(action, run.plan), action, false, result);
    return 'finished';
  }
  const before = journal.writes;
  const done: (Done & { uid: string })[] = [];
  let stopped: string | undefined;
  await inBatches(listed.value, async (batch) => {
    stopped = await reasonToStop(run, action);
    if (stopped !== undefined) return 'stop';
    const written = await Promise.all(batch.map((pod) => deleteOne(run, action, pod)));
    batch.forEach(({ name, uid }, index) => {
      const { reached, result, wrote } = written[index] as Written;
      if (wrote) journal.writes++;
      done.push({ name, uid, byUs: wrote && reached, result });
    });
    return 'go-on';
  });
  const left = listed.value.slice(done.length).map(({ name }) => ({
    name,
    byUs: false,
    result: `not done: ${stopped ?? ''}`,
  }));
  journal.actOnObjects('pods', action, [...(await readBack(run, done)), ...left]);
  return stopped === undefined && journal.writes > before ? 'again' : 'finished';
}

/** A pod with finalizers outlives its deletion, whatever the grace period. */
async function readBack(run: Run, done: readonly (Done & { uid: string })[]): Promise<Done[]> {
  const held = new Map<string, string[]>();
  const end = await run.api.list(podsPath(run), {
    signal: run.signal,
    metadataOnly: true,
    onItem: (item) => {
      held.set(stringAt(item, 'metadata', 'uid') ?? '', stringsAt(item, 'metadata', 'finalizers'));
    },
    onRestart: () => held.clear(),
  });
  return done.map((entry) => {
    if (!entry.byUs) return entry;
    if (!end.ok)
      return { ...entry, result: `${entry.result}; not read back: ${end.failure.message}` };
    const finalizers = held.get(entry.uid);
    if (finalizers === undefined) return entry;
    const why = finalizers.length === 0 ? '' : `, held by ${finalizers.join(', ')}`;
    return { ...entry, byUs: false, result: `${entry.result}; still there${why}` };
  });
}

/** `name` asks for one pod only. */
export async function listOverdue(
  run: Run,
  action: PodAction,
  name?: string,
): Promise<Read<OverduePod[]>> {
  const pods: OverduePod[] = [];
  const nowMs = run.clock.now() + run.api.clockOffsetMs();
  const end = await run.api.list(podsPath(run), {
    signal: run.signal,
    ...(name === undefined ? {} : { fieldSelector: `metadata.name=${name}` }),
    onItem: (item) => pods.push(...overduePod(item, action, nowMs)),
    onRestart: () => {
      pods.length = 0;
    },
  });
  return end.ok ? read(pods) : end;
}

function overduePod(item: JsonObject, { node }: PodAction, nowMs: number): OverduePod[] {
  const name = stringAt(item, 'metadata', 'name');
  const uid = stringAt(item, 'metadata', 'uid');
  const resourceVersion = stringAt(item, 'metadata', 'resourceVersion');
  const isMeant =
    stringAt(item, 'spec', 'nodeName') === node &&
    isOverdue(stringAt(item, 'metadata', 'deletionTimestamp'), nowMs);
  if (!isMeant || name === undefined || uid === undefined || resourceVersion === undefined) {
    return [];
  }
  return [{ name, uid, resourceVersion }];
}

/** Also of the node: one that came back can end its pods properly. */
async function reasonToStop(run: Run, action: PodAction): Promise<string | undefined> {
  if (run.signal.aborted) return 'the run was cancelled';
  const got = await run.api.get(`/api/v1/nodes/${encodeURIComponent(action.node)}`, {
    signal: run.signal,
  });
  const { reason } = nodeState(nodeRead(got));
  if (reason !== undefined) return reason;
  const standing = await checkNamespace(run);
  return standing.ok ? undefined : standing.reason;
}

function nodeRead(got: Read<JsonObject>): Read<NodeFacts | undefined> {
  if (got.ok) return read(nodeFacts(got.value));
  if (got.failure.kind !== 'not-found') return got;
  return read(undefined);
}

function deleteOne(run: Run, action: PodAction, pod: OverduePod): Promise<Written> {
  return write(run, pod, {
    done: 'deleted with grace period 0',
    request: (state) => podDeletion(run, state),
    reread: async (): Promise<Reread<OverduePod>> => {
      const listed = await listOverdue(run, action, pod.name);
      if (!listed.ok) {
        return { now: 'stop', result: `not done: not read again: ${listed.failure.message}` };
      }
      const now = listed.value[0];
      if (now === undefined) return { now: 'reached', result: 'no longer there, or not overdue' };
      if (now.uid !== pod.uid) return { now: 'stop', result: 'not done: another pod has the name' };
      const stop = await reasonToStop(run, action);
      return stop === undefined
        ? { now: 'to-do', state: now }
        : { now: 'stop', result: `not done: ${stop}` };
    },
  });
}

/**
 * With a body, the API server takes every option from the body and none from the query
 * (apiserver, endpoints/handlers/delete.go): a dry run has to say so inside, or it is none.
 */
export function podDeletion(run: Run, pod: OverduePod, dryRun = false): Mutation {
  return {
    method: 'DELETE',
    path: `${podsPath(run)}/${encodeURIComponent(pod.name)}`,
    dryRun,
    body: {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      gracePeriodSeconds: 0,
      preconditions: { uid: pod.uid, resourceVersion: pod.resourceVersion },
      ...(dryRun ? { dryRun: ['All'] } : {}),
    },
  };
}

function podsPath(run: Run): string {
  return `/api/v1/namespaces/${encodeURIComponent(run.plan.namespace.name)}/pods`;
}
