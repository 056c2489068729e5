import type { Subject } from '../model/finding.ts';

/** What names a resource type; more is welcome and ignored. */
export interface TypeRef {
  /** Empty for the core group. */
  group: string;
  version: string;
  /** Plural, as in paths. */
  resource: string;
}

/** As kubectl takes it on a command line: `widgets.example.com`, `configmaps`. */
export function typeName({ group, resource }: Pick<TypeRef, 'group' | 'resource'>): string {
  return group === '' ? resource : `${resource}.${group}`;
}

/** `v1`, `apps/v1` */
export function apiVersionOf({ group, version }: Pick<TypeRef, 'group' | 'version'>): string {
  return group === '' ? version : `${group}/${version}`;
}

/** API group of `apps/v1`; empty for the core group. */
export function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf('/');
  return slash < 0 ? '' : apiVersion.slice(0, slash);
}

/** A resource type as the subject of a finding. */
export function typeSubject(type: TypeRef): Subject {
  return { apiVersion: apiVersionOf(type), kind: 'APIResource', name: typeName(type) };
}

/**
 * A kind where no plural is known: of the core group as people write it, `configmap`; else with version
 * and group, as kubectl takes it too: `Widget.v1.example.com` (apimachinery schema.ParseKindArg).
 */
export function kindName({ apiVersion, kind }: Pick<Subject, 'apiVersion' | 'kind'>): string {
  const group = groupOf(apiVersion);
  if (group === '') return kind.toLowerCase();
  return `${kind}.${apiVersion.slice(group.length + 1)}.${group}`;
}

/** For people: `Widget db`, `Namespace demo`, `APIService v1.example.com`, or the type's bare name. */
export function subjectText({ kind, name }: Pick<Subject, 'kind' | 'name'>): string {
  return kind === 'APIResource' ? name : `${kind} ${name}`;
}

/** As `subjectText`, with the namespace unless it is the one that the report is about. */
export function placedText(subject: Subject, ownNamespace: string): string {
  const { kind, namespace, name } = subject;
  return namespace === undefined || namespace === ownNamespace
    ? subjectText(subject)
    : `${kind} ${namespace}/${name}`;
}
