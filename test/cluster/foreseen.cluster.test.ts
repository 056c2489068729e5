import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import {
  createPolicy,
  createWebhook,
  refusesDeletion,
  refusesDryRuns,
  refusesUpdate,
} from './admission.ts';
import { type Cluster, foreignKubeconfig, sharedCluster } from './clusters.ts';
import { gate, inside, rootsOf } from './foresight.ts';
import { apiVersionOf } from './inventory.ts';
import {
  configMap,
  customObject,
  customType,
  pod,
  podSpec,
  secret,
  serviceAccount,
  volumeClaim,
} from './objects.ts';
import { DELETING_TIMEOUT } from './run-scenario.ts';
import { configMapRef } from './scenarios/links.ts';
import {
  createGuarded,
  FULL,
  install,
  type Operator,
  type OperatorOptions,
  rule,
  uninstall,
} from './scenarios/operator.ts';
import { guardedRef } from './scenarios/situation.ts';
import type { OperatorBehaviour } from './servers/operator-process.ts';
import { runPodsIn } from './servers/stand-in.ts';
import { startWebhook } from './servers/webhook.ts';
import { inNamespace, type World } from './world.ts';

/**
 * Hangs whose cause exists before the deletion, each forecast and then deleted, and their calm neighbours: the same
 * situation with one fact changed, in which the namespace is deleted.
 */
let cluster: Cluster;

type Build = (world: World) => Promise<unknown>;
/** `expected`: the outcome of the forecast. `says`: what its report has to say about the cause. */
type Hang = [build: Build, expected: 'would-hang' | 'inconclusive', says: RegExp];

const HOUR_MS = 3_600_000;

/** Says that the clean-up fails, once the namespace controller has begun with the namespace. */
const STUCK: OperatorBehaviour = { cleanUp: () => 'not yet', tells: false };

function elsewhere(world: World, options: OperatorOptions = {}, behaviour = STUCK) {
  const place = { namespace: world.name('platform'), scope: 'cluster' as const };
  return inside(world, { ...place, ...options }, behaviour);
}

const service = (namespace: string): JsonObject => ({
  ...{ apiVersion: 'v1', kind: 'Service', metadata: { namespace, name: 'nats' } },
  spec: { ports: [{ port: 4222 }] },
});

/** An object whose spec names something that is deleted with the namespace. */
const naming =
  (
    spec: JsonObject,
    others: (world: World, operator: Operator) => JsonObject[] = () => [],
  ): Build =>
  async (world) => {
    const operator = await elsewhere(world);
    for (const one of others(world, operator)) await world.create(one);
    await createGuarded(world, operator, 'a', world.namespace, spec);
  };

const kindOfGroup = (world: World, { group }: Operator, kind: string, more = {}) =>
  world.createType(customType({ group, kind, ...more }));

/** An object that the operator needs, of a type of its own; `creds` is a Secret of the namespace. */
const behindConfig =
  (scope: 'Namespaced' | 'Cluster'): Build =>
  async (world) => {
    const operator = await elsewhere(world);
    const { namespace } = world;
    await kindOfGroup(world, operator, 'ProviderConfig', { scope });
    await world.create(secret(namespace, 'creds'));
    const name = world.name('cloud');
    await world.create({
      apiVersion: apiVersionOf(operator),
      kind: 'ProviderConfig',
      metadata: scope === 'Cluster' ? { name } : { namespace, name },
      spec: { credentials: { secretRef: { namespace, name: 'creds', key: 'token' } } },
    });
    await createGuarded(world, operator, 'a', namespace, { providerConfigRef: { name } });
  };

async function withStatus(world: World, status: JsonObject): Promise<void> {
  const operator = await elsewhere(world);
  await createGuarded(world, operator, 'a');
  const fieldManager = operator.manager;
  await world.client.patchStatus(guardedRef(world, operator, 'a'), status, { fieldManager });
}

const FAILED = { type: 'Synced', status: 'False', reason: 'ReconcileError' };

function complaining(world: World, message: string, condition: JsonObject = FAILED): Promise<void> {
  return withStatus(world, { conditions: [sinceAnHour({ ...condition, message })] });
}

function sinceAnHour(condition: JsonObject): JsonObject {
  const since = new Date(Date.now() - HOUR_MS).toISOString().replace(/\.\d+/, '');
  return { ...condition, lastTransitionTime: since };
}

/** A running operator elsewhere that removes its finalizer, and its object with this status. */
const recovered =
  (conditions: readonly JsonObject[], status: JsonObject = {}): Build =>
  async (world) => {
    const operator = await elsewhere(world, {}, {});
    await createGuarded(world, operator, 'a');
    const fieldManager = operator.manager;
    const reported = { ...status, conditions: conditions.map(sinceAnHour) };
    await world.client.patchStatus(guardedRef(world, operator, 'a'), reported, { fieldManager });
  };

const BALANCED = 'service.kubernetes.io/load-balancer-cleanup';

/** A load balancer of a cloud whose controllers no cluster shows; this manager has written its status. */
const balanced =
  (manager: string): Build =>
  async ({ client, namespace }) => {
    const spec = { type: 'LoadBalancer', ports: [{ port: 80 }] };
    const metadata = { namespace, name: 'web', finalizers: [BALANCED] };
    await client.create({ apiVersion: 'v1', kind: 'Service', metadata, spec });
    await client.patchStatus(
      { apiVersion: 'v1', kind: 'Service', namespace, name: 'web' },
      { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } },
      { fieldManager: manager },
    );
  };

/** A Job that the operator made for its object. An owner reference or a label connects the two. */
const withTask =
  (link: 'owner reference' | 'label'): Build =>
  async (world) => {
    const operator = await elsewhere(world);
    await createGuarded(world, operator, 'a');
    const linked =
      link === 'label'
        ? { labels: { [`${operator.group}/name`]: 'a' } }
        : await ownedBy(world, operator, 'a');
    await world.create(
      {
        apiVersion: 'batch/v1',
        kind: 'Job',
        metadata: { namespace: world.namespace, name: 'apply-a', ...linked },
        spec: { suspend: true, template: { spec: { ...podSpec(), restartPolicy: 'Never' } } },
      },
      { fieldManager: operator.manager },
    );
  };

async function ownedBy(world: World, operator: Operator, name: string): Promise<JsonObject> {
  const { apiVersion, kind, metadata } = await world.client.get(guardedRef(world, operator, name));
  const owner = { apiVersion, kind, name, uid: metadata['uid'] as string, controller: true };
  return { ownerReferences: [owner] };
}

const twoConfigMaps: Build = async (world) => {
  await world.create(configMap(world.namespace, 'aaa'));
  await world.create(
    configMap(world.namespace, 'zzz', { labels: { keep: 'yes' }, annotations: { keep: 'yes' } }),
  );
};

const dead = (world: World) => ({
  service: { namespace: world.name('nowhere'), name: 'guard', path: '/validate' },
});

const guardingConfigMaps = { operations: ['DELETE'], resource: 'configmaps' } as const;
const ASKED = { operations: ['DELETE'], apiGroup: '', resource: 'configmaps' };
const USER = 'request.userInfo.username';
const CONTROLLER = 'system:serviceaccount:kube-system:namespace-controller';

const policy =
  (expression: string, condition?: string): Build =>
  async (world) => {
    await twoConfigMaps(world);
    const message = 'this one is kept';
    await createPolicy(world, {
      ...ASKED,
      ...{ name: 'keep', expression, message },
      ...(condition === undefined ? {} : { condition }),
    });
  };

/** The API server hears of a policy or webhook a moment later; until then its dry runs are accepted. */
const inForce =
  (build: Build): Build =>
  async (world) => {
    await build(world);
    await refusesDeletion(world, configMapRef(world.namespace, 'zzz'));
  };

/** More of them than are searched; admission is asked about the last. */
const manyConfigMaps =
  (count: number): Build =>
  async ({ client, namespace }) => {
    const names = Array.from({ length: count }, (_, index) => `cm-${10_000 + index}`);
    for (let at = 0; at < count; at += 50) {
      const some = names.slice(at, at + 50);
      await Promise.all(
        some.map((name) => client.create(configMap(namespace, name, { labels: { which: name } }))),
      );
    }
  };

/** The operator is not let change its objects; others are. */
const refusingUpdates =
  (expression: string, objects: readonly JsonObject[] = [{}]): Build =>
  async (world) => {
    const operator = await elsewhere(world, {}, {});
    for (const [index, metadata] of objects.entries()) {
      const name = `w-${index}`;
      await createGuarded(world, operator, name);
      await world.client.patch(guardedRef(world, operator, name), { metadata });
    }
    await createPolicy(world, {
      ...{ operations: ['UPDATE'], apiGroup: operator.group, resource: '*' },
      ...{ name: 'freeze', expression, message: 'it is frozen' },
    });
    // Of one that is about users nobody but the operator hears.
    if (objects.length > 1)
      await refusesUpdate(world, guardedRef(world, operator, `w-${objects.length - 1}`));
  };

const HANGS: Record<string, Hang> = {
  'two installations of which one does not start': [
    async (world) => {
      const one = { name: 'widget-operator', container: { args: ['--widget-class=blue'] } };
      const operator = await elsewhere(world, one);
      // Nothing runs pods there.
      const namespace = world.name('green');
      await world.createNamespace(namespace);
      await install(world, {
        ...{ namespace, scope: 'cluster', type: false },
        ...{ name: 'widget-operator-green', manager: 'widget-operator' },
        container: { args: ['--widget-class=green'] },
      });
      await createGuarded(world, operator, 'a');
    },
    'inconclusive',
    /widget-operator-green/,
  ],
  'a status that has said for an hour that the cloud cannot be reached': [
    (world) => complaining(world, 'cannot observe: dial tcp 10.0.0.5:443: i/o timeout'),
    'inconclusive',
    /i\/o timeout/,
  ],
  'a configuration that is named and does not exist': [
    async (world) => {
      const operator = await elsewhere(world);
      await kindOfGroup(world, operator, 'ProviderConfig', { scope: 'Cluster' });
      const providerConfigRef = { name: world.name('cloud') };
      await createGuarded(world, operator, 'a', world.namespace, { providerConfigRef });
    },
    'inconclusive',
    /ProviderConfig/,
  ],
  'a policy that refuses updates to the account of the operator': [
    refusingUpdates(`!${USER}.endsWith(":widget-operator")`),
    'would-hang',
    /freeze/,
  ],
  'a policy that refuses the update of one object by its label': [
    refusingUpdates('!has(oldObject.metadata.labels) || !("keep" in oldObject.metadata.labels)', [
      {},
      { labels: { keep: 'yes' } },
    ]),
    'would-hang',
    /freeze/,
  ],
  'a webhook that does not answer for 20 s': [
    async (world) => {
      await createWebhook(world, {
        ...guardingConfigMaps,
        clientConfig: await startWebhook(world, () => 'never answers'),
        timeoutSeconds: 20,
      });
    },
    'would-hang',
    /does not respond in time/,
  ],
  'a webhook that takes 3 s for each of many objects': [
    async (world) => {
      await manyConfigMaps(250)(world);
      await createWebhook(world, {
        ...guardingConfigMaps,
        clientConfig: await startWebhook(world, () => 'never answers'),
        ...{ failurePolicy: 'Ignore', timeoutSeconds: 3 },
      });
    },
    'inconclusive',
    /\d s for each of 25\d/,
  ],
  'a webhook that takes no dry runs': [
    inForce(async (world) => {
      await twoConfigMaps(world);
      await createWebhook(world, {
        ...guardingConfigMaps,
        clientConfig: await startWebhook(world, () => ({ deny: 'never' })),
      });
      await refusesDryRuns(world);
    }),
    'inconclusive',
    /does not support dry run/,
  ],
  'a policy that answers by an expression, in another language': [
    inForce(async (world) => {
      await twoConfigMaps(world);
      await createPolicy(world, {
        ...ASKED,
        ...{ name: 'keep', message: 'unused', expression: 'oldObject.metadata.name != "zzz"' },
        messageExpression:
          '"「" + oldObject.metadata.name + "」は削除できません, admission webhook \\"x\\" denied the request: まだ使用中"',
      });
    }),
    'would-hang',
    /admission-denied ValidatingAdmissionPolicy \S+ denies DELETE of configmaps: 「zzz」は削除できません/,
  ],
  'more objects than are searched for the one that is refused': [
    async (world) => {
      await manyConfigMaps(5_050)(world);
      await inForce(policy('oldObject.metadata.name != "zzz"'))(world);
    },
    'inconclusive',
    /only the first 5000 are searched/,
  ],
  'two installations of which one is scaled to zero': [
    async (world) => {
      const one = { name: 'widget-operator', container: { args: ['--widget-class=blue'] } };
      const operator = await elsewhere(world, one);
      await install(world, {
        ...{ namespace: operator.namespace, scope: 'cluster', type: false, replicas: 0 },
        ...{ name: 'widget-operator-green', manager: 'widget-operator' },
        container: { args: ['--widget-class=green'] },
      });
      await createGuarded(world, operator, 'a');
    },
    'inconclusive',
    /widget-operator-green/,
  ],
  'a status that has said AccessDenied for an hour': [
    (world) => complaining(world, 'AccessDenied: not authorized to perform s3:DeleteBucket'),
    'inconclusive',
    /AccessDenied/,
  ],
  'the same in a status without conditions': [
    (world) => withStatus(world, { state: 'Error', message: 'AccessDenied: s3:DeleteBucket' }),
    'inconclusive',
    /AccessDenied/,
  ],
  'two installations of one name of which one is scaled to zero': [
    async (world) => {
      const operator = await elsewhere(world);
      const namespace = world.name('retired');
      await world.createNamespace(namespace);
      await install(world, { namespace, scope: 'cluster', type: false, replicas: 0 });
      await createGuarded(world, operator, 'a');
    },
    'inconclusive',
    /scaled to zero|it could be Deployment/,
  ],
  'a load balancer of whose two cloud controllers none runs': [
    async (world) => {
      const name = 'cloud-controller-manager';
      for (const place of ['cloud-a', 'cloud-b']) {
        const namespace = world.name(place);
        await world.ensureNamespace(namespace);
        const rules = [rule('', ['services', 'services/status'], FULL)];
        await install(world, {
          name,
          namespace,
          rules,
          replicas: 0,
          type: false,
          scope: 'cluster',
        });
      }
      await balanced(name)(world);
    },
    'inconclusive',
    /cloud-controller-manager/,
  ],
  'a load balancer whose status only a person has written': [
    balanced('kubectl'),
    'inconclusive',
    /load-balancer-cleanup/,
  ],
  'an owner outside of the cluster that nobody has seen acting': [
    async (world) => {
      const operator = await elsewhere(world, { replicas: 0 });
      await uninstall(world, operator);
      await createGuarded(world, { ...operator, manager: 'acme-hosted' }, 'a');
    },
    'inconclusive',
    /acme-hosted|no controller/,
  ],
  'credentials one hop away, in the namespace': [
    behindConfig('Namespaced'),
    'inconclusive',
    /Secret creds/,
  ],
  'credentials one hop away, behind an object of the cluster': [
    behindConfig('Cluster'),
    'inconclusive',
    /Secret creds/,
  ],
  'a kubeconfig in a Secret': [
    naming({ kubeConfig: { secretRef: { name: 'creds' } } }, (world) => [
      secret(world.namespace, 'creds'),
    ]),
    'inconclusive',
    /Secret creds/,
  ],
  'a ServiceAccount': [naming({ serviceAccountName: 'default' }), 'inconclusive', /default/],
  'a ConfigMap': [
    naming({ configMapRef: { name: 'settings' } }, (world) => [
      configMap(world.namespace, 'settings'),
    ]),
    'inconclusive',
    /ConfigMap settings/,
  ],
  'a server by the address of its Service': [
    naming({ servers: ['nats://nats:4222'] }, ({ namespace }) => [service(namespace)]),
    'inconclusive',
    /Service nats/,
  ],
  'parameters of a policy about changes of its objects': [
    async (world) => {
      const operator = await elsewhere(world, {}, { tells: false, isSlow: true });
      await createGuarded(world, operator, 'a');
      await world.create(configMap(world.namespace, 'limits'));
      await createPolicy(world, {
        ...{ operations: ['UPDATE'], apiGroup: operator.group, resource: '*' },
        ...{ name: 'limits', expression: 'true', message: 'unused', params: { name: 'limits' } },
      });
    },
    'inconclusive',
    /ConfigMap limits/,
  ],
  'an Issuer of its own group': [
    async (world) => {
      const operator = await elsewhere(world);
      await kindOfGroup(world, operator, 'Issuer');
      await world.create(
        customObject(apiVersionOf(operator), 'Issuer', world.namespace, 'letsencrypt'),
      );
      await createGuarded(world, operator, 'a', world.namespace, {
        issuerRef: { name: 'letsencrypt', kind: 'Issuer' },
      });
    },
    'inconclusive',
    /Issuer letsencrypt/,
  ],
  'a runner that it has to start': [
    naming({ runnerPodTemplate: { spec: { image: 'example.com/runner' } } }),
    'inconclusive',
    /pod/i,
  ],
  'a task that it ran for the object before': [
    withTask('owner reference'),
    'inconclusive',
    /Job apply-a/,
  ],
  'a task that only a label connects with the object': [
    withTask('label'),
    'inconclusive',
    /Job apply-a/,
  ],
  'a class that no installation serves': [
    async (world) => {
      const operator = await elsewhere(world, { container: { args: ['--widget-class=blue'] } });
      await createGuarded(world, operator, 'a', world.namespace, { widgetClass: 'green' });
    },
    'inconclusive',
    /its arguments are for another class than the object names/,
  ],
  'a policy that refuses every update of a terminating object': [
    refusingUpdates('!has(oldObject.metadata.deletionTimestamp)'),
    'inconclusive',
    /freeze\S* .*look at whether something is being deleted/,
  ],
  'a right that its controller does not have': [
    async (world) => {
      const operator = await elsewhere(world, { verbs: ['get', 'list', 'watch'] }, {});
      await createGuarded(world, operator, 'a');
    },
    'would-hang',
    /neither update nor patch/,
  ],
  'an operator in the namespace, behind a pod that is held': [
    async (world) => {
      await createGuarded(world, await inside(world), 'a');
      const { namespace } = world;
      const metadata = { namespace, name: 'held', finalizers: ['example.com/hold'] };
      await world.create({ apiVersion: 'v1', kind: 'Pod', metadata, spec: podSpec() });
    },
    'inconclusive',
    /Once its pods are deleted, this would hold it: owner-missing/,
  ],
  'a dead webhook for one object by its label': [
    async (world) => {
      await twoConfigMaps(world);
      await createWebhook(world, {
        ...guardingConfigMaps,
        objectSelector: { matchLabels: { keep: 'yes' } },
        clientConfig: dead(world),
      });
    },
    'would-hang',
    /admission-webhook-failing/,
  ],
  'a webhook that denies one object by its label': [
    inForce(async (world) => {
      await twoConfigMaps(world);
      await createWebhook(world, {
        ...guardingConfigMaps,
        objectSelector: { matchLabels: { keep: 'yes' } },
        clientConfig: await startWebhook(world, () => ({ deny: 'es wird noch gebraucht' })),
      });
    }),
    'would-hang',
    /es wird noch gebraucht/,
  ],
  'a policy about one name': [
    inForce(policy('oldObject.metadata.name != "zzz"', 'oldObject.metadata.name == "zzz"')),
    'would-hang',
    /this one is kept/,
  ],
  'a policy about one annotation': [
    inForce(
      policy(
        'false',
        'has(oldObject.metadata.annotations) && "keep" in oldObject.metadata.annotations && oldObject.metadata.annotations["keep"] == "yes"',
      ),
    ),
    'would-hang',
    /this one is kept/,
  ],
  'a policy that denies only the namespace controller': [
    policy('false', `${USER} == "${CONTROLLER}"`),
    'would-hang',
    /keep/,
  ],
  'a policy that exempts whoever is not a controller': [
    policy(`!${USER}.startsWith("system:serviceaccount:kube-system:")`),
    'would-hang',
    /keep/,
  ],
  'a dead webhook that is called for service accounts': [
    async (world) => {
      await twoConfigMaps(world);
      await createWebhook(world, {
        ...guardingConfigMaps,
        condition: '"system:serviceaccounts" in request.userInfo.groups',
        clientConfig: dead(world),
      });
    },
    'would-hang',
    /admission-webhook-failing/,
  ],
};

/** Ways in which a spec names the Secret `creds`. */
const NAMING_A_SECRET: Record<string, JsonObject> = {
  'auth.from.secret.name': { auth: { from: { secret: { name: 'creds' } } } },
  'auth.tokenSecret.name': { auth: { tokenSecret: { name: 'creds' } } },
  'credentials with a source and a name': {
    credentials: { source: 'Secret', name: 'creds', key: 'token' },
  },
  'passwordFrom with a kind and a name': { passwordFrom: { kind: 'Secret', name: 'creds' } },
  'a bare apiKeySecret': { apiKeySecret: 'creds' },
};

/** Conditions that have reported a failure for an hour, and their messages. */
const FAILURES: Record<string, [condition: JsonObject, message: string]> = {
  'Stalled=True': [
    { type: 'Stalled', status: 'True', reason: 'CloudError' },
    'permission denied on resource project shop-prod',
  ],
  'ReconcileError=True': [
    { type: 'ReconcileError', status: 'True', reason: 'Error' },
    'AccessDenied: not authorized to perform s3:DeleteBucket',
  ],
  'Ready=False with an expired token': [
    { type: 'Ready', status: 'False', reason: 'AuthFailed' },
    'oauth2: "invalid_grant" "The refresh token has expired"',
  ],
  'Synced=False with a wrong signature': [FAILED, 'api error SignatureDoesNotMatch'],
};

/** Open questions about an owner that runs. These are not deleted. */
const QUESTIONS: Record<string, [build: Build, says: string]> = {
  ...Object.fromEntries(
    Object.entries(NAMING_A_SECRET).map(([title, spec]) => [
      `a Secret named by ${title}`,
      [naming(spec, ({ namespace }) => [secret(namespace, 'creds')]), 'Secret creds'],
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(FAILURES).map(([title, [condition, message]]) => [
      `a status of ${title}`,
      [(world: World) => complaining(world, message, condition), message],
    ]),
  ),
  'a Broker that only a label names': [
    async (world) => {
      const operator = await elsewhere(world);
      await kindOfGroup(world, operator, 'Broker');
      await world.create(customObject(apiVersionOf(operator), 'Broker', world.namespace, 'main'));
      await createGuarded(world, operator, 'orders');
      const labels = { [`${operator.group}/broker`]: 'main' };
      await world.client.patch(guardedRef(world, operator, 'orders'), { metadata: { labels } });
    },
    'Broker main',
  ],
};

/** Refusals that end during the deletion: a forecast may ask about them, but does not call them a hang. */
const TEMPORARY: Record<string, [build: Build, says: RegExp]> = {
  'a policy that lets objects be deleted only with their namespace': [
    inForce(policy('has(namespaceObject.metadata.deletionTimestamp)')),
    /whether something is being deleted/,
  ],
  'a webhook that refuses to delete a parent while it has children': [
    async (world) => {
      const group = world.domain('vault.example.com');
      const apiVersion = `${group}/v1`;
      for (const kind of ['Account', 'Lease']) await world.createType(customType({ group, kind }));
      const { client, namespace } = world;
      const account = { apiVersion, kind: 'Account', namespace, name: 'main' };
      let hasChildren = true;
      whileItLasts(world, async () => {
        hasChildren = (await client.list(apiVersion, 'Lease', namespace)).length > 0;
      });
      await world.create(customObject(apiVersion, 'Account', namespace, 'main'));
      await world.create({
        ...customObject(apiVersion, 'Lease', namespace, 'one'),
        spec: { accountRef: { name: 'main' } },
      });
      await createWebhook(world, {
        ...{ operations: ['DELETE'], apiGroup: group, resource: 'accounts' },
        clientConfig: await startWebhook(world, () =>
          hasChildren ? { deny: 'it has leases: delete them first' } : 'allow',
        ),
      });
      await refusesDeletion(world, account);
    },
    /names leases, which would be deleted as well/,
  ],
};

function whileItLasts(world: World, work: () => Promise<unknown>): void {
  const stop = new AbortController();
  world.atEnd(() => stop.abort());
  void (async () => {
    while (!stop.signal.aborted) {
      await work().catch(() => undefined);
      await sleep(250, undefined, { signal: stop.signal }).catch(() => undefined);
    }
  })();
}

/** A tenant of Flux, whose controllers run in a namespace of their own. */
async function fluxTenant(world: World): Promise<void> {
  const { namespace } = world;
  const controller = (area: string, version: string, kind: string) =>
    elsewhere(
      world,
      {
        ...{ group: `${area}.toolkit.fluxcd.io`, ownGroup: false, version, kind },
        ...{ name: `${area}-controller`, namespace: world.name('flux-system') },
        finalizer: 'finalizers.fluxcd.io',
      },
      {},
    );
  const source = await controller('source', 'v1', 'GitRepository');
  const kustomize = await controller('kustomize', 'v1', 'Kustomization');
  const helm = await controller('helm', 'v2', 'HelmRelease');
  await kindOfGroup(world, source, 'HelmRepository');
  await world.create(secret(namespace, 'git-creds'));
  await world.create(customObject(apiVersionOf(source), 'HelmRepository', namespace, 'charts'));
  const sourceRef = { kind: 'GitRepository', name: 'app' };
  const charts = { kind: 'HelmRepository', name: 'charts' };
  const objects: [Operator, JsonObject][] = [
    [source, { url: 'https://git.example.com/app', secretRef: { name: 'git-creds' } }],
    [kustomize, { path: './deploy', prune: true, sourceRef, targetNamespace: namespace }],
    [helm, { chart: { spec: { chart: 'redis', sourceRef: charts } } }],
  ];
  for (const [operator, spec] of objects) {
    await createGuarded(world, operator, 'app', namespace, spec);
    const conditions = [sinceAnHour({ type: 'Ready', status: 'True', reason: 'Succeeded' })];
    const { manager: fieldManager } = operator;
    const ref = guardedRef(world, operator, 'app');
    await world.client.patchStatus(ref, { conditions }, { fieldManager });
  }
}

/** A database with the objects that its operator made for it, among them a pod. */
async function database(world: World): Promise<void> {
  const { namespace } = world;
  const operator = await elsewhere(world, { kind: 'Cluster' }, {});
  await createGuarded(world, operator, 'pg', namespace, { instances: 1, podTemplate: {} });
  const own = { labels: { cluster: 'pg' }, ...(await ownedBy(world, operator, 'pg')) };
  const children = [
    secret(namespace, 'pg-app'),
    serviceAccount(namespace, 'pg'),
    volumeClaim(namespace, 'pg-1', { storageClassName: 'fast' }),
    pod(namespace, 'pg-1', { claims: ['pg-1'] }),
  ];
  for (const child of children) {
    const metadata = { ...(child['metadata'] as JsonObject), ...own };
    await world.create({ ...child, metadata }, { fieldManager: operator.manager });
  }
  await runPodsIn(world, namespace);
}

/** A pod with the finalizer of a controller that runs elsewhere, as job queues put it on pods. */
async function queuedPod(world: World): Promise<void> {
  const group = world.domain('queue.example.com');
  const operator = await elsewhere(
    world,
    {
      ...{ group: '', ownGroup: false, kind: 'Pod', type: false, name: 'queue-controller' },
      finalizer: `${group}/managed`,
      rules: [
        rule('', ['pods', 'pods/status'], FULL),
        rule('coordination.k8s.io', ['leases'], ['*']),
      ],
    },
    {},
  );
  const labels = { [`${group}/queue`]: 'default' };
  await world.create(pod(world.namespace, 'batch-1', { metadata: { labels } }));
  await world.client.patch(
    { apiVersion: 'v1', kind: 'Pod', namespace: world.namespace, name: 'batch-1' },
    { metadata: { finalizers: [operator.finalizer] } },
    { fieldManager: operator.manager },
  );
}

const DENIED = 'AccessDenied: not authorized to perform s3:CreateBucket';

/** Nothing of these holds the namespace, and a forecast says so. */
const CALM: Record<string, Build> = {
  'a Secret that the operator made itself': async (world) => {
    const operator = await elsewhere(world, {}, {});
    await createGuarded(world, operator, 'a', world.namespace, { secretName: 'made' });
    await world.create(secret(world.namespace, 'made'), { fieldManager: operator.manager });
  },
  'a reference to something elsewhere': async (world) => {
    const operator = await elsewhere(world, {}, {});
    const secretRef = { name: 'creds', namespace: operator.namespace };
    await world.create(secret(operator.namespace, 'creds'));
    await createGuarded(world, operator, 'a', world.namespace, { secretRef });
  },
  'addresses elsewhere, and of a Service that the operator made': async (world) => {
    const operator = await elsewhere(world, {}, {});
    await world.create(service(world.namespace), { fieldManager: operator.manager });
    await createGuarded(world, operator, 'a', world.namespace, {
      servers: [`nats://nats.${operator.namespace}.svc:4222`, 'nats.example.com', 'nats'],
    });
  },
  'a tenant of Flux': fluxTenant,
  'a database with a pod that its operator made': database,
  'a pod whose finalizer a running controller removes': queuedPod,
  'a refusal before the object became ready': recovered(
    [{ type: 'Ready', status: 'True', reason: 'Available', message: 'bucket is in sync' }],
    {
      lastError: DENIED,
      history: [{ result: 'Failed', message: DENIED }, { result: 'Succeeded' }],
    },
  ),
  'Degraded=False with a message about a refusal': recovered([
    { type: 'Degraded', status: 'False', message: `recovered from ${DENIED}` },
    { type: 'Ready', status: 'True', reason: 'AsExpected', message: '' },
  ]),
  'a policy that exempts the namespace controller': policy('false', `${USER} != "${CONTROLLER}"`),
  'a policy that lets nobody but the operator update its objects': refusingUpdates(
    `${USER}.endsWith(":widget-operator")`,
  ),
  'a policy about a name that nothing has': policy('oldObject.metadata.name != "nobody"'),
  'a dead webhook that is not called for service accounts': async (world) => {
    await twoConfigMaps(world);
    await createWebhook(world, {
      ...guardingConfigMaps,
      condition: '!("system:serviceaccounts" in request.userInfo.groups)',
      clientConfig: dead(world),
    });
  },
};

describe.skipIf(foreignKubeconfig() !== undefined)('on a control plane of its own', () => {
  beforeAll(async () => {
    cluster = await sharedCluster();
  });
  afterAll(() => cluster.stop());

  describe.concurrent('a hang is foreseen:', () => {
    for (const [title, [build, expected, says]] of Object.entries(HANGS)) {
      test(title, () =>
        within(title, async (world) => {
          await build(world);
          const { result, text, writes } = await gate(world, { forecast: 'true' });
          expect([result.outcome, writes], rootsOf(result).join()).toEqual([expected, []]);
          expect(`${rootsOf(result).join()} ${text}`).toMatch(says);
          const hung = await gate(world, { delete: 'true', timeout: DELETING_TIMEOUT });
          expect(['stuck', 'inconclusive', 'progressing']).toContain(hung.result.outcome);
        }),
      );
    }
  });

  describe.concurrent('an open question is asked about', () => {
    for (const [title, [build, says]] of Object.entries(QUESTIONS)) {
      test(title, () =>
        within(title, async (world) => {
          await build(world);
          const { result } = await gate(world, { forecast: 'true' });
          expect([result.outcome, rootsOf(result)]).toEqual([
            'inconclusive',
            [expect.stringContaining(says)],
          ]);
        }),
      );
    }
  });

  describe.concurrent('is not called a hang:', () => {
    for (const [title, [build, says]] of Object.entries(TEMPORARY)) {
      test(title, () =>
        within(title, async (world) => {
          await build(world);
          const { result } = await gate(world, { forecast: 'true' });
          expect([result.outcome, rootsOf(result)]).toEqual(['inconclusive', []]);
          expect(result.diagnosis?.notInspected.map(({ reason }) => reason).join()).toMatch(says);
          const { result: deletion } = await gate(world, { delete: 'true', timeout: '90s' });
          expect(deletion.outcome).toBe('deleted');
        }),
      );
    }
  });

  describe.concurrent('no alarm is raised about', () => {
    for (const [title, build] of Object.entries(CALM)) {
      test(title, () =>
        within(title, async (world) => {
          await build(world);
          const { result } = await gate(world, { forecast: 'true' });
          expect([result.outcome, rootsOf(result), result.diagnosis?.notInspected]).toEqual([
            'clear',
            [],
            [],
          ]);
          const gone = await gate(world, { delete: 'true', timeout: '90s' });
          expect(gone.result.outcome).toBe('deleted');
        }),
      );
    }
  });
});

function within(title: string, work: (world: World) => Promise<void>): Promise<void> {
  const name = title.toLowerCase().replaceAll(/[^a-z]+/g, '-');
  return inNamespace({ ...cluster, namespace: `f-${name.slice(0, 30)}x` }, work);
}
