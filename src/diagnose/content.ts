import { groupOf, type TypeRef } from '../model/facts/metadata.ts';
import type { Subject } from '../model/finding.ts';
import { itemsIn, valueIn } from '../model/read.ts';
import type * as Facts from '../model/snapshot.ts';
import type { Context } from './context.ts';

export function detailOf({ now }: Context, { uid }: { uid: string }) {
  return valueIn(now.details[uid]);
}

/** Returns the served types; where discovery failed, those of which the content was asked for. */
export function typesOf({ now: { content, discovery } }: Context): Facts.ResourceType[] {
  return valueIn(discovery)?.types ?? content.map(({ type }) => type);
}

export function countsOf(now: Pick<Facts.Snapshot, 'content'>): (Facts.ContentCount & Typed)[] {
  return now.content.flatMap(({ type, read }) => (read.ok ? [{ type, ...read.value }] : []));
}

export function groupsOf(now: Pick<Facts.Snapshot, 'content'>): (Facts.ObjectGroup & Typed)[] {
  return countsOf(now).flatMap(({ type, terminating: all }) =>
    all.map((one) => ({ type, ...one })),
  );
}

export function totalCount(now: Pick<Facts.Snapshot, 'content'>): number {
  return countsOf(now).reduce((sum, { total }) => sum + total, 0);
}

export function isContentRead({ content, discovery }: Facts.Snapshot): boolean {
  return discovery.ok && content.every(({ read }) => read.ok);
}

export function terminatingPods({ now }: Context): Facts.PodFacts[] {
  return itemsIn(now.pods).filter(({ deletionTimestamp }) => deletionTimestamp !== undefined);
}

/** Returns the Events about these objects, from all namespaces that were read and from before the deletion. */
export function eventsAbout({ now }: Context, held: { objects: readonly Facts.ObjectFacts[] }) {
  const uids = new Set(held.objects.map(({ uid }) => uid));
  const all = Object.values(now.places).flatMap(({ events }) => itemsIn(events));
  const events = [...all, ...itemsIn(now.baseline?.events)];
  return events.filter(({ regarding: { uid } }) => uid !== '' && uids.has(uid));
}

export function webhooksOf({ now: { cluster } }: Context): Facts.WebhookFacts[] {
  return [...itemsIn(cluster.validatingWebhooks), ...itemsIn(cluster.mutatingWebhooks)];
}

export function withService<T extends { service?: Facts.ServiceRef | undefined }>(
  all: readonly T[],
) {
  return all.flatMap((one) => (one.service ? [{ ...one, service: one.service }] : []));
}

export function extensionApis({ now }: Context) {
  return withService(itemsIn(now.cluster.apiServices));
}

export function conversionsOf(definitions: readonly Facts.DefinitionDetail[]) {
  return withService(definitions.map((crd) => ({ ...crd, service: crd.conversionService })));
}

export function definitionsOf({ now }: Context): Facts.DefinitionDetail[] {
  return Object.values(now.definitions).flatMap((read) => valueIn(read) ?? []);
}

/** Returns the served type of an object, for commands; undefined if discovery does not list it. */
export function servedType(context: Context, { apiVersion, kind }: Omit<Subject, 'name'>) {
  const group = groupOf(apiVersion);
  return typesOf(context).find((type) => type.group === group && type.kind === kind);
}

/** Returns the served type that a word names by its resource or kind, in singular or plural; of several groups the one that is meant. */
export function typeNamedBy(context: Context, word: string, group = '') {
  const named = typesOf(context).filter(({ kind, resource }) =>
    [kind, resource].some((one) => isSameKind(one, word)),
  );
  return named.find((type) => type.group === group) ?? named[0];
}

/** Reports whether words mean one kind: `Widget`, `widgets`, and `vpc` of `vpcRef`. */
export function isSameKind(a: string, b: string): boolean {
  const singular = (word: string): string => word.toLowerCase().replace(/(?:es|s)$/, '');
  return singular(a) === singular(b);
}

/** Reports whether the API server passes requests for the type on to an aggregated server. */
export function isAggregated(context: Context, type: Pick<TypeRef, 'group'>): boolean {
  return extensionApis(context).some(({ group }) => group === type.group);
}

type Typed = Pick<Facts.TypeContent, 'type'>;
