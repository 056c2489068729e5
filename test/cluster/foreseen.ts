import { setTimeout as sleep } from 'node:timers/promises';
import type { JsonObject } from '../../src/base/json.ts';
import { createPolicy, createWebhook, refusesDeletion, refusesDryRuns } from './admission.ts';
import { inside } from './foresight.ts';
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
import { configMapRef } from './scenarios/links.ts';
import {
  createGuarded,
  install,
  type Operator,
  type OperatorOptions,
} from './scenarios/operator.ts';
import { guardedRef } from './scenarios/situation.ts';
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

const guardingConfigMaps = { operations: ['DELETE'], resource: 'configmaps' } as const;
const ASKED = { operations: ['DELETE'], apiGroup: '', resource: 'configmaps' };

const policy =
  (expression: string): Build =>
  async (world) => {
    await twoConfigMaps(world);
    await createPolicy(world, { ...ASKED, name: 'keep', expression, message: 'this one is kept' });
  };

/** The API server hears of a policy or webhook a moment later; until then its dry runs are accepted. */
const inForce =
  (build: Build, options = ''): Build =>
  async (world) => {
    await build(world);
    await refusesDeletion(world, configMapRef(world.namespace, 'zzz'), options);
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
  'credentials one hop away, in the namespace': [
    behindConfig('Namespaced'),
    'inconclusive',
    /Secret creds/,
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
  'a policy about one name that cannot be evaluated': [
    inForce(policy('!oldObject.metadata.name.matches("^z+$")')),
    'inconclusive',
    /keep\S* looks at the object, and only 1 of \d was tried/,
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
    'not read: WATCH_NAMESPACE from ConfigMap settings',
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
};

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

/** Nothing of these holds the namespace, and a forecast says so. */
export const CALM: Record<string, Build> = {
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
};

/** Refusals that end during the deletion: a forecast may ask about them, but does not call them a hang. */
export const TEMPORARY: Record<string, [build: Build, says: RegExp]> = {
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
    /names what would be deleted as well/,
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
