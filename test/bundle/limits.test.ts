import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { startApiServer } from '../stub/api-server.ts';
import type { Recording } from '../stub/recording.ts';
import { readRecording } from '../stub/recordings.ts';
import { startStep } from '../stub/runner.ts';
import { Bench, misdeeds, NAME } from './bench.ts';

/** What the process needs does not grow with what the namespace holds. */

const OBJECTS = 100_000;
/** An idle gate needs about 100 MB, nearly all of it Node's and the bundle's own. */
const MAX_MB = 250;

const bench = new Bench();
afterAll(() => bench.remove());

test.skipIf(process.platform !== 'linux')(
  `stays below ${MAX_MB} MB with ${OBJECTS} objects in the namespace`,
  { timeout: 300_000 },
  async () => {
    const server = await startApiServer({ recording: crowded() });
    const step = await startStep({
      inputs: {
        namespace: NAME,
        timeout: '0s',
        kubeconfig: await server.kubeconfig(join(bench.folder, 'kubeconfig')),
      },
      limitMs: 240_000,
    });
    let peakKb = 0;
    const sampler = setInterval(() => {
      peakKb = Math.max(peakKb, peakOf(step.pid));
    }, 50);
    const run = await step.ended;
    clearInterval(sampler);
    await server.close();

    const [namespace] = run.report?.namespaces ?? [];
    const held = namespace?.findings.find(
      ({ code, subject }) => code === 'object-finalizer' && subject.kind === 'ConfigMap',
    );
    expect(held?.count).toBe(OBJECTS / 2);
    expect(namespace?.queued).toContainEqual(expect.objectContaining({ count: OBJECTS / 2 }));
    expect(namespace?.notInspected).toEqual([]);
    expect(misdeeds(run)).toEqual([]);
    expect(peakKb).toBeGreaterThan(0);
    expect(peakKb / 1_024).toBeLessThan(MAX_MB);
  },
);

/** Half of them terminating and held, half of them still waiting to be deleted. */
function crowded(): Recording {
  const recording = readRecording('S4');
  const collection = recording.collections.find(({ resource }) => resource === 'configmaps');
  if (collection === undefined) throw new Error('the recording has no ConfigMaps');
  const crowd = Array.from({ length: OBJECTS }, (_, index): JsonObject => {
    const name = `crowd-${String(index).padStart(6, '0')}`;
    const terminating = {
      deletionTimestamp: '2026-11-21T11:10:50Z',
      finalizers: ['crowd.example.com/keep'],
    };
    return {
      metadata: {
        name,
        namespace: NAME,
        uid: `0d5c5d0e-7c11-4b0c-9c55-${String(index).padStart(12, '0')}`,
        resourceVersion: '1',
        creationTimestamp: '2026-11-21T11:00:00Z',
        ...(index % 2 === 0 ? terminating : {}),
      },
    };
  });
  return {
    ...recording,
    collections: recording.collections.map((one) =>
      one === collection ? { ...one, objects: [...one.objects, ...crowd] } : one,
    ),
  };
}

/** VmHWM is the peak itself, so the last sample before the end is nearly all of it. */
function peakOf(pid: number | undefined): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? 0);
  } catch {
    return 0;
  }
}
