import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringsAt } from '../../src/base/json.ts';
import type { Report, ReportNamespace } from '../../src/model/result.ts';
import { ApiError, type Client, refOf } from '../cluster/client.ts';
import { foreignKubeconfig } from '../cluster/clusters.ts';
import { theBundle } from '../cluster/run-gate.ts';
import { takeAway } from '../cluster/take-away.ts';
import { waitUntil } from '../cluster/wait-until.ts';
import { conditionsOf, namespaceRef, type World } from '../cluster/world.ts';
import type { Installation } from './bed.ts';
import { findingText, isGone, untruths } from './judge.ts';
import type { Product, Root, SituationName, Truth } from './product.ts';

/** Controllers that were refused wait twice as long before each new attempt. */
const CURED_MS = 120_000;

/** One line of the matrix. */
export interface Row {
  operator: string;
  situation: SituationName;
  outcome: string;
  said: string[];
  /** What was run or done because the report says so, and what came of it. */
  remedy: string;
  problems: string[];
}

interface Situation {
  /** After the environment is in use, before its deletion. */
  breakIt?: (installed: Installation) => Promise<void>;
  /** Makes everything as it was before. */
  restore?: (installed: Installation) => Promise<void>;
  truth: (installed: Installation) => Truth;
}

const missing: Root = { code: ['owner-missing'] };

const SITUATION: Record<SituationName, Situation> = {
  healthy: { truth: () => ({ outcome: 'deleted' }) },
  'without a right': {
    breakIt: (installed) => installed.takeRight(rightOf(installed.product)),
    restore: (installed) => installed.restoreRights(),
    truth: ({ owner }) => ({
      outcome: 'stuck',
      roots: [{ code: ['owner-failing'], subject: owner }],
    }),
  },
  'scaled to zero': {
    breakIt: (installed) => installed.scale(0),
    restore: (installed) => installed.scale(1),
    truth: asleep,
  },
  uninstalled: {
    breakIt: (installed) => installed.uninstall(),
    restore: (installed) => installed.install(),
    truth: () => ({ outcome: 'stuck', roots: [missing] }),
  },
  'its namespace deleted': {
    breakIt: (installed) => installed.tearDown(),
    restore: (installed) => installed.install(),
    truth: () => ({ outcome: 'stuck', roots: [missing] }),
  },
  'in another namespace, scaled to zero': {
    breakIt: (installed) => installed.scale(0),
    restore: (installed) => installed.scale(1),
    truth: asleep,
  },
};

function asleep({ owner }: Installation): Truth {
  return { outcome: 'stuck', roots: [{ code: ['owner-scaled-to-zero'], subject: owner }] };
}

function rightOf({ name, right }: Product): NonNullable<Product['right']> {
  if (right === undefined) throw new Error(`${name} writes nothing to finish`);
  return right;
}

export function applies(product: Product, name: SituationName): boolean {
  return (
    (name !== 'without a right' || product.right !== undefined) &&
    // Nobody deletes that namespace; the other one can be.
    (name !== 'its namespace deleted' || product.namespace !== 'kube-system')
  );
}

/** Uses the operator, breaks it, deletes the environment, asks the gate and does what it says. */
export async function show(
  name: SituationName,
  installed: Installation,
  world: World,
  innocents: readonly string[],
): Promise<Row> {
  const { product } = installed;
  const { breakIt, restore, truth } = SITUATION[name];
  const namespace = `${product.name}-${name}`.replaceAll(/[^a-z]+/g, '-');
  const true_ = product.truths?.[name] ?? truth(installed);
  const environment = new Environment(world.client, product, namespace);
  await environment.use();
  let problems: string[] = [];
  try {
    await breakIt?.(installed);
    await environment.delete();
    const seen = await gate(world, namespace, true_.outcome === 'deleted' ? '90s' : '8s');
    problems = untruths(true_, seen, innocents);
    const remedy = await follow(seen, world, environment);
    if (!remedy.freed) {
      await restore?.(installed);
      const goes = await environment.isGone(CURED_MS);
      if (!remedy.inWords || !goes) {
        problems.push(
          `${remedy.text} did not free it; ${goes ? 'its cure did' : 'nor did its cure'}`,
        );
      }
    }
    const said = seen.findings.map((finding) => findingText(finding));
    const shown = { operator: product.name, situation: name, outcome: seen.outcome, said };
    return { ...shown, remedy: remedy.text, problems };
  } finally {
    await restore?.(installed);
    await environment.takeAway();
  }
}

/** A namespace with what people use the operator for. */
class Environment {
  readonly #client: Client;
  readonly #product: Product;
  readonly #namespace: string;

  constructor(client: Client, product: Product, namespace: string) {
    this.#client = client;
    this.#product = product;
    this.#namespace = namespace;
  }

  /** Until the operator has made what it makes of it. */
  async use(): Promise<void> {
    const { prerequisites, environment, held } = this.#product;
    const namespace = this.#namespace;
    await this.#client.create({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace },
    });
    for (const object of [...(prerequisites?.(namespace) ?? []), ...environment(namespace)]) {
      let last: unknown;
      await waitUntil(
        () => `${object['kind']} to be accepted; last: ${last}`,
        async () => {
          try {
            return await this.#client.create(object);
          } catch (error) {
            if (!(error instanceof ApiError)) throw error;
            last = error;
            return error.status === 409;
          }
        },
        { everyMs: 500 },
      );
    }
    if (held === undefined) return;
    await this.#client.waitFor({ ...held, namespace }, `has ${held.finalizer}`, (object) =>
      stringsAt(object, 'metadata', 'finalizers').includes(held.finalizer),
    );
  }

  /** And waits until the namespace controller has said what it has found. */
  async delete(): Promise<void> {
    const ref = namespaceRef(this.#namespace);
    await this.#client.delete(ref);
    await this.#client.waitFor(
      ref,
      'has conditions',
      (found) => found === undefined || conditionsOf(found).length > 0,
    );
  }

  isGone(timeoutMs: number): Promise<boolean> {
    return this.#client
      .waitFor(namespaceRef(this.#namespace), 'is gone', (found) => found === undefined, {
        timeoutMs,
        everyMs: 500,
      })
      .then(
        () => true,
        () => false,
      );
  }

  async takeAway(): Promise<void> {
    const { held, prerequisites } = this.#product;
    const namespace = this.#namespace;
    if (held) await takeAway(this.#client, { ...held, namespace });
    await takeAway(this.#client, namespaceRef(namespace));
    for (const object of prerequisites?.(namespace) ?? []) {
      await takeAway(this.#client, refOf(object as Parameters<typeof refOf>[0]));
    }
  }
}

/** The gate as a person runs it in a terminal. */
async function gate(world: World, namespace: string, timeout: string): Promise<ReportNamespace> {
  const kubeconfig = await world.kubeconfig('teardown-reader');
  const args = [namespace, '--kubeconfig', kubeconfig, '--timeout', timeout, '--format', 'json'];
  const { output } = await shell(process.execPath, [await theBundle(), ...args], {}, 'stdout');
  const report = JSON.parse(output) as Report;
  const [seen] = report.namespaces;
  if (seen === undefined) throw new Error(`the report names no namespace:\n${output}`);
  return seen;
}

/**
 * Does the first thing that the report says is to be done, to the letter. Where it has no command, as for a
 * right that is missing, nobody can: then what broke it is undone, and that has to free it.
 */
async function follow(
  seen: ReportNamespace,
  world: World,
  environment: Environment,
): Promise<{ text: string; freed: boolean; inWords?: boolean }> {
  if (isGone(seen)) return { text: 'nothing to do', freed: true };
  const { findings, rootCauses } = seen;
  const told = rootCauses.flatMap(
    (id) => findings.find((one) => one.id === id)?.remedies.slice(0, 1) ?? [],
  );
  if (told.length === 0) return { text: 'no remedy', freed: false };
  const words = told.find(({ command }) => command === undefined);
  if (words !== undefined) return { text: words.text, freed: false, inWords: true };
  const ran: string[] = [];
  for (const { command = '' } of told) {
    const admin = world.plane?.kubeconfig('admin') ?? foreignKubeconfig() ?? '';
    const { exitCode, output } = await shell('sh', ['-c', command], { KUBECONFIG: admin }, 'all');
    ran.push(exitCode === 0 ? command : `${command} → ${output.trim().split('\n').at(-1)}`);
  }
  const freed = await environment.isGone(60_000);
  return { text: ran.join('; '), freed };
}

async function shell(
  program: string,
  args: readonly string[],
  env: Record<string, string>,
  wanted: 'stdout' | 'all',
): Promise<{ exitCode: number | null; output: string }> {
  const home = await mkdtemp(join(tmpdir(), 'teardown-gate-terminal-'));
  const child = spawn(program, args, {
    cwd: home,
    env: { PATH: process.env['PATH'] ?? '', HOME: home, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  const exitCode = await new Promise<number | null>((resolve) => child.once('close', resolve));
  await rm(home, { recursive: true, force: true });
  if (wanted === 'stdout' && output === '') throw new Error(`no report:\n${errors}`);
  return { exitCode, output: wanted === 'all' ? output + errors : output };
}
