import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadAll } from 'js-yaml';
import type { JsonObject } from '../../src/base/json.ts';
import { systemClock } from '../../src/base/time.ts';
import { runGate } from '../../src/gate/gate.ts';
import { type InputName, readInputs } from '../../src/inputs.ts';
import type { KubernetesApi, Mutation } from '../../src/kubernetes/api.ts';
import type { NamespaceResult } from '../../src/model/result.ts';
import { recordTo } from '../stage/gate-run.ts';
import type { Client } from './client.ts';
import type { ControlPlane } from './control-plane.ts';
import { Etcd } from './etcd.ts';
import { connectGate, writeKubeconfigText } from './kubeconfig.ts';
import { accountSubject, grant, serviceAccount } from './objects.ts';

/** Where the gate's ServiceAccounts live: never in a namespace under test. */
const GATE_NAMESPACE = 'ci';

/** Which of the manifests in rbac/ each identity is bound to. */
const ROLES = {
  reader: ['reader'],
  objects: ['reader', 'force-objects'],
  namespace: ['reader', 'force-objects', 'force-namespace'],
} as const;

export function userOf(rights: string): string {
  return `system:serviceaccount:${GATE_NAMESPACE}:${rights}`;
}

/** Applies the shipped manifests as they are and binds them to one ServiceAccount per set of rights. */
export async function prepareIdentities({ admin }: ControlPlane): Promise<void> {
  await admin.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: GATE_NAMESPACE } });
  for (const role of ['reader', 'delete', 'force-objects', 'force-namespace']) {
    for (const object of await manifest(role)) await admin.apply(object);
  }
  for (const [name, roles] of Object.entries(ROLES)) await createAccount(admin, name, roles);
}

/** A ServiceAccount of the gate with these shipped ClusterRoles. */
export async function createAccount(
  admin: Client,
  name: string,
  roles: readonly string[],
): Promise<void> {
  await admin.create(serviceAccount(GATE_NAMESPACE, name));
  for (const role of roles) await bind(admin, name, `namespace-teardown-gate-${role}`);
}

export async function bind(admin: Client, account: string, role: string): Promise<void> {
  const subject = accountSubject(GATE_NAMESPACE, account);
  const [binding] = grant({ name: `${account}-${role}` }, [subject], role) as [JsonObject];
  await admin.create(binding);
}

export async function manifest(
  name: string,
  edit: (text: string) => string = (text) => text,
): Promise<JsonObject[]> {
  const path = join(import.meta.dirname, '..', '..', 'rbac', `${name}.yaml`);
  return loadAll(edit(await readFile(path, 'utf8'))) as JsonObject[];
}

/** The gate's own transport, as this identity. */
export async function connectAs(plane: ControlPlane, account: string): Promise<KubernetesApi> {
  const token = await plane.admin.tokenOf(GATE_NAMESPACE, account);
  const { server, ca } = plane.admin.connection;
  const kubeconfig = join(plane.dataDir, `gate-${account}.kubeconfig`);
  await writeFile(kubeconfig, writeKubeconfigText(account, { server, ca, token }), { mode: 0o600 });
  return connectGate(kubeconfig, 'namespace-teardown-gate/test');
}

export interface ForceOptions {
  /** Happens between the reading and a real write, as the cluster's other users would do it. */
  beforeWrite?: (request: Mutation, count: number) => Promise<unknown>;
}

/** The whole gate as this identity: it does not wait unless told to, explains and forces. */
export async function force(
  api: KubernetesApi,
  namespace: string,
  inputs: Partial<Record<InputName, string>>,
  { beforeWrite }: ForceOptions = {},
): Promise<NamespaceResult | undefined> {
  let count = 0;
  const all = { 'force-finalize': 'objects', 'force-namespaces': 'preview-*', ...inputs };
  return runOn(
    {
      ...api,
      target: { ...api.target, ownNamespace: GATE_NAMESPACE },
      send: async (request, call) => {
        const isReal = !request.dryRun && request.method !== 'POST';
        if (isReal) await beforeWrite?.(request, count++);
        return api.send(request, call);
      },
    },
    { timeout: '0s', ...all, namespace },
  );
}

/** Returns what the gate says of the first namespace. */
export async function runOn(
  api: KubernetesApi,
  inputs: Partial<Record<InputName, string>>,
): Promise<NamespaceResult | undefined> {
  const { namespaces } = await runGate(readInputs(inputs), {
    api,
    clock: systemClock,
    log: recordTo([]),
    signal: new AbortController().signal,
    gateVersion: 'test',
  });
  return namespaces[0];
}

/** Keys that belong to the namespace: what is really stored, past every API. */
export async function storedIn(plane: ControlPlane, namespace: string): Promise<string[]> {
  const keys = await new Etcd(plane.etcdEndpoint).keys();
  return keys.filter((key) => key.split('/').at(-2) === namespace).sort();
}
