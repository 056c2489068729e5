import { arrayAt, isObject, type JsonObject, numberAt, stringAt } from '../../src/base/json.ts';
import {
  ApiError,
  type CallOptions,
  type Client,
  type KubeObject,
  type Ref,
  refOf,
  UnknownKind,
} from './client.ts';
import type { ControlPlane } from './control-plane.ts';
import { Etcd } from './etcd.ts';
import type { Identity } from './identities.ts';
import { servedTypes } from './inventory.ts';
import { takeAway } from './take-away.ts';
import { type WaitOptions, waitUntil } from './wait-until.ts';

/** Longer than two passes of a namespace controller that is not in a back-off. */
const REMINDER_MS = 20_000;
/** The next scenario uses the same names. */
const GONE_MS = 60_000;

export interface WorldOptions {
  client: Client;
  /** Absent on a cluster that these tests did not start. */
  plane: ControlPlane | undefined;
  /** The namespace under test. */
  namespace: string;
  kubeconfig(identity: Identity): string | Promise<string>;
}

/**
 * What the steps of one scenario build with: the cluster is theirs alone for so long. On one that these tests did not
 * start, what was made is taken away at the end; a control plane of their own is restored or stopped.
 */
export class World {
  readonly client: Client;
  readonly plane: ControlPlane | undefined;
  readonly namespace: string;
  readonly kubeconfig: (identity: Identity) => string | Promise<string>;
  readonly #made: Ref[] = [];
  readonly #endings: (() => void | Promise<void>)[] = [];
  #version: Promise<[major: number, minor: number]> | undefined;

  constructor({ client, plane, namespace, kubeconfig }: WorldOptions) {
    this.client = client;
    this.plane = plane;
    this.kubeconfig = kubeconfig;
    this.namespace = namespace;
  }

  get namespaceRef(): Ref {
    return namespaceRef(this.namespace);
  }

  async create<T extends JsonObject>(object: T, options?: CallOptions): Promise<KubeObject> {
    const made = await this.client.create(object, options);
    this.#made.push(refOf(made));
    return made;
  }

  /** Creates it unless it is there. */
  async ensure(object: JsonObject): Promise<void> {
    await this.create(object).catch((error: unknown) => {
      if (!(error instanceof ApiError) || error.status !== 409) throw error;
    });
  }

  /** One after the other, as `kubectl apply -f` would. */
  async createAll(objects: readonly JsonObject[], options?: CallOptions): Promise<void> {
    for (const object of objects) await this.create(object, options);
  }

  /** A namespace, with what its controllers put into every new one already there. */
  async createNamespace(name = this.namespace, metadata: JsonObject = {}): Promise<KubeObject> {
    const made = await this.create({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { ...metadata, name },
    });
    if (this.plane === undefined || this.plane.controllerManager.running) {
      const account: Ref = { ...SERVICE_ACCOUNT, namespace: name };
      const authorities: Ref = { ...ROOT_CA, namespace: name };
      await this.client.waitFor(account, 'exists', Boolean);
      await this.client.waitFor(authorities, 'exists', Boolean);
    }
    return made;
  }

  /** Creates it unless it is there. */
  async ensureNamespace(name: string): Promise<void> {
    const ref = namespaceRef(name);
    if ((await this.client.find(ref)) === undefined) await this.createNamespace(name);
  }

  deleteNamespace(): Promise<void> {
    return this.client.delete(this.namespaceRef);
  }

  /** CRD and all: its objects can be created when this returns. */
  async createType(definition: JsonObject): Promise<KubeObject> {
    const made = await this.create(definition);
    const ref = refOf(made);
    await this.client.waitFor(ref, 'is established', (crd) =>
      conditionsOf(crd).some(({ type, status }) => type === 'Established' && status === 'True'),
    );
    const group = stringAt(made, 'spec', 'group') ?? '';
    const kind = stringAt(made, 'spec', 'names', 'kind') ?? '';
    for (const version of arrayAt(made, 'spec', 'versions')) {
      const apiVersion = `${group}/${stringAt(version, 'name')}`;
      if (isObject(version) && version['served'] === true) await this.#served(apiVersion, kind);
    }
    return made;
  }

  /** Established is not yet served: discovery and the handler follow a moment later. */
  #served(apiVersion: string, kind: string): Promise<unknown> {
    return waitUntil(`${kind} of ${apiVersion} to be served`, async () => {
      const path = await this.client.collectionPath(apiVersion, kind).catch((error: unknown) => {
        if (error instanceof UnknownKind) return undefined;
        throw error;
      });
      // A conversion webhook may be broken on purpose: any answer but 404 shows that it is served.
      if (path === undefined || (await this.client.call('GET', path)).status === 404) return false;
      // The document of all types, which the gate reads, is written later than that of the group.
      const all = await servedTypes(this.client);
      return all.some((type) => type.kind === kind && apiVersion.startsWith(`${type.group}/`));
    });
  }

  /**
   * Waits until the namespace controller has finished a pass and said so: all these conditions have
   * this status and a message that matches. Without arguments: any conditions at all.
   */
  settled(wanted: Record<string, [status: string, message: RegExp]> = {}): Promise<unknown> {
    return this.namespaceIs(
      `has conditions ${JSON.stringify(Object.keys(wanted))}`,
      (namespace) => {
        const conditions = conditionsOf(namespace);
        return (
          conditions.length > 0 &&
          Object.entries(wanted).every(([type, [status, message]]) =>
            conditions.some(
              (condition) =>
                condition.type === type &&
                condition.status === status &&
                message.test(condition.message),
            ),
          )
        );
      },
    );
  }

  /** Waits for what its controller does. A write now and then brings back a controller that is in a back-off. */
  async namespaceIs(
    what: string,
    predicate: (namespace: KubeObject | undefined) => boolean,
  ): Promise<unknown> {
    let count = 0;
    const reminder = setInterval(() => {
      const annotations = { 'tests.example.com/reminder': `${count++}` };
      this.client.patch(this.namespaceRef, { metadata: { annotations } }).catch(() => undefined);
    }, REMINDER_MS);
    try {
      return await this.client.waitFor(this.namespaceRef, what, predicate, { everyMs: 300 });
    } finally {
      clearInterval(reminder);
    }
  }

  /** Asks for this path until the answer has such a status. */
  answers(path: string, isIt: (status: number) => boolean): Promise<unknown> {
    return waitUntil(`an answer to GET ${path}`, async () =>
      isIt((await this.client.call('GET', path)).status),
    );
  }

  /** Waits until whoever held the Lease of the controller manager has been silent for too long. */
  leaderLeaseExpires(): Promise<unknown> {
    const lease: Ref = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      namespace: 'kube-system',
      name: 'kube-controller-manager',
    };
    return this.client.waitFor(lease, 'has expired', (found) => {
      const renewed = Date.parse(stringAt(found, 'spec', 'renewTime') ?? '');
      const seconds = numberAt(found, 'spec', 'leaseDurationSeconds') ?? 15;
      return Date.now() - renewed > (seconds + 1) * 1_000;
    });
  }

  gone(ref: Ref, options?: WaitOptions): Promise<unknown> {
    return this.client.waitFor(ref, 'is gone', (object) => object === undefined, options);
  }

  /** Waits until it has been asked to go. */
  terminating(ref: Ref): Promise<unknown> {
    return this.client.waitFor(
      ref,
      'is terminating',
      (object) => object?.metadata['deletionTimestamp'] !== undefined,
    );
  }

  /** Kubernetes >= 1.33 deletes pods first and asks nothing else to go before they have gone. */
  async deletesPodsFirst(): Promise<boolean> {
    this.#version ??= this.client.call('GET', '/version').then(({ body }) => {
      const [, major = '0', minor = '0'] =
        /^v(\d+)\.(\d+)/.exec(stringAt(body, 'gitVersion') ?? '') ?? [];
      return [Number(major), Number(minor)];
    });
    const [major, minor] = await this.#version;
    return major > 1 || minor >= 33;
  }

  /** Stores what the API would not let anybody write. */
  async storePastApi(key: string, value: string): Promise<void> {
    await new Etcd(this.plane?.etcdEndpoint ?? '').put(key, Buffer.from(value));
  }

  /** What else must end with the scenario: servers, processes. */
  atEnd(end: () => void | Promise<void>): void {
    this.#endings.unshift(end);
  }

  async end(): Promise<void> {
    for (const end of this.#endings.splice(0)) await end();
    if (this.plane !== undefined) return;
    const made = this.#made.splice(0).reverse();
    for (const ref of made) await takeAway(this.client, ref);
    for (const ref of made) await this.gone(ref, { timeoutMs: GONE_MS }).catch(() => undefined);
  }
}

/** Builds a world with its namespace for as long as the work takes. */
export async function inNamespace(
  options: WorldOptions,
  work: (world: World) => Promise<void>,
): Promise<void> {
  const world = new World(options);
  try {
    await world.createNamespace();
    await work(world);
  } finally {
    await world.end();
  }
}

export interface NamespaceCondition {
  type: string;
  status: string;
  reason: string;
  message: string;
}

export function conditionsOf(object: KubeObject | undefined): NamespaceCondition[] {
  return arrayAt(object, 'status', 'conditions').map((condition) => ({
    type: stringAt(condition, 'type') ?? '',
    status: stringAt(condition, 'status') ?? '',
    reason: stringAt(condition, 'reason') ?? '',
    message: stringAt(condition, 'message') ?? '',
  }));
}

export function namespaceRef(name: string): Ref {
  return { apiVersion: 'v1', kind: 'Namespace', name };
}

const SERVICE_ACCOUNT: Ref = { apiVersion: 'v1', kind: 'ServiceAccount', name: 'default' };
const ROOT_CA: Ref = { apiVersion: 'v1', kind: 'ConfigMap', name: 'kube-root-ca.crt' };
