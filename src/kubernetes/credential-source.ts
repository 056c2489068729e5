import { ActionError } from '../base/errors.ts';
import { at, isObject, type JsonObject } from '../base/json.ts';
import type { Redactor } from '../base/redact.ts';
import type { Clock } from '../base/time.ts';
import { type Access, pemField, stringField } from './access.ts';
import { type CredentialSource, type Credentials, usableToken } from './credentials.ts';
import { execSource } from './exec-source.ts';
import type { Secrets } from './secrets.ts';
import { tokenFileSource } from './token-file.ts';

export interface SourceOptions {
  access: Access;
  env: Readonly<Record<string, string | undefined>>;
  clock: Clock;
  secrets: Secrets;
  redactor: Redactor;
  pluginTimeoutMs: number;
}

/** One method per user, in client-go's order; a client certificate may come on top of each. */
export function credentialSource(options: SourceOptions): CredentialSource {
  const { access } = options;
  const { user, userName } = access;
  const owner = `user "${userName}"`;
  refuseAuthProvider(user, owner, options.secrets);
  const cert = clientCertificate(user, owner, options.secrets);
  const written = stringField(user, 'token', owner);
  options.secrets.add(written?.trim());
  const token = written === undefined ? undefined : usableToken(written, owner);
  // Not a typo: kubectl writes tokenFile in camel case, unlike every other field of a user entry.
  const tokenFile = stringField(user, 'tokenFile', owner) ?? stringField(user, 'token-file', owner);
  if (tokenFile !== undefined) {
    return tokenFileSource({ ...options, file: tokenFile, base: cert, fallback: token });
  }
  if (token !== undefined) return fixedSource({ ...cert, token });
  const username = stringField(user, 'username', owner);
  if (username !== undefined) {
    const password = stringField(user, 'password', owner) ?? '';
    options.secrets.add(password);
    options.secrets.add(Buffer.from(`${username}:${password}`).toString('base64'));
    return fixedSource({ ...cert, username, password });
  }
  const exec = at(user, 'exec');
  if (isObject(exec)) return execSource({ ...options, exec, base: cert });
  return fixedSource(cert);
}

function fixedSource(credentials: Credentials): CredentialSource {
  return {
    current: async () => credentials,
    refresh: async () => false,
    close: () => undefined,
  };
}

function clientCertificate(user: JsonObject, owner: string, secrets: Secrets): Credentials {
  secrets.add(stringField(user, 'client-key-data', owner));
  const cert = pemField(user, 'client-certificate', owner);
  const key = pemField(user, 'client-key', owner);
  secrets.addPem(key);
  if (cert === undefined && key === undefined) return {};
  // One file may hold both; kubectl accepts that only when it is named twice.
  if (cert === undefined || key === undefined) {
    const missing = cert === undefined ? 'client-certificate' : 'client-key';
    throw new ActionError('kube-config', `${owner} of the kubeconfig has no "${missing}"`, {
      hint: 'A client certificate needs both, client-certificate(-data) and client-key(-data)',
    });
  }
  return { cert, key };
}

function refuseAuthProvider(user: JsonObject, owner: string, secrets: Secrets): void {
  const provider = at(user, 'auth-provider');
  if (!isObject(provider)) return;
  const config = at(provider, 'config');
  for (const field of ['access-token', 'id-token', 'refresh-token', 'client-secret']) {
    const value = at(config, field);
    if (typeof value === 'string') secrets.add(value);
  }
  const name = stringField(provider, 'name', owner) ?? 'unknown';
  throw new ActionError(
    'kube-config',
    `${owner} logs in through the auth provider "${name}", which is no longer supported`,
    { hint: HINTS[name] ?? 'Use an exec credential plugin or a token instead' },
  );
}

const HINTS: Record<string, string | undefined> = {
  gcp: 'Use gke-gcloud-auth-plugin: gcloud container clusters get-credentials writes such a kubeconfig',
  azure: 'Use kubelogin: kubelogin convert-kubeconfig changes the kubeconfig',
  oidc: 'Use an exec credential plugin, for example kubectl oidc-login, or a service account token',
};
