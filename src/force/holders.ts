import { type JsonObject, stringAt, stringsAt } from '../base/json.ts';
import { collectionPath } from '../kubernetes/paths.ts';
import { type Read, read } from '../model/read.ts';
import { finalizerWriters } from '../observe/parse.ts';
import type { FinalizerAction } from './force-plan.ts';
import type { Run } from './run.ts';

/** An object that has the finalizer, as it was just read. */
export interface Holder {
  name: string;
  uid: string;
  finalizers: string[];
  isTerminating: boolean;
  /** Field manager of the finalizer, as far as managedFields tell. */
  manager: string | undefined;
}

/**
 * The objects of the action's type that have its finalizer now. With a name, that one object: asked
 * for by a field selector, so that `list` is the only right that reading needs.
 */
export async function listHolders(
  run: Run,
  action: FinalizerAction,
  name?: string,
): Promise<Read<Holder[]>> {
  const holders: Holder[] = [];
  const namespace = run.plan.namespace.name;
  const end = await run.api.list(collectionPath(action.type, namespace), {
    signal: run.signal,
    metadataOnly: true,
    ...(name === undefined ? {} : { fieldSelector: `metadata.name=${name}` }),
    onItem: (item) => {
      // An extension API server may take neither the namespace nor the selector to heart.
      if (stringAt(item, 'metadata', 'namespace') !== namespace) return;
      if (name !== undefined && stringAt(item, 'metadata', 'name') !== name) return;
      const holder = toHolder(item, action.finalizer);
      if (holder !== undefined) holders.push(holder);
    },
    onRestart: () => {
      holders.length = 0;
    },
  });
  return end.ok ? read(holders) : end;
}

function toHolder(item: JsonObject, finalizer: string): Holder | undefined {
  const finalizers = stringsAt(item, 'metadata', 'finalizers');
  const name = stringAt(item, 'metadata', 'name');
  const uid = stringAt(item, 'metadata', 'uid');
  if (name === undefined || uid === undefined || !finalizers.includes(finalizer)) return undefined;
  // No API server allows these names; in a path they would mean something else.
  if (name === '.' || name === '..') return undefined;
  return {
    name,
    uid,
    finalizers,
    isTerminating: stringAt(item, 'metadata', 'deletionTimestamp') !== undefined,
    manager: finalizerWriters(item).find((writer) => writer.finalizer === finalizer)?.manager,
  };
}
