import { ActionError } from '../base/errors.ts';
import type { JsonObject } from '../base/json.ts';
import type { Redactor } from '../base/redact.ts';
import { plainText, shorten } from '../base/text.ts';
import type { Clock } from '../base/time.ts';
import type { Access } from './access.ts';
import { type CredentialSource, type Credentials, usableToken } from './credentials.ts';
import {
  type ExecConfig,
  type ExecCredential,
  execConfig,
  execInfo,
  parseExecCredential,
} from './exec-credential.ts';
import { type PluginEnd, runPlugin } from './exec-process.ts';
import type { Secrets } from './secrets.ts';

/** Renewed this long before it ends, because our clock and the server's differ. */
const RENEW_BEFORE_MS = 60_000;
const MAX_STDERR_SHOWN = 600;

export interface ExecOptions {
  exec: JsonObject;
  access: Access;
  base: Credentials;
  env: Readonly<Record<string, string | undefined>>;
  clock: Clock;
  secrets: Secrets;
  redactor: Redactor;
  pluginTimeoutMs: number;
}

interface Issued {
  credentials: Credentials;
  renewAt: number;
  expiresAt: number;
}

export function execSource(options: ExecOptions): CredentialSource {
  const config = execConfig(options.exec, `user "${options.access.userName}"`);
  registerSecrets(config, options.secrets);
  const closing = new AbortController();
  let issued: Issued | undefined;
  let running: Promise<Issued> | undefined;

  // Sixty calls at once must not start sixty logins.
  const renew = (): Promise<Issued> => {
    running ??= issue(config, options, closing.signal)
      .then((fresh) => {
        issued = fresh;
        return fresh;
      })
      .finally(() => {
        running = undefined;
      });
    return running;
  };

  return {
    async current() {
      const now = options.clock.now();
      if (issued !== undefined && now < issued.renewAt) return issued.credentials;
      const old = issued;
      try {
        return (await renew()).credentials;
      } catch (error) {
        // A hiccup of the plugin is no reason to stop while what it gave before is still good.
        if (old !== undefined && options.clock.now() < old.expiresAt) return old.credentials;
        throw error;
      }
    },
    async refresh(rejected) {
      if (issued !== undefined && issued.credentials !== rejected) return true;
      const { credentials } = await renew();
      return credentials.token !== rejected.token || credentials.cert !== rejected.cert;
    },
    close: () => closing.abort(),
  };
}

async function issue(
  config: ExecConfig,
  options: ExecOptions,
  signal: AbortSignal,
): Promise<Issued> {
  const end = await runPlugin({
    command: config.command,
    args: config.args,
    env: pluginEnvironment(config, options),
    timeoutMs: options.pluginTimeoutMs,
    signal,
  });
  const given = understand(end, config, options);
  options.secrets.add(given.token?.trim());
  options.secrets.addPem(given.key);
  const owner = `user "${options.access.userName}", as the credential plugin gave it,`;
  const now = options.clock.now();
  const expiresAt = given.expiresAt ?? Number.POSITIVE_INFINITY;
  // Half of a lifetime that is shorter than the margin: else every call would start the plugin.
  const margin = Math.min(RENEW_BEFORE_MS, Math.max(0, (expiresAt - now) / 2));
  const { token, cert, key } = given;
  return {
    credentials: {
      ...options.base,
      ...(token === undefined ? {} : { token: usableToken(token, owner) }),
      ...(cert === undefined || key === undefined ? {} : { cert, key }),
    },
    renewAt: expiresAt - margin,
    expiresAt,
  };
}

function understand(end: PluginEnd, config: ExecConfig, options: ExecOptions): ExecCredential {
  const plugin = `the credential plugin "${config.command}" of user "${options.access.userName}"`;
  const fail = (problem: string, stderr: string, hint?: string): never => {
    const said = saidOf(stderr, options.redactor);
    throw new ActionError(
      'kube-unauthorized',
      `${plugin} ${problem}${said === '' ? '' : `: ${said}`}`,
      hint === undefined ? {} : { hint },
    );
  };
  switch (end.ended) {
    case 'not-started': {
      const why =
        end.reason === 'ENOENT' ? 'is not installed' : `cannot be started (${end.reason})`;
      const hint = config.installHint ?? `Install "${config.command}" in a step before this one`;
      throw new ActionError('kube-config', `${plugin} ${why}`, {
        hint: options.redactor.redact(shorten(plainText(hint.trim()), MAX_STDERR_SHOWN)),
      });
    }
    case 'timed-out':
      return fail(
        `gave no answer within ${options.pluginTimeoutMs / 1_000} s and was stopped`,
        end.stderr,
        'It may be waiting for somebody to log in; configure a login that works without a person',
      );
    case 'stopped':
      return fail('was stopped, because the run was', '');
    case 'too-much-output':
      return fail('printed far more than a credential and was stopped', end.stderr);
    case 'exited': {
      if (end.code !== 0) {
        const how = end.code === undefined ? 'was killed' : `failed with exit code ${end.code}`;
        return fail(how, end.stderr);
      }
      const parsed = parseExecCredential(end.stdout, config);
      return 'problem' in parsed ? fail(parsed.problem, end.stderr) : parsed;
    }
  }
}

/** The end of it, where plugins say what went wrong. */
function saidOf(stderr: string, redactor: Redactor): string {
  const oneLine = plainText(redactor.redact(stderr)).replace(/\s+/g, ' ').trim();
  return oneLine.length <= MAX_STDERR_SHOWN ? oneLine : `…${oneLine.slice(-MAX_STDERR_SHOWN)}`;
}

function pluginEnvironment(config: ExecConfig, options: ExecOptions): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(options.env)) {
    // The action's own inputs, a GitHub token among them, are none of the plugin's business.
    if (value !== undefined && !name.startsWith('INPUT_')) env[name] = value;
  }
  for (const { name, value } of config.env) env[name] = value;
  env['KUBERNETES_EXEC_INFO'] = execInfo(config, options.access.cluster);
  return env;
}

/** People put keys into the plugin's environment and arguments. */
function registerSecrets(config: ExecConfig, secrets: Secrets): void {
  for (const { name, value } of config.env) {
    // AWS_WEB_IDENTITY_TOKEN_FILE is the path of a secret, not the secret.
    if (/(SECRET|TOKEN|PASSWORD|_KEY)$/i.test(name)) secrets.add(value);
  }
  config.args.forEach((arg, index) => {
    const match = /^--?(?:[a-z0-9-]*-)?(?:secret|password|token)(?:=(.*))?$/is.exec(arg);
    if (match) secrets.add(match[1] ?? config.args[index + 1]);
  });
}
