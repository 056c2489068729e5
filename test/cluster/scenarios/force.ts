import { stringsAt } from '../../../src/base/json.ts';
import type { ForceRecord } from '../../../src/model/result.ts';
import { KUBESPHERE } from '../../stub/kubesphere.ts';
import { customObject, customType, deployment, pod, typeRef } from '../objects.ts';
import type { Scenario, Seen } from '../scenario.ts';
import type { World } from '../world.ts';
import { METRICS, seed2c } from './dead-apis.ts';
import { KIALI_FINALIZER, kialiRef, seed1c } from './finalizers.ts';
import {
  objectFinalizer,
  ownerMissing,
  ownerUnknown,
  podRef,
  ref,
  specFinalizer,
} from './links.ts';
import { addSpecFinalizers } from './namespace-finalizers.ts';
import { settledWithPod } from './pods.ts';

/** What force-finalize does and what it refuses. */

const POD_FINALIZER = 'dual-pods.llm-d.ai/provider';

function force(
  world: World,
  mode: 'objects' | 'namespace',
  finalizers: string,
  orphans = 'refuse',
) {
  return {
    'force-finalize': mode,
    'force-namespaces': `${world.namespace.slice(0, 8)}*`,
    'force-finalizers': finalizers,
    'force-orphans': orphans,
  };
}

function recordOf({ namespace }: Seen): ForceRecord {
  if (namespace.forced === null) throw new Error('the report has no record of forcing');
  return namespace.forced;
}

function mustRefuse(seen: Seen, words: RegExp): void {
  const refused = recordOf(seen).refused.map(({ target, reason }) => `${target}: ${reason}`);
  if (!refused.some((line) => words.test(line))) {
    throw new Error(`no refusal says ${words}: ${refused.join(' | ')}`);
  }
}

/** A pod that holds everything, and behind it what would be stranded. */
async function createCrowd(world: World): Promise<void> {
  const group = world.domain('example.com');
  await world.createNamespace();
  await world.createType(customType({ group, kind: 'Widget' }));
  await world.create(deployment(world.namespace, 'web'));
  await world.create(
    pod(world.namespace, 'provider-0', { metadata: { finalizers: [POD_FINALIZER] } }),
    { fieldManager: 'dual-pods-controller' },
  );
  await world.create(
    customObject(`${group}/v1`, 'Widget', world.namespace, 'db', {
      finalizers: [`widgets.${group}/cleanup`],
    }),
  );
}

const widgetRef = (world: World) =>
  ref(`${world.domain('example.com')}/v1`, 'Widget', world.namespace, 'db');

function crowdChains(world: World) {
  const held = podRef(world.namespace, 'provider-0');
  return [[objectFinalizer(held, POD_FINALIZER), ownerUnknown(held, POD_FINALIZER)]];
}

/** Somebody keeps putting a finalizer on an object that nobody has asked to go. */
const s47: Scenario = {
  id: 'S47',
  title: 'force objects does not touch what is not terminating',
  versions: ['1.36.3'], // before 1.33 everything is asked to go at once
  identity: 'teardown-force',
  beyondCommands: 'what is queued behind the pod holds in its turn: that is the next report',
  setUp: createCrowd,
  settle: settledWithPod,
  inputs: (world) => force(world, 'objects', `widgets.${world.domain('example.com')}/cleanup`),
  expect: (world) => ({
    outcome: 'stuck',
    chains: crowdChains(world),
    queued: { kinds: ['Widget'] },
    also: async () => {
      const widget = await world.client.get(widgetRef(world));
      if (stringsAt(widget, 'metadata', 'finalizers').length === 0) throw new Error('it is gone');
    },
  }),
};

const s52Refuse: Scenario = {
  id: 'S52-refuse',
  title: 'force namespace refuses while a Deployment, a pod and a custom resource remain',
  own: 'new',
  versions: ['1.36.3'],
  identity: 'teardown-force',
  setUp: createCrowd,
  settle: settledWithPod,
  inputs: (world) => force(world, 'namespace', 'nothing.example.com/cleanup'),
  expect: (world) => ({
    outcome: 'stuck',
    chains: crowdChains(world),
    queued: { kinds: ['Deployment', 'Widget'] },
    also: (seen) => mustRefuse(seen, /force-orphans|remain/),
  }),
  beyondCommands: 'what is queued behind the pod holds in its turn: that is the next report',
};

const s52Accept: Scenario = {
  ...s52Refuse,
  id: 'S52-accept',
  title: 'force namespace with force-orphans: accept strands them and lists them all',
  inputs: (world) => force(world, 'namespace', 'nothing.example.com/cleanup', 'accept'),
  expect: (world) => ({
    outcome: 'forced',
    chains: crowdChains(world),
    queued: { kinds: ['Deployment', 'Widget'] },
    mutations: [`update namespaces/finalize/${world.namespace}`],
    also: async (seen) => {
      const { orphans } = recordOf(seen);
      for (const kind of ['Deployment', 'Pod', 'Widget', 'ConfigMap', 'ServiceAccount']) {
        if (!orphans.some((orphan) => orphan.kind === kind)) throw new Error(`no orphan ${kind}`);
      }
      // Nobody can write to them any more, as the report has to say.
      const path = await world.client.pathOf(widgetRef(world));
      const type = { 'content-type': 'application/merge-patch+json' };
      const answer = await world.client.call('PATCH', path, { metadata: { labels: {} } }, type);
      if (answer.status !== 404) throw new Error(`PATCH of an orphan: ${answer.status}`);
      if (!/again/.test(seen.summary)) throw new Error('the summary does not tell of recovery');
    },
  }),
};

function kialiChains(world: World) {
  return [
    [
      objectFinalizer(kialiRef(world), KIALI_FINALIZER),
      ownerMissing(typeRef('kiali.io', 'Kiali'), KIALI_FINALIZER),
    ],
  ];
}

const seed1eRefuse: Scenario = {
  ...seed1c,
  id: 'SEED-1e-refuse',
  title: 'emptying spec.finalizers with a Kiali object still inside is refused',
  identity: 'teardown-force',
  inputs: (world) => force(world, 'namespace', 'nothing.example.com/cleanup'),
  expect: (world) => ({
    outcome: 'stuck',
    chains: kialiChains(world),
    also: (seen) => mustRefuse(seen, /kiali/i),
  }),
};

const seed1eAccept: Scenario = {
  ...seed1eRefuse,
  id: 'SEED-1e-accept',
  title: 'emptying spec.finalizers with force-orphans: accept lists the Kiali object',
  inputs: (world) => force(world, 'namespace', 'nothing.example.com/cleanup', 'accept'),
  expect: (world) => ({
    outcome: 'forced',
    chains: kialiChains(world),
    mutations: [`update namespaces/finalize/${world.namespace}`],
    also: (seen) => {
      const [orphan, ...more] = recordOf(seen).orphans;
      if (orphan?.kind !== 'Kiali' || orphan.name !== 'kiali' || more.length > 0) {
        throw new Error(`orphans: ${JSON.stringify(recordOf(seen).orphans)}`);
      }
    },
  }),
};

/** The dead group could not be looked into, so emptiness cannot be known: that must be accepted. */
const seed2d: Scenario = {
  ...seed2c,
  id: 'SEED-2d',
  title: 'force namespace takes both entries off, one by one; forced only after a 404',
  identity: 'teardown-force',
  inputs: (world) => force(world, 'namespace', KUBESPHERE, 'accept'),
  expect: async (world) => ({
    ...(await seed2c.expect(world)),
    outcome: 'forced',
    notInspected: [METRICS],
    mutations: [
      `patch namespaces/${world.namespace}`,
      `update namespaces/finalize/${world.namespace}`,
    ],
    also: async () => {
      if (await world.client.find(world.namespaceRef)) throw new Error('it is still there');
    },
  }),
};

const SPEC = ['a.example.org/first', 'b.example.org/second', 'c.example.org/third'];

const seed4e: Scenario = {
  id: 'SEED-4e',
  title: 'exactly one of three spec finalizers is taken off',
  identity: 'teardown-force',
  setUp: async (world) => {
    await world.createNamespace();
    await addSpecFinalizers(world, SPEC);
  },
  settle: (world) =>
    world.client.waitFor(world.namespaceRef, 'has lost "kubernetes"', (namespace) => {
      const left = stringsAt(namespace, 'spec', 'finalizers');
      return left.length === SPEC.length;
    }),
  inputs: (world) => force(world, 'namespace', 'b.example.org/second'),
  expect: (world) => ({
    outcome: 'stuck',
    // What was taken off holds it no more.
    chains: SPEC.filter((one) => !one.startsWith('b.')).map((finalizer) => [
      specFinalizer(world.namespaceRef, finalizer),
      ownerUnknown(world.namespaceRef, finalizer),
    ]),
    mutations: [`update namespaces/finalize/${world.namespace}`],
    also: async () => {
      const left = stringsAt(await world.client.get(world.namespaceRef), 'spec', 'finalizers');
      if (left.join() !== 'a.example.org/first,c.example.org/third') {
        throw new Error(`left: ${left.join(', ')}`);
      }
    },
  }),
};

export const forced = [s47, s52Refuse, s52Accept, seed1eRefuse, seed1eAccept, seed2d, seed4e];
