import { setTimeout as sleep } from 'node:timers/promises';
import { type JsonObject, stringAt } from '../../src/base/json.ts';
import {
  createPolicy,
  createWebhook,
  refusesDeletion,
  refusesDryRuns,
  refusesUpdate,
} from './admission.ts';
import { inside } from './foresight.ts';
import { apiVersionOf } from './inventory.ts';
import {
  accountSubject,
  configMap,
  customObject,
  customType,
  deployment,
  grant,
  pod,
  podSpec,
  secret,
  serviceAccount,
  volumeClaim,
} from './objects.ts';
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
import { createLease } from './scenarios/traces.ts';
import type { OperatorBehaviour } from './servers/operator-process.ts';
import { runPodsIn } from './servers/stand-in.ts';
import { startWebhook } from './servers/webhook.ts';
import type { World } from './world.ts';

/**
 * Hangs whose cause exists before the deletion, each forecast and then deleted, and their calm neighbours: the same
 * situation with one fact changed, in which the namespace is deleted. `npm run record:snapshots -- foreseen` records what a
 * forecast sees in each.
 */
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
    spec: JsonObject | ((world: World) => JsonObject),
    others: (world: World, operator: Operator) => JsonObject[] = () => [],
  ): Build =>
  async (world) => {
    const operator = await elsewhere(world);
    for (const one of others(world, operator)) await world.create(one);
    const given = typeof spec === 'function' ? spec(world) : spec;
    await createGuarded(world, operator, 'a', world.namespace, given);
  };

/** An object that names a ServiceAccount, of an operator that may have a token for it. */
const actingAs =
  (name: string, behaviour: OperatorBehaviour): Build =>
  async (world) => {
    const { namespace } = world;
    const operator = await elsewhere(world, {}, behaviour);
    const subject = accountSubject(operator.namespace, operator.account);
    const rules = [rule('', ['serviceaccounts/token'], ['create'])];
    await world.createAll(grant({ name: world.name('tokens') }, [subject], rules));
    if (name !== 'default') await world.create(serviceAccount(namespace, name));
    await createGuarded(world, operator, 'a', namespace, { serviceAccountName: name });
  };

const kindOfGroup = (world: World, { group }: Operator, kind: string, more = {}) =>
  world.createType(customType({ group, kind, ...more }));

/** An object that the operator needs, of a type of its own; `creds` is a Secret of the namespace. */
const behindConfig =
  (scope: 'Namespaced' | 'Cluster', given?: JsonObject): Build =>
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
      spec: { credentials: given ?? { secretRef: { namespace, name: 'creds', key: 'token' } } },
    });
    await createGuarded(world, operator, 'a', namespace, { providerConfigRef: { name } });
  };

/** A configuration outside of the namespace that an object names, with this status. */
const configured =
  (status: JsonObject, behaviour?: OperatorBehaviour): Build =>
  async (world) => {
    const operator = await elsewhere(world, {}, behaviour);
    await kindOfGroup(world, operator, 'ProviderConfig', { scope: 'Cluster' });
    const name = world.name('cloud');
    const type = { apiVersion: apiVersionOf(operator), kind: 'ProviderConfig' };
    await world.create({ ...type, metadata: { name }, spec: {} });
    await world.client.patchStatus({ ...type, name }, status, { fieldManager: operator.manager });
    await createGuarded(world, operator, 'a', world.namespace, { providerConfigRef: { name } });
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

/** Permissions that an operator gave to an account for its object, and who uses it. */
const withPermissions =
  (
    behaviour: OperatorBehaviour,
    { runsPods, user }: { runsPods: boolean; user?: (world: World) => JsonObject },
  ): Build =>
  async (world) => {
    const operator = await elsewhere(world, {}, behaviour);
    await createGuarded(world, operator, 'a');
    if (runsPods) {
      const subject = accountSubject(operator.namespace, operator.account);
      const rules = [rule('', ['pods'], ['create'])];
      await world.createAll(grant({ name: world.name('pods') }, [subject], rules));
    }
    const { namespace, client } = world;
    const metadata = { namespace, name: 'run-a', ...(await ownedBy(world, operator, 'a')) };
    const rules = [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }];
    const made = grant(metadata, [accountSubject(namespace, 'run-a')], rules);
    for (const one of [{ apiVersion: 'v1', kind: 'ServiceAccount', metadata }, ...made]) {
      await client.create(one, { fieldManager: operator.manager });
    }
    if (user) await world.create(user(world));
  };

export const twoConfigMaps: Build = async (world) => {
  await world.create(configMap(world.namespace, 'aaa'));
  await world.create(
    configMap(world.namespace, 'zzz', { labels: { keep: 'yes' }, annotations: { keep: 'yes' } }),
  );
};

const dead = (world: World) => ({
  service: { namespace: world.name('nowhere'), name: 'guard', path: '/validate' },
});

export const guardingConfigMaps = { operations: ['DELETE'], resource: 'configmaps' } as const;
const ASKED = { operations: ['DELETE'], apiGroup: '', resource: 'configmaps' };
const USER = 'request.userInfo.username';
const CONTROLLER = 'system:serviceaccount:kube-system:namespace-controller';

const policy =
  (
    expression: string,
    condition?: string,
    variables: { name: string; expression: string }[] = [],
  ): Build =>
  async (world) => {
    await twoConfigMaps(world);
    const message = 'this one is kept';
    await createPolicy(world, {
      ...ASKED,
      ...{ name: 'keep', expression, message, variables },
      ...(condition === undefined ? {} : { condition }),
    });
  };

/** The API server hears of a policy or webhook a moment later; until then its dry runs are accepted. */
const inForce =
  (build: Build, options = ''): Build =>
  async (world) => {
    await build(world);
    await refusesDeletion(world, configMapRef(world.namespace, 'zzz'), options);
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

export const HANGS: Record<string, Hang> = {
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
  'a configuration that is named and reports a failure': [
    configured({ conditions: [sinceAnHour({ ...FAILED, message: 'the token has expired' })] }),
    'inconclusive',
    /ProviderConfig \S+ \(spec\.providerConfigRef\) says: .*expired/,
  ],
  'a server elsewhere, below from, whose kind is an abbreviation': [
    async (world) => {
      const operator = await elsewhere(world);
      const { namespace, manager: fieldManager } = operator;
      const name = world.name('shared');
      await kindOfGroup(world, operator, 'DBServer');
      const server = { apiVersion: apiVersionOf(operator), kind: 'DBServer' };
      await world.create({ ...server, metadata: { namespace, name }, spec: {} });
      const down = { conditions: [sinceAnHour({ ...FAILED, message: 'the server is suspended' })] };
      await world.client.patchStatus({ ...server, namespace, name }, down, { fieldManager });
      const dbServerRef = { from: { namespace, name } };
      await createGuarded(world, operator, 'a', world.namespace, { dbServerRef });
    },
    'inconclusive',
    /DBServer \S+ \(spec\.dbServerRef\) says: .*suspended/,
  ],
  'a server elsewhere that is down, of a product whose needs here are known': [
    async (world) => {
      const [group, version] = ['k8s.mariadb.com', 'v1alpha1'];
      const product = { group, version, ownGroup: false, kind: 'Database' };
      const names = { name: 'mariadb-operator', finalizer: 'database.k8s.mariadb.com/finalizer' };
      const operator = await elsewhere(world, { ...product, ...names });
      const { namespace, manager: fieldManager } = operator;
      const server = { apiVersion: `${group}/${version}`, kind: 'MariaDB' };
      await kindOfGroup(world, operator, 'MariaDB', { versions: [version] });
      await world.create({ ...server, metadata: { namespace, name: 'shared' }, spec: {} });
      const down = { conditions: [sinceAnHour({ ...FAILED, message: 'the server is suspended' })] };
      const ref = { ...server, namespace, name: 'shared' };
      await world.client.patchStatus(ref, down, { fieldManager });
      const mariaDbRef = { namespace, name: 'shared' };
      await createGuarded(world, operator, 'a', world.namespace, { mariaDbRef });
    },
    'inconclusive',
    /MariaDB \S+ \(spec\.mariaDbRef\) says: .*suspended/,
  ],
  'a configuration that is named and not connected': [
    configured({ connected: false }),
    'inconclusive',
    /ProviderConfig \S+ \(spec\.providerConfigRef\) says: connected: false[\s\S]*Find out before the deletion whether this/,
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
    /scaled to zero|is one of: Deployment/,
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
    'would-hang',
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
  'a ServiceAccount': [actingAs('runner', STUCK), 'inconclusive', /ServiceAccount runner/],
  'the ServiceAccount that every namespace has, of an owner that acts with it': [
    actingAs('default', STUCK),
    'inconclusive',
    /ServiceAccount default/,
  ],
  'credentials that an object of the cluster names without a namespace': [
    behindConfig('Cluster', { secretRef: { name: 'creds', key: 'token' } }),
    'inconclusive',
    /Secret creds/,
  ],
  'namespaces selected by a variable': [
    async (world) => {
      const env = [{ name: 'WATCH_NAMESPACE_SELECTOR', value: 'environment: production' }];
      await createGuarded(world, await elsewhere(world, { container: { env } }), 'a');
    },
    'would-hang',
    /restrict it to other namespaces/,
  ],
  'a backup whose data a Job deletes, by the catalogue': [
    async (world) => {
      const operator = await elsewhere(world, TIDB);
      await createGuarded(world, operator, 'a', world.namespace, { cleanPolicy: 'Delete' });
    },
    'would-hang',
    /a Job \(deletes the data of the backup\)/,
  ],
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
  'a broker by the address of its pod, one of several': [
    naming(
      ({ namespace }) => ({
        kafka: {
          brokers: `kafka.example.com:9093,nats-0.nats.${namespace}.svc.cluster.local.:9093`,
        },
      }),
      ({ namespace }) => [service(namespace)],
    ),
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
  'a class that no installation serves': [
    async (world) => {
      const operator = await elsewhere(world, { container: { args: ['--widget-class=blue'] } });
      await createGuarded(world, operator, 'a', world.namespace, { widgetClass: 'green' });
    },
    'would-hang',
    /its arguments are for another class than the object names/,
  ],
  'a policy that refuses every update of a terminating object': [
    refusingUpdates('!has(oldObject.metadata.deletionTimestamp)'),
    'would-hang',
    /freeze/,
  ],
  'a policy about terminating objects that cannot be evaluated': [
    refusingUpdates(
      '!has(oldObject.metadata.deletionTimestamp) || string(oldObject.metadata.deletionTimestamp).size() == 0',
    ),
    'inconclusive',
    /freeze\S* .*looks at whether something is being deleted, and its expressions could not/,
  ],
  'a policy that lets only dry runs pass': [
    policy('request.dryRun == true'),
    'would-hang',
    /this one is kept/,
  ],
  'a policy about the options of the namespace controller': [
    inForce(
      policy(
        '!has(request.options.propagationPolicy) || request.options.propagationPolicy != "Background"',
      ),
      '&propagationPolicy=Background',
    ),
    'would-hang',
    /this one is kept/,
  ],
  'a policy about one label, by a variable': [
    inForce(
      policy('!variables.kept', undefined, [
        { name: 'labels', expression: 'oldObject.metadata.?labels.orValue({})' },
        { name: 'kept', expression: '"keep" in variables.labels' },
      ]),
    ),
    'would-hang',
    /this one is kept/,
  ],
  'a policy about one name that cannot be evaluated': [
    inForce(policy('!oldObject.metadata.name.matches("^z+$")')),
    'inconclusive',
    /keep\S* lets all configmaps be deleted.*1 of \d were tried/,
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
    /example\.com\/hold/,
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

// The catalogue knows them by their kinds, in any group: tests that run at the same time define their own types.
const TIDB = {
  kind: 'Backup',
  ...{ name: 'tidb-controller-manager', finalizer: 'tidb.pingcap.com/backup-protection' },
};
const PUSH_SECRET = {
  kind: 'PushSecret',
  ...{ name: 'external-secrets', finalizer: 'pushsecret.externalsecrets.io/finalizer' },
};
const BROKER = {
  ...{ kind: 'Broker', name: 'mt-broker-controller' },
  finalizer: 'brokers.eventing.knative.dev',
};

/** An object of a well-known product, whose operator runs elsewhere and works, beside a Secret and a ConfigMap. */
const ofProduct =
  (options: OperatorOptions, spec: JsonObject, metadata: JsonObject = {}): Build =>
  async (world) => {
    const operator = await elsewhere(world, options, {});
    await world.createAll([
      secret(world.namespace, 'web-tls'),
      configMap(world.namespace, 'settings'),
    ]);
    await createGuarded(world, operator, 'a', world.namespace, spec);
    await world.client.patch(guardedRef(world, operator, 'a'), { metadata });
  };

const IN_A_VOLUME = { volumes: [{ projected: { sources: [{ secret: { name: 'creds' } }] } }] };

/** Ways in which a spec names the Secret `creds`. */
const NAMING_A_SECRET: Record<string, JsonObject> = {
  'auth.from.secret.name': { auth: { from: { secret: { name: 'creds' } } } },
  'auth.tokenSecret.name': { auth: { tokenSecret: { name: 'creds' } } },
  'credentials with a source and a name': {
    credentials: { source: 'Secret', name: 'creds', key: 'token' },
  },
  'passwordFrom with a kind and a name': { passwordFrom: { kind: 'Secret', name: 'creds' } },
  'a bare apiKeySecret': { apiKeySecret: 'creds' },
  'bare credentials': { cloud: { credentials: 'creds' } },
  'a reference without its kind': { providerRef: { name: 'creds' } },
  'a list of names': { secrets: ['creds'] },
  'a key of a map': { secretKeys: { creds: 'token' } },
  'a volume of a template': { podTemplate: { spec: IN_A_VOLUME } },
  'a label selector': { secretSelector: { matchLabels: { use: 'cloud' } } },
  'an expression about labels': {
    secretSelector: { matchExpressions: [{ key: 'use', operator: 'In', values: ['cloud'] }] },
  },
};

/** Ways in which a field of a spec names another object of the operator's group, `main`. */
const NAMING_A_SERVER: Record<string, JsonObject> = {
  'serverRef.from.name': { serverRef: { from: { name: 'main' } } },
  'a bare serverRef': { serverRef: 'main' },
  'a field of another name': { clusterName: 'main' },
};

/** Places other than a spec in which a Secret is connected with an object, or with its operator. */
const CONNECTED: Record<string, (world: World, operator: Operator) => Promise<unknown>> = {
  'an address that begins with the namespace': (world, operator) =>
    world.client.patch(guardedRef(world, operator, 'a'), {
      spec: { token: `k8s://${world.namespace}/creds` },
    }),
  'an annotation of the object': (world, operator) =>
    world.client.patch(guardedRef(world, operator, 'a'), {
      metadata: { annotations: { [`${operator.group}/credentials`]: 'creds' } },
    }),
  'an annotation of the namespace': (world, operator) =>
    world.client.patch(world.namespaceRef, {
      metadata: { annotations: { [`${operator.group}/credentials`]: 'creds' } },
    }),
  'the status of the object': (world, operator) =>
    world.client.patchStatus(
      guardedRef(world, operator, 'a'),
      { credentials: { name: 'creds' } },
      { fieldManager: operator.manager },
    ),
  'a label of the Secret': (world, operator) =>
    world.client.patch(
      { apiVersion: 'v1', kind: 'Secret', namespace: world.namespace, name: 'creds' },
      { metadata: { labels: { [`${operator.group}/type`]: 'credentials' } } },
    ),
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
  'InSync=False without a word of failure': [
    { type: 'InSync', status: 'False', reason: 'Throttled' },
    'the quota of API calls is used up for this month',
  ],
};

const fromConfig = { configMapKeyRef: { name: 'settings', key: 'namespaces' } };

/** What an operator is started with, and what the report says of it. */
const STARTED_WITH: Record<string, [container: JsonObject, says: string]> = {
  'a dry run': [{ args: ['--dry-run=true'] }, 'started with --dry-run=true'],
  'its type disabled': [
    { args: ['--disabled-controllers=gadget,widget'] },
    'started with --disabled-controllers=gadget,widget',
  ],
  'namespaces from a ConfigMap': [
    { env: [{ name: 'WATCH_NAMESPACE', valueFrom: fromConfig }] },
    'started with WATCH_NAMESPACE from ConfigMap settings',
  ],
};

/** Fields of a spec that forbid a deletion. */
const PROTECTED: Record<string, JsonObject> = {
  'spec.maintenanceMode': { maintenanceMode: true },
  'spec.lifecycle.preventDestroy': { lifecycle: { preventDestroy: true } },
  'spec.database.deletionProtectionEnabled': { database: { deletionProtectionEnabled: true } },
};

/** Open questions about an owner that runs. These are not deleted. */
export const QUESTIONS: Record<string, [build: Build, says: string]> = {
  ...Object.fromEntries(
    Object.entries(NAMING_A_SECRET).map(([title, spec]) => [
      `a Secret named by ${title}`,
      [
        naming(spec, ({ namespace }) => [secret(namespace, 'creds', { labels: { use: 'cloud' } })]),
        'Secret creds',
      ],
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(CONNECTED).map(([title, connect]) => [
      `a Secret named by ${title}`,
      [
        async (world: World) => {
          const operator = await elsewhere(world);
          await world.create(secret(world.namespace, 'creds'));
          await createGuarded(world, operator, 'a');
          await connect(world, operator);
        },
        'Secret creds',
      ],
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(NAMING_A_SERVER).map(([title, spec]) => [
      `a custom object named by ${title}`,
      [
        async (world: World) => {
          const operator = await elsewhere(world);
          await kindOfGroup(world, operator, 'Server');
          const { namespace } = world;
          await world.create(customObject(apiVersionOf(operator), 'Server', namespace, 'main'));
          await createGuarded(world, operator, 'a', namespace, spec);
        },
        'Server main',
      ],
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(FAILURES).map(([title, [condition, message]]) => [
      `a status of ${title}`,
      [(world: World) => complaining(world, message, condition), message],
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(STARTED_WITH).map(([title, [container, says]]) => [
      `an operator started with ${title}`,
      [
        async (world: World) => {
          await createGuarded(world, await elsewhere(world, { container }), 'a');
        },
        says,
      ],
    ]),
  ),
  'an operator with settings in a ConfigMap that it mounts': [
    async (world) => {
      await createGuarded(world, await elsewhere(world, { settings: 'operator-config' }), 'a');
    },
    'it has settings that this gate does not read: ConfigMap operator-config',
  ],
  'an operator whose Lease somebody renews from outside of the cluster': [
    async (world) => {
      const operator = await elsewhere(world);
      const [, ...parent] = operator.group.split('.');
      const name = `270bec8c.${parent.join('.')}`;
      const { namespace } = operator;
      await createLease(world, { namespace, name, holder: 'laptop.local_8c1f42b0' });
      await createGuarded(world, operator, 'a');
    },
    'may not lead: Lease',
  ],
  ...Object.fromEntries(
    Object.entries(PROTECTED).map(([field, spec]) => [
      `an object protected by ${field}`,
      [naming(spec), `may be protected from deletion by ${field}: true`],
    ]),
  ),
  'an annotation that does not allow a deletion': [
    async (world) => {
      const operator = await elsewhere(world);
      await createGuarded(world, operator, 'a');
      const annotations = { [`${operator.group}/allow-delete`]: 'false' };
      await world.client.patch(guardedRef(world, operator, 'a'), { metadata: { annotations } });
    },
    'allow-delete: false',
  ],
  'a health that is degraded': [
    (world) => withStatus(world, { health: { status: 'Degraded', message: 'our key is too old' } }),
    'health.status: Degraded (our key is too old)',
  ],
  'a state without a message': [
    (world) => withStatus(world, { state: 'Unreachable' }),
    'state: Unreachable',
  ],
  'an operator that crashes again and again': [
    async (world) => {
      const operator = await elsewhere(world);
      await createGuarded(world, operator, 'a');
      const { namespace } = operator;
      const [one] = await world.client.list('v1', 'Pod', namespace);
      const finishedAt = new Date(Date.now() - 60_000).toISOString().replace(/\.\d+/, '');
      const terminated = { exitCode: 1, reason: 'Error', startedAt: finishedAt, finishedAt };
      const state = { running: { startedAt: finishedAt } };
      const main = { name: 'main', image: 'i', imageID: '', ready: true, restartCount: 250 };
      const containerStatuses = [{ ...main, state, lastState: { terminated } }];
      const ref = { apiVersion: 'v1', kind: 'Pod', namespace, name: one?.metadata.name ?? '' };
      await world.client.patchStatus(ref, { containerStatuses });
    },
    'restarted 250 times',
  ],
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

/** A webhook that lets nobody but the namespace controller delete, and says this to others. */
const letsControllerDelete = (deny: string): Build =>
  inForce(async (world) => {
    await twoConfigMaps(world);
    await createWebhook(world, {
      ...guardingConfigMaps,
      clientConfig: await startWebhook(world, (review) =>
        stringAt(review, 'request', 'userInfo', 'username') === CONTROLLER ? 'allow' : { deny },
      ),
    });
  });

/** Refusals that end during the deletion: a forecast may ask about them, but does not call them a hang. */
export const TEMPORARY: Record<string, [build: Build, says: RegExp]> = {
  'a webhook that lets only the namespace controller delete': [
    letsControllerDelete('delete the namespace instead'),
    /names the namespace, which would be deleted as well/,
  ],
  'a webhook that lets only controllers delete': [
    letsControllerDelete('this user may not delete them'),
    /its message is about who asks/,
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
export const CALM: Record<string, Build> = {
  'a ServiceAccount of pods that the operator has others create': async (world) => {
    const { namespace } = world;
    const operator = await elsewhere(world, {}, {});
    await world.create(serviceAccount(namespace, 'runner'));
    const spec = { predictor: { serviceAccountName: 'runner', image: 'model' } };
    await createGuarded(world, operator, 'a', namespace, spec);
  },
  'a webhook that allows what the owner does': async (world) => {
    const operator = await elsewhere(world, {}, {});
    await createGuarded(world, operator, 'a');
    await createWebhook(world, {
      ...{ operations: ['UPDATE'], apiGroup: operator.group, resource: '*' },
      clientConfig: await startWebhook(world, () => 'allow'),
    });
  },
  'a class that is a size of machines': async (world) => {
    const operator = await elsewhere(world, {}, {});
    await createGuarded(world, operator, 'a', world.namespace, { widgetClass: 't4g.micro' });
  },
  'an operator with another name than its controller of the type': async (world) => {
    const own = { name: 'pgo', manager: 'widget-controller' };
    await createGuarded(world, await elsewhere(world, own, {}), 'a');
  },
  'settings in a ConfigMap, of an operator that works': async (world) => {
    const operator = await elsewhere(world, { settings: 'operator-config' }, {});
    await createGuarded(world, operator, 'a');
    await world.client.patchStatus(
      {
        apiVersion: apiVersionOf(operator),
        kind: operator.kind,
        namespace: world.namespace,
        name: 'a',
      },
      { ready: true },
      { fieldManager: operator.manager },
    );
  },
  'a configuration that is named and ready': configured(
    { conditions: [sinceAnHour({ type: 'Ready', status: 'True', reason: 'Valid', message: '' })] },
    {},
  ),
  'permissions of the pods of a Deployment': withPermissions(
    {},
    {
      runsPods: true,
      user: ({ namespace }) => deployment(namespace, 'db', { serviceAccountName: 'run-a' }),
    },
  ),
  'permissions of a pod that the operator runs': withPermissions(
    {},
    {
      runsPods: true,
      user: ({ namespace }) => ({ ...pod(namespace, 'db-0'), spec: podSpec('run-a') }),
    },
  ),
  'permissions for somebody outside of the cluster': withPermissions({}, { runsPods: false }),
  'a policy that lets objects be deleted only with their namespace': inForce(
    policy('has(namespaceObject.metadata.deletionTimestamp)'),
  ),
  'a policy that is not about terminating objects': refusingUpdates(
    'has(oldObject.metadata.deletionTimestamp) || false',
  ),
  'a dead webhook that is not called for terminating objects': async (world) => {
    const operator = await elsewhere(world, {}, {});
    await createGuarded(world, operator, 'a');
    await createWebhook(world, {
      ...{ operations: ['UPDATE'], apiGroup: operator.group, resource: '*' },
      condition: '!has(object.metadata.deletionTimestamp)',
      clientConfig: dead(world),
    });
  },
  'a policy that looks at the new object, which a deletion does not have': async (world) => {
    await twoConfigMaps(world);
    await createPolicy(world, {
      ...ASKED,
      ...{ name: 'keep', expression: 'object.data.x == "y"', failurePolicy: 'Ignore' },
    });
  },
  'fields that permit a deletion, and conditions that are no failure': async (world) => {
    const operator = await elsewhere(world, {}, {});
    await createGuarded(world, operator, 'a', world.namespace, {
      ...{ deletionPolicy: 'Retain', maintenanceMode: false, allowDeletion: true },
      lifecycle: { preventDestroy: false, disableDeletionProtection: true },
    });
    const conditions = [
      { type: 'Ready', status: 'False', reason: 'Provisioning', message: 'creating the disk' },
      { type: 'Upgradeable', status: 'False', reason: 'ManualStep', message: 'a newer version' },
    ].map(sinceAnHour);
    const status = { conditions, mode: 'Offline', sync: { status: 'Unknown' } };
    await world.client.patchStatus(guardedRef(world, operator, 'a'), status, {
      fieldManager: operator.manager,
    });
  },
  'an operator whose arguments disable other types and dry runs': async (world) => {
    const args = ['--dry-run=false', '--disabled-controllers=gadget'];
    const container = { args, env: [{ name: 'DEFAULT_NAMESPACE', valueFrom: fromConfig }] };
    await createGuarded(world, await elsewhere(world, { container }, {}), 'a');
  },
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
  'words that name nothing that an operator reads': async (world) => {
    const operator = await elsewhere(world, {}, {});
    await world.create(secret(world.namespace, 'creds'));
    await createGuarded(world, operator, 'a', world.namespace, {
      ...{ nodeSelector: { pool: 'creds' }, host: 'creds', image: 'creds', command: ['creds'] },
      env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 'creds', key: 'a' } } }],
      ...{ podLabels: { labels: { app: 'creds' } }, serviceAccountName: 'default' },
    });
  },
  'a PushSecret to a store of the cluster': ofProduct(PUSH_SECRET, {
    deletionPolicy: 'Delete',
    secretStoreRefs: [{ kind: 'ClusterSecretStore', name: 'vault' }],
    selector: { secret: { name: 'web-tls' } },
  }),
  'a Broker of channels': ofProduct(
    BROKER,
    { config: { apiVersion: 'v1', kind: 'ConfigMap', name: 'settings', namespace: 'knative' } },
    { annotations: { 'eventing.knative.dev/broker.class': 'MTChannelBasedBroker' } },
  ),
  'a backup whose data stays': ofProduct(TIDB, { cleanPolicy: 'Retain' }),
  'work that has ended, with the template of its pods': async (world) => {
    const operator = await elsewhere(world, {}, {});
    await createGuarded(world, operator, 'a', world.namespace, {
      runnerPodTemplate: { spec: { image: 'example.com/runner' } },
    });
    const status = { completionTime: '2026-01-01T00:00:00Z' };
    const fieldManager = operator.manager;
    await world.client.patchStatus(guardedRef(world, operator, 'a'), status, { fieldManager });
  },
  'an option that cannot be used, beside Ready=True': recovered([
    { type: 'Ready', status: 'True', reason: 'Available', message: '' },
    {
      ...{ type: 'LiveMigratable', status: 'False', reason: 'DisksNotLiveMigratable' },
      message: 'cannot migrate: the claim is not shared',
    },
  ]),
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

/** A situation and its forecast. */
export interface Foreseen {
  /** The name of its recording. */
  id: string;
  title: string;
  build: Build;
  outcome: 'would-hang' | 'inconclusive' | 'clear';
  says: RegExp | string;
}

const foreseen = (
  title: string,
  build: Build,
  outcome: Foreseen['outcome'],
  says: RegExp | string = '',
): Foreseen => ({
  id: `foreseen-${title
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 60)}`,
  ...{ title, build, outcome, says },
});

export const FORESEEN: readonly Foreseen[] = [
  ...Object.entries(HANGS).map(([title, [build, outcome, says]]) =>
    foreseen(title, build, outcome, says),
  ),
  ...[QUESTIONS, TEMPORARY].flatMap((table) =>
    Object.entries<[Build, RegExp | string]>(table).map(([title, [build, says]]) =>
      foreseen(title, build, 'inconclusive', says),
    ),
  ),
  ...Object.entries(CALM).map(([title, build]) => foreseen(title, build, 'clear')),
];
