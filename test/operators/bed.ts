import {
  arrayAt,
  isObject,
  type Json,
  type JsonObject,
  numberAt,
  stringAt,
  stringsAt,
  valueAt,
} from '../../src/base/json.ts';
import {
  ApiError,
  type Client,
  type KubeObject,
  type Ref,
  refOf,
  UnknownKind,
} from '../cluster/client.ts';
import { freePorts } from '../cluster/processes.ts';
import { waitUntil } from '../cluster/wait-until.ts';
import { conditionsOf, namespaceRef, type World } from '../cluster/world.ts';
import type { Product } from './product.ts';

const NOT_YET = { timeoutMs: 120_000, everyMs: 500 };
const MANAGER = { fieldManager: 'kubectl-client-side-apply' };

/** An operator on the cluster: installed, asleep, taken away, installed somewhere else. */
export class Installation {
  readonly product: Product;
  readonly namespace: string;
  readonly #world: World;
  /** Of the workload that has to act. */
  readonly name: string;
  readonly #objects: KubeObject[];

  constructor(
    world: World,
    product: Product,
    { namespace, name }: { namespace: string; name: string },
    objects: KubeObject[],
  ) {
    this.#world = world;
    this.product = product;
    this.namespace = namespace;
    this.name = name;
    this.#objects = objects;
  }

  get #client(): Client {
    return this.#world.client;
  }

  get owner(): Ref {
    return {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      namespace: this.namespace,
      name: this.name,
    };
  }

  /** Everything by which it can be known, of any kind. */
  get names(): string[] {
    return this.#workloads.map(({ metadata }) => metadata.name);
  }

  get #workloads(): KubeObject[] {
    return this.#objects.filter(isWorkload);
  }

  /** Creates what is not there, and waits until all of it is at work. */
  async install(): Promise<void> {
    const types = this.#of('CustomResourceDefinition');
    for (const object of [...this.#of('Namespace'), ...types]) await this.#create(object);
    for (const type of types) {
      await this.#client.waitFor(refOf(type), 'is established', isEstablished, NOT_YET);
    }
    for (const object of this.#objects) {
      if (!['Namespace', 'CustomResourceDefinition'].includes(object.kind))
        await this.#create(object);
    }
    await this.ready();
  }

  async ready(): Promise<void> {
    for (const workload of this.#workloads) {
      await this.#client.waitFor(refOf(workload), 'is available', isAvailable, NOT_YET);
    }
  }

  /** As `kubectl delete -f` of all but its types, which would take everybody's objects with them. */
  async uninstall(): Promise<void> {
    const kept = ['CustomResourceDefinition', 'Namespace'];
    const objects = this.#objects.filter(({ kind }) => !kept.includes(kind));
    for (const object of objects.toReversed()) await this.#client.delete(refOf(object));
    await this.#noPods(this.names);
  }

  /** Deletes the namespace that it lives in, and nothing else. */
  async tearDown(): Promise<void> {
    const ref = namespaceRef(this.namespace);
    await this.#client.delete(ref);
    await this.#client.waitFor(ref, 'is gone', (found) => found === undefined, NOT_YET);
  }

  async scale(replicas: number, name = this.name): Promise<void> {
    const ref: Ref = { ...this.owner, name };
    await this.#client.patch(ref, { spec: { replicas } }, { fieldManager: 'kubectl-scale' });
    if (replicas === 0) await this.#noPods([name]);
    else await this.#client.waitFor(ref, 'is available', isAvailable, NOT_YET);
  }

  async restart(): Promise<void> {
    await this.scale(0);
    await this.scale(1);
  }

  /** Somebody else leads from now on, who is not in this cluster; whoever led ends, and waits. */
  async loseLease(): Promise<void> {
    const before = await this.#restarts();
    const renewTime = new Date().toISOString().replace('Z', '000Z');
    await this.#client.patch(this.#lease, {
      spec: { holderIdentity: 'somebody-else', renewTime, leaseDurationSeconds: 3_600 },
    });
    const has = (after: number): boolean => after > before;
    await waitUntil(
      `${this.name} to begin again`,
      async () => has(await this.#restarts()),
      NOT_YET,
    );
    await this.ready();
  }

  async #restarts(): Promise<number> {
    const pods = await this.#client.list('v1', 'Pod', this.namespace);
    return pods
      .filter(({ metadata }) => metadata.name.startsWith(`${this.name}-`))
      .map((pod) => numberAt(pod, 'status', 'containerStatuses', 0, 'restartCount') ?? 0)
      .reduce((sum, count) => sum + count, 0);
  }

  async giveLease(): Promise<void> {
    await this.#client.delete(this.#lease);
  }

  get #lease(): Ref {
    const { lease } = this.product;
    if (lease === undefined) throw new Error(`${this.product.name} leads by no Lease`);
    // Most Leases are where the operator is.
    const isBeside = lease.namespace === this.product.namespace;
    const namespace = isBeside ? this.namespace : lease.namespace;
    return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace, name: lease.name };
  }

  /** Takes the right to write these objects from every role and binding of the product. */
  async takeRight({ apiGroup, resource }: NonNullable<Product['right']>): Promise<void> {
    const holds = (rule: Json): boolean =>
      ['*', apiGroup].some((group) => stringsAt(rule, 'apiGroups').includes(group)) &&
      ['*', resource].some((one) => stringsAt(rule, 'resources').includes(one));
    for (const role of [...this.#of('ClusterRole'), ...this.#of('Role')]) {
      const rules = arrayAt(role, 'rules').map((rule) =>
        isObject(rule) && holds(rule) ? { ...rule, verbs: ['get', 'list', 'watch'] } : rule,
      );
      await this.#client.patch(refOf(role), { rules });
    }
    for (const binding of this.#of('ClusterRoleBinding')) {
      if (stringAt(binding, 'roleRef', 'name') === 'cluster-admin') {
        await this.#client.delete(refOf(binding));
      }
    }
  }

  /** Gives back what was taken, deleted or changed of its rights. */
  async restoreRights(): Promise<void> {
    for (const object of this.#objects) {
      if (!/^(Cluster)?Role(Binding)?$/.test(object.kind)) continue;
      await this.#create(object);
      if (object.kind.endsWith('Role')) {
        await this.#client.patch(refOf(object), { rules: object['rules'] ?? [] });
      }
    }
  }

  #of(kind: string): KubeObject[] {
    return this.#objects.filter((object) => object.kind === kind);
  }

  #create(object: KubeObject): Promise<void> {
    return createInTime(this.#client, object);
  }

  async #noPods(workloads: readonly string[]): Promise<void> {
    await waitUntil(
      `no pods of ${workloads.join(', ')}`,
      async () => {
        const pods = await this.#client.list('v1', 'Pod', this.namespace);
        return pods.every(({ metadata: { name } }) =>
          workloads.every((one) => !new RegExp(`^${one}-(?:[a-z0-9]+-[a-z0-9]+|\\d+)$`).test(name)),
        );
      },
      NOT_YET,
    );
  }
}

/**
 * Creates it unless it is there. Right after it was deleted, it may still be; a new type may not be served yet, and some
 * operators make the types of their objects while they run.
 */
export async function createInTime(client: Client, object: JsonObject): Promise<void> {
  let last: unknown;
  await waitUntil(
    () => `${object['kind']} to be created; last: ${last}`,
    async () => {
      try {
        const found = await client.find(refOf(object as KubeObject));
        if (found?.metadata['deletionTimestamp'] !== undefined) return false;
        if (found === undefined) await client.create(object, MANAGER);
        return true;
      } catch (error) {
        if (!(error instanceof ApiError || error instanceof UnknownKind)) throw error;
        last = error;
        return false;
      }
    },
    NOT_YET,
  );
}

/** With the arguments that a product needs. All processes share the ports of this machine. */
export async function adapted({ flags }: Product, objects: JsonObject[]): Promise<KubeObject[]> {
  const result = structuredClone(objects) as KubeObject[];
  for (const workload of result.filter(isWorkload)) {
    const container = valueAt(workload, 'spec', 'template', 'spec', 'containers', 0);
    if (!isObject(container)) continue;
    const image = imageName(stringAt(container, 'image') ?? '');
    container['args'] = [...stringsAt(container, 'args'), ...(flags?.[image] ?? [])];
    // What is waited for is told by its own probes.
    if (isObject(workload['spec'])) delete workload['spec']['minReadySeconds'];
    const labels = valueAt(workload, 'spec', 'template', 'metadata', 'labels');
    await moveApart(
      container,
      result.filter((one) => selects(one, labels)),
    );
  }
  return result;
}

/** `host/path/name:tag@digest` → `name`. */
export function imageName(image: string): string {
  return /([^/:@]+)(?::[^/@]*)?(?:@.*)?$/.exec(image)?.[1] ?? image;
}

function selects(service: KubeObject, labels: Json | undefined): boolean {
  const selector = valueAt(service, 'spec', 'selector');
  if (service.kind !== 'Service' || !isObject(selector) || !isObject(labels)) return false;
  return Object.entries(selector).every(([key, value]) => labels[key] === value);
}

/** Every port of the container becomes one that is free on this machine, wherever it is mentioned. */
async function moveApart(container: JsonObject, services: KubeObject[]): Promise<void> {
  const flags = stringsAt(container, 'args').flatMap(
    (arg) => /[:=](\d{4,5})$/.exec(arg)?.[1] ?? [],
  );
  const declared = arrayAt(container, 'ports').map((port) => numberAt(port, 'containerPort'));
  const used = [...new Set([...flags.map(Number), ...declared])].filter(
    (port) => port !== undefined,
  );
  const free = await freePorts(used.length);
  const moved = new Map(used.map((port, index) => [port, free[index] ?? port]));
  const move = (value: Json): Json => {
    if (typeof value === 'number') return moved.get(value) ?? value;
    if (typeof value === 'string') {
      return value.replace(/(?<=[:=])\d{4,5}$/, (port) => `${moved.get(Number(port)) ?? port}`);
    }
    if (Array.isArray(value)) return value.map(move);
    return isObject(value)
      ? Object.fromEntries(Object.entries(value).map(([key, one = null]) => [key, move(one)]))
      : value;
  };
  for (const key of ['args', 'ports', 'readinessProbe']) {
    if (container[key] !== undefined) container[key] = move(container[key]);
  }
  // Nobody here restarts what lives.
  delete container['livenessProbe'];
  for (const service of services) {
    for (const port of arrayAt(service, 'spec', 'ports')) {
      if (!isObject(port)) continue;
      const target = port['targetPort'] ?? port['port'] ?? 0;
      port['targetPort'] = move(target);
    }
  }
}

function isWorkload({ kind }: KubeObject): boolean {
  return kind === 'Deployment';
}

function isEstablished(type: KubeObject | undefined): boolean {
  return conditionsOf(type).some((one) => one.type === 'Established' && one.status === 'True');
}

function isAvailable(workload: KubeObject | undefined): boolean {
  const wanted = numberAt(workload, 'spec', 'replicas') ?? 1;
  return (
    numberAt(workload, 'status', 'observedGeneration') ===
      numberAt(workload, 'metadata', 'generation') &&
    (numberAt(workload, 'status', 'availableReplicas') ?? 0) >= wanted
  );
}
