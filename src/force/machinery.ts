import { listNames } from '../diagnose/context.ts';
import type { MatchRule } from '../model/facts/admission.ts';
import { isOnlyFor, type LabelRequirement } from '../model/facts/selectors.ts';
import type { ServiceRef, WebhookFacts } from '../model/snapshot.ts';
import { CLUSTER_SOURCES, type Source } from '../model/sources.ts';
import { type Reading, readSource } from '../observe/collections.ts';

/** A registration in the cluster that may call a Service: a webhook, an APIService, a CRD's conversion. */
interface Registration {
  what: string;
  service?: ServiceRef | undefined;
  /** The requests that call it; undefined for an APIService and a conversion, which every namespace needs. */
  rules?: Pick<MatchRule, 'scope'>[];
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
  const fromWebhooks = (source: Source<WebhookFacts>): Promise<void> =>
    from(source, ({ configuration: { kind, name: of }, name, ...webhook }) => ({
      ...webhook,
      service: webhook.service ?? webhook.serviceInUrl,
      what: `${kind} ${of} (${name})`,
    }));
  await Promise.all([
    fromWebhooks(CLUSTER_SOURCES.validatingWebhooks),
    fromWebhooks(CLUSTER_SOURCES.mutatingWebhooks),
    from(CLUSTER_SOURCES.apiServices, ({ name, service }) => ({
      what: `APIService ${name}`,
      service,
    })),
    from(CLUSTER_SOURCES.conversions, ({ name, conversionService: service }) => ({
      what: `CustomResourceDefinition ${name}`,
      service,
    })),
  ]);
  return found;
}

/**
 * Returns why a namespace is, or may be, part of the cluster's machinery: a registration outside of it calls a
 * Service in it, not only for objects of this namespace. Such a namespace is no test environment, and cannot be
 * restored.
 */
export function machineryReasons(namespace: string, { all, unread }: Registrations): string[] {
  // A namespaceSelector does not apply to cluster-scoped objects, unless the rules exclude them.
  const isOnlyForItsObjects = ({ rules, namespaceSelector = [] }: Registration): boolean =>
    rules?.every(({ scope }) => scope === 'Namespaced') === true &&
    isOnlyFor(namespace, namespaceSelector);
  const used = all
    .filter((one) => one.service?.namespace === namespace && !isOnlyForItsObjects(one))
    .map(({ what }) => what);
  const reasons: string[] = [];
  if (used.length > 0)
    reasons.push(`it holds the Service of ${listNames(used)}; delete that first`);
  // An unread source does not exclude a dependency.
  if (unread.length > 0) {
    reasons.push(
      `whether it holds the Service of a webhook, APIService or CRD conversion could not be read (${listNames(unread)})`,
    );
  }
  return reasons;
}
