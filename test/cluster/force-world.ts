import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadAll } from 'js-yaml';
import { request } from 'undici';
import type { JsonObject } from '../../src/base/json.ts';
import type { Log } from '../../src/base/log.ts';
import { createRedactor } from '../../src/base/redact.ts';
import { systemClock } from '../../src/base/time.ts';
import { leakOf } from '../../src/diagnose/catalogue.ts';
import { diagnose } from '../../src/diagnose/diagnose.ts';
import { applyForce, type ForceResult } from '../../src/force/apply.ts';
import { readHostedBackends } from '../../src/force/backends.ts';
import type { ForcePlan } from '../../src/force/force-plan.ts';
import { planForce } from '../../src/force/plan.ts';
import { look } from '../../src/gate/examine.ts';
import { readNamespace } from '../../src/gate/wait.ts';
import type { KubernetesApi, Mutation } from '../../src/kubernetes/api.ts';
import { connect } from '../../src/kubernetes/connect.ts';
import type { Diagnosis } from '../../src/model/finding.ts';
import type { ActivePolicy } from '../../src/model/policy.ts';
import type { NamespaceFacts, Snapshot } from '../../src/model/snapshot.ts';
import type { Client } from './client.ts';
import type { ControlPlane } from './control-plane.ts';
import { writeKubeconfigText } from './kubeconfig.ts';

/** Where the gate's ServiceAccounts live: never in a namespace under test. */
export const GATE_NAMESPACE = 'ci';

/** Which of the manifests in rbac/ each identity is bound to. */
const ROLES = {
  reader: ['reader'],
  objects: ['reader', 'force-objects'],
  namespace: ['reader', 'force-objects', 'force-namespace'],
} as const;
export type Rights = keyof typeof ROLES;

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
  for (const [name, roles] of Object.entries(ROLES)) {
    await admin.create({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { namespace: GATE_NAMESPACE, name },
    });
    for (const role of roles) await bind(admin, name, `namespace-teardown-gate-${role}`);
  }
}

export async function bind(admin: Client, account: string, role: string): Promise<void> {
  await admin.create({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: `${account}-${role}` },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [{ kind: 'ServiceAccount', namespace: GATE_NAMESPACE, name: account }],
  });
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
  await writeFile(file, writeKubeconfigText('gate', account, { server, ca, token }), {
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

export function policy(over: Partial<ActivePolicy>): ActivePolicy {
  return {
    mode: 'objects',
    namespaces: ['preview-*'],
    label: undefined,
    finalizers: [],
    pods: false,
    orphans: 'refuse',
    ...over,
  };
}

export async function explain(
  api: KubernetesApi,
  namespace: string,
): Promise<{ snapshot: Snapshot; diagnosis: Diagnosis }> {
  const signal = new AbortController().signal;
  const now = await facts(api, namespace);
  const snapshot = await look(now, undefined, undefined, { api, clock: systemClock, signal });
  return { snapshot, diagnosis: diagnose(snapshot) };
}

export interface Forced extends ForceResult {
  plan: ForcePlan;
  log: string[];
}

export interface ForceOptions {
  /** Happens between the reading and the first real write, as the cluster's other users would do it. */
  beforeWrite?: (request: Mutation, count: number) => Promise<unknown>;
  afterWrite?: (request: Mutation, count: number) => Promise<unknown>;
  startUid?: string;
  settleMs?: number;
}

/** What the gate does once the timeout has passed: look, diagnose, plan, apply. */
export async function force(
  api: KubernetesApi,
  namespace: string,
  given: ActivePolicy,
  options: ForceOptions = {},
): Promise<Forced> {
  const signal = new AbortController().signal;
  const log: string[] = [];
  const first = await facts(api, namespace);
  const plans: ForcePlan[] = [];
  const makePlan = async (now: NamespaceFacts): Promise<ForcePlan> => {
    const snapshot = await look(now, undefined, undefined, { api, clock: systemClock, signal });
    return planForce({
      snapshot,
      diagnosis: diagnose(snapshot),
      policy: given,
      startUid: options.startUid ?? first.uid,
      ownNamespace: GATE_NAMESPACE,
      backends: await readHostedBackends(api, namespace, signal),
      leakOf,
    });
  };
  const plan = await makePlan(first);
  plans.push(plan);
  const result = await applyForce(plan, {
    api: meddling(api, options),
    clock: systemClock,
    log: lines(log),
    signal,
    settleMs: options.settleMs ?? 30_000,
    waitGone: (untilMs) => waitGone(api, namespace, first.uid, untilMs),
    replan: async () => {
      const now = await readNamespace(api, namespace, signal);
      return now.ok && now.value !== undefined ? makePlan(now.value) : undefined;
    },
  });
  return { ...result, plan, log };
}

async function facts(api: KubernetesApi, namespace: string): Promise<NamespaceFacts> {
  const got = await readNamespace(api, namespace, new AbortController().signal);
  if (!got.ok || got.value === undefined) throw new Error(`${namespace} is not there`);
  return got.value;
}

async function waitGone(
  api: KubernetesApi,
  namespace: string,
  uid: string,
  untilMs: number,
): Promise<'gone' | 'still-there'> {
  const signal = new AbortController().signal;
  for (;;) {
    const got = await readNamespace(api, namespace, signal);
    if (got.ok && got.value?.uid !== uid) return 'gone';
    if (Date.now() >= untilMs) return 'still-there';
    await systemClock.sleep(300);
  }
}

/** The same API with somebody else acting in between. */
function meddling(api: KubernetesApi, options: ForceOptions): KubernetesApi {
  let count = 0;
  return new Proxy(api, {
    get(target, key) {
      if (key !== 'send') {
        const value: unknown = Reflect.get(target, key, target);
        return typeof value === 'function' ? value.bind(target) : value;
      }
      return async (request: Mutation, call: never) => {
        const isReal = !request.dryRun && request.method !== 'POST';
        const turn = isReal ? count++ : -1;
        if (isReal) await options.beforeWrite?.(request, turn);
        const sent = await target.send(request, call);
        if (isReal) await options.afterWrite?.(request, turn);
        return sent;
      };
    },
  });
}

function lines(all: string[]): Log {
  const push = (text: string): void => {
    all.push(text);
  };
  return {
    line: push,
    group: (title, more) => all.push(title, ...more),
    notice: push,
    warning: push,
    error: push,
    debug: () => undefined,
  };
}

/** Keys under /registry that belong to the namespace: what is really stored, past every API. */
export async function storedIn(plane: ControlPlane, namespace: string): Promise<string[]> {
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const { body } = await request(`${plane.etcdEndpoint}/v3/kv/range`, {
    method: 'POST',
    body: JSON.stringify({
      key: base64('/registry/'),
      range_end: base64('/registry0'),
      keys_only: true,
    }),
  });
  const answer = (await body.json()) as { kvs?: { key: string }[] };
  return (answer.kvs ?? [])
    .map(({ key }) => Buffer.from(key, 'base64').toString())
    .filter((key) => key.split('/').at(-2) === namespace)
    .sort();
}
