import { afterAll, describe, expect, test } from 'vitest';
import { Clusters, foreignKubeconfig } from './clusters.ts';
import { build, FORESEEN } from './foreseen.ts';
import { gate, rootsOf } from './foresight.ts';
import { DELETING_TIMEOUT } from './run-scenario.ts';
import { inNamespace } from './world.ts';

const clusters = new Clusters();
afterAll(() => clusters.stop());

describe.skipIf(foreignKubeconfig() !== undefined).concurrent('a forecast tells of', () => {
  test.each(FORESEEN)('$title', async (it) => {
    const { outcome = 'clear', says = /^/, later } = it;
    await clusters.use((cluster) =>
      inNamespace({ ...cluster, namespace: 'preview-1' }, async (world) => {
        await build(world, it);
        const { result, text, writes } = await gate(world, { forecast: 'true' });
        expect([result.outcome, writes], rootsOf(result).join()).toEqual([outcome, []]);
        expect(`${rootsOf(result).join()} ${text}`).toMatch(says);
        if (outcome === 'clear') expect(result.diagnosis?.notInspected).toEqual([]);
        if (later === undefined) return;
        const timeout = later === 'goes' ? '90s' : DELETING_TIMEOUT;
        const after = await gate(world, { delete: 'true', timeout });
        const ends = later === 'goes' ? ['deleted'] : ['stuck', 'inconclusive', 'progressing'];
        expect(ends).toContain(after.result.outcome);
      }),
    );
  });
});
