import { describe, expect, test } from 'vitest';
import { readFailed, readOk } from '../../src/model/read.ts';
import { CONFIG_MAPS, type FakeCluster, FORBIDDEN, NOT_FOUND, pathOf } from './fake-cluster.ts';
import { DEMO, type Stage, stage } from './gate-run.ts';

/** `deleted`, `recreated` and an empty list are only believed of the cluster that was asked at the start. */

const GET = `GET ${pathOf.namespace(DEMO)}`;
const KUBE_SYSTEM = `GET ${pathOf.namespace('kube-system')}`;
const DEFAULT = `GET ${pathOf.namespace('default')}`;

function switchTo(uid: string, { cluster }: Stage, name = 'kube-system'): void {
  cluster.namespace(name, { uid, active: true });
}

/** By the order of the GETs of the namespace, from the first one on. */
function absentAt(isAbsent: (count: number) => boolean, cluster: FakeCluster): void {
  cluster.answers.set(GET, (count) => (isAbsent(count) ? readFailed(NOT_FOUND) : undefined));
}

interface World {
  what: string;
  /** What happens before the start, or on the way. */
  given: (stage: Stage) => void;
  outcome: string | RegExp;
  says?: RegExp;
}

const WORLDS: readonly World[] = [
  {
    what: 'the address leads to another cluster, which lacks the namespace',
    given: (world) =>
      world.clock.at(20_000, () => {
        switchTo('another', world);
        world.cluster.remove(DEMO);
      }),
    outcome: 'inconclusive',
    says: /leads to another cluster than at the start: namespace kube-system had UID uid-of-kube-system and has UID another/,
  },
  {
    what: 'the address leads to another cluster, which has a namespace of this name',
    given: (world) =>
      world.clock.at(20_000, () => {
        switchTo('another', world);
        world.cluster.namespace(DEMO, { uid: 'of-another', active: true });
      }),
    outcome: 'inconclusive',
    says: /leads to another cluster/,
  },
  {
    what: 'the address leads elsewhere for a while and then back',
    given: (world) => {
      world.clock.at(20_000, () => {
        switchTo('another', world);
        absentAt(() => true, world.cluster);
      });
      world.clock.at(40_000, () => {
        switchTo('uid-of-kube-system', world);
        absentAt(() => false, world.cluster);
      });
    },
    outcome: 'stuck',
  },
  {
    what: 'only "default" may be read, and it is another one',
    given: (world) => {
      world.cluster.answers.set(KUBE_SYSTEM, readFailed(FORBIDDEN));
      switchTo('first', world, 'default');
      world.clock.at(20_000, () => {
        switchTo('second', world, 'default');
        world.cluster.remove(DEMO);
      });
    },
    outcome: 'inconclusive',
    says: /namespace default had UID first and has UID second/,
  },
  {
    what: 'neither may be read',
    given: ({ clock, cluster }) => {
      for (const get of [KUBE_SYSTEM, DEFAULT]) cluster.answers.set(get, readFailed(FORBIDDEN));
      clock.at(20_000, () => cluster.remove(DEMO));
    },
    outcome: 'deleted',
    says: /the same cluster until the end cannot be checked/,
  },
  {
    what: 'a first 404 that is stale, time and again',
    given: ({ cluster }) => absentAt((count) => count % 2 === 1, cluster),
    outcome: 'stuck',
  },
  {
    what: 'a 404 at the very start that is stale',
    given: ({ cluster }) => absentAt((count) => count === 0, cluster),
    outcome: 'stuck',
  },
  {
    what: 'a second 404 that cannot be had',
    given: ({ cluster }) =>
      cluster.answers.set(GET, (count) =>
        count === 0 ? undefined : readFailed(count === 1 ? NOT_FOUND : FORBIDDEN),
      ),
    outcome: 'inconclusive',
  },
  {
    what: 'kube-system cannot be read again',
    given: ({ clock, cluster }) =>
      clock.at(20_000, () => {
        cluster.answers.set(KUBE_SYSTEM, readFailed(FORBIDDEN));
        cluster.remove(DEMO);
      }),
    outcome: 'inconclusive',
  },
];

describe.each(WORLDS)('$what', ({ given, outcome, says }) => {
  test.each(['fed', 'silent', 'forbidden'] as const)('with a watch that is %s', async (mode) => {
    const world = stage(DEMO);
    world.cluster.held(CONFIG_MAPS, DEMO, 'precious', 'some.random/finalizer');
    world.cluster.watchMode = mode;
    given(world);
    const result = await world.runOne({ timeout: '90s' });
    expect(result.outcome).toMatch(outcome);
    // Without a diagnosis, a doubt is a warning.
    const told = result.diagnosis?.notInspected ?? world.lines;
    if (says !== undefined) expect(JSON.stringify(told)).toMatch(says);
  });
});

test('if neither may be read, the deletion rests on two answers, seconds apart', async () => {
  const { clock, cluster, lines, runOne } = stage(DEMO);
  for (const get of [KUBE_SYSTEM, DEFAULT]) cluster.answers.set(get, readFailed(FORBIDDEN));
  clock.at(20_000, () => cluster.remove(DEMO));
  expect(await runOne()).toMatchObject({ outcome: 'deleted', elapsedMs: 23_000 });
  expect(lines.filter((line) => line.includes('the same cluster until the end'))).toHaveLength(1);
});

describe('a list without namespaces', () => {
  const selector = { namespace: '', selector: 'ephemeral=true' };
  const terminating = { namespace: '', terminating: 'true' };

  test.each([
    { what: 'nothing with the labels', inputs: selector, outcome: 'not-found' },
    { what: 'nothing terminating', inputs: terminating, outcome: 'deleted' },
    {
      what: 'nothing terminating for so long',
      inputs: { ...terminating, 'terminating-for': '1h' },
      outcome: 'not-found',
    },
    {
      what: 'nothing terminating with the labels',
      inputs: { ...selector, terminating: 'true' },
      outcome: 'not-found',
    },
  ])('$what: $outcome', async ({ inputs, outcome }) => {
    const { cluster, run } = stage();
    cluster.namespace('living', { active: true });
    expect((await run(inputs)).outcome).toBe(outcome);
  });

  test.each([selector, terminating])(
    'is not accepted if kube-system is missing: %o',
    async (inputs) => {
      const { cluster, run } = stage();
      cluster.drop(pathOf.namespace('kube-system'));
      await expect(run(inputs)).rejects.toMatchObject({
        message: expect.stringMatching(/lacks kube-system and default: it is not complete/),
      });
    },
  );

  test('is not accepted from another cluster', async () => {
    const { cluster, run } = stage();
    cluster.answers.set(
      KUBE_SYSTEM,
      readOk({ metadata: { name: 'kube-system', uid: 'of-another' } }),
    );
    await expect(run(selector)).rejects.toMatchObject({ message: expect.stringMatching(/lacks/) });
  });

  test.each([selector, terminating])('is requested again: %o', async (inputs) => {
    const { clock, cluster, run } = stage();
    clock.at(500, () => cluster.namespace(DEMO, { metadata: { labels: { ephemeral: 'true' } } }));
    const { outcome } = await run({ ...inputs, timeout: '90s' });
    expect(outcome).not.toMatch(/deleted|not-found/);
  });
});
