import { setTimeout as sleep } from 'node:timers/promises';
import type { JsonObject } from '../../src/base/json.ts';
import { createPolicy, createWebhook, refusesDeletion, refusesDryRuns } from './admission.ts';
import type { Ref } from './client.ts';
import { inside } from './foresight.ts';
import { apiVersionOf } from './inventory.ts';
import {
  configMap,
  customObject,
  customType,
  pod,
  secret,
  serviceAccount,
  volumeClaim,
} from './objects.ts';
import { configMapRef, ref } from './scenarios/links.ts';
import { createGuarded, type Operator, type OperatorOptions } from './scenarios/operator.ts';
import { guardedRef } from './scenarios/situation.ts';
import type { OperatorBehaviour } from './servers/operator-process.ts';
import { runPodsIn } from './servers/stand-in.ts';
import { startWebhook } from './servers/webhook.ts';
import type { World } from './world.ts';

/**
 * Situations before their deletion, and what a forecast says of them. `npm run record:snapshots -- foreseen` records what it
 * sees in each. Recordings with `expected` are of rows that differed from one of these by a detail.
 */
export interface Foreseen {
  title: string;
  build: (world: World, operator: Operator) => Promise<unknown>;
  /** Clear unless given. */
  outcome?: 'inconclusive';
  /** What its report has to say about the cause. */
  says?: RegExp;
  /** What becomes of it when it is deleted; unless given, that is not tried. */
  later?: 'hangs' | 'goes';
  /** Where the operator of its object lives, and what is special about it; unless given, elsewhere. */
  operator?: OperatorOptions;
  behaviour?: OperatorBehaviour;
}

/** The name of its recording. */
export const idOf = ({ title }: Foreseen): string =>
  `foreseen-${title
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 60)}`;

const ELSEWHERE: OperatorOptions = { namespace: 'platform', scope: 'cluster' };
/** Says that the clean-up fails, once the namespace controller has begun with the namespace. */
const STUCK: OperatorBehaviour = { cleanUp: () => 'not yet', tells: false };

export async function build(world: World, it: Foreseen): Promise<void> {
  const { operator = {}, behaviour = it.outcome === undefined ? {} : STUCK } = it;
  await it.build(world, await inside(world, { ...ELSEWHERE, ...operator }, behaviour));
}

const createHeld = (world: World, operator: Operator, spec: JsonObject = {}): Promise<void> =>
  createGuarded(world, operator, 'a', world.namespace, spec);

const HOUR_MS = 3_600_000;
const sinceAnHour = (condition: JsonObject): JsonObject => ({
  ...condition,
  lastTransitionTime: new Date(Date.now() - HOUR_MS).toISOString().replace(/\.\d+/, ''),
});

/** An object whose spec names `creds`, a Secret of the namespace. */
const namingSecret = (how: string, spec: JsonObject): Foreseen => ({
  title: `a Secret named by ${how}`,
  build: async (world, operator) => {
    await world.create(secret(world.namespace, 'creds', { labels: { use: 'cloud' } }));
    await createHeld(world, operator, spec);
  },
  outcome: 'inconclusive',
  says: /Secret creds/,
});

/** The same somewhere else than in the spec. */
const connected = (
  how: string,
  patch: (world: World, operator: Operator) => [Ref, JsonObject],
): Foreseen => ({
  ...namingSecret(how, {}),
  build: async (world, operator) => {
    await world.create(secret(world.namespace, 'creds'));
    await createHeld(world, operator);
    await world.client.patch(...patch(world, operator));
  },
});

/** A condition that has reported a failure for an hour. */
const complaining = (what: string, condition: JsonObject, message: string): Foreseen => ({
  title: `a status of ${what}`,
  build: async (world, operator) => {
    await createHeld(world, operator);
    const conditions = [sinceAnHour({ ...condition, message })];
    const fieldManager = operator.manager;
    await world.client.patchStatus(
      guardedRef(world, operator, 'a'),
      { conditions },
      { fieldManager },
    );
  },
  outcome: 'inconclusive',
  says: new RegExp(message.replaceAll(/[^\w ]/g, '.')),
});

const startedWith = (what: string, container: JsonObject, says: RegExp): Foreseen => ({
  title: `an operator started with ${what}`,
  operator: { container },
  build: createHeld,
  outcome: 'inconclusive',
  says,
});

async function ownedBy(world: World, operator: Operator, name: string): Promise<JsonObject> {
  const { apiVersion, kind, metadata } = await world.client.get(guardedRef(world, operator, name));
  const owner = { apiVersion, kind, name, uid: metadata['uid'] as string, controller: true };
  return { ownerReferences: [owner] };
}

/** Two ConfigMaps, of which admission keeps one. The API server hears of that a moment later. */
async function guardedMaps(world: World, guard: () => Promise<unknown>): Promise<void> {
  const keep = { labels: { keep: 'yes' }, annotations: { keep: 'yes' } };
  await world.create(configMap(world.namespace, 'aaa'));
  await world.create(configMap(world.namespace, 'zzz', keep));
  await guard();
  await refusesDeletion(world, configMapRef(world.namespace, 'zzz'));
}
const DELETES = { operations: ['DELETE'], resource: 'configmaps' };

export const FORESEEN: readonly Foreseen[] = [
  {
    title: 'a webhook that takes no dry runs',
    build: (world) =>
      guardedMaps(world, async () => {
        const clientConfig = await startWebhook(world, () => 'never');
        await createWebhook(world, { ...DELETES, clientConfig });
        await refusesDryRuns(world);
      }),
    outcome: 'inconclusive',
    says: /does not support dry run/,
    later: 'hangs',
  },
  {
    title: 'a policy about one name that cannot be evaluated',
    build: (world) =>
      guardedMaps(world, () =>
        createPolicy(world, 'keep', DELETES, {
          expression: '!oldObject.metadata.name.matches("^z+$")',
          message: 'this one is kept',
        }),
      ),
    outcome: 'inconclusive',
    says: /keep\S* looks at the object, and only 1 of \d was tried/,
    later: 'hangs',
  },
  {
    title: 'credentials one hop away, in the namespace',
    build: async (world, operator) => {
      const { namespace } = world;
      const { group } = operator;
      await world.createType(customType({ group, kind: 'ProviderConfig' }));
      await world.create(secret(namespace, 'creds'));
      const secretRef = { namespace, name: 'creds', key: 'token' };
      await world.create({
        ...customObject(apiVersionOf(operator), 'ProviderConfig', namespace, 'cloud'),
        spec: { credentials: { secretRef } },
      });
      await createHeld(world, operator, { providerConfigRef: { name: 'cloud' } });
    },
    outcome: 'inconclusive',
    says: /Secret creds/,
    later: 'hangs',
  },
  namingSecret('credentials with a source and a name', {
    credentials: { source: 'Secret', name: 'creds', key: 'token' },
  }),
  namingSecret('a label selector', { secretSelector: { matchLabels: { use: 'cloud' } } }),
  connected('an annotation of the namespace', ({ namespaceRef }, { group }) => [
    namespaceRef,
    { metadata: { annotations: { [`${group}/credentials`]: 'creds' } } },
  ]),
  connected('a label of the Secret', ({ namespace }, { group }) => [
    ref('v1', 'Secret', namespace, 'creds'),
    { metadata: { labels: { [`${group}/type`]: 'credentials' } } },
  ]),
  complaining(
    'Synced=False with a wrong signature',
    { type: 'Synced', status: 'False', reason: 'ReconcileError' },
    'api error SignatureDoesNotMatch',
  ),
  startedWith('a dry run', { args: ['--dry-run=true'] }, /started with --dry-run=true/),
  {
    title: 'an operator with settings in a ConfigMap that it mounts',
    operator: { settings: 'operator-config' },
    build: createHeld,
    outcome: 'inconclusive',
    says: /it has settings that this gate does not read: ConfigMap operator-config/,
  },
  {
    title: 'an object protected by spec.lifecycle.preventDestroy',
    build: (world, operator) =>
      createHeld(world, operator, { lifecycle: { preventDestroy: true } }),
    outcome: 'inconclusive',
    says: /may be protected from deletion by spec\.lifecycle\.preventDestroy: true/,
  },
  // A refusal that ends during the deletion.
  {
    title: 'a webhook that refuses to delete a parent while it has children',
    build: async (world) => {
      const group = 'vault.example.com';
      const apiVersion = `${group}/v1`;
      for (const kind of ['Account', 'Lease']) await world.createType(customType({ group, kind }));
      const { client, namespace } = world;
      let hasChildren = true;
      whileItLasts(world, async () => {
        hasChildren = (await client.list(apiVersion, 'Lease', namespace)).length > 0;
      });
      await world.create(customObject(apiVersion, 'Account', namespace, 'main'));
      const lease = customObject(apiVersion, 'Lease', namespace, 'one');
      await world.create({ ...lease, spec: { accountRef: { name: 'main' } } });
      const deny = 'it has leases: delete them first';
      await createWebhook(world, {
        ...{ operations: ['DELETE'], apiGroup: group, resource: 'accounts' },
        clientConfig: await startWebhook(world, () => (hasChildren ? deny : undefined)),
      });
      await refusesDeletion(world, ref(apiVersion, 'Account', namespace, 'main'));
    },
    outcome: 'inconclusive',
    says: /names what would be deleted as well/,
    later: 'goes',
  },
  {
    title: 'fields that permit a deletion, and conditions that are no failure',
    build: async (world, operator) => {
      await createHeld(world, operator, {
        ...{ deletionPolicy: 'Retain', maintenanceMode: false, allowDeletion: true },
        lifecycle: { preventDestroy: false, disableDeletionProtection: true },
      });
      const conditions = [
        { type: 'Ready', status: 'False', reason: 'Provisioning', message: 'creating the disk' },
        { type: 'Upgradeable', status: 'False', reason: 'ManualStep', message: 'a newer version' },
      ].map(sinceAnHour);
      const status = { conditions, mode: 'Offline', sync: { status: 'Unknown' } };
      const fieldManager = operator.manager;
      await world.client.patchStatus(guardedRef(world, operator, 'a'), status, { fieldManager });
    },
    later: 'goes',
  },
  {
    title: 'a database with a pod that its operator made',
    operator: { kind: 'Cluster' },
    build: async (world, operator) => {
      const { namespace } = world;
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
    },
    later: 'goes',
  },
];

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
