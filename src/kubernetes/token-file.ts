import { readFileSync } from 'node:fs';
import { ActionError, describeError } from '../base/errors.ts';
import type { Clock } from '../base/time.ts';
import { type CredentialSource, type Credentials, usableToken } from './credentials.ts';
import type { Secrets } from './secrets.ts';

/** Bound service account tokens rotate; the kubelet replaces the file well before the old one ends. */
const READ_AGAIN_MS = 60_000;

export interface TokenFileOptions {
  file: string;
  /** What is sent beside the token. */
  base: Credentials;
  /** A token in the kubeconfig; used while the file cannot be read. */
  fallback: string | undefined;
  clock: Clock;
  secrets: Secrets;
}

export function tokenFileSource(options: TokenFileOptions): CredentialSource {
  let last: { credentials: Credentials; readAt: number } | undefined;

  const load = (): Credentials => {
    const token = readToken(options, last?.credentials.token);
    const credentials =
      last?.credentials.token === token ? last.credentials : { ...options.base, token };
    last = { credentials, readAt: options.clock.now() };
    return credentials;
  };

  return {
    async current() {
      const isFresh = last !== undefined && options.clock.now() - last.readAt < READ_AGAIN_MS;
      return isFresh && last !== undefined ? last.credentials : load();
    },
    async refresh(rejected) {
      return load() !== rejected;
    },
    close: () => undefined,
  };
}

/** A token that worked a minute ago is better than none while the file is being replaced. */
function readToken(options: TokenFileOptions, lastToken: string | undefined): string {
  const substitute = lastToken ?? options.fallback;
  try {
    const token = readFileSync(options.file, 'utf8').trim();
    options.secrets.add(token);
    return usableToken(token, `the file ${options.file}`);
  } catch (error) {
    if (substitute !== undefined) return substitute;
    if (error instanceof ActionError) throw error;
    throw new ActionError(
      'kube-config',
      `cannot read the token file ${options.file}: ${describeError(error)}`,
      { cause: error },
    );
  }
}
