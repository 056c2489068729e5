import type { Condition } from '../model/snapshot.ts';
import { type ContentError, classifyErrorText } from './error-texts.ts';
import { remember } from './remember.ts';

/**
 * The conditions that the namespace controller writes while it deletes (1.16 and later), taken apart. They
 * are hints beside the objects that were read: types that fail count as empty, and on 1.33 and later
 * all are False while a pod remains. A text that is not understood is ignored here; the report quotes it.
 */
export interface ParsedConditions {
  /** False when the namespace has none of them: it was not processed yet, or no controller processes it. */
  present: boolean;
  /** Group-versions without discovery; the core group is empty. */
  discoveryFailures: { group: string; version: string; error: string }[];
  /** The error with which discovery failed as a whole. */
  discoveryRaw: string | undefined;
  /** Upper bounds: one object seen through two API groups counts twice. */
  remaining: { group: string; resource: string; count: number }[];
  finalizersRemaining: { finalizer: string; count: number }[];
  /** The types that could not be deleted, and why. */
  contentFailure: { errors: ContentError[] } | undefined;
}

/**
 * Parses the conditions of a namespace (kube-controller-manager
 * pkg/controller/namespace/deletion/status_condition_utils.go).
 */
export const parseConditions = remember((conditions: readonly Condition[]): ParsedConditions => {
  // Anyone who can patch the status can add conditions.
  const own = conditions.filter(({ type }) => TYPES.has(type));
  const said = new Map(
    own.flatMap(({ type, status, message }) => (status === 'True' ? [[type, message]] : [])),
  );
  const content = said.get('NamespaceDeletionContentFailure');
  return {
    present: own.length > 0,
    ...failuresOfDiscovery(said.get('NamespaceDeletionDiscoveryFailure')),
    remaining: remainingContent(said.get('NamespaceContentRemaining')),
    finalizersRemaining: finalizersRemaining(said.get('NamespaceFinalizersRemaining')),
    contentFailure: content === undefined ? undefined : { errors: classifyErrorText(content) },
  };
});

const TYPES: ReadonlySet<string> = new Set([
  'NamespaceDeletionDiscoveryFailure',
  'NamespaceDeletionGroupVersionParsingFailure',
  'NamespaceDeletionContentFailure',
  'NamespaceContentRemaining',
  'NamespaceFinalizersRemaining',
]);

const SOME_GROUPS =
  /^(?:Discovery failed for some groups, \d{1,9} failing: )?unable to retrieve the complete list of server APIs: (.*)$/s;
const GROUP_VERSION = /^(?:([a-z0-9.-]+)\/)?([a-z0-9-]+): /;

/** Parses `g/v: error, g/v: error` (client-go discovery/discovery_client.go, ErrGroupDiscoveryFailed). */
function failuresOfDiscovery(
  message: string | undefined,
): Pick<ParsedConditions, 'discoveryFailures' | 'discoveryRaw'> {
  const [, list] = SOME_GROUPS.exec(message ?? '') ?? [];
  const parts = list?.split(/, (?=(?:[a-z0-9.-]+\/)?v\d\w*: )/) ?? [];
  const discoveryFailures = parts.flatMap((part) => {
    const [prefix = '', group = '', version] = GROUP_VERSION.exec(part) ?? [];
    return version === undefined ? [] : { group, version, error: part.slice(prefix.length) };
  });
  return { discoveryFailures, discoveryRaw: list === undefined ? message : undefined };
}

// The core group is empty and leaves the dot: "pods. has 5 resource instances".
const RESOURCE = /^([^.\s]+)\.(\S*) has (\d{1,9}) resource instances$/;

function remainingContent(message: string | undefined): ParsedConditions['remaining'] {
  return entriesAfter(/^Some resources are remaining: /, message).flatMap((entry) => {
    const [, resource = '', group = '', count] = RESOURCE.exec(entry) ?? [];
    return count === undefined ? [] : { group, resource, count: Number(count) };
  });
}

/** The second pattern is the first version of this condition (kubernetes#82189). */
const FINALIZERS =
  /^(?:Some content in the namespace has finalizers remaining|Some finalizers are remaining): /;
const FINALIZER = /^(\S+) in (\d{1,9}) resource instances$/;

function finalizersRemaining(message: string | undefined): ParsedConditions['finalizersRemaining'] {
  return entriesAfter(FINALIZERS, message).flatMap((entry) => {
    const [, finalizer = '', count] = FINALIZER.exec(entry) ?? [];
    return count === undefined ? [] : { finalizer, count: Number(count) };
  });
}

/** Splits a message into entries; without its prefix the whole message is one entry, which no pattern matches. */
function entriesAfter(prefix: RegExp, message = ''): string[] {
  return prefix.test(message) ? message.replace(prefix, '').split(', ') : [];
}
