import { stringAt } from '../base/json.ts';
import { listNames } from '../diagnose/context.ts';
import { collectItems } from '../kubernetes/api.ts';
import { collectionPath } from '../kubernetes/paths.ts';
import { isOnlyFor, type LabelRequirement, type MatchRule, typeName } from '../model/facts.ts';
import { type Read, readOk } from '../model/read.ts';
import type { ResourceType, ServiceRef } from '../model/snapshot.ts';
import { CLUSTER_SOURCES, type Source } from '../model/sources.ts';
import { type Reading, readSource } from '../observe/collections.ts';

/** A registration in the cluster that may call a Service: a webhook, an APIService, a CRD's conversion. */
interface Registration {
  what: string;
  service?: ServiceRef | undefined;
  /** The requests that call it; undefined for an APIService, which every namespace needs. */
  rules?: Pick<MatchRule, 'apiGroups' | 'resources' | 'scope'>[];
  namespaceSelector?: LabelRequirement[];
}

interface Registrations {
  all: Registration[];
  /** Sources that could not be read: without them, a dependency on a namespace cannot be excluded. */
  unread: string[];
}

/** Reads the registrations, once for all namespaces of a run. */
export async function readRegistrations(deps: Reading): Promise<Registrations> {
  const found: Registrations = { all: [], unread: [] };
  const from = async <T>(source: Source<T>, of: (item: T) => Registration): Promise<void> => {
    const { value: list } = await readSource(source, deps);
    if (list.ok) found.all.push(...list.value.map(of));
    else found.unread.push(`${source.label}: ${list.failure.message}`);
  };
  const webhooks = [CLUSTER_SOURCES.validatingWebhooks, CLUSTER_SOURCES.mutatingWebhooks].map(
    (source) =>
      from(source, ({ configuration: { kind, name: of }, name, ...webhook }) => ({
        ...webhook,
        what: `${kind} ${of} (${name})`,
      })),
  );
  await Promise.all([
    ...webhooks,
    from(CLUSTER_SOURCES.apiServices, ({ name, service }) => ({
      what: `APIService ${name}`,
      service,
    })),
    from(CLUSTER_SOURCES.conversions, ({ name, group, conversionService: service }) => ({
      what: `CustomResourceDefinition ${name}`,
      service,
      rules: [{ apiGroups: [group], resources: [name.slice(0, name.indexOf('.'))], scope: '*' }],
    })),
  ]);
  return found;
}

/**
 * Returns why a namespace is, or may be, part of the cluster's machinery: a registration outside of it calls a
 * Service in it. Such a namespace is no test environment, and cannot be restored.
 */
export async function machineryReasons(
  namespace: string,
  { all, unread }: Registrations,
  deps: Reading,
): Promise<string[]> {
  const missing = [...unread];
  const used: string[] = [];
  const hosted = all.filter(({ service }) => service?.namespace === namespace);
  const served =
    hosted.length === 0 ? readOk({ types: [] }) : await deps.api.discover({ signal: deps.signal });
  for (const registration of hosted) {
    const evidence = served.ok
      ? await usedElsewhere(namespace, registration, served.value.types, deps)
      : served;
    if (!evidence.ok) missing.push(`${registration.what}: ${evidence.failure.message}`);
    else if (evidence.value !== undefined) used.push(`${registration.what} (${evidence.value})`);
  }
  return [
    ...(used.length > 0
      ? [`it holds the Service of ${listNames(used)}; remove that registration first`]
      : []),
    // An unread source does not exclude a dependency.
    ...(missing.length > 0
      ? [
          `whether it holds the Service of a webhook, APIService or CRD conversion that others use could not be read (${listNames(missing)})`,
        ]
      : []),
  ];
}

/** Describes which other namespaces depend on it; undefined if none does. */
async function usedElsewhere(
  namespace: string,
  { rules, namespaceSelector = [] }: Registration,
  served: readonly ResourceType[],
  { api, signal }: Reading,
): Promise<Read<string | undefined>> {
  const isOwn = isOnlyFor(namespace, namespaceSelector);
  const types = rules
    // A namespaceSelector does not apply to cluster-scoped objects, unless the rule excludes them.
    ?.filter(({ scope }) => !isOwn || scope !== 'Namespaced')
    .flatMap(({ apiGroups, resources }) =>
      // pods/status is called for pods.
      apiGroups.flatMap((group) => resources.map((name) => [group, name.split('/')[0]])),
    );
  if (types === undefined || types.flat().includes('*'))
    return readOk('the whole cluster needs it');
  for (const [group, resource] of types) {
    const type = served.find((one) => one.group === group && one.resource === resource);
    if (type === undefined) continue; // not served: there is nothing to be called for
    if (!type.namespaced) return readOk(`${typeName(type)} belong to the whole cluster`);
    if (isOwn) continue;
    const elsewhere = collectItems((item) =>
      [stringAt(item, 'metadata', 'namespace') ?? namespace].filter((one) => one !== namespace),
    );
    const end = await api.list(collectionPath(type), elsewhere, {
      signal,
      metadataOnly: true,
      fieldSelector: `metadata.namespace!=${namespace}`,
      limit: 1,
      maxItems: 1,
    });
    if (!end.ok) return end;
    const [other] = end.value.kept;
    if (other !== undefined) return readOk(`${typeName(type)} are also in namespace ${other}`);
  }
  return readOk(undefined);
}
