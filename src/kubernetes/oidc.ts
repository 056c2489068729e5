import { readFileSync, writeFileSync } from 'node:fs';
import { type Dispatcher, request } from 'undici';
import { ActionError } from '../base/errors.ts';
import { parseObject, stringAt } from '../base/json.ts';
import { chooseProxy, createDispatcher, tlsOptions } from './connections.ts';
import { networkFailure, shortLine } from './failures.ts';
import { configError, readNamedFile, type Session, safeUrl } from './kubeconfig.ts';

/** Margin as in client-go: a token that expires sooner could expire during the request. */
const EXPIRY_MARGIN_MS = 10_000;
const TIMEOUT_MS = 15_000;

/** The `config` of an auth provider `oidc`, as kubectl writes it. It changes when tokens are renewed. */
export type OidcConfig = Record<string, string | undefined>;

/**
 * Returns a valid id-token and its expiry (milliseconds since the epoch). It renews an expired one by the rules
 * of client-go (plugin/pkg/client/auth/oidc/oidc.go). client-node's OpenIDConnectAuth cannot renew: it passes a
 * string where openid-client expects a URL, and loses the refresh token afterwards
 * (kubernetes-client/javascript#2202, #399).
 */
export async function validIdToken(
  config: OidcConfig,
  { access, env, clock, redactor, closing }: Session,
): Promise<{ token: string; expiresAt: number }> {
  const owner = `user "${access.user.name}"`;
  const fail = (why: string): ActionError => {
    const message = `cannot renew the id-token of ${owner}: ${shortLine(redactor.redact(why))}`;
    const hint = 'Log in again as you did for kubectl, or use a service account token';
    return new ActionError('kube-unauthorized', message, hint);
  };
  const { 'id-token': held = '', 'refresh-token': refreshToken = '' } = config;
  const { 'idp-issuer-url': issuer = '', 'client-id': id = '', 'client-secret': secret } = config;
  if (expiryOf(held) - EXPIRY_MARGIN_MS > clock.now()) {
    return { token: held, expiresAt: expiryOf(held) };
  }
  if (refreshToken === '') throw fail('it has expired, and there is no refresh-token');
  if (issuer === '' || id === '') {
    throw configError(`the auth provider of ${owner} has no "idp-issuer-url" or no "client-id"`);
  }

  const { 'idp-certificate-authority-data': data, 'idp-certificate-authority': file } = config;
  const named =
    file && !data ? readNamedFile(file, 'idp-certificate-authority', access) : undefined;
  const ca = data ? Buffer.from(data, 'base64') : named;
  const ask = async (address: string, form?: Record<string, string>, authorization?: string) => {
    const url = safeUrl(address, `the login provider of ${owner}`);
    let dispatcher: Dispatcher | undefined;
    try {
      const tls = tlsOptions({ ca });
      const proxy = chooseProxy(url, env);
      dispatcher = createDispatcher({ tls, proxy, closing: closing.signal });
      const answer = await request(url, {
        dispatcher,
        signal: AbortSignal.any([closing.signal, AbortSignal.timeout(TIMEOUT_MS)]),
        method: form === undefined ? 'GET' : 'POST',
        headers: {
          'content-type': 'application/x-www-form-urlencoded',
          ...(authorization === undefined ? {} : { authorization }),
        },
        body: form === undefined ? null : new URLSearchParams(form).toString(),
      });
      return { status: answer.statusCode, body: parseObject(await answer.body.text()) };
    } catch (error) {
      throw fail(`${url.origin}: ${networkFailure(error).message}`);
    } finally {
      await dispatcher?.destroy();
    }
  };
  const discovered = await ask(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
  const endpoint = stringAt(discovered.body, 'token_endpoint') ?? '';
  if (endpoint === '') throw fail(`${issuer} names no token_endpoint`);

  // A provider accepts one of two ways to authenticate the client; both are tried, as in golang.org/x/oauth2.
  // "invalid_grant" is about the token of a client that was accepted (RFC 6749, 5.2).
  const form = { grant_type: 'refresh_token', refresh_token: refreshToken };
  const login = `${encodeURIComponent(id)}:${encodeURIComponent(secret ?? '')}`;
  const basic = `Basic ${Buffer.from(login).toString('base64')}`;
  let answer = await ask(endpoint, form, basic);
  if (answer.status !== 200 && stringAt(answer.body, 'error') !== 'invalid_grant') {
    const inForm = { ...form, client_id: id, ...(secret ? { client_secret: secret } : {}) };
    answer = await ask(endpoint, inForm);
  }
  const token = stringAt(answer.body, 'id_token') ?? '';
  if (token === '') {
    const said = stringAt(answer.body, 'error_description') ?? stringAt(answer.body, 'error');
    const what = answer.status === 200 ? 'gave no id_token' : `answered ${answer.status}`;
    throw fail(`${issuer} ${what}${said === undefined ? '' : `: ${said}`}`);
  }
  const next = stringAt(answer.body, 'refresh_token') || refreshToken;
  redactor.add(token);
  redactor.add(next);
  if (access.user.file !== undefined) {
    writeTokens(access.user.file, { [held]: token, [refreshToken]: next });
  }
  Object.assign(config, { 'id-token': token, 'refresh-token': next });
  return { token, expiresAt: expiryOf(token) };
}

/** Returns the expiry in milliseconds since the epoch; 0 for a text that is not a JWT. */
function expiryOf(token: string): number {
  const payload = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8');
  return (Number(parseObject(payload)?.['exp']) || 0) * 1_000;
}

/**
 * Writes new tokens into the kubeconfig. Many providers accept a refresh token only once, so the next one must
 * be stored, as kubectl does. The rest of the file does not change.
 */
function writeTokens(file: string, replacements: Record<string, string>): void {
  try {
    const before = readFileSync(file, 'utf8');
    let text = before;
    for (const [old, fresh] of Object.entries(replacements)) {
      if (old !== '') text = text.replaceAll(old, () => fresh);
    }
    if (text !== before) writeFileSync(file, text);
  } catch {
    // The file is read-only, such as a mounted Secret. The tokens are valid for this run nevertheless.
  }
}
