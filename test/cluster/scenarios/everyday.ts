import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { type JsonObject, numberAt, stringAt, stringsAt, valueAt } from '../../../src/base/json.ts';
import type { FindingCode } from '../../../src/model/finding.ts';
import { type KubeObject, type Ref, refOf } from '../client.ts';
import {
  accountSubject,
  customObject,
  customType,
  grant,
  pluralOf,
  podSpec,
  RBAC,
  secret,
  service,
  serviceAccount,
} from '../objects.ts';
import type { Link, Scenario } from '../scenario.ts';
import { errorLine, serveContainerLogs } from '../servers/container-logs.ts';
import { readyPods, startOperatorProcess } from '../servers/operator-process.ts';
import { containerStatus, unready } from '../servers/stand-in.ts';
import { laterSecond, waitUntil } from '../wait-until.ts';
import type { World } from '../world.ts';
import { objectFinalizer, ref } from './links.ts';
import {
  install,
  type Operator,
  type OperatorOptions,
  READ,
  runPods,
  workloadRef,
} from './operator.ts';
import { GUARDED, settledByFinalizer } from './situation.ts';

/**
 * What stock installations show in the states that occur, each beside what most clusters run: installations times
 * states. What is expected follows from the two tables: whose it is from the one, how that is from the other.
 */

/** A controller as its published manifests install it, and an object of which it takes care. */
interface Install {
  title: string;
  /** Of the object. */
  group: string;
  version: string;
  kind: string;
  /** Labels and annotations of its CustomResourceDefinition; `false`: Kubernetes has the type. */
  type: JsonObject | false;
  spec?: JsonObject;
  namespace: string;
  name: string;
  workload?: 'StatefulSet';
  account?: string;
  /** Of the workload, and of its pods, beside those that select them. */
  labels?: JsonObject;
  selector: JsonObject;
  containers: JsonObject[];
  /** Name of its ClusterRole. */
  role: string;
  rules: JsonObject[];
  /** Name of the Lease by which it leads; `kube-system/…` where it is not in its own namespace. */
  lease?: string;
  finalizer: string;
  /** Field manager of the finalizer, and of the status where that is another. */
  writer: string;
  statusWriter?: string;
  /** It writes by server-side apply. */
  applies?: true;
  /** The finalizer's writer is one of its program names, or the catalogue knows the finalizer and the workload. */
  isIdentified?: true;
  /** What it writes to the status about a failure. */
  complaint?: JsonObject;
  /** What its maker installs beside it: innocent. */
  parts?: readonly OperatorOptions[];
}

const FACTS = join(import.meta.dirname, 'everyday-installs.yaml');
const { company: COMPANY, installs: INSTALLS } = load(readFileSync(FACTS, 'utf8')) as {
  company: readonly OperatorOptions[];
  installs: Record<string, Install>;
};

/** Which objects a controller lets go without a word to what is outside of the cluster, by their API group. */
const LETS_GO: readonly [group: RegExp, letsGo: (object: JsonObject) => boolean][] = [
  // A suspended object is let go without a clean-up (reconcileDelete and finalize of these controllers).
  [/toolkit\.fluxcd\.io$/, (object) => valueAt(object, 'spec', 'suspend') === true],
  [
    /upbound\.io$/,
    (object) => {
      const policies = stringsAt(object, 'spec', 'managementPolicies');
      return policies.length > 0 && !policies.includes('*') && !policies.includes('Delete');
    },
  ],
];

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
      const account = serviceAccount(operator.namespace, operator.account);
      for (const one of [...grants(install, operator), account] as KubeObject[]) {
        await world.client.delete(refOf(one));
      }
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
const COMBINATIONS: Readonly<Record<string, readonly StateName[]>> = {
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
    install: INSTALLS[name] as Install,
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

export const everyday: readonly Scenario[] = ALL.map(scenarioOf);

function scenarioOf({ id, install, state }: Everyday): Scenario {
  const scene = (world: World): Scene => sceneOf(world, install, state);
  return {
    id,
    title: `${install.title} ${state.title}`,
    own: true, // names as in the manifests
    versions: ['1.36.3'],
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
          ({ name = '', namespace = '' }) => ({ name, namespace }),
        ),
      };
    },
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
  const [, letsGo] = LETS_GO.find(([its]) => its.test(group)) ?? [];
  if (letsGo && (hangs || state.isOutside)) {
    const cleanUp = (object: KubeObject) => (letsGo(object) ? undefined : DENIED);
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
  const silentFor = stops || state.code === 'owner-not-ready' ? 600 : 0;
  const holderIdentity = `${pod?.metadata.name}_5d0f7a2e-6f0f-4a55-8d5f-0d4f4f1f0c7e`;
  const [acquireTime, renewTime] = [silentFor + 3_600, silentFor].map(microTime);
  const made = await world.create(
    {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { namespace, name },
      spec: { holderIdentity, leaseDurationSeconds: 15, acquireTime, renewTime } as JsonObject,
    },
    { fieldManager: writer },
  );
  if (silentFor > 0) {
    // Nor has anybody written it just now, as far as the server tells.
    await world.client.patch(refOf(made), { metadata: { managedFields: [{}] } });
    return;
  }
  const renewal = setInterval(() => {
    const renewed = world.client.patch(refOf(made), { spec: { renewTime: microTime(0) } });
    void renewed.catch(() => undefined); // the server restarts, or the scenario has ended
  }, 3_000);
  world.atEnd(() => clearInterval(renewal));
}

/** As client-go writes times that need microseconds. */
function microTime(agoSeconds: number): string {
  return new Date(Date.now() - agoSeconds * 1_000).toISOString().replace('Z', '000Z');
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
      { containerStatuses: containers, conditions: unready() },
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
  const words = { $MESSAGE: await says(scene), $TIME: now() };
  const status = filledIn(told.complaint ?? FAILED, words);
  await world.client.patchStatus(held, status, { fieldManager: statusWriter });
}

const FAILED: JsonObject = {
  conditions: [
    {
      ...{ type: 'Ready', status: 'False', reason: 'ReconcileError' },
      ...{ message: '$MESSAGE', lastTransitionTime: '$TIME' },
    },
  ],
};

const filledIn = (template: JsonObject, words: Record<string, string>): JsonObject =>
  JSON.parse(JSON.stringify(template), (_, value) =>
    typeof value === 'string' ? (words[value] ?? value) : value,
  );

/** Each time it tries, it says so. */
async function log(scene: Scene, says: NonNullable<State['says']>): Promise<void> {
  const { world, install: told, operator } = scene;
  const object = { namespace: world.namespace, name: GUARDED };
  const text = await says(scene);
  await serveContainerLogs(world, 'node-1', ({ pod, container }) => {
    const isIt = pod.startsWith(`${operator.name}-`) && container !== 'kube-rbac-proxy';
    return isIt ? errorLine(told, object, text) : '';
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

/** The object as people create it. */
function everydayObject(told: Install, namespace: string, name: string): JsonObject {
  const { group, version, kind, spec = {} } = told;
  if (group !== '') return { ...customObject(`${group}/${version}`, kind, namespace, name), spec };
  const loadBalancerClass = 'service.k8s.aws/nlb';
  return service(namespace, name, { type: 'LoadBalancer', loadBalancerClass });
}

/** The workload as its manifest has it. */
function everydayWorkload(told: Install, namespace: string): JsonObject {
  const { name, selector, labels = {}, containers, workload: kind = 'Deployment' } = told;
  return {
    apiVersion: 'apps/v1',
    kind,
    metadata: { namespace, name, labels: { ...labels, ...selector } },
    spec: {
      replicas: 1,
      ...(kind === 'StatefulSet' ? { serviceName: name } : {}),
      selector: { matchLabels: selector },
      template: {
        metadata: { labels: selector },
        spec: { ...podSpec(told.account ?? name), containers },
      },
    },
  };
}
