import { createHash } from 'node:crypto';

/** What tells one gate from another on the same pull request, the same in every run of it. */
export interface GateIdentity {
  server: string;
  /** The inputs as written, not what they matched: once a namespace is gone, nothing matches. */
  namespaces: readonly string[];
  selector: string;
  commentKey: string;
}

/** 16 hexadecimal characters: fit for an HTML comment, and nothing of the inputs can be read from them. */
export function commentKey(identity: GateIdentity): string {
  const { server, namespaces, selector, commentKey: key } = identity;
  const text = JSON.stringify([server, [...namespaces].sort(), selector, key]);
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
