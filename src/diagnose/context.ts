import { type NamespaceConditions, namespaceConditions } from '../model/conditions.ts';
import { apiVersionOf, groupOf, type TypeRef, typeName } from '../model/facts/metadata.ts';
import type { Finding, Remedy, Subject } from '../model/finding.ts';
import { itemsIn, valueIn } from '../model/read.ts';
import {
  type ContentCount,
  type DefinitionDetail,
  type EventFacts,
  MAX_EXAMPLES,
  type ObjectDetail,
  type ObjectFacts,
  type ObjectGroup,
  type ResourceType,
  type ServiceRef,
  type Snapshot,
  type TypeContent,
  type WebhookFacts,
} from '../model/snapshot.ts';
import { type ContentError, classifyErrorText } from './error-texts.ts';

export { listNames, listWords, shortQuote } from '../base/text.ts';
export { isBuiltIn } from '../model/facts/metadata.ts';
export { apiVersionOf, groupOf, itemsIn, type TypeRef, typeName, valueIn };

/** A snapshot with what its texts mean: the input of every rule. Rules do no I/O. */
export interface Context {
  now: Snapshot;
  /** An earlier snapshot of the same wait, to tell slow from stuck. */
  before: Snapshot | undefined;
  conditions: NamespaceConditions;
  /** Why types could not be deleted, by the conditions of the namespace. */
  contentErrors: ContentError[];
  /** `now.takenAt` in ms since the epoch: the server's clock. */
  nowMs: number;
}

export function contextOf(now: Snapshot, before?: Snapshot): Context {
  const conditions = namespaceConditions(now.namespace.conditions);
  const contentErrors = classifyErrorText(conditions.contentFailure ?? '');
  return { now, before, conditions, contentErrors, nowMs: Date.parse(now.takenAt) };
}

/** A finding before the graph links it to others. Without a scope it is about the whole cluster. */
export type RuleResult = Undefinable<
  Omit<Finding, 'id' | 'scope' | 'waitsFor'> & Partial<Pick<Finding, 'scope'> & Ties>
>;
type Undefinable<T> = { [K in keyof T]: object extends Pick<T, K> ? T[K] | undefined : T[K] };

interface Ties {
  /** The namespace itself waits for this; absent for links further down a chain. */
  blocksNamespace: boolean;
  /** Ids of findings that this one waits for. Those without a finding are dropped. */
  waitsFor: string[];
  /** It can proceed only after the namespace was deleted, which closes a circle. */
  waitsForNamespace: boolean;
  /** The workload that should serve the subject, as `actorText` writes it. */
  servedBy: string;
  /** Remedies for a finding that waits for itself through others: no fix is at the end of the chain. */
  wayOut: Remedy[];
  /** The chain ends here only because the examination ended: the finding is no root cause. */
  isCut: boolean;
}

/** Returns the id of a finding, which is the same in every snapshot and every run. */
export function resultId({
  code,
  subject,
  finalizer,
}: Pick<RuleResult, 'code' | 'subject' | 'finalizer'>): string {
  const group = groupOf(subject.apiVersion);
  const place = subject.namespace === undefined ? '' : `${subject.namespace}/`;
  const suffix = finalizer === undefined ? '' : `:${finalizer}`;
  return `${code}:${subject.kind}${group === '' ? '' : `.${group}`}/${place}${subject.name}${suffix}`;
}

export function idsOfHeld(object: ObjectFacts): string[] {
  const subject = subjectOf(object);
  return object.finalizers.map((finalizer) =>
    resultId({ code: 'object-finalizer', subject, finalizer }),
  );
}

export function detailOf({ now }: Context, { uid }: { uid: string }): ObjectDetail | undefined {
  return valueIn(now.details[uid]);
}

/** Returns the options that fields of the spec set, by the name of the field: `clusterName` and `team-1`. */
export function specSettings(context: Context, object: { uid: string }): [string, string][] {
  return (detailOf(context, object)?.settings ?? []).flatMap((one): [string, string][] => {
    const [, field, value = ''] = /^spec\.(\w+)=(.+)$/.exec(one) ?? [];
    return field === undefined ? [] : [[field, value]];
  });
}

export function typesOf({ now }: Context): ResourceType[] {
  return valueIn(now.discovery)?.types ?? [];
}

export function countsOf({ content }: Pick<Snapshot, 'content'>): (ContentCount & Typed)[] {
  return content.flatMap(({ type, read }) => (read.ok ? [{ type, ...read.value }] : []));
}

export function groupsOf(now: Pick<Snapshot, 'content'>): (ObjectGroup & Typed)[] {
  return countsOf(now).flatMap(({ type, terminating }) =>
    terminating.map((group) => ({ type, ...group })),
  );
}

type Typed = Pick<TypeContent, 'type'>;

export function totalCount(now: Pick<Snapshot, 'content'>): number {
  return countsOf(now).reduce((sum, { total }) => sum + total, 0);
}

export function isContentRead({ content, discovery }: Snapshot): boolean {
  return discovery.ok && content.every(({ read }) => read.ok);
}

/** Reports whether an object is deleted together with this namespace, because it is in it. */
export function isInside({ now }: Context, namespace: string | undefined): boolean {
  return namespace === now.namespace.name;
}

/** Reports whether a forecast is about the deletion of this namespace: the examined one, or one deleted with it. */
export function willBeDeleted(context: Context, namespace: string | undefined): boolean {
  const { forecast } = context.now;
  if (forecast === undefined || namespace === undefined) return false;
  return isInside(context, namespace) || forecast.together.includes(namespace);
}

/** Reports whether a deletion is only foreseen: a forecast sets its `since` to the time of the snapshot. */
export function isForeseen({ now }: Context, { since }: { since: string }): boolean {
  return now.forecast !== undefined && since === now.takenAt;
}

/** Returns "was in this namespace and was deleted with it", or the same in the words of a forecast. */
export function fateText(context: Context, namespace?: string): string {
  if (context.now.forecast === undefined) return 'was in this namespace and was deleted with it';
  return namespace === undefined || isInside(context, namespace)
    ? 'is in this namespace and would be deleted with it'
    : `is in namespace ${namespace}, which would be deleted at the same time`;
}

/** Returns the Events about these objects, from all namespaces that were read and from before the deletion. */
export function eventsAbout(
  { now }: Context,
  { objects }: { objects: readonly ObjectFacts[] },
): EventFacts[] {
  const uids = new Set(objects.map(({ uid }) => uid));
  const all = Object.values(now.places).flatMap(({ events }) => itemsIn(events));
  return [...all, ...itemsIn(now.baseline?.events)].filter(
    ({ regarding: { uid } }) => uid !== '' && uids.has(uid),
  );
}

export function webhooksOf({ now: { cluster } }: Context): WebhookFacts[] {
  return [...itemsIn(cluster.validatingWebhooks), ...itemsIn(cluster.mutatingWebhooks)];
}

export function withService<T extends { service?: ServiceRef | undefined }>(all: readonly T[]) {
  return all.flatMap((one) => (one.service ? [{ ...one, service: one.service }] : []));
}

export function extensionApis({ now }: Context) {
  return withService(itemsIn(now.cluster.apiServices));
}

export function conversionsOf(definitions: readonly DefinitionDetail[]) {
  return withService(definitions.map((crd) => ({ ...crd, service: crd.conversionService })));
}

export function definitionsOf({ now }: Context): DefinitionDetail[] {
  return Object.values(now.definitions).flatMap((read) => valueIn(read) ?? []);
}

export function serviceText({ namespace, name }: ServiceRef): string {
  return `Service ${namespace}/${name}`;
}

/** Returns the served type of an object, for commands; undefined if discovery does not list it. */
export function servedType(
  { now }: Context,
  { apiVersion, kind }: Pick<Subject, 'apiVersion' | 'kind'>,
): ResourceType | undefined {
  const group = groupOf(apiVersion);
  const types = now.discovery.ok ? now.discovery.value.types : now.content.map(({ type }) => type);
  return types.find((type) => type.group === group && type.kind === kind);
}

/** Reports whether a reference means the kind: `vpcRef`, whose key is all that says it, means a VPC. */
export function isKind(type: { kind: string }, kind: string): boolean {
  return type.kind.toLowerCase() === kind.toLowerCase();
}

/** Reports whether the API server passes requests for the type on to an aggregated server. */
export function isAggregated(context: Context, type: Pick<TypeRef, 'group'>): boolean {
  return extensionApis(context).some(({ group }) => group === type.group);
}

export function namespaceSubject(name: string): Subject {
  return { apiVersion: 'v1', kind: 'Namespace', name };
}

export function typeSubject(type: TypeRef): Subject {
  return { apiVersion: apiVersionOf(type), kind: 'APIResource', name: typeName(type) };
}

export function definitionSubject(name: string): Subject {
  return { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', name };
}

export function subjectOf(
  object: Pick<ObjectFacts, 'apiVersion' | 'kind' | 'namespace' | 'name'>,
): Subject {
  const { apiVersion, kind, namespace, name } = object;
  return { apiVersion, kind, ...(namespace === '' ? {} : { namespace }), name };
}

/** Folds objects with one cause into one finding: the first is its subject, up to ten are examples. */
export function foldSubjects(
  objects: readonly ObjectFacts[],
  count = objects.length,
): Pick<Finding, 'subject' | 'count' | 'examples'> {
  const subjects = objects.slice(0, MAX_EXAMPLES).map(subjectOf);
  const subject = subjects[0] ?? { apiVersion: '', kind: '', name: '' };
  return count > 1 ? { subject, count, examples: subjects } : { subject };
}
