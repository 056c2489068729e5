import { type JsonObject, numberAt, stringAt } from '../../../src/base/json.ts';
import type { FindingCode } from '../../../src/model/finding.ts';
import type { KubeObject, Ref } from '../client.ts';
import {
  accountSubject,
  customType,
  grant,
  pluralOf,
  RBAC,
  secret,
  serviceAccount,
} from '../objects.ts';
import type { Link, Scenario } from '../scenario.ts';
import { logLine, serveContainerLogs } from '../servers/container-logs.ts';
import { readyPods, startOperatorProcess } from '../servers/operator-process.ts';
import { containerStatus, unready } from '../servers/stand-in.ts';
import { laterSecond, waitUntil } from '../wait-until.ts';
import type { World } from '../world.ts';
import {
  COMPANY,
  everydayObject,
  everydayWorkload,
  INSTALLS,
  type Install,
  type InstallName,
} from './everyday-installs.ts';
import { objectFinalizer, ref } from './links.ts';
import {
  install,
  type Operator,
  type OperatorOptions,
  READ,
  runPods,
  workloadRef,
} from './operator.ts';
import { GUARDED, release, settledByFinalizer } from './situation.ts';
import { createLease } from './traces.ts';

/**
 * What stock installations show in the states that occur, each beside what most clusters run: installations times
 * states. What is expected follows from the two tables: whose it is from the one, how that is from the other.
 */

/** One installation in one scenario. */
interface Scene {
  world: World;
  install: Install;
  operator: Operator;
  held: Ref;
}

interface State {
  title: string;
  code: FindingCode;
  /** All that its maker installs is gone. */
  isGone?: true;
  /** It lives in the namespace under test. */
  isInside?: true;
  /** Its process works as soon as it can, by patches or by updates; or hangs until it is restarted. */
  process?: 'works' | 'updates' | 'hangs';
  /** What the object, or who sets it, needs of the namespace under test. */
  before?: (scene: Scene) => Promise<unknown>;
  /** What happens after the finalizer was set, before the namespace is deleted. */
  afterwards?: (scene: Scene) => Promise<unknown>;
  /** What it says about its failure, and whether that is in its log alone. */
  says?: (scene: Scene) => string | Promise<string>;
  isInLog?: true;
  /** What refuses is outside of the cluster: what need not be asked there can go. */
  isOutside?: true;
  /** Of its text, what the report must contain. */
  quotes?: RegExp;
}

const RIGHTS = `${RBAC}/v1`;
const DENIED =
  'deletion failed: AccessDenied: user preview-cleaner is not authorized to perform: Delete, status code: 403';
const CREDENTIALS = 'cleanup-credentials';
const needed: Pick<State, 'before'> = {
  before: ({ world }) => world.create(secret(world.namespace, CREDENTIALS)),
};
const whileCreating: Pick<State, 'code' | 'says' | 'quotes'> = {
  code: 'owner-failing',
  says: ({ world }) => refusedCreation(world),
  quotes: /forbidden|being terminated/,
};

const STATES = {
  uninstalled: {
    title: 'was uninstalled before its objects; its namespace and its Lease are left',
    code: 'owner-missing',
    isGone: true,
    afterwards: async (scene) => {
      await removeWorkload(scene);
      const { world, install, operator } = scene;
      for (const one of rightsOf(install, operator.namespace)) await world.client.delete(one);
      await world.client.delete(accountRef(operator));
    },
  },
  'namespace-gone': {
    title: 'went with its namespace; its cluster-wide rights are left',
    code: 'owner-missing',
    isGone: true,
    afterwards: async ({ world, operator }) => {
      const home: Ref = { apiVersion: 'v1', kind: 'Namespace', name: operator.namespace };
      await world.client.delete(home);
      await world.gone(home);
    },
  },
  'rights-left': {
    title: 'is gone; its ServiceAccount and rights are left',
    code: 'owner-missing',
    afterwards: (scene) => removeWorkload(scene),
  },
  inside: {
    title: 'was installed in the namespace and was deleted with it',
    code: 'owner-missing',
    isInside: true,
  },
  asleep: {
    title: 'has 0 replicas',
    code: 'owner-scaled-to-zero',
    process: 'works',
    afterwards: async ({ world, operator }) => {
      const { client } = world;
      await client.patch(
        workloadRef(operator),
        { spec: { replicas: 0 } },
        { subresource: 'scale', fieldManager: 'kubectl' },
      );
      await podsGo(world, operator);
    },
  },
  crashing: {
    title: 'crashes again and again',
    code: 'owner-not-ready',
    quotes: /CrashLoopBackOff|exit code 1/,
    afterwards: (scene) => crash(scene),
  },
  'rights-lost': {
    title: 'may read its objects and write their status, and no longer change them',
    code: 'owner-failing',
    process: 'updates',
    afterwards: ({ world, install }) => {
      const { role, rules } = install;
      const [own, ...others] = rules;
      const reads = { ...own, verbs: READ };
      return world.client.patch(
        { apiVersion: RIGHTS, kind: 'ClusterRole', name: role },
        { rules: [reads, ...others] },
        { fieldManager: 'kubectl-edit' },
      );
    },
    says: (scene) => forbidden(scene),
    quotes: /cannot update resource/,
  },
  'binding-lost': {
    title: 'has lost its ClusterRoleBinding, and cannot say so',
    code: 'owner-failing',
    process: 'works',
    afterwards: ({ world, install }) => {
      const { role: name } = install;
      return world.client.delete({ apiVersion: RIGHTS, kind: 'ClusterRoleBinding', name });
    },
  },
  'cannot-create': {
    title: 'cannot create what its clean-up needs in the terminating namespace',
    ...whileCreating,
  },
  'cannot-create-log': {
    title: 'cannot create what its clean-up needs, and says so in its log alone',
    ...whileCreating,
    isInLog: true,
  },
  'secret-gone': {
    title: 'needs a Secret of the namespace that was deleted before its object',
    code: 'owner-failing',
    ...needed,
    says: () => `failed to delete: Secret "${CREDENTIALS}" not found`,
    quotes: /cleanup-credentials/,
  },
  'secret-gone-log': {
    title: 'needs a Secret that was deleted before its object, and says so in its log alone',
    code: 'owner-failing',
    ...needed,
    isInLog: true,
    says: () => `failed to retrieve cluster from reference: Secret "${CREDENTIALS}" not found`,
    quotes: /cleanup-credentials/,
  },
  'account-gone': {
    title: 'needs a ServiceAccount of the namespace that was deleted before its object',
    code: 'owner-failing',
    before: ({ world }) => world.create(serviceAccount(world.namespace, 'deployer')),
    says: () =>
      'cannot get Kubernetes service account "deployer": ServiceAccount "deployer" not found',
    quotes: /deployer/,
  },
  refused: {
    title: 'is refused by what is outside of the cluster',
    code: 'owner-failing',
    isOutside: true,
    says: () => DENIED,
    quotes: /403|AccessDenied/,
  },
  'refused-log': {
    title: 'is refused by what is outside of the cluster, and says so in its log alone',
    code: 'owner-failing',
    isInLog: true,
    isOutside: true,
    says: () => DENIED,
    quotes: /403|AccessDenied/,
  },
  silent: { title: 'runs and says nothing', code: 'owner-running', process: 'hangs' },
} satisfies Record<string, State>;

type StateName = keyof typeof STATES;

/** Which of them occur in threads, or are the likeliest of their kind. */
const COMBINATIONS: Readonly<Record<InstallName, readonly StateName[]>> = {
  'kubebuilder-v4': [
    ...(['uninstalled', 'namespace-gone', 'rights-left', 'inside', 'asleep', 'crashing'] as const),
    ...(['rights-lost', 'cannot-create', 'secret-gone', 'refused', 'silent'] as const),
  ],
  'kubebuilder-v3': ['namespace-gone', 'inside', 'asleep', 'cannot-create-log'],
  'operator-sdk': ['uninstalled', 'asleep', 'refused'],
  'helm-operator': ['uninstalled', 'asleep', 'refused'],
  'ansible-operator': ['namespace-gone', 'asleep', 'cannot-create'],
  kopf: ['uninstalled', 'rights-left', 'asleep', 'silent'],
  'josdk-v4': ['uninstalled', 'asleep'],
  'josdk-v5': ['rights-left', 'asleep'],
  'kube-rs': ['uninstalled', 'crashing'],
  'client-go': ['uninstalled', 'asleep', 'binding-lost', 'silent'],
  'cert-manager': ['uninstalled', 'asleep', 'refused'],
  'external-secrets': ['uninstalled', 'account-gone', 'refused'],
  strimzi: ['inside', 'asleep'],
  cnpg: ['namespace-gone', 'asleep'],
  argocd: ['uninstalled', 'asleep', 'refused'],
  'flux-helm': ['uninstalled', 'asleep', 'refused'],
  'flux-kustomize': ['crashing', 'silent'],
  keda: ['uninstalled', 'asleep'],
  'aws-load-balancer': ['uninstalled', 'crashing', 'refused-log'],
  rabbitmq: ['uninstalled', 'secret-gone-log', 'asleep'],
  crossplane: ['uninstalled', 'asleep', 'refused'],
};

interface Everyday {
  id: string;
  install: Install;
  state: State;
}

const ALL: readonly Everyday[] = Object.entries(COMBINATIONS).flatMap(([name, states]) =>
  states.map((state) => ({
    id: `everyday-${name}-${state}`,
    install: INSTALLS[name as InstallName],
    state: STATES[state],
  })),
);

/** What is right of each; of a controller that is missing, whatever the finding is attached to. */
export const EVERYDAY = ALL.map(({ id, install, state }: Everyday) => ({
  id,
  code: state.code,
  workload: state.code === 'owner-missing' ? undefined : install.name,
  /** Nothing shows it before the deletion. */
  beginsLater: state.process === 'hangs' || state.says !== undefined,
}));

/** Not yet named as it should be: an error to be fixed. Whoever has fixed it removes it from here. */
export const NOT_YET_NAMED: readonly string[] = [];

export const everyday: readonly Scenario[] = ALL.map(scenarioOf);

function scenarioOf({ id, install, state }: Everyday): Scenario {
  const scene = (world: World): Scene => sceneOf(world, install, state);
  return {
    id,
    title: `${install.title} ${state.title}`,
    own: true, // names as in the manifests
    versions: ['1.36.3'],
    ...(NOT_YET_NAMED.includes(id) ? { notMet: 'its owner is not named yet' } : {}),
    ...(state.isInLog ? { identity: 'teardown-logs', inputs: { 'owner-logs': 'true' } } : {}),
    setUp: (world) => setUp(scene(world), state),
    settle: async (world) => {
      await settledByFinalizer(world);
      if (state.says === undefined) return;
      await (state.isInLog ? log : complain)(scene(world), state.says);
    },
    expect: (world) => {
      const { held, operator } = scene(world);
      return {
        outcome: 'stuck',
        chains: [[objectFinalizer(held, install.finalizer), cause(operator, install, state)]],
        // Who needs what went with the namespace waits in a circle, as one may see it.
        anyOf: [{ deadlock: false }, { deadlock: true }],
        never: [...company(install), ...(install.parts ?? [])].map(
          ({ name = '', namespace = '' }) => ({
            name,
            namespace,
          }),
        ),
      };
    },
    cure: (world) => release(world, scene(world).held),
    mayChange: () => [{ apiVersion: RIGHTS }],
  };
}

/** As the gate should say it. Only what the controller alone can leave makes it certain. */
function cause(
  operator: Operator,
  install: Install,
  { code, isInLog, isInside, quotes }: State,
): Link {
  const isCertain = install.isIdentified || isInLog || isInside;
  return {
    code,
    subject: code === 'owner-missing' ? 'any' : workloadRef(operator),
    finalizer: install.finalizer,
    certainty: isCertain ? ['proven', 'likely'] : ['likely'],
    ...(quotes === undefined ? {} : { says: [quotes] }),
  };
}

function sceneOf(world: World, install: Install, state: State): Scene {
  const { group, version, kind, name, finalizer, account = name, selector } = install;
  const namespace = state.isInside ? world.namespace : install.namespace;
  const operator: Operator = {
    ...{ group, version, kind, namespace, name, account, finalizer, selector },
    ...{ workload: install.workload ?? 'Deployment', manager: install.writer },
  };
  const held = ref(group === '' ? version : `${group}/${version}`, kind, world.namespace, GUARDED);
  return { world, install, operator, held };
}

function company(install: Install): readonly OperatorOptions[] {
  return COMPANY.filter(({ name }) => name !== install.name);
}

async function setUp(scene: Scene, state: State): Promise<void> {
  const { world, install: told, operator } = scene;
  const { group, version, kind, type } = told;
  await world.createNamespace();
  await world.ensureNamespace(operator.namespace);
  if (type !== false) {
    await world.createType(customType({ group, kind, versions: [version], metadata: type }));
  }
  const parts = state.isGone ? [] : (told.parts ?? []);
  for (const one of [...company(told), ...parts]) {
    const options: OperatorOptions = { scope: 'cluster', type: false, ...one };
    await world.ensureNamespace(options.namespace ?? '');
    await runPods(world, await install(world, options));
  }
  await state.before?.(scene);
  await world.create(serviceAccount(operator.namespace, operator.account));
  await world.createAll(grants(told, operator));
  await world.create(everydayWorkload(told, operator.namespace), {
    fieldManager: 'kubectl-client-side-apply',
  });
  await runPods(world, operator);
  await createObject(scene);
  await lead(scene, state);
  const hangs = state.process === 'hangs';
  if (told.letsGo && (hangs || state.isOutside)) {
    const cleanUp = (object: KubeObject) => (told.letsGo?.(object) ? undefined : DENIED);
    await startOperatorProcess(world, operator, { cleanUp, tells: false });
  } else if (state.process !== undefined) {
    const updates = state.process === 'updates';
    await startOperatorProcess(world, operator, { hangs, updates, tells: false });
  }
  await state.afterwards?.(scene);
}

function grants({ role, rules }: Install, { namespace, account, name }: Operator): JsonObject[] {
  const subjects = [accountSubject(namespace, account)];
  const leases = { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['*'] };
  return [
    ...grant({ name: role }, subjects, rules),
    ...grant({ namespace, name: `${name}-leader-election` }, subjects, [leases]),
  ];
}

function rightsOf({ role, name }: Install, namespace: string): Ref[] {
  const apiVersion = RIGHTS;
  return [
    { apiVersion, kind: 'ClusterRoleBinding', name: role },
    { apiVersion, kind: 'ClusterRole', name: role },
    { apiVersion, kind: 'RoleBinding', namespace, name: `${name}-leader-election` },
    { apiVersion, kind: 'Role', namespace, name: `${name}-leader-election` },
  ];
}

const accountRef = ({ namespace, account }: Operator): Ref => ({
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  namespace,
  name: account,
});

/** As the API server answers to it. */
function forbidden({ world, install: told, operator }: Scene): string {
  const { group, kind } = told;
  const plural = pluralOf(kind);
  const user = `system:serviceaccount:${operator.namespace}:${operator.account}`;
  return `${plural}.${group} "${GUARDED}" is forbidden: User "${user}" cannot update resource "${plural}" in API group "${group}" in the namespace "${world.namespace}"`;
}

const now = (): string => new Date().toISOString().replace(/\.\d+/, '');

/** A person creates it, and its controller sets the finalizer and says that it is ready. */
async function createObject({ world, install: told, held }: Scene): Promise<void> {
  const { client } = world;
  const { writer, statusWriter = writer, finalizer, group } = told;
  await world.create(everydayObject(told, world.namespace, GUARDED), {
    fieldManager: 'kubectl-client-side-apply',
  });
  const { apiVersion, kind } = held;
  const { namespace = '', name } = held;
  const finalizers = { metadata: { finalizers: [finalizer] } };
  if (told.applies) {
    const metadata = { namespace, name, ...finalizers.metadata };
    await client.apply({ apiVersion, kind, metadata }, { fieldManager: writer });
  } else {
    await client.patch(held, finalizers, { fieldManager: writer });
  }
  const ready = { type: 'Ready', status: 'True', reason: 'Reconciled', message: '' };
  const status =
    group === ''
      ? { loadBalancer: { ingress: [{ hostname: 'k8s-preview.elb.eu-central-1.amazonaws.com' }] } }
      : { conditions: [{ ...ready, lastTransitionTime: now() }] };
  await client.patchStatus(held, status, { fieldManager: statusWriter });
}

/** It leads by its Lease, until it stops. */
async function lead({ world, install: told, operator }: Scene, state: State): Promise<void> {
  const { lease, writer } = told;
  if (lease === undefined) return;
  const [pod] = await readyPods(world.client, operator);
  const [name = '', namespace = operator.namespace] = lease.split('/').reverse();
  const stops = state.code === 'owner-missing' || state.code === 'owner-scaled-to-zero';
  await createLease(world, {
    ...{ namespace, name, manager: writer },
    holder: `${pod?.metadata.name}_5d0f7a2e-6f0f-4a55-8d5f-0d4f4f1f0c7e`,
    ...(stops || state.code === 'owner-not-ready' ? { silentForSeconds: 600 } : {}),
  });
}

async function removeWorkload({ world, operator }: Scene): Promise<void> {
  const workload = workloadRef(operator);
  await world.client.delete(workload, { propagationPolicy: 'Background' });
  await world.gone(workload);
  await podsGo(world, operator);
}

function podsGo({ client }: World, { namespace, selector = {} }: Operator): Promise<unknown> {
  const labels = Object.entries(selector);
  return waitUntil('its pods to go', async () => {
    const pods = await client.list('v1', 'Pod', namespace);
    return !pods.some((pod) =>
      labels.every(([key, value]) => stringAt(pod, 'metadata', 'labels', key) === value),
    );
  });
}

/** As a kubelet reports it. */
async function crash({ world, install: told, operator }: Scene): Promise<void> {
  const { client } = world;
  const containers = told.containers.map((one) =>
    containerStatus(
      {
        waiting: {
          reason: 'CrashLoopBackOff',
          message: 'back-off 5m0s restarting failed container',
        },
      },
      {
        name: stringAt(one, 'name') ?? '',
        restartCount: 17,
        lastState: { terminated: { exitCode: 1, reason: 'Error', finishedAt: now() } },
      },
    ),
  );
  for (const pod of await readyPods(client, operator)) {
    await client.patchStatus(
      ref('v1', 'Pod', operator.namespace, pod.metadata.name),
      { containerStatuses: containers, conditions: unready('Ready', 'ContainersReady') },
      { fieldManager: 'kubelet' },
    );
  }
  await client.waitFor(
    workloadRef(operator),
    'has no ready pod',
    (found) => (numberAt(found, 'status', 'readyReplicas') ?? 0) === 0,
  );
}

/** So late that whole seconds show it to be after the deletion. */
async function complain(scene: Scene, says: NonNullable<State['says']>): Promise<void> {
  await laterSecond();
  const { world, held, install: told } = scene;
  const { writer, statusWriter = writer } = told;
  const complaint = told.complaint ?? failed;
  const status = complaint(await says(scene), now());
  await world.client.patchStatus(held, status, { fieldManager: statusWriter });
}

const failed = (message: string, lastTransitionTime: string): JsonObject => ({
  conditions: [
    { type: 'Ready', status: 'False', reason: 'ReconcileError', message, lastTransitionTime },
  ],
});

/** Each time it tries, it says so. */
async function log(scene: Scene, says: NonNullable<State['says']>): Promise<void> {
  const { world, install: told, operator } = scene;
  const object = { namespace: world.namespace, name: GUARDED };
  const text = await says(scene);
  await serveContainerLogs(world, world.name('node-1'), ({ pod, container }) => {
    const isIt = pod.startsWith(`${operator.name}-`) && container !== 'kube-rbac-proxy';
    return isIt ? logLine(told, 'error', 'Reconciler error', object, text) : '';
  });
}

/** What the API server says to whoever creates something there. */
async function refusedCreation({ client, namespace }: World): Promise<string> {
  const job = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { namespace, name: `${GUARDED}-cleanup` },
    spec: {
      template: { spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'none' }] } },
    },
  };
  const answer = await client.call('POST', `/apis/batch/v1/namespaces/${namespace}/jobs`, job);
  return stringAt(answer.body, 'message') ?? '';
}
