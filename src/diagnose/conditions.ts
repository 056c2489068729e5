import type { Condition } from '../model/snapshot.ts';
import { type ContentError, classifyErrorText, statedFailures } from './errors.ts';

/**
 * The five conditions that the namespace controller writes while it deletes (1.16 and later), taken
 * apart. They are hints beside what was read from the cluster: types that fail count as empty, and on
 * 1.33 and later all five are False while a pod remains.
 */
export interface ParsedConditions {
  /** False when the namespace has none of them: not processed yet, or nobody processes it. */
  present: boolean;
  /** Group-versions without discovery; the core group is empty. */
  discoveryFailures: { group: string; version: string; error: string }[];
  /** Discovery failed as a whole, with these words. */
  discoveryRaw: string | undefined;
  parsingFailure: string | undefined;
  /** Upper bounds: one object seen through two API groups counts twice. */
  remaining: { group: string; resource: string; count: number }[];
  finalizersRemaining: { finalizer: string; count: number }[];
  contentFailure: ContentFailure | undefined;
  /** Said to be true, but not understood; to be shown as it is. */
  unparsed: string[];
  /** Types of conditions that somebody else put there; anyone may who can patch the status. */
  unknownTypes: string[];
}

interface ContentFailure {
  raw: string;
  /** How many resource types failed, where the text says so. */
  types: number | undefined;
  errors: ContentError[];
}

/** Texts: kube-controller-manager pkg/controller/namespace/deletion/status_condition_utils.go. */
export function parseConditions(conditions: readonly Condition[]): ParsedConditions {
  const parsed: ParsedConditions = {
    present: false,
    discoveryFailures: [],
    discoveryRaw: undefined,
    parsingFailure: undefined,
    remaining: [],
    finalizersRemaining: [],
    contentFailure: undefined,
    unparsed: [],
    unknownTypes: [],
  };
  for (const condition of conditions) {
    const parse = PARSERS.get(condition.type);
    if (!parse) {
      parsed.unknownTypes.push(condition.type);
      continue;
    }
    parsed.present = true;
    if (condition.status === 'True') parse(parsed, condition.message);
    else if (condition.status !== 'False') parsed.unparsed.push(asShown(condition));
  }
  return parsed;
}

function asShown({ type, status, message }: Condition): string {
  return `${type}=${status}: ${message}`;
}

type Parser = (into: ParsedConditions, message: string) => void;

/** A Map, so that a condition of type "constructor" finds nothing. */
const PARSERS = new Map<string, Parser>([
  ['NamespaceDeletionDiscoveryFailure', parseDiscovery],
  [
    'NamespaceDeletionGroupVersionParsingFailure',
    (into, message) => (into.parsingFailure = message),
  ],
  ['NamespaceDeletionContentFailure', parseContentFailure],
  ['NamespaceContentRemaining', parseRemaining],
  ['NamespaceFinalizersRemaining', parseFinalizers],
]);

const SOME_GROUPS = /^Discovery failed for some groups, (\d{1,9}) failing: /;
const SERVER_APIS = 'unable to retrieve the complete list of server APIs: ';
const GROUP_VERSION = /^(?:([a-z0-9.-]+)\/)?([a-z0-9-]+): /;

/** client-go discovery/discovery_client.go, ErrGroupDiscoveryFailed: `g/v: error, g/v: error`. */
function parseDiscovery(into: ParsedConditions, message: string): void {
  const prefix = SOME_GROUPS.exec(message);
  const rest = message.slice(prefix?.[0].length ?? 0);
  if (!rest.startsWith(SERVER_APIS)) {
    if (prefix) into.unparsed.push(message);
    else into.discoveryRaw = message;
    return;
  }
  const list = rest.slice(SERVER_APIS.length);
  const parts = list.split(/, (?=(?:[a-z0-9.-]+\/)?v\d\w*: )/);
  let understood = prefix === null || parts.length === Number(prefix[1]);
  for (const part of parts) {
    const found = GROUP_VERSION.exec(part);
    if (found?.[2]) {
      const error = part.slice(found[0].length);
      into.discoveryFailures.push({ group: found[1] ?? '', version: found[2], error });
    } else understood = false;
  }
  if (!understood) into.unparsed.push(message);
}

function parseContentFailure(into: ParsedConditions, message: string): void {
  const errors = classifyErrorText(message);
  const types = statedFailures(message);
  if (types === undefined) into.unparsed.push(message);
  into.contentFailure = { raw: message, types, errors };
}

const RESOURCES = 'Some resources are remaining: ';
// The core group is empty and leaves the dot: "pods. has 5 resource instances".
const RESOURCE = /^([^.\s]+)\.(\S*) has (\d{1,9}) resource instances$/;

function parseRemaining(into: ParsedConditions, message: string): void {
  for (const entry of entriesAfter([RESOURCES], message)) {
    const found = RESOURCE.exec(entry);
    if (found?.[1])
      into.remaining.push({ group: found[2] ?? '', resource: found[1], count: Number(found[3]) });
    else into.unparsed.push(entry);
  }
}

const FINALIZERS = [
  'Some content in the namespace has finalizers remaining: ',
  // The first version of this condition (kubernetes#82189).
  'Some finalizers are remaining: ',
];
const FINALIZER = /^(\S+) in (\d{1,9}) resource instances$/;

function parseFinalizers(into: ParsedConditions, message: string): void {
  for (const entry of entriesAfter(FINALIZERS, message)) {
    const found = FINALIZER.exec(entry);
    if (found?.[1]) into.finalizersRemaining.push({ finalizer: found[1], count: Number(found[2]) });
    else into.unparsed.push(entry);
  }
}

/** Without its prefix the whole message is one entry, which no pattern then takes for an answer. */
function entriesAfter(prefixes: readonly string[], message: string): string[] {
  const prefix = prefixes.find((candidate) => message.startsWith(candidate));
  if (prefix === undefined) return [message];
  return message
    .slice(prefix.length)
    .split(', ')
    .filter((entry) => entry !== '');
}
