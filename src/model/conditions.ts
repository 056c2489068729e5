import type { Condition } from './facts/metadata.ts';

/**
 * The conditions of the namespace controller (pkg/controller/namespace/deletion/status_condition_utils.go). They are
 * hints beside the objects that were read: types that fail count as empty, and since 1.33 all are False while a pod remains.
 */
export interface NamespaceConditions {
  /** False when the namespace has none of them: it was not processed yet, or no controller processes it. */
  present: boolean;
  /** Group-versions without discovery; the core group is empty. */
  discoveryFailures: { group: string; version: string; error: string }[];
  /** Upper bounds: one object seen through two API groups counts twice. */
  remaining: { group: string; resource: string; count: number }[];
  finalizersRemaining: { finalizer: string; count: number }[];
  /** The text about types that could not be deleted. */
  contentFailure: string | undefined;
}

const TYPES =
  /^Namespace(?:Deletion(?:Discovery|GroupVersionParsing|Content)Failure|(?:Content|Finalizers)Remaining)$/;

export function namespaceConditions(conditions: readonly Condition[]): NamespaceConditions {
  // Anyone who can patch the status can add conditions.
  const own = conditions.filter(({ type }) => TYPES.test(type));
  const said = new Map(
    own.flatMap(({ type, status, message }) => (status === 'True' ? [[type, message]] : [])),
  );
  const [, groups] = SOME_GROUPS.exec(said.get('NamespaceDeletionDiscoveryFailure') ?? '') ?? [];
  return {
    present: own.length > 0,
    discoveryFailures: (groups?.split(NEXT_GROUP) ?? []).flatMap((part) => {
      const [prefix = '', group = '', version] = GROUP_VERSION.exec(part) ?? [];
      return version === undefined ? [] : { group, version, error: part.slice(prefix.length) };
    }),
    remaining: entriesIn(said.get('NamespaceContentRemaining'), CONTENT, RESOURCE).map(
      ([resource = '', group = '', count]) => ({ group, resource, count: Number(count) }),
    ),
    finalizersRemaining: entriesIn(
      said.get('NamespaceFinalizersRemaining'),
      FINALIZERS,
      FINALIZER,
    ).map(([finalizer = '', count]) => ({ finalizer, count: Number(count) })),
    contentFailure: said.get('NamespaceDeletionContentFailure'),
  };
}

/** `g/v: error, g/v: error` (client-go discovery/discovery_client.go, ErrGroupDiscoveryFailed). */
const SOME_GROUPS =
  /^(?:Discovery failed for some groups, \d{1,9} failing: )?unable to retrieve the complete list of server APIs: (.*)$/s;
const NEXT_GROUP = /, (?=(?:[a-z0-9.-]+\/)?v\d\w*: )/;
const GROUP_VERSION = /^(?:([a-z0-9.-]+)\/)?([a-z0-9-]+): /;
const CONTENT = /^Some resources are remaining: /;
// The core group is empty and leaves the dot: "pods. has 5 resource instances".
const RESOURCE = /^([^.\s]+)\.(\S*) has (\d{1,9}) resource instances$/;
const FINALIZERS = /^Some content in the namespace has finalizers remaining: /;
const FINALIZER = /^(\S+) in (\d{1,9}) resource instances$/;

function entriesIn(message = '', prefix: RegExp, pattern: RegExp): string[][] {
  const entries = prefix.test(message) ? message.replace(prefix, '').split(', ') : [];
  return entries.flatMap((entry) => {
    const [, ...groups] = pattern.exec(entry) ?? [];
    return groups.length === 0 ? [] : [groups];
  });
}
