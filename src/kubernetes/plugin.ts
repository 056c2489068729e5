import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { KubeConfig } from '@kubernetes/client-node';
import { ActionError } from '../base/errors.ts';
import { arrayAt, type Json, parseObject, stringAt, stringsAt, valueAt } from '../base/json.ts';
import { createRedactor } from '../base/redact.ts';
import { plainText, shorten } from '../base/text.ts';
import { unlessAborted } from '../base/time.ts';
import { type Access, configError, type Session } from './kubeconfig.ts';

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

/**
 * Runs `login`, in which client-node's ExecAuth runs the plugin and reads its credential. This function replaces
 * the `execFn` of ExecAuth, which has no time limit (a login that waits for a person hangs), leaves standard
 * input open, does not set KUBERNETES_EXEC_INFO (which plugins built on client-go require), and passes our whole
 * environment. ExecAuth also accepts any JSON as a credential, and quotes output that is not JSON (exec_auth.ts).
 *
 * Returns when the credential expires (milliseconds since the epoch; `Infinity` if unknown). Throws an
 * `ActionError` with the reason if there is no credential.
 */
export async function logInByPlugin(
  login: () => Promise<void>,
  config: KubeConfig,
  { access, env, redactor, pluginTimeoutMs, closing: { signal } }: Session,
): Promise<number> {
  const exec = access.user.fields['exec'];
  const plugin = nameOf(exec, `user "${access.user.name}"`);
  const tooMuch = new AbortController();
  const tooLate = AbortSignal.timeout(pluginTimeoutMs);
  const limits = AbortSignal.any([signal, tooLate, tooMuch.signal]);
  let child: ChildProcess | undefined;
  let stdout = '';
  let stderr = '';
  const execFn = (command: string, args: readonly unknown[] = []): ChildProcess => {
    const started = spawn(command, args.map(String), {
      env: environment(exec, access, env, config),
      stdio: ['ignore', 'pipe', 'pipe'],
      // A process group of its own, so that one signal ends the whole tree.
      detached: process.platform !== 'win32',
      windowsHide: true,
    });
    const { stdout: output, stderr: errors } = started;
    output.on('data', (data) => {
      stdout += data;
      if (stdout.length > MAX_OUTPUT_CHARS) tooMuch.abort();
    });
    errors.on('data', (data) => {
      stderr = (stderr + data).slice(-MAX_STDERR_CHARS);
    });
    const closeOutput = (): void => {
      output.destroy();
      errors.destroy();
    };
    started.on('exit', () => setTimeout(closeOutput, LEFTOVER_MS).unref());
    limits.addEventListener('abort', closeOutput);
    child = started;
    return started;
  };
  const execAuth = (config['authenticators'] as object[]).find((each) => 'execFn' in each);
  if (execAuth === undefined) throw new Error('client-node has no ExecAuth with an execFn');
  Object.assign(execAuth, { execFn });
  // The limit also ends the wait for a process that cannot be killed.
  const error = await unlessAborted(login(), limits).catch((thrown: unknown) => thrown);
  if (limits.aborted && child !== undefined) killTree(child);

  const problem = (): string | number => {
    if (tooMuch.signal.aborted) return 'printed far more than a credential and was stopped';
    if (signal.aborted) return 'was stopped, because the run was';
    if (tooLate.aborted)
      return `gave no answer within ${pluginTimeoutMs / 1_000} s and was stopped`;
    if (child === undefined) return 'cannot be run as it is configured';
    if (child.exitCode === null) return 'was killed';
    if (child.exitCode !== 0) return `failed with exit code ${child.exitCode}`;
    return readCredential(stdout, stringAt(exec, 'apiVersion'));
  };
  if (!limits.aborted && error instanceof Error && 'code' in error) {
    const isMissing = error.code === 'ENOENT';
    const given = stringAt(exec, 'command') ?? '';
    const command = `"${programIn(given)}"`;
    const toInstall =
      stringAt(exec, 'installHint')?.trim() || `Install ${command} in a step before`;
    const advice = isMissing ? toInstall : `Check that ${command} may be executed here`;
    throw configError(
      `${plugin} ${isMissing ? 'is not installed' : `cannot be started (${error.code})`}`,
      redactor.redact(shorten(plainText(advice), MAX_SHOWN_CHARS)),
    );
  }
  const given = problem();
  if (typeof given === 'number') return given;
  // The end of the output, where plugins write the error.
  const said = plainText(redactor.redact(maskSettings(stderr, exec)))
    .replace(/\s+/g, ' ')
    .trim();
  const shown = said.length <= MAX_SHOWN_CHARS ? said : `…${said.slice(-MAX_SHOWN_CHARS)}`;
  const message = `${plugin} ${given}${shown === '' ? '' : `: ${shown}`}`;
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

/**
 * Returns when the credential expires, or a clause about the error. It never quotes the output, which may
 * contain a token.
 */
function readCredential(stdout: string, apiVersion: string | undefined): number | string {
  if (stdout.trim() === '') return 'printed nothing';
  const output = parseObject(stdout);
  if (output === undefined) return 'printed something that is not JSON';
  if (output['kind'] !== 'ExecCredential') return 'printed JSON that is not an ExecCredential';
  const version = stringAt(output, 'apiVersion');
  if (version !== apiVersion) return `answered in version "${version}" instead of "${apiVersion}"`;
  const { status } = output;
  const [token, cert, key] = ['token', 'clientCertificateData', 'clientKeyData'].map((field) =>
    Boolean(stringAt(status, field)),
  );
  if (!token && !cert && !key) return 'gave neither a token nor a client certificate';
  if (cert !== key) return 'gave a client certificate without its key, or the other way round';
  const ends = Date.parse(stringAt(status, 'expirationTimestamp') ?? '');
  return Number.isNaN(ends) ? Number.POSITIVE_INFINITY : ends;
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
  exec: Json | undefined,
  { server, cluster: { fields } }: Access,
  env: Session['env'],
  config: KubeConfig,
): Record<string, string | undefined> {
  const own = arrayAt(fields, 'extensions').find(
    (each) => stringAt(each, 'name') === `${GROUP}/exec`,
  );
  /**
   * Returns `Cluster` of client.authentication.k8s.io/v1, whose fields have the same names as in a kubeconfig.
   */
  const cluster = (): object => ({
    server,
    'tls-server-name': fields['tls-server-name'],
    'insecure-skip-tls-verify': fields['insecure-skip-tls-verify'] || undefined,
    // The config has the content of a file that the cluster names.
    'certificate-authority-data': config.getCurrentCluster()?.caData,
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
