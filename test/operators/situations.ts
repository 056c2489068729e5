import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringsAt } from '../../src/base/json.ts';
import type { Report, ReportNamespace } from '../../src/report/report-json.ts';
import { type Client, type KubeObject, type Ref, refOf } from '../cluster/client.ts';
import { theBundle } from '../cluster/run-gate.ts';
import { type Ended, runProgram } from '../cluster/shell.ts';
import { takeAway } from '../cluster/take-away.ts';
import { conditionsOf, namespaceRef, type World } from '../cluster/world.ts';
import { createInTime, type Installation } from './bed.ts';
import { findingText, isGone, untruths } from './judge.ts';
import {
  type Product,
  type Root,
  SITUATIONS,
  type Situation,
  type SituationName,
} from './product.ts';

/** Nothing is in the way any more. */
const GONE_MS = 60_000;
/** Whoever led and was killed has left a Lease that others respect for a minute. */
const CURED_MS = 240_000;
/** Controllers that were refused wait twice as long before each new attempt, for up to 1,000 s. */
const RESTART_AFTER_MS = 30_000;
/** Longer than any command of a report waits. */
const SHELL_MS = 300_000;

/** One line of the matrix. */
export interface Row {
  operator: string;
  situation: string;
  outcome: string;
  said: string[];
  /** What was run or done because the report says so, and what came of it. */
  remedy: string;
  problems: string[];
}

/** A controller that has the same permissions and runs makes it impossible to know that no owner is left. */
const missingOrUnknown: Root = { code: ['owner-missing', 'owner-unknown'] };

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
  'without its Lease': {
    breakIt: (installed) => installed.loseLease(),
    restore: (installed) => installed.giveLease(),
    truth: ({ owner }) => ({
      outcome: 'stuck',
      roots: [{ code: ['owner-running'], subject: owner, says: [/by somebody-else/] }],
    }),
  },
  'scaled to zero': asleep(),
  uninstalled: uninstalled(),
  'its namespace deleted': {
    breakIt: (installed) => installed.tearDown(),
    restore: (installed) => installed.install(),
    truth: () => ({ outcome: 'stuck', roots: [missingOrUnknown] }),
  },
  // Under another name it may have to be told from others with the same permissions.
  'somewhere else, under another name, scaled to zero': {
    ...asleep(),
    truth: () => ({
      outcome: 'stuck',
      roots: [{ code: ['owner-scaled-to-zero', 'owner-unknown'] }],
    }),
  },
  'somewhere else, under another name, uninstalled': uninstalled(),
  // Whether it is faster than its own end is chance: it is asleep when the end begins.
  'in the environment itself': {
    breakIt: (installed) => installed.scale(0),
    truth: () => ({
      outcome: 'stuck',
      roots: [missingOrUnknown],
      // A circle if the report can name the operator that was deleted here.
      deadlock: 'either',
      isFinal: true,
    }),
  },
};

function asleep(): Situation {
  return {
    breakIt: (installed) => installed.scale(0),
    restore: (installed) => installed.scale(1),
    truth: ({ owner }) => ({
      outcome: 'stuck',
      roots: [{ code: ['owner-scaled-to-zero'], subject: owner }],
    }),
  };
}

function uninstalled(): Situation {
  return {
    breakIt: (installed) => installed.uninstall(),
    restore: (installed) => installed.install(),
    truth: () => ({ outcome: 'stuck', roots: [missingOrUnknown] }),
  };
}

function rightOf({ name, right }: Product): NonNullable<Product['right']> {
  if (right === undefined) throw new Error(`${name} writes nothing to finish`);
  return right;
}

/** Its situations, in the order in which one installation goes through them. */
export function situationsOf(product: Product): [string, Situation][] {
  const { truths, special, right, lease, namespace } = product;
  const lacks: Partial<Record<SituationName, boolean>> = {
    'without a right': right === undefined,
    'without its Lease': lease === undefined,
    // Nobody deletes that namespace; the other one can be.
    'its namespace deleted': namespace === 'kube-system',
  };
  return [
    ...Object.entries(special ?? {}),
    ...SITUATIONS.filter((name) => !lacks[name]).map((name): [string, Situation] => [
      name,
      { ...SITUATION[name], truth: truths?.[name] ?? SITUATION[name].truth },
    ]),
  ];
}

/** The namespace in which a situation takes place. */
export function environmentOf({ name }: Product, situation: string): string {
  return `${name}-${situation}`.replaceAll(/[^a-z]+/g, '-').slice(0, 63);
}

/** Uses the operator, breaks it, deletes the environment, asks the gate and does what it says. */
export async function show(
  name: string,
  situation: Situation,
  installed: Installation,
  world: World,
  innocents: readonly string[],
): Promise<Row> {
  const { product } = installed;
  const { breakIt, restore, truth } = situation;
  const namespace = environmentOf(product, name);
  const true_ = truth(installed);
  const environment = new Environment(world.client, product, namespace, situation);
  let problems: string[] = [];
  try {
    await environment.use();
    await breakIt?.(installed);
    await environment.delete();
    const seen = await gate(world, namespace, true_.outcome === 'deleted' ? '90s' : '8s');
    problems = untruths(true_, seen, innocents);
    const remedy = await follow(seen, world, environment);
    if (!remedy.freed && !(true_.isFinal && remedy.inWords)) {
      await restore?.(installed);
      const goes = await isCured(environment, installed, remedy.text);
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

/** In the end also by the restart that the report speaks of. */
async function isCured(
  environment: Environment,
  installed: Installation,
  told: string,
): Promise<boolean> {
  if (!told.includes('After a restart')) return await environment.isGone(CURED_MS);
  if (await environment.isGone(RESTART_AFTER_MS)) return true;
  await installed.restart();
  return await environment.isGone(CURED_MS);
}

/** A namespace with what people use the operator for. */
class Environment {
  readonly #client: Client;
  readonly #product: Product;
  readonly #ref: Ref;
  readonly #objects: KubeObject[];
  readonly #held: Ref | undefined;
  /** Made beside it. */
  readonly #beside: KubeObject[];

  constructor(client: Client, product: Product, namespace: string, situation: Situation) {
    const { environment = product.environment } = situation;
    this.#client = client;
    this.#product = product;
    this.#ref = namespaceRef(namespace);
    this.#objects = environment(namespace) as KubeObject[];
    this.#beside = (product.prerequisites?.(namespace) ?? []) as KubeObject[];
    const held = this.#objects.find(({ kind }) => kind === product.held.kind);
    this.#held = held && refOf(held);
  }

  /** Until the operator has made what it makes of it. */
  async use(): Promise<void> {
    const { apiVersion, kind, name } = this.#ref;
    const place = { apiVersion, kind, metadata: { name } };
    for (const object of [place, ...this.#beside, ...this.#objects]) {
      await createInTime(this.#client, object);
    }
    if (this.#held === undefined) return;
    const { finalizer } = this.#product.held;
    // Whoever was killed before it has left its Lease may keep others waiting for a minute.
    await this.#client.waitFor(
      this.#held,
      `has ${finalizer}`,
      (object) => stringsAt(object, 'metadata', 'finalizers').includes(finalizer),
      { timeoutMs: 150_000, everyMs: 500 },
    );
  }

  /** And waits until the namespace controller has said what it has found. */
  async delete(): Promise<void> {
    await this.#client.delete(this.#ref);
    await this.#client.waitFor(
      this.#ref,
      'has conditions',
      (found) => found === undefined || conditionsOf(found).length > 0,
    );
  }

  isGone(timeoutMs: number): Promise<boolean> {
    const gone = this.#client.waitFor(this.#ref, 'is gone', (found) => found === undefined, {
      timeoutMs,
      everyMs: 500,
    });
    return gone.then(
      () => true,
      () => false,
    );
  }

  async takeAway(): Promise<void> {
    const beside = this.#beside.map(refOf);
    for (const ref of [...(this.#held ? [this.#held] : []), this.#ref, ...beside]) {
      await takeAway(this.#client, ref);
    }
    // A second attempt needs the name.
    await this.isGone(GONE_MS);
  }
}

/** The gate as a person runs it in a terminal. */
async function gate(world: World, namespace: string, timeout: string): Promise<ReportNamespace> {
  const kubeconfig = await world.kubeconfig('teardown-reader');
  const args = [namespace, '--kubeconfig', kubeconfig, '--timeout', timeout, '--format', 'json'];
  const { stdout, output } = await shell(process.execPath, [await theBundle(), ...args]);
  const [seen] = stdout === '' ? [] : (JSON.parse(stdout) as Report).namespaces;
  if (seen === undefined) throw new Error(`there is no report:\n${output}`);
  return seen;
}

/**
 * Does what the report says is to be done, to the letter. Where that has no command, as for a right that is missing,
 * nobody can: then what broke it is undone, and that has to free it.
 */
async function follow(
  seen: ReportNamespace,
  world: World,
  environment: Environment,
): Promise<{ text: string; freed: boolean; inWords?: boolean }> {
  if (isGone(seen)) return { text: 'nothing to do', freed: true };
  const { findings, rootCauses } = seen;
  const told = rootCauses.flatMap((id) => {
    const remedies = findings.find((one) => one.id === id)?.remedies ?? [];
    const duties = remedies.filter(({ role = 'now' }) => role === 'now');
    return duties.length > 0 ? duties : remedies.slice(0, 1);
  });
  if (told.length === 0) return { text: 'no remedy', freed: false };
  const ran: string[] = [];
  for (const { text, command } of told) {
    if (command === undefined || isLog(command)) {
      ran.push(text);
      continue;
    }
    const admin = world.plane?.kubeconfig('admin') ?? '';
    const { exitCode, output } = await shell('sh', ['-c', command], { KUBECONFIG: admin });
    ran.push(exitCode === 0 ? command : `${command} → ${output.trim().split('\n').at(-1)}`);
  }
  const inWords = told.some(({ command }) => command === undefined || isLog(command));
  const freed = !inWords && (await environment.isGone(GONE_MS));
  return { text: ran.join('; '), freed, inWords };
}

/** What a log shows, a person has to read. */
function isLog(command: string): boolean {
  return command.startsWith('kubectl logs ');
}

async function shell(
  program: string,
  args: readonly string[],
  variables: Record<string, string> = {},
): Promise<Ended> {
  const cwd = await mkdtemp(join(tmpdir(), 'teardown-gate-terminal-'));
  const env = { PATH: process.env['PATH'] ?? '', HOME: cwd, ...variables };
  const ended = await runProgram(program, args, { env, cwd, limitMs: SHELL_MS });
  await rm(cwd, { recursive: true, force: true });
  return ended;
}
