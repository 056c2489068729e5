import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { ActionError } from '../base/errors.ts';
import {
  arrayAt,
  type Json,
  type JsonObject,
  parseObject,
  stringAt,
  stringsAt,
  valueAt,
} from '../base/json.ts';
import { createRedactor } from '../base/redact.ts';
import { plainText, shorten } from '../base/text.ts';
import { unlessAborted } from '../base/time.ts';
import { configError, type Session } from './kubeconfig.ts';

const GROUP = 'client.authentication.k8s.io';
const VERSIONS = [`${GROUP}/v1`, `${GROUP}/v1beta1`];
/** Limit for the output. A credential has a few kilobytes. */
const MAX_OUTPUT_CHARS = 1024 * 1024;
/**
 * Limit for standard error. Far more than is shown, so that the cut cannot split a secret that would be visible.
 */
const MAX_STDERR_CHARS = 8_000;
const MAX_SHOWN_CHARS = 600;
/** Time after which the output is closed, because a helper that the plugin left behind may keep it open. */
const LEFTOVER_MS = 500;

/** What a plugin printed; at least a token, or a certificate with its key. */
interface Credential {
  token: string | undefined;
  cert: string | undefined;
  key: string | undefined;
  /** Milliseconds since the epoch; `Infinity` if unknown. */
  expiresAt: number;
}

/**
 * Runs a credential plugin and reads its credential. ExecAuth of client-node has no time limit (a login that waits for
 * a person hangs), leaves standard input open, does not set KUBERNETES_EXEC_INFO (which plugins built on client-go
 * require), passes our whole environment, and accepts any JSON as a credential (exec_auth.ts).
 *
 * Throws an `ActionError` with the reason if there is no credential.
 */
export async function logInByPlugin(
  exec: JsonObject,
  /** The cluster, with the content of the files that it names. */
  cluster: JsonObject,
  { access, env, redactor, pluginTimeoutMs, closing: { signal } }: Session,
): Promise<Credential> {
  const plugin = nameOf(exec, `user "${access.user.name}"`);
  const tooMuch = new AbortController();
  const tooLate = AbortSignal.timeout(pluginTimeoutMs);
  const limits = AbortSignal.any([signal, tooLate, tooMuch.signal]);
  const command = stringAt(exec, 'command') ?? '';
  let child: ChildProcessByStdio<null, Readable, Readable> | undefined;
  let stdout = '';
  let stderr = '';
  const run = async (): Promise<void> => {
    // A configuration that no process can have, such as a null byte, throws here.
    const started = spawn(command, arrayAt(exec, 'args').map(String), {
      env: environment(exec, access.server, env, cluster),
      stdio: ['ignore', 'pipe', 'pipe'],
      // A process group of its own, so that one signal ends the whole tree.
      detached: process.platform !== 'win32',
      windowsHide: true,
    });
    child = started;
    started.stdout.setEncoding('utf8').on('data', (data: string) => {
      stdout += data;
      if (stdout.length > MAX_OUTPUT_CHARS) tooMuch.abort();
    });
    started.stderr.setEncoding('utf8').on('data', (data: string) => {
      stderr = (stderr + data).slice(-MAX_STDERR_CHARS);
    });
    const closeOutput = (): void => {
      started.stdout.destroy();
      started.stderr.destroy();
    };
    started.on('exit', () => setTimeout(closeOutput, LEFTOVER_MS).unref());
    limits.addEventListener('abort', closeOutput);
    // `once` no longer listens after the end.
    started.on('error', () => undefined);
    await once(started, 'close');
  };
  // The limit also ends the wait for a process that cannot be killed.
  const error = await unlessAborted(run(), limits).catch((thrown: unknown) => thrown);
  if (limits.aborted && child !== undefined) killTree(child);

  if (!limits.aborted && error instanceof Error && 'code' in error) {
    const isMissing = error.code === 'ENOENT';
    const program = `"${programIn(command)}"`;
    const toInstall =
      stringAt(exec, 'installHint')?.trim() || `Install ${program} in a step before`;
    const advice = isMissing ? toInstall : `Check that ${program} may be executed here`;
    throw configError(
      `${plugin} ${isMissing ? 'is not installed' : `cannot be started (${error.code})`}`,
      redactor.redact(shorten(plainText(advice), MAX_SHOWN_CHARS)),
    );
  }
  const given = (): Credential | string => {
    if (tooMuch.signal.aborted) return 'printed far more than a credential and was stopped';
    if (signal.aborted) return 'was stopped, because the run was';
    if (tooLate.aborted)
      return `gave no answer within ${pluginTimeoutMs / 1_000} s and was stopped`;
    if (child === undefined) return 'cannot be run as it is configured';
    if (child.exitCode === null) return 'was killed';
    if (child.exitCode !== 0) return `failed with exit code ${child.exitCode}`;
    return readCredential(stdout, stringAt(exec, 'apiVersion'));
  };
  const result = given();
  if (typeof result !== 'string') return result;
  // The end of the output, where plugins write the error.
  const said = plainText(redactor.redact(maskSettings(stderr, exec)))
    .replace(/\s+/g, ' ')
    .trim();
  const shown = said.length <= MAX_SHOWN_CHARS ? said : `…${said.slice(-MAX_SHOWN_CHARS)}`;
  const message = `${plugin} ${result}${shown === '' ? '' : `: ${shown}`}`;
  const hint =
    'It may be waiting for an interactive login; configure a login that works without a person';
  throw new ActionError('kube-unauthorized', message, tooLate.aborted ? hint : undefined);
}

/**
 * Returns the name of the plugin for messages. Throws an `ActionError` for a plugin that needs a person or
 * cannot work.
 */
function nameOf(exec: Json | undefined, owner: string): string {
  const command = stringAt(exec, 'command') ?? '';
  const apiVersion = stringAt(exec, 'apiVersion') ?? '';
  const plugin = `the credential plugin "${programIn(command)}" of ${owner}`;
  if (command === '') throw configError(`the exec section of ${owner} has no "command"`);
  if (!VERSIONS.includes(apiVersion)) {
    throw configError(
      `${plugin} is configured for "${apiVersion}"; supported are ${VERSIONS.join(' and ')}`,
      'Update the plugin and write the kubeconfig again with it',
    );
  }
  if (['args', 'env'].some((field) => !Array.isArray(valueAt(exec, field) ?? []))) {
    throw configError(`${plugin} cannot be run as it is configured`);
  }
  if (stringAt(exec, 'interactiveMode') === 'Always') {
    throw configError(
      `${plugin} needs a terminal (interactiveMode: Always)`,
      'Use a login that works without a person, for example a service account token',
    );
  }
  return plugin;
}

/** Returns the program. A command with arguments, which may be secret, cannot be run; a path may have spaces. */
function programIn(command: string): string {
  return existsSync(command) ? command : (command.trim().split(/\s/)[0] ?? '');
}

/** Returns the credential, or a clause about the error. It never quotes the output, which may contain a token. */
function readCredential(stdout: string, apiVersion: string | undefined): Credential | string {
  if (stdout.trim() === '') return 'printed nothing';
  const output = parseObject(stdout);
  if (output === undefined) return 'printed something that is not JSON';
  if (output['kind'] !== 'ExecCredential') return 'printed JSON that is not an ExecCredential';
  const version = stringAt(output, 'apiVersion');
  if (version !== apiVersion) return `answered in version "${version}" instead of "${apiVersion}"`;
  const { status } = output;
  const [token, cert, key] = ['token', 'clientCertificateData', 'clientKeyData'].map(
    (field) => stringAt(status, field) || undefined,
  );
  if (!token && !cert && !key) return 'gave neither a token nor a client certificate';
  if (Boolean(cert) !== Boolean(key))
    return 'gave a client certificate without its key, or the other way round';
  const ends = Date.parse(stringAt(status, 'expirationTimestamp') ?? '');
  return { token, cert, key, expiresAt: Number.isNaN(ends) ? Number.POSITIVE_INFINITY : ends };
}

/** Returns the names and values of the environment that a kubeconfig sets for its plugin. */
export function variablesOf(exec: Json | undefined): [string, string][] {
  const text = (entry: Json, field: string): string => stringAt(entry, field) ?? '';
  return arrayAt(exec, 'env').map((entry) => [text(entry, 'name'), text(entry, 'value')]);
}

/**
 * Masks the settings that the kubeconfig passes to the plugin in a message of the plugin. They may be secrets
 * under any name. Names of flags and paths remain.
 */
function maskSettings(message: string, exec: Json | undefined): string {
  const settings = createRedactor();
  const texts = [
    ...stringsAt(exec, 'args').filter((arg) => !/^--[\w-]+$/.test(arg)),
    ...variablesOf(exec).map(([, value]) => value),
  ];
  for (const text of texts) {
    const value = text.replace(/^(?:--?[\w-]+=|-\w)/, '');
    // Words of a shell script often occur in its messages; a secret usually contains a digit.
    const words = value.split(/[\s"'`=;|&()<>]+/);
    const secrets = words.length === 1 ? words : words.filter((word) => /\d/.test(word));
    for (const secret of secrets) if (!/^[~.]{0,2}\//.test(secret)) settings.add(secret);
  }
  return settings.redact(message);
}

function killTree(child: ChildProcess): void {
  if (child.pid === undefined) return;
  if (process.platform === 'win32') {
    const kill = spawn('taskkill', ['/pid', String(child.pid), '/T', '/F'], { stdio: 'ignore' });
    kill.on('error', () => child.kill());
    return;
  }
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // The process has already ended.
  }
}

function environment(
  exec: JsonObject,
  server: string,
  env: Session['env'],
  fields: JsonObject,
): Record<string, string | undefined> {
  const own = arrayAt(fields, 'extensions').find(
    (each) => stringAt(each, 'name') === `${GROUP}/exec`,
  );
  // `Cluster` of client.authentication.k8s.io/v1, whose fields have the same names as in a kubeconfig.
  const cluster = (): object => ({
    server,
    'tls-server-name': fields['tls-server-name'],
    'insecure-skip-tls-verify': fields['insecure-skip-tls-verify'] || undefined,
    'certificate-authority-data': fields['certificate-authority-data'] || undefined,
    'proxy-url': fields['proxy-url'],
    'disable-compression': fields['disable-compression'],
    config: valueAt(own, 'extension') ?? null,
  });
  const isAsked = valueAt(exec, 'provideClusterInfo') === true;
  const info = {
    kind: 'ExecCredential',
    apiVersion: stringAt(exec, 'apiVersion'),
    spec: { ...(isAsked ? { cluster: cluster() } : {}), interactive: false },
  };
  return {
    // The inputs of the action, among them a GitHub token, must not reach the plugin.
    ...Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('INPUT_'))),
    ...Object.fromEntries(variablesOf(exec).filter(([name]) => name !== '')),
    KUBERNETES_EXEC_INFO: JSON.stringify(info),
  };
}
