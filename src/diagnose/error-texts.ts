import { escapeForRegExp } from '../base/text.ts';
import { serviceInUrl } from '../model/facts/cluster.ts';

// The texts of Kubernetes: what failed, and who refused.

/** How a call of the API server to a webhook or an extension API failed; `backends.ts` says each in words. */
export type CallFailure = keyof typeof FAILURES;

/** The meaning of an error text: what the row of its kind reads. */
export type ContentError = { text: string } & (
  | { [K in keyof Rows]: { kind: K } & NonNullable<ReturnType<Rows[K][1]>> }[keyof Rows]
  | { kind: 'other' }
);
type Rows = typeof WRAPPING & typeof OTHERS;

export type ErrorOf<K extends ContentError['kind']> = Extract<ContentError, { kind: K }>;

const CONTENT_FAILURE = /^Failed to delete all resource types, (\d{1,9}) remaining: /;

/** Reads any error text: a condition, a failed request, an Event, the answer to a dry run. What is not understood is `other`, never dropped. */
export function classifyErrorText(text: string): ContentError[] {
  const prefix = CONTENT_FAILURE.exec(text);
  const errors = splitErrors(text.slice(prefix?.[0].length ?? 0), Number(prefix?.[1] ?? 0));
  const unique = new Set(errors.filter((piece) => piece.trim() !== ''));
  return [...unique].map(readErrorText);
}

/**
 * Undoes `strings.Join(sortedErrors, ", ")` (kube-controller-manager, status_condition_utils.go). The errors may contain ", "
 * themselves: the right side has to begin an error. A refusal ends the list if the stated number does not fit: it is free text.
 */
function splitErrors(text: string, stated: number): string[] {
  const pieces = text.split(NEXT_ERROR);
  if (pieces.length === stated) return pieces;
  const last = pieces.findIndex((piece) => /denied (?:the )?request/.test(piece));
  return last < 0 ? pieces : [...pieces.slice(0, last), pieces.slice(last).join(', ')];
}

const NEXT_ERROR = new RegExp(
  `, (?=${[
    'Internal error occurred: |failed calling webhook |(?:admission|conversion) webhook (?:for )?',
    'illegal base64 data at input byte |unable to transform ',
    'unexpected items still remain in namespace: |forbidden: |the server |an error on the server \\(',
    'error trying to reach service|request did not complete within |context deadline exceeded',
    'Operation cannot be fulfilled on |Too many requests|Unauthorized|Get "|Delete "',
    '(?:StorageError|Timeout|etcdserver|rpc error): ',
    // `widgets.example.com is forbidden: …`, `secrets "a" not found`, `Pod "p" is invalid: …`
    '[A-Za-z0-9-]{1,63}(?:\\.[A-Za-z0-9.-]{1,253})? (?:\\\\?"[^"\\\\]{0,253}\\\\?" )?(?:is forbidden: |is invalid|not found|already exists)',
  ].join('|')})`,
);

/** What is named before the text: `secrets`, `leases.coordination.k8s.io` or `secrets "name"`. */
type Target = { resource?: string; group?: string; name?: string | undefined };
type Groups = Partial<Record<string, string>>;
/** `read` gets the text behind the pattern and the groups in it, and returns the properties of the error, or that it is none. */
type Read = (rest: string, found: Groups, target: Target) => object | undefined;
type Row = [pattern: RegExp, read: Read];

const asKind = () => ({});

/*
 * Patterns begin with a literal, and their repeats are bounded: a text may be hostile and 100 kB long, and must be read in
 * linear time. Quotes may be escaped: some texts reach us quoted once more, inside another message.
 */

/** The leftmost of these wraps the rest, such as a refusal whose free text quotes another error. */
const WRAPPING = {
  // apiserver pkg/util/webhook/error.go, ErrCallingWebhook.
  'webhook-unreachable': [
    /failed calling webhook \\?"(?<webhook>[^"\\]{1,300})\\?"/,
    (text, { webhook = '' }) => ({ webhook, ...readWebhookCall(text) }),
  ],
  // apiserver pkg/admission/plugin/webhook/errors/statuserror.go.
  'webhook-denied': [
    /admission webhook \\?"(?<webhook>[^"\\]{1,300})\\?" denied the request(?:: | )?/,
    (message, { webhook = '' }) => ({ webhook, message }),
  ],
  // apiserver pkg/admission/plugin/policy/validating/dispatcher.go; mutating policies say "policy '…'".
  'policy-denied': [
    /olicy '(?<policy>[^']{1,300})'(?: with binding '(?<binding>[^']{1,300})')? denied request: /,
    (message, { policy = '', binding }) => ({ policy, binding, message }),
  ],
  // apiextensions-apiserver pkg/apiserver/conversion/webhook_converter.go.
  'conversion-failed': [
    /conversion webhook for (?:(?<group>[^/\s,]{0,253})\/)?[^/\s,]{1,63}, Kind=(?<objectKind>[^\s:,]{1,63}),? (?:failed|returned)/,
    (text, { group = '', objectKind = '' }) => ({ group, objectKind, ...readWebhookCall(text) }),
  ],
} satisfies Record<string, Row>;

/** The last one is an answer that was cut off (apiserver pkg/server/filters/timeout.go aborts the stream). */
const TIMEOUT =
  /request did not complete within |deadline exceeded|the server was unable to return a response in the time allotted|could not be completed at this time, please try again|Client\.Timeout|i\/o timeout|handshake timeout|timed out|request canceled|INTERNAL_ERROR; received from peer/;

/** Of these the first that fits counts. */
const OTHERS = {
  // apiserver pkg/admission/plugin/namespace/lifecycle/admission.go.
  'namespace-terminating': [
    /unable to create new content in namespace (?<namespace>\S{1,253}) because/,
    (_, { namespace = '' }, { resource }) => ({ namespace, resource }),
  ],
  // apimachinery pkg/api/validation/objectmeta.go, ValidateNoNewFinalizers.
  'new-finalizers-refused': [/no new finalizers can be added/, asKind],
  // kube-controller-manager pkg/controller/namespace/deletion/namespaced_resources_deleter.go.
  'unexpected-items': [/unexpected items still remain in namespace: /, asKind],
  // apiserver pkg/storage/etcd3/store.go.
  storage: [
    /unable to transform (?:key|or decode) |illegal base64 data at input byte |StorageError: corrupt object|identity transformer tried to read encrypted|data from the storage is not transformable/,
    asKind,
  ],
  // apiserver pkg/endpoints/handlers/responsewriters/errors.go, forbiddenMessage. Admission plugins (quota, Pod Security) name no user.
  forbidden: [
    /forbidden: /,
    (message, _, target) => {
      const { user, verb, ...said }: Groups = FORBIDDEN.exec(message)?.groups ?? {};
      const { resource = target.resource ?? '', group = target.group ?? '' } = said;
      return { user, verb, resource, group, message };
    },
  ],
  // apimachinery pkg/api/errors/errors.go, NewInvalid: `Pod "p" is invalid: spec: Forbidden: …` names a kind.
  invalid: [
    / is invalid: /,
    (_, __, { name, resource = '' }) => (name === undefined ? undefined : { resource }),
  ],
  // The same, NewNotFound: `secrets "x" not found`; but not "not found, assuming that it is deleted". Others name a namespace.
  'not-found': [
    / not found(?!, (?:assum|ignor|skip|so |treat|nothing to ))/,
    (_, __, { resource = '', group = '', name: path }) => {
      const [name = '', namespace] = path?.split('/').reverse() ?? [];
      return path === undefined ? undefined : { resource, group, name, namespace };
    },
  ],
  unavailable: [
    new RegExp(
      `the server is currently unable to handle the request|error trying to reach service|no endpoints available for service|connection refused|service unavailable|has prevented the request from succeeding|${TIMEOUT.source}`,
    ),
    asKind,
  ],
} satisfies Record<string, Row>;

function readErrorText(text: string): ContentError {
  const placeOf = ([, [pattern]]: [string, Row]): number => text.search(pattern);
  const wrapping = Object.entries(WRAPPING).filter((row) => placeOf(row) >= 0);
  wrapping.sort((a, b) => placeOf(a) - placeOf(b));
  for (const [kind, [pattern, read]] of [...wrapping, ...Object.entries<Row>(OTHERS)]) {
    const match = pattern.exec(text);
    if (match === null) continue;
    const { 0: words, index, groups = {} } = match;
    const end = words.startsWith(' ') ? index : text.lastIndexOf(' is forbidden: ', index);
    const found = read(text.slice(index + words.length), groups, targetBefore(text, end));
    if (found) return { kind, text, ...found } as ContentError;
  }
  return { kind: 'other', text };
}

const FORBIDDEN =
  /^User \\?"(?<user>[^"\\]{0,512})\\?" cannot (?<verb>\S{1,63}) (?:resource \\?"(?<resource>[^"\\]{1,253})\\?" in API group \\?"(?<group>[^"\\]{0,253})\\?")?/;

/** Returns the type and name that end at `end`. For a collection delete the name is literally "Unknown". */
function targetBefore(text: string, end: number): Target {
  const near = text.slice(Math.max(0, end - MAX_TARGET), Math.max(0, end));
  const [, type, name] = TARGET.exec(near) ?? [];
  if (type === undefined) return {};
  const [resource = '', ...group] = type.split('.');
  return { resource, group: group.join('.'), name };
}

/** A type and a name have at most 253 characters each; a longer piece of a hostile text is not searched. */
const MAX_TARGET = 520;
const TARGET = /([^\s"\\:=,;()[\]{}]+)(?: \\?"([^"\\]*)\\?")?$/;

/** Reads the URL of a webhook call and its error: `: Post "https://a.b.svc:443/x": <cause>`. */
function readWebhookCall(rest: string) {
  const [, url] = /(?:Post|Get) \\?"?(https:\/\/[^\s"\\]{1,2048})/.exec(rest) ?? [];
  return { cause: callFailure(rest), service: serviceInUrl(url?.replace(/:$/, '')) };
}

/** The texts of servers (kube-aggregator remote_available_controller.go, NewGenericServerResponse), net/http, crypto/tls and crypto/x509. */
const FAILURES = {
  /** The server answered, with an error such as that it does not serve this path. */
  'error-status':
    /bad status from URL: \d|could not find the requested resource|does not allow this method|an error on the server \(|has prevented the request from succeeding/,
  'no-endpoints': /no endpoints available for service|endpoint(?:s|slices) for service\//,
  'service-not-found': /service \\?"[^"\\]{1,253}\\?" not found|^service\/.{1,600} is not present$/,
  refused: /connection refused/,
  timeout: TIMEOUT,
  'no-tls': /gave HTTP response to HTTPS client|does not look like a TLS handshake/,
  /** The server refuses the client, not the client the server. */
  other: /remote error: tls: /,
  'certificate-expired': /certificate has expired or is not yet valid/,
  'certificate-name':
    /certificate is (?:not )?valid for |contain any IP SANs|legacy Common Name field/,
  certificate: /x509: |tls: |certificate/,
} as const;

/** Recognizes why a call of the API server failed, from its text. A URL is no part of the reason. */
export function callFailure(text: string): CallFailure {
  const reason = text.replace(/https?:\/\/[^\s"\\]{0,2048}[^\s"\\:]/g, 'URL');
  const [first] = Object.entries(FAILURES).find(([, pattern]) => pattern.test(reason)) ?? ['other'];
  return first as CallFailure;
}

export type AdmissionError = ErrorOf<'webhook-unreachable' | 'webhook-denied' | 'policy-denied'>;

export function isAdmissionError(error: ContentError): error is AdmissionError {
  return /^(?:webhook-unreachable|webhook-denied|policy-denied)$/.test(error.kind);
}

/** Failures without a known signature. "0 failed", "no errors", "errors: 0" and "not found, assuming that it is deleted" are none. */
export const FAILURE =
  /(?<!\b(?:0|no|without|not|zero) )\b(?:errors?|failed|fails|failure|failing|cannot|can ?not|could not|\w*denied|refused|rejected|forbidden|unable|insufficient|unauthori[sz]ed|not authori[sz]ed|invalid|timed out|timeout|deadline ?exceeded|no such host|no route to host|x509|\w*exception|(?:has|is|token|certificate) expired|missing|not found|does not exist|(?:http|status(?: code)?)\W{0,3}[45]\d\d)\b(?!\s*[:=]\s*(?:0|none|null|<?nil>?)(?![\w.])|, (?:assum|ignor|skip|so |treat|nothing to ))/i;

/** In any spelling: `Part`, `parts`, `part/db`. */
export function isKindNamed(text: string, kind: string): boolean {
  return new RegExp(`(?<![\\w.-])${escapeForRegExp(kind)}s?(?![\\w-]|\\.\\w)`, 'i').test(text);
}
