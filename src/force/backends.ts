import {
  arrayAt,
  at,
  type Json,
  type JsonObject,
  recordAt,
  stringAt,
  stringsAt,
} from '../base/json.ts';
import type { KubernetesApi, ResourceType } from '../kubernetes/api.ts';
import { collectionPath } from '../kubernetes/paths.ts';
import { failed, type Read, type ReadFailure, read } from '../model/read.ts';
import { typeName } from './force-plan.ts';

/**
 * Registrations of the cluster that call a Service in the namespace. Where something outside of the
 * namespace depends on one, the namespace is part of the cluster's machinery, not somebody's test.
 */
export interface HostedBackends {
  usedElsewhere: { what: string; evidence: string }[];
  /** Without these reads nobody can say that nothing depends on the namespace. */
  unread: { what: string; reason: string }[];
}

const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const API_SERVICES = '/apis/apiregistration.k8s.io/v1/apiservices';
const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
/** Definitions are big: their schemas are in them. */
const CRDS_PER_PAGE = 50;
const NAME_LABEL = 'kubernetes.io/metadata.name';

/** Types that a registration is called for; `undefined` stands for more than can be counted. */
interface Use {
  what: string;
  types: { group: string; resource: string }[] | undefined;
  /** Its namespaceSelector lets no other namespace through. */
  confined: boolean;
}

export async function readHostedBackends(
  api: KubernetesApi,
  namespace: string,
  signal: AbortSignal,
): Promise<HostedBackends> {
  const hosted: HostedBackends = { usedElsewhere: [], unread: [] };
  const collect = async (
    path: string,
    what: string,
    toUses: (item: JsonObject) => Use[],
    limit?: number,
  ): Promise<Use[]> => {
    const uses: Use[] = [];
    const end = await api.list(path, {
      signal,
      ...(limit === undefined ? {} : { limit }),
      onItem: (item) => uses.push(...toUses(item)),
      onRestart: () => {
        uses.length = 0;
      },
    });
    if (!end.ok) hosted.unread.push({ what, reason: end.failure.message });
    return uses;
  };
  const webhooks = (kind: string) => (item: JsonObject) => usesOfWebhooks(kind, item, namespace);
  const lists = await Promise.all([
    collect(
      `${ADMISSION}/validatingwebhookconfigurations`,
      'validatingwebhookconfigurations',
      webhooks('ValidatingWebhookConfiguration'),
    ),
    collect(
      `${ADMISSION}/mutatingwebhookconfigurations`,
      'mutatingwebhookconfigurations',
      webhooks('MutatingWebhookConfiguration'),
    ),
    collect(API_SERVICES, 'apiservices', (item) => usesOfApiService(item, namespace)),
    collect(CRDS, 'customresourcedefinitions', (item) => usesOfCrd(item, namespace), CRDS_PER_PAGE),
  ]);
  const uses = lists.flat();
  if (uses.length === 0) return hosted;
  const types = await api.discover({ signal });
  for (const use of uses) {
    const evidence = types.ok
      ? await findElsewhere(api, namespace, use, types.value.types, signal)
      : types;
    if (!evidence.ok) hosted.unread.push({ what: use.what, reason: evidence.failure.message });
    else if (evidence.value !== undefined) {
      hosted.usedElsewhere.push({ what: use.what, evidence: evidence.value });
    }
  }
  return hosted;
}

function usesOfWebhooks(kind: string, item: JsonObject, namespace: string): Use[] {
  const configuration = stringAt(item, 'metadata', 'name') ?? '';
  return arrayAt(item, 'webhooks').flatMap((webhook) => {
    if (stringAt(webhook, 'clientConfig', 'service', 'namespace') !== namespace) return [];
    const confined = isConfined(at(webhook, 'namespaceSelector'), namespace);
    // A namespaceSelector says nothing about cluster-scoped objects, unless the rule leaves them out.
    const rules = arrayAt(webhook, 'rules').filter(
      (rule) => !confined || stringAt(rule, 'scope') !== 'Namespaced',
    );
    return {
      what: `${kind} ${configuration} (${stringAt(webhook, 'name') ?? ''})`,
      types: typesOfRules(rules),
      confined,
    };
  });
}

function typesOfRules(rules: readonly Json[]): Use['types'] {
  const types = rules.flatMap((rule) =>
    stringsAt(rule, 'apiGroups').flatMap((group) =>
      stringsAt(rule, 'resources').map((resource) => ({
        group,
        // pods/status is called for pods.
        resource: resource.split('/')[0] ?? '',
      })),
    ),
  );
  const wild = types.some(({ group, resource }) => group === '*' || resource === '*');
  return wild ? undefined : types;
}

function isConfined(selector: Json | undefined, namespace: string): boolean {
  if (recordAt(selector, 'matchLabels')[NAME_LABEL] === namespace) return true;
  return arrayAt(selector, 'matchExpressions').some((expression) => {
    const values = stringsAt(expression, 'values');
    return (
      stringAt(expression, 'key') === NAME_LABEL &&
      stringAt(expression, 'operator') === 'In' &&
      values.length > 0 &&
      values.every((value) => value === namespace)
    );
  });
}

/** Every namespace needs every API group to answer before it can be deleted. */
function usesOfApiService(item: JsonObject, namespace: string): Use[] {
  if (stringAt(item, 'spec', 'service', 'namespace') !== namespace) return [];
  const name = stringAt(item, 'metadata', 'name') ?? '';
  return [{ what: `APIService ${name}`, types: undefined, confined: false }];
}

function usesOfCrd(item: JsonObject, namespace: string): Use[] {
  const conversion = at(item, 'spec', 'conversion');
  const service = at(conversion, 'webhook', 'clientConfig', 'service');
  if (stringAt(conversion, 'strategy') !== 'Webhook') return [];
  if (stringAt(service, 'namespace') !== namespace) return [];
  const group = stringAt(item, 'spec', 'group') ?? '';
  const resource = stringAt(item, 'spec', 'names', 'plural') ?? '';
  const what = `CustomResourceDefinition ${stringAt(item, 'metadata', 'name') ?? ''}`;
  return [{ what, types: [{ group, resource }], confined: false }];
}

/** What outside of the namespace depends on it; `undefined` when nothing does. */
async function findElsewhere(
  api: KubernetesApi,
  namespace: string,
  use: Use,
  served: readonly ResourceType[],
  signal: AbortSignal,
): Promise<Read<string | undefined>> {
  if (use.types === undefined) return read('the whole cluster needs it');
  for (const wanted of use.types) {
    const type = served.find(
      ({ group, resource }) => group === wanted.group && resource === wanted.resource,
    );
    if (type === undefined) continue; // not served: there is nothing to be called for
    if (!type.namespaced) return read(`${typeName(type)} belong to the whole cluster`);
    if (use.confined) continue;
    const other = await firstOutside(api, namespace, type, signal);
    if (!other.ok) return other;
    if (other.value !== undefined) {
      return read(`${typeName(type)} are also in namespace ${other.value}`);
    }
  }
  return read(undefined);
}

async function firstOutside(
  api: KubernetesApi,
  namespace: string,
  type: ResourceType,
  signal: AbortSignal,
): Promise<Read<string | undefined>> {
  let found: string | undefined;
  const end = await api.list(collectionPath(type), {
    signal,
    metadataOnly: true,
    fieldSelector: `metadata.namespace!=${namespace}`,
    limit: 1,
    maxItems: 1,
    onItem: (item) => {
      const other = stringAt(item, 'metadata', 'namespace');
      if (other !== undefined && other !== namespace) found = other;
    },
  });
  return end.ok ? read(found) : failed(namingType(end.failure, type));
}

function namingType(failure: ReadFailure, type: ResourceType): ReadFailure {
  return {
    ...failure,
    message: `${typeName(type)} of other namespaces could not be listed: ${failure.message}`,
  };
}
