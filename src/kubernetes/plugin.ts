import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { KubeConfig } from '@kubernetes/client-node';
import { ActionError } from '../base/errors.ts';
import { arrayAt, at, type Json, parseObject, stringAt } from '../base/json.ts';
import { plainText, shorten } from '../base/text.ts';
import { type Access, configError, type Session } from './kubeconfig.ts';

const GROUP = 'client.authentication.k8s.io';
const VERSIONS = [`${GROUP}/v1`, `${GROUP}/v1beta1`];
/** A credential is a few kilobytes; more is a plugin gone wild. */
const MAX_OUTPUT_CHARS = 1024 * 1024;
/** Far more than is shown, so that no secret is cut in half where it can be seen. */
const MAX_STDERR_CHARS = 8_000;
const MAX_SHOWN_CHARS = 600;
/** A helper that the plugin left behind may keep its output open for ever. */
const LEFTOVER_MS = 500;

/** Throws an `ActionError` for an `exec` section that cannot work without a person, or at all. */
export function checkPlugin(exec: Json, owner: string): void {
  const command = stringAt(exec, 'command') ?? '';
  const apiVersion = stringAt(exec, 'apiVersion') ?? '';
  const plugin = `the credential plugin "${command}" of ${owner}`;
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
}

/**
 * client-node's ExecAuth asks the plugin and takes its credential; the process is ours, in place of the
 * `child_process.spawn` in its `execFn`. That one has no time limit, so that a login that waits for a
 * person hangs unseen, leaves standard input open, has no KUBERNETES_EXEC_INFO, which plugins built on
 * client-go demand, and our whole environment. ExecAuth takes any JSON for a credential, or quotes what
 * is none (exec_auth.ts).
 *
 * The function returned says, after the login, when the credential ends (ms since the epoch; `Infinity`
 * where that is not known), or throws an `ActionError` that says why there is none.
 */
export function guardPlugin(
  config: KubeConfig,
  { access, env, redactor, pluginTimeoutMs }: Session,
  signal: AbortSignal,
): () => number {
  const exec = access.user.fields['exec'];
  let stdout = '';
  let stderr = '';
  /** Clauses: how it went wrong, what to do. */
  let problem: string | undefined = 'cannot be run as it is configured';
  let hint: string | undefined;
  let startError: string | undefined;

  const start = (command: string, args: readonly unknown[] = []): ChildProcess => {
    const child = spawn(command, args.map(String), {
      env: environment(exec, access, env),
      stdio: ['ignore', 'pipe', 'pipe'],
      // A process group of its own, so that one kill reaches the whole tree.
      detached: process.platform !== 'win32',
      windowsHide: true,
    });
    problem = undefined;
    const stop = (why: string): void => {
      problem ??= why;
      killTree(child);
      // ExecAuth waits for this, and a process that cannot be killed would never say it.
      child.emit('close', null);
    };
    const stopWithRun = (): void => stop('was stopped, because the run was');
    const timer = setTimeout(() => {
      hint =
        'It may be waiting for somebody to log in; configure a login that works without a person';
      stop(`gave no answer within ${pluginTimeoutMs / 1_000} s and was stopped`);
    }, pluginTimeoutMs);
    let leftover: NodeJS.Timeout | undefined;
    child.stdout.on('data', (data) => {
      stdout += data;
      if (stdout.length > MAX_OUTPUT_CHARS)
        stop('printed far more than a credential and was stopped');
    });
    child.stderr.on('data', (data) => {
      stderr = (stderr + data).slice(-MAX_STDERR_CHARS);
    });
    child.on('error', (error) => {
      startError = codeOf(error);
    });
    child.on('exit', (code) => {
      leftover = setTimeout(() => child.emit('close', code), LEFTOVER_MS);
    });
    child.once('close', (code) => {
      if (code !== 0) problem ??= code === null ? 'was killed' : `failed with exit code ${code}`;
      clearTimeout(timer);
      clearTimeout(leftover);
      signal.removeEventListener('abort', stopWithRun);
      child.stdout.destroy();
      child.stderr.destroy();
    });
    if (signal.aborted) stopWithRun();
    signal.addEventListener('abort', stopWithRun, { once: true });
    return child;
  };
  const authenticators: object[] = config['authenticators'];
  const execAuth = authenticators.find((each) => 'execFn' in each);
  if (execAuth === undefined) throw new Error('client-node has no ExecAuth with an execFn');
  const execFn = (...call: Parameters<typeof start>): ChildProcess => {
    try {
      return start(...call);
    } catch (error) {
      startError = codeOf(error);
      throw error;
    }
  };
  Object.assign(execAuth, { execFn });

  return () => {
    const command = stringAt(exec, 'command') ?? '';
    const plugin = `the credential plugin "${command}" of user "${access.user.name}"`;
    if (startError !== undefined) {
      const isMissing = startError === 'ENOENT';
      const advice =
        stringAt(exec, 'installHint')?.trim() || `Install "${command}" in a step before`;
      throw configError(
        `${plugin} ${isMissing ? 'is not installed' : `cannot be started (${startError})`}`,
        redactor.redact(shorten(plainText(advice), MAX_SHOWN_CHARS)),
      );
    }
    const given = problem ?? readCredential(stdout, stringAt(exec, 'apiVersion'));
    if (typeof given === 'number') return given;
    // The end of it, where plugins say what went wrong.
    const said = plainText(redactor.redact(stderr)).replace(/\s+/g, ' ').trim();
    const shown = said.length <= MAX_SHOWN_CHARS ? said : `…${said.slice(-MAX_SHOWN_CHARS)}`;
    const message = `${plugin} ${given}${shown === '' ? '' : `: ${shown}`}`;
    throw new ActionError('kube-unauthorized', message, hint === undefined ? {} : { hint });
  };
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}

/** When it ends, or a clause about what is wrong; that never quotes the output, which may hold a token. */
function readCredential(stdout: string, apiVersion: string | undefined): number | string {
  if (stdout.trim() === '') return 'printed nothing';
  const output = parseObject(stdout);
  if (output === undefined) return 'printed something that is not JSON';
  if (output['kind'] !== 'ExecCredential') return 'printed JSON that is not an ExecCredential';
  const version = stringAt(output, 'apiVersion');
  if (version !== apiVersion) return `answered in version "${version}" instead of "${apiVersion}"`;
  const { status } = output;
  const [token, cert, key] = ['token', 'clientCertificateData', 'clientKeyData'].map(
    (field) => (stringAt(status, field) ?? '') !== '',
  );
  if (!token && !cert && !key) return 'gave neither a token nor a client certificate';
  if (cert !== key) return 'gave a client certificate without its key, or the other way round';
  const ends = Date.parse(stringAt(status, 'expirationTimestamp') ?? '');
  return Number.isNaN(ends) ? Number.POSITIVE_INFINITY : ends;
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
    // It ended by itself in the meantime.
  }
}

function environment(
  exec: Json | undefined,
  access: Access,
  env: Session['env'],
): Record<string, string | undefined> {
  // The action's own inputs, a GitHub token among them, are none of the plugin's business.
  const ours = Object.entries(env).filter(([name]) => !name.startsWith('INPUT_'));
  const own = arrayAt(exec, 'env').map((entry) => [
    stringAt(entry, 'name') ?? '',
    stringAt(entry, 'value') ?? '',
  ]);
  const isAsked = at(exec, 'provideClusterInfo') === true;
  const info = {
    kind: 'ExecCredential',
    apiVersion: stringAt(exec, 'apiVersion'),
    spec: { ...(isAsked ? { cluster: clusterInfo(access) } : {}), interactive: false },
  };
  return {
    ...Object.fromEntries([...ours, ...own.filter(([name]) => name !== '')]),
    KUBERNETES_EXEC_INFO: JSON.stringify(info),
  };
}

/** `Cluster` of client.authentication.k8s.io/v1, whose fields are called as in a kubeconfig. */
function clusterInfo({ server, cluster: { fields } }: Access): object {
  const { 'certificate-authority-data': data, 'certificate-authority': file } = fields;
  const extensions = arrayAt(fields, 'extensions');
  const own = extensions.find((entry) => stringAt(entry, 'name') === `${GROUP}/exec`);
  return {
    server,
    'tls-server-name': fields['tls-server-name'],
    'insecure-skip-tls-verify': fields['insecure-skip-tls-verify'] || undefined,
    'certificate-authority-data': data ?? (file ? readFileSync(String(file), 'base64') : undefined),
    'proxy-url': fields['proxy-url'],
    'disable-compression': fields['disable-compression'],
    config: at(own, 'extension') ?? null,
  };
}
