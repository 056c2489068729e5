/** A Service as `https://<name>.<namespace>.svc:443/…` names it. */
export interface ServiceRef {
  namespace: string;
  name: string;
}

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
