import { listNames } from '../base/text.ts';
import type { Reading } from '../observe/collections.ts';
import { CALLING_TYPES, readPointers } from '../observe/pointers.ts';

/**
 * Reads once for all namespaces what calls a Service in them, not only for their own objects: webhooks, APIServices,
 * conversions of CRDs. Returns a function that says why a namespace is, or may be, part of the cluster's machinery. Such
 * a namespace is no test environment, and cannot be restored.
 */
export async function readMachinery(
  namespaces: readonly { name: string }[],
  deps: Reading,
): Promise<(namespace: string) => string[]> {
  const { pointers, unread } = await readPointers(namespaces, deps, CALLING_TYPES);
  const unsure = listNames(unread.map(({ what, reason }) => `${what}: ${reason}`));
  return (namespace) => {
    const used = pointers
      .filter((one) => one.isCalledByOthers && one.namespace === namespace)
      .map(({ kind, name }) => `${kind} ${name}`);
    return [
      used.length > 0 && `it holds the Service of ${listNames(used)}; delete that first`,
      // An unread source does not exclude a dependency.
      unread.length > 0 &&
        `whether it holds the Service of a webhook, APIService or CRD conversion could not be read (${unsure})`,
    ].filter((reason) => reason !== false);
  };
}
