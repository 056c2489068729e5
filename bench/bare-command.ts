import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type AuditedRequest, collectionsRead } from './audit-count.ts';
import type { BareSpec } from './bare-spec.ts';
import { type Bench, runOnce } from './bench.ts';
import { mustExplain } from './explanation.ts';
import { withFolder } from './leftovers.ts';
import type { Command, Ended } from './run-command.ts';
import { FINALIZER } from './situations.ts';
import { explainThroughProxy } from './through-proxy.ts';

const CONNECTIONS = 8;
const DISCOVERY = ['/api', '/apis'];

/**
 * A bare client that discovers and lists what the gate discovers and lists of this namespace, and does
 * nothing with it. `small` is a namespace that the gate is asked about once more to see its headers.
 */
export async function withBareClient<T>(
  bench: Bench,
  namespace: string,
  small: string,
  work: (bare: { command: Command; explained: Ended }) => Promise<T>,
): Promise<T> {
  const gate = bench.tools.gate(bench.kubeconfig, [namespace, '--now', '--format', 'json']);
  const { ended: explained, requests } = await runOnce(bench, gate);
  mustExplain(explained, FINALIZER);
  return withFolder(async (folder) => {
    const spec = join(folder, 'spec.json');
    const text = JSON.stringify(await bareSpec(bench, requests, namespace, small));
    await writeFile(spec, text, { mode: 0o600 });
    const program = join(import.meta.dirname, 'bare-client.ts');
    return work({ command: { file: process.execPath, args: [program, spec] }, explained });
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
    collections: [
      ...DISCOVERY.map((path) => ({ path, limits: [0] })),
      ...collectionsRead(requests, namespace),
    ].map((each) => ({ ...each, headers: headersOf(each.path) })),
  };
}
