import type { ErrorDetail } from './error-kinds.ts';
import { targetBefore } from './error-target.ts';
import { readWebhookCall } from './webhook-call.ts';

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
export function readErrorText(text: string): ErrorDetail {
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
  /admission webhook \\?"([^"\\]{1,300})\\?" (denied the request|does not support dry run)(?:: | )?/y;

/** apiserver pkg/admission/plugin/webhook/errors/statuserror.go. */
function webhookRefusal(text: string, at: number): ErrorDetail | undefined {
  const found = match(REFUSAL, text, at);
  if (!found?.[1]) return undefined;
  if (found[2] !== 'denied the request') return { kind: 'dry-run-unsupported', webhook: found[1] };
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
