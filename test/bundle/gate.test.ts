import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { ApiServer, ApiServerOptions } from '../stub/api-server.ts';
import { readRecording } from '../stub/recordings.ts';
import { type RunningStep, type StepRun, startStep } from '../stub/runner.ts';
import { serveCluster } from '../stub/serve.ts';
import { parseLog } from '../stub/step-log.ts';
import { Bench, NAME } from './bench.ts';

/** The shipped bundle against a recorded cluster: what only the whole process can show. */

const recording = readRecording('S4');

const bench = new Bench();
afterAll(() => bench.remove());

const serve = (options: Partial<ApiServerOptions> = {}): Promise<ApiServer> =>
  serveCluster({ recording, ...options });

interface Starting {
  inputs?: Record<string, string>;
  onLine?: (line: string) => void;
}

async function start(server: ApiServer, given: Starting = {}): Promise<RunningStep> {
  const path = join(bench.folder, `kubeconfig-${new URL(server.url).port}`);
  const kubeconfig = await server.kubeconfig(path);
  return startStep({
    inputs: { namespace: NAME, timeout: '30s', kubeconfig, ...given.inputs },
    ...(given.onLine === undefined ? {} : { onLine: given.onLine }),
  });
}

async function run(server: ApiServer, given: Starting = {}): Promise<StepRun> {
  return (await start(server, given)).ended;
}

/** Resolves when the gate has its watch open, and so waits. */
async function waiting(server: ApiServer, step: RunningStep): Promise<void> {
  const early = step.ended.then(({ stdout, stderr }) => {
    throw new Error(`the gate ended before it waited:\n${stdout}${stderr}`);
  });
  await Promise.race([early, server.mutate(({ watches }) => watches.untilOpen())]);
  early.catch(() => undefined);
}

function annotations(step: StepRun): string[] {
  return parseLog(step.stdout).flatMap((line) =>
    line.kind === 'error' || line.kind === 'warning' ? [`${line.kind}: ${line.text}`] : [],
  );
}

describe('the gate on a recorded cluster', () => {
  test.each([
    { scenario: 'S4', code: 'owner-missing' },
    { scenario: 'S7', code: 'apiservice-unavailable' },
  ])('names the root cause of $scenario and changes nothing', async ({ scenario, code }) => {
    const recorded = readRecording(scenario);
    const server = await serve({ recording: recorded });

    const step = await run(server, { inputs: { namespace: recorded.namespace, timeout: '3s' } });

    const [namespace] = step.report?.namespaces ?? [];
    const roots = namespace?.findings.filter(({ id }) => namespace.rootCauses.includes(id));
    expect(step.exitCode).toBe(1);
    expect(step.outputs['outcome']).toBe('stuck');
    expect(roots?.map((finding) => finding.code)).toEqual([code]);
    expect(annotations(step)).toEqual([expect.stringMatching(/^error: /)]);
    const changing = ({ method, path }: { method: string; path: string }): boolean =>
      method !== 'GET' && !path.includes('dryRun=All');
    expect(server.requests.filter(changing)).toEqual([]);
    expect(server.requests.flatMap(({ notSupported }) => notSupported ?? [])).toEqual([]);
  });

  test('sets outputs that are JSON, also for a namespace with the name of a secret', async () => {
    const name = 'reset-password';
    const text = JSON.stringify(recording).replaceAll(NAME, name);
    const server = await serve({ recording: JSON.parse(text) });

    const { outputs } = await run(server, { inputs: { namespace: name, timeout: '3s' } });

    expect(JSON.parse(outputs['outcomes'] ?? '')).toEqual({ [name]: 'stuck' });
    expect(JSON.parse(outputs['blockers'] ?? '')).toMatchObject([{ namespace: name }]);
  });

  test('passes when the namespace is deleted while it waits', async () => {
    const server = await serve({ tls: true });
    const step = await start(server);
    await waiting(server, step);

    server.mutate((cluster) => cluster.removeNamespace(NAME));
    const ended = await step.ended;

    expect(ended.outputs['outcome']).toBe('deleted');
    expect(ended.exitCode).toBe(0);
    expect(annotations(ended)).toEqual([]);
  });
});
