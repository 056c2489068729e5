import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { ActionError, errorCode } from '../base/errors.ts';
import {
  arrayAt,
  type Json,
  type JsonObject,
  parseObject,
  stringAt,
  stringsAt,
} from '../base/json.ts';
import { createRedactor } from '../base/redact.ts';
import { plainText, shortQuote } from '../base/text.ts';
import { unlessAborted } from '../base/time.ts';
import type { Session } from './connections.ts';

const MAX_OUTPUT_CHARS = 1024 * 1024;
/** Far more than is shown, so that the cut cannot split a secret that would be visible. */
const MAX_STDERR_CHARS = 8_000;
const MAX_SHOWN_CHARS = 600;
/** Then the output is closed: a helper that the plugin left behind may keep it open. */
const LEFTOVER_MS = 500;

type Credential = Record<'token' | 'cert' | 'key', string | undefined> & { expiresAt: number };

/**
 * Runs a credential plugin. ExecAuth of client-node has no time limit, leaves standard input open, does not set
 * KUBERNETES_EXEC_INFO (which plugins built on client-go require) and passes our whole environment.
 */
export async function logInByPlugin(
  exec: JsonObject,
  ca: string | undefined,
  session: Session,
): Promise<Credential> {
  const { access, redactor, pluginTimeoutMs, closing } = session;
  const command = stringAt(exec, 'command') ?? '';
  // What follows the program in a wrong command may be secret.
  const program = `"${command.trim().split(/\s/)[0]}"`;
  const plugin = `the credential plugin ${program} of user "${access.user.name}"`;
  const tooLate = AbortSignal.timeout(pluginTimeoutMs);
  const limits = AbortSignal.any([closing.signal, tooLate]);
  const show = (text: string): string =>
    shortQuote(plainText(redactor.redact(text)), MAX_SHOWN_CHARS);
  let child: ChildProcess | undefined;
  let stdout = '';
  let stderr = '';
  const run = async (): Promise<void> => {
    // A configuration that no process can have, such as a null byte, throws here.
    const started = spawn(command, arrayAt(exec, 'args').map(String), {
      env: environment(exec, ca, session),
      stdio: ['ignore', 'pipe', 'pipe'],
      // A process group of its own, so that one signal ends the whole tree.
      detached: process.platform !== 'win32',
      windowsHide: true,
    });
    child = started;
    started.stdout.setEncoding('utf8').on('data', (data: string) => {
      stdout = (stdout + data).slice(0, MAX_OUTPUT_CHARS);
    });
    started.stderr.setEncoding('utf8').on('data', (data: string) => {
      stderr = (stderr + data).slice(-MAX_STDERR_CHARS);
    });
    const closeOutput = (): void => {
      for (const output of [started.stdout, started.stderr]) output.destroy();
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
  else if (error !== undefined) {
    const code = errorCode(error);
    throw new ActionError(
      `${plugin} ${code === 'ENOENT' ? 'is not installed' : `cannot be started (${code})`}`,
      show(stringAt(exec, 'installHint') ?? `Install ${program} in a step before`),
    );
  }
  const credential = readCredential(stdout);
  if (!limits.aborted && child?.exitCode === 0 && credential !== undefined) return credential;

  let problem = 'printed no ExecCredential with a token or a client certificate';
  if (child?.exitCode !== 0)
    problem = `failed with ${child?.signalCode ?? `exit code ${child?.exitCode}`}`;
  if (tooLate.aborted)
    problem = `gave no answer within ${pluginTimeoutMs / 1_000} s and was stopped`;
  if (closing.signal.aborted) problem = 'was stopped, because the run was';
  const said = show(maskSettings(stderr, exec, session.env));
  throw new ActionError(
    `${plugin} ${problem}${said && `: ${said}`}`,
    'Log in before the gate starts, in a way that works without a person',
  );
}

function readCredential(stdout: string): Credential | undefined {
  const output = parseObject(stdout);
  if (output?.['kind'] !== 'ExecCredential') return undefined;
  const text = (field: string) => stringAt(output, 'status', field) || undefined;
  const token = text('token')?.trim();
  const [cert, key] = [text('clientCertificateData'), text('clientKeyData')];
  if (token === undefined && (cert === undefined || key === undefined)) return undefined;
  const ends = Date.parse(text('expirationTimestamp') ?? '');
  return { token, cert, key, expiresAt: Number.isNaN(ends) ? Infinity : ends };
}

function variablesOf(exec: JsonObject): [string, string][] {
  const textOf = (one: Json, key: string): string => stringAt(one, key) ?? '';
  return arrayAt(exec, 'env').map((one) => [textOf(one, 'name'), textOf(one, 'value')]);
}

/** Variables that contain a secret and not the path of one. */
const SECRET = /(?:secret|token|pass|password|passphrase|key|credentials?)$/i;

/** Masks what the plugin was given, which may be secrets under any name. Flags, paths and words of scripts remain. */
function maskSettings(message: string, exec: JsonObject, env: Session['env']): string {
  const settings = createRedactor();
  const given = [
    ...stringsAt(exec, 'args').filter((arg) => !/^--[\w-]+$/.test(arg)),
    ...variablesOf(exec).map(([, value]) => value),
    ...Object.entries(env).flatMap(([name, value = '']) => (SECRET.test(name) ? [value] : [])),
  ];
  for (const text of given) {
    const value = text.replace(/^(?:--?[\w-]+=|-\w)/, '');
    for (const word of [value, ...value.split(/[\s"'`=;|&()<>]+/)]) {
      const isPath = /^[~.]{0,2}\//.test(word);
      if (!isPath && (word === value || /\d/.test(word))) settings.add(word);
    }
  }
  return settings.redact(message);
}

function killTree(child: ChildProcess): void {
  if (child.pid === undefined) return;
  if (process.platform === 'win32')
    spawn('taskkill', ['/pid', `${child.pid}`, '/t', '/f']).on('error', () => child.kill());
  else
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // The process has already ended.
    }
}

function environment(
  exec: JsonObject,
  ca: string | undefined,
  { access, env }: Session,
): Record<string, string | undefined> {
  const cluster = exec['provideClusterInfo'] === true && {
    server: access.server,
    'tls-server-name': access.cluster.tlsServerName || undefined,
    'insecure-skip-tls-verify': access.cluster.skipTLSVerify || undefined,
    'certificate-authority-data': ca && Buffer.from(ca).toString('base64'),
  };
  const spec = { ...(cluster && { cluster }), interactive: false };
  const info = { kind: 'ExecCredential', apiVersion: stringAt(exec, 'apiVersion'), spec };
  return {
    // The inputs of the action, among them a GitHub token, must not reach the plugin.
    ...Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('INPUT_'))),
    ...Object.fromEntries(variablesOf(exec).filter(([name]) => name !== '')),
    KUBERNETES_EXEC_INFO: JSON.stringify(info),
  };
}
