import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type AuditedRequest, collectionsRead } from '../audit-count.ts';
import type { BareSpec } from '../bare-spec.ts';
import { type Bench, type Run, runAlternating, runOnce, summarize } from '../bench.ts';
import { mustExplain } from '../explanation.ts';
import { withFolder } from '../leftovers.ts';
import type { Bulk } from '../results.ts';
import { FINALIZER } from '../situations.ts';
import { explainThroughProxy } from '../through-proxy.ts';

const CONNECTIONS = 8;
const RUNS = 5;

/** The gate against a program that reads the same pages and does nothing with them. */
export async function measureBulk(
  bench: Bench,
  namespace: string,
  small: string,
  objects: number,
): Promise<Bulk> {
  bench.say(`objects: ${objects}, against a bare client`);
  const command = bench.tools.gate(bench.kubeconfig, [namespace, '--now', '--format', 'json']);
  const trial = await runOnce(bench, command);
  mustExplain(trial.ended, FINALIZER);
  return withFolder(async (folder) => {
    const spec = join(folder, 'spec.json');
    const text = JSON.stringify(await bareSpec(bench, trial.requests, namespace, small));
    await writeFile(spec, text, { mode: 0o600 });
    const bare = {
      file: process.execPath,
      args: [join(import.meta.dirname, '..', 'bare-client.ts'), spec],
    };
    const runs = await runAlternating(bench, {
      gate: { command, runs: RUNS },
      bareClient: { command: bare, runs: RUNS },
    });
    return {
      objects,
      pages: pagesOf(runs.bareClient),
      gate: summarize(runs.gate),
      bareClient: summarize(runs.bareClient),
      reportBytes: Buffer.byteLength(trial.ended.stdout),
    };
  });
}

/** The pages come from the audit log; what it does not say, from a proxy before a small namespace. */
async function bareSpec(
  bench: Bench,
  requests: readonly AuditedRequest[],
  namespace: string,
  small: string,
): Promise<BareSpec> {
  const { requests: seen } = await explainThroughProxy(bench, small);
  const headersOf = (path: string): Record<string, string> => {
    const like = path.replace(`/namespaces/${namespace}/`, `/namespaces/${small}/`);
    const found = seen.find(({ url }) => url.split('?')[0] === like);
    if (found === undefined) throw new Error(`the gate has not read ${like}`);
    const wanted = ['accept', 'accept-encoding', 'authorization'];
    return Object.fromEntries(
      wanted.flatMap((name) => {
        const value = found.headers[name];
        return typeof value === 'string' ? [[name, value]] : [];
      }),
    );
  };
  const { server, ca = '' } = bench.plane.admin.connection;
  return {
    server,
    ca,
    connections: CONNECTIONS,
    collections: collectionsRead(requests, namespace).map(({ path, limits }) => ({
      path,
      limits,
      headers: headersOf(path),
    })),
  };
}

function pagesOf(runs: readonly Run[]): number {
  for (const { ended } of runs) {
    if (ended.exitCode !== 0) throw new Error(`the bare client failed: ${ended.stderr}`);
  }
  return Number(runs[0]?.ended.stdout ?? 0);
}
