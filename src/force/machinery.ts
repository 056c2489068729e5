import { stringAt } from '../base/json.ts';
import { listNames, typeName } from '../diagnose/context.ts';
import type { KubernetesApi, ResourceType } from '../kubernetes/api.ts';
import { collectionPath } from '../kubernetes/paths.ts';
import { type Read, read } from '../model/read.ts';
import type { MatchRule, ServiceRef, WebhookFacts } from '../model/snapshot.ts';
import { CLUSTER, readSource } from '../observe/sources.ts';

/** Something of the cluster that calls a Service: a webhook, an APIService, a CRD's conversion. */
interface Registration {
  what: string;
  service: ServiceRef;
  /** Types that it is called for; undefined stands for more than can be counted. */
  types: { group: string; resource: string }[] | undefined;
  /** The only namespace that its selector lets through. */
  onlyFor: string | undefined;
}

export interface Registrations {
  all: Registration[];
  /** Without these reads nobody can say that nothing depends on a namespace. */
  unread: string[];
}

/** Once for all namespaces of a run. */
export async function readRegistrations(
  api: KubernetesApi,
  signal: AbortSignal,
): Promise<Registrations> {
  const found: Registrations = { all: [], unread: [] };
  const from = async <T>(
    key: keyof typeof CLUSTER,
    source: Parameters<typeof readSource<T>>[1],
    registrationsOf: (item: T) => Registration[],
  ): Promise<void> => {
    const { value: list } = await readSource(key, source, { api, signal });
    if (list.ok) found.all.push(...list.value.flatMap(registrationsOf));
    else found.unread.push(`${source.label}: ${list.failure.message}`);
  };
  const { validatingWebhooks, mutatingWebhooks, apiServices, conversions } = CLUSTER;
  await Promise.all([
    from('validatingWebhooks', validatingWebhooks, ofWebhook),
    from('mutatingWebhooks', mutatingWebhooks, ofWebhook),
    // Every namespace needs every API group to answer before it can be deleted.
    from('apiServices', apiServices, ({ name, service }) =>
      service === undefined
        ? []
        : [{ what: `APIService ${name}`, service, types: undefined, onlyFor: undefined }],
    ),
    from('conversions', conversions, ({ name, group, conversionService: service }) =>
      service === undefined
        ? []
        : [
            {
              what: `CustomResourceDefinition ${name}`,
              service,
              types: [{ group, resource: name.slice(0, name.length - group.length - 1) }],
              onlyFor: undefined,
            },
          ],
    ),
  ]);
  return found;
}

function ofWebhook(webhook: WebhookFacts): Registration[] {
  const { configuration, name, service, namespaceSelector, rules } = webhook;
  if (service === undefined) return [];
  const onlyFor = namespaceSelector.find(
    ({ key, operator, values }) =>
      key === 'kubernetes.io/metadata.name' && operator === 'In' && values.length === 1,
  )?.values[0];
  return [
    {
      what: `${configuration.kind} ${configuration.name} (${name})`,
      service,
      // A namespaceSelector says nothing about cluster-scoped objects, unless the rule leaves them out.
      types: typesOf(
        rules.filter(({ scope }) => onlyFor !== service.namespace || scope !== 'Namespaced'),
      ),
      onlyFor,
    },
  ];
}

function typesOf(rules: readonly MatchRule[]): Registration['types'] {
  const types = rules.flatMap(({ apiGroups, resources }) =>
    apiGroups.flatMap((group) =>
      // pods/status is called for pods.
      resources.map((resource) => ({ group, resource: resource.split('/')[0] ?? '' })),
    ),
  );
  const isWild = types.some(({ group, resource }) => group === '*' || resource === '*');
  return isWild ? undefined : types;
}

/**
 * Why a namespace is part of the cluster's machinery, or may be: something outside of it depends on a
 * Service in it. Such a namespace is nobody's test, and cannot be put back.
 */
export async function machineryReasons(
  namespace: string,
  { all, unread }: Registrations,
  api: KubernetesApi,
  signal: AbortSignal,
): Promise<string[]> {
  const missing = [...unread];
  const used: string[] = [];
  const hosted = all.filter(({ service }) => service.namespace === namespace);
  const served = hosted.length === 0 ? read(NOTHING) : await api.discover({ signal });
  for (const registration of hosted) {
    const evidence = served.ok
      ? await usedElsewhere(namespace, registration, served.value.types, api, signal)
      : served;
    if (!evidence.ok) missing.push(`${registration.what}: ${evidence.failure.message}`);
    else if (evidence.value !== undefined) used.push(`${registration.what} (${evidence.value})`);
  }
  return [
    ...(used.length > 0
      ? [`it holds the Service of ${listNames(used)}; remove that registration first`]
      : []),
    // Not knowing is no "no".
    ...(missing.length > 0
      ? [
          `whether it holds the Service of a webhook, APIService or CRD conversion that others use could not be read (${listNames(missing)})`,
        ]
      : []),
  ];
}

const NOTHING: { types: ResourceType[] } = { types: [] };

/** What outside of the namespace depends on it; undefined when nothing does. */
async function usedElsewhere(
  namespace: string,
  { types, onlyFor }: Registration,
  served: readonly ResourceType[],
  api: KubernetesApi,
  signal: AbortSignal,
): Promise<Read<string | undefined>> {
  if (types === undefined) return read('the whole cluster needs it');
  for (const wanted of types) {
    const type = served.find(
      ({ group, resource }) => group === wanted.group && resource === wanted.resource,
    );
    if (type === undefined) continue; // not served: there is nothing to be called for
    if (!type.namespaced) return read(`${typeName(type)} belong to the whole cluster`);
    if (onlyFor === namespace) continue;
    let other: string | undefined;
    const end = await api.list(collectionPath(type), {
      signal,
      metadataOnly: true,
      fieldSelector: `metadata.namespace!=${namespace}`,
      limit: 1,
      maxItems: 1,
      onItem: (item) => {
        const place = stringAt(item, 'metadata', 'namespace');
        if (place !== undefined && place !== namespace) other = place;
      },
    });
    if (!end.ok) return end;
    if (other !== undefined) return read(`${typeName(type)} are also in namespace ${other}`);
  }
  return read(undefined);
}
