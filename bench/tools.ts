import { execFile } from 'node:child_process';
import { readdir, realpath, symlink } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Identity } from '../test/cluster/identities.ts';
import type { Command } from './run-command.ts';

const run = promisify(execFile);

/** Everybody who is measured is this user: reads everything, may delete namespaces. */
export const IDENTITY: Identity = 'teardown-gate';

export interface Tools {
  /** Version of kubectl, for people. */
  kubectlVersion: string;
  gate(kubeconfig: string, args: readonly string[]): Command;
  kubectl(kubeconfig: string, args: readonly string[]): Command;
  /** A line of shell in which `kubectl` is the one that is measured. */
  shell(kubeconfig: string, line: string): Command;
}

/** `bin` is a folder that is put first on the PATH of shells. */
export async function findTools(bundle: string, bin: string): Promise<Tools> {
  const kubectl = await findKubectl();
  const { stdout } = await run(kubectl, ['version', '--client', '-o', 'json']);
  const version = JSON.parse(stdout) as { clientVersion: { gitVersion: string } };
  await symlink(kubectl, join(bin, 'kubectl'));
  const path = [bin, process.env['PATH'] ?? ''].join(delimiter);
  return {
    kubectlVersion: version.clientVersion.gitVersion,
    gate: (kubeconfig, args) => ({
      file: process.execPath,
      args: [bundle, ...args],
      env: { KUBECONFIG: kubeconfig },
    }),
    kubectl: (kubeconfig, args) => ({
      file: kubectl,
      args: [...args],
      env: { KUBECONFIG: kubeconfig },
    }),
    shell: (kubeconfig, line) => ({
      file: 'sh',
      args: ['-c', line],
      env: { KUBECONFIG: kubeconfig, PATH: path },
    }),
  };
}

/** That of Google's SDK asks the server for its version first and then starts another kubectl. */
async function findKubectl(): Promise<string> {
  const { stdout } = await run('sh', ['-c', 'command -v kubectl']).catch(() => {
    throw new Error('there is no "kubectl" on the PATH to compare with');
  });
  const kubectl = await realpath(stdout.trim());
  const client = await run(kubectl, ['version', '--client']);
  if (!client.stdout.includes('-dispatcher')) return kubectl;
  const folder = dirname(kubectl);
  const names = (await readdir(folder)).filter((name) => /^kubectl\.\d+\.\d+$/.test(name));
  const newest = names.sort((a, b) => a.localeCompare(b, 'en', { numeric: true })).at(-1);
  return newest === undefined ? kubectl : join(folder, newest);
}

const TYPES = 'kubectl api-resources --verbs=list --namespaced -o name';

/** What people do without the gate. */
export function oneLiner(namespace: string): string {
  return `${TYPES} | xargs -n 1 kubectl get --show-kind --ignore-not-found -n ${namespace}`;
}

export function oneGet(namespace: string): string {
  return `kubectl get "$(${TYPES} | paste -sd, -)" --show-kind --ignore-not-found -n ${namespace}`;
}
