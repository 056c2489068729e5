import type { Condition } from './facts/metadata.ts';

export type NamespaceConditions = ReturnType<typeof namespaceConditions>;

/**
 * Reads the conditions of the namespace controller (pkg/controller/namespace/deletion/status_condition_utils.go). They are
 * hints beside the objects that were read: types that fail count as empty, and since 1.33 all are False while a pod remains.
 */
export function namespaceConditions(conditions: readonly Condition[]) {
  // Anyone who can patch the status can add conditions.
  const own = conditions.filter(({ type }) => TYPES.test(type));
  const said = (type: string): string =>
    own.findLast((one) => one.type === type && one.status === 'True')?.message ?? '';
  const [, groups = ''] = SOME_GROUPS.exec(said('NamespaceDeletionDiscoveryFailure')) ?? [];
  return {
    /** False when the namespace has none of them: it was not processed yet, or no controller processes it. */
    present: own.length > 0,
    /** Group-versions without discovery; the core group is empty. */
    discoveryFailures: groups.split(NEXT_GROUP).flatMap((part) => {
      const [prefix = '', group = '', version] = GROUP_VERSION.exec(part) ?? [];
      return version === undefined ? [] : { group, version, error: part.slice(prefix.length) };
    }),
    /** Upper bounds: one object seen through two API groups counts twice. */
    remaining: entriesIn(said('NamespaceContentRemaining'), CONTENT).map(
      ([, resource = '', group = '', count]) => ({ group, resource, count: Number(count) }),
    ),
    finalizersRemaining: entriesIn(said('NamespaceFinalizersRemaining'), FINALIZERS).map(
      ([, finalizer = '', count]) => ({ finalizer, count: Number(count) }),
    ),
    /** The text about types that could not be deleted. */
    contentFailure: said('NamespaceDeletionContentFailure') || undefined,
  };
}

const TYPES =
  /^Namespace(?:Deletion(?:Discovery|GroupVersionParsing|Content)Failure|(?:Content|Finalizers)Remaining)$/;
/** `g/v: error, g/v: error` (client-go discovery/discovery_client.go, ErrGroupDiscoveryFailed). */
const SOME_GROUPS =
  /^(?:Discovery failed for some groups, \d{1,9} failing: )?unable to retrieve the complete list of server APIs: (.*)$/s;
const NEXT_GROUP = /, (?=(?:[a-z0-9.-]+\/)?v\d\w*: )/;
const GROUP_VERSION = /^(?:([a-z0-9.-]+)\/)?([a-z0-9-]+): /;
// The core group is empty and leaves the dot: "pods. has 5 resource instances".
const CONTENT =
  /^(?:Some resources are remaining: )?([^.\s]+)\.(\S*) has (\d{1,9}) resource instances$/;
const FINALIZERS =
  /^(?:Some content in the namespace has finalizers remaining: )?(\S+) in (\d{1,9}) resource instances$/;

function entriesIn(message: string, entry: RegExp): RegExpExecArray[] {
  const found = message.split(', ').map((part) => entry.exec(part));
  return found.filter((one) => one !== null);
}
