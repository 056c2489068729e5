import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadAll } from 'js-yaml';
import type { JsonObject } from '../../src/base/json.ts';
import { createRedactor } from '../../src/base/redact.ts';
import { systemClock } from '../../src/base/time.ts';
import { runGate } from '../../src/gate/gate.ts';
import { type InputName, readInputs } from '../../src/inputs.ts';
import type { KubernetesApi, Mutation } from '../../src/kubernetes/api.ts';
import { connect } from '../../src/kubernetes/connect.ts';
import type { NamespaceResult } from '../../src/model/result.ts';
import { recordTo } from '../stage/gate-run.ts';
import type { Client } from './client.ts';
import type { ControlPlane } from './control-plane.ts';
import { Etcd } from './etcd.ts';
import { writeKubeconfigText } from './kubeconfig.ts';
import { accountSubject, grant, serviceAccount } from './objects.ts';

/** Where the gate's ServiceAccounts live: never in a namespace under test. */
export const GATE_NAMESPACE = 'ci';

/** Which of the manifests in rbac/ each identity is bound to. */
const ROLES = {
  reader: ['reader'],
  objects: ['reader', 'force-objects'],
  namespace: ['reader', 'force-objects', 'force-namespace'],
  all: ['reader', 'delete', 'force-objects', 'force-extra-all'],
} as const;

export function userOf(rights: string): string {
  return `system:serviceaccount:${GATE_NAMESPACE}:${rights}`;
}

/** Applies the shipped manifests as they are and binds them to one ServiceAccount per set of rights. */
export async function prepareIdentities(plane: ControlPlane): Promise<void> {
  const { admin } = plane;
  await admin.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: GATE_NAMESPACE } });
  for (const role of ['reader', 'delete', 'force-objects', 'force-namespace']) {
    for (const object of await manifest(role)) await admin.apply(object);
  }
  // For types of tests that the manifest cannot know.
  await admin.create({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'namespace-teardown-gate-force-extra-all' },
    rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['patch'] }],
  });
  for (const [name, roles] of Object.entries(ROLES)) {
    await createAccount(admin, name, roles);
  }
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
  const path = `/api/v1/namespaces/${GATE_NAMESPACE}/serviceaccounts/${account}/token`;
  const answer = await plane.admin.call('POST', path, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: 7_200 },
  });
  const token = (answer.body as { status: { token: string } }).status.token;
  const { server, ca } = plane.admin.connection;
  const file = join(plane.dataDir, `gate-${account}.kubeconfig`);
  await writeFile(file, writeKubeconfigText(account, { server, ca, token }), {
    mode: 0o600,
  });
  return connect({
    kubeconfig: file,
    env: {},
    redactor: createRedactor(),
    userAgent: 'namespace-teardown-gate/test',
    homeDir: plane.dataDir,
  });
}

export interface Forced {
  /** One for each namespace, in their order. */
  results: NamespaceResult[];
  log: string;
  elapsedMs: number;
}

export interface ForceOptions {
  /** Happens between the reading and a real write, as the cluster's other users would do it. */
  beforeWrite?: (request: Mutation, count: number) => Promise<unknown>;
  afterWrite?: (request: Mutation, count: number) => Promise<unknown>;
}

/**
 * The whole gate as this identity: it finds the namespaces, does not wait unless told to, explains and
 * forces. `ci` is the namespace that it says it runs in.
 */
export async function force(
  api: KubernetesApi,
  namespaces: readonly string[],
  inputs: Partial<Record<InputName, string>>,
  options: ForceOptions = {},
): Promise<Forced> {
  const lines: string[] = [];
  const all: Partial<Record<InputName, string>> = {
    namespace: namespaces.join(),
    timeout: '0s',
    'force-finalize': 'objects',
    'force-namespaces': 'preview-*',
    ...inputs,
  };
  const startedAt = Date.now();
  const { namespaces: results } = await runGate(readInputs(all), {
    api: meddling(api, options),
    clock: systemClock,
    log: recordTo(lines),
    signal: new AbortController().signal,
    gateVersion: 'test',
  });
  return { results, log: lines.join('\n'), elapsedMs: Date.now() - startedAt };
}

/** The same API with somebody else acting in between. */
function meddling(api: KubernetesApi, options: ForceOptions): KubernetesApi {
  let count = 0;
  const own: Partial<KubernetesApi> = {
    target: { ...api.target, ownNamespace: GATE_NAMESPACE },
    send: async (request, call) => {
      const isReal = !request.dryRun && request.method !== 'POST';
      const turn = isReal ? count++ : -1;
      if (isReal) await options.beforeWrite?.(request, turn);
      const sent = await api.send(request, call);
      if (isReal) await options.afterWrite?.(request, turn);
      return sent;
    },
  };
  return new Proxy(api, {
    get(target, key) {
      const value: unknown = Reflect.get(own, key) ?? Reflect.get(target, key, target);
      return typeof value === 'function' && !(key in own) ? value.bind(target) : value;
    },
  });
}

/** Keys that belong to the namespace: what is really stored, past every API. */
export async function storedIn(plane: ControlPlane, namespace: string): Promise<string[]> {
  const keys = await new Etcd(plane.etcdEndpoint).keys();
  return keys.filter((key) => key.split('/').at(-2) === namespace).sort();
}
