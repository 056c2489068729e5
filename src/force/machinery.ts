import { listNames } from '../base/text.ts';
import { isOnlyFor } from '../model/facts/selectors.ts';
import { itemsIn, type Read } from '../model/read.ts';
import type { ServiceRef } from '../model/snapshot.ts';
import { CLUSTER_SOURCES } from '../model/sources.ts';
import { type Reading, readSource } from '../observe/collections.ts';

/**
 * Reads what may call a Service: webhooks, APIServices, conversions of CRDs, once for all namespaces of a run. Returns a
 * function that says why a namespace is, or may be, part of the cluster's machinery: a registration outside of it calls a
 * Service in it, not only for objects of this namespace. Such a namespace is no test environment, and cannot be restored.
 */
export async function readMachinery(deps: Reading): Promise<(namespace: string) => string[]> {
  const [validating, mutating, apis, conversions] = await Promise.all([
    readSource(CLUSTER_SOURCES.validatingWebhooks, deps),
    readSource(CLUSTER_SOURCES.mutatingWebhooks, deps),
    readSource(CLUSTER_SOURCES.apiServices, deps),
    readSource(CLUSTER_SOURCES.conversions, deps),
  ]);
  const all = [validating, mutating, apis, conversions];
  const unread = all.flatMap((one) =>
    (one.unread ?? []).map(({ what, reason }) => `${what}: ${reason}`),
  );
  const itemsOf = <T>({ value }: { value: Read<T[]> }): T[] => itemsIn(value);
  return (namespace) => {
    const isHere = (service: ServiceRef | undefined): boolean => service?.namespace === namespace;
    const used = [
      ...[...itemsOf(validating), ...itemsOf(mutating)]
        .filter(({ service, serviceInUrl }) => isHere(service ?? serviceInUrl))
        // A namespaceSelector does not apply to cluster-scoped objects, unless the rules exclude them.
        .filter(
          ({ rules, namespaceSelector }) =>
            !rules.every(({ scope }) => scope === 'Namespaced') ||
            !isOnlyFor(namespace, namespaceSelector),
        )
        .map(({ configuration: { kind, name: of }, name }) => `${kind} ${of} (${name})`),
      ...itemsOf(apis)
        .filter(({ service }) => isHere(service))
        .map(({ name }) => `APIService ${name}`),
      ...itemsOf(conversions)
        .filter(({ conversionService }) => isHere(conversionService))
        .map(({ name }) => `CustomResourceDefinition ${name}`),
    ];
    return [
      used.length > 0 && `it holds the Service of ${listNames(used)}; delete that first`,
      // An unread source does not exclude a dependency.
      unread.length > 0 &&
        `whether it holds the Service of a webhook, APIService or CRD conversion could not be read (${listNames(unread)})`,
    ].filter((reason) => reason !== false);
  };
}
