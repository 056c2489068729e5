import { afterAll, describe, expect, test } from 'vitest';
import { Clusters, foreignKubeconfig } from './clusters.ts';
import { CALM, HANGS, QUESTIONS, TEMPORARY } from './foreseen.ts';
import { gate, rootsOf } from './foresight.ts';
import { DELETING_TIMEOUT } from './run-scenario.ts';
import { inNamespace, type World } from './world.ts';

const clusters = new Clusters();
/** One of them makes 5,050 objects, while the others make theirs. */
const LIMIT_MS = 1_500_000;

describe.skipIf(foreignKubeconfig() !== undefined)('on a control plane of its own', () => {
  afterAll(() => clusters.stop());

  describe.concurrent('a hang is foreseen:', () => {
    for (const [title, [build, expected, says]] of Object.entries(HANGS)) {
      test(
        title,
        () =>
          within(title, async (world) => {
            await build(world);
            const { result, text, writes } = await gate(world, { forecast: 'true' });
            expect([result.outcome, writes], rootsOf(result).join()).toEqual([expected, []]);
            expect(`${rootsOf(result).join()} ${text}`).toMatch(says);
            const hung = await gate(world, { delete: 'true', timeout: DELETING_TIMEOUT });
            expect(['stuck', 'inconclusive', 'progressing']).toContain(hung.result.outcome);
          }),
        LIMIT_MS,
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
  return clusters.use((cluster) =>
    inNamespace({ ...cluster, namespace: `f-${name.slice(0, 30)}x` }, work),
  );
}
