import type { ServiceRef } from '../model/snapshot.ts';

/** Why a call to a webhook, which is an HTTPS request of the API server, came to nothing. */
export type CallFailure =
  | 'service-not-found'
  | 'no-endpoints'
  | 'refused'
  | 'certificate'
  | 'timeout'
  | 'other';

/** What an error text says. The words themselves are always kept in `text`. */
export type ErrorDetail =
  | {
      kind: 'webhook-unreachable';
      /** `webhooks[].name`, not the name of the configuration. */
      webhook: string;
      cause: CallFailure;
      service: ServiceRef | undefined;
      url: string | undefined;
    }
  | { kind: 'webhook-denied'; webhook: string; message: string }
  /** A dry run refused for a webhook's side effects: says nothing about the real request. */
  | { kind: 'dry-run-unsupported'; webhook: string }
  | {
      kind: 'policy-denied';
      policy: string;
      binding: string | undefined;
      message: string;
      /** Resource and group of the request, as far as the text names them. */
      resource: string | undefined;
      group: string | undefined;
    }
  | {
      kind: 'conversion-failed';
      group: string;
      version: string;
      objectKind: string;
      cause: CallFailure;
      service: ServiceRef | undefined;
      url: string | undefined;
    }
  | {
      kind: 'forbidden';
      /** Absent when not authorization but an admission plugin refused (quota, Pod Security). */
      user: string | undefined;
      verb: string | undefined;
      resource: string;
      group: string;
      message: string;
    }
  | { kind: 'namespace-terminating'; namespace: string; resource: string | undefined }
  | {
      kind: 'unexpected-items';
      namespace: string;
      group: string;
      version: string;
      resource: string;
    }
  | {
      kind: 'storage';
      /** `initializing`: the API server cannot fill its cache of the type; the reason is unsaid. */
      problem: 'unreadable' | 'initializing';
      path: string | undefined;
      group: string | undefined;
      resource: string | undefined;
      name: string | undefined;
    }
  | { kind: 'not-found'; resource: string; group: string; name: string }
  | { kind: 'new-finalizers-refused'; finalizers: string[] }
  | { kind: 'invalid'; objectKind: string; name: string; message: string }
  | { kind: 'unavailable' }
  | { kind: 'timeout' }
  | { kind: 'other' };

export type ContentError = ErrorDetail & {
  /** The words as they came. */
  text: string;
  /** How many times the same words came; several resource types may fail alike. */
  count: number;
};

const CONTENT_FAILURE = /^Failed to delete all resource types, (\d{1,9}) remaining: /;

/**
 * What any error text says: a condition of the namespace, a failed request, the status of an object,
 * an Event, the answer to a dry run. What is not understood comes back as `other`, never dropped.
 */
export function classifyErrorText(text: string): ContentError[] {
  const prefix = CONTENT_FAILURE.exec(text);
  const errors = prefix
    ? splitContentFailure(text.slice(prefix[0].length), Number(prefix[1]))
    : splitAtKnownStarts(text);
  const byText = new Map<string, ContentError>();
  for (const error of errors) {
    const seen = byText.get(error);
    if (seen) seen.count += 1;
    else byText.set(error, { ...readErrorText(error), text: error, count: 1 });
  }
  return [...byText.values()];
}

/** Number of failing resource types that a NamespaceDeletionContentFailure message states. */
export function statedFailures(message: string): number | undefined {
  const prefix = CONTENT_FAILURE.exec(message);
  return prefix ? Number(prefix[1]) : undefined;
}

/**
 * Undoes `strings.Join(sortedErrors, ", ")` of kube-controller-manager
 * (pkg/controller/namespace/deletion/status_condition_utils.go, makeDeleteContentCondition).
 * The errors may contain ", " themselves; their stated number and their order decide.
 */
function splitContentFailure(tail: string, stated: number): string[] {
  if (stated <= 1) return keep([tail]);
  const piece = repeatedPiece(tail, stated);
  if (piece !== undefined) return keep(Array.from({ length: stated }, () => piece));

  const pieces = cut(tail, startsKnownError);
  if (pieces.length === stated) return pieces;
  if (pieces.length > stated) {
    const sorted = joinUnsorted(pieces);
    return sorted.length >= stated ? sorted : pieces;
  }
  // Errors of extension API servers may begin with anything: cut everywhere if that fits the number.
  const everywhere = cut(tail, (text, at) => !GROUP_VERSION_TAIL.test(text.slice(at, at + 9)));
  return everywhere.length === stated ? everywhere : pieces;
}

/** Go prints a resource as `apps/v1, Resource=x` and a kind as `apps/v1, Kind=X`. */
const GROUP_VERSION_TAIL = /^(?:Resource|Kind)=/;

/** A webhook that matches everything fails with the same words for every type. */
function repeatedPiece(tail: string, times: number): string | undefined {
  const length = (tail.length - 2 * (times - 1)) / times;
  if (!Number.isInteger(length) || length < 1) return undefined;
  const piece = tail.slice(0, length);
  for (let at = length; at < tail.length; at += length + 2) {
    if (!tail.startsWith(', ', at) || !tail.startsWith(piece, at + 2)) return undefined;
  }
  return piece;
}

/** The list is sorted, so a piece that sorts before its predecessor is part of it. */
function joinUnsorted(pieces: string[]): string[] {
  const joined: string[] = [];
  for (const piece of pieces) {
    const last = joined.at(-1);
    if (last !== undefined && piece < last) joined[joined.length - 1] = `${last}, ${piece}`;
    else joined.push(piece);
  }
  return joined;
}

/** Without a stated number, a refusal ends the list: what a webhook's author wrote is free text. */
function splitAtKnownStarts(text: string): string[] {
  const pieces = cut(text, startsKnownError);
  const refusal = pieces.findIndex((piece) => /denied (?:the )?request/.test(piece));
  if (refusal < 0) return pieces;
  return [...pieces.slice(0, refusal), pieces.slice(refusal).join(', ')];
}

/** Cuts at every ", " whose right side begins an error. */
function cut(text: string, beginsError: (text: string, at: number) => boolean): string[] {
  const pieces: string[] = [];
  let start = 0;
  for (let comma = text.indexOf(', '); comma >= 0; comma = text.indexOf(', ', comma + 2)) {
    if (!beginsError(text, comma + 2)) continue;
    pieces.push(text.slice(start, comma));
    start = comma + 2;
  }
  pieces.push(text.slice(start));
  return keep(pieces);
}

function keep(pieces: string[]): string[] {
  return pieces.filter((piece) => piece.trim() !== '');
}

const KNOWN_STARTS = [
  'Internal error occurred: ',
  'failed calling webhook ',
  'admission webhook ',
  'conversion webhook for ',
  'storage is (re)initializing',
  'unexpected items still remain in namespace: ',
  'illegal base64 data at input byte ',
  'unable to transform ',
  'StorageError: ',
  'forbidden: ',
  'the server ',
  'an error on the server (',
  'error trying to reach service',
  'request did not complete within ',
  'context deadline exceeded',
  'Operation cannot be fulfilled on ',
  'Timeout: ',
  'Too many requests',
  'Unauthorized',
  'etcdserver: ',
  'rpc error: ',
  'Get "',
  'Delete "',
];

/** `widgets.example.com is forbidden: …`, `secrets "a" not found`, `Pod "p" is invalid: …` */
const NAMED_START =
  /[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9.-]{1,253})? (?:\\?"[^"\\]{0,253}\\?" )?(?:is forbidden: |is invalid|not found|already exists)/y;

function startsKnownError(text: string, at: number): boolean {
  if (KNOWN_STARTS.some((start) => text.startsWith(start, at))) return true;
  NAMED_START.lastIndex = at;
  return NAMED_START.test(text);
}

/**
 * A literal to look for, and what to read from there. Literals first, then sticky expressions with
 * bounded repeats: the text may be hostile and 100 kB long, and must be read in linear time.
 */
interface Signature {
  literal: string;
  read: (text: string, at: number) => ErrorDetail | undefined;
}

/**
 * Earlier tiers say more. Within a tier the leftmost signature wins: it wraps what follows it, for
 * example a refusal whose free text quotes another error.
 */
const TIERS: Signature[][] = [
  [
    { literal: 'failed calling webhook ', read: webhookUnreachable },
    { literal: 'admission webhook ', read: webhookRefusal },
    { literal: "olicy '", read: policyDenied },
    { literal: 'conversion webhook for ', read: conversionFailed },
  ],
  [
    { literal: 'unable to create new content in namespace ', read: namespaceTerminating },
    { literal: 'no new finalizers can be added', read: newFinalizersRefused },
    { literal: 'unexpected items still remain in namespace: ', read: unexpectedItems },
    { literal: 'unable to transform key ', read: unreadableKey },
    { literal: 'unable to transform or decode ', read: unreadable },
    { literal: 'illegal base64 data at input byte ', read: unreadable },
    { literal: 'StorageError: corrupt object', read: unreadable },
    { literal: 'identity transformer tried to read encrypted data', read: unreadable },
    { literal: 'data from the storage is not transformable', read: unreadable },
    { literal: 'storage is (re)initializing', read: initializing },
  ],
  [{ literal: 'forbidden: ', read: forbidden }],
  [
    { literal: ' is invalid: ', read: invalid },
    { literal: ' not found', read: notFound },
  ],
  [
    'the server is currently unable to handle the request',
    'error trying to reach service',
    'no endpoints available for service',
    'connection refused',
    'service unavailable',
    'has prevented the request from succeeding',
  ].map((literal) => ({ literal, read: () => ({ kind: 'unavailable' }) })),
  [
    'request did not complete within ',
    'context deadline exceeded',
    'the server was unable to return a response in the time allotted',
    'could not be completed at this time, please try again',
    'Client.Timeout exceeded',
    'i/o timeout',
    'timed out',
    // An answer that was cut off half-way (apiserver pkg/server/filters/timeout.go aborts the stream).
    'INTERNAL_ERROR; received from peer',
  ].map((literal) => ({ literal, read: () => ({ kind: 'timeout' }) })),
];

/** What one error says. Never fails: words that nobody knows are `other`. */
function readErrorText(text: string): ErrorDetail {
  for (const tier of TIERS) {
    const found = tier
      .map((signature) => ({ signature, at: text.indexOf(signature.literal) }))
      .filter(({ at }) => at >= 0)
      .sort((a, b) => a.at - b.at);
    for (const { signature, at } of found) {
      const detail = signature.read(text, at);
      if (detail) return detail;
    }
  }
  return { kind: 'other' };
}

function match(expression: RegExp, text: string, at: number): RegExpExecArray | null {
  expression.lastIndex = at;
  return expression.exec(text);
}

// Quotes may be escaped: some texts reach us quoted once more, inside another message.
const UNREACHABLE = /failed calling webhook \\?"([^"\\]{1,300})\\?"/y;

/** apiserver pkg/util/webhook/error.go, ErrCallingWebhook. */
function webhookUnreachable(text: string, at: number): ErrorDetail | undefined {
  const found = match(UNREACHABLE, text, at);
  if (!found?.[1]) return undefined;
  return {
    kind: 'webhook-unreachable',
    webhook: found[1],
    ...readWebhookCall(text.slice(UNREACHABLE.lastIndex)),
  };
}

const REFUSAL =
  /admission webhook \\?"([^"\\]{1,300})\\?" (denied the request|does not support dry run|attempted to modify the object)(?:: | )?/y;

/** apiserver pkg/admission/plugin/webhook/errors/statuserror.go. */
function webhookRefusal(text: string, at: number): ErrorDetail | undefined {
  const found = match(REFUSAL, text, at);
  if (!found?.[1]) return undefined;
  if (found[2] === 'does not support dry run') {
    return { kind: 'dry-run-unsupported', webhook: found[1] };
  }
  if (found[2] !== 'denied the request') {
    // A mutating webhook that answers a DELETE with a patch (apiserver, webhook/mutating/dispatcher.go).
    return { kind: 'webhook-denied', webhook: found[1], message: text.slice(at) };
  }
  return { kind: 'webhook-denied', webhook: found[1], message: text.slice(REFUSAL.lastIndex) };
}

const POLICY = /olicy '([^']{1,300})'(?: with binding '([^']{1,300})')? denied request: /y;

/**
 * apiserver pkg/admission/plugin/policy/validating/dispatcher.go; mutating policies say
 * "policy '…'" (policy/generic/policy_dispatcher.go). For a collection delete the object's name in
 * front is literally "Unknown", so it is not kept.
 */
function policyDenied(text: string, at: number): ErrorDetail | undefined {
  const found = match(POLICY, text, at);
  if (!found?.[1]) return undefined;
  const target = targetBefore(text, text.lastIndexOf(' is forbidden: ', at));
  return {
    kind: 'policy-denied',
    policy: found[1],
    binding: found[2],
    message: text.slice(POLICY.lastIndex),
    resource: target?.resource,
    group: target?.group,
  };
}

const CONVERSION =
  /conversion webhook for (?:([^/\s,]{0,253})\/)?([^/\s,]{1,63}), Kind=([^\s:,]{1,63}),? (?:failed|returned)/y;

/** apiextensions-apiserver pkg/apiserver/conversion/webhook_converter.go. */
function conversionFailed(text: string, at: number): ErrorDetail | undefined {
  const found = match(CONVERSION, text, at);
  if (!found?.[2] || !found[3]) return undefined;
  return {
    kind: 'conversion-failed',
    group: found[1] ?? '',
    version: found[2],
    objectKind: found[3],
    ...readWebhookCall(text.slice(CONVERSION.lastIndex)),
  };
}

const TERMINATING = /unable to create new content in namespace (\S{1,253}) because/y;

/** apiserver pkg/admission/plugin/namespace/lifecycle/admission.go. */
function namespaceTerminating(text: string, at: number): ErrorDetail | undefined {
  const found = match(TERMINATING, text, at);
  if (!found?.[1]) return undefined;
  const target = targetBefore(text, text.lastIndexOf(' is forbidden: ', at));
  return { kind: 'namespace-terminating', namespace: found[1], resource: target?.resource };
}

/** apimachinery pkg/api/validation/objectmeta.go, ValidateNoNewFinalizers. */
function newFinalizersRefused(text: string, at: number): ErrorDetail {
  const list = text.slice(at, at + 4_096);
  const names = list.slice(list.indexOf('{')).matchAll(/"([^"\\]{1,316})\\?"/g);
  return { kind: 'new-finalizers-refused', finalizers: [...names].map((name) => name[1] ?? '') };
}

const USER = /User \\?"([^"\\]{0,512})\\?" cannot (\S{1,63}) /y;
const IN_GROUP = /resource \\?"([^"\\]{1,253})\\?" in API group \\?"([^"\\]{0,253})\\?"/y;

/** apiserver pkg/endpoints/handlers/responsewriters/errors.go, forbiddenMessage. */
function forbidden(text: string, at: number): ErrorDetail {
  const message = text.slice(at + 'forbidden: '.length);
  const target = targetBefore(text, text.lastIndexOf(' is forbidden: ', at));
  const user = match(USER, message, 0);
  const named = user ? match(IN_GROUP, message, USER.lastIndex) : null;
  return {
    kind: 'forbidden',
    user: user?.[1],
    verb: user?.[2],
    resource: named?.[1] ?? target?.resource ?? '',
    group: named?.[2] ?? target?.group ?? '',
    message,
  };
}

const ITEMS =
  /\S+ items still remain in namespace: (\S{1,253}) for gvr: ([^/\s]{0,253})\/([^,\s]{1,63}), Resource=([^\s,]{1,253})/y;

/** kube-controller-manager pkg/controller/namespace/deletion/namespaced_resources_deleter.go. */
function unexpectedItems(text: string, at: number): ErrorDetail | undefined {
  const found = match(ITEMS, text, at);
  if (!found) return undefined;
  const [, namespace = '', group = '', version = '', resource = ''] = found;
  return { kind: 'unexpected-items', namespace, group, version, resource };
}

const KEY = /unable to transform key \\?"([^"\\]{1,1024})\\?"/y;

/** apiserver pkg/storage/etcd3/store.go. The key is `/registry/[group/]resource/namespace/name`. */
function unreadableKey(text: string, at: number): ErrorDetail {
  const path = match(KEY, text, at)?.[1];
  if (path === undefined) return unreadable();
  const parts = path.split('/').filter((part) => part !== '');
  const [name, , resource, parent] = [...parts].reverse();
  // Services and Endpoints share a folder: /registry/services/specs/…, /registry/services/endpoints/…
  const isService = parent === 'services' && resource === 'specs';
  const hasGroup = parts.length >= 5 && parent !== 'services';
  return {
    kind: 'storage',
    problem: 'unreadable',
    path,
    group: hasGroup ? parent : undefined,
    resource: parts.length < 4 ? undefined : isService ? 'services' : resource,
    name: parts.length < 4 ? undefined : name,
  };
}

/** Says neither type nor name, for example `illegal base64 data at input byte 4` of a bad object. */
function unreadable(): ErrorDetail {
  return { kind: 'storage', problem: 'unreadable', ...NOWHERE };
}

const NOWHERE = { path: undefined, group: undefined, resource: undefined, name: undefined };

/** apiserver pkg/storage/cacher/ready.go. */
function initializing(): ErrorDetail {
  return { kind: 'storage', problem: 'initializing', ...NOWHERE };
}

/** apimachinery pkg/api/errors/errors.go, NewInvalid: `Pod "p" is invalid: spec: Forbidden: …` */
function invalid(text: string, at: number): ErrorDetail | undefined {
  const target = targetBefore(text, at);
  if (target?.name === undefined) return undefined;
  const message = text.slice(at + ' is invalid: '.length);
  return { kind: 'invalid', objectKind: target.resource, name: target.name, message };
}

/** apimachinery pkg/api/errors/errors.go, NewNotFound: `secrets "x" not found` */
function notFound(text: string, at: number): ErrorDetail | undefined {
  const target = targetBefore(text, at);
  if (target?.name === undefined) return undefined;
  return { kind: 'not-found', resource: target.resource, group: target.group, name: target.name };
}

/** `secrets`, `leases.coordination.k8s.io` or `secrets "name"`, ending at `end`. */
function targetBefore(
  text: string,
  end: number,
): { resource: string; group: string; name: string | undefined } | undefined {
  if (end < 1) return undefined;
  let head = text.slice(0, end);
  let name: string | undefined;
  if (head.endsWith('"')) {
    head = head.slice(0, head.endsWith('\\"') ? -2 : -1);
    const open = head.lastIndexOf('"');
    if (open < 0) return undefined;
    name = head.slice(open + 1);
    head = head.slice(0, open).replace(/\\$/, '').trimEnd();
  }
  const type = head.slice(head.lastIndexOf(' ') + 1);
  const dot = type.indexOf('.');
  if (type === '') return undefined;
  return dot < 0
    ? { resource: type, group: '', name }
    : { resource: type.slice(0, dot), group: type.slice(dot + 1), name };
}

const URL_IN_CALL = /(?:Post|Get) \\?"?(https:\/\/[^\s"\\]{1,2048})/;
const SERVICE_HOST = /^https:\/\/([^./:]{1,63})\.([^./:]{1,63})\.svc(?:[.:/]|$)/;

/** Where a webhook call went and what became of it: `: Post "https://a.b.svc:443/x": <cause>`. */
function readWebhookCall(rest: string): {
  cause: CallFailure;
  service: ServiceRef | undefined;
  url: string | undefined;
} {
  const url = URL_IN_CALL.exec(rest)?.[1]?.replace(/:$/, '');
  const host = url === undefined ? null : SERVICE_HOST.exec(url);
  const service = host?.[1] && host[2] ? { namespace: host[2], name: host[1] } : undefined;
  return { cause: failureOf(rest), service, url };
}

const FAILURES: [CallFailure, RegExp][] = [
  ['no-endpoints', /no endpoints available for service/],
  ['service-not-found', /service \\?"[^"\\]{1,253}\\?" not found/],
  ['refused', /connection refused/],
  [
    'timeout',
    /deadline exceeded|Client\.Timeout|i\/o timeout|handshake timeout|timed out|request canceled/,
  ],
  ['certificate', /x509: |tls: |certificate/],
];

function failureOf(text: string): CallFailure {
  return FAILURES.find(([, pattern]) => pattern.test(text))?.[0] ?? 'other';
}

export type AdmissionError = Extract<
  ContentError,
  { kind: 'webhook-unreachable' | 'webhook-denied' | 'policy-denied' }
>;

/** Whoever refuses a request of the API server on the way to storage. */
export function isAdmissionError(error: ContentError): error is AdmissionError {
  return (
    error.kind === 'webhook-unreachable' ||
    error.kind === 'webhook-denied' ||
    error.kind === 'policy-denied'
  );
}
