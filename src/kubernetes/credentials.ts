import { ActionError } from '../base/errors.ts';

/** Finished values; a new object whenever one of them changed. */
export interface Credentials {
  token?: string;
  username?: string;
  password?: string;
  /** PEM. */
  cert?: string;
  key?: string;
}

/** YAML blocks and shell pipelines leave a newline behind, which no HTTP header may have. */
export function usableToken(token: string, owner: string): string {
  const trimmed = token.trim();
  if (/^[\x21-\x7e]+$/.test(trimmed)) return trimmed;
  throw new ActionError(
    'kube-config',
    `the token of ${owner} is empty or has characters in it that no token has`,
    { hint: 'Check that the token was written as one line, without quotes or control characters' },
  );
}

export interface CredentialSource {
  /** Fresh enough to be sent. Throws an `ActionError` when there are none to be had. */
  current(): Promise<Credentials>;
  /** After a 401 for these: is there something else to try? */
  refresh(rejected: Credentials): Promise<boolean>;
  close(): void;
}
